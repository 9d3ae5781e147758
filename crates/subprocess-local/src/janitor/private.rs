//! Removal of a private directory that a dead host left.

use std::path::{Path, PathBuf};

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::directory::Directory;
use dsh_subprocess_sys::identity;

use super::name;

/// Why something that a dead host left is still there.
#[derive(Debug, thiserror::Error)]
pub(super) enum Left {
    /// Not a thing that a runtime makes.
    #[error("{} is not what a runtime of process {pid} makes", .0.display(), pid = .1)]
    NotOurs(PathBuf, u32),
    /// This process is one of what would be ended.
    #[error("this process is in the group {}", .0.display())]
    Inside(PathBuf),
    /// The system refused.
    #[error("{} cannot be removed: {errno}", .0.display(), errno = .1)]
    Refused(PathBuf, Errno),
}

/// Removes a private directory that a runtime of process `pid` had, with all that is in it. One that is not there is removed.
///
/// # Errors
///
/// When it is another's, or something in it cannot be removed.
pub(super) fn remove(path: &Path, pid: u32) -> Result<(), Left> {
    let not_ours = || Left::NotOurs(path.to_owned(), pid);
    let refused = |errno| Left::Refused(path.to_owned(), errno);
    let (above, name) = path.parent().zip(path.file_name()).ok_or_else(not_ours)?;
    if !name::is_of(pid, name) {
        return Err(not_ours());
    }
    let above = match Directory::at(above) {
        Ok(above) => above,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(refused(errno)),
    };
    let directory = match above.open(name) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(()),
        // A symbolic link, or no directory.
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(not_ours()),
        Err(errno) => return Err(refused(errno)),
    };
    let access = directory.access().map_err(refused)?;
    if access.owner != identity::user() || access.mode != 0o700 {
        return Err(not_ours());
    }
    directory.clear().map_err(refused)?;
    match above.remove_directory(name) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(refused(errno)),
    }
}
