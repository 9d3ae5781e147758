//! Directories by descriptor: whose they are, what is in them, and their removal with all of it.
//!
//! A path can come to name something else between two looks at it. What is read, made or removed here is named by one
//! component below a directory that is held open, and symbolic links are never followed from there.

use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Names that are listed at once when a directory is emptied.
const BATCH: usize = 1024;
/// Directories in each other that are emptied: each takes a descriptor.
const DEPTH: usize = 32;

/// A directory.
#[derive(Debug)]
pub struct Directory(OwnedFd);

/// Who may do what with a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The owner's user id.
    pub owner: u32,
    /// The permission bits, at most `0o7777`.
    pub mode: u32,
}

impl Access {
    /// Tells whether it is this user's, and nobody else may enter it. An access control list shows in the bits of the group
    /// (acl(5)).
    pub fn is_private(self) -> bool {
        self.owner == geteuid().as_raw() && self.mode & 0o7777 & !0o700 == 0
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Directory {
    /// Opens a directory to name things in. It need not be readable, and symbolic links in the path are followed.
    ///
    /// # Errors
    ///
    /// Those of open(2).
    pub fn at(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty()).map(Self)
    }

    /// Opens a directory in this one.
    ///
    /// # Errors
    ///
    /// Those of open(2); `ENOTDIR` where the name is that of anything else, a symbolic link included.
    pub fn open(&self, name: impl AsRef<Path>) -> Result<Self, Errno> {
        openat(&self.0, name.as_ref(), DIRECTORY, Mode::empty()).map(Self)
    }

    /// Makes a directory in this one that only this user may enter.
    ///
    /// # Errors
    ///
    /// Those of mkdir(2); `EEXIST` where the name is taken, whatever it is.
    pub fn make_private(&self, name: impl AsRef<Path>) -> Result<(), Errno> {
        mkdirat(&self.0, name.as_ref(), Mode::RWXU)
    }

    /// Returns its owner and mode.
    ///
    /// # Errors
    ///
    /// None that a local file system gives.
    pub fn access(&self) -> Result<Access, Errno> {
        let status = fstat(&self.0)?;
        Ok(Access {
            owner: status.st_uid,
            mode: status.st_mode & 0o7777,
        })
    }

    /// Lists the names in it.
    ///
    /// # Errors
    ///
    /// Those of getdents(2).
    pub fn names(&self) -> Result<Vec<OsString>, Errno> {
        let names = self.list(usize::MAX)?;
        Ok(names
            .into_iter()
            .map(|name| OsString::from_vec(name.into_bytes()))
            .collect())
    }

    /// Makes a new file in it that only this user may read, open for reading and for appending.
    ///
    /// # Errors
    ///
    /// Those of open(2); `EEXIST` where the name is taken, whatever it is.
    pub fn create_file(&self, name: impl AsRef<Path>) -> Result<File, Errno> {
        let flags = FILE | OFlags::CREATE | OFlags::EXCL;
        openat(&self.0, name.as_ref(), flags, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    /// Opens a regular file of this user's in it, for reading and for appending.
    ///
    /// # Errors
    ///
    /// Those of open(2); `EACCES` for a file that is another user's or no regular one, `ELOOP` for a symbolic link.
    pub fn open_file(&self, name: impl AsRef<Path>) -> Result<File, Errno> {
        // A named pipe without a reader would hold the call up.
        let file = openat(&self.0, name.as_ref(), FILE | OFlags::NONBLOCK, Mode::empty())?;
        let status = fstat(&file)?;
        let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        if regular && status.st_uid == geteuid().as_raw() {
            Ok(File::from(file))
        } else {
            Err(Errno::ACCESS)
        }
    }

    /// Tells whether a name is still that of an open file.
    pub fn names_file(&self, name: impl AsRef<Path>, file: &File) -> bool {
        let there = statat(&self.0, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW);
        matches!(
            (there, fstat(file)),
            (Ok(there), Ok(open)) if (there.st_dev, there.st_ino) == (open.st_dev, open.st_ino)
        )
    }

    /// Removes a name that is not a directory's.
    ///
    /// # Errors
    ///
    /// Those of unlink(2).
    pub fn unlink(&self, name: impl AsRef<Path>) -> Result<(), Errno> {
        unlinkat(&self.0, name.as_ref(), AtFlags::empty())
    }

    /// Removes an empty directory in this one.
    ///
    /// # Errors
    ///
    /// Those of rmdir(2).
    pub fn remove_directory(&self, name: impl AsRef<Path>) -> Result<(), Errno> {
        unlinkat(&self.0, name.as_ref(), AtFlags::REMOVEDIR)
    }

    /// Removes everything in it, directories to a depth of 32. Nothing below a mount point is touched, and a symbolic link is
    /// removed, never followed. What can be removed is, also when the rest cannot.
    ///
    /// # Errors
    ///
    /// Why the first of what is left could not be removed.
    pub fn clear(&self) -> Result<(), Errno> {
        self.clear_to(DEPTH)
    }

    fn clear_to(&self, depth: usize) -> Result<(), Errno> {
        loop {
            let (mut removed, mut failure) = (false, None);
            for name in self.list(BATCH)? {
                match self.remove(&name, depth) {
                    Ok(()) => removed = true,
                    Err(errno) => failure = failure.or(Some(errno)),
                }
            }
            // More may be behind what was listed.
            if !removed {
                return failure.map_or(Ok(()), Err);
            }
        }
    }

    fn remove(&self, name: &CStr, depth: usize) -> Result<(), Errno> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Linux says the former of a directory, POSIX the latter (unlink(2)).
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
        let below = depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?;
        self.descend(name)?.clear_to(below)?;
        unlinkat(&self.0, name, AtFlags::REMOVEDIR)
    }

    /// Opens a directory in this one unless something is mounted on it.
    fn descend(&self, name: &CStr) -> Result<Self, Errno> {
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        match openat2(&self.0, name, DIRECTORY, Mode::empty(), resolve) {
            // Before Linux 5.6, or refused by a filter: the device tells of all mounts but those of the same file system.
            Err(Errno::NOSYS | Errno::PERM) => {
                let below = Self(openat(&self.0, name, DIRECTORY, Mode::empty())?);
                if fstat(&below.0)?.st_dev == fstat(&self.0)?.st_dev {
                    Ok(below)
                } else {
                    Err(Errno::XDEV)
                }
            }
            result => result.map(Self),
        }
    }

    fn list(&self, most: usize) -> Result<Vec<CString>, Errno> {
        Dir::read_from(&self.0)?
            .map(|entry| entry.map(|entry| entry.file_name().to_owned()))
            .filter(|name| !matches!(name, Ok(name) if name.as_c_str() == c"." || name.as_c_str() == c".."))
            .take(most)
            .collect()
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

const FILE: OFlags = OFlags::RDWR
    .union(OFlags::APPEND)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// A directory of this test's own, gone with the value.
    struct Place(PathBuf);

    impl Place {
        fn new() -> Self {
            let random: String = super::super::file::random::<6>()
                .expect("the kernel has random bytes")
                .map(|byte| format!("{byte:02x}"))
                .concat();
            let path = std::env::temp_dir().join(format!("directory-test-{random}"));
            fs::create_dir(&path).expect("the directory is writable");
            Self(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_directory_is_emptied_and_what_its_links_lead_to_is_not() {
        let place = Place::new();
        let outside = place.0.join("outside");
        fs::create_dir(&outside).expect("it is new");
        fs::write(outside.join("stays"), "").expect("it is writable");
        let top = place.0.join("top");
        fs::create_dir_all(top.join("a/b/c")).expect("it is new");
        for number in 0..3000 {
            fs::write(top.join(format!("a/{number}")), "").expect("it is writable");
        }
        symlink(&outside, top.join("a/link")).expect("it is writable");
        symlink("nowhere", top.join("dangling")).expect("it is writable");
        let directory = Directory::at(&place.0).expect("it is there");
        directory
            .open("top")
            .expect("it is there")
            .clear()
            .expect("all goes");
        directory.remove_directory("top").expect("it is empty");
        assert!(outside.join("stays").exists());
    }

    #[test]
    fn a_directory_that_is_too_deep_stays_and_the_rest_goes() {
        let place = Place::new();
        let mut deep = place.0.join("top");
        fs::create_dir(&deep).expect("it is new");
        fs::write(deep.join("file"), "").expect("it is writable");
        for _ in 0..=DEPTH {
            deep.push("d");
        }
        fs::create_dir_all(&deep).expect("it is new");
        let top = Directory::at(&place.0)
            .and_then(|at| at.open("top"))
            .expect("it is there");
        assert_eq!(top.clear(), Err(Errno::NAMETOOLONG));
        assert_eq!(top.names().expect("it is readable"), ["d"]);
    }

    #[test]
    fn a_link_is_no_directory_and_no_file() {
        let place = Place::new();
        fs::write(place.0.join("file"), "").expect("it is writable");
        symlink(&place.0, place.0.join("directory-link")).expect("it is writable");
        symlink("file", place.0.join("file-link")).expect("it is writable");
        let directory = Directory::at(&place.0).expect("it is there");
        assert_eq!(directory.open("directory-link").err(), Some(Errno::NOTDIR));
        assert_eq!(directory.open_file("file-link").err(), Some(Errno::LOOP));
        assert!(directory.open_file("file").is_ok());
    }

    #[test]
    fn a_replaced_file_has_lost_its_name() {
        let place = Place::new();
        let directory = Directory::at(&place.0).expect("it is there");
        let file = directory.create_file("name").expect("it is new");
        assert_eq!(directory.create_file("name").err(), Some(Errno::EXIST));
        assert!(directory.names_file("name", &file));
        directory.unlink("name").expect("it is there");
        assert!(!directory.names_file("name", &file));
        let _other = directory.create_file("name").expect("it is new");
        assert!(!directory.names_file("name", &file));
    }
}
