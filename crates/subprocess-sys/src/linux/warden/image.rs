//! Where the warden's program is executed from.

use std::env;
use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dsh_subprocess_warden::PROGRAM;
use rustix::io::Errno;

use super::super::{file, memory_file};

/// Returns the program in a sealed file in memory. It is made once, and kept for the life of this process.
pub(super) fn in_memory() -> Result<BorrowedFd<'static>, Errno> {
    static FILE: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(file) = FILE.get() {
        return Ok(file.as_fd());
    }
    // Two threads may both make one; the second one's is closed again. A failure, such as too few descriptors, is not kept.
    let made = memory_file::executable(PROGRAM)?;
    Ok(FILE.get_or_init(|| made).as_fd())
}

/// The program in a private file, which is removed when this is dropped: a program that runs does without its name.
#[derive(Debug)]
pub(super) struct PrivateFile {
    directory: PathBuf,
    path: PathBuf,
}

impl PrivateFile {
    /// Writes the program into a directory of its own below `base`.
    pub(super) fn create(base: &Path) -> io::Result<Self> {
        let name = file::random::<12>()?.map(|byte| format!("{byte:02x}")).concat();
        let directory = base.join(format!("dsh-warden-{name}"));
        file::make_private_directory(&directory)?;
        let private = Self {
            path: directory.join("dsh-warden"),
            directory,
        };
        // Closed at the end: what is open for writing cannot be executed (ETXTBSY).
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&private.path)?
            .write_all(PROGRAM)?;
        Ok(private)
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &[u8] {
        self.path.as_os_str().as_bytes()
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // What cannot be removed is small, private, and in a directory for things that may be thrown away.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// Lists the directories that may hold a private file. Any of them may be mounted `noexec`, read-only, or not be there.
pub(super) fn bases() -> Vec<PathBuf> {
    let mut bases: Vec<PathBuf> = env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .into_iter()
        .chain([env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()])
        .filter(|base| base.is_absolute() && CString::new(base.clone().into_os_string().into_vec()).is_ok())
        .collect();
    bases.dedup();
    bases
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_in_memory_is_made_once() {
        let first = in_memory().expect("a file in memory");
        let second = in_memory().expect("a file in memory");
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
    }

    #[test]
    fn a_private_file_is_nobody_elses_and_leaves_nothing_behind() {
        let base = env::temp_dir();
        let private = PrivateFile::create(&base).expect("a private file");
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&private.directory), mode(&private.path)), (0o700, 0o700));
        assert_eq!(std::fs::read(&private.path).expect("it can be read"), PROGRAM);
        let directory = private.directory.clone();
        drop(private);
        assert!(!directory.exists());
    }
}
