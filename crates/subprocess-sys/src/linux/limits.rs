//! Limits that bear on running processes.

use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

/// Returns the longest single argument or variable, in bytes, its final NUL included (execve(2), `MAX_ARG_STRLEN`).
pub fn argument_bytes() -> usize {
    32 * page_size()
}

/// Returns how many bytes all arguments and variables may take together, with their NULs and a pointer each (execve(2)).
pub fn arguments_total_bytes() -> u64 {
    const LEAST: u64 = 128 * 1024;
    const MOST: u64 = 6 * 1024 * 1024;
    let stack = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
    (stack / 4).clamp(LEAST, MOST)
}

/// Returns how many descriptors this process may have open: now, and at most. `None` is no limit.
pub fn descriptors() -> (Option<u64>, Option<u64>) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current, limit.maximum)
}

/// Returns how many processes this user may have: now, and at most. `None` is no limit.
pub fn processes() -> (Option<u64>, Option<u64>) {
    let limit = getrlimit(Resource::Nproc);
    (limit.current, limit.maximum)
}
