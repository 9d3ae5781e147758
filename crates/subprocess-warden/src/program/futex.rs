//! Words in memory that one waits for.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::abi::flag::FUTEX_WAIT;
use crate::abi::number;
use crate::poll::{self, Time};
use crate::syscall::{fd, syscall};

/// Waits until the kernel has cleared a word (`CLONE_CHILD_CLEARTID`, clone(2)), for at most a number of milliseconds where
/// one is given. Tells whether it is cleared.
pub fn wait_until_clear(word: &AtomicU32, milliseconds: Option<u64>) -> bool {
    let deadline = milliseconds.map(|span| poll::now().saturating_add(span));
    loop {
        let seen = word.load(Ordering::Acquire);
        if seen == 0 {
            return true;
        }
        let left = match deadline.map(|deadline| deadline.saturating_sub(poll::now())) {
            Some(0) => return false,
            left => left.map(Time::from_milliseconds),
        };
        let limit = left.as_ref().map_or(ptr::null(), ptr::from_ref);
        let arguments = [
            ptr::from_ref(word).expose_provenance(),
            // Not private: the kernel wakes with the shared form.
            fd(FUTEX_WAIT),
            seen as usize,
            limit.expose_provenance(),
            0,
            0,
        ];
        // Every reason to wake up leads back to the test above.
        // SAFETY: a word that is only read, and a time or none.
        unsafe { syscall(number::futex, arguments) };
    }
}
