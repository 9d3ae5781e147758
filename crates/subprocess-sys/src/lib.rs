//! The operating-system calls of dsh-subprocess, by topic. Knows nothing of the seam.
//!
//! All of the project's `unsafe` code is here and in dsh-subprocess-warden, on which this builds. A platform has a directory of its own with the same topics in it; today
//! there is [`linux`](self), for `x86_64` and `aarch64`.
//!
//! * [`spawn`]: one clone, one exec, and what happens in between
//! * [`pidfd`]: waiting for a process and signalling it without naming a number that could be reused
//! * [`cgroup`]: control groups as owners of trees
//! * [`directory`]: directories by descriptor, and their removal
//! * [`table`]: the process table: sessions, members, commands, holders of a pipe
//! * [`event`]: readiness, and waking the thread that waits for it
//! * [`mod@file`]: private files, and whether a file can be executed
//! * [`foreground`]: whether the foreground group of a terminal waits for input
//! * [`pipe`]: pipes, and writing to one without `SIGPIPE`
//! * [`pty`]: terminals, by the end that the host has
//! * [`signal`]: masks and names
//! * [`identity`]: which process this is, also after a fork
//! * [`kernel`]: what this kernel can do
//! * [`limits`]: limits that bear on running processes
//! * [`steps`]: where tests have a host killed
//! * [`orphans`]: where processes go whose parent has ended
//! * [`warden`]: starting wardens, and talking to them

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "system calls take words: numbers, flags, descriptors and addresses alike, on 64-bit systems"
)]

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::{
    cgroup, directory, event, file, foreground, identity, kernel, limits, orphans, pidfd, pipe, pty, signal,
    spawn, steps, table, warden,
};

/// An error number.
pub use rustix::io::Errno;

#[cfg(not(target_os = "linux"))]
compile_error!(
    "dsh-subprocess runs on Linux (x86_64 and aarch64); other systems are further directories beside src/linux"
);
