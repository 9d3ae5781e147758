//! How an owner ends, and the registry with all of them.

use std::sync::Arc;

use crate::life::{Ending, in_full};
use crate::owner::{Cancel, Job, Owner, lock};
use crate::registry::Registry;
use crate::state::{Group, State};
use crate::{JobStatus, Orphan};

impl Registry {
    /// Ends an owner, unless it has ended: refuses its later requests, and cancels its jobs. It waits for nothing.
    pub(crate) fn begin_end(&self, owner: &Arc<Owner>) {
        let mut state = self.lock();
        let condemned = state.end(owner);
        let retired = state.retire(owner.key);
        drop(state);
        drop(retired);
        self.carry_out(owner, condemned);
    }

    /// Ends all owners, and the registry. Returns those who were there at the first call.
    pub(crate) fn begin_disposal(&self) -> Vec<Arc<Owner>> {
        let mut state = self.lock();
        if let Some(owners) = &state.disposed {
            return owners.clone();
        }
        let owners: Vec<_> = state
            .groups
            .values()
            .map(|group| Arc::clone(&group.owner))
            .collect();
        state.disposed = Some(owners.clone());
        let condemned: Vec<_> = owners.iter().map(|owner| state.end(owner)).collect();
        let retired: Vec<Option<Group>> = owners.iter().map(|owner| state.retire(owner.key)).collect();
        drop(state);
        drop(retired);
        for (owner, condemned) in owners.iter().zip(condemned) {
            self.carry_out(owner, condemned);
        }
        owners
    }

    /// Waits until nothing of an owner that has ended is live.
    pub(crate) async fn ended(&self, owner: &Owner) {
        let mut changes = owner.changes.subscribe();
        loop {
            // Subscribed before the look, so that no change is missed. The sender is the owner's, who is here.
            changes.borrow_and_update();
            if !self.lock().groups.contains_key(&owner.key) {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Cancels a job whose owner has ended. Where that fails, nobody is left to try again: the job counts as failed.
    pub(crate) fn condemn(&self, job: &Arc<Job>) {
        let error = match job.cancel() {
            Ok(Cancel::NothingLeft) => return,
            Ok(Cancel::Begun) => {
                if let Some(entry) = self.lock().entry(job) {
                    entry.life.stop();
                }
                job.owner.changed();
                return;
            }
            Err(error) => error,
        };
        let reason = in_full(&*error);
        let orphan = Orphan {
            id: job.id.clone(),
            reason: reason.clone(),
        };
        // Written down before the settlement: with that the wait for the owner's end may be over.
        lock(&job.owner.orphans).push(orphan);
        let ending = Ending::failed(format!(
            "it could not be cancelled ({reason}) and may be orphaned"
        ));
        if !self.settle(job, ending) {
            lock(&job.owner.orphans).retain(|orphan| orphan.id != job.id);
        }
    }

    fn carry_out(&self, owner: &Owner, condemned: Vec<Arc<Job>>) {
        for job in condemned {
            self.condemn(&job);
        }
        owner.changed();
        owner.noticed.notify_waiters();
    }
}

impl State {
    /// Marks an owner as ended and its jobs as reported. Returns those that are to be cancelled; one that is stopping
    /// was cancelled before.
    fn end(&mut self, owner: &Owner) -> Vec<Arc<Job>> {
        let Some(group) = self.groups.get_mut(&owner.key) else {
            return Vec::new();
        };
        if group.ended {
            return Vec::new();
        }
        group.ended = true;
        let mut condemned = Vec::new();
        for entry in group.ledger.iter_mut() {
            entry.life.report();
            if entry.life.status == JobStatus::Running {
                condemned.push(Arc::clone(&entry.job));
            }
        }
        if let Some(id) = &owner.id {
            self.open.remove(id);
        }
        condemned
    }
}
