//! Control groups: one leaf per tree, below one group per runtime, below the host's own group, so that a runtime inside
//! another one's tree stays inside it.
//!
//! Making and removing a directory per spawn would cost a tenth of the spawn, so leaves are used again. A tree owns its
//! leaf by value and gives it up when it is gone: a late signal has no leaf left to reach.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use std::os::fd::{AsFd, OwnedFd};

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::cgroup::{Parent, Times, Unavailable, own_directory};
use dsh_subprocess_sys::file;
use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::pidfd::{self, Pid, Signal};
use dsh_subprocess_sys::pipe;
use dsh_subprocess_sys::steps::{Step, step};
use dsh_subprocess_sys::warden::GraceTable;
use dsh_subprocess_sys::warden::protocol::ASKED;

use super::reserve::Reserve;
use super::{Look, send};
use crate::janitor::Record;
use crate::reactor::lock;
use crate::warden::RuntimeWarden;

/// Leaves that are kept for the next tree.
const KEPT: usize = 128;
/// How long the end of a stray process is waited for.
const STRAY: Duration = Duration::from_millis(100);
/// Descriptors held at once while members are signalled.
const BATCH: usize = 256;

/// What a control group does not guarantee.
pub(super) fn weaknesses(has_warden: bool) -> Vec<String> {
    vec![
        "a member that may write another group's cgroup.procs (root, or the owner of a delegated subtree) can leave".into(),
        "work that a member hands to a daemon (docker, systemd-run, at) is the daemon's, not the tree's".into(),
        if has_warden {
            super::KILLED_TOGETHER.into()
        } else {
            "no warden could be started: if this host is killed, its trees run on until the next start".into()
        },
    ]
}

/// A runtime's leaves.
#[derive(Debug)]
pub(crate) struct Leaves {
    parent: Parent,
    /// Names the group as long as it is there.
    record: Option<Arc<Record>>,
    kernel: Kernel,
    idle: Mutex<Vec<Idle>>,
    /// How many numbers were given to leaves, and those whose leaves were removed.
    made: AtomicU32,
    free: Mutex<Vec<u32>>,
    /// What a warden grants the members of each leaf, should this process end.
    graces: GraceTable,
    reserve: Reserve,
    /// How often all leaves were killed at once; see [`Leaf::release`].
    killed: AtomicU64,
}

/// A leaf that no tree uses.
#[derive(Debug)]
struct Idle {
    number: u32,
    /// What its earlier tenants used.
    base: Times,
    /// [`Leaves::killed`] when its last tenant took it.
    killed_with_all: u64,
}

/// A leaf that a tree uses. Dropping it without [`Leaf::release`] leaves the directory to [`Leaves::remove`].
#[derive(Debug)]
pub(crate) struct Leaf {
    leaves: Arc<Leaves>,
    /// As in its name.
    number: u32,
    name: String,
    /// Milliseconds.
    grace: u32,
    base: Times,
    /// Whether `cgroup.kill` was written for this leaf alone, and [`Leaves::killed`] when it was taken.
    killed: bool,
    killed_with_all: u64,
    reused: bool,
    /// What the last look found, which was when the tree was gone.
    frozen: Cell<bool>,
}

impl Leaves {
    /// Makes the runtime's group below the host's own. The record names it before it is there: a host that is killed in
    /// between leaves a name without a group, and never a group without a name.
    pub(crate) fn create(kernel: Kernel, record: Option<Arc<Record>>) -> Result<Arc<Self>, Unavailable> {
        let below = own_directory()?;
        let random = file::random::<6>()
            .map_err(|error| Unavailable::Unreadable("the random number generator", error))?
            .map(|byte| format!("{byte:02x}"))
            .concat();
        let graces = GraceTable::new()
            .map_err(|error| Unavailable::Unreadable("the table of graces", error.into()))?;
        let name = format!("dsh-subprocess-{}-{random}", std::process::id());
        let path = below.join(&name);
        if let Some(record) = &record
            && let Err(why) = record.set_group(&path)
        {
            tracing::debug!(%why, "the runtime's cgroup is not recorded");
        }
        step(Step::GroupNamed);
        let parent = Parent::create(&below, &name).inspect_err(|_| {
            if let Some(record) = &record {
                record.forget(&path);
            }
        })?;
        step(Step::GroupMade);
        Ok(Arc::new(Self {
            parent,
            record,
            kernel,
            idle: Mutex::default(),
            made: AtomicU32::new(0),
            free: Mutex::default(),
            graces,
            reserve: Reserve::new(),
            killed: AtomicU64::new(0),
        }))
    }

    /// Returns where the runtime's group is.
    pub(crate) fn path(&self) -> &std::path::Path {
        self.parent.path()
    }

    /// Hands the runtime's group to its warden.
    pub(crate) fn entrust(&self, warden: &RuntimeWarden) -> Result<(), Errno> {
        let graces = self.graces.as_fd().try_clone_to_owned();
        let graces = graces.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        warden.own_group(self.path(), self.parent.reopen()?, graces);
        step(Step::GroupEntrusted);
        Ok(())
    }

    /// Takes an empty leaf, or makes one. Its members get `grace` from a warden.
    pub(crate) fn take(self: &Arc<Self>, grace: Duration) -> Result<Leaf, Errno> {
        let killed_with_all = self.killed.load(Ordering::Acquire);
        let idle = self.unkilled(killed_with_all);
        let reused = idle.is_some();
        let (number, base) = match idle {
            Some(Idle { number, base, .. }) => (number, base),
            None => (self.make()?, Times::default()),
        };
        // 0 would be none set, and the highest bit says something else.
        let grace = u32::try_from(grace.as_millis()).map_or(ASKED - 1, |grace| grace.clamp(1, ASKED - 1));
        self.graces.set(number, grace);
        Ok(Leaf {
            grace,
            leaves: Arc::clone(self),
            number,
            name: name(number),
            base,
            killed: false,
            killed_with_all,
            reused,
            frozen: Cell::new(false),
        })
    }

    /// Takes an idle leaf that was not killed with all since it was used. One can be: its last tenant released it while that was
    /// going on.
    fn unkilled(&self, killed: u64) -> Option<Idle> {
        loop {
            let idle = lock(&self.idle).pop()?;
            if idle.killed_with_all == killed {
                return Some(idle);
            }
            let _ = self.remove_leaf(idle.number);
        }
    }

    fn make(&self) -> Result<u32, Errno> {
        let free = lock(&self.free).pop();
        let number = free.unwrap_or_else(|| self.made.fetch_add(1, Ordering::Relaxed));
        match self.parent.make_leaf(&name(number)) {
            // Somebody made one of that name, who is welcome to it.
            Err(Errno::EXIST) => self.make(),
            made => made.map(|()| number),
        }
    }

    /// Removes a leaf that nobody uses. Its number is used again.
    fn remove_leaf(&self, number: u32) -> Result<(), Errno> {
        self.parent.remove_leaf(&name(number))?;
        lock(&self.free).push(number);
        Ok(())
    }

    /// Sends `SIGKILL` to all members of all trees.
    pub(crate) fn kill_all(&self) -> Result<(), Errno> {
        // None of the leaves that exist now is used again; see `Leaf::release`.
        self.killed.fetch_add(1, Ordering::AcqRel);
        let idle = std::mem::take(&mut *lock(&self.idle));
        let killed = self.parent.kill_all();
        // And after it: a leaf that was taken in between may have been reached.
        self.killed.fetch_add(1, Ordering::AcqRel);
        for Idle { number, .. } in idle {
            let _ = self.remove_leaf(number);
        }
        killed
    }

    /// Removes the runtime's group, when every tree is gone.
    ///
    /// A process in it that belongs to no tree any more, because it moved itself up from its leaf, is killed.
    pub(crate) fn remove(&self) -> Result<(), Errno> {
        // By name first, which takes no descriptor.
        for Idle { number, .. } in std::mem::take(&mut *lock(&self.idle)) {
            let _ = self.remove_leaf(number);
        }
        match self.parent.remove() {
            Err(Errno::BUSY | Errno::NOTEMPTY) => {
                self.parent.kill_all()?;
                self.parent.wait_until_empty(STRAY);
                self.parent.remove()?;
            }
            result => result?,
        }
        if let Some(record) = &self.record {
            record.forget(self.path());
        }
        Ok(())
    }
}

impl Leaf {
    /// Returns the name of its directory.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Opens what the clone needs: the directory, or `cgroup.procs` for a child that moves itself.
    pub(crate) fn entrance(&mut self) -> Result<Entrance, Errno> {
        match self.open() {
            // Somebody removed the idle leaf.
            Err(Errno::NOENT) => {
                self.number = self.leaves.make()?;
                self.name = name(self.number);
                self.leaves.graces.set(self.number, self.grace);
                self.base = Times::default();
                self.open()
            }
            result => result,
        }
    }

    fn open(&self) -> Result<Entrance, Errno> {
        if self.leaves.kernel.clone_into_cgroup {
            self.leaves.parent.open_leaf(&self.name).map(Entrance::Directory)
        } else {
            self.leaves.parent.open_join(&self.name).map(Entrance::Join)
        }
    }

    /// Opens `cgroup.events` to watch it. It is read once, so that only later changes count.
    pub(crate) fn watch(&self) -> Result<OwnedFd, Errno> {
        let events = self.leaves.parent.open_events(&self.name)?;
        let mut content = [0; 64];
        pipe::read(&events, &mut content).map_err(|_| Errno::IO)?;
        Ok(events)
    }

    pub(super) fn look(&self) -> Look {
        let parent = &self.leaves.parent;
        match self.leaves.reserve.surely(|| parent.events(&self.name)) {
            Ok(events) => {
                self.frozen.set(events.frozen);
                if !events.populated {
                    return Look::default();
                }
            }
            // A member removed the leaf, so nobody was in it.
            Err(Errno::NOENT | Errno::NODEV) => return Look::default(),
            // Out of descriptors. The watch of cgroup.events may have told the only change that comes, so it does not do.
            Err(_) => return Look::blind(),
        }
        let Ok(pids) = self.list() else {
            return Look::blind();
        };
        // A list without an entry that says "populated" all the same is of a group whose last process is being taken
        // apart, unless there are groups below between which a process can move during the walk.
        let mut look = Look {
            held: Vec::new(),
            more: pids.is_empty() && !self.is_flat(),
            blind: false,
        };
        for pid in pids {
            look.take(pid, &self.leaves.reserve, || true);
        }
        look
    }

    fn is_flat(&self) -> bool {
        match self.leaves.parent.is_flat(&self.name) {
            Ok(flat) => flat,
            // Somebody removed it, so nobody was in it; and what was to be told of that is told no more.
            Err(errno) => errno == Errno::NOENT,
        }
    }

    pub(super) fn ask(&self, target: Option<Pid>) -> Result<(), Errno> {
        self.signal_each(&[Signal::TERM, Signal::CONT], target)?;
        // Not before: if this host is killed on its way through the list, the warden asks some a second time rather than kill
        // others that nobody has asked.
        self.leaves.graces.set(self.number, self.grace | ASKED);
        Ok(())
    }

    pub(super) fn ask_others(&self, target: Pid) -> Result<(), Errno> {
        self.signal_each(&[Signal::TERM, Signal::CONT], Some(target))?;
        // Not before, as above.
        self.leaves.graces.set_unasked(self.number, target);
        Ok(())
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        self.signal_each(&[signal], None)
    }

    pub(super) fn kill(&mut self) -> Result<(), Errno> {
        self.killed = true;
        let parent = &self.leaves.parent;
        if self.leaves.kernel.cgroup_kill && self.leaves.reserve.surely(|| parent.kill(&self.name)).is_ok() {
            return Ok(());
        }
        // A frozen member can be killed and cannot fork: what is on the list is all there is.
        let _ = self.leaves.reserve.surely(|| parent.freeze(&self.name, true));
        self.signal_each(&[Signal::KILL], None)
    }

    /// Tells whether [`kill`](Self::kill) has what it needs. It kills nobody.
    pub(crate) fn check_kill(&self) -> Result<(), Errno> {
        let file = if self.leaves.kernel.cgroup_kill {
            "cgroup.kill"
        } else {
            "cgroup.freeze"
        };
        self.leaves.parent.check_writable(&self.name, file)
    }

    /// Sends signals, in order, to each member but `target`.
    ///
    /// A number on the list may be a stranger's by now. So each is opened first and the group is listed again: a number that is
    /// on the second list, and whose descriptor still takes a signal, was a member's all along.
    fn signal_each(&self, signals: &[Signal], target: Option<Pid>) -> Result<(), Errno> {
        let mut listed = self.list()?;
        listed.retain(|pid| Some(*pid) != target);
        let mut rest = listed.as_slice();
        let mut size = BATCH;
        while !rest.is_empty() {
            let batch = &rest[..size.min(rest.len())];
            let opened: Vec<_> = batch.iter().map(|&pid| (pid, pidfd::open(pid))).collect();
            let Ok(mut again) = self.list() else {
                // The batch took the descriptors that the list needs. Alone, a member is signalled by its number right after
                // it was listed.
                drop(opened);
                size /= 2;
                if size == 0 {
                    let listed = self.list()?;
                    for &pid in listed.iter().filter(|pid| rest.contains(pid)) {
                        send(pid, &Err(Errno::MFILE), signals);
                    }
                    return Ok(());
                }
                continue;
            };
            again.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
            for (pid, process) in opened {
                if again
                    .binary_search_by_key(&pid.as_raw_nonzero(), |pid| pid.as_raw_nonzero())
                    .is_ok()
                {
                    send(pid, &process, signals);
                }
            }
            rest = &rest[batch.len()..];
        }
        Ok(())
    }

    pub(super) fn pids(&self) -> Vec<Pid> {
        // Out of descriptors: no member can be named.
        self.list().unwrap_or_default()
    }

    fn list(&self) -> Result<Vec<Pid>, Errno> {
        self.leaves.reserve.surely(|| {
            let mut pids = Vec::new();
            self.leaves.parent.members(&self.name, &mut pids)?;
            Ok(pids)
        })
    }

    /// Returns the processor time that this tenant used so far.
    pub(crate) fn times(&self) -> Option<(Duration, Duration)> {
        Some(self.since_base(self.total()?))
    }

    /// Returns what all tenants used.
    pub(crate) fn total(&self) -> Option<Times> {
        self.leaves.parent.times(&self.name).ok()
    }

    /// Returns this tenant's part of a total.
    pub(crate) fn since_base(&self, total: Times) -> (Duration, Duration) {
        (
            total.user.saturating_sub(self.base.user),
            total.system.saturating_sub(self.base.system),
        )
    }

    /// Gives the leaf up, when the tree is gone. It is used again if it is as it was made; `total` is what its next tenant
    /// starts from.
    ///
    /// A leaf that was killed is not: recent kernels (seen on Linux 6.18) count the kills of a group, and a clone into it compares that count
    /// with the one of the *caller's* group. Where they differ the newborn is taken for one that slipped through a kill and
    /// gets `SIGKILL`. Nor is a frozen one.
    pub(crate) fn release(self, total: Option<Times>) {
        let killed = self.killed || self.killed_with_all != self.leaves.killed.load(Ordering::Acquire);
        let usable = !killed && !self.frozen.get();
        let Self {
            leaves,
            number,
            name,
            killed_with_all,
            ..
        } = self;
        if usable
            && let Some(base) = total
            && leaves.parent.is_pristine(&name).unwrap_or(false)
        {
            let mut idle = lock(&leaves.idle);
            if idle.len() < KEPT {
                idle.push(Idle {
                    number,
                    base,
                    killed_with_all,
                });
                return;
            }
        }
        if let Err(errno) = leaves.remove_leaf(number) {
            // Its last process is still being taken apart; `remove` tries again.
            tracing::debug!(leaf = name, %errno, "a leaf could not be removed yet");
        }
    }

    /// Gives up a leaf whose clone failed: what is wrong with it may be why.
    pub(crate) fn discard(mut self) {
        self.killed = true;
        self.release(None);
    }

    /// Whether the leaf had an earlier tenant, who may have changed it.
    pub(crate) fn is_reused(&self) -> bool {
        self.reused
    }
}

/// How a child gets into a leaf.
#[derive(Debug)]
pub(crate) enum Entrance {
    /// It is born there.
    Directory(OwnedFd),
    /// It moves itself there before exec.
    Join(OwnedFd),
}

fn name(number: u32) -> String {
    format!("t{number}")
}
