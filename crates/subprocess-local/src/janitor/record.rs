//! A runtime's record: what it has in file systems, in a file that it keeps locked.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dsh_subprocess_sys::steps::{Step, step};
use dsh_subprocess_sys::{Errno, file, identity};

use super::contents::{self, Fact, LIMIT, Owner};
use super::directory::{RecordDirectory, Unrecorded};
use super::name;
use crate::reactor::lock;
use crate::warden::RuntimeWarden;

/// How often a record is made anew that a sweep took for an abandoned one before it was locked.
const ATTEMPTS: usize = 8;

/// The records that this process keeps. In a forked child they are still the parent's, and no less alive.
static KEPT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// What a runtime has in file systems, for whoever cleans up should this process die.
///
/// The file is locked as long as it names anything, and at least as long as this value lives: the lock says that the
/// owner does.
#[derive(Debug)]
pub(crate) struct Record {
    directory: RecordDirectory,
    name: String,
    /// Shared with nobody; see the drop.
    file: Arc<File>,
    /// The process that made it.
    process: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    length: u64,
    /// What is there now.
    named: Vec<PathBuf>,
    /// The file goes once nothing is.
    closing: bool,
    removed: bool,
}

impl Record {
    /// Makes this process's record of one runtime, which names nothing yet.
    ///
    /// # Errors
    ///
    /// Why there is none. A runtime works without.
    pub(crate) fn create() -> Result<Arc<Self>, Unrecorded> {
        let owner = Owner::this_process().map_err(Unrecorded::Nameless)?;
        Self::create_in(RecordDirectory::make()?, &owner).map(Arc::new)
    }

    fn create_in(directory: RecordDirectory, owner: &Owner) -> Result<Self, Unrecorded> {
        let unusable = |errno| Unrecorded::Unusable(directory.path.clone(), errno);
        for _ in 0..ATTEMPTS {
            let random =
                file::random::<6>().map_err(|error| Unrecorded::Unwritable(directory.path.clone(), error))?;
            let name = name::record(owner.pid, random);
            let file = directory.directory.create_file(&name).map_err(unusable)?;
            step(Step::RecordMade);
            match file::try_lock(&file) {
                // A sweep that saw the file before it was locked has removed it, or is about to.
                Ok(locked) if !locked || !directory.directory.names_file(&name, &file) => continue,
                Ok(_) => {}
                Err(errno) => {
                    let _ = directory.directory.unlink(&name);
                    return Err(Unrecorded::Unlockable(directory.path, errno));
                }
            }
            let begun = contents::begin(owner);
            if let Err(error) = (&file).write_all(begun.as_bytes()) {
                let _ = directory.directory.unlink(&name);
                return Err(Unrecorded::Unwritable(directory.path, error));
            }
            step(Step::RecordWritten);
            kept(|kept| kept.insert(name.clone()));
            return Ok(Self {
                directory,
                name,
                file: Arc::new(file),
                process: owner.pid,
                state: Mutex::new(State {
                    length: begun.len() as u64,
                    named: Vec::new(),
                    closing: false,
                    removed: false,
                }),
            });
        }
        Err(unusable(Errno::AGAIN))
    }

    /// Writes down the runtime's control group.
    ///
    /// # Errors
    ///
    /// When it is not written down: nobody will remove it should this process die.
    pub(crate) fn set_group(&self, path: &Path) -> Result<(), Unrecorded> {
        self.append(path, &Fact::Group(path.to_owned()))
    }

    /// Writes down a private directory that is about to be made.
    ///
    /// # Errors
    ///
    /// As for [`set_group`](Self::set_group).
    pub(crate) fn add_directory(&self, path: &Path) -> Result<(), Unrecorded> {
        self.append(path, &Fact::Directory(path.to_owned()))
    }

    fn append(&self, path: &Path, fact: &Fact) -> Result<(), Unrecorded> {
        let line = fact.line();
        let mut state = lock(&self.state);
        let length = state.length + line.len() as u64;
        if length > LIMIT {
            return Err(Unrecorded::Full);
        }
        if let Err(error) = (&*self.file).write_all(line.as_bytes()) {
            // Half a line would make one with the next.
            let _ = self.file.set_len(state.length);
            return Err(Unrecorded::Unwritable(self.directory.path.clone(), error));
        }
        state.length = length;
        state.named.push(path.to_owned());
        Ok(())
    }

    /// Something that was written down is gone. The line stays: nothing else ever has that name.
    pub(crate) fn forget(&self, path: &Path) {
        let mut state = lock(&self.state);
        state.named.retain(|named| named != path);
        if state.closing {
            self.remove_if_done(&mut state);
        }
    }

    /// Removes the record as soon as it names nothing that is still there: now, or when the last of it is forgotten.
    pub(crate) fn remove(&self) {
        let mut state = lock(&self.state);
        state.closing = true;
        self.remove_if_done(&mut state);
    }

    fn remove_if_done(&self, state: &mut State) {
        if state.removed || !state.named.is_empty() {
            return;
        }
        state.removed = true;
        kept(|kept| kept.remove(&self.name));
        // The name goes while the lock is held, so nobody ever finds this record free.
        if self.directory.directory.names_file(&self.name, &self.file)
            && let Err(errno) = self.directory.directory.unlink(&self.name)
        {
            tracing::warn!(path = %self.path().display(), %errno, "a record could not be removed");
        }
    }

    /// Returns where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }

    /// Hands the record to a warden, which knows all that it names and removes it last. The lock lasts until every copy of the
    /// descriptor is closed, so the warden cleans up before anybody else does.
    pub(crate) fn entrust(&self, warden: &RuntimeWarden) {
        match self.file.as_fd().try_clone_to_owned() {
            Ok(file) => warden.own_record(&self.path(), file),
            Err(error) => tracing::debug!(%error, "the record is not handed to the warden"),
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // A forked child drops its copy of its parent's.
        if self.process != identity::pid() {
            return;
        }
        self.remove();
        if !lock(&self.state).removed {
            // What it names is still there, as far as this process knows, and may be in use. So the lock stays until the
            // process ends: to sweeps in other pid namespaces it is the only sign of life.
            std::mem::forget(Arc::clone(&self.file));
        }
    }
}

/// Leaves out the records that this process keeps, so that a sweep need not try their locks.
pub(super) fn retain_others(names: &mut Vec<OsString>) {
    kept(|kept| {
        names.retain(|name| name.to_str().is_none_or(|name| !kept.contains(name)));
        true
    });
}

/// Does something with the list of kept records, unless somebody else is at it. It only spares work, and in a forked child a
/// thread that is not there may have it for ever.
fn kept(with: impl FnOnce(&mut BTreeSet<String>) -> bool) {
    if let Ok(mut kept) = KEPT.try_lock() {
        with(&mut kept);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use dsh_subprocess_sys::directory::Directory;

    use super::*;

    fn place() -> (tempfile::TempDir, RecordDirectory) {
        let place = tempfile::tempdir().expect("a temporary directory");
        let directory = open(place.path());
        (place, directory)
    }

    fn open(path: &Path) -> RecordDirectory {
        let above = Directory::at(path.parent().expect("it is in a directory")).expect("it is there");
        RecordDirectory {
            path: path.to_owned(),
            directory: above
                .open(path.file_name().expect("it has a name"))
                .expect("it is there"),
        }
    }

    fn record(directory: RecordDirectory) -> Record {
        let owner = Owner::this_process().expect("/proc is there");
        Record::create_in(directory, &owner).expect("it can be made")
    }

    fn is_locked(path: &Path) -> bool {
        let file = File::open(path).expect("it is there");
        !file::try_lock(&file).expect("it can be locked")
    }

    #[test]
    fn a_record_says_what_was_written_down_and_is_locked() {
        let (_place, directory) = place();
        let record = record(directory);
        record.add_directory(Path::new("/tmp/x")).expect("there is room");
        record
            .set_group(Path::new("/sys/fs/cgroup/y"))
            .expect("there is room");
        let text = fs::read(record.path()).expect("it is there");
        let contents = contents::parse(&text).expect("it is a record");
        assert_eq!(contents.owner, Owner::this_process().expect("/proc is there"));
        assert_eq!(
            contents.facts,
            [
                Fact::Directory("/tmp/x".into()),
                Fact::Group("/sys/fs/cgroup/y".into())
            ]
        );
        assert!(is_locked(&record.path()));
    }

    #[test]
    fn a_record_goes_when_nothing_of_what_it_names_is_there() {
        let (place, directory) = place();
        let record = record(directory);
        record.add_directory(Path::new("/tmp/x")).expect("there is room");
        record.remove();
        assert!(record.path().exists(), "it still names something");
        record.forget(Path::new("/tmp/x"));
        assert_eq!(fs::read_dir(place.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn a_dropped_record_that_names_something_stays_locked() {
        let (place, directory) = place();
        let path = {
            let record = record(directory);
            record.add_directory(Path::new("/tmp/x")).expect("there is room");
            record.path()
        };
        assert!(is_locked(&path));
        drop(record(open(place.path())));
        assert_eq!(
            fs::read_dir(place.path()).expect("it is there").count(),
            1,
            "one that names nothing is gone"
        );
    }

    #[test]
    fn a_full_record_takes_no_more_and_stays_a_record() {
        let (_place, directory) = place();
        let record = record(directory);
        let path = PathBuf::from(format!("/{}", "x".repeat(4000)));
        let failure = (0..100).find_map(|_| record.add_directory(&path).err());
        assert!(matches!(failure, Some(Unrecorded::Full)), "{failure:?}");
        assert!(contents::parse(&fs::read(record.path()).expect("it is there")).is_ok());
    }

    #[test]
    fn somebody_elses_file_in_its_place_is_left_alone() {
        let (_place, directory) = place();
        let record = record(directory);
        fs::remove_file(record.path()).expect("it is there");
        fs::write(record.path(), "another").expect("it is writable");
        record.remove();
        assert_eq!(fs::read(record.path()).expect("it is there"), b"another");
    }
}
