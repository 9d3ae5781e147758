//! Stacks for children between clone and exec, kept for the next spawn.

use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Bytes a child may use. What it runs is a few frames deep; the kernel itself uses none of it.
const USABLE: usize = 64 * 1024;
/// Bytes below it that fault, so that an overflow cannot reach other memory. The largest page of either architecture.
const GUARD: usize = 64 * 1024;
/// Idle stacks that are kept.
const KEPT: usize = 64;

static IDLE: Mutex<Vec<Stack>> = Mutex::new(Vec::new());

/// A mapping with a guard below it.
#[derive(Debug)]
pub(super) struct Stack(NonNull<u8>);

// SAFETY: the mapping belongs to the value alone, and is only used by the child it is lent to.
unsafe impl Send for Stack {}

impl Stack {
    /// Takes an idle stack, or maps one.
    pub(super) fn take() -> rustix::io::Result<Self> {
        if let Some(stack) = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(stack);
        }
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                GUARD + USABLE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::STACK | MapFlags::NORESERVE,
            )
        }?;
        let stack = Self(NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?);
        // SAFETY: the range is the lower part of the mapping just made, which nothing uses yet.
        unsafe { mprotect(base, GUARD, MprotectFlags::empty()) }?;
        Ok(stack)
    }

    /// Gives the stack back, once no child runs on it.
    pub(super) fn put_back(self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(self);
        }
    }

    /// Returns the lowest usable address and the usable length.
    pub(super) fn range(&self) -> (*mut u8, usize) {
        // SAFETY: the offset stays inside the mapping, which is GUARD + USABLE bytes long.
        (unsafe { self.0.as_ptr().add(GUARD) }, USABLE)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `take` with this length, and a stack is dropped only when no child uses it.
        let unmapped = unsafe { munmap(self.0.as_ptr().cast(), GUARD + USABLE) };
        debug_assert!(unmapped.is_ok(), "a stack's own mapping can be unmapped");
    }
}
