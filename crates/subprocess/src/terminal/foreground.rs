//! Who has a terminal, and whether it waits for what is typed.

use std::fmt;

use crate::{Member, SignalName};

/// The process group that has a terminal: the one that is typed to, and that `^C` interrupts.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Foreground {
    /// The id of the group. Its leader may be dead while other members live.
    pub process_group_id: u32,
    /// Whether it waits for input.
    pub input: InputWaiting,
    /// One process of the group: its leader where that lives. `None` where the group has no member that could be seen.
    pub member: Option<Member>,
}

impl Foreground {
    /// States what was found.
    pub fn new(process_group_id: u32, input: InputWaiting, member: Option<Member>) -> Self {
        Self {
            process_group_id,
            input,
            member,
        }
    }
}

/// Whether somebody waits for what is typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InputWaiting {
    /// A thread of the foreground group was seen blocked on this very terminal, in a call that input ends.
    Proven,
    /// Every thread of the group was looked at, and none is.
    NotWaiting,
    /// It cannot be told, for this reason. A caller may guess by other means, and should say that it guesses.
    Unknown(String),
}

impl InputWaiting {
    /// Tells whether it is proven that somebody waits.
    pub fn is_proven(&self) -> bool {
        matches!(self, Self::Proven)
    }
}

impl fmt::Display for InputWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven => f.write_str("waiting for input"),
            Self::NotWaiting => f.write_str("not waiting for input"),
            Self::Unknown(why) => write!(f, "not known: {why}"),
        }
    }
}

/// A signal that can be sent to the foreground group (`signal(7)`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TerminalSignal {
    /// `SIGINT`, what `^C` is for.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
    /// `SIGKILL`. Refused for the group of the terminal's own program.
    Kill,
    /// `SIGTSTP`, what `^Z` is for.
    Stop,
    /// `SIGHUP`.
    HangUp,
    /// `SIGQUIT`, what `^\` is for.
    Quit,
    /// `SIGWINCH`. [`Terminal::resize`](crate::Terminal::resize) sends it by itself.
    WindowChange,
    /// `SIGCONT`.
    Continue,
}

impl TerminalSignal {
    /// Every signal there is.
    pub const ALL: [Self; 8] = [
        Self::Interrupt,
        Self::Terminate,
        Self::Kill,
        Self::Stop,
        Self::HangUp,
        Self::Quit,
        Self::WindowChange,
        Self::Continue,
    ];

    /// Returns the signal's name.
    ///
    /// ```
    /// use dsh_subprocess::TerminalSignal;
    /// assert_eq!(TerminalSignal::Stop.name().as_str(), "SIGTSTP");
    /// ```
    pub fn name(self) -> SignalName {
        SignalName::from(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Kill => "SIGKILL",
            Self::Stop => "SIGTSTP",
            Self::HangUp => "SIGHUP",
            Self::Quit => "SIGQUIT",
            Self::WindowChange => "SIGWINCH",
            Self::Continue => "SIGCONT",
        })
    }

    /// Finds the signal of a name, as in `"SIGINT"`.
    ///
    /// ```
    /// use dsh_subprocess::TerminalSignal;
    /// assert_eq!(TerminalSignal::from_name("SIGHUP"), Some(TerminalSignal::HangUp));
    /// assert_eq!(TerminalSignal::from_name("SIGSTOP"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|signal| signal.name().as_str() == name)
    }
}
