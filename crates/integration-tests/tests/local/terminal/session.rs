//! A program on a terminal, followed by what it prints and by its end, never by time.

use std::fs::File;
use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use bytes::Bytes;
use dsh_subprocess::{
    Error, Outcome, SpawnSpec, SubprocessRuntime, Terminal, TerminalOutput, TerminalSize, TerminalSpec,
};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Case, eventually, within};

/// A terminal, and what was read of it and not looked at yet.
pub(super) struct Session {
    terminal: Terminal,
    output: TerminalOutput,
    unseen: Vec<u8>,
}

/// What starts sessions of a case.
pub(super) trait Terminals {
    /// A spec with a grace and a drain that no test waits out unless it says so.
    fn terminal_spec(&self, argv: SpawnSpec) -> TerminalSpec;

    /// Asks for a terminal.
    fn try_terminal(&self, spec: TerminalSpec) -> Result<Terminal, Error>;

    /// Starts a program that must start.
    #[track_caller]
    fn open(&self, spec: TerminalSpec) -> Session {
        let mut terminal = self.try_terminal(spec).expect("the program starts");
        let output = terminal.output().expect("it was not taken yet");
        Session::new(terminal, output)
    }

    /// Starts a program, and waits until it has printed a line that begins with `ready`.
    #[track_caller]
    fn ready(&self, spec: TerminalSpec) -> Session {
        let mut session = self.open(spec);
        session.line_of("ready");
        session
    }
}

impl Terminals for Case {
    fn terminal_spec(&self, ordinary: SpawnSpec) -> TerminalSpec {
        TerminalSpec {
            argv: ordinary.argv,
            cwd: ordinary.cwd,
            env: ordinary.env,
            terminal_type: "dumb".into(),
            size: TerminalSize { rows: 24, cols: 80 },
            grace: ordinary.grace,
            drain: ordinary.drain,
            cancel: ordinary.cancel,
        }
    }

    #[track_caller]
    fn try_terminal(&self, spec: TerminalSpec) -> Result<Terminal, Error> {
        within(self.runtime.spawn_terminal(spec))
    }
}

impl Session {
    pub(super) fn new(terminal: Terminal, output: TerminalOutput) -> Self {
        Self {
            terminal,
            output,
            unseen: Vec::new(),
        }
    }

    /// Reads until this was printed, and returns all that came before it.
    #[track_caller]
    pub(super) fn until(&mut self, text: &str) -> String {
        loop {
            let found = self
                .unseen
                .windows(text.len())
                .position(|window| window == text.as_bytes());
            if let Some(at) = found {
                let seen: Vec<u8> = self.unseen.drain(..at + text.len()).take(at).collect();
                return String::from_utf8_lossy(&seen).into_owned();
            }
            let read = within(self.output.read_buf(&mut self.unseen)).expect("the output can be read");
            assert!(
                read > 0,
                "the output ended without {text:?}, after {:?}",
                String::from_utf8_lossy(&self.unseen)
            );
        }
    }

    /// Reads to a line that begins with this word, and returns the rest of that line.
    #[track_caller]
    pub(super) fn line_of(&mut self, word: &str) -> String {
        loop {
            let line = self.until("\n");
            if line.split([' ', '\r']).next() == Some(word) {
                return line[word.len()..].trim().to_owned();
            }
        }
    }

    /// Reads to a line that begins with this word, and returns the pids after it.
    #[track_caller]
    pub(super) fn announced(&mut self, word: &str) -> Vec<u32> {
        self.line_of(word)
            .split_whitespace()
            .map(|pid| pid.parse().expect("a pid"))
            .collect()
    }

    /// Reads to the end, which is no error.
    #[track_caller]
    pub(super) fn rest(&mut self) -> Vec<u8> {
        within(self.output.read_to_end(&mut self.unseen)).expect("the end of a terminal is no error");
        std::mem::take(&mut self.unseen)
    }

    /// Types, which must succeed.
    #[track_caller]
    pub(super) fn types(&self, data: impl Into<Bytes>) {
        within(self.terminal.write(data)).expect("the terminal takes it");
    }

    /// Waits for the program's end.
    #[track_caller]
    pub(super) fn outcome(&self) -> Outcome {
        within(self.terminal.done()).expect("the outcome is known")
    }

    /// Ends the session.
    #[track_caller]
    pub(super) fn end(&self) {
        within(self.terminal.terminate()).expect("the session ends");
    }

    /// Waits until the session is gone, which nobody ends but its program.
    #[track_caller]
    pub(super) fn gone(&self) {
        let gone = within(self.terminal.wait_for_exit(&CancellationToken::new()));
        assert!(gone.expect("the session ends"));
    }

    /// Reads to the end, and waits for the end of the program and of the session.
    #[track_caller]
    pub(super) fn finish(mut self) -> (Outcome, Vec<u8>) {
        let rest = self.rest();
        let outcome = self.outcome();
        self.gone();
        (outcome, rest)
    }

    /// Gives the two halves.
    pub(super) fn into_parts(self) -> (Terminal, TerminalOutput) {
        assert!(self.unseen.is_empty(), "it was read and not looked at");
        (self.terminal, self.output)
    }
}

impl Deref for Session {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.terminal
    }
}

/// Writes a line to a pipe that somebody is about to read. To open it otherwise would wait for ever for one who does not come.
#[track_caller]
pub(super) fn open_gate(gate: &Path, line: &str) {
    let mut gate_open = None;
    eventually("the program reads the pipe", || {
        gate_open = File::options()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(gate)
            .ok();
        gate_open.is_some()
    });
    let mut pipe = gate_open.expect("it is open");
    pipe.write_all(format!("{line}\n").as_bytes())
        .expect("the program reads");
}

/// So many lines, each as it is made of its number.
pub(super) fn lines(count: usize, line: impl FnMut(usize) -> String) -> String {
    (0..count).map(line).collect()
}

/// Undoes what a terminal does to line ends that its program has not set up.
pub(super) fn plain(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).replace("\r\n", "\n")
}

/// The name of the signal that ended a program.
pub(super) fn signal(outcome: &Outcome) -> Option<&str> {
    outcome.signal().map(dsh_subprocess::SignalName::as_str)
}
