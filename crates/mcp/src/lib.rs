//! The Model Context Protocol over owned process trees.
#![forbid(unsafe_code)]

pub mod client;
pub mod server;

/// Compiles the example of the page about the server.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/mcp.md")]
struct ServerPage;
