//! The reading end.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::future::BoxFuture;

use super::collector::Stream;
use crate::{Error, ErrorKind, MayHaveStarted, SpillState, TextCursor};

/// The reading end of a collected stream. Clonable, never consuming, immediate.
///
/// Offsets count the bytes of the whole stream from 0, whether or not they are still retained. Any number of readers
/// read at their own offsets, before and after the end of the stream, and none takes anything from another. A read
/// costs what it returns, not what is retained.
///
/// ```
/// use dsh_subprocess::{Collect, Collector};
///
/// let (mut collector, reader) = Collector::new(&Collect { max_bytes: 8, head_bytes: 0, spill: None }, None);
/// collector.push(b"compiling");
/// let first = reader.read_from(0);
/// assert_eq!((&first.bytes[..], first.gap), (&b"ompiling"[..], 1)); // the window holds 8 bytes, the stream has 9
///
/// collector.push(b" ok");
/// assert_eq!(&reader.read_from(first.next_offset).bytes[..], b" ok");
/// ```
#[derive(Clone, Debug)]
pub struct OutputReader {
    stream: Arc<Stream>,
}

/// What one read gave.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OutputRead {
    /// The bytes: one contiguous run of the stream.
    pub bytes: Bytes,
    /// The offset of the first of them, or where they would be.
    pub offset: u64,
    /// Where to read on: `offset` plus the number of bytes.
    pub next_offset: u64,
    /// Bytes between the asked offset and `offset`: they left the window, or were skipped by a remote world.
    pub gap: u64,
    /// Whether the asked offset lay beyond the end of the stream so far and was moved back to it.
    pub clamped: bool,
    /// Whether the stream had ended when this was read: nothing will follow what was retained then.
    pub sealed: bool,
    /// The stream's spill.
    pub spill: SpillState,
}

/// What is retained of a stream at one moment: enough for another process to keep offsets without the whole stream.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The first bytes of the stream, as many as are kept and do not lie in the tail. It is empty while the tail holds
    /// the whole stream.
    pub head: Bytes,
    /// The last bytes of the stream.
    pub tail: Bytes,
    /// The bytes of the stream so far.
    pub total: u64,
    /// Whether the stream has ended.
    pub sealed: bool,
}

impl Snapshot {
    /// Returns how many bytes of the stream are missing between head and tail.
    pub fn dropped(&self) -> u64 {
        self.total - self.head.len() as u64 - self.tail.len() as u64
    }
}

impl OutputReader {
    pub(super) fn new(stream: Arc<Stream>) -> Self {
        Self { stream }
    }

    /// Reads all retained bytes from an offset on.
    ///
    /// An offset that left the window is moved forward to the first byte of the tail, and
    /// [`gap`](OutputRead::gap) says how far; an offset beyond the end is moved back to it, and
    /// [`clamped`](OutputRead::clamped) says so.
    ///
    /// A read is contiguous. While nothing is missing between the kept head and the tail, both are read as one; after
    /// that, the head is read by [`head`](Self::head) and [`snapshot`](Self::snapshot) only, and an offset inside it
    /// counts as gone.
    pub fn read_from(&self, offset: u64) -> OutputRead {
        self.read_some(offset, usize::MAX)
    }

    /// Reads at most `limit` retained bytes from an offset on; otherwise as [`read_from`](Self::read_from).
    pub fn read_some(&self, offset: u64, limit: usize) -> OutputRead {
        let state = self.stream.lock();
        let retained = state.window.read(offset, limit);
        OutputRead {
            next_offset: retained.offset + retained.bytes.len() as u64,
            bytes: Bytes::from(retained.bytes),
            offset: retained.offset,
            gap: retained.gap,
            clamped: retained.clamped,
            sealed: state.sealed,
            spill: state.spill.clone(),
        }
    }

    /// Returns how many bytes the stream has so far.
    pub fn total(&self) -> u64 {
        self.stream.lock().window.total()
    }

    /// Tells whether the stream has ended.
    pub fn is_sealed(&self) -> bool {
        self.stream.lock().sealed
    }

    /// Copies the first bytes of the stream, as many as are kept and do not lie in the tail.
    pub fn head(&self) -> Bytes {
        Bytes::copy_from_slice(self.stream.lock().window.head())
    }

    /// Copies what is retained.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.stream.lock();
        Snapshot {
            head: Bytes::copy_from_slice(state.window.head()),
            tail: Bytes::from(state.window.tail().concat()),
            total: state.window.total(),
            sealed: state.sealed,
        }
    }

    /// Returns what [`read_from(0)`](Self::read_from) gives as text: the tail, after the head where nothing is missing
    /// between. The rules are those of [`TextCursor`].
    pub fn text(&self) -> String {
        TextCursor::new(0).read(self).text
    }

    /// Tells what has become of the stream's spill.
    pub fn spill(&self) -> SpillState {
        self.stream.lock().spill.clone()
    }

    /// Resolves when the stream has more than `offset` bytes, or has ended.
    ///
    /// Any executor will do. Any number of futures may wait at once, for any offsets.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    pub fn changed(&self, offset: u64) -> BoxFuture<'static, ()> {
        let stream = Arc::clone(&self.stream);
        Box::pin(async move {
            loop {
                // Registered before the look at the stream: a push after the look finds `awaited` lowered under the same
                // lock, and its notification finds this waiter.
                let mut grown = pin!(stream.grown.notified());
                grown.as_mut().enable();
                {
                    let mut state = stream.lock();
                    if state.sealed || state.window.total() > offset {
                        return;
                    }
                    state.awaited = state.awaited.min(offset);
                }
                grown.await;
            }
        })
    }

    /// Reads at most `length` bytes of the whole stream from its spill. Fewer mean that the spill ends there so far.
    ///
    /// # Errors
    ///
    /// [`SpillUnavailable`](ErrorKind::SpillUnavailable) where there is none, with the reason; and the world's own.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    pub fn read_spilled(&self, offset: u64, length: usize) -> BoxFuture<'static, Result<Bytes, Error>> {
        let why = match (self.spill(), &self.stream.source) {
            (SpillState::Available(spilled), Some(source)) => return source.read(&spilled, offset, length),
            (SpillState::Available(spilled), None) => {
                format!(
                    "the stream was spilled to {}, and this world does not read spills",
                    spilled.location
                )
            }
            (SpillState::Withdrawn(why), _) => format!("the spill was withdrawn: {why}"),
            (SpillState::None, _) => {
                "the stream has no spill: none was asked for, or it still fits in memory".to_owned()
            }
        };
        // A reader comes from a spawn, and says nothing of whether that spawn succeeded.
        let error =
            Error::new(ErrorKind::SpillUnavailable, "read", why).with_started(MayHaveStarted::Unknown);
        Box::pin(async move { Err(error) })
    }
}
