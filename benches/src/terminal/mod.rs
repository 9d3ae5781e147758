//! The rows about terminals.

pub(crate) mod bulk;
mod contestants;
pub(crate) mod echo;
pub(crate) mod inspect;
mod processor;
pub(crate) mod spawn;

pub(crate) use contestants::{COLS, Conversation, ROWS, Terminals};
