//! Where a user's records are.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use dsh_subprocess_sys::directory::Directory;
use dsh_subprocess_sys::{Errno, file, identity};

/// Why a runtime has no record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unrecorded {
    /// The place for records is somebody else's, or open to others.
    #[error("{} is not a private directory of this user's", .0.display())]
    NotPrivate(PathBuf),
    /// The place cannot be made or used.
    #[error("{} cannot be used: {errno}", .0.display(), errno = .1)]
    Unusable(PathBuf, Errno),
    /// A file there cannot be locked.
    #[error("files in {} cannot be locked: {errno}", .0.display(), errno = .1)]
    Unlockable(PathBuf, Errno),
    /// A file there cannot be written.
    #[error("files in {} cannot be written: {error}", .0.display(), error = .1)]
    Unwritable(PathBuf, io::Error),
    /// It is not known who this process is.
    #[error("it cannot be told which process this is: {0}")]
    Nameless(io::Error),
    /// The record has no room for more.
    #[error("the record has reached {} bytes", super::contents::LIMIT)]
    Full,
}

/// A directory of records, verified when it was opened.
#[derive(Debug)]
pub(super) struct RecordDirectory {
    pub(super) path: PathBuf,
    pub(super) directory: Directory,
}

/// A place where such a directory may be.
struct Place {
    above: PathBuf,
    name: String,
}

impl RecordDirectory {
    /// Opens the directory that this user's new records go to, and makes it where there is none.
    ///
    /// # Errors
    ///
    /// When it is not this user's alone, or cannot be made.
    pub(super) fn make() -> Result<Self, Unrecorded> {
        let place = Place::preferred();
        let unusable = |errno| Unrecorded::Unusable(place.path(), errno);
        let above = Directory::at(&place.above).map_err(unusable)?;
        match above.make_private(&place.name) {
            Ok(()) | Err(Errno::EXIST) => place.open(&above),
            Err(errno) => Err(unusable(errno)),
        }
    }

    /// Opens every such directory that is there and is this user's alone.
    pub(super) fn existing() -> Vec<Self> {
        let places = Place::of_the_session()
            .into_iter()
            .chain([Place::of_the_machine()]);
        places
            .filter_map(|place| place.open(&Directory::at(&place.above).ok()?).ok())
            .collect()
    }

    /// Lists the names of files that may be records.
    pub(super) fn names(&self) -> Vec<OsString> {
        self.directory.names().unwrap_or_default()
    }
}

impl Place {
    /// Two hosts of one user must agree on it, whichever way they were started: so both places are swept, and new records
    /// go to the first of them that there is.
    fn preferred() -> Self {
        Self::of_the_session().unwrap_or_else(Self::of_the_machine)
    }

    /// The user's runtime directory, where it is one: it must be the user's alone (XDG Base Directory Specification), and is
    /// another's where the variable came with the environment of somebody else.
    fn of_the_session() -> Option<Self> {
        let above = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
        let private = above.is_absolute() && file::is_private_directory(&above);
        private.then(|| Self {
            above,
            name: "dsh-subprocess".to_owned(),
        })
    }

    /// Not the directory of `TMPDIR`, which differs from host to host.
    fn of_the_machine() -> Self {
        Self {
            above: Path::new("/tmp").to_owned(),
            name: format!("dsh-subprocess-{}", identity::user()),
        }
    }

    fn path(&self) -> PathBuf {
        self.above.join(&self.name)
    }

    fn open(&self, above: &Directory) -> Result<RecordDirectory, Unrecorded> {
        let path = self.path();
        let directory = match above.open(&self.name) {
            Ok(directory) => directory,
            // A symbolic link, or another user's closed directory.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return Err(Unrecorded::NotPrivate(path)),
            Err(errno) => return Err(Unrecorded::Unusable(path, errno)),
        };
        match directory.access() {
            Ok(access) if access.is_private() => Ok(RecordDirectory { path, directory }),
            Ok(_) => Err(Unrecorded::NotPrivate(path)),
            Err(errno) => Err(Unrecorded::Unusable(path, errno)),
        }
    }
}

/// Tells where this user's new records go, or why nowhere. Makes nothing.
pub(crate) fn look() -> Result<PathBuf, Unrecorded> {
    let place = Place::preferred();
    let unusable = |errno| Unrecorded::Unusable(place.path(), errno);
    let above = Directory::at(&place.above).map_err(unusable)?;
    match place.open(&above) {
        // A lock of the directory itself, for a moment, shows whether this file system has locks.
        Ok(there) => match file::try_lock(&there.directory) {
            Ok(_) => Ok(there.path),
            Err(errno) => Err(Unrecorded::Unlockable(there.path, errno)),
        },
        // It is made with the first record.
        Err(Unrecorded::Unusable(path, Errno::NOENT)) => Ok(path),
        Err(why) => Err(why),
    }
}
