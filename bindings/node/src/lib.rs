//! The native half of the Node.js package `dsh-subprocess`: the seam's local world, as objects and promises.
//!
//! The other half, in TypeScript, gives it the shape that callers see. What is here is what needs Rust: the runtime itself,
//! and `executor`, which runs its futures on the event loop of the JavaScript thread that asks.
#![cfg(unix)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "what comes from JavaScript is a value, whatever is done with it"
)]
#![expect(
    unreachable_pub,
    reason = "what is exported to JavaScript is public by name, and no other crate builds on this one"
)]

mod environment;
mod error;
mod executor;
mod output;
mod pipes;
mod process;
mod runtime;
mod spec;
mod terminal;
mod tree;
mod waiting;

use napi_derive::napi;

/// Scrubs an environment.
#[napi]
pub fn scrub(ambient: String) -> String {
    environment::scrub(&ambient)
}
