//! Typing: writes in their order, each whole, none without an end.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};
use dsh_subprocess_sys::pty;

use super::Master;
use super::line::{Admission, LONGEST_LINE};
use super::master::Afterwards;
use super::state::State;
use crate::reactor::TimerKey;

/// Bytes that are judged, and offered to the terminal, at a time. It takes no more than that while nobody reads.
const PIECE: usize = 16 * 1024;

/// Writes that are not complete, in the order in which they were begun.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Ticket>,
    next: u64,
    /// When the terminal took something for the last time.
    got_on: Option<Instant>,
}

#[derive(Debug)]
struct Ticket {
    number: u64,
    waker: Option<Waker>,
}

impl Queue {
    /// Wakes the write whose turn it is.
    pub(super) fn wake_first(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.waiting.front_mut().and_then(|ticket| ticket.waker.take()));
    }

    /// Wakes all of them.
    pub(super) fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(self.waiting.iter_mut().filter_map(|ticket| ticket.waker.take()));
    }

    /// Whether nobody types.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn enter(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.push_back(Ticket { number, waker: None });
        number
    }

    fn is_first(&self, number: u64) -> bool {
        self.waiting.front().is_some_and(|first| first.number == number)
    }

    fn wait(&mut self, number: u64, waker: &Waker) {
        if let Some(ticket) = self.waiting.iter_mut().find(|ticket| ticket.number == number) {
            ticket.waker = Some(waker.clone());
        }
    }

    fn leave(&mut self, number: u64) {
        self.waiting.retain(|ticket| ticket.number != number);
    }
}

/// One write.
#[derive(Debug)]
pub(super) struct Typing {
    master: Arc<Master>,
    data: Bytes,
    written: usize,
    /// Its place in the queue, from the first poll on.
    ticket: Option<u64>,
    /// When it was begun.
    since: Option<Instant>,
    /// When it is woken for its bound, and who that wakes.
    timer: Option<(TimerKey, Waker)>,
}

/// What became of an attempt.
enum Attempt {
    /// The terminal took so much.
    Took(usize),
    /// It takes nothing now.
    Full,
}

impl Typing {
    pub(super) fn new(master: Arc<Master>, data: Bytes) -> Self {
        Self {
            master,
            data,
            written: 0,
            ticket: None,
            since: None,
            timer: None,
        }
    }

    /// Types as much as goes now. `None` for later.
    fn type_on(
        &mut self,
        state: &mut State,
        waker: &Waker,
        after: &mut Afterwards,
    ) -> Option<Result<(), Error>> {
        if let Err(error) = state.usable("write") {
            return Some(Err(error));
        }
        let ticket = *self.ticket.get_or_insert_with(|| state.queue.enter());
        while state.queue.is_first(ticket) {
            match attempt(state, &self.data[self.written..]) {
                Ok(Attempt::Took(length)) => {
                    self.written += length;
                    if self.written == self.data.len() {
                        return Some(Ok(()));
                    }
                    state.queue.got_on = Some(Instant::now());
                }
                Ok(Attempt::Full) => {
                    // The programs may wait for a reader before they read.
                    if state.read_ahead() {
                        state.wake_reader(after);
                    }
                    break;
                }
                Err(error) => return Some(Err(error)),
            }
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let due = state.queue.got_on.map_or(since, |got_on| got_on.max(since)) + self.master.bound;
        if due <= Instant::now() {
            return Some(Err(stuck(&self.master, state, ticket)));
        }
        state.queue.wait(ticket, waker);
        self.master.arm(state);
        let set = |((at, _), woken): &(TimerKey, Waker)| *at >= due && woken.will_wake(waker);
        if !self.timer.as_ref().is_some_and(set) {
            self.unschedule();
            let key = self.master.reactor.wake_at(due, waker.clone());
            self.timer = Some((key, waker.clone()));
        }
        None
    }

    fn unschedule(&mut self) {
        if let Some((timer, _)) = self.timer.take() {
            self.master.reactor.unschedule(timer);
        }
    }

    /// Gives the turn to the next one.
    fn leave(&mut self, state: &mut State, after: &mut Afterwards) {
        if let Some(ticket) = self.ticket.take() {
            state.queue.leave(ticket);
            state.queue.wake_first(&mut after.wakers);
        }
    }
}

impl Future for Typing {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let typing = &mut *self;
        let master = Arc::clone(&typing.master);
        let mut after = Afterwards::default();
        let mut state = master.state();
        let typed = typing.type_on(&mut state, context.waker(), &mut after);
        if typed.is_some() {
            typing.leave(&mut state, &mut after);
        }
        drop(state);
        master.finish(after);
        match typed {
            Some(result) => {
                typing.unschedule();
                Poll::Ready(result.map_err(|error| error.with_written(typing.written as u64)))
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        self.unschedule();
        if self.ticket.is_some() {
            let master = Arc::clone(&self.master);
            let mut after = Afterwards::default();
            let mut state = master.state();
            self.leave(&mut state, &mut after);
            drop(state);
            master.finish(after);
        }
    }
}

/// Types what no line is cut by.
fn attempt(state: &mut State, rest: &[u8]) -> Result<Attempt, Error> {
    let fd = state.usable("write")?;
    // Asked anew each time: programs change it, and the bytes meet the mode of their arrival.
    let mode = pty::line_mode(fd).map_err(|errno| failed(&errno.into()))?;
    // A line that begins in what is typed now is seen to its end, or to where it is too long.
    let seen = &rest[..rest.len().min(PIECE + LONGEST_LINE + 1)];
    let admitted = match state.gauge.admit(&mode, seen) {
        Admission::All => seen,
        Admission::TooLong {
            line_starts_at: 0,
            length,
        } => return Err(too_long(length)),
        // What comes before it is typed first.
        Admission::TooLong { line_starts_at, .. } => &seen[..line_starts_at],
    };
    let admitted = &admitted[..admitted.len().min(PIECE)];
    match pty::write(fd, admitted) {
        Ok(Some(length)) => {
            state.gauge.advance(&mode, &admitted[..length]);
            Ok(Attempt::Took(length))
        }
        Ok(None) if admitted.is_empty() => Ok(Attempt::Took(0)),
        Ok(None) => Ok(Attempt::Full),
        Err(error) => Err(failed(&error)),
    }
}

fn error(kind: ErrorKind, message: String) -> Error {
    Error::new(kind, "write", message).with_started(MayHaveStarted::Yes)
}

fn too_long(length: usize) -> Error {
    error(
        ErrorKind::LineTooLong,
        format!(
            "a line of {length} bytes or more is too long: the terminal collects whole lines now, of at most {LONGEST_LINE} \
             bytes, and would lose the rest"
        ),
    )
}

fn stuck(master: &Master, state: &State, ticket: u64) -> Error {
    let why = if !state.queue.is_first(ticket) {
        "an earlier write of this handle has not ended, and may not be polled any more"
    } else if state.is_full() {
        "nobody reads the terminal's output, of which 1 MiB is waiting"
    } else {
        "the terminal's program does not read"
    };
    error(
        ErrorKind::InputNotRead,
        format!("the terminal took no more input for {:?}: {why}", master.bound),
    )
}

fn failed(cause: &std::io::Error) -> Error {
    error(
        ErrorKind::Os,
        format!("the terminal could not be written to: {cause}"),
    )
}
