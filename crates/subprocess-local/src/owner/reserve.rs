//! Descriptors kept for when the host has none left: a tree must be seen and signalled all the same.

use std::os::fd::OwnedFd;
use std::sync::Mutex;

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::pipe;

use crate::reactor::lock;

/// How many: a walk has at most this many open.
const KEPT: usize = 3;

/// A few descriptors, given up for a moment when they are needed.
#[derive(Debug)]
pub(crate) struct Reserve(Mutex<Vec<OwnedFd>>);

impl Reserve {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(fill()))
    }

    /// Does something that takes a descriptor or two, with those of the reserve if need be. Another thread of the host may be
    /// faster; then it fails as it did.
    pub(crate) fn surely<T>(&self, call: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        match call() {
            Err(Errno::MFILE | Errno::NFILE) => {
                let mut kept = lock(&self.0);
                kept.clear();
                let result = call();
                *kept = fill();
                result
            }
            result => result,
        }
    }
}

fn fill() -> Vec<OwnedFd> {
    (0..KEPT).map_while(|_| pipe::null_device().ok()).collect()
}
