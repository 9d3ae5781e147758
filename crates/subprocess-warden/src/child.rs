//! Everything between clone and exec.
//!
//! The rule of this file: the code runs in a child that shares the memory *and the thread-local storage* of a thread that
//! is running at the same time. So it makes raw system calls only; it does not allocate, lock, unwind, touch `errno`, or
//! call anything that might. It writes to its own stack and to the [`Report`] alone. It never returns.

use core::ffi::{c_char, c_void};
use core::ptr;
use core::sync::atomic::Ordering;

use crate::abi::errno::{EACCES, EBADF, ENODEV, ENOENT, ENOEXEC, ENOTDIR, ESTALE, ETIMEDOUT};
use crate::abi::flag::{
    AT_EMPTY_PATH, AT_FDCWD, F_DUPFD_CLOEXEC, F_SETFD, O_DIRECTORY, O_NONBLOCK, O_RDONLY, O_RDWR,
    RLIMIT_NOFILE, SIG_SETMASK, STATX_MODE, STATX_TYPE, TIOCSCTTY,
};
use crate::abi::number;
use crate::protocol::SAMPLE;
use crate::report::{FailedStep, Report};
use crate::syscall::{check, fd, syscall};

/// In [`Order::stdio`]: the child's descriptor stays the host's.
pub const INHERIT: i32 = -1;
/// In [`Order::stdio`]: the child's descriptor becomes a copy of its standard output.
pub const MERGE: i32 = -2;

/// The number of the control descriptor, right after the standard ones.
pub const CONTROL: i32 = 3;
/// The first number that is never kept.
const ABOVE_KEPT: usize = 4;

/// Where the child belongs on the terminal's side: which session and process group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Session {
    /// A session of its own, and so a process group of its own too, without a controlling terminal.
    Own,
    /// A session of its own, whose controlling terminal is the child's standard input.
    Terminal,
    /// Its parent's session and process group.
    Inherit,
    /// Its parent's session, and this process group there; 0 for one of its own.
    Group(i32),
}

/// A resource limit to set (setrlimit(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The resource's number.
    pub resource: u32,
    /// The limit that is enforced.
    pub soft: u64,
    /// What the soft one may be raised to.
    pub hard: u64,
}

/// What the child is to do.
#[derive(Debug)]
pub struct Order {
    /// `/bin/sh`, then argv, then null.
    pub arguments: *mut *const c_char,
    /// Null-terminated.
    pub environment: *const *const c_char,
    /// The paths to try, null-terminated.
    pub candidates: *const *const c_char,
    /// A descriptor of the program to run instead of the candidates, or -1. It is not passed on.
    pub exec_fd: i32,
    /// The working directory.
    pub cwd: *const c_char,
    /// The session and process group.
    pub session: Session,
    /// The first of the limits to set.
    pub limits: *const Limit,
    /// How many there are.
    pub limit_count: usize,
    /// Descriptors of 3 or more that become the standard ones, or [`INHERIT`] or [`MERGE`].
    pub stdio: [i32; 3],
    /// What becomes [`CONTROL`], or -1.
    pub control: i32,
    /// A descriptor of `cgroup.procs`, or -1.
    pub join_cgroup: i32,
    /// The signals that may need their default action back, as a set.
    pub reset: u64,
    /// Whether the kernel knows `close_range`.
    pub close_range: bool,
    /// Where failures are told.
    pub report: *const Report,
}

/// As the kernel's `struct sigaction` where nothing is set: `SIG_DFL`, no flags, an empty mask. The order of the fields
/// differs between architectures, and all of them are zero.
static DEFAULT_ACTION: [usize; 4] = [0; 4];
/// The kernel's `sigset_t` is 64 bits on both architectures.
const SIGSET_BYTES: usize = 8;
/// The signals from 1 to 31, as a set.
pub const STANDARD_SIGNALS: u64 = (1 << 31) - 1;

/// Runs in the child, on the child's stack.
///
/// # Safety
///
/// `order` points to an [`Order`] whose pointers stay valid until this process has executed a program or died.
pub unsafe extern "C" fn run(order: *mut c_void) -> ! {
    let order: *const Order = order.cast();
    // SAFETY: the caller's promise.
    let order = unsafe { &*order };
    // SAFETY: likewise.
    let report = unsafe { &*order.report };

    if let Err(errno) = enter_session(order.session) {
        report.session_errno.store(errno, Ordering::Relaxed);
    }

    if order.join_cgroup >= 0 {
        // "0" names the writer (cgroups(7)).
        let itself = [b'0'];
        // SAFETY: the buffer is one byte long.
        if let Err(errno) = check(unsafe {
            syscall(
                number::write,
                [fd(order.join_cgroup), itself.as_ptr().addr(), 1, 0, 0, 0],
            )
        }) {
            fail(report, FailedStep::JoinCgroup, errno, 0);
        }
    }

    let mut program = order.exec_fd;
    if program >= 0 {
        // Out of the way of all that is put in place below; and closed by the exec.
        // SAFETY: fcntl with an integer argument.
        match check(unsafe {
            syscall(
                number::fcntl,
                [fd(program), F_DUPFD_CLOEXEC as usize, ABOVE_KEPT, 0, 0, 0],
            )
        }) {
            Ok(copy) => program = copy as i32,
            Err(errno) => fail(report, FailedStep::Stdio, errno, 0),
        }
    }

    reset_signals(order.reset);
    for (number, &source) in [0_i32, 1, 2].iter().zip(&order.stdio) {
        if let Err(errno) = place(*number, source) {
            fail(report, FailedStep::Stdio, errno, 0);
        }
    }
    if order.session == Session::Terminal
        && let Err(errno) = take_terminal()
    {
        fail(report, FailedStep::ControllingTerminal, errno, 0);
    }
    let mut kept = 3_usize;
    if order.control >= 0 {
        if let Err(errno) = place_control(order.control) {
            fail(report, FailedStep::Stdio, errno, 0);
        }
        kept = ABOVE_KEPT;
    }
    // Closed now, and not by close-on-exec: if the exec hangs, a copy of another child's pipe must not hang with it and
    // keep that child from its end of file.
    if let Err(errno) = close_all(order.close_range, kept, program) {
        fail(report, FailedStep::CloseDescriptors, errno, 0);
    }
    // After the descriptors, whose numbers one of the limits bounds.
    if let Err(errno) = set_limits(order) {
        fail(report, FailedStep::Limits, errno, 0);
    }
    // The dispositions are the default ones now, so a signal sent since the clone ends the child; and one sent while the
    // steps below hang ends it too.
    let none: u64 = 0;
    // SAFETY: the new set is eight bytes; no old one is asked for.
    unsafe {
        syscall(
            number::rt_sigprocmask,
            [
                SIG_SETMASK as usize,
                (&raw const none).addr(),
                0,
                SIGSET_BYTES,
                0,
                0,
            ],
        );
    }
    // SAFETY: the path is NUL-terminated and outlives the call, by the caller's promise.
    if let Err(errno) = check(unsafe { syscall(number::chdir, [order.cwd.addr(), 0, 0, 0, 0, 0]) }) {
        report.mode.store(mode_of(order.cwd), Ordering::Relaxed);
        fail(report, FailedStep::EnterCwd, errno, 0);
    }
    if program >= 0 {
        let errno = execveat(program, order.arguments.wrapping_add(1), order.environment);
        fail(report, FailedStep::Exec, errno, 0);
    }
    execute(order, report)
}

/// Goes where the child belongs.
fn enter_session(session: Session) -> Result<(), i32> {
    match session {
        Session::Inherit => Ok(()),
        // A new session is a new process group too, and has no controlling terminal. It cannot fail for a process that was
        // just born (setsid(2)); a security filter can make it fail, and then the parent says what that costs.
        // SAFETY: setsid takes no arguments.
        Session::Own | Session::Terminal => check(unsafe { syscall(number::setsid, [0; 6]) }).map(drop),
        Session::Group(group) => {
            // SAFETY: setpgid takes integers.
            check(unsafe { syscall(number::setpgid, [0, fd(group), 0, 0, 0, 0]) }).map(drop)
        }
    }
}

/// Makes the terminal on standard input the controlling one of the session that this process leads, and this process's group
/// the one in its foreground (`ioctl_tty(2)`). A terminal that another session has is not taken from it.
fn take_terminal() -> Result<(), i32> {
    // SAFETY: this request takes an integer.
    check(unsafe { syscall(number::ioctl, [0, TIOCSCTTY as usize, 0, 0, 0, 0]) }).map(drop)
}

/// Sets the limits of this process. The memory is shared with the parent, its limits are not.
fn set_limits(order: &Order) -> Result<(), i32> {
    let mut index = 0_usize;
    while index < order.limit_count {
        // SAFETY: the list is as long as the order says.
        let limit = unsafe { &*order.limits.wrapping_add(index) };
        let new = [limit.soft, limit.hard];
        // SAFETY: the new limit is two words; the old one is not asked for.
        check(unsafe {
            syscall(
                number::prlimit64,
                [0, limit.resource as usize, new.as_ptr().addr(), 0, 0, 0],
            )
        })?;
        index = index.wrapping_add(1);
    }
    Ok(())
}

/// Tries each candidate in order, by the rules of `execvp` (exec(3)).
fn execute(order: &Order, report: &Report) -> ! {
    // The most telling failure so far: a file that is there and cannot be run says more than one that is not.
    let mut telling: Option<(usize, i32)> = None;
    let mut index = 0_usize;
    loop {
        // SAFETY: the list ends with a null, where the loop stops.
        let candidate = unsafe { *order.candidates.wrapping_add(index) };
        if candidate.is_null() {
            break;
        }
        let arguments = order.arguments.wrapping_add(1);
        match execve(candidate, arguments, order.environment) {
            ENOEXEC => {
                let binary = sample(report, candidate);
                if binary {
                    report.mode.store(mode_of(candidate), Ordering::Relaxed);
                    fail(report, FailedStep::Exec, ENOEXEC, index);
                }
                // SAFETY: the list starts with the shell and holds at least one argument after it.
                let shell = unsafe { *order.arguments };
                // SAFETY: likewise; the list belongs to this spawn alone, and the parent does not read it.
                unsafe { arguments.write(candidate) };
                let errno = execve(shell, order.arguments, order.environment);
                fail(report, FailedStep::ExecShell, errno, index);
            }
            // Not here; or on a file system that does not answer, which the search passes over as glibc's does.
            errno @ (ENOENT | EACCES | ENOTDIR | ESTALE | ENODEV | ETIMEDOUT) => {
                let telling_now = errno == EACCES || (errno == ENOENT && mode_of(candidate) != 0);
                if telling.is_none() && telling_now {
                    telling = Some((index, errno));
                }
                if telling.is_none() && index == 0 && errno == ENOTDIR {
                    report.errno.store(errno, Ordering::Relaxed);
                }
            }
            errno => {
                report.mode.store(mode_of(candidate), Ordering::Relaxed);
                fail(report, FailedStep::Exec, errno, index);
            }
        }
        index = index.wrapping_add(1);
    }
    let Some((index, errno)) = telling else {
        let first = report.errno.load(Ordering::Relaxed);
        let errno = if index == 1 && first != 0 { first } else { ENOENT };
        fail(report, FailedStep::Exec, errno, 0)
    };
    // SAFETY: the index was in the list before.
    let candidate = unsafe { *order.candidates.wrapping_add(index) };
    report.mode.store(mode_of(candidate), Ordering::Relaxed);
    if errno == ENOENT {
        sample(report, candidate);
    }
    fail(report, FailedStep::Exec, errno, index)
}

/// Executes, or returns the error number.
fn execve(path: *const c_char, arguments: *mut *const c_char, environment: *const *const c_char) -> i32 {
    // SAFETY: a NUL-terminated path and two null-terminated lists, by the promise made to `run`.
    let returned = unsafe {
        syscall(
            number::execve,
            [path.addr(), arguments.addr(), environment.addr(), 0, 0, 0],
        )
    };
    check(returned).err().unwrap_or(0)
}

/// Executes an open file, or returns the error number.
fn execveat(program: i32, arguments: *mut *const c_char, environment: *const *const c_char) -> i32 {
    // SAFETY: an empty path, which stands for the descriptor, and two null-terminated lists, by the promise made to `run`.
    let returned = unsafe {
        syscall(
            number::execveat,
            [
                fd(program),
                c"".as_ptr().addr(),
                arguments.addr(),
                environment.addr(),
                AT_EMPTY_PATH as usize,
                0,
            ],
        )
    };
    check(returned).err().unwrap_or(0)
}

/// Gives signals their default action. `CLONE_CLEAR_SIGHAND` resets handlers and leaves ignored signals ignored.
fn reset_signals(set: u64) {
    let mut left = set;
    while left != 0 {
        let number = left.trailing_zeros().wrapping_add(1) as usize;
        left &= left.wrapping_sub(1);
        // SAFETY: a zeroed action; SIGKILL, SIGSTOP and the numbers of no signal refuse it, which changes nothing.
        unsafe {
            syscall(
                number::rt_sigaction,
                [number, (&raw const DEFAULT_ACTION).addr(), 0, SIGSET_BYTES, 0, 0],
            );
        }
    }
}

/// Puts one standard descriptor in place.
fn place(number: i32, source: i32) -> Result<(), i32> {
    if source == INHERIT {
        // A descriptor that the host marked close-on-exec is inherited all the same: that was asked for.
        // SAFETY: fcntl with an integer argument.
        return match check(unsafe { syscall(number::fcntl, [fd(number), F_SETFD as usize, 0, 0, 0, 0]) }) {
            Ok(_) => Ok(()),
            Err(EBADF) => open_null(number),
            Err(errno) => Err(errno),
        };
    }
    let source = if source == MERGE { 1 } else { source };
    // SAFETY: dup3 takes integers. The two differ: sources are 3 or more, or 1 for 2.
    check(unsafe { syscall(number::dup3, [fd(source), fd(number), 0, 0, 0, 0]) }).map(drop)
}

/// Puts the control descriptor in place. The standard ones are, so nothing is overwritten that is still needed.
fn place_control(source: i32) -> Result<(), i32> {
    if source == CONTROL {
        // It has the right number already, and would be closed by the exec.
        // SAFETY: fcntl with an integer argument.
        return check(unsafe { syscall(number::fcntl, [fd(source), F_SETFD as usize, 0, 0, 0, 0]) })
            .map(drop);
    }
    // SAFETY: dup3 takes integers, which differ.
    check(unsafe { syscall(number::dup3, [fd(source), fd(CONTROL), 0, 0, 0, 0]) }).map(drop)
}

/// Opens the null device in place of a descriptor that the host has closed.
fn open_null(number: i32) -> Result<(), i32> {
    // SAFETY: a NUL-terminated path.
    let opened = check(unsafe {
        syscall(
            number::openat,
            [
                fd(AT_FDCWD),
                c"/dev/null".as_ptr().addr(),
                O_RDWR as usize,
                0,
                0,
                0,
            ],
        )
    })?;
    if opened == fd(number) {
        return Ok(());
    }
    // SAFETY: dup3 takes integers, which differ.
    check(unsafe { syscall(number::dup3, [opened, fd(number), 0, 0, 0, 0]) })?;
    // SAFETY: close takes an integer.
    unsafe { syscall(number::close, [opened, 0, 0, 0, 0, 0]) };
    Ok(())
}

/// Closes every descriptor from `first` on but one, which is not below `first`, or -1.
fn close_all(with_close_range: bool, first: usize, but: i32) -> Result<(), i32> {
    if with_close_range {
        let mut first = first;
        if but >= 0 {
            let but = but as usize;
            if but > first {
                close_numbers(first, but.wrapping_sub(1))?;
            }
            first = but.wrapping_add(1);
        }
        return close_numbers(first, u32::MAX as usize);
    }
    // The table of this process, by itself: the directory's own descriptor is in it and is closed last.
    let flags = O_RDONLY | O_DIRECTORY;
    // SAFETY: a NUL-terminated path.
    let listed = check(unsafe {
        syscall(
            number::openat,
            [
                fd(AT_FDCWD),
                c"/proc/self/fd".as_ptr().addr(),
                flags as usize,
                0,
                0,
                0,
            ],
        )
    });
    let Ok(directory) = listed else {
        return close_up_to_the_limit(first, but);
    };
    let mut entries = [0_u8; 2048];
    loop {
        // SAFETY: the buffer has the length that is said.
        let filled = check(unsafe {
            syscall(
                number::getdents64,
                [directory, entries.as_mut_ptr().addr(), entries.len(), 0, 0, 0],
            )
        })?;
        if filled == 0 {
            break;
        }
        let mut at = 0_usize;
        while at < filled {
            // struct linux_dirent64 (getdents(2)): inode 8, offset 8, length 2, type 1, then the name.
            let entry = entries.as_ptr().wrapping_add(at);
            // SAFETY: the kernel wrote whole entries into the first `filled` bytes.
            let length = unsafe { ptr::read_unaligned(entry.wrapping_add(16).cast::<u16>()) };
            if let Some(open) = number_of(entry.wrapping_add(19))
                && open >= first
                && open != directory
                && open != fd(but)
            {
                // SAFETY: close takes an integer.
                unsafe { syscall(number::close, [open, 0, 0, 0, 0, 0]) };
            }
            at = at.wrapping_add(length as usize);
        }
    }
    // SAFETY: close takes an integer.
    unsafe { syscall(number::close, [directory, 0, 0, 0, 0, 0]) };
    Ok(())
}

/// Closes a range of descriptors, both ends included.
fn close_numbers(first: usize, last: usize) -> Result<(), i32> {
    // SAFETY: close_range takes integers.
    check(unsafe { syscall(number::close_range, [first, last, 0, 0, 0, 0]) }).map(drop)
}

/// Without /proc: closes every number that the table can hold.
fn close_up_to_the_limit(first: usize, but: i32) -> Result<(), i32> {
    let mut limit = [0_u64; 2];
    // SAFETY: prlimit64 of this process writes the two fields of the old limit.
    check(unsafe {
        syscall(
            number::prlimit64,
            [0, RLIMIT_NOFILE as usize, 0, limit.as_mut_ptr().addr(), 0, 0],
        )
    })?;
    let end = if limit[0] < 1 << 20 {
        limit[0] as usize
    } else {
        1 << 20
    };
    let mut number = first;
    while number < end {
        if number != fd(but) {
            // SAFETY: close takes an integer.
            unsafe { syscall(number::close, [number, 0, 0, 0, 0, 0]) };
        }
        number = number.wrapping_add(1);
    }
    Ok(())
}

/// Reads a decimal number that a NUL ends.
fn number_of(mut digit: *const u8) -> Option<usize> {
    let mut number = 0_usize;
    loop {
        // SAFETY: the name of a directory entry is NUL-terminated, and the loop stops there.
        let byte = unsafe { *digit };
        match byte {
            0 => return Some(number),
            b'0'..=b'9' => {
                number = number
                    .wrapping_mul(10)
                    .wrapping_add(byte.wrapping_sub(b'0') as usize);
            }
            _ => return None,
        }
        digit = digit.wrapping_add(1);
    }
}

/// Copies the file's first bytes into the report, and tells whether they look like a binary: a NUL in the first line.
/// A shell that ran one would print nonsense.
fn sample(report: &Report, path: *const c_char) -> bool {
    // SAFETY: a NUL-terminated path. Non-blocking, in case it is a FIFO.
    let opened = check(unsafe {
        syscall(
            number::openat,
            [
                fd(AT_FDCWD),
                path.addr(),
                (O_RDONLY | O_NONBLOCK) as usize,
                0,
                0,
                0,
            ],
        )
    });
    let Ok(file) = opened else { return false };
    let buffer = report.sample.as_ptr();
    // SAFETY: the buffer is SAMPLE bytes of memory that is shared by atomics; the kernel writes it like another thread.
    let read = check(unsafe { syscall(number::read, [file, buffer.addr(), SAMPLE, 0, 0, 0]) }).unwrap_or(0);
    // SAFETY: close takes an integer.
    unsafe { syscall(number::close, [file, 0, 0, 0, 0, 0]) };
    report.sample_length.store(read as u32, Ordering::Relaxed);
    for byte in report.sample.iter().take(read) {
        match byte.load(Ordering::Relaxed) {
            0 => return true,
            b'\n' => return false,
            _ => {}
        }
    }
    false
}

/// Returns a file's type and permissions, or 0 where it cannot be reached.
fn mode_of(path: *const c_char) -> u32 {
    // struct statx has one layout everywhere (statx(2)): stx_mode is the two bytes at offset 28 of 256.
    let mut status = [0_u32; 64];
    // SAFETY: a NUL-terminated path and 256 writable bytes.
    let looked = check(unsafe {
        syscall(
            number::statx,
            [
                fd(AT_FDCWD),
                path.addr(),
                0,
                STATX_TYPE as usize | STATX_MODE as usize,
                status.as_mut_ptr().addr(),
                0,
            ],
        )
    });
    match looked {
        Ok(_) => status[7] & 0xffff,
        Err(_) => 0,
    }
}

/// Tells the parent what failed, and ends.
fn fail(report: &Report, step: FailedStep, errno: i32, candidate: usize) -> ! {
    report.errno.store(errno, Ordering::Relaxed);
    report.candidate.store(candidate as u32, Ordering::Relaxed);
    report.step.store(step.code(), Ordering::Release);
    loop {
        // SAFETY: exit_group takes an integer and does not return.
        unsafe { syscall(number::exit_group, [127, 0, 0, 0, 0, 0]) };
    }
}
