//! The runtime's private directory of spilled streams, and what they take in all.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dsh_subprocess::SpillNotice;
use dsh_subprocess_sys::{Errno, file};

use super::file::SpillFile;
use crate::reactor::lock;

/// The file whose lock says that the directory's owner lives.
const LOCK: &str = "owner.lock";

/// Where spilled streams go.
#[derive(Clone, Debug)]
pub(crate) struct SpillPlaces {
    /// The private directory is made in here. `None` is the system's directory for temporary files, asked when it is
    /// needed.
    pub(crate) parent: Option<PathBuf>,
    /// Kept files are moved to here. `None` is the user's state directory.
    pub(crate) kept: Option<PathBuf>,
    /// Bytes that all files together may take.
    pub(crate) total: u64,
}

/// The directory, made at the first spill and made again if somebody removes it.
#[derive(Debug)]
pub(crate) struct SpillDirectory {
    places: SpillPlaces,
    made: Mutex<Option<Made>>,
    next: AtomicU64,
    ledger: Mutex<Ledger>,
}

#[derive(Debug)]
struct Made {
    path: PathBuf,
    /// Held as long as the runtime lives: the proof, for whoever finds the directory, that its owner is alive.
    _lock: File,
}

/// What the files take, and which of them may go to make room.
#[derive(Debug, Default)]
struct Ledger {
    used: u64,
    /// Files that live as long as the runtime, oldest settled first.
    settled: VecDeque<(Arc<SpillFile>, SpillNotice)>,
}

impl SpillDirectory {
    pub(crate) fn new(places: SpillPlaces) -> Arc<Self> {
        Arc::new(Self {
            places,
            made: Mutex::default(),
            next: AtomicU64::new(1),
            ledger: Mutex::default(),
        })
    }

    /// Makes a new private file for a stream and returns its id with it.
    pub(super) fn create(&self, label: &str) -> io::Result<(u64, PathBuf, File)> {
        let mut made = lock(&self.made);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!(
            "dsh-subprocess-{}-{id}-{}-{label}.log",
            std::process::id(),
            random_hex()?
        );
        if let Some(directory) = &*made {
            let path = directory.path.join(&name);
            match file::create_private_file(&path) {
                // Removed under us: it is made again below.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
                Ok(file) => return Ok((id, path, file)),
            }
        }
        // Kept before anything else can fail, so that it is removed whatever comes.
        let directory = made.insert(self.make()?);
        let path = directory.path.join(&name);
        let file = file::create_private_file(&path)?;
        Ok((id, path, file))
    }

    fn make(&self) -> io::Result<Made> {
        let parent = self.places.parent.clone().unwrap_or_else(std::env::temp_dir);
        let path = parent.join(format!("dsh-subprocess-{}-{}", std::process::id(), random_hex()?));
        file::make_private_directory(&path)?;
        let locked = file::create_private_file(&path.join(LOCK))
            .and_then(|owner| file::try_lock(&owner).map(|_| owner));
        match locked {
            Ok(owner) => Ok(Made { path, _lock: owner }),
            Err(errno) => {
                let _ = std::fs::remove_file(path.join(LOCK));
                let _ = std::fs::remove_dir(&path);
                Err(errno.into())
            }
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
            let _ = std::fs::remove_file(made.path.join(LOCK));
            // Files that somebody still reads are theirs to remove; then the directory stays until they do.
            let _ = std::fs::remove_dir(&made.path);
        }
    }

    /// Removes the directory of a file that outlived the runtime, if it was the last.
    pub(super) fn remove_emptied(&self, directory: &Path) {
        if lock(&self.made)
            .as_ref()
            .is_none_or(|made| made.path != directory)
        {
            let _ = std::fs::remove_dir(directory);
        }
    }
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
