//! Streams that are written to files because they do not fit into memory.

mod directory;
mod file;

pub(crate) use directory::{SpillDirectory, SpillPlace, SpillPlaces};
pub(crate) use file::StreamSpill;
