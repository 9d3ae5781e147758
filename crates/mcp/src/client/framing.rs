//! Lines of a protocol, from bytes in any chunks. No I/O and no clock.

use memchr::memchr;

use super::envelope::{Envelope, EnvelopeScan};

/// How much is kept of the start of a line that is too long, in bytes.
const START: usize = 240;

/// Cuts a byte stream into lines, in bounded memory.
///
/// A line ends with a line feed, and one carriage return before that belongs to the end. A longer line than the cap is not
/// collected: it is skipped as it arrives, and only its length, its start and its [`Envelope`] are kept. The line after it is
/// read as any other.
///
/// The chunks in which the bytes arrive make no difference.
///
/// ```
/// use dsh_mcp::client::{Line, Lines};
///
/// let mut lines = Lines::new(5);
/// let mut bytes = &b"hello\r\ntoo long\nbye"[..];
/// assert_eq!(lines.feed(&mut bytes), Some(Line::Whole(b"hello".to_vec())));
/// assert!(matches!(lines.feed(&mut bytes), Some(Line::Long(line)) if line.length == 8));
/// assert_eq!(lines.feed(&mut bytes), None);
/// assert_eq!(lines.finish(), Some(Line::Whole(b"bye".to_vec())));
/// ```
#[derive(Debug)]
pub struct Lines {
    cap: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Collecting(Vec<u8>),
    Skipping(Skipped),
}

/// A line without its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// At most as long as the cap.
    Whole(Vec<u8>),
    /// Longer than that.
    Long(LongLine),
}

/// What is known of a line that was skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LongLine {
    /// Its length in bytes, without its end.
    pub length: u64,
    /// Its first bytes, at most 240.
    pub start: Vec<u8>,
    /// What it would have been.
    pub envelope: Envelope,
}

#[derive(Debug, Default)]
struct Skipped {
    length: u64,
    start: Vec<u8>,
    scan: EnvelopeScan,
    /// Whether the last byte so far is a carriage return.
    returned: bool,
}

impl Lines {
    /// Makes an empty splitter for lines of at most `cap` bytes, without their end.
    ///
    /// It holds at most that many bytes at once, and one more.
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            state: State::Collecting(Vec::new()),
        }
    }

    /// Takes bytes up to the next end of a line, and gives the line. `None` when all bytes were taken and none ended.
    pub fn feed(&mut self, bytes: &mut &[u8]) -> Option<Line> {
        let Some(end) = memchr(b'\n', bytes) else {
            self.append(bytes);
            *bytes = &[];
            return None;
        };
        self.append(&bytes[..end]);
        *bytes = &bytes[end + 1..];
        Some(self.take())
    }

    /// Gives what came after the last end of a line, when nothing more will come. `None` where that is nothing.
    pub fn finish(&mut self) -> Option<Line> {
        match &self.state {
            State::Collecting(collected) if collected.is_empty() => None,
            State::Collecting(_) | State::Skipping(_) => Some(self.take()),
        }
    }

    fn append(&mut self, piece: &[u8]) {
        match &mut self.state {
            State::Skipping(skipped) => skipped.append(piece),
            State::Collecting(collected) => {
                let length = collected.len().saturating_add(piece.len());
                // The carriage return of the line's end may arrive before the line feed that makes it one.
                let end = piece.last() == Some(&b'\r') && length == self.cap.saturating_add(1);
                if length <= self.cap || end {
                    grow(collected, length, self.cap.saturating_add(1));
                    collected.extend_from_slice(piece);
                } else if !piece.is_empty() {
                    let mut skipped = Skipped::default();
                    skipped.append(collected);
                    skipped.append(piece);
                    self.state = State::Skipping(skipped);
                }
            }
        }
    }

    fn take(&mut self) -> Line {
        match std::mem::replace(&mut self.state, State::Collecting(Vec::new())) {
            State::Collecting(mut line) => {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                Line::Whole(line)
            }
            State::Skipping(skipped) => Line::Long(skipped.end()),
        }
    }
}

impl Skipped {
    fn append(&mut self, piece: &[u8]) {
        let Some(&last) = piece.last() else {
            return;
        };
        self.length = self.length.saturating_add(piece.len() as u64);
        let kept = piece.len().min(START - self.start.len());
        self.start.extend_from_slice(&piece[..kept]);
        self.scan.feed(piece);
        self.returned = last == b'\r';
    }

    fn end(mut self) -> LongLine {
        let length = self.length - u64::from(self.returned);
        self.start.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        LongLine {
            length,
            start: self.start,
            envelope: self.scan.finish(),
        }
    }
}

/// Doubles, as `Vec` does, but never beyond the limit.
fn grow(buffer: &mut Vec<u8>, wanted: usize, limit: usize) {
    if wanted > buffer.capacity() {
        let capacity = buffer
            .capacity()
            .saturating_mul(2)
            .clamp(wanted, limit.max(wanted));
        buffer.reserve_exact(capacity - buffer.len());
    }
}
