//! The command as its users meet it: the built binary, its streams, its exit status, its JSON.
//!
//! A test named `as_root_…` needs a writable control group; all others work for everyone.
#![forbid(unsafe_code)]

mod assets;
mod bad_input;
mod ending;
mod environment;
mod exec;
mod exit_status;
mod fixture;
mod input;
mod interrupts;
mod json;
mod limits;
mod mcp;
mod our_output;
mod output;
mod sh;
mod spill;
mod term;
mod timeout;
