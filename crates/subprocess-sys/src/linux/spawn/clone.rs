//! The parent's side of a spawn.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::futex;

use super::super::kernel::Kernel;
use super::super::syscall::check;
use super::super::{pidfd, signal};
use super::child::{self, INHERIT, MERGE, Order};
use super::program::{Descriptor, ExecFailure, Launch, Program, Report};
use super::stack::Stack;

/// What became of a spawn within its bound.
#[derive(Debug)]
pub enum Started {
    /// The program runs.
    Running(Running),
    /// It could not be executed. The child has been reaped, unless somebody else did it.
    Failed(ExecFailure, Program),
    /// The child is still on its way to the program.
    Pending(Pending),
}

/// A child that runs its program.
#[derive(Debug)]
pub struct Running {
    /// Its pid, which is also the id of its session and its process group where `session_error` is `None`.
    pub pid: Pid,
    /// Its descriptor.
    pub pidfd: OwnedFd,
    /// Why the child has no session of its own.
    pub session_error: Option<Errno>,
}

/// Why no child was made at all.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The stack for the child could not be mapped.
    #[error("no memory for the stack of a child")]
    Stack(#[source] Errno),
    /// The clone failed.
    #[error("the clone failed")]
    Clone(#[source] Errno),
}

/// Clones a child and waits until it runs its program, for at most `bound`.
///
/// It may be called from any thread. All signals are blocked on that thread for the length of the clone itself.
///
/// ```
/// use dsh_subprocess_sys::{kernel::Kernel, pidfd, pipe, spawn::{Descriptor, Launch, Program, Started, start}};
/// use std::{os::fd::AsFd, time::Duration};
/// let program = Program::new([b"sh".as_slice(), b"-c", b"exit 7"], [], [b"/bin/sh".as_slice()], b"/");
/// let null = pipe::null_device()?;
/// let stdio = [Descriptor::From(null.as_fd()), Descriptor::Inherit, Descriptor::Inherit];
/// let launch = Launch { stdio, control: None, cgroup: None, join_cgroup: None };
/// match start(program, launch, Kernel::get(), Duration::from_secs(1))? {
///     Started::Running(child) => {
///         let end = pidfd::wait(&child.pidfd, pidfd::Wait::Block)?.expect("a blocking wait ends with a status");
///         assert_eq!(end.status, pidfd::Status::Exited(7));
///     }
///     other => panic!("sh starts at once: {other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When there is no child: no memory, no process (`EAGAIN`), no descriptor (`EMFILE`).
pub fn start(
    program: Program,
    launch: Launch<'_>,
    kernel: Kernel,
    bound: Duration,
) -> Result<Started, StartError> {
    let stack = Stack::take().map_err(StartError::Stack)?;
    let mut shared = Box::new(Shared {
        report: Report::new(),
        program,
        order: None,
    });
    let report = &raw const shared.report;
    let order = Order {
        arguments: shared.program.arguments(),
        environment: shared.program.environment(),
        candidates: shared.program.candidates(),
        cwd: shared.program.cwd(),
        stdio: launch.stdio.map(|descriptor| match descriptor {
            Descriptor::Inherit => INHERIT,
            Descriptor::Merge => MERGE,
            Descriptor::From(fd) => fd.as_raw_fd(),
        }),
        control: launch.control.map_or(-1, |fd| fd.as_raw_fd()),
        join_cgroup: launch.join_cgroup.map_or(-1, |fd| fd.as_raw_fd()),
        reset_handlers: !kernel.clone3,
        close_range: kernel.close_range,
        report,
    };
    let order: *mut Order = shared.order.insert(order);
    let cgroup = launch.cgroup.map(|fd| fd.as_raw_fd());
    let mask = signal::block_all();
    // SAFETY: the order, the stack and all they point to live in `shared` and `stack`, which `Pending` keeps until the
    // kernel has cleared `alive`, or for ever.
    let cloned = unsafe { clone_child(&stack, order, report, cgroup, kernel) };
    drop(mask);
    match cloned {
        Ok((pid, pidfd)) => {
            let session_error = None;
            let pending = Pending {
                child: Some(Running {
                    pid,
                    pidfd,
                    session_error,
                }),
                memory: ManuallyDrop::new((shared, stack)),
            };
            Ok(pending.wait_for(Some(bound)))
        }
        Err(errno) => {
            stack.put_back();
            Err(StartError::Clone(errno))
        }
    }
}

/// A child that has not executed its program yet: its exec hangs, usually on a file system that does not answer.
///
/// Dropping it without waiting leaks the memory that the child still uses (about 150 KiB), since nothing else would be
/// sound.
#[derive(Debug)]
pub struct Pending {
    /// Taken by `wait_for` when the child leaves.
    child: Option<Running>,
    memory: ManuallyDrop<(Box<Shared>, Stack)>,
}

/// The memory that parent and child share, besides the stack.
#[derive(Debug)]
struct Shared {
    report: Report,
    program: Program,
    order: Option<Order>,
}

// SAFETY: the pointers in `order` point into the same value and are used by the child alone.
unsafe impl Send for Shared {}

impl Pending {
    /// Returns the child's pid.
    ///
    /// # Panics
    ///
    /// Never: the child is there until the value is consumed.
    pub fn pid(&self) -> Pid {
        self.child
            .as_ref()
            .expect("a pending child has not been taken")
            .pid
    }

    /// Returns the child's descriptor.
    ///
    /// # Panics
    ///
    /// Never: the child is there until the value is consumed.
    pub fn pidfd(&self) -> &OwnedFd {
        &self
            .child
            .as_ref()
            .expect("a pending child has not been taken")
            .pidfd
    }

    /// Waits until the child runs its program or has failed. It blocks the calling thread, and ends early only when the
    /// child is killed.
    pub fn wait(self) -> Started {
        self.wait_for(None)
    }

    fn wait_for(mut self, bound: Option<Duration>) -> Started {
        let deadline = bound.map(|bound| Instant::now() + bound);
        while self.memory.0.report.alive.load(Ordering::Acquire) != 0 {
            let left = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Started::Pending(self),
                Some(left) => rustix::time::Timespec::try_from(left).ok(),
                None => None,
            };
            // Not private: the kernel wakes with the shared form (clone(2), CLONE_CHILD_CLEARTID). Every reason to wake up
            // leads back to the test above.
            let _ = futex::wait(
                &self.memory.0.report.alive,
                futex::Flags::empty(),
                1,
                left.as_ref(),
            );
        }
        let mut running = self.child.take().expect("a pending child has not been taken");
        // SAFETY: `alive` is 0, so the child has left this memory; it is taken once, since `self` is not used again.
        let (shared, stack) = unsafe { ManuallyDrop::take(&mut self.memory) };
        stack.put_back();
        let Shared { report, program, .. } = *shared;
        if let Some(failure) = report.failure() {
            // It is exiting: this takes microseconds. ECHILD means that somebody else reaped it.
            let _ = pidfd::wait(&running.pidfd, pidfd::Wait::Block);
            return Started::Failed(failure, program);
        }
        let session = report.session_errno.load(Ordering::Relaxed);
        running.session_error = (session != 0).then(|| Errno::from_raw_os_error(session));
        Started::Running(running)
    }
}

/// `struct clone_args` (clone(2)), up to the field that came with Linux 5.7.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Flags beyond the 32 bits of the older call (clone(2)).
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// # Safety
///
/// `order` and what it points to, `report` and `stack` must stay as they are until `report.alive` is 0.
unsafe fn clone_child(
    stack: &Stack,
    order: *mut Order,
    report: *const Report,
    cgroup: Option<RawFd>,
    kernel: Kernel,
) -> Result<(Pid, OwnedFd), Errno> {
    let (bottom, length) = stack.range();
    let mut pidfd: RawFd = -1;
    // SAFETY: the field is part of the report that the caller keeps.
    let alive = unsafe { &raw const (*report).alive };
    let flags = (libc::CLONE_VM | libc::CLONE_PIDFD | libc::CLONE_CHILD_CLEARTID) as u64;
    let returned = if kernel.clone3 {
        let args = CloneArgs {
            flags: flags | CLONE_CLEAR_SIGHAND | if cgroup.is_some() { CLONE_INTO_CGROUP } else { 0 },
            pidfd: (&raw mut pidfd).expose_provenance() as u64,
            child_tid: alive.expose_provenance() as u64,
            exit_signal: libc::SIGCHLD as u64,
            stack: bottom.expose_provenance() as u64,
            stack_size: length as u64,
            cgroup: cgroup.map_or(0, |fd| fd as u64),
            ..CloneArgs::default()
        };
        // SAFETY: the arguments are complete, the child runs on the stack they name and never returns.
        unsafe { clone3(&args, child::run, order.cast()) }
    } else {
        // SAFETY: the top of the stack is one past its last byte, inside or at the end of the mapping.
        let top = unsafe { bottom.add(length) };
        let flags = flags as usize | libc::SIGCHLD as usize;
        // SAFETY: as above.
        unsafe {
            clone(
                flags,
                top,
                &raw mut pidfd,
                alive.cast_mut().cast(),
                child::run,
                order.cast(),
            )
        }
    };
    let pid = check(returned).map_err(Errno::from_raw_os_error)?;
    // SAFETY: the kernel made this descriptor for this call, and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("clone returns the child's pid to its parent");
    Ok((pid, pidfd))
}

type Entry = unsafe extern "C" fn(*mut c_void) -> !;

/// Makes the `clone3` call; the child calls `entry(data)` on its own stack.
///
/// # Safety
///
/// `args` must name a stack that nothing else uses, and what `entry` does with `data` must be sound.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3(args: &CloneArgs, entry: Entry, data: *mut c_void) -> usize {
    let returned;
    // SAFETY: the kernel keeps r12 and r13 for the child, which uses them to call `entry` with an aligned stack and an
    // outermost frame, and never comes back. The parent sees an ordinary system call.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as usize => returned,
            in("rdi") args,
            in("rsi") size_of::<CloneArgs>(),
            in("r12") entry,
            in("r13") data,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    returned
}

/// As [`clone3`], for aarch64.
///
/// # Safety
///
/// As [`clone3`] for x86_64.
#[cfg(target_arch = "aarch64")]
unsafe fn clone3(args: &CloneArgs, entry: Entry, data: *mut c_void) -> usize {
    let returned;
    // SAFETY: the kernel keeps x11 and x12 for the child, which uses them to call `entry` as the outermost frame and never
    // comes back. The parent sees an ordinary system call.
    unsafe {
        std::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x12",
            "blr x11",
            "brk 1",
            "2:",
            in("x8") libc::SYS_clone3 as usize,
            inlateout("x0") args as *const CloneArgs => returned,
            in("x1") size_of::<CloneArgs>(),
            in("x11") entry,
            in("x12") data,
        );
    }
    returned
}

/// Makes the older `clone` call, for kernels and containers that refuse `clone3`.
///
/// # Safety
///
/// As [`clone3`]; `top` is one past the last byte of the child's stack.
#[cfg(target_arch = "x86_64")]
unsafe fn clone(
    flags: usize,
    top: *mut u8,
    pidfd: *mut RawFd,
    child_tid: *mut c_void,
    entry: Entry,
    data: *mut c_void,
) -> usize {
    let returned;
    // SAFETY: as in `clone3`. The order of the arguments is x86_64's: flags, stack, parent_tid, child_tid, tls.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as usize => returned,
            in("rdi") flags,
            in("rsi") top,
            in("rdx") pidfd,
            in("r10") child_tid,
            in("r8") 0_usize,
            in("r12") entry,
            in("r13") data,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    returned
}

/// As [`clone`], for aarch64.
///
/// # Safety
///
/// As [`clone`] for x86_64.
#[cfg(target_arch = "aarch64")]
unsafe fn clone(
    flags: usize,
    top: *mut u8,
    pidfd: *mut RawFd,
    child_tid: *mut c_void,
    entry: Entry,
    data: *mut c_void,
) -> usize {
    let returned;
    // SAFETY: as in `clone3`. The order of the arguments is arm64's: flags, stack, parent_tid, tls, child_tid.
    unsafe {
        std::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x12",
            "blr x11",
            "brk 1",
            "2:",
            in("x8") libc::SYS_clone as usize,
            inlateout("x0") flags => returned,
            in("x1") top,
            in("x2") pidfd,
            in("x3") 0_usize,
            in("x4") child_tid,
            in("x11") entry,
            in("x12") data,
        );
    }
    returned
}
