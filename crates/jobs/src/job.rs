//! What a caller says of a job, and what is said of it in return.

use std::time::Instant;

use dsh_subprocess::{SpillState, StreamName};

use crate::{JobError, JobId, OwnerId};

/// What is to be known of a job before it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewJob {
    /// What kind of work it is, as in `bash`: the first part of its id. Not blank.
    pub kind: String,
    /// What it does, for a person to read: a command line, a title. Not blank.
    pub label: String,
    /// The most bytes of each stream that one read takes; what is left stays for the next. Not 0. Less than 4, the size
    /// of the largest character, counts as 4. `None` takes all there is.
    pub max_read_bytes: Option<usize>,
}

impl NewJob {
    /// Describes a job whose reads are not bounded.
    pub fn new(kind: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            label: label.into(),
            max_read_bytes: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), JobError> {
        if self.kind.trim().is_empty() {
            return Err(JobError::EmptyKind);
        }
        if self.label.trim().is_empty() {
            return Err(JobError::EmptyLabel);
        }
        if self.max_read_bytes == Some(0) {
            return Err(JobError::BadLimit {
                name: "max_read_bytes",
            });
        }
        Ok(())
    }
}

/// Where a job stands. It only moves forward, and the last three are final.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JobStatus {
    /// It goes on.
    Running,
    /// It was cancelled, and is not over yet.
    Stopping,
    /// It came to its own end.
    Completed,
    /// It was ended.
    Killed,
    /// Its work failed, or could not be ended when its owner went.
    Failed,
}

impl JobStatus {
    /// Tells whether the job is over.
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Running | Self::Stopping)
    }

    /// Returns the status as a word: `running`, `stopping`, `completed`, `killed` or `failed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Completed => "completed",
            Self::Killed => "killed",
            Self::Failed => "failed",
        }
    }
}

impl std::fmt::Display for JobStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known of a job at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct JobInfo {
    /// Its name.
    pub id: JobId,
    /// What kind of work it is.
    pub kind: String,
    /// What it does.
    pub label: String,
    /// Who started it. `None` where it belongs to nobody and is open to all.
    pub owner: Option<OwnerId>,
    /// Where it stands.
    pub status: JobStatus,
    /// How it ended, in a few words; of a failure, its reason.
    pub detail: Option<String>,
    /// When it was started.
    pub started: Instant,
    /// When it settled.
    pub ended: Option<Instant>,
    /// Whether its owner has been told of its end, or brought it about and needs no telling. A live job can be reported
    /// already: one that was killed is.
    pub reported: bool,
}

/// What one read of a job gave.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct JobRead {
    /// The job as it stood before the streams were read: where it is settled here, nothing was added to them any more.
    /// The exception is one that failed and could not be ended, whose streams are not [sealed](StreamDelta::sealed).
    pub info: JobInfo,
    /// A part of each stream, in the order in which the work named them.
    pub streams: Vec<StreamDelta>,
    /// The final output, the same in each read of a settled job that has one.
    pub output: Option<String>,
}

/// A part of a stream, as text. The rules of decoding are those of [`TextCursor`](dsh_subprocess::TextCursor): no
/// character is cut in two.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StreamDelta {
    /// The stream.
    pub stream: StreamName,
    /// The text.
    pub text: String,
    /// Bytes before it that are lost to this read: they left memory, or are the rest of a character whose beginning
    /// did.
    pub gap: u64,
    /// The offset of its first byte in the stream.
    pub offset: u64,
    /// Where the next read goes on, in bytes of the stream.
    pub next_offset: u64,
    /// How many bytes the stream had when this was read; more than `next_offset` where the read was bounded, or ended
    /// in a character that is not complete yet.
    pub total: u64,
    /// How many times bytes that are no UTF-8 were replaced by U+FFFD.
    pub replaced: usize,
    /// Whether the stream had ended before this was read. Where `next_offset` is also `total`, nothing is left.
    pub sealed: bool,
    /// The stream's spill.
    pub spill: SpillState,
}

/// What a kill came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kill {
    /// The work was cancelled, and settles when it is over.
    Stopping,
    /// The job was over before.
    AlreadyFinished,
}
