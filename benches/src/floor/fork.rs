//! A copy of this process that does one thing.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Pid;

/// Forks a child that calls `work` and exits with 0, or with 101 where that panics.
///
/// # Errors
///
/// When this process has another thread, which would not be in the child, whatever it holds; and when the fork fails.
pub(crate) fn fork(work: impl FnOnce()) -> Result<Pid> {
    let threads = fs::read_dir("/proc/self/task")
        .context("the threads of this process cannot be counted")?
        .count();
    ensure!(threads == 1, "a process of {threads} threads is not forked");
    // SAFETY: this is the only thread, so no lock is held by one that the child lacks: it may do what the parent may.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let code = if catch_unwind(AssertUnwindSafe(work)).is_ok() {
            0
        } else {
            101
        };
        // SAFETY: nothing runs after it; what the parent has buffered is the parent's to write.
        unsafe { libc::_exit(code) };
    }
    Pid::from_raw(forked)
        .filter(|_| forked > 0)
        .ok_or_else(io::Error::last_os_error)
        .context("the fork failed")
}
