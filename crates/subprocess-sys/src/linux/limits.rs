//! Limits that bear on running processes.

use dsh_subprocess_warden::abi::number;
use dsh_subprocess_warden::syscall::syscall;
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

/// Returns the soft and hard limits of the first `N` resources, in the order of their numbers; `u64::MAX` is no limit. A
/// resource that the kernel does not know has none.
pub(super) fn all<const N: usize>() -> [(u64, u64); N] {
    std::array::from_fn(|resource| {
        let mut limit = [u64::MAX; 2];
        let arguments = [0, resource, 0, (&raw mut limit).expose_provenance(), 0, 0];
        // SAFETY: no new limit; the old one is the two words that prlimit(2) writes.
        unsafe { syscall(number::prlimit64, arguments) };
        (limit[0], limit[1])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_in_the_order_of_their_numbers() {
        let all = all::<16>();
        let nofile = descriptors();
        let nproc = processes();
        let plain =
            |limit: (Option<u64>, Option<u64>)| (limit.0.unwrap_or(u64::MAX), limit.1.unwrap_or(u64::MAX));
        assert_eq!((all[6], all[7]), (plain(nproc), plain(nofile)));
    }
}
