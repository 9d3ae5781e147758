//! The reading end.

use bytes::Bytes;
use futures_core::future::BoxFuture;

use crate::{Error, SpillState};

/// The reading end of a collected stream. Clonable, never consuming, immediate.
#[derive(Clone, Debug)]
pub struct OutputReader(pub(crate) ());

/// What one read gave.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OutputRead {
    /// The bytes.
    pub bytes: Bytes,
    /// The offset of the first of them.
    pub offset: u64,
    /// Where to read on.
    pub next_offset: u64,
    /// Bytes between the asked offset and the first byte: they left the window.
    pub gap: u64,
    /// Whether the asked offset lay beyond the end of the stream so far and was moved back to it.
    pub clamped: bool,
    /// The stream's spill.
    pub spill: SpillState,
}

/// What is retained of a stream at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The first bytes of the stream, as many as are kept and do not lie in the tail.
    pub head: Bytes,
    /// The last bytes of the stream.
    pub tail: Bytes,
    /// The bytes of the stream so far.
    pub total: u64,
    /// Whether the stream has ended.
    pub sealed: bool,
}

impl OutputReader {
    /// Reads all retained bytes from an offset on.
    pub fn read_from(&self, _offset: u64) -> OutputRead {
        unreachable!()
    }

    /// Reads at most `limit` retained bytes from an offset on.
    pub fn read_some(&self, _offset: u64, _limit: usize) -> OutputRead {
        unreachable!()
    }

    /// Returns how many bytes the stream has so far.
    pub fn total(&self) -> u64 {
        0
    }

    /// Tells whether the stream has ended.
    pub fn is_sealed(&self) -> bool {
        true
    }

    /// Copies what is retained.
    pub fn snapshot(&self) -> Snapshot {
        unreachable!()
    }

    /// Returns the retained tail as text.
    pub fn text(&self) -> String {
        String::new()
    }

    /// Tells what has become of the stream's spill.
    pub fn spill(&self) -> SpillState {
        SpillState::None
    }

    /// Resolves when the stream has more than `offset` bytes, or has ended.
    pub fn changed(&self, _offset: u64) -> BoxFuture<'static, ()> {
        unreachable!()
    }

    /// Reads at most `length` bytes of the whole stream from its spill.
    ///
    /// # Errors
    ///
    /// [`SpillUnavailable`](crate::ErrorKind::SpillUnavailable), and the world's own.
    pub fn read_spilled(&self, _offset: u64, _length: usize) -> BoxFuture<'static, Result<Bytes, Error>> {
        unreachable!()
    }
}
