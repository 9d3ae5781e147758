//! Removing what is in a directory.
//!
//! It is the directory of a host that has ended, and all of it is to go; but what made its content was any program, and may
//! still be at it. So names are resolved one by one below a descriptor, links are unlinked and never followed, other file
//! systems mounted below are left alone, and there is an end to it however deep, large or hostile the content.

use core::ffi::CStr;

use crate::abi::errno::{EACCES, EISDIR, EPERM};
use crate::abi::flag::{AT_FDCWD, AT_REMOVEDIR, DT_DIR, O_DIRECTORY, O_NOFOLLOW, O_PATH};
use crate::abi::number;
use crate::descriptor::{Descriptor, open_at};
use crate::directory::{self, Entries, Place};
use crate::syscall::{check, fd, syscall};
use crate::text::Text;

/// Directories that are open at once, each in the one before. What is deeper is moved up first.
const DEPTH: usize = 64;
/// Times that one directory is listed. Each listing after the first is for what was missed or made meanwhile.
const LISTINGS: usize = 64;

/// The permission to do everything, for the owner.
const ALL: usize = 0o700;

/// Removes what is in a directory, as far as it can be.
pub fn empty(top: &Descriptor) {
    let Ok(status) = directory::status(top) else {
        return;
    };
    let mut removal = Removal {
        top,
        place: status.place,
        moved: 0,
    };
    removal.empty(top, 0);
}

/// Removes a name.
pub fn unlink(directory: i32, name: &CStr, is_directory: bool) -> Result<(), i32> {
    let flags = if is_directory { fd(AT_REMOVEDIR) } else { 0 };
    let arguments = [fd(directory), name.as_ptr().expose_provenance(), flags, 0, 0, 0];
    // SAFETY: the name is NUL-terminated.
    check(unsafe { syscall(number::unlinkat, arguments) }).map(drop)
}

struct Removal<'top> {
    top: &'top Descriptor,
    place: Place,
    /// Directories that were moved to the top.
    moved: u32,
}

impl Removal<'_> {
    /// Empties a directory that is open.
    fn empty(&mut self, directory: &Descriptor, depth: usize) {
        // Its owner may have taken the permission to change it from himself. If it is somebody else's, this fails and so does
        // what follows.
        // SAFETY: fchmod takes integers.
        unsafe { syscall(number::fchmod, [fd(directory.number()), ALL, 0, 0, 0, 0]) };
        for _ in 0..LISTINGS {
            let moved = self.moved;
            let mut removed = false;
            let mut left = false;
            let mut entries = Entries::from_the_beginning(directory);
            while let Some((name, kind)) = entries.next() {
                if self.remove(directory, name, kind, depth) {
                    removed = true;
                } else {
                    left = true;
                }
            }
            // A listing may pass over names when others are removed meanwhile, so one that has changed anything is not the
            // last.
            if !removed && (!left || self.moved == moved) {
                return;
            }
        }
    }

    /// Removes a name with all that it stands for, and tells whether it is gone.
    fn remove(&mut self, directory: &Descriptor, name: &CStr, kind: u8, depth: usize) -> bool {
        if kind != DT_DIR {
            match unlink(directory.number(), name, false) {
                Ok(()) => return true,
                // The file system did not say that it is one, or it has become one. POSIX has EPERM for it.
                Err(EISDIR | EPERM) => {}
                Err(_) => return false,
            }
        }
        if unlink(directory.number(), name, true).is_ok() {
            return true;
        }
        if depth + 1 >= DEPTH {
            return self.move_up(directory, name);
        }
        let Ok(inner) = open(directory, name) else {
            return false;
        };
        // What is mounted there is not what was made there.
        if !directory::status(&inner).is_ok_and(|status| status.place.is_beside(&self.place)) {
            return false;
        }
        self.empty(&inner, depth + 1);
        unlink(directory.number(), name, true).is_ok()
    }

    /// Moves a directory to the top, whose next listing finds it. The name says nothing; one that is taken is left, and the
    /// next is tried.
    fn move_up(&mut self, directory: &Descriptor, name: &CStr) -> bool {
        const NOT_OVER_ANOTHER: usize = 1;
        self.moved = self.moved.saturating_add(1);
        let to = Text::new().with(b".moved-").with_number(self.moved);
        let arguments = [
            fd(directory.number()),
            name.as_ptr().expose_provenance(),
            fd(self.top.number()),
            to.as_c_str().as_ptr().expose_provenance(),
            NOT_OVER_ANOTHER,
            0,
        ];
        // SAFETY: both names are NUL-terminated.
        check(unsafe { syscall(number::renameat2, arguments) }).is_ok()
    }
}

/// Opens a directory within another, also if its owner has taken the permission to do so from himself.
fn open(directory: &Descriptor, name: &CStr) -> Result<Descriptor, i32> {
    match directory::open_directory(directory, name) {
        Err(EACCES) => {
            // By descriptor, since a name could lead elsewhere by now; and a descriptor that only names it, since no other
            // can be had. Such a one can be changed by the path that leads to it only (open(2), O_PATH).
            let named = open_at(directory.number(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW)?;
            let path = Text::new()
                .with(b"/proc/self/fd/")
                .with_number(named.number() as u32);
            let arguments = [
                fd(AT_FDCWD),
                path.as_c_str().as_ptr().expose_provenance(),
                ALL,
                0,
                0,
                0,
            ];
            // SAFETY: a NUL-terminated path.
            check(unsafe { syscall(number::fchmodat, arguments) })?;
            directory::open_directory(directory, name)
        }
        result => result,
    }
}
