//! One child by `clone(CLONE_VM | CLONE_VFORK)`: no page table is copied, and the caller sleeps until the child has executed
//! its program.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::ptr;

use anyhow::{Context as _, Result};

/// Bytes of the child's stack. What runs on it are a few system calls.
const STACK: usize = 64 * 1024;

/// A program with its arguments and this process's environment, as `execve` takes them.
pub(crate) struct Program {
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    /// Names a program by its absolute path, and its arguments.
    pub(crate) fn new<'a>(path: &'a str, arguments: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let arguments = std::iter::once(path)
            .chain(arguments)
            .map(|argument| CString::new(argument).with_context(|| format!("{argument:?} holds a NUL byte")))
            .collect::<Result<_>>()?;
        let environment = std::env::vars_os()
            .map(|(name, value)| {
                let entry = [name.into_vec(), value.into_vec()].join(&b'=');
                CString::new(entry).context("the environment holds a NUL byte")
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            arguments,
            environment,
        })
    }
}

/// Makes children, one at a time.
pub(crate) struct Cloner {
    /// In words of 16 bytes, as the stack must be aligned.
    stack: Vec<u128>,
    null: OwnedFd,
}

/// What the child reads from the memory it shares with its parent.
struct Order {
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    stdio: [RawFd; 3],
    /// Whether the standard input is a terminal that the new session is to have.
    has_terminal: bool,
}

impl Cloner {
    pub(crate) fn new() -> Result<Self> {
        let null = rustix::fs::open(
            c"/dev/null",
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .context("/dev/null cannot be opened")?;
        Ok(Self {
            stack: vec![0; STACK / size_of::<u128>()],
            null,
        })
    }

    /// Starts a program in a session of its own, with these streams and no other descriptor.
    ///
    /// A program that cannot be executed exits with 127.
    pub(crate) fn spawn(
        &mut self,
        program: &Program,
        stdout: BorrowedFd<'_>,
        stderr: BorrowedFd<'_>,
    ) -> Result<OwnedFd> {
        let stdio = [self.null.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()];
        self.start(program, stdio, false)
    }

    /// Starts a program in a session of its own, whose controlling terminal and only descriptor this is.
    ///
    /// A program that cannot be executed exits with 127, and so does one that cannot have the terminal.
    pub(crate) fn spawn_on(&mut self, program: &Program, terminal: BorrowedFd<'_>) -> Result<OwnedFd> {
        self.start(program, [terminal.as_raw_fd(); 3], true)
    }

    fn start(&mut self, program: &Program, stdio: [RawFd; 3], has_terminal: bool) -> Result<OwnedFd> {
        let list = |strings: &[CString]| -> Vec<*const c_char> {
            strings
                .iter()
                .map(|string| string.as_ptr())
                .chain([ptr::null()])
                .collect()
        };
        let arguments = list(&program.arguments);
        let environment = list(&program.environment);
        let order = Order {
            path: arguments[0],
            arguments: arguments.as_ptr(),
            environment: environment.as_ptr(),
            stdio,
            has_terminal,
        };
        let top = self.stack.as_mut_ptr_range().end;
        let mut pidfd: RawFd = -1;
        // SAFETY: the stack belongs to this value, which is borrowed for the call, and nothing else uses it. CLONE_VFORK
        // keeps this thread in the call until the child has executed a program or died, so the order and everything it
        // points to outlive the child's use of them. The child makes system calls only, and no signal handler
        // can run in it on this memory: the process has none but the standard library's for faults.
        let pid = unsafe {
            libc::clone(
                child,
                top.cast(),
                libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD,
                (&raw const order).cast_mut().cast(),
                &raw mut pidfd,
            )
        };
        if pid < 0 {
            return Err(io::Error::last_os_error()).context("the clone of the floor failed");
        }
        // SAFETY: the kernel made this descriptor for this call, and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(pidfd) })
    }
}

/// Runs in the child, on the parent's memory. What it returns is its exit code.
extern "C" fn child(order: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes an order and keeps it until this function has ended.
    let order = unsafe { &*order.cast::<Order>() };
    // SAFETY: setsid takes no arguments.
    unsafe { libc::setsid() };
    for (number, source) in (0..).zip(order.stdio) {
        // SAFETY: dup2 takes integers.
        if unsafe { libc::dup2(source, number) } < 0 {
            return 127;
        }
    }
    // SAFETY: TIOCSCTTY takes an integer.
    if order.has_terminal && unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } < 0 {
        return 127;
    }
    // SAFETY: close_range takes integers.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    // SAFETY: a NUL-terminated path and two null-terminated lists of NUL-terminated strings, which `spawn` keeps.
    unsafe { libc::execve(order.path, order.arguments, order.environment) };
    127
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::read;

    #[test]
    fn a_clone_runs_its_program_with_its_arguments_in_a_session_of_its_own() {
        let mut cloner = Cloner::new().expect("the cloner is made");
        let script = "read -r _ _ _ _ _ session _ < /proc/$$/stat; test $session = $$ && printf %s \"$1\"";
        let program =
            Program::new("/bin/sh", ["-c", script, "sh", "hello"]).expect("no argument holds a NUL byte");
        let mut out = Vec::new();
        let mut buffer = [0; 64];
        let total = read(&mut cloner, &program, &mut buffer, |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        });
        assert_eq!(total.expect("the shell succeeds"), 5);
        assert_eq!(out, b"hello");
    }

    #[test]
    fn a_program_that_is_not_there_fails() {
        let mut cloner = Cloner::new().expect("the cloner is made");
        let program = Program::new("/nonexistent", []).expect("no argument holds a NUL byte");
        let error = crate::floor::run(&mut cloner, &program).expect_err("there is no such program");
        assert!(
            error.to_string().contains("the child of the floor failed"),
            "{error:#}"
        );
    }
}
