//! What cuts a run short.

use std::io;

use dsh_subprocess::{Error, StreamName};

use crate::exit_status;
use crate::failure::Failure;
use crate::signals::Interrupt;

/// Why a command was not left to its own end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Its time was up.
    TimedOut,
    /// Somebody asked this process to end.
    Interrupted(Interrupt),
    /// Whoever reads our output went away.
    OutputClosed(StreamName),
    /// Our output takes no more bytes.
    OutputFailed(StreamName, io::Error),
    /// What the command was to read cannot be read to its end.
    InputFailed(String, io::Error),
    /// What was to be typed would be lost.
    InputRefused(String, Error),
}

impl Stop {
    /// Tells apart why a write to our output failed.
    pub(crate) fn of_output(stream: StreamName, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed(stream),
            _ => Self::OutputFailed(stream, error),
        }
    }

    /// Returns what to exit with.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::TimedOut => exit_status::TIMED_OUT,
            Self::Interrupted(interrupt) => interrupt.status(),
            Self::OutputClosed(_) => exit_status::OUTPUT_CLOSED,
            Self::OutputFailed(..) | Self::InputFailed(..) | Self::InputRefused(..) => {
                exit_status::OWN_FAILURE
            }
        }
    }

    /// Returns the failure that it is. A deadline, an interrupt and a reader that has read enough are none.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self {
            Self::TimedOut | Self::Interrupted(_) | Self::OutputClosed(_) => None,
            Self::OutputFailed(stream, error) => Some(Failure::new("output", format!("{stream}: {error}"))),
            Self::InputFailed(name, error) => Some(Failure::new("input", format!("{name}: {error}"))),
            Self::InputRefused(..) => Some(Failure::new("input", self.spoken())),
        }
    }

    /// Says it, as the beginning of a sentence on how the command ended.
    pub(crate) fn spoken(&self) -> String {
        match self {
            Self::TimedOut => "timed out".to_owned(),
            Self::Interrupted(interrupt) => format!("interrupted by {}", interrupt.name()),
            Self::OutputClosed(stream) => format!("{stream} was closed"),
            Self::OutputFailed(stream, error) => format!("{stream}: {error}"),
            Self::InputFailed(name, error) => format!("{name}: {error}"),
            Self::InputRefused(name, error) => format!("{name}: {error}"),
        }
    }
}
