//! Memory that is mapped for a while, with a stack in it.

use core::ptr;

use crate::abi::flag::{MAP_ANONYMOUS, MAP_NORESERVE, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE};
use crate::abi::number;
use crate::clone::Stack;
use crate::syscall::{check, fd, syscall};

/// Bytes below the stack that fault, so that an overflow cannot reach other memory. The largest page of either
/// architecture.
const GUARD: usize = 64 * 1024;
/// Bytes of the stack. What runs on it is a few frames deep.
const STACK: usize = 64 * 1024;

/// A mapping: a guard, a stack above it, and room for data.
#[derive(Debug)]
pub struct Region {
    base: *mut u8,
    length: usize,
}

impl Region {
    /// Maps one with at least this many bytes for data, all zero.
    pub fn map(data: usize) -> Result<Self, i32> {
        let length = GUARD + STACK + data;
        let arguments = [
            0,
            length,
            fd(PROT_READ | PROT_WRITE),
            fd(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE),
            fd(-1),
            0,
        ];
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let base = check(unsafe { syscall(number::mmap, arguments) })?;
        let region = Self {
            base: ptr::with_exposed_provenance_mut(base),
            length,
        };
        // SAFETY: the lowest part of the mapping, which nothing uses.
        check(unsafe { syscall(number::mprotect, [base, GUARD, fd(PROT_NONE), 0, 0, 0]) })?;
        Ok(region)
    }

    /// Returns the stack.
    pub const fn stack(&self) -> Stack {
        Stack {
            bottom: self.base.wrapping_add(GUARD),
            length: STACK,
        }
    }

    /// Returns where the data begin, as what they begin with. The place is aligned as a page is, and so for everything.
    pub const fn data<T>(&self) -> *mut T {
        self.base.wrapping_add(GUARD + STACK).cast()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and whoever made it drops it when nothing uses it any more.
        unsafe {
            syscall(
                number::munmap,
                [self.base.expose_provenance(), self.length, 0, 0, 0, 0],
            )
        };
    }
}
