//! The directories, and the records of the host, that go when the host ends.

use core::ffi::CStr;
use core::mem::ManuallyDrop;

use crate::abi::flag::{AT_FDCWD, S_IFDIR, S_IFMT};
use crate::descriptor::{Descriptor, close};
use crate::directory;
use crate::protocol::{DIRECTORIES, Malformed, PATH};
use crate::removal;

/// What was registered.
#[derive(Debug)]
pub struct Directories {
    entries: [Entry; DIRECTORIES],
}

/// A place for one. All zeroes where there is none.
#[derive(Debug)]
struct Entry {
    path: [u8; PATH],
    /// Bytes of the path; 0 where there is none.
    length: usize,
    /// The directory or the record itself, so that nothing is removed but what was meant.
    number: i32,
    is_record: bool,
}

impl Directories {
    /// None.
    pub const fn new() -> Self {
        Self {
            entries: [const {
                Entry {
                    path: [0; PATH],
                    length: 0,
                    number: 0,
                    is_record: false,
                }
            }; DIRECTORIES],
        }
    }

    /// Registers one by its absolute path. More than the protocol allows are an error of the host's.
    pub fn add(&mut self, path: &[u8], descriptor: Descriptor, is_record: bool) -> Result<(), Malformed> {
        let entry = self
            .entries
            .iter_mut()
            .find(|entry| entry.length == 0)
            .ok_or(Malformed)?;
        // There is always a NUL behind it: the protocol's paths are shorter than the room.
        entry.path.fill(0);
        entry
            .path
            .get_mut(..path.len())
            .ok_or(Malformed)?
            .copy_from_slice(path);
        entry.length = path.len();
        entry.number = descriptor.into_number();
        entry.is_record = is_record;
        Ok(())
    }

    /// Forgets what was registered by this path; what was not is nobody's mistake.
    pub fn forget(&mut self, path: &[u8]) {
        for entry in &mut self.entries {
            if entry.length != 0 && entry.path.get(..entry.length) == Some(path) {
                close(entry.number);
                entry.length = 0;
            }
        }
    }

    /// Removes all of them: the directories with all that is in them, and then the records, which say where those are and
    /// must not go before. The locks on the records are held until this process ends.
    pub fn remove(&mut self) {
        for records in [false, true] {
            for entry in &mut self.entries {
                if entry.length != 0 && entry.is_record == records {
                    entry.remove();
                }
            }
        }
    }
}

impl Entry {
    fn remove(&mut self) {
        self.length = 0;
        let directory = ManuallyDrop::new(Descriptor::adopt(self.number));
        let Ok(status) = directory::status(&directory) else {
            return;
        };
        let is_directory = status.mode & S_IFMT == S_IFDIR;
        if is_directory == self.is_record {
            // It is not what it was said to be.
            return;
        }
        if is_directory {
            removal::empty(&directory);
        }
        let path = CStr::from_bytes_until_nul(&self.path).unwrap_or_default();
        // What is at the path now may be something else.
        if directory::status_of(AT_FDCWD, path).is_ok_and(|found| found.place == status.place) {
            let _ = removal::unlink(AT_FDCWD, path, is_directory);
        }
    }
}
