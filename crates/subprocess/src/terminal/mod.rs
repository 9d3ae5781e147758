//! The terminal primitive of the seam: what pipes cannot give a program.

mod foreground;
mod handle;
mod spec;

pub use foreground::{Foreground, InputWaiting, TerminalSignal};
pub use handle::{ScopedTerminal, Terminal, TerminalDriver, TerminalOutput};
pub use spec::{TerminalEnvironment, TerminalSize, TerminalSpec};
