//! The runtime's private directories of spilled streams, and what they take in all.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dsh_subprocess::{SpillNotice, StreamName};
use dsh_subprocess_sys::steps::{Step, step};
use dsh_subprocess_sys::{Errno, file};

use super::file::SpillFile;
use crate::environment::Ambient;
use crate::janitor::Record;
use crate::reactor::lock;
use crate::warden::RuntimeWarden;

/// How the name of a kept file ends until its stream has.
const UNFINISHED: &str = ".partial";

/// Where spilled streams go.
#[derive(Clone, Debug)]
pub(crate) struct SpillPlaces {
    /// The private directory is made in here, unless another place is set later. `None` is the directory for temporary files,
    /// looked up when it is needed.
    pub(crate) parent: Option<PathBuf>,
    /// Kept files are here from the start. `None` is the user's state directory.
    pub(crate) kept: Option<PathBuf>,
    /// Bytes that all files together may take.
    pub(crate) total: u64,
}

/// Directories of one runtime at most, each below a parent of its own. A warden holds no more than 256 of them, and of other
/// things.
const DIRECTORIES: usize = 128;

/// Where the files of one stream go, as that was when its tree was spawned.
#[derive(Clone, Debug)]
pub(crate) struct SpillPlace {
    parent: Option<PathBuf>,
    /// Names the system's and the user's directories.
    ambient: Ambient,
}

/// The directories, one for each parent: made at the first spill and made again if somebody removes it.
#[derive(Debug)]
pub(crate) struct SpillDirectory {
    places: SpillPlaces,
    /// Names the directory before it is made, so that it is removed should this process die.
    record: Option<Arc<Record>>,
    /// Removes it at once then.
    warden: Option<Arc<RuntimeWarden>>,
    /// Instead of the builder's.
    parent: Mutex<Option<PathBuf>>,
    made: Mutex<Vec<Made>>,
    next: AtomicU64,
    ledger: Mutex<Ledger>,
}

/// A private directory.
#[derive(Debug)]
struct Made {
    below: PathBuf,
    path: PathBuf,
}

/// What the files take, and which of them may go to make room.
#[derive(Debug, Default)]
struct Ledger {
    used: u64,
    /// Files that live as long as the runtime, oldest settled first.
    settled: VecDeque<(Arc<SpillFile>, SpillNotice)>,
}

impl SpillDirectory {
    pub(crate) fn new(
        places: SpillPlaces,
        record: Option<Arc<Record>>,
        warden: Option<Arc<RuntimeWarden>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            places,
            record,
            warden,
            parent: Mutex::default(),
            made: Mutex::default(),
            next: AtomicU64::new(1),
            ledger: Mutex::default(),
        })
    }

    /// Changes where the directories of later trees are made. `None` is the builder's choice.
    pub(crate) fn set_parent(&self, parent: Option<PathBuf>) {
        *lock(&self.parent) = parent;
    }

    /// Returns where the files of a tree go that is spawned now.
    pub(crate) fn place(&self, ambient: &Ambient) -> SpillPlace {
        let parent = lock(&self.parent).clone();
        SpillPlace {
            parent: parent.or_else(|| self.places.parent.clone()),
            ambient: ambient.clone(),
        }
    }

    /// Makes a new private file for a stream and returns its id with it.
    pub(super) fn create(&self, label: StreamName, place: &SpillPlace) -> io::Result<(u64, PathBuf, File)> {
        let below = match &place.parent {
            Some(parent) => parent.clone(),
            None => place.ambient.temporary_directory(),
        };
        let mut made = lock(&self.made);
        let (id, name) = self.name(label)?;
        if let Some(there) = made.iter().position(|made| made.below == below) {
            let path = made[there].path.join(&name);
            match file::create_private_file(&path) {
                // Removed under us: it is made again below.
                Err(Errno::NOENT) => self.forget(&made.swap_remove(there).path),
                Err(errno) => return Err(errno.into()),
                Ok(file) => return Ok((id, path, file)),
            }
        }
        if made.len() >= DIRECTORIES {
            return Err(io::Error::other(format!(
                "the runtime has directories for spills below {DIRECTORIES} others already"
            )));
        }
        let directory = self.make(&below).map_err(|error| {
            let text = format!("no directory could be made in {}: {error}", below.display());
            io::Error::new(error.kind(), text)
        })?;
        let path = directory.join(&name);
        // Kept before anything else can fail, so that it is removed whatever comes.
        made.push(Made {
            below,
            path: directory,
        });
        let file = file::create_private_file(&path)?;
        Ok((id, path, file))
    }

    /// Makes a new private file for a stream that is kept. It is there from the start, where nobody removes it: what a host
    /// that died had kept so far is its caller's. Its name says that it is not complete.
    pub(super) fn create_kept(
        &self,
        label: StreamName,
        place: &SpillPlace,
    ) -> io::Result<(u64, PathBuf, File)> {
        let (id, name) = self.name(label)?;
        let path = self.kept(&place.ambient)?.join(name + UNFINISHED);
        let file = file::create_private_file(&path)?;
        Ok((id, path, file))
    }

    fn name(&self, label: StreamName) -> io::Result<(u64, String)> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        Ok((
            id,
            format!("dsh-subprocess-{process}-{id}-{}-{label}.log", random_hex()?),
        ))
    }

    fn make(&self, parent: &Path) -> io::Result<PathBuf> {
        let name = format!("dsh-subprocess-{}-{}", std::process::id(), random_hex()?);
        // Whoever reads the record has another working directory.
        let parent = std::path::absolute(parent)?;
        // A record has no room for every attempt at a place that is not there.
        if !std::fs::metadata(&parent)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let path = parent.join(name);
        if let Some(record) = &self.record
            && let Err(why) = record.add_directory(&path)
        {
            tracing::debug!(path = %path.display(), %why, "a spill directory is not recorded");
        }
        // A warden that does not know the directory must not remove the record that names it: the next start needs it.
        if let (Some(warden), Some(record)) = (&self.warden, &self.record) {
            warden.disown(&record.path());
        }
        step(Step::SpillNamed);
        file::make_private_directory(&path).inspect_err(|_| self.forget(&path))?;
        step(Step::SpillMade);
        if let Some(warden) = &self.warden {
            match File::open(&path) {
                Ok(directory) => {
                    warden.own_directory(&path, directory.into());
                    if let Some(record) = &self.record {
                        record.entrust(warden);
                    }
                }
                Err(error) => {
                    tracing::debug!(path = %path.display(), %error, "a spill directory is not handed to the warden");
                }
            }
        }
        step(Step::SpillEntrusted);
        Ok(path)
    }

    /// The directory is gone.
    fn forget(&self, directory: &Path) {
        if let Some(record) = &self.record {
            record.forget(directory);
        }
        if let Some(warden) = &self.warden {
            warden.disown(directory);
        }
    }

    /// Makes room in the ledger for more bytes. Settled files of the runtime's life go first, the oldest first.
    pub(super) fn reserve(&self, bytes: u64) -> Result<(), String> {
        loop {
            let mut ledger = lock(&self.ledger);
            if ledger.used.saturating_add(bytes) <= self.places.total {
                ledger.used += bytes;
                return Ok(());
            }
            let oldest = ledger.settled.pop_front();
            drop(ledger);
            let Some((file, notice)) = oldest else {
                return Err(format!(
                    "the runtime's spilled streams may take {} bytes in all, and there is no older one to remove",
                    self.places.total
                ));
            };
            let why = "removed to make room for newer streams";
            // It gives back what it took.
            file.withdraw(why);
            notice.withdrawn(why);
        }
    }

    /// Gives back what a removed file took.
    pub(super) fn release(&self, bytes: u64) {
        let mut ledger = lock(&self.ledger);
        ledger.used -= bytes.min(ledger.used);
    }

    /// Keeps a settled file until the runtime ends or its room is needed.
    pub(super) fn settle(&self, file: Arc<SpillFile>, notice: SpillNotice) {
        lock(&self.ledger).settled.push_back((file, notice));
    }

    /// Returns where kept files go, and makes that directory.
    pub(super) fn kept(&self, ambient: &Ambient) -> io::Result<PathBuf> {
        let kept = match &self.places.kept {
            Some(kept) => kept.clone(),
            None => state_directory(ambient)?.join("dsh-subprocess").join("spills"),
        };
        if let Some(above) = kept.parent() {
            std::fs::create_dir_all(above)?;
        }
        match file::make_private_directory(&kept) {
            Ok(()) => Ok(kept),
            Err(Errno::EXIST) if file::is_private_directory(&kept) => Ok(kept),
            Err(Errno::EXIST) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} is not a private directory of this user's", kept.display()),
            )),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes the files of the runtime's life, and the directories with whatever is left in them.
    pub(crate) fn remove(&self) {
        let settled = std::mem::take(&mut lock(&self.ledger).settled);
        for (file, notice) in settled {
            const WHY: &str = "removed with the runtime";
            file.withdraw(WHY);
            notice.withdrawn(WHY);
        }
        for made in std::mem::take(&mut *lock(&self.made)) {
            // Files that somebody still reads are theirs to remove; then the directory stays until they do.
            self.remove_directory(&made.path);
        }
    }

    /// Removes the directory of a file that outlived the runtime, if it was the last.
    pub(super) fn remove_emptied(&self, directory: &Path) {
        if lock(&self.made).iter().all(|made| made.path != directory) {
            self.remove_directory(directory);
        }
    }

    fn remove_directory(&self, directory: &Path) {
        match std::fs::remove_dir(directory) {
            Ok(()) => self.forget(directory),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.forget(directory),
            Err(_) => {}
        }
    }
}

/// Returns the name that a kept file has once it is complete.
pub(super) fn finished(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(UNFINISHED)?;
    Some(path.with_file_name(name))
}

/// The user's directory for state that outlives restarts (XDG Base Directory Specification).
fn state_directory(ambient: &Ambient) -> io::Result<PathBuf> {
    let absolute = |name| {
        ambient
            .variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "neither XDG_STATE_HOME nor HOME names a directory to keep a spill in",
            )
        })
}

fn random_hex() -> io::Result<String> {
    Ok(file::random::<6>()?.map(|byte| format!("{byte:02x}")).concat())
}
