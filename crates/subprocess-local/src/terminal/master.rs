//! The host's end of a terminal.
//!
//! Whoever reads the output reads from the descriptor itself, and whoever types writes to it; the runtime's thread only tells
//! when it is worth trying again. What is printed is taken into memory in three cases alone: while a write does not get on,
//! while the session is being terminated, and at the terminal's end, so that the descriptor need not wait for a reader.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};
use std::task::Waker;
use std::time::Duration;

use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::foreground::TerminalId;
use dsh_subprocess_sys::pty::{self, Pty, Read};

use super::calls::Calls;
use super::state::{KEPT, Reader, State, Taken};
use crate::reactor::{Reactor, Source, lock};
use crate::tree::Tree;

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

/// What is to be done without the lock.
#[derive(Default)]
pub(super) struct Afterwards {
    pub(super) wakers: Vec<Waker>,
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
            state: Mutex::new(State::new(master)),
        });
        let state = lock(&made.state);
        if let Some(fd) = &state.fd {
            let source = Source::Terminal(Arc::clone(&made));
            made.reactor.watch(fd, made.token, Interest::Nothing, source)?;
        }
        drop(state);
        Ok((made, slave))
    }

    /// Something has changed: there is output, or room for input, or nobody has the terminal open any more.
    pub(crate) fn ready(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        // A watch that tells once has told; whoever is woken below asks for the next.
        if state.interest != Interest::BecomesEither {
            state.interest = Interest::Nothing;
        }
        if state.is_watched_for_good() {
            self.arm(&mut state);
        }
        let taken = match state.reader {
            // All that is left is taken with the closing, however much is kept already.
            _ if state.program_ended && state.is_closed() => Taken::Closed,
            Reader::Gone => state.throw_away(KEPT),
            Reader::There(_) if state.ending => state.take_in(KEPT),
            // It is read by its reader.
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
        } else {
            self.arm(&mut state);
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

    /// Has the thread told of what somebody waits for, and of nothing else: a reader at work finds what is printed by itself, and
    /// to wake the thread for each piece would halve what he gets. What is there already is told at once.
    pub(super) fn arm(&self, state: &mut State) {
        let interest = state.interest();
        if let Some(fd) = &state.fd
            && interest != state.interest
            && interest != Interest::Nothing
        {
            self.reactor.change(fd, self.token, interest);
            state.interest = interest;
        }
    }

    /// Takes what is left of the output and closes the descriptor, which has nothing more to give.
    fn close(&self, state: &mut State, after: &mut Afterwards) {
        match state.reader {
            // Some 20 KiB at most beside what is kept already; and no more of a holder that goes on printing.
            Reader::There(_) => state.take_in(state.kept.len().saturating_add(KEPT)),
            Reader::Gone => Taken::All,
        };
        let Some(fd) = state.fd.take() else { return };
        self.reactor.forget(&fd, self.token);
        drop(fd);
        after.ended = true;
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
    pub(super) fn read(self: &Arc<Self>, waker: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        let mut state = lock(&self.state);
        if !state.kept.is_empty() {
            let mut after = Afterwards::default();
            let read = state.kept.read(buffer);
            if state.kept.is_empty() {
                state.kept = VecDeque::new();
            }
            // There is room for what a stuck write must read, and for what whoever cleans up has still to say.
            state.queue.wake_first(&mut after.wakers);
            if state.ending && state.fd.is_some() {
                self.reactor.request(Source::Terminal(Arc::clone(self)));
            }
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
            Ok(Read::Bytes(length)) => {
                state.closed = false;
                return Some(Ok(length));
            }
            Ok(Read::Closed) if state.program_ended => {
                self.close(&mut state, &mut after);
                Some(Ok(0))
            }
            // The lock is held until the waker is in place, so whatever comes now wakes it.
            Ok(empty @ (Read::Empty | Read::Closed)) => {
                state.closed = empty == Read::Closed;
                state.reader = Reader::There(Some(waker.clone()));
                self.arm(&mut state);
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

fn failed(error: &io::Error) -> Error {
    Error::new(
        ErrorKind::Os,
        "read",
        format!("the terminal could not be read: {error}"),
    )
    .with_started(MayHaveStarted::Yes)
}
