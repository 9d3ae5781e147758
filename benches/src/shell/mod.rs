//! Shell commands, each beside the same shell spawned bare.

pub(crate) mod call;
pub(crate) mod concurrent;
mod served;
mod shells;

/// The shortest command there is.
const NOTHING: &str = ":";
