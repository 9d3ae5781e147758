//! Scripted programs on terminals.
//!
//! The terminal itself does nothing to the bytes in either direction, and echoes nothing: what a program prints is what its
//! script says. What it has of a real one is what a consumer must be ready for: bounded buffers on both sides, a size, a
//! foreground group, and lines of a limited length where the script says that they are [collected](super::Script::collects_lines).

mod driver;
mod foreground;
mod record;
mod script;
mod spawn;
mod tty;
mod typing;

pub use foreground::ScriptedForeground;
pub use record::{Resize, TerminalRequest};
pub(super) use spawn::spawn_terminal;
pub(super) use tty::Tty;
