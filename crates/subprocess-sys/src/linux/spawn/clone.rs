//! The parent's side of a spawn.

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dsh_subprocess_warden::child::{self, INHERIT, MERGE, Order, STANDARD_SIGNALS};
use dsh_subprocess_warden::clone::{self, Call};
use dsh_subprocess_warden::report::Report;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::futex;

use super::super::kernel::Kernel;
use super::super::steps::{Step, step};
use super::super::{pidfd, signal};
use super::program::{Descriptor, ExecFailure, Launch, Program, Session};
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
    /// Its pid, which is also the id of its session and its process group where it was to have its own and `session_error`
    /// is `None`.
    pub pid: Pid,
    /// Its descriptor.
    pub pidfd: OwnedFd,
    /// Why the child is not in the session or the process group that was asked for.
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
/// use dsh_subprocess_sys::{kernel::Kernel, pidfd, pipe, spawn::{Descriptor, Launch, Program, Session, Started, start}};
/// use std::{os::fd::AsFd, time::Duration};
/// let program = Program::new([b"sh".as_slice(), b"-c", b"exit 7"], [], [b"/bin/sh".as_slice()], b"/");
/// let null = pipe::null_device()?;
/// let stdio = [Descriptor::From(null.as_fd()), Descriptor::Inherit, Descriptor::Inherit];
/// let launch = Launch { stdio, control: None, session: Session::Own, cgroup: None, join_cgroup: None };
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
    // From here on the memory is used by address, from two processes; it becomes a box again when the child has left it.
    let shared = NonNull::from(Box::leak(Box::new(Shared {
        report: Report::new(),
        program,
        order: None,
    })));
    let order = prepare(shared, launch, kernel);
    let cgroup = launch.cgroup.map(|fd| fd.as_raw_fd());
    step(Step::CloneNext);
    let mask = signal::block_all();
    // SAFETY: the order, the stack and all they point to stay as they are until the kernel has cleared `alive`: `Pending`
    // sees to that.
    let cloned = unsafe { clone_child(&stack, order, shared, cgroup, kernel) };
    drop(mask);
    match cloned {
        Ok((pid, pidfd)) => {
            step(Step::Cloned);
            let child = Running {
                pid,
                pidfd,
                session_error: None,
            };
            let pending = Pending {
                child,
                shared,
                stack: ManuallyDrop::new(stack),
            };
            Ok(pending.wait_for(Some(bound)))
        }
        Err(errno) => {
            stack.put_back();
            // SAFETY: it was leaked above, and no child was made that could use it.
            drop(unsafe { Box::from_raw(shared.as_ptr()) });
            Err(StartError::Clone(errno))
        }
    }
}

/// Writes the child's order beside the program it names.
fn prepare(mut shared: NonNull<Shared>, launch: Launch<'_>, kernel: Kernel) -> *mut Order {
    // SAFETY: the memory was just made, and nobody else knows it yet.
    let Shared {
        report,
        program,
        order,
    } = unsafe { shared.as_mut() };
    order.insert(Order {
        arguments: program.arguments(),
        environment: program.environment(),
        candidates: program.candidates(),
        exec_fd: program.file().map_or(-1, |file| file.as_raw_fd()),
        cwd: program.cwd(),
        session: match launch.session {
            Session::Own => child::Session::Own,
            Session::OwnTerminal => child::Session::Terminal,
            Session::Host => child::Session::Inherit,
            Session::OwnGroup => child::Session::Group(0),
        },
        limits: std::ptr::null(),
        limit_count: 0,
        stdio: launch.stdio.map(|descriptor| match descriptor {
            Descriptor::Inherit => INHERIT,
            Descriptor::Merge => MERGE,
            Descriptor::From(fd) => fd.as_raw_fd(),
        }),
        control: launch.control.map_or(-1, |fd| fd.as_raw_fd()),
        join_cgroup: launch.join_cgroup.map_or(-1, |fd| fd.as_raw_fd()),
        reset: if kernel.clone3 {
            STANDARD_SIGNALS | signal::ignored_realtime()
        } else {
            u64::MAX
        },
        close_range: kernel.close_range,
        report,
    })
}

/// A child that has not executed its program yet: its exec hangs, usually on a file system that does not answer.
///
/// Dropping it without waiting leaks the memory that the child still uses (about 150 KiB), since nothing else would be
/// sound.
#[derive(Debug)]
pub struct Pending {
    child: Running,
    /// Leaked, until the child has left it.
    shared: NonNull<Shared>,
    stack: ManuallyDrop<Stack>,
}

/// The memory that parent and child share, besides the stack.
#[derive(Debug)]
struct Shared {
    report: Report,
    program: Program,
    order: Option<Order>,
}

// SAFETY: what the pointer leads to is used by this value and, through atomics and lists of its own, by the child. Nothing
// in it belongs to a thread.
unsafe impl Send for Pending {}

impl Pending {
    /// Returns the child's pid.
    pub fn pid(&self) -> Pid {
        self.child.pid
    }

    /// Returns the child's descriptor.
    pub fn pidfd(&self) -> &OwnedFd {
        &self.child.pidfd
    }

    /// Waits until the child runs its program or has failed. It blocks the calling thread, and ends early only when the
    /// child is killed.
    pub fn wait(self) -> Started {
        self.wait_for(None)
    }

    fn wait_for(self, bound: Option<Duration>) -> Started {
        let deadline = bound.map(|bound| Instant::now() + bound);
        // SAFETY: the memory is there until this value says otherwise, and this field is only used as an atomic.
        let alive = unsafe { &(*self.shared.as_ptr()).report.alive };
        while alive.load(Ordering::Acquire) != 0 {
            let left = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Started::Pending(self),
                Some(left) => rustix::time::Timespec::try_from(left).ok(),
                None => None,
            };
            // Not private: the kernel wakes with the shared form (clone(2), CLONE_CHILD_CLEARTID). Every reason to wake up
            // leads back to the test above.
            let _ = futex::wait(alive, futex::Flags::empty(), 1, left.as_ref());
        }
        self.take()
    }

    /// Takes the memory back from a child that has left it.
    fn take(self) -> Started {
        let Self {
            mut child,
            shared,
            stack,
        } = self;
        ManuallyDrop::into_inner(stack).put_back();
        // SAFETY: it was leaked by `start`, `alive` is 0, and this value, which alone has the pointer, ends here.
        let Shared { report, program, .. } = *unsafe { Box::from_raw(shared.as_ptr()) };
        if let Some(failure) = ExecFailure::from_report(&report) {
            // It is exiting: this takes microseconds. ECHILD means that somebody else reaped it.
            let _ = pidfd::wait(&child.pidfd, pidfd::Wait::Block);
            return Started::Failed(failure, program);
        }
        let session = report.session_errno.load(Ordering::Relaxed);
        step(Step::Executed);
        child.session_error = (session != 0).then(|| Errno::from_raw_os_error(session));
        Started::Running(child)
    }
}

/// # Safety
///
/// `order` and what it points to, `shared` and `stack` must stay as they are until `alive` in the report is 0, and every
/// signal must be blocked.
unsafe fn clone_child(
    stack: &Stack,
    order: *mut Order,
    shared: NonNull<Shared>,
    cgroup: Option<RawFd>,
    kernel: Kernel,
) -> Result<(Pid, OwnedFd), Errno> {
    let (bottom, length) = stack.range();
    // SAFETY: the field is part of the memory that the caller keeps.
    let alive = unsafe { &raw const (*shared.as_ptr()).report.alive };
    let call = if kernel.clone3 {
        Call::Clone3 {
            cgroup: cgroup.unwrap_or(-1),
        }
    } else {
        Call::Clone
    };
    // SAFETY: the caller's promise.
    let cloned = unsafe { clone::clone_child(clone::Stack { bottom, length }, order, alive, call) };
    let (pid, pidfd) = cloned.map_err(Errno::from_raw_os_error)?;
    // SAFETY: the kernel made this descriptor for this call, and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let pid = Pid::from_raw(pid).expect("clone returns the child's pid to its parent");
    Ok((pid, pidfd))
}
