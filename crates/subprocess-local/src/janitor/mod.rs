//! What a dead host left on disk, and the records that tell of it.
//!
//! A runtime writes down what it is about to have in file systems, in a file that it keeps locked: its [`Record`]. Whoever
//! starts next [sweeps](sweep()): where a lock is free and the owner is proven to be dead, what the record names is ended
//! and removed. Without that proof nothing is. See `docs/design/0006-records.md`.

mod contents;
mod directory;
mod group;
mod name;
mod private;
mod proof;
mod record;
mod sweep;

pub(crate) use directory::look;
pub(crate) use record::Record;
pub(crate) use sweep::sweep;
