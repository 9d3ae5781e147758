//! Why a registry refuses.

use std::fmt;

use dsh_subprocess::StreamName;
use thiserror::Error;

use crate::work::ForeignError;
use crate::{JobId, OwnerId};

/// Why something could not be done with a job. How a job ended is never an error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobError {
    /// There is no such job, or it is of another owner: the two look the same.
    #[error("there is no job `{0}`")]
    UnknownJob(JobId),
    /// The job has no such stream.
    #[error("the job `{id}` has no stream `{stream}`")]
    UnknownStream {
        /// The job.
        id: JobId,
        /// What was asked for.
        stream: StreamName,
    },
    /// An unowned job was to start while no session was open that could see it.
    #[error("no session is open that could see the job")]
    NoController,
    /// An owner was named with an empty text.
    #[error("the id of an owner is empty")]
    EmptyOwner,
    /// The owner has a session that is still open.
    #[error("the owner `{0}` has an open session already")]
    OwnerTaken(OwnerId),
    /// The owner's session has ended.
    #[error("the session of the owner `{0}` has ended")]
    OwnerEnded(OwnerId),
    /// The owner, or the unowned jobs together, have as many live jobs as are allowed.
    #[error("{limit} jobs are running already, and no more are allowed at once")]
    TooManyJobs {
        /// The limit that was reached.
        limit: usize,
    },
    /// The kind of a new job is empty or blank.
    #[error("the kind of a job is empty")]
    EmptyKind,
    /// The label of a new job is empty or blank.
    #[error("the label of a job is empty")]
    EmptyLabel,
    /// A limit is 0 that must not be.
    #[error("`{name}` is 0, and must be 1 or more")]
    BadLimit {
        /// The name of the limit.
        name: &'static str,
    },
    /// The timeout of a wait is 0.
    #[error("the timeout of a wait is 0, and must be longer")]
    BadTimeout,
    /// A job was to start outside a tokio runtime, where nobody could follow it.
    #[error("a job starts only inside a tokio runtime")]
    NoRuntime,
    /// The work could not be started.
    #[error("could not start `{label}`")]
    StartFailed {
        /// The label of the job that there would have been.
        label: String,
        /// Why.
        source: ForeignError,
    },
    /// The caller's token was cancelled while the job was live.
    #[error("the wait for the job `{0}` was cancelled")]
    Cancelled(JobId),
    /// The work refused to be ended. Nothing about the job has changed.
    #[error("could not cancel the job `{id}`")]
    CancelFailed {
        /// The job.
        id: JobId,
        /// Why.
        source: ForeignError,
    },
    /// The registry was disposed of.
    #[error("the registry of jobs was disposed of")]
    Disposed,
    /// Work refused to be ended when its owner or the registry went, and may still be running without either.
    #[error("some work could not be cancelled and may be orphaned: {}", Listed(.0))]
    Orphaned(Vec<Orphan>),
}

/// Work that refused to be ended at its owner's end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orphan {
    /// The job it was.
    pub id: JobId,
    /// What it said.
    pub reason: String,
}

impl fmt::Display for Orphan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.reason)
    }
}

struct Listed<'a>(&'a [Orphan]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, orphan) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{orphan}")?;
        }
        Ok(())
    }
}
