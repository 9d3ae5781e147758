//! The file of one stream: complete, or withdrawn.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use bytes::Bytes;
use dsh_subprocess::{
    Error, ErrorKind, Spill, SpillLife, SpillNotice, SpillSource, SpilledStream, StreamName,
};
use dsh_subprocess_sys::file::{links, open_to_read};
use dsh_subprocess_sys::identity;
use futures_core::future::BoxFuture;

use super::{SpillDirectory, SpillPlace};
use crate::blocking::Blocking;
use crate::reactor::lock;

/// The largest single answer to a read, in bytes.
const READ: usize = 16 * 1024 * 1024;

/// A stream's claim to a file: made with the stream, used at the first overflow.
///
/// The collector and its readers hold it as their [`SpillSource`]; when the last of them goes, a file of the handle's
/// life goes with it.
#[derive(Debug)]
pub(crate) struct StreamSpill {
    directory: Arc<SpillDirectory>,
    blocking: Arc<Blocking>,
    place: SpillPlace,
    spill: Spill,
    label: StreamName,
    file: OnceLock<Arc<SpillFile>>,
}

/// One file.
#[derive(Debug)]
pub(super) struct SpillFile {
    /// The process that made it.
    process: u32,
    id: u64,
    path: Mutex<PathBuf>,
    /// Open while it is written. A runtime may have thousands of complete ones.
    open: Mutex<Option<Arc<File>>>,
    identity: Identity,
    length: AtomicU64,
    directory: Weak<SpillDirectory>,
    /// Whether it is where kept files are.
    kept: bool,
    /// Set once the file is removed, and why.
    gone: OnceLock<String>,
}

/// Which file it is, whatever has its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Identity {
    device: u64,
    inode: u64,
}

impl From<Metadata> for Identity {
    fn from(metadata: Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

impl StreamSpill {
    pub(crate) fn new(
        directory: Arc<SpillDirectory>,
        blocking: Arc<Blocking>,
        place: SpillPlace,
        spill: Spill,
        label: StreamName,
    ) -> Arc<Self> {
        Arc::new(Self {
            directory,
            blocking,
            place,
            spill,
            label,
            file: OnceLock::new(),
        })
    }

    /// Appends bytes, after `retained` when the file is new. It may block as long as the disk does.
    ///
    /// # Errors
    ///
    /// Why the stream has no file from now on. What was written is removed.
    pub(crate) fn append(
        &self,
        retained: impl FnOnce() -> Vec<u8>,
        bytes: &[u8],
    ) -> Result<SpilledStream, String> {
        let first = if self.file.get().is_none() {
            retained()
        } else {
            Vec::new()
        };
        let length = self.file.get().map_or(0, |file| file.length()) + (first.len() + bytes.len()) as u64;
        if length > self.spill.max_bytes.get() {
            return Err(self.discard(format!(
                "the stream is longer than {} bytes, the largest spill",
                self.spill.max_bytes
            )));
        }
        if let Err(why) = self.directory.reserve((first.len() + bytes.len()) as u64) {
            return Err(self.discard(why));
        }
        let file = match self.file.get() {
            Some(file) => file,
            None => match SpillFile::create(&self.directory, self.label, &self.place, self.spill.life) {
                Ok(file) => self.file.get_or_init(|| file),
                Err(error) => {
                    self.directory.release((first.len() + bytes.len()) as u64);
                    return Err(format!("the spill file could not be made: {error}"));
                }
            },
        };
        // The length counts what the ledger has, so that a failed write gives all of it back.
        file.length.store(length, Ordering::Release);
        match file.write(&first).and_then(|()| file.write(bytes)) {
            // A file without a name is lost to everybody who would look for it by its path.
            Ok(()) if file.is_nameless() => {
                Err(self.discard("the spill file was removed by somebody else".to_owned()))
            }
            Ok(()) => Ok(file.describe()),
            Err(error) => Err(self.discard(format!("the spill file could not be written: {error}"))),
        }
    }

    /// The stream has ended: the file is complete. Returns where it is now.
    pub(crate) fn settle(&self, notice: SpillNotice) -> Option<Result<SpilledStream, String>> {
        let file = self.file.get().filter(|file| file.gone.get().is_none())?;
        if file.is_nameless() {
            return Some(Err(
                self.discard("the spill file was removed by somebody else".to_owned())
            ));
        }
        if let SpillLife::Keep = self.spill.life
            && let Err(error) = file.finish(&self.directory)
        {
            let path = lock(&file.path).display().to_string();
            return Some(Err(self.discard(format!(
                "the spill {path} is complete and could not be named so: {error}"
            ))));
        }
        drop(lock(&file.open).take());
        if let SpillLife::Runtime = self.spill.life {
            self.directory.settle(Arc::clone(file), notice);
        }
        Some(Ok(file.describe()))
    }

    fn discard(&self, why: String) -> String {
        if let Some(file) = self.file.get() {
            file.withdraw(&why);
        }
        why
    }
}

impl Drop for StreamSpill {
    fn drop(&mut self) {
        if let SpillLife::Handle = self.spill.life
            && let Some(file) = self.file.get()
        {
            file.withdraw("removed with its handle");
        }
    }
}

impl SpillFile {
    fn create(
        directory: &Arc<SpillDirectory>,
        label: StreamName,
        place: &SpillPlace,
        life: SpillLife,
    ) -> io::Result<Arc<Self>> {
        let (id, path, file) = match life {
            SpillLife::Keep => directory.create_kept(label, place)?,
            _ => directory.create(label, place)?,
        };
        Ok(Arc::new(Self {
            process: identity::pid(),
            id,
            path: Mutex::new(path),
            identity: file.metadata()?.into(),
            open: Mutex::new(Some(Arc::new(file))),
            length: AtomicU64::new(0),
            directory: Arc::downgrade(directory),
            kept: life == SpillLife::Keep,
            gone: OnceLock::new(),
        }))
    }

    pub(super) fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let file = lock(&self.open).clone();
        let file = file.ok_or_else(|| io::Error::other("its stream has ended"))?;
        (&*file).write_all(bytes)
    }

    /// Returns the file, which is opened again where the stream has ended.
    fn reader(&self) -> io::Result<Arc<File>> {
        if let Some(file) = &*lock(&self.open) {
            return Ok(Arc::clone(file));
        }
        let file = open_to_read(&lock(&self.path))?;
        if Identity::from(file.metadata()?) == self.identity {
            Ok(Arc::new(file))
        } else {
            Err(io::Error::other("there is another file of its name"))
        }
    }

    fn is_nameless(&self) -> bool {
        lock(&self.open)
            .as_ref()
            .is_some_and(|file| links(file).is_ok_and(|links| links == 0))
    }

    fn describe(&self) -> SpilledStream {
        SpilledStream::new(self.id, self.length(), lock(&self.path).clone())
    }

    /// Removes the file for good.
    pub(super) fn withdraw(&self, why: &str) {
        // A forked child drops its copies of files that are not its own.
        if self.process != identity::pid() || self.gone.set(why.to_owned()).is_err() {
            return;
        }
        let path = lock(&self.path);
        // Only what was made here is removed: somebody may have put another file in its place.
        let there = fs::symlink_metadata(&*path);
        let ours = there.is_ok_and(|there| Identity::from(there) == self.identity);
        drop(lock(&self.open).take());
        if ours && let Err(error) = fs::remove_file(&*path) {
            tracing::warn!(path = %path.display(), %error, "a spill file could not be removed");
        }
        if let Some(directory) = self.directory.upgrade() {
            directory.release(self.length());
            if !self.kept
                && let Some(above) = path.parent()
            {
                directory.remove_emptied(above);
            }
        }
    }

    /// The kept file is complete, and gets the name that says so.
    fn finish(&self, directory: &SpillDirectory) -> io::Result<()> {
        let mut path = lock(&self.path);
        let finished = super::directory::finished(&path).ok_or(io::ErrorKind::InvalidInput)?;
        fs::rename(&*path, &finished)?;
        *path = finished;
        // It is the caller's now, and takes nothing of the runtime's room.
        directory.release(self.length());
        Ok(())
    }
}

impl SpillSource for StreamSpill {
    fn read(
        &self,
        stream: &SpilledStream,
        offset: u64,
        length: usize,
    ) -> BoxFuture<'static, Result<Bytes, Error>> {
        let file = self.file.get().filter(|file| file.id == stream.id).cloned();
        self.blocking_read(file, offset, length.min(READ))
    }
}

impl StreamSpill {
    fn blocking_read(
        &self,
        file: Option<Arc<SpillFile>>,
        offset: u64,
        length: usize,
    ) -> BoxFuture<'static, Result<Bytes, Error>> {
        let unavailable = |why: &str| {
            Error::new(
                ErrorKind::SpillUnavailable,
                "read",
                format!("the stream has no spill: {why}"),
            )
        };
        let Some(file) = file else {
            return Box::pin(std::future::ready(Err(unavailable("it was never made"))));
        };
        if let Some(why) = file.gone.get() {
            return Box::pin(std::future::ready(Err(unavailable(why))));
        }
        let answer = self.blocking.run("read", move || {
            let end = file.length();
            let length = usize::try_from(end.saturating_sub(offset))
                .unwrap_or(usize::MAX)
                .min(length);
            let mut bytes = vec![0; length];
            file.reader()?
                .read_exact_at(&mut bytes, offset)
                .map(|()| Bytes::from(bytes))
        });
        Box::pin(async move {
            answer.await?.map_err(|error| {
                Error::new(
                    ErrorKind::Os,
                    "read",
                    format!("the spill could not be read at {offset}: {error}"),
                )
                .with_source(error)
            })
        })
    }
}
