//! How a job comes to be.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use dsh_subprocess::TextCursor;
use tokio::runtime;
use tokio::sync::SetOnce;

use crate::owner::{Job, Owner};
use crate::registry::Registry;
use crate::state::UNOWNED;
use crate::work::ForeignError;
use crate::{JobError, JobId, NewJob, Work};

impl Registry {
    /// Starts a job of an owner.
    pub(crate) fn start<E: Into<ForeignError>>(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        new: NewJob,
        start: impl FnOnce() -> Result<Arc<dyn Work>, E>,
    ) -> Result<JobId, JobError> {
        new.validate()?;
        let runtime = runtime::Handle::try_current().map_err(|_| JobError::NoRuntime)?;
        let slot = Slot::reserve(self, owner)?;
        let work = start().map_err(|error| JobError::StartFailed {
            label: new.label.clone(),
            source: error.into(),
        })?;
        let settled = work.settled();
        let (job, admitted) = slot.fill(new, work);
        let streams = job.streams.iter().map(|(_, reader)| reader.clone()).collect();
        runtime.spawn(Arc::clone(self).follow(Arc::clone(&job), settled, streams));
        if let Err(error) = admitted {
            self.condemn(&job);
            return Err(error);
        }
        Ok(job.id.clone())
    }
}

/// A place among an owner's live jobs, for one that is about to start. Dropped before it is filled, it leaves nothing.
struct Slot<'a> {
    registry: &'a Registry,
    owner: Arc<Owner>,
    filled: bool,
}

impl<'a> Slot<'a> {
    fn reserve(registry: &'a Registry, owner: &Arc<Owner>) -> Result<Self, JobError> {
        let limit = registry.limits.live_per_owner;
        let mut state = registry.lock();
        state.refuse_ended(owner)?;
        if owner.key == UNOWNED && state.open.is_empty() {
            return Err(JobError::NoController);
        }
        let group = state
            .groups
            .get_mut(&owner.key)
            .unwrap_or_else(|| unreachable!("an owner that has not ended has its group"));
        if group.ledger.live() + group.starting >= limit {
            return Err(JobError::TooManyJobs { limit });
        }
        group.starting += 1;
        Ok(Self {
            registry,
            owner: Arc::clone(owner),
            filled: false,
        })
    }

    /// Enters the job. The error says that its owner has ended while it was being started: it is entered all the same,
    /// so that the end waits for it, and is to be cancelled.
    fn fill(mut self, new: NewJob, work: Arc<dyn Work>) -> (Arc<Job>, Result<(), JobError>) {
        let streams = work.outputs();
        let mut shown = work.shown();
        shown.resize(streams.len(), 0);
        let mut state = self.registry.lock();
        let (sequence, id) = state.number(&new.kind);
        let job = Arc::new(Job {
            id,
            new,
            owner: Arc::clone(&self.owner),
            sequence,
            cursors: Mutex::new(shown.into_iter().map(TextCursor::new).collect()),
            streams,
            work: Mutex::new(Some(work)),
            settled: SetOnce::new(),
        });
        let admitted = state.refuse_ended(&self.owner);
        let onlookers = state.onlookers(&self.owner);
        // The group is there for as long as a start is under way in it.
        if let Some(group) = state.groups.get_mut(&self.owner.key) {
            group.starting -= 1;
            let entry = group.ledger.enter(job.sequence, Arc::clone(&job), Instant::now());
            if admitted.is_err() {
                entry.life.report();
            }
        }
        drop(state);
        self.filled = true;
        for onlooker in onlookers {
            onlooker.changed();
        }
        (job, admitted)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if self.filled {
            return;
        }
        let mut state = self.registry.lock();
        if let Some(group) = state.groups.get_mut(&self.owner.key) {
            group.starting -= 1;
        }
        let retired = state.retire(self.owner.key);
        drop(state);
        drop(retired);
        // An end may be waiting for this.
        self.owner.changed();
    }
}
