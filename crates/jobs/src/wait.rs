//! Waiting for the end of a job.

use std::sync::Arc;

use crate::owner::{Job, Owner};
use crate::registry::Registry;
use crate::{JobError, JobId, JobInfo};

/// Somebody who will tell its caller how a job ended, and holds the notice of that end back meanwhile. When it goes
/// without having done so, the notice is free again.
pub(crate) struct Waiter<'a> {
    registry: &'a Registry,
    pub(crate) job: Arc<Job>,
    /// Whether the job had settled before.
    pub(crate) was_late: bool,
}

impl<'a> Waiter<'a> {
    /// Begins to wait for a job that `owner` may see.
    pub(crate) fn new(registry: &'a Registry, owner: &Owner, id: &JobId) -> Result<Self, JobError> {
        let mut state = registry.lock();
        let entry = state.find(owner, id)?;
        entry.life.begin_wait();
        let (job, was_late) = (Arc::clone(&entry.job), entry.life.is_settled());
        drop(state);
        Ok(Self {
            registry,
            job,
            was_late,
        })
    }

    /// Resolves when the job has settled.
    pub(crate) async fn settled(&self) {
        self.job.settled.wait().await;
    }

    /// Looks at the job. Where it is over, its owner is told hereby.
    pub(crate) async fn look(&self) -> JobInfo {
        if let Some(entry) = self.registry.lock().entry(&self.job) {
            if entry.life.is_settled() {
                entry.life.report();
            }
            return entry.info();
        }
        // It was dropped since, which only happens to jobs that have settled.
        let mut info = self.job.settled.wait().await.clone();
        info.reported = true;
        info
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let due = self.registry.lock().entry(&self.job).is_some_and(|entry| {
            entry.life.end_wait();
            entry.life.notice_due()
        });
        if due {
            self.job.owner.noticed.notify_waiters();
        }
    }
}
