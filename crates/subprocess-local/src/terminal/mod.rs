//! Terminals: the host's end of one, and the handle that callers have of it.
//!
//! The tree on a terminal is owned, awaited and ended as any other. What is here is what pipes cannot do: input and output by
//! one descriptor, its window, and who has it.

mod calls;
mod driver;
mod environment;
mod foreground;
mod input;
mod launch;
mod line;
mod master;
mod output;
mod sleep;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use environment::environment;
pub(crate) use launch::spawn;
pub(crate) use master::Master;
