//! A stream that was spilled to a file, wherever that file is.

use bytes::Bytes;
use futures_core::future::BoxFuture;

use crate::{Error, WorldPath};

/// A file that holds a whole stream, in the world that ran the process.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SpilledStream {
    /// The world's id of it, never used twice by one runtime.
    pub id: u64,
    /// Bytes in it so far: the stream from offset 0 to here. After settlement, the whole stream.
    pub length: u64,
    /// Where it is, in the world's own spelling.
    pub location: WorldPath,
}

impl SpilledStream {
    /// Describes a file.
    pub fn new(id: u64, length: u64, location: impl Into<WorldPath>) -> Self {
        Self {
            id,
            length,
            location: location.into(),
        }
    }
}

/// What has become of a stream's spill.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum SpillState {
    /// None was asked for, or the stream still fits in memory.
    #[default]
    None,
    /// The file holds the stream from its beginning.
    Available(SpilledStream),
    /// There is none any more, and never will be again; the text says why.
    Withdrawn(String),
}

/// Reads spilled bytes from wherever they are. Providers implement it.
pub trait SpillSource: Send + Sync + 'static {
    /// Reads at most `length` bytes from `offset`. Fewer than asked means the file ends there.
    ///
    /// It is called for the state a reader saw: the file may be gone by then.
    ///
    /// # Errors
    ///
    /// [`SpillUnavailable`](crate::ErrorKind::SpillUnavailable) for a file that is gone, and the world's own.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    fn read(
        &self,
        stream: &SpilledStream,
        offset: u64,
        length: usize,
    ) -> BoxFuture<'static, Result<Bytes, Error>>;
}
