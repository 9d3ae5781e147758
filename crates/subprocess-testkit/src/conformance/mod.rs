//! The contract in code: checks that every world must pass, and a macro that makes a test of each.
//!
//! A provider says how its world is made and which guarantees it gives ([`World`], [`Guarantees`]), and writes one line:
//! [`conformance_suite!`](crate::conformance_suite). Each check is one test, named after the contract's item (or the
//! reported case, `o4_…`) and the behaviour it proves. The checks know nothing but the seam: they run a `probe` program in
//! the world, wait for its lines and its end, and need no executor, which is a guarantee, too.
//!
//! Every wait is [bounded](within). What only one kind of world can have, such as a host that runs out of descriptors, is
//! tested by its provider.
//!
//! # The probe
//!
//! | call | does |
//! |---|---|
//! | `exit N` | exits with that code |
//! | `argv …`, `env` | writes what it was given, a NUL after each |
//! | `echo WORD…`, `cat` | writes its words in a line; copies its input |
//! | `flood N [--stderr]`, `chunks N` | writes N bytes of the numbered stream, at once or byte by byte |
//! | `pieces HEX…` | writes the next piece for each byte it reads |
//! | `sleep` | says `ready PID`, and stays |
//! | `ignore-term` | says `ready PID`, and stays; only `SIGKILL` ends it |
//! | `trap-term TEXT MS` | says `ready PID`; on `SIGTERM` writes the text, takes that long, exits 0 |
//! | `tree N [--depth D]` | starts N chains of D processes that hold none of its streams, says `ready PID…`, and stays |
//! | `hold-stdout [CALL…]` | starts another call (`sleep`) that holds its streams, and exits 0 |
//! | `new-group` | starts `sleep` in a process group of its own, and stays |
//! | `setsid-escape` | starts a daemon in a session of its own that says `ready PID` and stays; stays itself |
//! | `stop-member` | says `stopped PID` of a child that has stopped itself, and stays |
//!
//! On a terminal, beside some of those:
//!
//! | call | does |
//! |---|---|
//! | `terminal facts` | says which of these hold: its streams are `terminals`, it leads a `session`, its group is in the `foreground`, the terminal is its `controlling` one, no `signals` are ignored or blocked |
//! | `terminal size` | writes rows and columns, first thing |
//! | `terminal watch-size` | writes them again for each `SIGWINCH`, and stays |
//! | `terminal signals` | says `ready`; writes `got NAME` for each signal but `SIGKILL`, and stays |
//! | `terminal lines` | turns the echo off, says `ready`, copies line by line, and stays |
//! | `terminal raw CALL…` | lets bytes pass both ways as they are, says `ready`, and does the call: `cat`, `sleep`, `pieces` |
//! | `terminal raw cat-after-resize` | the same, and copies its input from the first `SIGWINCH` on |
//!
//! A world without ids writes any word in place of a pid.

mod child;
mod consumer;
mod disposal;
mod environment;
mod lookup;
mod outcome;
mod output;
mod session;
mod spawn;
mod spill;
mod stdio;
mod suite;
mod terminal_end;
mod terminal_foreground;
mod terminal_input;
mod terminal_output;
mod terminal_spawn;
mod termination;
mod watchdog;
mod world;

pub use suite::*;
pub use watchdog::{BOUND, run, within};
pub use world::{Guarantees, World};
