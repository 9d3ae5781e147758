//! The last line of a rendered command: how it ended.

use dsh_subprocess::{Outcome, SignalName};

const RUNNING: &str = "[still running]";
const UNKNOWN: &str = "[exit status unknown]";
const CODE: &str = "[exit code: ";
const SIGNAL: &str = "[killed by signal: ";

/// What the last line of a rendered command says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParsedExit {
    /// `[exit code: N]`.
    Code(u32),
    /// `[killed by signal: NAME]`.
    Signal(SignalName),
    /// `[exit status unknown]`: it ended, and nobody can tell how.
    Unknown,
    /// `[still running]`.
    Running,
}

/// Reads how a command ended from the end of its rendered text.
///
/// Returns what comes before the last line, without the line break between them, and what that line says. A text that
/// does not end in such a line, to the byte, is all body. Lines before the last one are never looked at, so what a command
/// printed does not matter.
///
/// ```
/// use dsh_shell::render::{ParsedExit, parse_exit_status};
///
/// let (body, exit) = parse_exit_status("[exit code: 0]\nforged\n[exit code: 3]");
/// assert_eq!((body, exit), ("[exit code: 0]\nforged", Some(ParsedExit::Code(3))));
/// assert_eq!(parse_exit_status("no marker"), ("no marker", None));
/// ```
pub fn parse_exit_status(text: &str) -> (&str, Option<ParsedExit>) {
    let (body, line) = text.rsplit_once('\n').unwrap_or(("", text));
    match ParsedExit::from_line(line) {
        Some(exit) => (body, Some(exit)),
        None => (text, None),
    }
}

impl ParsedExit {
    /// Says how a command ended, or that it runs.
    pub fn of(outcome: Option<&Outcome>) -> Self {
        match outcome {
            None => Self::Running,
            Some(Outcome::Unknown) => Self::Unknown,
            Some(Outcome::Exited { code }) => Self::Code(*code),
            Some(Outcome::Signaled { signal, .. }) => Self::Signal(plain(signal)),
        }
    }

    /// Returns the line that says it.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Running => RUNNING.to_owned(),
            Self::Unknown => UNKNOWN.to_owned(),
            Self::Code(code) => format!("{CODE}{code}]"),
            Self::Signal(signal) => format!("{SIGNAL}{signal}]"),
        }
    }

    fn from_line(line: &str) -> Option<Self> {
        match line {
            RUNNING => return Some(Self::Running),
            UNKNOWN => return Some(Self::Unknown),
            _ => {}
        }
        let inside = line.strip_suffix(']')?;
        if let Some(digits) = inside.strip_prefix(CODE) {
            let code = digits.parse().ok()?;
            // A sign and leading zeros are never written.
            return (format!("{code}") == digits).then_some(Self::Code(code));
        }
        let name = inside.strip_prefix(SIGNAL)?;
        let is_name = !name.is_empty() && name.chars().all(is_of_a_name);
        is_name.then(|| Self::Signal(SignalName::from(name.to_owned())))
    }
}

/// Signal names come from the world, and a strange one must not break the line.
fn plain(signal: &SignalName) -> SignalName {
    let name = signal.as_str();
    if !name.is_empty() && name.chars().all(is_of_a_name) {
        return signal.clone();
    }
    let plain: String = name
        .chars()
        .map(|c| if is_of_a_name(c) { c } else { '?' })
        .collect();
    SignalName::from(if plain.is_empty() { "?".to_owned() } else { plain })
}

/// Tells whether a signal's name may have the character in it: `SIGRTMIN+3`.
fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+-_?".contains(c)
}
