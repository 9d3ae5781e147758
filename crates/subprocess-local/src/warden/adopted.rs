//! Wardens that have come to this process as orphans.
//!
//! A warden is no child of the host, unless the host is where orphans go: process 1 of its pid namespace, or a subreaper. There
//! the runtime's warden is the host's child from the start, and the wardens of its trees become so when it is killed. Each is
//! held by its pidfd and reaped by it: the status of no other child is ever taken.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroI32;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::orphans::{self, Orphan, Reaped};
use dsh_subprocess_sys::pidfd::Pid;
use dsh_subprocess_sys::table;

use crate::owner::Reserve;
use crate::reactor::{Reactor, Source, lock};

/// What the process table calls a warden.
const NAME: &str = "[dsh-warden]";
/// How long the end of a warden is waited for that no thread watches. It has been let go of, and owns nothing.
const BOUND: Duration = Duration::from_secs(5);

/// The runtime wardens that are children of this process, whichever runtime's, until they are reaped.
static RUNTIME_WARDENS: Mutex<BTreeSet<NonZeroI32>> = Mutex::new(BTreeSet::new());

/// The wardens of one runtime that are children of this process.
#[derive(Debug)]
pub(crate) struct Adopted {
    reserve: Arc<Reserve>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `Weak::new` before there is a thread that watches.
    reactor: Weak<Reactor>,
    unwatched: Vec<Warden>,
    /// By token.
    watched: HashMap<u64, Warden>,
}

#[derive(Debug)]
struct Warden {
    pid: Pid,
    orphan: Orphan,
    /// The runtime's, not a tree's.
    of_runtime: bool,
}

impl Adopted {
    pub(super) fn new(reserve: Arc<Reserve>) -> Arc<Self> {
        Arc::new(Self {
            reserve,
            state: Mutex::default(),
        })
    }

    /// A runtime warden has just been started.
    pub(super) fn runtime_warden(self: &Arc<Self>, pid: Pid) {
        // Only its parent can set its number free, and where that is this process nobody has.
        if let Ok(Some(orphan)) = Orphan::hold(pid)
            && orphan.reap() == Reaped::Alive
        {
            lock(&RUNTIME_WARDENS).insert(pid.as_raw_nonzero());
            let mut state = lock(&self.state);
            state.unwatched.push(Warden {
                pid,
                orphan,
                of_runtime: true,
            });
            self.watch_all(&mut state);
        }
    }

    /// Has the runtime's thread notice their ends.
    pub(super) fn watch(self: &Arc<Self>, reactor: &Arc<Reactor>) {
        let mut state = lock(&self.state);
        state.reactor = Arc::downgrade(reactor);
        self.watch_all(&mut state);
    }

    fn watch_all(self: &Arc<Self>, state: &mut State) {
        let Some(reactor) = state.reactor.upgrade() else {
            return;
        };
        for warden in std::mem::take(&mut state.unwatched) {
            let token = reactor.token();
            let source = Source::Adopted(Arc::clone(self));
            match reactor.watch(&warden.orphan, token, Interest::BecomesReadable, source) {
                Ok(()) => drop(state.watched.insert(token, warden)),
                Err(error) => {
                    tracing::debug!(%error, "a warden's end cannot be awaited: it will stay a zombie");
                }
            }
        }
    }

    /// A watched one has ended.
    pub(crate) fn ended(self: &Arc<Self>, token: u64) {
        let mut state = lock(&self.state);
        // A tracer may have its status first; the descriptor becomes readable again when the tracer lets go of it.
        if state
            .watched
            .get(&token)
            .is_none_or(|warden| warden.orphan.reap() == Reaped::Alive)
        {
            return;
        }
        let Some(warden) = state.watched.remove(&token) else {
            return;
        };
        if let Some(reactor) = state.reactor.upgrade() {
            reactor.forget(&warden.orphan, token);
        }
        if warden.of_runtime {
            lock(&RUNTIME_WARDENS).remove(&warden.pid.as_raw_nonzero());
            // By now its children are this process's. One that lets go of its trees has none.
            if let Err(errno) = self.adopt_tree_wardens(&mut state) {
                tracing::debug!(%errno, "a killed warden's children cannot be found: they will stay zombies");
            }
        }
    }

    /// Holds the children of this process that are the wardens of trees. They end as their trees do.
    ///
    /// They are told by their name: one that has only just been forked has not told its number to anybody. Another runtime's
    /// may be among them, whose own thread finds nothing left to reap then.
    fn adopt_tree_wardens(self: &Arc<Self>, state: &mut State) -> Result<(), Errno> {
        for pid in self.reserve.surely(orphans::own_children)? {
            let known = state.watched.values().any(|warden| warden.pid == pid)
                || lock(&RUNTIME_WARDENS).contains(&pid.as_raw_nonzero());
            if known {
                continue;
            }
            // Held first, so that the name is this process's.
            if let Some(orphan) = self.reserve.surely(|| Orphan::hold(pid))?
                && table::short_name(pid).as_deref() == Some(NAME)
                && orphan.reap() == Reaped::Alive
            {
                state.unwatched.push(Warden {
                    pid,
                    orphan,
                    of_runtime: false,
                });
            }
        }
        self.watch_all(state);
        Ok(())
    }

    /// Waits for those that no thread watches: a runtime that was never made leaves no zombie.
    pub(super) fn wait_for_unwatched(&self) {
        let unwatched = std::mem::take(&mut lock(&self.state).unwatched);
        for warden in unwatched {
            warden.orphan.wait(BOUND);
            lock(&RUNTIME_WARDENS).remove(&warden.pid.as_raw_nonzero());
        }
    }
}
