//! The writing end.

use std::io;
use std::sync::Arc;

use crate::{Collect, OutputReader, SpillSource, SpilledStream};

/// The writing end of a collected stream. A provider pushes bytes, or skips ones it will never send, and seals it at
/// settlement.
#[derive(Debug)]
pub struct Collector(());

impl Collector {
    /// Makes a stream that retains what `collect` says. `source` reads the spill, where the world keeps one.
    pub fn new(_collect: &Collect, _source: Option<Arc<dyn SpillSource>>) -> (Self, OutputReader) {
        (Self(()), OutputReader(()))
    }

    /// Appends bytes.
    pub fn push(&mut self, _bytes: &[u8]) {}

    /// Counts bytes that a remote world left out because no reader can see them any more.
    pub fn skip(&mut self, _count: u64) {}

    /// Reads into the window without a copy in between: `read` gets the window's own storage, at least `max_bytes` of it,
    /// and returns how many bytes it put there.
    ///
    /// # Errors
    ///
    /// Those of `read`; nothing is appended then.
    pub fn fill(&mut self, read: impl FnOnce(&mut [io::IoSliceMut<'_>]) -> io::Result<usize>) -> io::Result<usize> {
        read(&mut [])
    }

    /// Tells whether the tail is at its full size, so that `fill` reads whole windows.
    pub fn is_full(&self) -> bool {
        false
    }

    /// Returns how many bytes the stream has so far.
    pub fn total(&self) -> u64 {
        0
    }

    /// Copies the retained tail: the whole stream so far, while the total is at most `max_bytes`.
    pub fn tail(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Says where the stream is spilled, and how much of it is there.
    pub fn spill_reached(&mut self, _stream: SpilledStream) {}

    /// Says that there is no spill any more, and why.
    pub fn spill_withdrawn(&mut self, _why: impl Into<String>) {}

    /// Ends the stream. Later calls change nothing. Dropping the collector seals it, too.
    pub fn seal(&mut self) {}
}
