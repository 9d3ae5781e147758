//! Groups that another process made and left.

use std::path::Path;

use rustix::fs::{CWD, FsWord, Mode, OFlags, fstatfs, openat};
use rustix::io::Errno;

use super::{DIRECTORY, Parent};

/// `CGROUP2_SUPER_MAGIC` (linux/magic.h).
const CGROUP2: FsWord = 0x6367_7270;

impl Parent {
    /// Opens a group that is there.
    ///
    /// # Errors
    ///
    /// Those of open(2); `ENOTDIR` for a symbolic link, `EINVAL` for what is no group of version 2.
    pub fn open_existing(path: &Path) -> Result<Self, Errno> {
        let directory = openat(CWD, path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        if fstatfs(&directory)?.f_type != CGROUP2 {
            return Err(Errno::INVAL);
        }
        Ok(Self {
            directory,
            path: path.to_owned(),
        })
    }
}
