//! The host's end of a terminal.
//!
//! Whoever reads the output reads from the descriptor itself, and whoever types writes to it; the runtime's thread only tells
//! when it is worth trying again. What is printed is taken into memory in three cases alone: while a write does not get on,
//! while the session is being terminated, and at the terminal's end, so that the descriptor need not wait for a reader.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};
use std::task::Waker;
use std::time::Duration;

use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::foreground::TerminalId;
use dsh_subprocess_sys::pty::{self, Pty, Read};

use super::calls::Calls;
use super::input::Queue;
use super::line::LineGauge;
use crate::reactor::{Reactor, Source, lock};
use crate::tree::Tree;

/// Bytes of output that are kept at most while nobody reads them.
pub(super) const KEPT: usize = 1024 * 1024;
/// Bytes read at a time. A terminal holds some 12 KiB, and hands out less than 4 KiB at a time.
const PIECE: usize = 4096;

/// One terminal, by the end that the host has.
#[derive(Debug)]
pub(crate) struct Master {
    pub(super) reactor: Arc<Reactor>,
    token: u64,
    tree: Weak<Tree>,
    /// Which device it is.
    pub(crate) id: TerminalId,
    /// How long a write may get no further.
    pub(super) bound: Duration,
    pub(super) calls: Arc<Calls>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    /// `None` once all of its output was taken.
    fd: Option<OwnedFd>,
    /// Output that was read and that nobody has asked for yet.
    kept: VecDeque<u8>,
    reader: Reader,
    /// What the thread is to tell of.
    interest: Interest,
    /// Writes, in their order.
    pub(super) queue: Queue,
    pub(super) gauge: LineGauge,
    /// The program has exited: nobody can open the terminal again as its controlling one.
    program_ended: bool,
    /// The session is being terminated.
    ending: bool,
    /// Whether the tree was told that the output has ended.
    told: bool,
    /// Why reading failed, for whoever reads next.
    failure: Option<io::Error>,
}

/// Whoever reads the output.
#[derive(Debug)]
enum Reader {
    There(Option<Waker>),
    /// Nobody will: what is printed is thrown away.
    Gone,
}

/// Why no more was taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    /// There is no more for now.
    All,
    /// As much as was asked for.
    Enough,
    /// Nobody has the terminal open.
    Closed,
    /// It cannot be read.
    Failed,
}

/// What is to be done without the lock.
#[derive(Default)]
pub(super) struct Afterwards {
    wakers: Vec<Waker>,
    /// The output has ended.
    ended: bool,
    failure: Option<Error>,
}

impl Master {
    /// Takes the host's end of a new terminal, and starts to watch it. The programs' end is for the child.
    pub(crate) fn new(tree: &Arc<Tree>, pty: Pty, bound: Duration) -> io::Result<(Arc<Self>, OwnedFd)> {
        let reactor = Arc::clone(&tree.machine.reactor);
        let Pty { master, slave } = pty;
        let made = Arc::new(Self {
            token: reactor.token(),
            reactor,
            tree: Arc::downgrade(tree),
            id: TerminalId::of(&slave)?,
            bound,
            calls: Arc::default(),
            state: Mutex::new(State {
                fd: Some(master),
                kept: VecDeque::new(),
                reader: Reader::There(None),
                interest: Interest::BecomesReadable,
                queue: Queue::default(),
                gauge: LineGauge::default(),
                program_ended: false,
                ending: false,
                told: false,
                failure: None,
            }),
        });
        let state = lock(&made.state);
        if let Some(fd) = &state.fd {
            let source = Source::Terminal(Arc::clone(&made));
            made.reactor
                .watch(fd, made.token, Interest::BecomesReadable, source)?;
        }
        drop(state);
        Ok((made, slave))
    }

    /// Something has changed: there is output, or room for input, or nobody has the terminal open any more.
    pub(crate) fn ready(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        let taken = match state.reader {
            Reader::Gone => state.throw_away(KEPT),
            Reader::There(_) if state.ending => state.take_in(KEPT),
            // Read by its reader; or at the end, by whoever closes it.
            Reader::There(_) if state.program_ended && state.is_closed() => Taken::Closed,
            Reader::There(_) => Taken::All,
        };
        match taken {
            Taken::Closed if state.program_ended => self.close(&mut state, &mut after),
            Taken::Failed => self.close(&mut state, &mut after),
            // The others' turn first.
            Taken::Enough if matches!(state.reader, Reader::Gone) => {
                self.reactor.request(Source::Terminal(Arc::clone(self)));
            }
            Taken::All | Taken::Enough | Taken::Closed => {}
        }
        if state.is_read_unasked() {
            self.tell_of(&mut state, Interest::HangsUp);
        } else if state.interest == Interest::HangsUp {
            self.tell_of(&mut state, Interest::BecomesReadable);
        }
        state.wake(&mut after);
        drop(state);
        self.finish(after);
    }

    /// The program has exited.
    pub(crate) fn program_ended(&self) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        state.program_ended = true;
        if state.is_closed() {
            self.close(&mut state, &mut after);
        }
        state.wake(&mut after);
        drop(state);
        self.finish(after);
    }

    /// The session is being terminated: nothing is typed any more, and whoever cleans up may print although nobody reads.
    pub(crate) fn begin_end(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        if !state.ending {
            state.ending = true;
            state.wake(&mut after);
            self.reactor.request(Source::Terminal(Arc::clone(self)));
        }
        drop(state);
        self.finish(after);
    }

    /// Ends the output with what has arrived.
    pub(crate) fn cut(&self) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        state.program_ended = true;
        self.close(&mut state, &mut after);
        state.wake(&mut after);
        drop(state);
        self.finish(after);
    }

    /// Whether more may be printed.
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.state).fd.is_some()
    }

    /// Uses the descriptor, unless it is too late for that.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exited`].
    pub(super) fn with<T>(
        &self,
        operation: &'static str,
        call: impl FnOnce(BorrowedFd<'_>) -> T,
    ) -> Result<T, Error> {
        let state = lock(&self.state);
        state.usable(operation).map(call)
    }

    pub(super) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Has the thread tell when there is room for input, or not.
    pub(super) fn watch_for_room(&self, state: &mut State, room: bool) {
        let interest = if room {
            Interest::BecomesEither
        } else {
            Interest::BecomesReadable
        };
        self.tell_of(state, interest);
    }

    /// Has the thread tell of something else. What is there already is told anew.
    fn tell_of(&self, state: &mut State, interest: Interest) {
        if state.interest != interest
            && let Some(fd) = &state.fd
        {
            self.reactor.change(fd, self.token, interest);
            state.interest = interest;
        }
    }

    /// Takes what is left of the output and closes the descriptor, which has nothing more to give.
    fn close(&self, state: &mut State, after: &mut Afterwards) {
        match state.reader {
            // Some 12 KiB beside what is kept already; and no more of a holder that goes on printing.
            Reader::There(_) => state.take_in(state.kept.len().saturating_add(KEPT)),
            Reader::Gone => Taken::All,
        };
        let Some(fd) = state.fd.take() else { return };
        self.reactor.forget(&fd, self.token);
        drop(fd);
        after.ended = !std::mem::replace(&mut state.told, true);
        after.failure = state.failure.as_ref().map(failed);
    }

    /// Does what may run anybody's code.
    pub(super) fn finish(&self, after: Afterwards) {
        if (after.ended || after.failure.is_some())
            && let Some(tree) = self.tree.upgrade()
        {
            if let Some(error) = after.failure {
                tree.terminal_failed(&error);
            }
            if after.ended {
                tree.stream_ended();
            }
        }
        for waker in after.wakers {
            waker.wake();
        }
    }

    /// Nobody will read what is printed.
    pub(super) fn leave_unread(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        state.reader = Reader::Gone;
        state.kept = VecDeque::new();
        if state.fd.is_some() {
            // What was there before is no news to the thread.
            self.reactor.request(Source::Terminal(Arc::clone(self)));
        }
    }

    /// Reads output for its reader, who is woken when there may be more. `None` for later.
    pub(super) fn read(&self, waker: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        let mut state = lock(&self.state);
        if !state.kept.is_empty() {
            let mut after = Afterwards::default();
            let read = state.kept.read(buffer);
            if state.kept.is_empty() {
                state.kept = VecDeque::new();
            }
            // There is room for what a stuck write must read.
            state.queue.wake_first(&mut after.wakers);
            drop(state);
            self.finish(after);
            return Some(read);
        }
        let Some(fd) = &state.fd else {
            return Some(match state.failure.take() {
                Some(error) => Err(error),
                None => Ok(0),
            });
        };
        let mut after = Afterwards::default();
        let read = match pty::read(fd, buffer) {
            Ok(Read::Bytes(length)) => return Some(Ok(length)),
            Ok(Read::Closed) if state.program_ended => {
                self.close(&mut state, &mut after);
                Some(Ok(0))
            }
            // The lock is held until the waker is in place, so whatever comes now wakes it.
            Ok(Read::Empty | Read::Closed) => {
                state.reader = Reader::There(Some(waker.clone()));
                if state.interest == Interest::HangsUp {
                    self.tell_of(&mut state, Interest::BecomesReadable);
                }
                None
            }
            Err(error) => {
                state.failure = Some(error);
                self.close(&mut state, &mut after);
                state.failure.take().map(Err)
            }
        };
        drop(state);
        self.finish(after);
        read
    }
}

impl State {
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

    /// Whether a reader is at work who finds what is printed by itself. To be told of every piece would wake the runtime's
    /// thread for each, and halve what a reader gets.
    fn is_read_unasked(&self) -> bool {
        matches!(self.reader, Reader::There(None)) && !self.ending && self.queue.is_empty()
    }

    /// Whether nobody has the terminal open.
    fn is_closed(&self) -> bool {
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

    fn take_in(&mut self, bound: usize) -> Taken {
        let Some(fd) = &self.fd else {
            return Taken::Closed;
        };
        let mut piece = [0; PIECE];
        while self.kept.len() < bound {
            let room = (bound - self.kept.len()).min(PIECE);
            match pty::read(fd, &mut piece[..room]) {
                Ok(Read::Bytes(length)) => self.kept.extend(&piece[..length]),
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

    fn throw_away(&mut self, bound: usize) -> Taken {
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
    fn wake(&mut self, after: &mut Afterwards) {
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

impl Afterwards {
    pub(super) fn wakers(&mut self) -> &mut Vec<Waker> {
        &mut self.wakers
    }
}

fn failed(error: &io::Error) -> Error {
    Error::new(
        ErrorKind::Os,
        "read",
        format!("the terminal could not be read: {error}"),
    )
    .with_started(MayHaveStarted::Yes)
}
