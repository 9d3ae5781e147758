//! What a tree tells about itself.

use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{Error, Member, Ownership, StreamName, Usage};
use dsh_subprocess_sys::pidfd::{End, Pid};

use super::{Medium, NAMED, Tree};
use crate::owner::{self, Owner};
use crate::reactor::lock;

impl Tree {
    /// Waits for the end of the tree, or for the news that it is overdue.
    pub(crate) async fn exited(self: Arc<Self>) -> Result<(), Error> {
        self.exit.get().await
    }

    /// Whether nothing is left to happen: the tree is gone and its outcome is settled.
    pub(crate) fn is_over(&self) -> bool {
        self.exit.is_gone() && self.done.peek().is_some()
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        match self.started.peek() {
            Some(Ok(started)) => started.pid,
            _ => None,
        }
    }

    /// Returns the target, once it was cloned.
    pub(crate) fn leader(&self) -> Option<Pid> {
        lock(&self.state).pid
    }

    /// Lists the members, however many other processes there are.
    pub(crate) fn pids_by_descent(&self) -> Vec<Pid> {
        lock(&self.state).owner.pids_by_descent()
    }

    pub(crate) fn ownership(&self) -> Ownership {
        // Let go first: the warden's lock may be held for as long as a warden takes to start.
        let has_session = lock(&self.state).has_session;
        self.machine.ownership(has_session)
    }

    pub(crate) fn ended(&self) -> Vec<Member> {
        lock(&self.state).ended.clone()
    }

    /// Returns what was used, waiting for the last count where the tree has just gone.
    pub(crate) async fn usage(self: Arc<Self>) -> Usage {
        if self.exit.is_gone() {
            return self.used.get().await;
        }
        let state = lock(&self.state);
        usage(&state.owner, state.end)
    }

    /// Names the live members. It reads the process table.
    pub(crate) fn members(&self) -> Vec<Member> {
        let pids = {
            let state = lock(&self.state);
            let mut pids = state.owner.pids();
            // The target first.
            pids.sort_by_key(|pid| (Some(*pid) != state.pid, pid.as_raw_nonzero()));
            pids
        };
        pids.into_iter()
            .filter_map(owner::live_member)
            .take(NAMED)
            .collect()
    }

    /// Returns the streams whose drain ran out, and members who may hold them.
    pub(crate) fn held(&self) -> (Vec<(StreamName, Medium)>, Vec<Pid>) {
        let state = lock(&self.state);
        (state.held.clone(), state.owner.pids())
    }

    /// Names the processes that are likely to run on. It reads the process table.
    pub(crate) fn survivors(&self) -> Vec<Member> {
        let (trace, overdue) = {
            let state = lock(&self.state);
            let trace = match &state.owner {
                Owner::Session(session) => session.trace(state.evidence.clone()),
                Owner::Cgroup(_) | Owner::Reaper(_) | Owner::Nobody => state.trace.clone(),
            };
            (trace, self.exit.is_overdue())
        };
        let mut survivors = if overdue { self.members() } else { Vec::new() };
        survivors.extend(trace.map(|trace| trace.survivors()).unwrap_or_default());
        survivors
    }
}

pub(super) fn usage(owner: &Owner, end: Option<End>) -> Usage {
    match owner {
        Owner::Cgroup(leaf) => with_times(leaf.times(), end),
        // The target's own, with that of the descendants it waited for.
        Owner::Reaper(_) | Owner::Session(_) | Owner::Nobody => {
            with_times(end.map(|end| (end.user, end.system)), end)
        }
    }
}

/// States processor times beside the memory that the target's end told.
pub(super) fn with_times(times: Option<(Duration, Duration)>, end: Option<End>) -> Usage {
    Usage::new(
        times.map(|(user, _)| user),
        times.map(|(_, system)| system),
        end.map(|end| end.peak_memory_bytes),
    )
}
