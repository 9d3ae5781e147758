//! Typing on a session's terminal: what a user types, and what comes through a pipe.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use dsh_subprocess::{Error, ErrorKind, Terminal};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use super::keyboard::{Keyboard, Release};
use super::user;
use crate::signals::Interrupt;
use crate::stop::Stop;
use crate::stream::read_ahead;
use crate::supervision::Supervision;

/// The typing on one terminal.
#[derive(Debug)]
pub(super) struct Typing {
    task: JoinHandle<()>,
    keyboard: Option<Release>,
}

impl Typing {
    /// Ends it. Nothing more is read from a keyboard after that.
    pub(super) fn end(&mut self) {
        self.keyboard = None;
        self.task.abort();
    }
}

/// Types what the user does, until the terminal of either is gone.
pub(super) fn keys(terminal: Arc<Terminal>, supervision: &Supervision<'_>) -> Typing {
    let (keyboard, release) = match Keyboard::new() {
        Ok((keyboard, release)) => (Ok(keyboard), Some(release)),
        Err(error) => (Err(error), None),
    };
    let task = async move {
        let queue = keyboard.and_then(read_ahead).map_err(user::lost)?;
        type_keys(queue, &terminal).await
    };
    Typing {
        task: supervision.watch(task, |stop| stop),
        keyboard: release,
    }
}

/// Types what a source has, to its end, which is not typed.
pub(super) fn input(
    terminal: Arc<Terminal>,
    source: impl Read + Send + 'static,
    supervision: &Supervision<'_>,
) -> Typing {
    let task = async move {
        let queue = read_ahead(source).map_err(unreadable)?;
        type_input(queue, &terminal).await
    };
    Typing {
        task: supervision.watch(task, |stop| stop),
        keyboard: None,
    }
}

/// What the command's terminal does not take is lost, with a sound, as on any terminal: whoever typed it is there.
async fn type_keys(mut queue: Receiver<io::Result<Bytes>>, terminal: &Terminal) -> Result<(), Stop> {
    while let Some(keys) = queue.recv().await {
        let typed = terminal.write(keys.map_err(user::lost)?).await;
        match typed.map_err(|error| error.kind()) {
            Ok(()) => {}
            Err(ErrorKind::Exited) => return Ok(()),
            Err(_) => user::ring(),
        }
    }
    // A terminal has no end of input while it is there: in raw mode, ^D is a key (termios(3)).
    Err(Stop::Interrupted(Interrupt::HANG_UP))
}

/// What the command does not read yet waits, as in a pipe. What the terminal would lose is not typed, and ends the session:
/// nobody is there to type it again.
async fn type_input(mut queue: Receiver<io::Result<Bytes>>, terminal: &Terminal) -> Result<(), Stop> {
    while let Some(chunk) = queue.recv().await {
        let mut rest = chunk.map_err(unreadable)?;
        while let Err(error) = terminal.write(rest.clone()).await {
            match error.kind() {
                ErrorKind::InputNotRead => rest = rest.split_off(taken(&error, rest.len())),
                ErrorKind::Exited => return Ok(()),
                _ => return Err(Stop::InputRefused("stdin".to_owned(), error)),
            }
        }
    }
    Ok(())
}

/// Returns how much of so many bytes was typed before a failure.
fn taken(error: &Error, length: usize) -> usize {
    let written = error.written().unwrap_or_default();
    usize::try_from(written).map_or(length, |written| written.min(length))
}

fn unreadable(error: io::Error) -> Stop {
    Stop::InputFailed("stdin".to_owned(), error)
}

#[cfg(test)]
mod tests;
