//! What is known of a terminal, and what can be done with it while nobody else does anything.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::Waker;

use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::pty::{self, Read};

use super::input::Queue;
use super::line::LineGauge;
use super::master::Afterwards;

/// Bytes of output that are kept at most while nobody reads them.
pub(super) const KEPT: usize = 1024 * 1024;
/// Bytes read at a time: a terminal hands out less than that at once.
const PIECE: usize = 4096;

/// What the lock of a terminal protects.
#[derive(Debug)]
pub(super) struct State {
    /// `None` once all of its output was taken.
    pub(super) fd: Option<OwnedFd>,
    /// Output that was read and that nobody has asked for yet.
    pub(super) kept: VecDeque<u8>,
    pub(super) reader: Reader,
    /// What the thread is to tell of.
    pub(super) interest: Interest,
    /// Writes, in their order.
    pub(super) queue: Queue,
    pub(super) gauge: LineGauge,
    /// The program has exited: nobody can open the terminal again as its controlling one.
    pub(super) program_ended: bool,
    /// The session is being terminated.
    pub(super) ending: bool,
    /// Nobody had the terminal open when it was last read.
    pub(super) closed: bool,
    /// Why reading failed, for whoever reads next.
    pub(super) failure: Option<io::Error>,
}

/// Whoever reads the output.
#[derive(Debug)]
pub(super) enum Reader {
    There(Option<Waker>),
    /// Nobody will: what is printed is thrown away.
    Gone,
}

/// Why no more was taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// There is no more for now.
    All,
    /// As much as was asked for.
    Enough,
    /// Nobody has the terminal open.
    Closed,
    /// It cannot be read.
    Failed,
}

impl State {
    /// That of a terminal that nobody has used yet.
    pub(super) fn new(master: OwnedFd) -> Self {
        Self {
            fd: Some(master),
            kept: VecDeque::new(),
            reader: Reader::There(None),
            interest: Interest::Nothing,
            queue: Queue::default(),
            gauge: LineGauge::default(),
            program_ended: false,
            ending: false,
            closed: false,
            failure: None,
        }
    }

    /// Returns the descriptor, unless it is too late to type or to ask.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exited`].
    pub(super) fn usable(&self, operation: &'static str) -> Result<BorrowedFd<'_>, Error> {
        if let Some(fd) = &self.fd
            && !self.program_ended
            && !self.ending
        {
            return Ok(fd.as_fd());
        }
        let why = if self.program_ended {
            "the terminal's program has exited"
        } else {
            "the terminal's session is being terminated"
        };
        Err(Error::new(ErrorKind::Exited, operation, why).with_started(MayHaveStarted::Yes))
    }

    /// What the thread is to tell of.
    pub(super) fn interest(&self) -> Interest {
        let read = matches!(self.reader, Reader::There(Some(_)));
        let typed = !self.queue.is_empty();
        // One that nobody has open is always ready, so only changes are news.
        let closed = self.closed || (typed && self.is_full() && self.is_closed());
        if self.is_watched_for_good() || closed {
            return Interest::BecomesEither;
        }
        match (read || (typed && !self.is_full()), typed) {
            (true, true) => Interest::EitherOnce,
            (true, false) => Interest::ReadableOnce,
            // Output that is not to be read would be ready for ever.
            (false, true) => Interest::WritableOnce,
            (false, false) => Interest::Nothing,
        }
    }

    /// Whether whatever happens to the terminal is to be known, whether or not anybody waits.
    pub(super) fn is_watched_for_good(&self) -> bool {
        self.program_ended || self.ending || matches!(self.reader, Reader::Gone)
    }

    /// Whether nobody has the terminal open.
    pub(super) fn is_closed(&self) -> bool {
        self.fd.as_ref().is_some_and(pty::is_closed)
    }

    /// Takes output into memory, until that holds `bound` bytes. `true` where there was some.
    pub(super) fn read_ahead(&mut self) -> bool {
        let before = self.kept.len();
        match self.reader {
            Reader::There(_) => {
                self.take_in(KEPT);
                self.kept.len() > before
            }
            // The thread does it.
            Reader::Gone => false,
        }
    }

    /// Whether so much was printed and not read that no more of it is kept.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= KEPT
    }

    pub(super) fn take_in(&mut self, bound: usize) -> Taken {
        let Some(fd) = &self.fd else {
            return Taken::Closed;
        };
        let mut piece = [0; PIECE];
        while self.kept.len() < bound {
            let room = (bound - self.kept.len()).min(PIECE);
            match pty::read(fd, &mut piece[..room]) {
                Ok(Read::Bytes(length)) => self.kept.extend(&piece[..length]),
                Ok(Read::Empty) => {
                    self.closed = false;
                    return Taken::All;
                }
                Ok(Read::Closed) => {
                    self.closed = true;
                    return Taken::Closed;
                }
                Err(error) => {
                    self.failure = Some(error);
                    return Taken::Failed;
                }
            }
        }
        Taken::Enough
    }

    pub(super) fn throw_away(&mut self, bound: usize) -> Taken {
        let Some(fd) = &self.fd else {
            return Taken::Closed;
        };
        let mut piece = [0; PIECE];
        let mut read = 0;
        while read < bound {
            match pty::read(fd, &mut piece) {
                Ok(Read::Bytes(length)) => read += length,
                Ok(Read::Empty) => return Taken::All,
                Ok(Read::Closed) => return Taken::Closed,
                Err(error) => {
                    self.failure = Some(error);
                    return Taken::Failed;
                }
            }
        }
        Taken::Enough
    }

    /// Wakes whoever waits: for output, and for its turn to type.
    pub(super) fn wake(&mut self, after: &mut Afterwards) {
        if let Reader::There(waker) = &mut self.reader {
            after.wakers.extend(waker.take());
        }
        if self.program_ended || self.ending {
            self.queue.wake_all(&mut after.wakers);
        } else {
            self.queue.wake_first(&mut after.wakers);
        }
    }

    /// As [`wake`](Self::wake), of the reader alone.
    pub(super) fn wake_reader(&mut self, after: &mut Afterwards) {
        if let Reader::There(waker) = &mut self.reader {
            after.wakers.extend(waker.take());
        }
    }
}
