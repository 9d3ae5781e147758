//! One command while it runs, and after.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dsh_subprocess::{Error, Member, Outcome, OutputReader, Process};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::LeftBehindPolicy;
use crate::error::ShellError;
use crate::reading::{BackgroundRead, Reading};
use crate::result::{Fate, LeftBehind, RunResult};
use crate::supervision::Supervision;

/// The handle of one command. Clones are the same command.
///
/// A task of the runtime that made it sees to its deadline, its token and what it leaves behind, whoever waits for it.
/// Dropping the handle ends nothing.
#[derive(Clone)]
pub struct Execution(Arc<Command>);

/// What the handles and the supervision of one command share.
pub(crate) struct Command {
    pub(crate) process: Process,
    pub(crate) stdout: OutputReader,
    /// `None` where it is merged into `stdout`.
    pub(crate) stderr: Option<OutputReader>,
    /// Ends the tree. Cancelled by a handle.
    pub(crate) kill: CancellationToken,
    killed: AtomicBool,
    result: watch::Receiver<Option<Told>>,
    ended: watch::Receiver<Option<Ended>>,
    reading: Mutex<Reading>,
}

/// A result as the command itself keeps it. With a handle in it the command would hold itself, and never go.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) result: Result<RunResult, ShellError>,
    /// Who goes on, where what was left behind is kept.
    pub(crate) continues: Option<Vec<Member>>,
}

/// What the supervision goes by.
pub(crate) struct Plan {
    /// When the call began.
    pub(crate) begin: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) timeout: Duration,
    pub(crate) quiet: Duration,
    pub(crate) drain: Duration,
    pub(crate) left_behind: LeftBehindPolicy,
    pub(crate) cancel: CancellationToken,
    /// Whether the runtime's mechanism lets no process of the tree get away from it.
    pub(crate) sees_all: bool,
}

/// How far a command has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// It, or what it left behind and was kept, still runs.
    Running,
    /// It ended by itself, with whatever exit code.
    Completed,
    /// A signal ended it, its caller did (from the [`kill`](Execution::kill) on, while its tree ends), or it never started.
    Killed,
}

/// How a command ended for good.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// [`Completed`](Status::Completed) or [`Killed`](Status::Killed).
    pub status: Status,
    /// How the shell ended, or why that is not known: it could not be started, or its owner was lost.
    pub outcome: Result<Outcome, Error>,
    /// Processes of it that could not be ended. Empty where the runtime's mechanism lets none get away.
    pub survivors: Vec<Member>,
}

impl Execution {
    /// Takes a process that was just spawned into supervision.
    pub(crate) fn begin(process: Process, kill: CancellationToken, plan: Plan) -> Self {
        let (result_sender, result) = watch::channel(None);
        let (ended_sender, ended) = watch::channel(None);
        let stdout = process
            .collected_stdout()
            .cloned()
            .expect("its output is collected: the spec said so");
        let stderr = process.collected_stderr().cloned();
        let command = Arc::new(Command {
            process,
            stdout,
            stderr,
            kill,
            killed: AtomicBool::new(false),
            result,
            ended,
            reading: Mutex::default(),
        });
        let execution = Self(command);
        let supervision = Supervision::new(execution.clone(), plan, result_sender, ended_sender);
        tokio::spawn(supervision.run());
        execution
    }

    pub(crate) fn command(&self) -> &Command {
        &self.0
    }

    /// Returns the shell's id, where its world has ids and it is known by now.
    pub fn pid(&self) -> Option<u32> {
        self.0.process.pid()
    }

    /// Returns the process tree, for what the seam tells of it: members, usage, ownership.
    pub fn process(&self) -> &Process {
        &self.0.process
    }

    /// Returns the reader of standard output, which takes nothing from [`read_output`](Self::read_output).
    pub fn stdout(&self) -> &OutputReader {
        &self.0.stdout
    }

    /// Returns the reader of error output; `None` where that is in [`stdout`](Self::stdout).
    pub fn stderr(&self) -> Option<&OutputReader> {
        self.0.stderr.as_ref()
    }

    /// Tells how far it has come.
    pub fn status(&self) -> Status {
        match &*self.0.ended.borrow() {
            // A kill that came with the end, and was too late, changes nothing.
            Some(ended) => ended.status,
            None if self.was_killed() => Status::Killed,
            None => Status::Running,
        }
    }

    /// Resolves when the command is over, with what became of it; see [`Shell::run`](crate::Shell::run). What is kept of it
    /// may run on.
    ///
    /// # Errors
    ///
    /// [`ShellError::Runtime`], with what was printed by then.
    ///
    /// # Cancellation
    ///
    /// Dropping the future stops the waiting only.
    pub async fn result(&self) -> Result<RunResult, ShellError> {
        let Some(Told {
            mut result,
            continues,
        }) = settled(self.0.result.clone()).await
        else {
            return Err(ShellError::from(unsupervised()));
        };
        if let (Ok(result), Some(members)) = (&mut result, continues) {
            result.left_behind = Some(LeftBehind {
                members,
                fate: Fate::Continues(self.clone()),
                refused: None,
            });
        }
        result
    }

    /// Resolves when nothing of it runs any more: the shell has ended, and what it left behind.
    ///
    /// # Cancellation
    ///
    /// Dropping the future stops the waiting only.
    pub async fn done(&self) -> Ended {
        settled(self.0.ended.clone()).await.unwrap_or_else(|| Ended {
            status: Status::Killed,
            outcome: Err(unsupervised()),
            survivors: Vec::new(),
        })
    }

    /// Reads what is new since the last call, before and after the end; one reader for all clones.
    ///
    /// A command that could not be started gives the reason, once.
    pub fn read_output(&self) -> BackgroundRead {
        let failure = match &*self.0.ended.borrow() {
            Some(Ended {
                outcome: Err(error), ..
            }) => Some(error.clone()),
            _ => None,
        };
        let mut reading = self.0.reading.lock().unwrap_or_else(PoisonError::into_inner);
        reading.read(&self.0.stdout, self.0.stderr.as_ref(), failure.as_ref())
    }

    /// Ends the whole tree: `SIGTERM`, the grace, `SIGKILL`. It waits for nothing.
    ///
    /// Returns `true` once, while it runs; `false` after that and after its end.
    pub fn kill(&self) -> bool {
        if self.0.ended.borrow().is_some() || self.0.killed.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.0.kill.cancel();
        true
    }

    /// Turns the handle into a guard that [kills](Self::kill) the command when it is dropped, for whoever alone wants its result.
    pub fn scoped(self) -> ScopedExecution {
        ScopedExecution(Some(self))
    }

    /// Tells whether a handle asked for its end.
    pub(crate) fn was_killed(&self) -> bool {
        self.0.killed.load(Ordering::Acquire)
    }
}

/// Ends its command when dropped. Made by [`Execution::scoped`].
#[derive(Debug)]
pub struct ScopedExecution(Option<Execution>);

impl ScopedExecution {
    /// Lets the command, or what is kept of it, go on.
    pub fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for ScopedExecution {
    fn drop(&mut self) {
        if let Some(execution) = &self.0 {
            execution.kill();
        }
    }
}

/// Waits for a value that is sent once. `None` where the sender is gone without one.
async fn settled<T: Clone>(mut receiver: watch::Receiver<Option<T>>) -> Option<T> {
    receiver
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|value| value.clone())
}

/// The runtime that the command was started on is gone, and its task with it.
fn unsupervised() -> Error {
    let message = "the tokio runtime that supervised the command was shut down";
    Error::new(dsh_subprocess::ErrorKind::OwnershipLost, "observe", message)
        .with_started(dsh_subprocess::MayHaveStarted::Unknown)
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("pid", &self.pid())
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
