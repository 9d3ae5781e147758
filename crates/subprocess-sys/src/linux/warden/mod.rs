//! Wardens, from the host's side: starting one, and talking to it.
//!
//! A warden is a process of another program ([`dsh_subprocess_warden`]), which outlives the host for as long as it takes to end
//! what the host has left. [`start`] runs one and leads to its [`Link`]; the [`protocol`] says what travels on that.
//! [`launch`] asks a tree warden for a child, as [`spawn::start`](crate::spawn::start) makes one without.

mod grace;
mod image;
mod launch;
mod link;
mod start;

pub use dsh_subprocess_warden::protocol;
pub use grace::GraceTable;
pub use launch::{LaunchError, NotStarted, end, launch, not_started};
pub use link::Link;
pub use start::{StartWardenError, start};
