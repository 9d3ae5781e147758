//! A spec on its way to a running child.
//!
//! `ends` makes the pipes, `start` has the child made, by `clone` or by a warden. All of it runs on the caller's thread where
//! that one waits for the exec; otherwise the caller makes the pipes, and one of the `launchers` does the rest.

mod clone;
mod ends;
mod launchers;
mod spawn;
mod start;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use ends::ChildEnds;
pub(crate) use launchers::Launchers;
pub(crate) use spawn::{absolute, begin, spawn};

/// How long a spawn waits for the child to reach its program, unless told otherwise; and the longest it can be told.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(1);
