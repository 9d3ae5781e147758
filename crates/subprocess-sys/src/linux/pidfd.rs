//! Processes by descriptor: a pidfd goes on naming the same process when its number is used again.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use dsh_subprocess_warden::syscall::{check, syscall};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
pub use rustix::process::{Pid, Signal};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It exited with this code, 0 to 255.
    Exited(u8),
    /// A signal ended it.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether there is a core dump.
        core_dumped: bool,
    },
}

/// What a wait gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// How the process ended.
    pub status: Status,
    /// Processor time in user mode, with that of the descendants it waited for.
    pub user: Duration,
    /// Processor time in the kernel, likewise.
    pub system: Duration,
    /// The largest resident memory, its own or a waited-for descendant's, in bytes.
    pub peak_memory_bytes: u64,
}

/// How to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Until the process ends; then reap it.
    Block,
    /// Not at all; reap it if it has ended.
    Reap,
    /// Not at all; leave it a zombie, so that its numbers stay taken.
    Look,
}

/// Opens a process.
///
/// # Errors
///
/// `ESRCH` where there is none, `EINVAL` or `ENOENT` for a thread that is not its process's first, `EMFILE`.
pub fn open(pid: Pid) -> Result<OwnedFd, Errno> {
    // No flags: PIDFD_NONBLOCK came with Linux 5.10, and every look at a pidfd here says itself whether it waits.
    pidfd_open(pid, PidfdFlags::empty())
}

/// Sends a signal.
///
/// # Errors
///
/// `ESRCH` when the process has been reaped, `EPERM`.
pub fn send(process: impl AsFd, signal: Signal) -> Result<(), Errno> {
    pidfd_send_signal(process, signal)
}

/// Sends a signal to a process by its number, for callers that cannot open it and know that the number is still its own.
///
/// # Errors
///
/// `ESRCH`, `EPERM`.
pub fn send_by_number(pid: Pid, signal: Signal) -> Result<(), Errno> {
    rustix::process::kill_process(pid, signal)
}

/// Tells whether a process has been reaped, so that its number may be another's.
pub fn is_reaped(process: impl AsFd) -> bool {
    let process = process.as_fd().as_raw_fd();
    // SAFETY: signal 0 is only checked (kill(2)); there is no information to go with it.
    let sent = check(unsafe { syscall(libc::SYS_pidfd_send_signal, [process as usize, 0, 0, 0, 0, 0]) });
    sent == Err(libc::ESRCH)
}

/// Tells whether a process still has a thread that can run: a zombie has none.
pub fn is_running(process: impl AsFd) -> bool {
    let process = process.as_fd();
    let mut polled = [PollFd::new(&process, PollFlags::IN)];
    !matches!(poll(&mut polled, Some(&Timespec::default())), Ok(1))
}

/// Waits for a child, by `waitid(P_PIDFD)`. `None` when it has not ended.
///
/// # Errors
///
/// `ECHILD` when somebody else reaped it, or the host ignores `SIGCHLD`.
pub fn wait(child: impl AsFd, how: Wait) -> Result<Option<End>, Errno> {
    let child = child.as_fd().as_raw_fd();
    let options = libc::WEXITED
        | match how {
            Wait::Block => 0,
            Wait::Reap => libc::WNOHANG,
            Wait::Look => libc::WNOHANG | libc::WNOWAIT,
        };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let arguments = [
        libc::P_PIDFD as usize,
        child as usize,
        info.as_mut_ptr().expose_provenance(),
        options as usize,
        usage.as_mut_ptr().expose_provenance(),
        0,
    ];
    loop {
        // The raw call, because the library's does not pass the fifth argument (waitid(2), "C library/kernel
        // differences").
        // SAFETY: both structures are writable and have the kernel's layout.
        match check(unsafe { syscall(libc::SYS_waitid, arguments) }) {
            Ok(_) => break,
            Err(libc::EINTR) => {}
            Err(errno) => return Err(Errno::from_raw_os_error(errno)),
        }
    }
    // SAFETY: zeroes are a valid value, and the kernel wrote over them.
    let info = unsafe { info.assume_init() };
    // SAFETY: likewise.
    let usage = unsafe { usage.assume_init() };
    // SAFETY: every kind of information that waitid gives has a pid, and zeroes have one of 0.
    if unsafe { info.si_pid() } == 0 {
        return Ok(None);
    }
    // SAFETY: likewise, a status.
    let status = unsafe { info.si_status() };
    let status = match info.si_code {
        libc::CLD_EXITED => Status::Exited(status as u8),
        code => Status::Signaled {
            signal: status,
            core_dumped: code == libc::CLD_DUMPED,
        },
    };
    Ok(Some(End {
        status,
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        peak_memory_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    }))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_usec).unwrap_or(0) * 1000,
    )
}

/// Sends a signal to the process group whose leader is held (`PIDFD_SIGNAL_PROCESS_GROUP` in `pidfd_send_signal(2)`, Linux 6.9).
///
/// # Errors
///
/// `EINVAL` on an older kernel, `ESRCH` when the group is empty, `EPERM` when no member may be signalled.
pub fn send_to_group(leader: impl AsFd, signal: Signal) -> Result<(), Errno> {
    const PROCESS_GROUP: usize = 1 << 2;
    let arguments = [
        leader.as_fd().as_raw_fd() as usize,
        signal.as_raw() as usize,
        0,
        PROCESS_GROUP,
        0,
        0,
    ];
    // SAFETY: it takes integers, and no information about the signal.
    let sent = unsafe { syscall(libc::SYS_pidfd_send_signal, arguments) };
    check(sent).map(drop).map_err(Errno::from_raw_os_error)
}

/// `struct pidfd_info` (linux/pidfd.h), as first released.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    credentials: [u32; 8],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)`.
const PIDFD_GET_INFO: usize = 0xc000_ff0b | (size_of::<PidfdInfo>() << 16);

/// How long a process is waited for that somebody else is about to have reaped.
const REAPING: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Returns how a process ended that has been reaped by somebody else, where the kernel keeps it.
pub fn reaped_status(process: impl AsFd) -> Option<Status> {
    let process = process.as_fd();
    let kept = || {
        let info = info(process.as_raw_fd(), PIDFD_INFO_EXIT)?;
        Some((info.mask & PIDFD_INFO_EXIT != 0).then(|| from_wait_status(info.exit_code)))
    };
    if let Some(status) = kept()? {
        return Some(status);
    }
    // Whoever reaps it is still at it: it is nobody else's child from the moment it is taken, and its status is kept at the
    // end of that, when its descriptors hang up (wait_task_zombie and release_task in kernel/exit.c). Microseconds, unless the
    // other thread has lost its processor.
    let _ = poll(&mut [PollFd::new(&process, PollFlags::empty())], Some(&REAPING));
    kept()?
}

pub(super) fn knows_info(process: RawFd) -> bool {
    info(process, 0).is_some()
}

fn info(process: RawFd, mask: u64) -> Option<PidfdInfo> {
    let mut info = PidfdInfo {
        mask,
        ..PidfdInfo::default()
    };
    let arguments = [
        process as usize,
        PIDFD_GET_INFO,
        (&raw mut info).expose_provenance(),
        0,
        0,
        0,
    ];
    // SAFETY: the structure is writable and as long as the request's number says.
    check(unsafe { syscall(libc::SYS_ioctl, arguments) }).ok()?;
    Some(info)
}

fn from_wait_status(status: i32) -> Status {
    let signal = status & 0x7f;
    if signal == 0 {
        return Status::Exited((status >> 8) as u8);
    }
    Status::Signaled {
        signal,
        core_dumped: status & 0x80 != 0,
    }
}
