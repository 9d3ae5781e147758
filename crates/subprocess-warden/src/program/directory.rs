//! What is in a directory, and what a file is.

use core::ffi::CStr;

use crate::abi::flag::{AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, O_DIRECTORY, O_NOFOLLOW, O_RDONLY};
use crate::abi::number;
use crate::descriptor::{Descriptor, open_at, rewind};
use crate::syscall::{check, fd, syscall};

/// What is known of a file (statx(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its type and permissions.
    pub mode: u32,
    /// Its names, or what the file system counts as such.
    pub links: u32,
    /// Where it is: device, mount (0 before Linux 5.8), and the file's number there.
    pub place: Place,
}

/// Where a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    device: (u32, u32),
    mount: u64,
    inode: u64,
}

impl Place {
    /// Tells whether two files are in the same mounted file system.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.device == other.device && self.mount == other.mount
    }
}

/// The numbers that mask asks for: what stat(2) gives, and the mount.
const WANTED: usize = 0x17ff;

/// `struct statx` as words of four bytes.
const WORDS: usize = 64;

/// Looks at an open file.
pub fn status(file: &Descriptor) -> Result<Status, i32> {
    status_at(file.number(), c"", AT_EMPTY_PATH)
}

/// Looks at a path below a directory; a link is looked at itself.
pub fn status_of(directory: i32, path: &CStr) -> Result<Status, i32> {
    status_at(directory, path, AT_SYMLINK_NOFOLLOW)
}

fn status_at(directory: i32, path: &CStr, flags: i32) -> Result<Status, i32> {
    let mut words = [0_u32; WORDS];
    let to = words.as_mut_ptr().expose_provenance();
    // SAFETY: the path is NUL-terminated, and 256 bytes are writable.
    check(unsafe {
        syscall(
            number::statx,
            [
                fd(directory),
                path.as_ptr().expose_provenance(),
                fd(flags),
                WANTED,
                to,
                0,
            ],
        )
    })?;
    let long = |low: usize| u64::from(words[low]) | u64::from(words[low + 1]) << 32;
    Ok(Status {
        links: words[4],
        mode: words[7] & 0xffff,
        place: Place {
            inode: long(8),
            device: (words[34], words[35]),
            mount: long(36),
        },
    })
}

/// Opens a directory below another, and only that: not through a link.
pub fn open_directory(directory: &Descriptor, name: &CStr) -> Result<Descriptor, i32> {
    open_at(directory.number(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
}

/// Bytes of entries that are read at once. The longest entry is 280.
const ENTRIES: usize = 1024;

/// What is in a directory, but for itself and the one it is in.
#[derive(Debug)]
pub struct Entries<'directory> {
    directory: &'directory Descriptor,
    bytes: [u8; ENTRIES],
    filled: usize,
    at: usize,
}

impl<'directory> Entries<'directory> {
    /// Lists a directory from where its descriptor stands, which is the beginning once.
    pub const fn of(directory: &'directory Descriptor) -> Self {
        Self {
            directory,
            bytes: [0; ENTRIES],
            filled: 0,
            at: 0,
        }
    }

    /// Lists a directory from its beginning.
    pub fn from_the_beginning(directory: &'directory Descriptor) -> Self {
        rewind(directory);
        Self::of(directory)
    }

    /// Returns the next name, and its type (`DT_…`).
    pub fn next(&mut self) -> Option<(&CStr, u8)> {
        loop {
            if self.at >= self.filled {
                let to = self.bytes.as_mut_ptr().expose_provenance();
                let arguments = [fd(self.directory.number()), to, ENTRIES, 0, 0, 0];
                // SAFETY: the buffer is writable and has the length that is said.
                self.filled = check(unsafe { syscall(number::getdents64, arguments) }).unwrap_or(0);
                self.at = 0;
                if self.filled == 0 {
                    return None;
                }
            }
            // struct linux_dirent64 (getdents(2)): inode 8, offset 8, length 2, type 1, then the name.
            let entry = self.at;
            let length = u16::from_ne_bytes([*self.bytes.get(entry + 16)?, *self.bytes.get(entry + 17)?]);
            self.at += usize::from(length).max(1);
            let name = CStr::from_bytes_until_nul(self.bytes.get(entry + 19..self.filled)?).ok()?;
            if name != c"." && name != c".." {
                // Found again, because the loop would hold on to the borrow otherwise.
                let name = CStr::from_bytes_until_nul(self.bytes.get(entry + 19..self.filled)?).ok()?;
                return Some((name, *self.bytes.get(entry + 18)?));
            }
        }
    }
}
