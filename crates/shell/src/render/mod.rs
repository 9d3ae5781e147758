//! What a model sees of a command: text made of what was collected, and nothing else. Pure: no I/O and no clock.
//!
//! [`render`] lays out one call, whether it has ended or not:
//!
//! ```text
//! what it printed
//! [stderr]
//! what it printed there
//! [output truncated; full output: /where/it/is]
//! [stderr output truncated; full output: (unavailable)]
//! a note
//! [timed out after 1500ms]
//! [aborted]
//! [exit code: 0]
//! ```
//!
//! Lines that do not apply are left out, except the last: it is always there and always one of four, so a command
//! that prints such a line itself cannot pass it off as its status. [`parse_exit_status`] reads it back. A command that
//! printed nothing is shown as `(no output)`.
//!
//! On the way, output is [folded](fold) as a terminal would show it, escape sequences are gone, and an over-long line is
//! [clipped](clip_lines). The bytes themselves stay as they were, in the readers and the spill.

mod clip;
mod excerpt;
mod fold;
mod input;
mod layout;
mod status;
#[cfg(test)]
mod tests;

pub use clip::{Clipped, clip_lines};
pub use fold::{Folder, LONGEST_SEQUENCE, WIDEST_ROW, fold};
pub use input::{RenderInput, StreamView, Style, StyleError, Whole};
pub use layout::{Rendered, Shown, render};
pub use status::{ParsedExit, parse_exit_status};
