//! What this kernel, and whatever filters its system calls, can do.

use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use super::pidfd;
use super::syscall::{check, syscall};

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
        let clone3 = clone3 && release >= (5, 5);
        Self {
            clone3,
            clone_into_cgroup: clone3 && release >= (5, 7),
            close_range,
            cgroup_kill: release >= (5, 14),
            pidfd_get_info: has_exit_info(),
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
