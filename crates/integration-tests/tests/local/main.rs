//! Process tests of the local world: what it promises, shown on real processes, on each ownership tier.
//!
//! A test named `as_root_…` needs a writable control group, or another user to become; all others work for everyone.
#![forbid(unsafe_code)]

mod ambient;
mod block_on;
mod chains;
mod completion;
mod conformance;
mod control;
mod cost;
mod cut_drain;
mod descriptors;
mod ending;
mod environment;
mod exhaustion;
mod failures;
mod faults;
mod fixture;
mod handshake;
mod hanging;
mod host_death;
mod host_process;
mod init;
mod janitor;
mod kill;
mod output;
mod reaping;
mod remains;
mod reuse;
mod signals;
mod spill;
mod spill_drain;
mod spill_parent;
mod stdin;
mod steps;
mod terminal;
mod threads;
mod unkillable;
mod wakers;
