//! What can go wrong with a server.

use std::fmt;
use std::io;
use std::sync::Arc;

use dsh_subprocess::{Error, ErrorKind, Outcome};

use super::excerpt::escaped;

/// A failure of a server, or of the session with it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The limit of a line is 0 bytes.
    #[error("the longest line is 0 bytes: it must be at least 1")]
    NoLineFits,
    /// The server was not started; the text is the seam's.
    #[error(transparent)]
    Start(Error),
    /// The world gave no pipe or no reader for this stream of the server.
    #[error("the world gave the server no {0}")]
    NoStream(&'static str),
    /// The server ended, or closed its side of the session, before anybody asked it to.
    #[error(transparent)]
    Ended(Ended),
    /// The session was closed from this side.
    #[error("the session with the server is closed")]
    Closed,
    /// A message could not be written as JSON.
    #[error("the message for the server cannot be written as JSON")]
    Encode(#[source] Arc<serde_json::Error>),
    /// A message could not be sent to the server, which still runs.
    #[error("the server takes no more input")]
    Send(#[source] Arc<io::Error>),
    /// The server's tree could not be ended, or nobody can tell; the text is the seam's, and names survivors.
    #[error(transparent)]
    End(Error),
}

impl ServerError {
    /// Returns the seam's kind, where the seam reported the failure.
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Start(error) | Self::End(error) => Some(error.kind()),
            _ => None,
        }
    }
}

/// A server that ended unasked: how, and the last that it said.
///
/// Its text is one line, and quotes the end of the server's error output (at most 2 KiB of it) without escape sequences.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// How it ended. `None` where it closed its output and had not exited a second later, and where nobody can tell.
    pub outcome: Option<Outcome>,
    /// The end of its error output, at most 2 KiB of it, in lines, without escape sequences and control characters.
    pub stderr: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Some(outcome) => write!(f, "the server {outcome}")?,
            None => f.write_str("the server closed its output")?,
        }
        if self.stderr.is_empty() {
            f.write_str(", and its error output is empty")
        } else {
            write!(f, ", and its error output ended with: {}", escaped(&self.stderr))
        }
    }
}

impl std::error::Error for Ended {}
