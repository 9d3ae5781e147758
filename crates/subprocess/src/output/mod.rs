//! Collected output: one implementation, on the caller's side, filled by whichever world.
//!
//! A provider writes through a [`Collector`]; callers read through any number of [`OutputReader`]s, by absolute byte
//! offset, never consuming. Bytes are the truth; [`TextCursor`] is a view of them as text.
//!
//! `window` is the data structure, without a lock; `collector` puts it under one, and adds the end of the stream and its
//! spill; `reader` and `text` read it.

mod collector;
mod reader;
mod spill;
mod text;
mod window;

#[cfg(test)]
mod tests;

pub use collector::{Collector, SpillNotice};
pub use reader::{OutputRead, OutputReader, Snapshot};
pub use spill::{SpillSource, SpillState, SpilledStream};
pub use text::{SnapshotText, TextCursor, TextRead, whole_characters};
