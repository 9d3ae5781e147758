//! The grace of every leaf, where the runtime warden can read it after the host has ended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::Pid;

use super::super::memory_file;

/// Leaves that have a place in the table.
const LEAVES: usize = 4096;
const BYTES: usize = LEAVES * size_of::<Entry>();

/// A leaf's grace, and the member that was not asked when all others were.
type Entry = [AtomicU32; 2];

/// A table in memory that host and runtime warden share: per leaf, the milliseconds between `SIGTERM` and `SIGKILL` should
/// the host end. 0 is none set.
///
/// ```
/// use dsh_subprocess_sys::warden::GraceTable;
/// let table = GraceTable::new()?;
/// table.set(17, 5_000);
/// # Ok::<(), dsh_subprocess_sys::Errno>(())
/// ```
#[derive(Debug)]
pub struct GraceTable {
    file: OwnedFd,
    entries: NonNull<[Entry; LEAVES]>,
}

// SAFETY: the mapping belongs to the value, and is used as atomics alone.
unsafe impl Send for GraceTable {}
// SAFETY: likewise.
unsafe impl Sync for GraceTable {}

impl AsFd for GraceTable {
    /// Borrows the file, for [`ToRuntime::Group`](dsh_subprocess_warden::protocol::ToRuntime::Group).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl GraceTable {
    /// Makes a table without any grace in it.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENFILE`, `ENOMEM`; where there are no files in memory, those of open(2) in the temporary directory.
    pub fn new() -> Result<Self, Errno> {
        let file = memory_file::zeroed(BYTES as u64)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let mapped = unsafe {
            mmap(
                std::ptr::null_mut(),
                BYTES,
                protection,
                MapFlags::SHARED,
                &file,
                0,
            )
        }?;
        let entries = NonNull::new(mapped.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { file, entries })
    }

    /// Sets the grace of a leaf, in milliseconds. A leaf whose number is 4,096 or more has no place, and gets the
    /// runtime's.
    pub fn set(&self, leaf: u32, milliseconds: u32) {
        if let Some([grace, unasked]) = self.entry(leaf) {
            unasked.store(0, Ordering::Relaxed);
            grace.store(milliseconds.to_le(), Ordering::Relaxed);
        }
    }

    /// Says that all members of a leaf were asked to end but this one, which is asked alone should the host end.
    pub fn set_unasked(&self, leaf: u32, member: Pid) {
        if let Some([_, unasked]) = self.entry(leaf) {
            let number = member.as_raw_nonzero().get().unsigned_abs();
            unasked.store(number.to_le(), Ordering::Relaxed);
        }
    }

    fn entry(&self, leaf: u32) -> Option<&Entry> {
        // SAFETY: the mapping is as long as the array, and there until the value is dropped.
        let entries = unsafe { self.entries.as_ref() };
        entries.get(leaf as usize)
    }
}

impl Drop for GraceTable {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and nothing borrows from it any more.
        let unmapped = unsafe { munmap(self.entries.as_ptr().cast(), BYTES) };
        debug_assert!(unmapped.is_ok(), "the table's own mapping can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::pread;

    fn words(table: &GraceTable, leaf: u64) -> [u32; 2] {
        let mut words = [[0; 4]; 2];
        pread(table, words.as_flattened_mut(), leaf * 8).expect("the file can be read");
        words.map(u32::from_le_bytes)
    }

    fn grace(table: &GraceTable, leaf: u64) -> u32 {
        words(table, leaf)[0]
    }

    #[test]
    fn the_one_who_was_not_asked_stands_beside_the_grace_until_the_next_tenant() {
        let table = GraceTable::new().expect("a table");
        table.set(7, 5_000);
        table.set_unasked(7, rustix::process::getpid());
        assert_eq!(words(&table, 7), [5_000, std::process::id()]);
        table.set(7, 6_000);
        assert_eq!(words(&table, 7), [6_000, 0]);
        assert_eq!([6, 8].map(|leaf| words(&table, leaf)), [[0; 2]; 2]);
    }

    #[test]
    fn a_grace_is_read_at_the_leafs_place_in_the_file() {
        let table = GraceTable::new().expect("a table");
        table.set(0, 1);
        table.set(4095, 60_000);
        assert_eq!([0, 1, 4095].map(|leaf| grace(&table, leaf)), [1, 0, 60_000]);
    }

    #[test]
    fn a_leaf_beyond_the_table_is_passed_over() {
        let table = GraceTable::new().expect("a table");
        table.set(4096, 1);
        table.set(u32::MAX, 1);
        assert_eq!(grace(&table, 4095), 0);
    }
}
