//! What became of a command.

use std::time::Duration;

use dsh_jobs::JobId;
use dsh_subprocess::{Member, Outcome, OutputReader, Snapshot, SpillState};

use crate::Execution;

/// A command that was run: how it ended, why, and what it printed.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// How the shell ended. [`Outcome::Unknown`] also for one that outlived `SIGKILL`.
    pub outcome: Outcome,
    /// Why it ended.
    pub cause: Cause,
    /// How long it might have taken.
    pub timeout: Duration,
    /// How long the call took.
    pub duration: Duration,
    /// The shell's id, where its world has ids.
    pub pid: Option<u32>,
    /// Its standard output.
    pub stdout: Collected,
    /// Its error output; `None` where that is in `stdout`.
    pub stderr: Option<Collected>,
    /// What outlived it.
    pub left_behind: Option<LeftBehind>,
}

/// Why a command ended. The first cause counts, and it is decided while the shell still runs: one that traps `SIGTERM` and
/// exits with 0 was timed out all the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// By itself: it exited, or a signal that was not ours ended it.
    Ended,
    /// Its time was up.
    TimedOut,
    /// Its caller ended it, by the token or by [`Execution::kill`].
    Aborted,
}

/// What a command printed on one stream.
#[derive(Clone, Debug)]
pub struct Collected {
    /// How it began and how it ended, and how much there was in all.
    pub snapshot: Snapshot,
    /// The file with the whole of it, where it did not fit.
    pub spill: SpillState,
    /// The reader: it keeps the file, where its life is that of the handle.
    pub reader: OutputReader,
}

impl Collected {
    /// Takes what there is now.
    pub(crate) fn of(reader: &OutputReader) -> Self {
        Self {
            snapshot: reader.snapshot(),
            spill: reader.spill(),
            reader: reader.clone(),
        }
    }

    /// Tells whether something is missing between the beginning and the end.
    pub fn is_truncated(&self) -> bool {
        self.snapshot.dropped() > 0
    }
}

/// Processes that outlived a command.
#[derive(Clone, Debug)]
pub struct LeftBehind {
    /// Who was alive when the command was over. Empty where they could not be listed, or held its output from outside the tree.
    pub members: Vec<Member>,
    /// What became of them.
    pub fate: Fate,
    /// Why they did not go on as a job, where they should have: the registry's reason.
    pub refused: Option<String>,
}

/// What became of processes that outlived a command.
#[derive(Clone, Debug)]
pub enum Fate {
    /// They were ended.
    Ended,
    /// These could not be ended: they outlived `SIGKILL`, or had left the range that the runtime can see.
    Survives(Vec<Member>),
    /// They go on: this is the handle, which reads what they print and ends them.
    Continues(Execution),
    /// They go on as a job.
    Job(JobId),
}
