//! The warden: a process that ends trees of processes when the host that started them is gone, or says so.
//!
//! One program, two roles. The host starts it once for each of its runtimes, as the *runtime warden* ([`runtime`]), and has
//! it fork a *tree warden* ([`tree`]) for each tree that no control group holds. Both are subreapers (prctl(2)): a process
//! below a tree warden stays below it whatever it does, and if the tree warden is killed, its tree falls to the runtime
//! warden, which ends it. If the runtime warden is killed, every tree warden ends its tree. If the host ends, all of them see
//! it.
//!
//! It is started with its end of the socket that leads to the host as descriptor 3 and the null device as 0 to 2, with
//! nothing else, and speaks [`protocol`]. With `group` as its argument it stays in the session of the host, with a process
//! group of its own; otherwise it leaves both.
//!
//! There is no allocation here, no thread but [`exec_watch`]'s, and no library but `core`. Everything that comes from outside
//! is of bounded size, and every loop ends by itself or waits for something to happen.

#![no_std]
#![no_main]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "system calls take words: numbers, flags, descriptors and addresses alike, on 64-bit systems"
)]
#![expect(
    clippy::large_stack_arrays,
    reason = "all large arrays are parts of `Memory`, which is in a static"
)]

#[expect(dead_code, reason = "what the host alone uses")]
#[path = "../abi.rs"]
mod abi;
#[expect(dead_code, reason = "what the host alone uses")]
#[path = "../child.rs"]
mod child;
#[path = "../clone.rs"]
mod clone;
#[expect(
    dead_code,
    reason = "what the host alone uses, in the form that its library has"
)]
#[path = "../protocol.rs"]
mod protocol;
#[path = "../report.rs"]
mod report;
#[path = "../syscall.rs"]
mod syscall;

mod descriptor;
mod directories;
mod directory;
mod exec_watch;
mod futex;
mod group;
mod ladder;
mod launch;
mod link;
mod mem;
mod members;
mod memory;
mod pid_set;
mod poll;
mod process;
mod region;
mod removal;
mod runtime;
mod start;
mod table;
mod text;
mod tree;

use memory::Memory;

/// What [`start`] calls.
fn run(option: &[u8], memory: &mut Memory) -> ! {
    process::take_no_signals();
    // The host waits for the process it has started, at once; what goes on is none of its children. So a host that waits for
    // all the children it has never waits for a warden.
    match process::fork() {
        Ok(0) => runtime::run(option == b"group", memory),
        Ok(_) => process::exit(0),
        Err(_) => process::exit(1),
    }
}
