//! Why a command has no result.

use dsh_subprocess::{Error, ErrorKind};

use crate::result::Collected;

/// A failure of the machinery. A non-zero exit, a signal, a timeout and an abort are results, never errors.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// The request cannot be carried out as it is; the text names the part that is wrong.
    #[error("{0}")]
    Request(String),
    /// The managed `DSH_*` facts of the call could not be collected; the text names the contributor.
    #[error("{0}")]
    Facts(String),
    /// The runtime failed, before the command ran or while it did.
    #[error("{error}")]
    Runtime {
        /// Its error: which kind, and whether the command possibly ran.
        #[source]
        error: Error,
        /// What the command had printed by then.
        partial: Option<Box<Partial>>,
    },
}

/// Output of a command that has no result.
#[derive(Clone, Debug)]
pub struct Partial {
    /// Its standard output.
    pub stdout: Collected,
    /// Its error output; `None` where that is in `stdout`.
    pub stderr: Option<Collected>,
}

impl ShellError {
    /// Returns the runtime's kind of error, where it was the runtime that failed.
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Runtime { error, .. } => Some(error.kind()),
            Self::Request(_) | Self::Facts(_) => None,
        }
    }
}

impl From<Error> for ShellError {
    fn from(error: Error) -> Self {
        Self::Runtime { error, partial: None }
    }
}
