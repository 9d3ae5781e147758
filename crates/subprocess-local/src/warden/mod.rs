//! The wardens: small processes that own trees for the host, and end them when it is gone.
//!
//! One [`RuntimeWarden`] per runtime sees the host's end. Where it is the reaper that owns, each tree has a [`TreeWarden`] of
//! its own, made by the runtime's.

mod adopted;
mod launch;
mod runtime;
mod tree;

pub(crate) use adopted::Adopted;
pub(crate) use launch::launch;
pub(crate) use runtime::{RefusedTree, RuntimeWarden};
pub(crate) use tree::{Heard, Launched, TreeWarden};
