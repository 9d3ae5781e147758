//! The program, run as a host runs it: what it says, whom it signals, and what it leaves behind.
//!
//! The host's end is the real one (dsh-subprocess-sys). The host itself is a stand-in where it is to end: the wardens are
//! handed a pidfd of some other process.
//!
//! A test named `as_root_…` needs a writable control group; all others work for everyone.
#![forbid(unsafe_code)]

mod answers;
mod connection;
mod cost;
mod endings;
mod fixture;
mod groups;
mod packets;
mod parts;
mod removal;
mod signals;
