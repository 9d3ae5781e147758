//! Linux.

pub mod cgroup;
pub mod directory;
pub mod event;
pub mod file;
pub mod foreground;
pub mod identity;
pub mod kernel;
pub mod limits;
pub mod orphans;
pub mod pidfd;
pub mod pipe;
pub mod pty;
pub mod signal;
pub mod spawn;
pub mod steps;
pub mod table;
pub mod warden;

mod abi;
mod descendants;
mod memory_file;
