//! The one lock of a scripted world, and how its changes reach whoever waits.
//!
//! All state is in [`Core`], all of it in virtual time. [`Inner::with`] is the only way to change it: it wakes wakers and
//! drops what was retired after the lock is released, because both may run code of the caller's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use dsh_subprocess::{Environment, Error, ErrorKind, NameCase, Ownership, SpawnSpec, WorldPath};
use futures_core::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::agenda::{Agenda, Due};
use super::record::TerminationCause;
use super::script::Script;
use super::spill::SpillStore;
use super::tree::Tree;
use super::world::Place;

pub(super) type Program = Arc<dyn Fn(&SpawnSpec) -> Script + Send + Sync>;

/// The watch over one spec's token; its waker terminates the tree.
pub(super) struct CancelWatch(pub(super) Pin<Box<WaitForCancellationFutureOwned>>);

impl fmt::Debug for CancelWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelWatch")
    }
}

/// What every tree of a world has around it.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) agenda: Agenda,
    pub(super) open_gates: BTreeSet<String>,
    pub(super) kill_bound: Duration,
    /// How long a write to a terminal may get no further.
    pub(super) write_bound: Duration,
    pub(super) violations: Vec<String>,
    /// To be woken when the lock is released.
    pub(super) wakers: Vec<Waker>,
    /// To be dropped when the lock is released.
    pub(super) retired: Vec<CancelWatch>,
}

pub(super) struct Core {
    pub(super) scene: Scene,
    pub(super) trees: Vec<Tree>,
    /// By location.
    pub(super) programs: BTreeMap<Vec<u8>, Program>,
    /// Empty where every path is a directory.
    pub(super) places: BTreeMap<WorldPath, Place>,
    pub(super) base: Environment,
    pub(super) name_case: NameCase,
    /// The system that the world says it is.
    pub(super) platform: String,
    pub(super) ownership: Ownership,
    pub(super) latency: Duration,
    /// How far a free-running clock jumps at once.
    pub(super) horizon: Duration,
    pub(super) spills: SpillStore,
    pub(super) disposed: bool,
    /// Whether nobody holds the runtime any more.
    pub(super) abandoned: bool,
}

pub(super) struct Inner {
    core: Mutex<Core>,
    /// Marked after every change.
    changed: watch::Sender<()>,
    /// Notified after every change, for the thread of a free-running world.
    work: Condvar,
}

impl Inner {
    pub(super) fn new(core: Core) -> Self {
        Self {
            core: Mutex::new(core),
            changed: watch::Sender::new(()),
            work: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the world, or looks at it.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Core) -> T) -> T {
        let (answer, wakers, retired) = {
            let mut core = self.lock();
            let answer = change(&mut core);
            (
                answer,
                std::mem::take(&mut core.scene.wakers),
                std::mem::take(&mut core.scene.retired),
            )
        };
        self.work.notify_all();
        self.changed.send_replace(());
        wakers.into_iter().for_each(Waker::wake);
        drop(retired);
        answer
    }

    /// Looks at the world without telling anybody. What it registers or counts must concern nobody who waits.
    pub(super) fn quietly<T>(&self, look: impl FnOnce(&mut Core) -> T) -> T {
        look(&mut self.lock())
    }

    /// Lets a script go on at the world's next turn. A poll that found nothing must not call it: it would wake the
    /// waiter that is polling, for ever.
    pub(super) fn resume(&self, tree: usize) {
        self.with(|core| core.scene.agenda.plan(Duration::ZERO, Due::Resume(tree)));
    }

    /// Lets time pass as fast as the events come, up to the horizon, until the world is abandoned and nothing is planned any
    /// more.
    pub(super) fn run_freely(&self) {
        loop {
            let next = {
                let mut core = self.lock();
                loop {
                    match core.scene.agenda.first() {
                        Some(at)
                            if core.abandoned
                                || at.saturating_sub(core.scene.agenda.now()) <= core.horizon =>
                        {
                            break at;
                        }
                        None if core.abandoned => return,
                        _ => core = self.work.wait(core).unwrap_or_else(PoisonError::into_inner),
                    }
                }
            };
            self.with(|core| core.run_until(next));
        }
    }
}

/// Resolves with what `read` gives, as soon as it gives something.
pub(super) fn observe<T: Send + 'static>(
    world: Arc<Inner>,
    mut read: impl FnMut(&Core) -> Option<T> + Send + 'static,
) -> BoxFuture<'static, T> {
    let mut changes = world.changed.subscribe();
    Box::pin(async move {
        loop {
            // Marked as seen before the look, so that a change in between is not missed.
            changes.borrow_and_update();
            if let Some(answer) = read(&world.lock()) {
                return answer;
            }
            if changes.changed().await.is_err() {
                unreachable!("the sender lives as long as `world`");
            }
        }
    })
}

impl Core {
    /// Lets everything happen that is due until then, and moves the clock there.
    pub(super) fn run_until(&mut self, until: Duration) {
        while let Some(due) = self.scene.agenda.next_until(until) {
            self.happen(due);
        }
        self.scene.agenda.arrive(until);
        if self.disposed && self.trees.iter().all(|tree| tree.gone) {
            self.spills.end_runtime();
        }
    }

    /// Lets everything happen that is planned at all.
    pub(super) fn run_out(&mut self) {
        while let Some(at) = self.scene.agenda.first() {
            self.run_until(at);
        }
    }

    fn happen(&mut self, due: Due) {
        let Self { scene, trees, .. } = self;
        match due {
            Due::Resume(tree) => trees[tree].resume(scene),
            Due::Terminate(tree) => trees[tree].terminate(scene),
            Due::TargetEnds(tree, outcome) => trees[tree].end_target(outcome, scene),
            Due::MemberEnds(tree, pid) => trees[tree].end_member(pid, scene),
            Due::DrainOver(tree) => trees[tree].drain_over(scene),
            Due::GraceOver(tree) => trees[tree].kill(scene),
            Due::BoundOver(tree) => trees[tree].exhaust(),
            Due::InputStalls(tree) => trees[tree].input_stalls(scene),
            Due::Answer => {}
        }
    }

    /// Lets every script look again at what it waits for.
    pub(super) fn resume_all(&mut self) {
        for tree in self.trees.iter().filter(|tree| !tree.steps.is_empty()) {
            self.scene.agenda.plan(Duration::ZERO, Due::Resume(tree.index));
        }
    }

    /// Plans an answer that is on its way from now on, and returns when it arrives.
    pub(super) fn plan_answer(&mut self) -> Duration {
        self.scene.agenda.plan(self.latency, Due::Answer)
    }

    pub(super) fn has_arrived(&self, answer: Duration) -> bool {
        self.scene.agenda.now() >= answer
    }

    pub(super) fn refuse_when_disposed(&self) -> Result<(), Error> {
        if self.disposed {
            return Err(Error::new(
                ErrorKind::Disposed,
                "spawn",
                "the runtime was disposed of",
            ));
        }
        Ok(())
    }

    /// Asks every tree to end.
    pub(super) fn dispose(&mut self) {
        self.disposed = true;
        for tree in self.trees.iter_mut().filter(|tree| !tree.gone) {
            tree.request_termination(TerminationCause::Dispose, &mut self.scene);
        }
        // So that a world without trees ends its spills, too.
        self.scene.agenda.plan(Duration::ZERO, Due::Answer);
    }

    /// Ends every tree at once: nobody holds the runtime any more.
    pub(super) fn abandon(&mut self) {
        self.abandoned = true;
        self.dispose();
        for tree in &mut self.trees {
            tree.kill(&mut self.scene);
        }
    }

    /// Tells how the disposal went. `None` while it is going on.
    pub(super) fn disposal(&self) -> Option<Result<(), Error>> {
        let mut failures = Vec::new();
        for tree in &self.trees {
            if !tree.gone {
                failures.extend(tree.exit()?.err());
            }
        }
        Some(super::world::all_of(failures))
    }
}
