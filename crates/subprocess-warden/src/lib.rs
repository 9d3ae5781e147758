//! The process that ends a tree when its host dies: a static program, and what it shares with the host.
//!
//! The program is a second set of modules of this package (`src/program`), which the build script compiles for the target
//! with cargo's own compiler and linker, without any library beside `core`; [`PROGRAM`] is its bytes. This library holds
//! what both sides are built from, so that neither can differ from the other:
//!
//! * [`protocol`]: what they say to each other
//! * [`child`] and [`clone`](mod@clone): everything between clone and exec, the same for the host's own children and for a
//!   warden's
//! * [`report`]: what such a child tells its parent
//! * [`syscall`] and [`abi`]: raw calls, and the numbers of the kernel's interface
//!
//! Everything else about a warden, from the host's side, is in dsh-subprocess-sys.

#![no_std]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "system calls take words: numbers, flags, descriptors and addresses alike, on 64-bit systems"
)]

#[cfg(not(target_os = "linux"))]
compile_error!("wardens run on Linux");

pub mod abi;
pub mod child;
pub mod clone;
pub mod protocol;
pub mod report;
pub mod syscall;

mod embedded;

pub use embedded::PROGRAM;
