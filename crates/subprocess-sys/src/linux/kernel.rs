//! What this kernel, and whatever filters its system calls, can do.

use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use dsh_subprocess_warden::syscall::{check, syscall};

use super::pidfd;

/// The features that are used where they are there. Each has another way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each with a name"
)]
pub struct Kernel {
    /// `clone3` with `CLONE_CLEAR_SIGHAND` (Linux 5.5).
    pub clone3: bool,
    /// `CLONE_INTO_CGROUP` (Linux 5.7).
    pub clone_into_cgroup: bool,
    /// `close_range` (Linux 5.9).
    pub close_range: bool,
    /// `cgroup.kill` (Linux 5.14).
    pub cgroup_kill: bool,
    /// `PIDFD_GET_INFO` with the exit status (Linux 6.15).
    pub pidfd_get_info: bool,
    /// `memfd_create` (Linux 3.17), for a program that is executed from memory. A policy may still forbid that, which is seen
    /// when it is tried.
    pub memfd_exec: bool,
}

impl Kernel {
    /// Returns what the kernel can do. It is probed at the first call, without starting anything.
    pub fn get() -> Self {
        static KERNEL: OnceLock<Kernel> = OnceLock::new();
        *KERNEL.get_or_init(Self::probe)
    }

    fn probe() -> Self {
        let release = release();
        // A null structure of size 0 is refused with EINVAL where the call is known, and with ENOSYS, or EPERM from a
        // security filter, where it is not.
        // SAFETY: the kernel refuses the size before it looks at the pointer.
        let clone3 = check(unsafe { syscall(libc::SYS_clone3, [0; 6]) }) == Err(libc::EINVAL);
        // An empty range at the top of the numbers closes nothing.
        // SAFETY: close_range takes integers.
        let close_range = check(unsafe {
            syscall(
                libc::SYS_close_range,
                [u32::MAX as usize, u32::MAX as usize, 0, 0, 0, 0],
            )
        })
        .is_ok();
        // A null name is looked at after the flags, and refused with EFAULT.
        // SAFETY: the kernel reads the name by itself, and copes with an address that is none.
        let memfd_exec = check(unsafe { syscall(libc::SYS_memfd_create, [0; 6]) }) == Err(libc::EFAULT);
        let clone3 = clone3 && release >= (5, 5);
        Self {
            clone3,
            clone_into_cgroup: clone3 && release >= (5, 7),
            close_range,
            cgroup_kill: release >= (5, 14),
            pidfd_get_info: has_exit_info(),
            memfd_exec,
        }
    }
}

/// Returns the kernel's version, as far as it decides what a probe cannot see.
pub fn release() -> (u32, u32) {
    let uname = rustix::system::uname();
    let text = uname.release().to_string_lossy();
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Tells whether the ioctl knows this process's own descriptor. The exit part came one release later than the rest.
fn has_exit_info() -> bool {
    release() >= (6, 15)
        && pidfd::open(rustix::process::getpid()).is_ok_and(|itself| pidfd::knows_info(itself.as_raw_fd()))
}

/// Returns the id of this boot, which no other boot of any machine has: 32 digits in groups (random(4)). `None` without
/// `/proc`.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_boot_has_an_id_that_stays_the_same() {
        let id = super::boot_id().expect("an id");
        assert_eq!((id.len(), Some(&id)), (36, super::boot_id().as_ref()));
    }
}
