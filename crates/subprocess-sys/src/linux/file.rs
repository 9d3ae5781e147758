//! Private files, and whether a file can be executed.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, accessat, flock, mkdirat, open, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Tells whether a path names a regular file that this user may execute. Symbolic links are followed.
///
/// # Errors
///
/// Why not: those of stat(2) and access(2), and `EACCES` for anything that is no regular file.
pub fn check_executable(path: &Path) -> Result<(), Errno> {
    let status = statat(CWD, path, AtFlags::empty())?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)
}

/// Makes a directory that only this user may enter.
///
/// # Errors
///
/// Those of mkdir(2); `EEXIST` where the name is taken, whatever it is.
pub fn make_private_directory(path: &Path) -> Result<(), Errno> {
    mkdirat(CWD, path, Mode::RWXU)
}

/// Tells whether a path is a directory of this user's that nobody else may enter, and no symbolic link.
pub fn is_private_directory(path: &Path) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|status| {
        FileType::from_raw_mode(status.st_mode) == FileType::Directory
            && status.st_uid == geteuid().as_raw()
            && Mode::from_raw_mode(status.st_mode)
                .intersection(Mode::RWXG | Mode::RWXO)
                .is_empty()
    })
}

/// Makes a new file that only this user may read, open for reading and writing.
///
/// # Errors
///
/// Those of open(2); `EEXIST` where the name is taken, whatever it is.
pub fn create_private_file(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Opens a file for reading, by a name that is no symbolic link.
///
/// # Errors
///
/// Those of open(2); `ELOOP` for a symbolic link.
pub fn open_to_read(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

/// Takes a file's exclusive lock, or says that somebody has it. It lasts until every copy of the descriptor is closed.
///
/// # Errors
///
/// Those of flock(2).
pub fn try_lock(file: impl AsFd) -> Result<bool, Errno> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Returns how many names a file has left: 0 once somebody has removed it.
///
/// # Errors
///
/// None that can happen to an open file.
pub fn links(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.nlink())
}

/// Returns random bytes for names that nobody can guess.
///
/// # Errors
///
/// Those of getrandom(2).
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
