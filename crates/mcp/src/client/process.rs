//! The server as seen from outside of the session.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dsh_subprocess::{Error, Outcome, OutputReader, Process};
use tokio_util::sync::CancellationToken;

use super::command::BadLineObserver;
use super::error::{Ended, ServerError};
use super::excerpt::readable_tail;
use super::message::BadLine;

/// How much of the error output is quoted, in bytes.
const QUOTE: usize = 2048;
/// How many bad lines are remembered.
const RECENT: usize = 16;
/// How long the exit is waited for, once the streams say that it is near.
pub(super) const EXIT_WAIT: Duration = Duration::from_secs(1);

/// A server that was started: its process, its error output and its bad lines.
///
/// Clones are the same server. Holding one keeps nothing alive: the [transport](super::ServerTransport) owns the tree.
#[derive(Clone)]
pub struct ServerProcess {
    shared: Arc<Shared>,
}

struct Shared {
    process: Process,
    stderr: OutputReader,
    bad_lines: Mutex<BadLines>,
    on_bad_line: Option<BadLineObserver>,
}

/// The lines that were skipped so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BadLines {
    /// How many.
    pub count: u64,
    /// The last 16 of them, oldest first.
    pub recent: VecDeque<BadLine>,
}

impl ServerProcess {
    pub(super) fn new(process: Process, stderr: OutputReader, on_bad_line: Option<BadLineObserver>) -> Self {
        Self {
            shared: Arc::new(Shared {
                process,
                stderr,
                bad_lines: Mutex::default(),
                on_bad_line,
            }),
        }
    }

    /// Returns the server's id, where its world has ids. That of a launcher, where one stands between.
    pub fn pid(&self) -> Option<u32> {
        self.shared.process.pid()
    }

    /// Returns the reader of its error output. It holds the last bytes, as many as
    /// [`stderr_bytes`](super::Limits::stderr_bytes) says, during the session and after it.
    pub fn stderr(&self) -> &OutputReader {
        &self.shared.stderr
    }

    /// Returns the end of its error output, at most 2 KiB of it, in lines, without escape sequences and control characters: to
    /// be shown where a server does not answer.
    pub fn stderr_tail(&self) -> String {
        readable_tail(&self.shared.stderr.snapshot().tail, QUOTE)
    }

    /// Returns the lines that were skipped so far.
    pub fn bad_lines(&self) -> BadLines {
        self.lock().clone()
    }

    /// Returns the handle of its tree: members, usage, ownership, how it ended. Terminating it ends the session.
    pub fn handle(&self) -> &Process {
        &self.shared.process
    }

    /// Resolves when its whole tree is gone.
    ///
    /// rmcp closes a transport and says nothing of how that went: this does.
    ///
    /// # Errors
    ///
    /// [`ServerError::End`], which names members that could not be ended.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    pub async fn gone(&self) -> Result<(), ServerError> {
        let never = CancellationToken::new();
        let gone = self.shared.process.wait_for_exit(&never).await;
        gone.map(|_| ()).map_err(ServerError::End)
    }

    /// Counts a line, and tells of it: to `tracing` one by one while there are few, then each time their number has doubled,
    /// so that a server that writes nothing else fills no log.
    pub(super) fn skipped(&self, line: BadLine) {
        if let Some(observe) = &self.shared.on_bad_line {
            observe(&line);
        }
        let mut bad = self.lock();
        bad.count = bad.count.saturating_add(1);
        let count = bad.count;
        if count <= RECENT as u64 || count.is_power_of_two() {
            tracing::warn!(
                pid = self.pid(),
                count,
                cause = %line.cause,
                length = line.length,
                excerpt = line.excerpt,
                "skipped a line of an MCP server"
            );
        }
        if bad.recent.len() == RECENT {
            bad.recent.pop_front();
        }
        bad.recent.push_back(line);
    }

    /// Says how the server ended, as far as that is known.
    pub(super) fn ended(&self, outcome: Option<Result<Outcome, Error>>) -> Ended {
        Ended {
            outcome: outcome.and_then(Result::ok),
            stderr: self.stderr_tail(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BadLines> {
        self.shared
            .bad_lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ServerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerProcess")
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

/// Owns the tree: its drop begins the termination, and needs no runtime for it.
#[derive(Debug)]
pub(super) struct OwnedTree(pub(super) ServerProcess);

impl Drop for OwnedTree {
    fn drop(&mut self) {
        // It has begun when the call returns. On a tree that is gone it does nothing.
        drop(self.0.handle().terminate());
    }
}
