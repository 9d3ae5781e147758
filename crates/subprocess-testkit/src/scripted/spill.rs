//! Spilled streams, kept in the world's own memory and read by asking it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use dsh_subprocess::{Collector, Error, ErrorKind, Spill, SpillLife, SpillSource, SpilledStream};
use futures_core::future::BoxFuture;

use super::inner::{Core, Inner, observe};

/// The files of one world. Shared by the world and the readers, which may drop it from any thread.
#[derive(Clone, Debug, Default)]
pub(super) struct SpillStore(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    last_id: u64,
    files: BTreeMap<u64, File>,
}

#[derive(Debug)]
struct File {
    life: SpillLife,
    bytes: Vec<u8>,
}

/// The writing side of one stream's spill.
#[derive(Debug)]
pub(super) struct SpillWriter {
    store: SpillStore,
    limits: Spill,
    id: u64,
    location: String,
    /// The whole stream so far; emptied when the spill is withdrawn.
    whole: Vec<u8>,
    withdrawn: bool,
}

/// The reading side of one stream's spill. Its drop is the drop of the last reader.
pub(super) struct ScriptedSpill {
    world: Weak<Inner>,
    store: SpillStore,
    id: u64,
    life: SpillLife,
}

impl SpillStore {
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a stream an id, and makes both sides of its spill.
    pub(super) fn open(&self, limits: Spill, world: Weak<Inner>) -> (SpillWriter, Arc<ScriptedSpill>) {
        let id = {
            let mut files = self.lock();
            files.last_id += 1;
            files.last_id
        };
        let place = if limits.life == SpillLife::Keep {
            "kept"
        } else {
            "spills"
        };
        let writer = SpillWriter {
            store: self.clone(),
            limits,
            id,
            location: format!("world://{place}/{id}"),
            whole: Vec::new(),
            withdrawn: false,
        };
        (
            writer,
            Arc::new(ScriptedSpill {
                world,
                store: self.clone(),
                id,
                life: limits.life,
            }),
        )
    }

    /// Removes what lives as long as the runtime.
    pub(super) fn end_runtime(&self) {
        self.lock().files.retain(|_, file| file.life == SpillLife::Keep);
    }

    /// Returns how many files there are.
    pub(super) fn len(&self) -> usize {
        self.lock().files.len()
    }
}

impl SpillWriter {
    /// Takes bytes of the stream that the collector has counted already, and publishes or withdraws the file.
    pub(super) fn append(&mut self, bytes: &[u8], max_bytes: usize, collector: &mut Collector) {
        if self.withdrawn {
            return;
        }
        self.whole.extend_from_slice(bytes);
        let length = self.whole.len() as u64;
        if length > self.limits.max_bytes.get() {
            self.withdrawn = true;
            self.whole = Vec::new();
            self.store.lock().files.remove(&self.id);
            collector.spill_withdrawn(format!("the stream exceeds {} bytes", self.limits.max_bytes));
        } else if self.whole.len() > max_bytes {
            self.store
                .lock()
                .files
                .entry(self.id)
                .or_insert_with(|| File {
                    life: self.limits.life,
                    bytes: Vec::new(),
                })
                .bytes
                .clone_from(&self.whole);
            collector.spill_reached(SpilledStream::new(self.id, length, self.location.as_str()));
        }
    }
}

impl SpillSource for ScriptedSpill {
    fn read(
        &self,
        stream: &SpilledStream,
        offset: u64,
        length: usize,
    ) -> BoxFuture<'static, Result<Bytes, Error>> {
        let (store, id, location) = (self.store.clone(), stream.id, stream.location.clone());
        let gone = move || {
            Error::new(
                ErrorKind::SpillUnavailable,
                "read",
                format!("there is no spilled stream {location}"),
            )
        };
        let Some(world) = self.world.upgrade() else {
            return Box::pin(std::future::ready(Err(gone())));
        };
        let arrival = world.with(Core::plan_answer);
        observe(world, move |core| {
            core.has_arrived(arrival).then(|| {
                let files = store.lock();
                let bytes = &files.files.get(&id).ok_or_else(&gone)?.bytes;
                let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
                let end = start.saturating_add(length).min(bytes.len());
                Ok(Bytes::copy_from_slice(&bytes[start..end]))
            })
        })
    }
}

impl Drop for ScriptedSpill {
    fn drop(&mut self) {
        if self.life == SpillLife::Handle {
            self.store.lock().files.remove(&self.id);
        }
    }
}
