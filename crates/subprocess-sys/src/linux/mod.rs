//! Linux.

pub mod cgroup;
pub mod event;
pub mod file;
pub mod identity;
pub mod kernel;
pub mod limits;
pub mod pidfd;
pub mod pipe;
pub mod signal;
pub mod spawn;
pub mod table;

mod syscall;
