//! What is typed on a scripted terminal: writes that follow each other into the bounded input of a program.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Buf, Bytes};
use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};

use super::super::stream::InputStream;

/// Bytes a terminal holds for a program that does not read (`N_TTY_BUF_SIZE` of Linux).
const CAPACITY: usize = 4096;

/// Bytes of a line that a terminal collects, beside its end.
const LINE_LIMIT: usize = 4095;

/// What became of a write, as soon as that is known.
pub(super) type Written = Arc<OnceLock<Result<(), Error>>>;

/// The writes of one terminal that were not taken yet, and the line that has no end yet.
#[derive(Debug, Default)]
pub(in super::super) struct Typing {
    writes: VecDeque<Write>,
    made: u64,
    line: Vec<u8>,
    collects_lines: bool,
    /// When the first write got on, or became the first.
    progress: Duration,
}

#[derive(Debug)]
struct Write {
    id: u64,
    rest: Bytes,
    taken: u64,
    written: Written,
}

/// How much of a write may be taken now.
enum Admission {
    Bytes(usize),
    /// Not before the program reads.
    Later,
    /// A line of so many bytes.
    TooLong(usize),
}

impl Typing {
    /// Adds a write, and returns its id.
    pub(super) fn push(&mut self, data: Bytes, now: Duration) -> (u64, Written) {
        if self.writes.is_empty() {
            self.progress = now;
        }
        self.made += 1;
        let written = Written::default();
        self.writes.push_back(Write {
            id: self.made,
            rest: data,
            taken: 0,
            written: Arc::clone(&written),
        });
        (self.made, written)
    }

    /// Forgets a write that nobody waits for any more. What was taken of it stays typed.
    pub(super) fn withdraw(&mut self, id: u64, now: Duration) {
        if self.writes.front().is_some_and(|write| write.id == id) {
            self.progress = now;
        }
        self.writes.retain(|write| write.id != id);
    }

    /// Types as much as the input has room for, and tells whether that was anything.
    pub(super) fn type_into(&mut self, input: &mut InputStream, now: Duration) -> bool {
        let mut typed = false;
        while let Some(write) = self.writes.front() {
            if write.rest.is_empty() {
                self.settle_first(Ok(()), now);
                continue;
            }
            match self.admit(&write.rest, input) {
                Admission::Later => break,
                Admission::TooLong(length) => {
                    let why = format!(
                        "a line of {length} bytes is longer than the {LINE_LIMIT} that a terminal collects"
                    );
                    let error = write.failed(ErrorKind::LineTooLong, why);
                    self.settle_first(Err(error), now);
                }
                Admission::Bytes(count) => {
                    self.take(count, input);
                    self.progress = now;
                    typed = true;
                }
            }
        }
        typed
    }

    fn admit(&self, rest: &[u8], input: &InputStream) -> Admission {
        let room = CAPACITY.saturating_sub(input.unread() + self.line.len());
        if !self.collects_lines {
            return match rest.len().min(room) {
                0 => Admission::Later,
                count => Admission::Bytes(count),
            };
        }
        let end = rest.iter().position(|&byte| byte == b'\n');
        let length = self.line.len() + end.unwrap_or(rest.len());
        if length > LINE_LIMIT {
            return Admission::TooLong(length);
        }
        match end.map_or(rest.len(), |end| end + 1) {
            count if count <= room => Admission::Bytes(count),
            _ => Admission::Later,
        }
    }

    fn take(&mut self, count: usize, input: &mut InputStream) {
        let Some(write) = self.writes.front_mut() else {
            return;
        };
        self.line.extend_from_slice(&write.rest[..count]);
        write.rest.advance(count);
        write.taken += count as u64;
        if !self.collects_lines || self.line.ends_with(b"\n") {
            input.hold(&std::mem::take(&mut self.line));
        }
    }

    /// Says whether lines are collected from now on. A line without an end is given to a program that wants bytes.
    pub(super) fn collect_lines(&mut self, collect: bool, input: &mut InputStream) {
        self.collects_lines = collect;
        if !collect {
            input.hold(&std::mem::take(&mut self.line));
        }
    }

    /// Returns the moment at which the first write is given up, if nothing more of it is taken by then.
    pub(super) fn deadline(&self, bound: Duration) -> Option<Duration> {
        self.writes.front().map(|_| self.progress.saturating_add(bound))
    }

    /// Gives the first write up.
    pub(super) fn give_up_first(&mut self, bound: Duration, now: Duration) {
        if let Some(write) = self.writes.front() {
            let why = format!("the terminal took nothing more for {bound:?}: what was typed is not read");
            let error = write.failed(ErrorKind::InputNotRead, why);
            self.settle_first(Err(error), now);
        }
    }

    /// Gives all writes up: nobody will ever read them.
    pub(super) fn end(&mut self, why: &str) {
        for write in self.writes.drain(..) {
            drop(
                write
                    .written
                    .set(Err(write.failed(ErrorKind::Exited, why.to_owned()))),
            );
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Returns the line that has no end yet.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    fn settle_first(&mut self, result: Result<(), Error>, now: Duration) {
        if let Some(write) = self.writes.pop_front() {
            drop(write.written.set(result));
        }
        self.progress = now;
    }
}

impl Write {
    fn failed(&self, kind: ErrorKind, why: String) -> Error {
        Error::new(kind, "write", why)
            .with_started(MayHaveStarted::Yes)
            .with_written(self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_secs(5);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn failure(written: &Written) -> (ErrorKind, Option<u64>) {
        let error = written
            .get()
            .expect("an answer")
            .as_ref()
            .expect_err("the write failed");
        (error.kind(), error.written())
    }

    fn is_whole(written: &Written) -> bool {
        matches!(written.get(), Some(Ok(())))
    }

    #[test]
    fn a_write_waits_for_room_and_the_next_one_for_it() {
        let (mut typing, mut input, mut wakers) = (Typing::default(), InputStream::default(), Vec::new());
        let (_, first) = typing.push(vec![b'a'; CAPACITY + 1].into(), at(0));
        let (_, second) = typing.push("b".into(), at(0));
        assert!(typing.type_into(&mut input, at(0)));
        assert!(!typing.type_into(&mut input, at(1)));
        assert!(first.get().is_none());
        assert_eq!(input.read(2, &mut wakers).len(), 2);
        assert!(typing.type_into(&mut input, at(2)));
        assert!(is_whole(&first) && is_whole(&second));
        assert_eq!(
            input.read(usize::MAX, &mut wakers),
            [vec![b'a'; CAPACITY - 1], b"b".to_vec()].concat()
        );
    }

    #[test]
    fn the_bound_counts_from_the_last_progress_and_for_each_write_anew() {
        let (mut typing, mut input, mut wakers) = (Typing::default(), InputStream::default(), Vec::new());
        assert_eq!(typing.deadline(BOUND), None);
        let (_, first) = typing.push(vec![b'a'; 2 * CAPACITY].into(), at(0));
        let (_, second) = typing.push("b".into(), at(1));
        typing.type_into(&mut input, at(1));
        assert_eq!(typing.deadline(BOUND), Some(at(6)));
        input.read(1, &mut wakers);
        typing.type_into(&mut input, at(4));
        assert_eq!(typing.deadline(BOUND), Some(at(9)));
        typing.give_up_first(BOUND, at(9));
        assert_eq!(
            failure(&first),
            (ErrorKind::InputNotRead, Some(CAPACITY as u64 + 1))
        );
        assert!(second.get().is_none());
        assert_eq!(typing.deadline(BOUND), Some(at(14)));
    }

    #[test]
    fn a_withdrawn_write_gives_way_to_the_next() {
        let (mut typing, mut input) = (Typing::default(), InputStream::default());
        let (id, _) = typing.push(vec![b'a'; 2 * CAPACITY].into(), at(0));
        typing.type_into(&mut input, at(0));
        typing.withdraw(id, at(3));
        assert!(!typing.is_waiting());
        assert_eq!(input.unread(), CAPACITY, "what was taken was forgotten");
    }

    #[test]
    fn a_collected_line_is_read_whole_or_refused_whole() {
        let (mut typing, mut input, mut wakers) = (Typing::default(), InputStream::default(), Vec::new());
        typing.collect_lines(true, &mut input);
        let longest = "x".repeat(LINE_LIMIT);
        typing.push("begun".into(), at(0));
        typing.type_into(&mut input, at(0));
        assert_eq!(input.read(usize::MAX, &mut wakers), "");
        let (_, refused) = typing.push(format!("\n{longest}x\n").into(), at(0));
        typing.type_into(&mut input, at(0));
        assert_eq!(failure(&refused), (ErrorKind::LineTooLong, Some(1)));
        assert_eq!(input.read(usize::MAX, &mut wakers), "begun\n");
        let (_, taken) = typing.push(format!("{longest}\n").into(), at(0));
        typing.type_into(&mut input, at(0));
        assert!(is_whole(&taken));
        assert_eq!(input.unread(), CAPACITY);
    }

    #[test]
    fn a_line_that_was_begun_is_given_to_a_program_that_wants_bytes() {
        let (mut typing, mut input, mut wakers) = (Typing::default(), InputStream::default(), Vec::new());
        typing.collect_lines(true, &mut input);
        typing.push("begun".into(), at(0));
        typing.type_into(&mut input, at(0));
        typing.collect_lines(false, &mut input);
        assert_eq!(input.read(usize::MAX, &mut wakers), "begun");
    }

    #[test]
    fn an_end_fails_every_write_with_what_was_taken_of_it() {
        let (mut typing, mut input) = (Typing::default(), InputStream::default());
        let (_, first) = typing.push(vec![b'a'; 2 * CAPACITY].into(), at(0));
        let (_, second) = typing.push("b".into(), at(0));
        typing.type_into(&mut input, at(0));
        typing.end("the program has exited");
        assert_eq!(failure(&first), (ErrorKind::Exited, Some(CAPACITY as u64)));
        assert_eq!(failure(&second), (ErrorKind::Exited, Some(0)));
    }
}
