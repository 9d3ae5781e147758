//! The runtime's private directory of spilled streams, and what they take in all.

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
use crate::janitor::Record;
use crate::reactor::lock;
use crate::warden::RuntimeWarden;

/// How the name of a kept file ends until its stream has.
const UNFINISHED: &str = ".partial";

/// Where spilled streams go.
#[derive(Clone, Debug)]
pub(crate) struct SpillPlaces {
    /// The private directory is made in here. `None` is the system's directory for temporary files, asked when it is
    /// needed.
    pub(crate) parent: Option<PathBuf>,
    /// Kept files are here from the start. `None` is the user's state directory.
    pub(crate) kept: Option<PathBuf>,
    /// Bytes that all files together may take.
    pub(crate) total: u64,
}

/// The directory, made at the first spill and made again if somebody removes it.
#[derive(Debug)]
pub(crate) struct SpillDirectory {
    places: SpillPlaces,
    /// Names the directory before it is made, so that it is removed should this process die.
    record: Option<Arc<Record>>,
    /// Removes it at once then.
    warden: Option<Arc<RuntimeWarden>>,
    made: Mutex<Option<PathBuf>>,
    next: AtomicU64,
    ledger: Mutex<Ledger>,
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
            made: Mutex::default(),
            next: AtomicU64::new(1),
            ledger: Mutex::default(),
        })
    }

    /// Makes a new private file for a stream and returns its id with it.
    pub(super) fn create(&self, label: StreamName) -> io::Result<(u64, PathBuf, File)> {
        let mut made = lock(&self.made);
        let (id, name) = self.name(label)?;
        if let Some(directory) = &*made {
            let path = directory.join(&name);
            match file::create_private_file(&path) {
                // Removed under us: it is made again below.
                Err(Errno::NOENT) => self.forget(directory),
                Err(errno) => return Err(errno.into()),
                Ok(file) => return Ok((id, path, file)),
            }
        }
        // Kept before anything else can fail, so that it is removed whatever comes.
        let directory = made.insert(self.make()?);
        let path = directory.join(&name);
        let file = file::create_private_file(&path)?;
        Ok((id, path, file))
    }

    /// Makes a new private file for a stream that is kept. It is there from the start, where nobody removes it: what a host
    /// that died had kept so far is its caller's. Its name says that it is not complete.
    pub(super) fn create_kept(&self, label: StreamName) -> io::Result<(u64, PathBuf, File)> {
        let (id, name) = self.name(label)?;
        let path = self.kept()?.join(name + UNFINISHED);
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

    fn make(&self) -> io::Result<PathBuf> {
        let parent = self.places.parent.clone().unwrap_or_else(std::env::temp_dir);
        let name = format!("dsh-subprocess-{}-{}", std::process::id(), random_hex()?);
        // Whoever reads the record has another working directory.
        let path = std::path::absolute(parent)?.join(name);
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
    pub(super) fn kept(&self) -> io::Result<PathBuf> {
        let kept = match &self.places.kept {
            Some(kept) => kept.clone(),
            None => state_directory()?.join("dsh-subprocess").join("spills"),
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

    /// Removes the files of the runtime's life, and the directory with whatever is left in it.
    pub(crate) fn remove(&self) {
        let settled = std::mem::take(&mut lock(&self.ledger).settled);
        for (file, notice) in settled {
            const WHY: &str = "removed with the runtime";
            file.withdraw(WHY);
            notice.withdrawn(WHY);
        }
        if let Some(made) = lock(&self.made).take() {
            // Files that somebody still reads are theirs to remove; then the directory stays until they do.
            self.remove_directory(&made);
        }
    }

    /// Removes the directory of a file that outlived the runtime, if it was the last.
    pub(super) fn remove_emptied(&self, directory: &Path) {
        if lock(&self.made).as_ref().is_none_or(|made| made != directory) {
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
fn state_directory() -> io::Result<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
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
