//! How the checks follow a program on a terminal: by what it prints and by its end, never by time.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dsh_subprocess::{
    Error, ErrorKind, Foreground, Outcome, SubprocessRuntime, Terminal, TerminalOutput, TerminalSpec,
};
use tokio::io::AsyncReadExt;

use super::World;
use super::child::gone;
use super::watchdog::{BOUND, within};

/// A terminal in a runtime of its own, and what was read of it and not looked at yet.
pub(super) struct Session {
    terminal: Terminal,
    output: TerminalOutput,
    unseen: Vec<u8>,
    runtime: Arc<dyn SubprocessRuntime>,
}

/// Starts a program on a terminal, in a runtime of its own. `None` where the world has no terminals, and says so.
pub(super) async fn open(world: &World, spec: TerminalSpec) -> Option<Session> {
    let runtime = world.runtime();
    let mut terminal = spawned(world, &*runtime, spec).await?;
    let output = terminal.output().expect("the output was not taken yet");
    assert!(terminal.output().is_none(), "the output was given twice");
    Some(Session {
        terminal,
        output,
        unseen: Vec::new(),
        runtime,
    })
}

/// Starts a call of the probe on a terminal, and awaits that it is ready.
pub(super) async fn ready(world: &World, call: &[&str]) -> Option<Session> {
    ready_with(world, world.terminal_spec(call)).await
}

/// Starts a program that says when it is ready.
pub(super) async fn ready_with(world: &World, spec: TerminalSpec) -> Option<Session> {
    let mut session = open(world, spec).await?;
    let line = session.line().await;
    assert!(line.starts_with("ready"), "{line}");
    Some(session)
}

/// Starts a program on a terminal of this runtime. `None` where the world has no terminals, and says so.
pub(super) async fn spawned(
    world: &World,
    runtime: &dyn SubprocessRuntime,
    spec: TerminalSpec,
) -> Option<Terminal> {
    match within("a terminal", runtime.spawn_terminal(spec)).await {
        Ok(terminal) => {
            assert!(world.guarantees.terminal, "a terminal came from nowhere");
            Some(terminal)
        }
        Err(error) if !world.guarantees.terminal => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            None
        }
        Err(error) => panic!("the program was not started: {error}"),
    }
}

/// Awaits the refusal of a spec. `None` where the world has no terminals at all.
pub(super) async fn refusal(world: &World, change: impl FnOnce(&mut TerminalSpec)) -> Option<Error> {
    let mut spec = world.terminal_spec(&["exit", "0"]);
    change(&mut spec);
    let runtime = world.runtime();
    match within("a refusal", runtime.spawn_terminal(spec)).await {
        Ok(terminal) => panic!("a terminal was made: {terminal:?}"),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            assert!(!world.guarantees.terminal, "{error}");
            None
        }
        Err(error) => Some(error),
    }
}

impl Session {
    /// Reads until this was printed, and returns all that came before it.
    pub(super) async fn until(&mut self, text: &str) -> String {
        loop {
            let found = self
                .unseen
                .windows(text.len())
                .position(|window| window == text.as_bytes());
            if let Some(at) = found {
                let seen: Vec<u8> = self.unseen.drain(..at + text.len()).take(at).collect();
                return String::from_utf8_lossy(&seen).into_owned();
            }
            let what = format!("{text:?} after {:?}", String::from_utf8_lossy(&self.unseen));
            let count = within(&what, self.output.read_buf(&mut self.unseen))
                .await
                .expect("the output can be read");
            assert!(count > 0, "the output ended without {what}");
        }
    }

    /// Reads a line, without its end: a terminal that its program has not set up ends lines with a carriage return, too.
    pub(super) async fn line(&mut self) -> String {
        self.until("\n").await.trim_end_matches('\r').to_owned()
    }

    /// Reads exactly so many bytes.
    pub(super) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.unseen.len() < count {
            let what = format!("byte {} of {count}", self.unseen.len());
            let read = within(&what, self.output.read_buf(&mut self.unseen))
                .await
                .expect("the output can be read");
            assert!(read > 0, "the output ended before {what}");
        }
        self.unseen.drain(..count).collect()
    }

    /// Reads to the end, which is no error.
    pub(super) async fn rest(&mut self) -> Vec<u8> {
        within("the end of the output", self.output.read_to_end(&mut self.unseen))
            .await
            .expect("the end of a terminal is no error");
        std::mem::take(&mut self.unseen)
    }

    /// Types, which must succeed.
    pub(super) async fn types(&self, data: impl Into<Bytes>) {
        within("the end of a write", self.terminal.write(data))
            .await
            .expect("the terminal takes it");
    }

    /// Types what must be refused.
    pub(super) async fn refused_write(&self, data: impl Into<Bytes>) -> Error {
        within("the refusal of a write", self.terminal.write(data))
            .await
            .expect_err("the write is refused")
    }

    /// Awaits how the program ended.
    pub(super) async fn outcome(&self) -> Outcome {
        within("done", self.terminal.done())
            .await
            .expect("done gives an outcome")
    }

    /// Reads to the end, and awaits the ends of the program and of the session.
    pub(super) async fn finish(mut self) -> (Outcome, Vec<u8>) {
        let rest = self.rest().await;
        let outcome = self.outcome().await;
        gone(self.terminal.tree()).await;
        (outcome, rest)
    }

    /// Gives the handle, and whatever has to live as long as it.
    pub(super) fn into_parts(self) -> (Terminal, impl Sized) {
        (self.terminal, (self.output, self.runtime))
    }

    /// Returns the runtime of the session.
    pub(super) fn runtime(&self) -> &dyn SubprocessRuntime {
        &*self.runtime
    }

    /// Ends the session, and awaits that.
    pub(super) async fn end(&self) {
        within("the end of a termination", self.terminal.terminate())
            .await
            .expect("the session can be ended");
    }

    /// Looks who has the terminal; somebody must.
    pub(super) async fn foreground(&self) -> Foreground {
        within("a look at the foreground", self.terminal.inspect_foreground())
            .await
            .expect("an answer")
            .expect("somebody has the terminal")
    }

    /// Looks at the foreground until it is so. The world tells nobody when that changes.
    pub(super) async fn foreground_until(
        &self,
        what: &str,
        mut holds: impl FnMut(&Foreground) -> bool,
    ) -> Foreground {
        let deadline = Instant::now() + BOUND;
        loop {
            let foreground = self.foreground().await;
            if holds(&foreground) {
                return foreground;
            }
            assert!(
                Instant::now() < deadline,
                "not within {BOUND:?}: {what}; it is {foreground:?}"
            );
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Deref for Session {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.terminal
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Terminal {
        &mut self.terminal
    }
}

/// Undoes what a terminal does to line ends that its program has not set up.
pub(super) fn plain(printed: &[u8]) -> Vec<u8> {
    let mut plain = printed.to_vec();
    plain.retain(|&byte| byte != b'\r');
    plain
}
