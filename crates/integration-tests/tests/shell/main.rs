//! Shell commands and jobs on real processes, on each ownership tier: what harnesses met with, and what the contract says.
//!
//! A test named `as_root_…` needs a writable control group; all others work for everyone.
#![forbid(unsafe_code)]

mod background;
mod completion;
mod contract;
mod ending;
mod environment;
#[path = "../local/fixture/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "the tests of the local world use the rest of it"
)]
mod fixture;
mod followers;
mod host_death;
mod long_commands;
mod output;
mod prompts;
mod signals;
mod soak;
mod stage;
mod stateless;
mod stdin;
mod workdir;
