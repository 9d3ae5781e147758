//! Reaping what a tree in a control group leaves to a host that adopts orphans.
//!
//! A process whose parent ends comes to the nearest subreaper, or to process 1. Where that is the host, it would keep every
//! such process of a tree as a zombie. Which of its children are a tree's is told by their control group, in which a zombie
//! stays (cgroups(7)). None but these is reaped, each by its descriptor, and never the target of a tree, whose status is the
//! tree's.
//!
//! Nothing tells of the end of a process that is not known, so this looks when something else has happened: a target or a
//! member has ended, or a tree is gone. A leaf is given up only when nothing of its tree is left to reap. So no later tree's
//! target is ever in a leaf that is looked through, before it is known as one.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, Weak};

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::cgroup::Times;
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::orphans::{self, Orphan, Reaped};
use dsh_subprocess_sys::pidfd::{self, Pid, Wait};

use crate::owner::{Leaf, Leaves, Reserve};
use crate::reactor::{Reactor, Source, lock};

/// How often the children are looked through before the thread turns to other things.
const LOOKS: usize = 16;

/// The orphans of one runtime's trees.
#[derive(Debug)]
pub(crate) struct Orphans {
    /// The name of the runtime's group, which no other group has.
    group: Vec<u8>,
    reserve: Reserve,
    /// Held during a look: there is one at a time.
    looking: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    reactor: Weak<Reactor>,
    /// The leaves in use, by name, with the targets that may not be reaped. A leaf is not here before its target is known.
    targets: HashMap<String, Option<Pid>>,
    /// What the trees that are gone have had, and used.
    gone: Vec<(Leaf, Option<Times>)>,
    /// Processes of trees that are gone which are still being taken apart, by token.
    dying: HashMap<u64, Dying>,
    /// A look was asked for.
    requested: bool,
}

#[derive(Debug)]
struct Dying {
    pid: Pid,
    leaf: String,
    orphan: Orphan,
}

/// What a look has found.
enum Found {
    /// Some were reaped. What these had for children may have come since.
    Some,
    /// Nobody more.
    Nobody,
}

impl Orphans {
    pub(crate) fn new(leaves: &Leaves) -> Arc<Self> {
        let group = leaves.path().file_name().unwrap_or_default();
        Arc::new(Self {
            group: group.as_bytes().to_vec(),
            reserve: Reserve::new(),
            looking: Mutex::default(),
            state: Mutex::default(),
        })
    }

    /// Looks on this thread from now on.
    pub(crate) fn watch(&self, reactor: &Arc<Reactor>) {
        lock(&self.state).reactor = Arc::downgrade(reactor);
    }

    /// A tree has its target.
    pub(crate) fn born(&self, leaf: &Leaf, target: Pid) {
        lock(&self.state)
            .targets
            .insert(leaf.name().to_owned(), Some(target));
    }

    /// A member has ended that was watched. It may have come to this process before.
    pub(crate) fn member_ended(&self, pid: Pid, process: impl AsFd) {
        // The target of one tree may have gone into the leaf of another.
        let is_target = || {
            lock(&self.state)
                .targets
                .values()
                .any(|target| *target == Some(pid))
        };
        // The number is that of the process that is held, or there is nothing to reap.
        if orphans::come_here() && !is_target() && matches!(self.leaf_of(pid), Ok(Some(_))) {
            let _ = pidfd::wait(process, Wait::Reap);
        }
    }

    /// A tree's target has ended, and the tree goes on.
    pub(crate) fn look_soon(self: &Arc<Self>) {
        if orphans::come_here() {
            self.request(&mut lock(&self.state));
        }
    }

    /// A tree is gone. Its leaf is given up in due course.
    pub(crate) fn tree_gone(self: &Arc<Self>, leaf: Leaf, total: Option<Times>) {
        let mut state = lock(&self.state);
        state.targets.insert(leaf.name().to_owned(), None);
        state.gone.push((leaf, total));
        self.request(&mut state);
    }

    fn request(self: &Arc<Self>, state: &mut State) {
        if !state.requested
            && let Some(reactor) = state.reactor.upgrade()
        {
            state.requested = true;
            reactor.request(Source::Orphans(Arc::clone(self)));
        }
    }

    /// A look was asked for, or a process has ended that was being taken apart.
    pub(crate) fn serve(self: &Arc<Self>, token: u64) {
        let mut state = lock(&self.state);
        if let Some(dying) = state.dying.get(&token) {
            if dying.orphan.reap() == Reaped::Alive {
                // A tracer has it first.
                return;
            }
            if let Some(reactor) = state.reactor.upgrade() {
                reactor.forget(&dying.orphan, token);
            }
            state.dying.remove(&token);
        } else {
            state.requested = false;
        }
        drop(state);
        self.settle();
    }

    /// Reaps who is to be reaped, and gives up the leaves that nobody is left in.
    pub(crate) fn settle(self: &Arc<Self>) {
        let _looking = lock(&self.looking);
        let mut found = if orphans::come_here() {
            Found::Some
        } else {
            Found::Nobody
        };
        for _ in 0..LOOKS {
            if matches!(found, Found::Nobody) {
                break;
            }
            found = match self.look() {
                Ok(found) => found,
                // Without a descriptor nobody knows who is left. The next event looks again.
                Err(_) => return,
            };
        }
        let mut state = lock(&self.state);
        if matches!(found, Found::Some) {
            // A tree that lives makes them as fast as they are reaped. Others have their turn in between.
            self.request(&mut state);
            return;
        }
        let State {
            targets, gone, dying, ..
        } = &mut *state;
        let waits = |leaf: &Leaf| dying.values().any(|dying| dying.leaf == leaf.name());
        let over: Vec<_> = gone.extract_if(.., |(leaf, _)| !waits(leaf)).collect();
        for (leaf, _) in &over {
            targets.remove(leaf.name());
        }
        drop(state);
        for (leaf, total) in over {
            leaf.release(total);
        }
    }

    /// Looks once through the children of this process.
    ///
    /// A process has always been some other member's child, or the target, until it came here. So when none of a tree is among
    /// the children, and its target was reaped, there is none.
    fn look(self: &Arc<Self>) -> Result<Found, Errno> {
        let children = self.reserve.surely(orphans::own_children)?;
        let state = lock(&self.state);
        let targets = state.targets.clone();
        let mut known: HashSet<Pid> = targets.values().copied().flatten().collect();
        known.extend(state.dying.values().map(|dying| dying.pid));
        drop(state);
        let mut found = Found::Nobody;
        for pid in children.into_iter().filter(|pid| !known.contains(pid)) {
            // Held first, so that what is asked about the number afterwards is about this process.
            let Some(orphan) = self.reserve.surely(|| Orphan::hold(pid))? else {
                continue;
            };
            let Some(leaf) = self.leaf_of(pid)? else { continue };
            let Some(target) = targets.get(&leaf) else {
                continue;
            };
            match orphan.reap() {
                Reaped::Gone => found = Found::Some,
                Reaped::Alive if target.is_none() => self.await_end(Dying { pid, leaf, orphan }),
                // A member, which lives; or no child any more.
                Reaped::Alive | Reaped::Elsewhere => {}
            }
        }
        Ok(found)
    }

    /// `cgroup.events` says that a group is empty a moment before its last process can be reaped.
    fn await_end(self: &Arc<Self>, dying: Dying) {
        let mut state = lock(&self.state);
        let Some(reactor) = state.reactor.upgrade() else {
            return;
        };
        let token = reactor.token();
        let source = Source::Orphans(Arc::clone(self));
        // Where it cannot be watched the next event finds it, unless the leaf was removed with the runtime.
        if reactor
            .watch(&dying.orphan, token, Interest::BecomesReadable, source)
            .is_ok()
        {
            state.dying.insert(token, dying);
        }
    }

    /// Returns the name of the leaf that a process is in, if it is one of this runtime's.
    fn leaf_of(&self, pid: Pid) -> Result<Option<String>, Errno> {
        let group = self.reserve.surely(|| orphans::group_of(pid))?;
        let leaf = group
            .as_deref()
            .and_then(|group| orphans::group_below(group, &self.group));
        Ok(leaf.and_then(|leaf| str::from_utf8(leaf).ok()).map(str::to_owned))
    }
}
