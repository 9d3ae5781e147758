//! A thread that waits for a child whose exec takes long, on a file system that does not answer.
//!
//! There is no descriptor that tells when a child has executed its program, only a word in memory that the kernel clears.
//! The tree warden must go on meanwhile: the host may end, or give the child up. So this one waits for the word, makes a
//! descriptor readable, and ends. It makes system calls only, and touches nothing but its own stack and that word.

use core::ffi::c_void;
use core::sync::atomic::AtomicU32;

use crate::abi::flag::{
    CLONE_CHILD_CLEARTID, CLONE_FILES, CLONE_FS, CLONE_SIGHAND, CLONE_SYSVSEM, CLONE_THREAD, CLONE_VM,
    EFD_CLOEXEC, EFD_NONBLOCK,
};
use crate::abi::number;
use crate::clone::clone;
use crate::descriptor::{self, Descriptor};
use crate::futex;
use crate::region::Region;
use crate::syscall::{check, fd, syscall};

/// The thread.
#[derive(Debug)]
pub struct ExecWatch {
    event: Descriptor,
    /// Its stack, and [`Shared`].
    region: Region,
}

struct Shared {
    /// What is waited for.
    awaited: *const AtomicU32,
    /// What is written then.
    event: i32,
    /// Cleared by the kernel when the thread has left its stack.
    alive: AtomicU32,
}

impl ExecWatch {
    /// Starts it.
    ///
    /// # Safety
    ///
    /// The word must stay where it is until this value is dropped.
    pub unsafe fn start(awaited: *const AtomicU32) -> Result<Self, i32> {
        let flags = fd(EFD_CLOEXEC | EFD_NONBLOCK);
        // SAFETY: eventfd2 takes integers.
        let event = check(unsafe { syscall(number::eventfd2, [0, flags, 0, 0, 0, 0]) })?;
        let event = Descriptor::adopt(event as i32);
        let region = Region::map(size_of::<Shared>())?;
        let shared = region.data::<Shared>();
        let contents = Shared {
            awaited,
            event: event.number(),
            alive: AtomicU32::new(1),
        };
        // SAFETY: the region has room for it there, aligned, and nobody else knows of it yet.
        unsafe { shared.write(contents) };
        // SAFETY: a field of what was just written.
        let alive = unsafe { &raw const (*shared).alive }.expose_provenance();
        let stack = region.stack();
        let top = stack.bottom.wrapping_add(stack.length).expose_provenance();
        let flags = CLONE_VM
            | CLONE_FS
            | CLONE_FILES
            | CLONE_SIGHAND
            | CLONE_THREAD
            | CLONE_SYSVSEM
            | CLONE_CHILD_CLEARTID;
        // The order of the last two differs between the architectures: the thread-local storage, which is not set, and the
        // word to clear.
        let arguments = if cfg!(target_arch = "aarch64") {
            [flags as usize, top, 0, 0, alive]
        } else {
            [flags as usize, top, 0, alive, 0]
        };
        // SAFETY: the thread runs on a stack of its own, which stays mapped until `alive` is 0, and never returns.
        check(unsafe { clone(number::clone, arguments, run, shared.cast()) })?;
        Ok(Self { event, region })
    }

    /// Returns what becomes readable.
    pub const fn event(&self) -> &Descriptor {
        &self.event
    }
}

impl Drop for ExecWatch {
    /// Waits until the thread has ended. The word it waits for is clear already, so that is at once.
    fn drop(&mut self) {
        let shared = self.region.data::<Shared>();
        // SAFETY: it was written by `start`; the thread and the kernel change nothing of it but the atomic.
        let alive = unsafe { &(*shared).alive };
        futex::wait_until_clear(alive, None);
    }
}

/// # Safety
///
/// `shared` points to a [`Shared`] that stays as it is until its `alive` is 0.
unsafe extern "C" fn run(shared: *mut c_void) -> ! {
    // SAFETY: the caller's promise.
    let shared = unsafe { &*shared.cast::<Shared>() };
    // SAFETY: the promise made to `start`.
    let awaited = unsafe { &*shared.awaited };
    futex::wait_until_clear(awaited, None);
    // It cannot fail: the counter is 0.
    let _ = descriptor::write(shared.event, &1_u64.to_ne_bytes());
    loop {
        // SAFETY: exit takes an integer, ends this thread alone, and does not return.
        unsafe { syscall(number::exit, [0; 6]) };
    }
}
