//! The steps that only a program on a terminal has.

use dsh_subprocess::TerminalSignal;

use super::super::script::{Reaction, Script, Step};
use super::ScriptedForeground;

/// What a program does on a [terminal](dsh_subprocess::Terminal). There, [`stdout`](Self::stdout) and
/// [`stderr`](Self::stderr) both print, and the steps that read get what was written to the terminal, to the end of which
/// they never come. Any of the steps below panics in a program that is not on a terminal: the test is wrong.
///
/// ```
/// use dsh_subprocess::TerminalSignal;
/// use dsh_subprocess_testkit::scripted::{Reaction, Script};
///
/// let shell = Script::new()
///     .collects_lines(true)
///     .on_signal(TerminalSignal::Interrupt, Reaction::Ignores)
///     .stdout("$ ")
///     .reads_line()
///     .until_signal(TerminalSignal::Interrupt)
///     .stdout("^C\n$ ")
///     .reads_line()
///     .exits(0);
/// assert!(format!("{shell:?}").contains("Interrupt"));
/// ```
impl Script {
    /// Reads up to the end of a line, with it.
    #[must_use]
    pub fn reads_line(self) -> Self {
        self.then(Step::ReadLine)
    }

    /// Says whether the terminal collects lines from now on, as one does in canonical mode: a program reads whole lines, and
    /// one of more than 4,095 bytes is refused. It does not collect them where a script says nothing.
    #[must_use]
    pub fn collects_lines(self, collect: bool) -> Self {
        self.then(Step::CollectLines(collect))
    }

    /// Prints the size of the window: rows, a space, columns, and a line end.
    #[must_use]
    pub fn prints_size(self) -> Self {
        self.then(Step::PrintSize)
    }

    /// Waits for a signal to the foreground group. Each one ends one such step, also when it came before the step.
    #[must_use]
    pub fn until_signal(self, signal: TerminalSignal) -> Self {
        self.then(Step::Signal(signal))
    }

    /// Gives the terminal to somebody. The program's own group has it where a script says nothing.
    ///
    /// A signal for another group reaches the [member](super::super::ScriptedMember) of that id: it takes every one that
    /// would end it for a `SIGTERM`, but `SIGKILL`.
    #[must_use]
    pub fn hands_terminal_to(self, foreground: ScriptedForeground) -> Self {
        self.then(Step::HandTerminal(foreground))
    }

    /// Says what the program does about a signal while its own group is in the foreground. Where it says nothing,
    /// `SIGINT`, `SIGHUP` and `SIGQUIT` end it, the others do not. About `SIGTERM` it does what
    /// [`on_term`](Self::on_term) says, and there is no `SIGKILL` for it.
    #[must_use]
    pub fn on_signal(mut self, signal: TerminalSignal, reaction: Reaction) -> Self {
        self.on_signal.push((signal, reaction));
        self
    }
}
