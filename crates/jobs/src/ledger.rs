//! The jobs of one owner: pure, and bounded.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use crate::life::{Ending, Life};
use crate::notice::{Attention, Delivery};

/// The jobs of one owner, in the order of their starts. `J` is what is kept with each.
#[derive(Debug)]
pub(crate) struct Ledger<J> {
    entries: BTreeMap<u64, Entry<J>>,
    /// Those that have settled, in the order in which they did.
    settled: VecDeque<u64>,
    settled_limit: usize,
    pub(crate) attention: Attention,
}

#[derive(Debug)]
pub(crate) struct Entry<J> {
    pub(crate) life: Life,
    pub(crate) job: J,
}

impl<J> Ledger<J> {
    pub(crate) fn new(settled_limit: usize, attention: Attention) -> Self {
        Self {
            entries: BTreeMap::new(),
            settled: VecDeque::new(),
            settled_limit,
            attention,
        }
    }

    /// Returns how many jobs have not settled.
    pub(crate) fn live(&self) -> usize {
        self.entries.len() - self.settled.len()
    }

    /// Enters a job that was just started. Sequence numbers grow from start to start.
    pub(crate) fn enter(&mut self, sequence: u64, job: J, now: Instant) -> &mut Entry<J> {
        self.entries.entry(sequence).or_insert(Entry {
            life: Life::new(now),
            job,
        })
    }

    pub(crate) fn get_mut(&mut self, sequence: u64) -> Option<&mut Entry<J>> {
        self.entries.get_mut(&sequence)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Entry<J>)> {
        self.entries.iter().map(|(sequence, entry)| (*sequence, entry))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<J>> {
        self.entries.values_mut()
    }

    /// Settles a job, and drops another where that makes one too many. `None` where the job had settled before, or is
    /// not here any more; otherwise the jobs that were dropped.
    pub(crate) fn settle(&mut self, sequence: u64, ending: Ending, now: Instant) -> Option<Vec<J>> {
        let entry = self.entries.get_mut(&sequence)?;
        if !entry.life.settle(ending, now) {
            return None;
        }
        let mut dropped = Vec::new();
        // The one that settles now is not among the candidates: whoever it concerns is only about to hear of it.
        while self.settled.len() >= self.settled_limit {
            let reported = |sequence: &u64| {
                self.entries
                    .get(sequence)
                    .is_some_and(|entry| entry.life.reported)
            };
            let oldest = self.settled.iter().position(reported).unwrap_or(0);
            let Some(sequence) = self.settled.remove(oldest) else {
                break;
            };
            dropped.extend(self.entries.remove(&sequence).map(|entry| entry.job));
        }
        self.settled.push_back(sequence);
        Some(dropped)
    }

    /// Takes the notice of the job that settled first among those whose owner is to be told.
    pub(crate) fn take_notice(&mut self) -> Option<(&Entry<J>, Delivery)> {
        let due = |sequence: &&u64| {
            self.entries
                .get(*sequence)
                .is_some_and(|entry| entry.life.notice_due())
        };
        let sequence = *self.settled.iter().find(due)?;
        let entry = self.entries.get_mut(&sequence)?;
        let delivery = self.attention.deliver();
        entry.life.notice(delivery);
        Some((entry, delivery))
    }
}

#[cfg(test)]
mod tests;
