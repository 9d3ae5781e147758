//! The keys of the user's terminal, for as long as they are the session's.

use std::io::{self, PipeReader, PipeWriter, Read};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio;

use crate::own_stream;

/// Reads the terminal that is our standard input, until its [`Release`] is dropped.
///
/// It reads when there is something to read and at no other time. A read that waits would go on after the session's end,
/// and take from the next reader what is typed for that; and after a stop it would be a use of the terminal from the
/// background, which stops this process again (`SIGTTIN`), even on its way to its end.
pub(super) struct Keyboard {
    released: PipeReader,
}

/// Ends the reading when it is dropped.
#[derive(Debug)]
pub(super) struct Release {
    _end: PipeWriter,
}

impl Keyboard {
    /// # Errors
    ///
    /// There is no descriptor left.
    pub(super) fn new() -> io::Result<(Self, Release)> {
        let (released, end) = io::pipe()?;
        Ok((Self { released }, Release { _end: end }))
    }
}

impl Read for Keyboard {
    /// Waits for keys. `Ok(0)` where there are none any more: the terminal is gone, or it was released.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let keys = stdio::stdin();
        loop {
            let mut polled = [
                PollFd::new(&self.released, PollFlags::IN),
                PollFd::new(&keys, PollFlags::IN),
            ];
            match poll(&mut polled, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [released, keys] = polled.map(|polled| !polled.revents().is_empty());
            if released {
                return Ok(0);
            }
            if keys {
                match own_stream::stdin().read(buffer) {
                    // Somebody else took them.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
            }
        }
    }
}
