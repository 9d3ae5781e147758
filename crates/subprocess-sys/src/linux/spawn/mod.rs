//! One clone, one exec, and what happens in between.
//!
//! [`Program`] is prepared by the parent: every string the child needs, in one block of memory. [`start`] clones a child
//! that shares the parent's memory (so nothing is copied, whatever the size of the host), runs [`child`](dsh_subprocess_warden::child) on a
//! stack of its own, and ends in `execve`. The parent sleeps on a futex that the kernel clears when the child has left the
//! shared memory: by exec, or by dying.
//!
//! Why not `CLONE_VFORK`: it would stop the calling thread inside the kernel for as long as the exec takes, which on a
//! dead network file system is for ever. The futex gives the same wake-up at the same moment, and a bound.

mod clone;
mod program;
mod stack;

pub use clone::{Pending, Running, StartError, Started, start};
pub use program::{Descriptor, ExecFailure, FailedStep, Launch, Program, Session};
