//! One owner as the registry knows it, and one job with what is kept of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_subprocess::{OutputReader, StreamName, TextCursor};
use tokio::sync::{Notify, SetOnce, watch};

use crate::ledger::Entry;
use crate::work::ForeignError;
use crate::{JobId, JobInfo, NewJob, Orphan, OwnerId, Work};

/// Locks, also where somebody panicked under the lock: every change under one is complete before anything can panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whose jobs they are, and how to reach those who look at them. One per session, and one for the unowned jobs.
pub(crate) struct Owner {
    /// The registry's own number of it. An owner that comes back has another one, and sees nothing of what was before.
    pub(crate) key: u64,
    pub(crate) id: Option<OwnerId>,
    /// Counts what happened to the jobs.
    pub(crate) changes: watch::Sender<u64>,
    /// Wakes those who wait for a notice.
    pub(crate) noticed: Notify,
    /// What refused to end when the owner did.
    pub(crate) orphans: Mutex<Vec<Orphan>>,
}

impl Owner {
    pub(crate) fn new(key: u64, id: Option<OwnerId>) -> Arc<Self> {
        Arc::new(Self {
            key,
            id,
            changes: watch::Sender::new(0),
            noticed: Notify::new(),
            orphans: Mutex::default(),
        })
    }

    /// Tells that something happened. Wakers are foreign code: never under the registry's lock.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// One job: what never changes of it, and what has a lock of its own.
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) new: NewJob,
    pub(crate) owner: Arc<Owner>,
    pub(crate) sequence: u64,
    pub(crate) streams: Vec<(StreamName, OutputReader)>,
    /// Where the consuming reads stand, one for each stream.
    pub(crate) cursors: Mutex<Vec<TextCursor>>,
    /// Gone once the job has settled.
    pub(crate) work: Mutex<Option<Arc<dyn Work>>>,
    /// How it settled, for those who wait: it may be dropped from the ledger before they look.
    pub(crate) settled: SetOnce<JobInfo>,
}

/// What became of a request to cancel.
pub(crate) enum Cancel {
    Begun,
    NothingLeft,
}

impl Job {
    pub(crate) fn cancel(&self) -> Result<Cancel, ForeignError> {
        let Some(work) = lock(&self.work).clone() else {
            return Ok(Cancel::NothingLeft);
        };
        // At the end of an owner one work that panics must not keep the others from being cancelled.
        match catch_unwind(AssertUnwindSafe(|| work.cancel())) {
            Ok(result) => result.map(|()| Cancel::Begun),
            Err(_) => Err("its cancellation panicked".into()),
        }
    }

    pub(crate) fn reader(&self, stream: StreamName) -> Option<&OutputReader> {
        let (_, reader) = self.streams.iter().find(|(name, _)| *name == stream)?;
        Some(reader)
    }
}

impl Entry<Arc<Job>> {
    pub(crate) fn info(&self) -> JobInfo {
        let (job, life) = (&self.job, &self.life);
        JobInfo {
            id: job.id.clone(),
            kind: job.new.kind.clone(),
            label: job.new.label.clone(),
            owner: job.owner.id.clone(),
            status: life.status,
            detail: life.detail.clone(),
            started: life.started,
            ended: life.ended,
            reported: life.reported,
        }
    }
}
