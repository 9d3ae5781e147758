//! What all handles of one runtime share.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use dsh_subprocess::{EnvOverlay, Error, ErrorKind, Mechanism, Member, Ownership, Scrub};
use dsh_subprocess_sys::identity;
use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::pidfd::Pid;
use dsh_subprocess_sys::spawn::Session;
use tokio_util::sync::CancellationToken;

use crate::blocking::Blocking;
use crate::builder::DataTransport;
use crate::environment::Environments;
use crate::janitor::Record;
use crate::launch::{HANDSHAKE, Launchers};
use crate::orphans::Orphans;
use crate::owner::{self, Leaves, Reserve};
use crate::promise::Promise;
use crate::reactor::{Reactor, lock};
use crate::spill::SpillDirectory;
use crate::stream::PipeRoom;
use crate::tree::Tree;
use crate::warden::RuntimeWarden;

/// Bytes that the grown pipes of one runtime may take together.
const PIPE_ROOM: usize = 16 * 1024 * 1024;

/// One runtime's settings, threads and trees.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The process that made it. In a forked child the threads are missing, so nothing works there.
    process: u32,
    pub(crate) kernel: Kernel,
    pub(crate) mechanism: Mechanism,
    pub(crate) leaves: Option<Arc<Leaves>>,
    /// Who ends the trees when this process does not live to do it. On process groups nobody.
    pub(crate) warden: Option<Arc<RuntimeWarden>>,
    /// What the trees leave to this process, where that is to be reaped.
    pub(crate) orphans: Option<Arc<Orphans>>,
    pub(crate) session: Session,
    /// How long a spawn waits until its target runs.
    pub(crate) handshake: Duration,
    /// Who starts the targets, where a spawn waits for less than that may take. Otherwise its caller does.
    pub(crate) launchers: Option<Launchers>,
    /// For looks at the trees that a process group owns; the other owners have their own.
    reserve: OnceLock<Arc<Reserve>>,
    pub(crate) kill_bound: Duration,
    /// How long a write to a terminal may get no further.
    pub(crate) write_bound: Duration,
    pub(crate) environment: Environments,
    pub(crate) data: DataTransport,
    pub(crate) reactor: Arc<Reactor>,
    spill_reactor: OnceLock<Arc<Reactor>>,
    starting_spill_reactor: Mutex<()>,
    pub(crate) blocking: Arc<Blocking>,
    /// Look-ups of programs, which hang where a directory of `PATH` does.
    pub(crate) lookups: Blocking,
    /// Names of processes.
    names: Blocking,
    pub(crate) spills: Arc<SpillDirectory>,
    pub(crate) pipe_room: PipeRoom,
    pub(crate) null: OwnedFd,
    trees: Mutex<Trees>,
    next_tree: AtomicU64,
    belongings: Arc<Belongings>,
}

/// What a runtime has in file systems, and removes when its last tree is over.
#[derive(Debug)]
struct Belongings {
    leaves: Option<Arc<Leaves>>,
    orphans: Option<Arc<Orphans>>,
    warden: Option<Arc<RuntimeWarden>>,
    spills: Arc<SpillDirectory>,
    record: Option<Arc<Record>>,
    removed: Promise<()>,
}

impl Belongings {
    /// Removes them, once.
    fn remove(&self) {
        if self.removed.peek().is_some() {
            return;
        }
        self.spills.remove();
        if let Some(orphans) = &self.orphans {
            orphans.settle();
        }
        if let Some(leaves) = &self.leaves
            && let Err(errno) = leaves.remove()
        {
            tracing::debug!(%errno, "the runtime's cgroup could not be removed");
        }
        if let Some(record) = &self.record {
            record.remove();
        }
        if let Some(warden) = &self.warden {
            warden.goodbye();
        }
        self.removed.set(());
        self.removed.wake();
    }
}

/// The trees that are not over, and whether more may come.
#[derive(Debug, Default)]
struct Trees {
    live: HashMap<u64, Arc<Tree>>,
    closed: bool,
}

/// What a runtime is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) kernel: Kernel,
    pub(crate) mechanism: Mechanism,
    pub(crate) leaves: Option<Arc<Leaves>>,
    pub(crate) warden: Option<Arc<RuntimeWarden>>,
    pub(crate) session: Session,
    pub(crate) handshake: Duration,
    pub(crate) kill_bound: Duration,
    pub(crate) write_bound: Duration,
    pub(crate) reap_orphans: bool,
    pub(crate) scrub: Scrub,
    pub(crate) data: DataTransport,
    pub(crate) spills: Arc<SpillDirectory>,
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) null: OwnedFd,
}

impl Machine {
    pub(crate) fn start(parts: Parts) -> io::Result<Arc<Self>> {
        // The thread holds no reference of its own: it asks through this one, as long as there is something to ask.
        let machine: Arc<OnceLock<Weak<Self>>> = Arc::default();
        let asked = Arc::clone(&machine);
        let left = move || {
            asked
                .get()
                .and_then(Weak::upgrade)
                .is_some_and(|machine| !lock(&machine.trees).live.is_empty())
        };
        let orphans = parts
            .leaves
            .as_deref()
            .filter(|_| parts.reap_orphans)
            .map(Orphans::new);
        let belongings = Arc::new(Belongings {
            leaves: parts.leaves.clone(),
            orphans: orphans.clone(),
            warden: parts.warden.clone(),
            spills: Arc::clone(&parts.spills),
            record: parts.record,
            removed: Promise::new(),
        });
        let removed = Arc::clone(&belongings);
        let reactor = Reactor::start("dsh-io", left, move || removed.remove())?;
        if let Some(warden) = &parts.warden {
            // Nobody else would end the thread.
            warden.watch(&reactor).inspect_err(|_| reactor.close())?;
        }
        if let Some(orphans) = &orphans {
            orphans.watch(&reactor);
        }
        let started = Arc::new(Self {
            process: identity::pid(),
            kernel: parts.kernel,
            mechanism: parts.mechanism,
            leaves: parts.leaves,
            warden: parts.warden,
            orphans,
            session: parts.session,
            handshake: parts.handshake,
            launchers: (parts.handshake < HANDSHAKE).then(|| Launchers::new(&reactor)),
            reserve: OnceLock::new(),
            kill_bound: parts.kill_bound,
            write_bound: parts.write_bound,
            environment: Environments::new(parts.scrub),
            data: parts.data,
            reactor,
            spill_reactor: OnceLock::new(),
            starting_spill_reactor: Mutex::default(),
            blocking: Arc::default(),
            lookups: Blocking::default(),
            names: Blocking::default(),
            spills: parts.spills,
            pipe_room: PipeRoom::new(PIPE_ROOM),
            null: parts.null,
            trees: Mutex::default(),
            next_tree: AtomicU64::new(0),
            belongings,
        });
        // Set before anything can be asked: the thread asks only once it is closing.
        let _ = machine.set(Arc::downgrade(&started));
        Ok(started)
    }

    /// Refuses work in a process that was forked from the runtime's own.
    pub(crate) fn check_usable(&self, operation: &'static str) -> Result<(), Error> {
        if identity::pid() != self.process {
            let message = format!(
                "this runtime was made by process {}, before a fork: process {} must make its own",
                self.process,
                identity::pid()
            );
            return Err(Error::new(ErrorKind::ForkedProcess, operation, message));
        }
        Ok(())
    }

    /// Makes a tree and counts it among the live ones, unless the runtime is disposed of.
    pub(crate) fn new_tree(
        self: &Arc<Self>,
        env: &EnvOverlay,
        grace: Duration,
        drain: Duration,
        cancel: &CancellationToken,
    ) -> Result<Arc<Tree>, Error> {
        let variables = env
            .iter()
            .filter_map(|(name, value)| Some([name.as_bytes(), b"=", value.as_ref()?.as_bytes()].concat()));
        let id = self.next_tree.fetch_add(1, Ordering::Relaxed);
        let tree = Tree::new(self, id, grace, drain, cancel, variables.collect());
        let mut trees = lock(&self.trees);
        if trees.closed {
            return Err(Error::new(
                ErrorKind::Disposed,
                "spawn",
                "this runtime was disposed of and starts nothing any more",
            ));
        }
        trees.live.insert(id, Arc::clone(&tree));
        Ok(tree)
    }

    /// A tree is over.
    pub(crate) fn forget(&self, tree: u64) {
        let tree = lock(&self.trees).live.remove(&tree);
        drop(tree);
        self.reactor.nudge();
        if let Some(spills) = self.spill_reactor.get() {
            spills.nudge();
        }
    }

    /// Finds the tree that is not over and whose target has, or had, this pid.
    pub(crate) fn tree(&self, pid: u32) -> Option<Arc<Tree>> {
        lock(&self.trees)
            .live
            .values()
            .find(|tree| tree.pid() == Some(pid))
            .cloned()
    }

    /// Lets no more trees in, and returns those that are left.
    pub(crate) fn close(&self) -> Vec<Arc<Tree>> {
        let mut trees = lock(&self.trees);
        trees.closed = true;
        trees.live.values().cloned().collect()
    }

    /// Sends `SIGKILL` to every tree. Nothing is waited for.
    pub(crate) fn kill_all(&self) {
        if self.check_usable("kill").is_err() {
            return;
        }
        let trees: Vec<Arc<Tree>> = lock(&self.trees).live.values().cloned().collect();
        if let Some(leaves) = &self.leaves {
            // One write for all of them; each is told below all the same, for kernels without it.
            let _ = leaves.kill_all();
        }
        for tree in trees {
            tree.kill();
        }
    }

    /// Ends a runtime that nobody refers to any more, and waits for nothing. Where a warden goes on with the ladder should
    /// this process end meanwhile, the trees get their grace; otherwise they are killed.
    pub(crate) fn abandon(&self) {
        let trees = self.close();
        let over = || trees.iter().all(|tree| tree.is_over());
        if !over() {
            if self.is_warded() {
                for tree in &trees {
                    tree.terminate();
                }
            } else {
                self.kill_all();
            }
        }
        if over() {
            // Removed here and now: a host that is about to exit would take the thread with it before it came to that.
            self.belongings.remove();
        }
        self.shut_down();
    }

    /// Returns the descriptors that are kept for looks. They are opened for the first tree.
    pub(crate) fn reserve(&self) -> Arc<Reserve> {
        Arc::clone(self.reserve.get_or_init(|| Arc::new(Reserve::new())))
    }

    /// Whether a warden sees this process's end.
    pub(crate) fn is_warded(&self) -> bool {
        self.warden.as_ref().is_some_and(|warden| warden.is_there())
    }

    /// States the mechanism, and what it does not guarantee for a tree.
    pub(crate) fn ownership(&self, has_session: bool) -> Ownership {
        owner::ownership(&self.mechanism, has_session, self.is_warded())
    }

    /// Ends the runtime's threads as soon as the last tree is over, and removes what it has on disk.
    pub(crate) fn shut_down(&self) {
        // With the lock, so that a second thread is either seen here or sees that it is to end.
        let _starting = lock(&self.starting_spill_reactor);
        if let Some(launchers) = &self.launchers {
            launchers.close();
        }
        self.reactor.close();
        if let Some(spills) = self.spill_reactor.get() {
            spills.close();
        }
    }

    /// Names live processes. Their command lines are asked for on another thread, and only for a moment: reading one can hang
    /// with the process it belongs to. The short names are the kernel's own, and are there at once.
    pub(crate) fn name(&self, pids: Vec<Pid>) -> Vec<Member> {
        const MOMENT: Duration = Duration::from_millis(50);
        let asked = pids.clone();
        let named = self.names.run_within(MOMENT, move || {
            asked.into_iter().filter_map(owner::live_member).collect()
        });
        named.unwrap_or_else(|| pids.into_iter().filter_map(owner::briefly).collect())
    }

    /// Waits until the last tree is over and what the runtime had on disk is removed, after [`shut_down`](Self::shut_down).
    pub(crate) async fn closed(&self) {
        self.belongings.removed.get().await;
    }

    /// Returns the thread that writes spilled streams, and makes it at the first of them.
    pub(crate) fn spill_reactor(self: &Arc<Self>) -> io::Result<Arc<Reactor>> {
        if let Some(reactor) = self.spill_reactor.get() {
            return Ok(Arc::clone(reactor));
        }
        let _starting = lock(&self.starting_spill_reactor);
        if let Some(reactor) = self.spill_reactor.get() {
            return Ok(Arc::clone(reactor));
        }
        // It ends when it is closed and its last stream has ended.
        let machine = Arc::downgrade(self);
        let left = move || {
            machine
                .upgrade()
                .is_some_and(|machine| !lock(&machine.trees).live.is_empty())
        };
        let reactor = Reactor::start("dsh-spill", left, || {})?;
        if self.reactor.is_closing() {
            reactor.close();
        }
        Ok(Arc::clone(self.spill_reactor.get_or_init(|| reactor)))
    }

    pub(crate) fn is_spill_reactor(&self, reactor: &Arc<Reactor>) -> bool {
        !Arc::ptr_eq(&self.reactor, reactor)
    }

    /// Whether this is the process the runtime was made in.
    pub(crate) fn is_at_home(&self) -> bool {
        identity::pid() == self.process
    }
}
