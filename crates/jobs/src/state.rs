//! What the registry knows, under its one lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::ledger::{Entry, Ledger};
use crate::notice::Attention;
use crate::owner::{Job, Owner};
use crate::{JobError, JobId, Limits, OwnerId};

/// The key of the unowned jobs.
pub(crate) const UNOWNED: u64 = 0;

/// What the one lock guards. No foreign code runs under it: no work, no waker, no drop of either.
pub(crate) struct State {
    /// The owners there were when the registry was disposed of.
    pub(crate) disposed: Option<Vec<Arc<Owner>>>,
    last_key: u64,
    last_sequence: u64,
    /// Per kind, the number that was given last.
    last_numbers: HashMap<String, u64>,
    /// The keys of the owners with an open session.
    pub(crate) open: HashMap<OwnerId, u64>,
    pub(crate) groups: BTreeMap<u64, Group>,
}

/// The jobs of one owner, until it has ended and the last of them has settled.
pub(crate) struct Group {
    pub(crate) owner: Arc<Owner>,
    pub(crate) ledger: Ledger<Arc<Job>>,
    /// Starts that were let in and have not brought a job yet. They count as live.
    pub(crate) starting: usize,
    pub(crate) ended: bool,
}

impl Group {
    fn new(owner: Arc<Owner>, limits: &Limits) -> Self {
        Self {
            owner,
            ledger: Ledger::new(limits.settled_per_owner, Attention::new(limits.wakes_per_input)),
            starting: 0,
            ended: false,
        }
    }
}

impl State {
    pub(crate) fn new(unowned: &Arc<Owner>, limits: &Limits) -> Self {
        Self {
            disposed: None,
            last_key: unowned.key,
            last_sequence: 0,
            last_numbers: HashMap::new(),
            open: HashMap::new(),
            groups: BTreeMap::from([(unowned.key, Group::new(Arc::clone(unowned), limits))]),
        }
    }

    /// Lets in an owner.
    pub(crate) fn admit(&mut self, id: OwnerId, limits: &Limits) -> Result<Arc<Owner>, JobError> {
        self.refuse_disposed()?;
        if self.open.contains_key(&id) {
            return Err(JobError::OwnerTaken(id));
        }
        self.last_key += 1;
        let owner = Owner::new(self.last_key, Some(id.clone()));
        self.open.insert(id, owner.key);
        self.groups
            .insert(owner.key, Group::new(Arc::clone(&owner), limits));
        Ok(owner)
    }

    /// Numbers a job that starts: gives its place among all, and its name.
    pub(crate) fn number(&mut self, kind: &str) -> (u64, JobId) {
        self.last_sequence += 1;
        let number = self.last_numbers.entry(kind.to_owned()).or_default();
        *number += 1;
        (self.last_sequence, JobId::new(kind, *number))
    }

    pub(crate) fn refuse_disposed(&self) -> Result<(), JobError> {
        match self.disposed {
            Some(_) => Err(JobError::Disposed),
            None => Ok(()),
        }
    }

    /// Finds a job that an owner may see: one of its own, or an unowned one.
    pub(crate) fn find(&mut self, owner: &Owner, id: &JobId) -> Result<&mut Entry<Arc<Job>>, JobError> {
        self.refuse_ended(owner)?;
        let visible = [owner.key, UNOWNED]
            .into_iter()
            .filter_map(|key| self.groups.get(&key))
            .flat_map(|group| group.ledger.iter());
        let job = visible
            .map(|(_, entry)| &entry.job)
            .find(|job| job.id == *id)
            .map(Arc::clone);
        job.and_then(|job| self.entry(&job))
            .ok_or_else(|| JobError::UnknownJob(id.clone()))
    }

    /// Returns the entry of a job, while it is kept.
    pub(crate) fn entry(&mut self, job: &Job) -> Option<&mut Entry<Arc<Job>>> {
        self.groups.get_mut(&job.owner.key)?.ledger.get_mut(job.sequence)
    }

    /// Refuses what is asked of an owner that has ended.
    pub(crate) fn refuse_ended(&self, owner: &Owner) -> Result<(), JobError> {
        self.refuse_disposed()?;
        let open = self.groups.get(&owner.key).is_some_and(|group| !group.ended);
        match &owner.id {
            Some(id) if !open => Err(JobError::OwnerEnded(id.clone())),
            // The unowned jobs end with the registry.
            _ => Ok(()),
        }
    }

    /// Takes the group of an owner that has ended, once nothing of it is live. The caller drops it without the lock.
    #[must_use]
    pub(crate) fn retire(&mut self, key: u64) -> Option<Group> {
        let group = self.groups.get(&key)?;
        let over = group.ended && group.starting == 0 && group.ledger.live() == 0;
        if over { self.groups.remove(&key) } else { None }
    }

    /// Returns those who can see a job of this owner, and are to be told when something happens to it.
    pub(crate) fn onlookers(&self, owner: &Arc<Owner>) -> Vec<Arc<Owner>> {
        if owner.key != UNOWNED {
            return vec![Arc::clone(owner)];
        }
        // The unowned ones have no session, but their own disposal waits in this way.
        self.groups
            .values()
            .map(|group| Arc::clone(&group.owner))
            .collect()
    }
}
