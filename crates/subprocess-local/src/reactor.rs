//! What waits: for output, for the end of processes, for deadlines.
//!
//! One thread at a time waits and serves what became ready: it has the [`Drive`]. A caller's thread takes it while it blocks
//! on a future (see `drive`). Whenever nobody does, the reactor's own thread takes it as soon as there is something to serve.
//! Nothing here polls: with nothing to do that thread sleeps in one system call, for ever.
//!
//! A runtime has one reactor. A second one, made when the first stream spills, serves only the streams that are being
//! written to files, so that a slow disk slows nobody else.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::Waker;
use std::thread;
use std::time::Instant;

use dsh_subprocess_sys::event::{Interest, Patience, Poller, Ready};
use dsh_subprocess_sys::identity;
use dsh_subprocess_sys::signal;

use crate::feed::Feed;
use crate::orphans::Orphans;
use crate::raw_pipe::PipeEnd;
use crate::stream::Stream;
use crate::terminal::Master;
use crate::tree::Tree;
use crate::warden::{Adopted, RuntimeWarden};

/// Bytes read at a time. Large enough to empty a grown pipe in few calls, and for the copy of what is retained of each read,
/// usually its last 64 KiB, to be small beside it; small enough for a core's own cache.
pub(crate) const CHUNK: usize = 512 * 1024;

/// A token that no source has.
const NOBODY: u64 = u64::MAX - 1;

/// Locks, also after a panic of another thread: what the locks here protect is whole after every statement.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a watched descriptor belongs to.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The target of a tree.
    Leader(Arc<Tree>),
    /// Another member, watched since the target ended.
    Member(Arc<Tree>),
    /// The tree's `cgroup.events`.
    Group(Arc<Tree>),
    /// A collected stream.
    Stream(Arc<Stream>),
    /// Data on its way to a child.
    Feed(Arc<Feed>),
    /// A caller's end of a raw pipe.
    Pipe(Arc<PipeEnd>),
    /// The host's end of a terminal.
    Terminal(Arc<Master>),
    /// The socket of a tree's warden.
    TreeWarden(Arc<Tree>),
    /// The socket of the runtime's warden.
    Warden(Arc<RuntimeWarden>),
    /// A warden that has come to this process.
    Adopted(Arc<Adopted>),
    /// A member that has, and was to be looked for.
    Orphans(Arc<Orphans>),
}

/// What happens at a deadline.
#[derive(Debug)]
enum Alarm {
    /// [`Tree::elapse`].
    Tree(Weak<Tree>),
    /// Somebody is woken.
    Waker(Waker),
}

/// Names a deadline, so that it can be taken back.
pub(crate) type TimerKey = (Instant, u64);

/// What all threads share: anybody may add sources and deadlines.
#[derive(Debug)]
pub(crate) struct Reactor {
    /// The process that has the thread.
    process: u32,
    poller: Poller,
    /// Locked by the thread that waits and serves. Nobody waits for this lock: whoever does not get it has nothing to do.
    drive: Mutex<Buffers>,
    sources: Mutex<HashMap<u64, Source>>,
    timers: Mutex<BTreeMap<TimerKey, Alarm>>,
    /// Sources to be served although nothing is ready.
    requests: Mutex<Vec<Source>>,
    /// What is left to do when everybody who waits has been told.
    chores: Mutex<Vec<Chore>>,
    /// Never used twice, so that a late event of a closed descriptor finds nobody.
    next: AtomicU64,
    /// The thread is to end once this is set and nothing is left to wait for.
    closing: AtomicBool,
}

/// Work that nobody waits for.
struct Chore(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Chore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chore")
    }
}

/// The memory of whoever drives.
#[derive(Debug)]
struct Buffers {
    ready: Vec<Ready>,
    chunk: Vec<u8>,
}

impl Reactor {
    /// Starts the thread. Once the reactor is closing and `left` says that no tree is left, `last` runs; the thread goes
    /// on as long as callers hold pipes that it watches.
    pub(crate) fn start(
        name: &str,
        left: impl Fn() -> bool + Send + 'static,
        last: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Arc<Self>> {
        let reactor = Arc::new(Self {
            process: identity::pid(),
            poller: Poller::new()?,
            drive: Mutex::new(Buffers {
                ready: Vec::new(),
                chunk: vec![0; CHUNK],
            }),
            sources: Mutex::default(),
            timers: Mutex::default(),
            requests: Mutex::default(),
            chores: Mutex::default(),
            next: AtomicU64::new(0),
            closing: AtomicBool::new(false),
        });
        let running = Arc::clone(&reactor);
        // Blocked before the thread is made, so that it never has a moment without: the host's signals are the host's.
        let _mask = signal::block_for_new_thread();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            running.run(&left, last);
        })?;
        Ok(reactor)
    }

    /// Returns a token that was never used.
    pub(crate) fn token(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Watches a descriptor on behalf of a source.
    pub(crate) fn watch(
        &self,
        fd: impl AsFd,
        token: u64,
        interest: Interest,
        source: Source,
    ) -> std::io::Result<()> {
        lock(&self.sources).insert(token, source);
        if let Err(errno) = self.poller.add(fd, token, interest) {
            lock(&self.sources).remove(&token);
            return Err(errno.into());
        }
        Ok(())
    }

    /// Watches a descriptor, which is watched already, for something else.
    pub(crate) fn change(&self, fd: impl AsFd, token: u64, interest: Interest) {
        // It takes no memory, and a forked child has no business here.
        if identity::pid() == self.process {
            let _ = self.poller.change(fd, token, interest);
        }
    }

    /// Stops watching a descriptor.
    pub(crate) fn forget(&self, fd: impl AsFd, token: u64) {
        // A forked child shares the set with its parent: what it drops must not leave the parent's set.
        if identity::pid() == self.process {
            self.poller.remove(fd);
        }
        let source = lock(&self.sources).remove(&token);
        // Outside the lock: a source may be the last reference to something that has a drop of its own.
        drop(source);
        self.nudge();
    }

    /// Calls [`Tree::elapse`] at a moment.
    pub(crate) fn schedule(&self, at: Instant, tree: Weak<Tree>) -> TimerKey {
        self.set_alarm(at, Alarm::Tree(tree))
    }

    /// Wakes somebody at a moment.
    pub(crate) fn wake_at(&self, at: Instant, waker: Waker) -> TimerKey {
        self.set_alarm(at, Alarm::Waker(waker))
    }

    fn set_alarm(&self, at: Instant, alarm: Alarm) -> TimerKey {
        let key = (at, self.token());
        let mut timers = lock(&self.timers);
        timers.insert(key, alarm);
        self.set_clock(&timers, key);
        key
    }

    /// Sets the clock anew where this deadline is, or was, the first. No thread is woken for it.
    fn set_clock(&self, timers: &BTreeMap<TimerKey, Alarm>, changed: TimerKey) {
        let first = timers.first_key_value().map(|(first, _)| *first);
        if first.is_none_or(|first| changed <= first) {
            self.poller
                .set_clock(first.map(|(at, _)| at.saturating_duration_since(Instant::now())));
        }
    }

    /// Has a source served, whether or not anything is ready.
    pub(crate) fn request(&self, source: Source) {
        lock(&self.requests).push(source);
        self.poller.ring();
    }

    /// Puts work off until the next thread that drives is about to sleep. Nobody may wait for it: a runtime to which nothing
    /// happens any more does not do it before its end, or at all when the process ends first.
    pub(crate) fn put_off(&self, work: impl FnOnce() + Send + 'static) {
        lock(&self.chores).push(Chore(Box::new(work)));
    }

    /// Takes a deadline back.
    pub(crate) fn unschedule(&self, key: TimerKey) {
        let mut timers = lock(&self.timers);
        let removed = timers.remove(&key);
        self.set_clock(&timers, key);
        drop(timers);
        drop(removed);
    }

    /// Lets the thread end as soon as nothing is left to wait for.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.poller.ring();
    }

    /// Whether the thread is to end.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Makes the thread look whether it can end.
    pub(crate) fn nudge(&self) {
        if self.closing.load(Ordering::Acquire) {
            self.poller.ring();
        }
    }

    /// Wakes the thread that drives, or the next one that will.
    pub(crate) fn ring(&self) {
        self.poller.ring();
    }

    /// Takes the drive, unless somebody has it, or the reactor's own thread is to see its end, or this is a forked child.
    pub(crate) fn try_drive(self: &Arc<Self>) -> Option<Drive<'_>> {
        if self.is_closing() || identity::pid() != self.process {
            return None;
        }
        let drive = self.take_drive()?;
        // The reactor's own thread need not wake up meanwhile. Where this comes too late it finds the drive taken.
        self.poller.disarm();
        Some(drive)
    }

    fn take_drive(self: &Arc<Self>) -> Option<Drive<'_>> {
        let buffers = match self.drive.try_lock() {
            Ok(buffers) => buffers,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Drive {
            reactor: self,
            buffers: Some(buffers),
        })
    }

    /// Runs the reactor's own thread.
    fn run(self: Arc<Self>, left: &dyn Fn() -> bool, last: impl FnOnce()) {
        let mut last = Some(last);
        self.poller.arm();
        loop {
            if self.closing.load(Ordering::Acquire) && !left() {
                if let Some(last) = last.take() {
                    last();
                }
                if lock(&self.sources).is_empty() && lock(&self.requests).is_empty() {
                    return;
                }
            }
            if let Err(errno) = self.poller.stand_by() {
                tracing::error!(%errno, "the wait for events failed");
                return;
            }
            // Where somebody else drives, the end of that arms the poller again.
            if let Some(mut drive) = self.take_drive() {
                drive.wait(Patience::None);
                drive.serve();
                drive.tidy();
            }
        }
    }

    /// Serves one source. A panic ends neither the thread, on which every tree depends, nor the wait of those who wait for
    /// this tree.
    fn serve(self: &Arc<Self>, source: Source, event: Ready, chunk: &mut [u8]) {
        let tree = match &source {
            Source::Leader(tree) | Source::Member(tree) | Source::Group(tree) | Source::TreeWarden(tree) => {
                Some(Arc::clone(tree))
            }
            Source::Stream(_)
            | Source::Feed(_)
            | Source::Pipe(_)
            | Source::Terminal(_)
            | Source::Warden(_)
            | Source::Adopted(_)
            | Source::Orphans(_) => None,
        };
        let served = catch_unwind(AssertUnwindSafe(|| match source {
            Source::Leader(tree) => tree.leader_ended(),
            Source::Member(tree) => tree.member_ended(event.token),
            Source::Group(tree) => tree.group_changed(),
            Source::Stream(stream) => stream.drain(self, chunk),
            Source::Feed(feed) => feed.write(),
            Source::Pipe(end) => end.ready(event.hung_up),
            Source::Terminal(master) => master.ready(),
            Source::TreeWarden(tree) => tree.warden_spoke(),
            Source::Warden(warden) => warden.heard(),
            Source::Adopted(adopted) => adopted.ended(event.token),
            Source::Orphans(orphans) => orphans.serve(event.token),
        }));
        if served.is_err() {
            // Its descriptor may be ready for ever.
            let source = lock(&self.sources).remove(&event.token);
            drop(source);
            if let Some(tree) = tree {
                tree.lost();
            }
        }
    }

    fn run_timers(&self) {
        loop {
            let due = {
                let mut timers = lock(&self.timers);
                match timers.first_entry() {
                    Some(first) if first.key().0 <= Instant::now() => {
                        let (key, alarm) = first.remove_entry();
                        self.set_clock(&timers, key);
                        Some((key, alarm))
                    }
                    _ => None,
                }
            };
            match due {
                None => return,
                Some((key, Alarm::Tree(tree))) => {
                    if let Some(tree) = tree.upgrade()
                        && catch_unwind(AssertUnwindSafe(|| tree.elapse(key))).is_err()
                    {
                        tree.lost();
                    }
                }
                Some((_, Alarm::Waker(waker))) => {
                    // Its panic was told by the panic hook, and is its owner's.
                    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                }
            }
        }
    }
}

/// The right to wait and to serve. It is given up before any code runs that may take long.
pub(crate) struct Drive<'a> {
    reactor: &'a Arc<Reactor>,
    /// There until the drop.
    buffers: Option<MutexGuard<'a, Buffers>>,
}

impl Drive<'_> {
    /// Waits until there is something to serve. `false` when it cannot.
    pub(crate) fn wait(&mut self, patience: Patience) -> bool {
        let Some(buffers) = &mut self.buffers else {
            return false;
        };
        let waited = self.reactor.poller.wait(patience, &mut buffers.ready);
        if let Err(errno) = waited {
            tracing::error!(%errno, "the wait for events failed");
        }
        waited.is_ok()
    }

    /// Serves what is ready, what was requested, and the deadlines that have passed.
    pub(crate) fn serve(&mut self) {
        let Some(buffers) = &mut self.buffers else { return };
        let Buffers { ready, chunk, .. } = &mut **buffers;
        for event in ready.drain(..) {
            let source = lock(&self.reactor.sources).get(&event.token).cloned();
            if let Some(source) = source {
                self.reactor.serve(source, event, chunk);
            }
        }
        let requests = std::mem::take(&mut *lock(&self.reactor.requests));
        for source in requests {
            let nothing = Ready {
                token: NOBODY,
                hung_up: false,
            };
            self.reactor.serve(source, nothing, chunk);
        }
        self.reactor.run_timers();
    }

    /// Does what was put off.
    pub(crate) fn tidy(&mut self) {
        let chores = std::mem::take(&mut *lock(&self.reactor.chores));
        for Chore(work) in chores {
            // Its panic was told by the panic hook, and is nobody else's.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        drop(self.buffers.take());
        // Only now: the reactor's own thread must find the drive free when this wakes it, or else another driver, who
        // comes here in its turn.
        self.reactor.poller.arm();
    }
}
