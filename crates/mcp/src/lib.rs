//! The Model Context Protocol over owned process trees.
#![forbid(unsafe_code)]

pub mod client;
pub mod server;
