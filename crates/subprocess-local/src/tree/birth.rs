//! From a spec to a running target, or to the reason why there is none.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use dsh_subprocess::{Error, ErrorKind, MayHaveStarted, Outcome, SignalName, Started, StreamName};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::pidfd::{self, Pid, Wait};
use dsh_subprocess_sys::spawn::{self, Program, StartError};
use dsh_subprocess_sys::steps::{Step, step};
use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::others::Others;
use super::{Afterwards, Birth, Leader, State, Tree};
use crate::failure::Asked;
use crate::feed::Feed;
use crate::ladder::{Act, Ladder};
use crate::machine::Machine;
use crate::owner::{self, Evidence, Owner};
use crate::promise::Promise;
use crate::raw_pipe::PipeEnd;
use crate::reactor::{Source, lock};
use crate::stream::Stream;
use crate::terminal::Master;

impl Tree {
    pub(crate) fn new(
        machine: &Arc<Machine>,
        id: u64,
        grace: Duration,
        drain: Duration,
        cancel: &CancellationToken,
        variables: Vec<Vec<u8>>,
    ) -> Arc<Self> {
        let tree = Arc::new(Self {
            machine: Arc::clone(machine),
            id,
            state: Mutex::new(State {
                owner: Owner::Nobody,
                ladder: Ladder::new(grace, machine.kill_bound),
                leader: None,
                pid: None,
                outcome: None,
                end: None,
                open_streams: 0,
                streams: Vec::new(),
                raw: Vec::new(),
                feed: None,
                watched: HashMap::new(),
                group: None,
                blind_until: None,
                owed: None,
                drain,
                drain_until: None,
                drained: false,
                timer: None,
                ended: Vec::new(),
                held: Vec::new(),
                others: Others::default(),
                hung_up: None,
                evidence: Evidence {
                    pipes: Vec::new(),
                    terminal: None,
                    variables,
                },
                cancelled: None,
                has_session: true,
                trace: None,
                birth: Birth::default(),
                on_its_way: None,
            }),
            started: Promise::new(),
            outcome: Promise::new(),
            done: Promise::new(),
            used: Promise::new(),
            exit: Exit::default(),
            terminal: OnceLock::new(),
        });
        tree.arm(cancel);
        tree
    }

    /// Lets the caller's token terminate the tree, without a task to wait for it: the token wakes the tree itself.
    fn arm(self: &Arc<Self>, cancel: &CancellationToken) {
        let waker = Waker::from(Arc::new(CancelWaker(Arc::downgrade(self))));
        let mut cancelled = Box::pin(cancel.clone().cancelled_owned());
        if cancelled
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            self.terminate();
        } else {
            lock(&self.state).cancelled = Some(cancelled);
        }
    }

    /// Counts a stream whose end `done` waits for.
    pub(crate) fn expect_stream(&self, inode: u64) {
        let mut state = lock(&self.state);
        state.open_streams += 1;
        state.evidence.pipes.push(inode);
    }

    /// A stream that was counted is drained by this value.
    pub(crate) fn add_stream(&self, name: StreamName, stream: Arc<Stream>) {
        lock(&self.state).streams.push((name, stream));
    }

    /// A stream that was counted is read by the caller.
    pub(crate) fn add_raw(&self, name: StreamName, inode: u64, end: Arc<PipeEnd>) {
        lock(&self.state).raw.push((name, inode, end));
    }

    /// The target will be on this terminal, whose end `done` waits for as for a stream's.
    pub(crate) fn on_terminal(&self, terminal: Arc<Master>) {
        let mut state = lock(&self.state);
        state.open_streams += 1;
        state.evidence.terminal = Some(terminal.id);
        state.ladder.set_target_last();
        drop(state);
        // It is called once, before anything can happen to the tree.
        let _ = self.terminal.set(terminal);
    }

    /// Data is being written to the target.
    pub(crate) fn add_feed(&self, feed: Arc<Feed>) {
        lock(&self.state).feed = Some(feed);
    }

    /// The tree is handed to the launchers. `false` where its end was asked for already, which ends it here.
    pub(crate) fn await_launch(self: &Arc<Self>) -> bool {
        let mut state = lock(&self.state);
        let ended = state.ladder.is_terminating();
        state.birth.awaited = !ended;
        drop(state);
        if ended {
            self.ended_unborn();
        }
        !ended
    }

    /// The target is about to be started, by whoever calls this. `false` where the tree's end was asked for before, which ends
    /// it here.
    pub(crate) fn set_off(self: &Arc<Self>) -> bool {
        let mut state = lock(&self.state);
        state.birth.awaited = false;
        let ended = state.ladder.is_terminating() || state.ladder.is_gone();
        drop(state);
        if ended {
            self.ended_unborn();
        }
        !ended
    }

    /// Has the child made by `clone`, which must not wait, under the lock: whoever ends the tree meanwhile finds the child
    /// afterwards. `None` where the tree's end was asked for before, which ends it here.
    pub(crate) fn bear(
        self: &Arc<Self>,
        clone: impl FnOnce() -> Result<spawn::Started, StartError>,
    ) -> Option<Result<spawn::Started, StartError>> {
        let mut state = lock(&self.state);
        if state.ladder.is_terminating() || state.ladder.is_gone() {
            drop(state);
            self.ended_unborn();
            return None;
        }
        let started = clone();
        // Its end is not the launch's any more, also where that failed: then the error is what is told.
        state.birth.awaited = false;
        // Out of descriptors: it is signalled as soon as it has an owner.
        state.birth.newborn = match &started {
            Ok(spawn::Started::Running(child)) => child.pidfd.try_clone().ok(),
            Ok(spawn::Started::Pending(pending)) => pending.pidfd().try_clone().ok(),
            Ok(spawn::Started::Failed(..)) | Err(_) => None,
        };
        Some(started)
    }

    /// The child was cloned. It may still be on its way to its program; it can be signalled from now on.
    pub(crate) fn cloned(self: &Arc<Self>, owner: Owner, pid: Pid) {
        if let (Owner::Cgroup(leaf), Some(orphans)) = (&owner, &self.machine.orphans) {
            orphans.born(leaf, pid);
        }
        let mut state = lock(&self.state);
        state.has_session = owner.has_session();
        state.owner = owner;
        state.pid = Some(pid);
        state.birth.newborn = None;
        // Terminated before it was there to be signalled.
        let late = if state.ladder.is_killing() {
            Act::Kill
        } else if state.ladder.is_terminating() {
            Act::Ask
        } else {
            Act::Rest
        };
        self.act(&mut state, late);
        self.reschedule(&mut state);
        step(Step::TreeOwned);
    }

    /// The target runs, and its warden tells when it has ended.
    pub(crate) fn runs(&self, pid: Pid) {
        self.started.set(Ok(Started::new(Some(owner::number(pid)))));
        self.started.wake();
    }

    /// The target runs: its end is awaited from now on.
    pub(crate) fn running(self: &Arc<Self>, pid: Pid, pidfd: OwnedFd) {
        let mut state = lock(&self.state);
        let mut after = Afterwards {
            started: true,
            ..Afterwards::default()
        };
        let number = owner::number(pid);
        self.started.set(Ok(Started::new(Some(number))));
        let reactor = &self.machine.reactor;
        let token = reactor.token();
        let watched = reactor.watch(
            &pidfd,
            token,
            Interest::BecomesReadable,
            Source::Leader(Arc::clone(self)),
        );
        match watched {
            Ok(()) => {
                state.leader = Some(Leader { pidfd, token });
                step(Step::TreeWatched);
            }
            Err(error) => {
                // Nothing can tell its end any more, so there must be one now.
                state.leader = Some(Leader { pidfd, token });
                let lost = Error::new(
                    ErrorKind::ResourceExhausted,
                    "spawn",
                    format!("the end of process {number} cannot be awaited: it was killed"),
                )
                .with_started(MayHaveStarted::Yes)
                .with_source(error);
                let act = state.ladder.kill(Instant::now());
                self.act(&mut state, act);
                if let Some(leader) = &state.leader {
                    let _ = pidfd::wait(&leader.pidfd, Wait::Block);
                }
                after.outcome = self.outcome.set(Err(lost.clone()));
                after.done = self.done.set(Err(lost));
                self.gone(&mut state, &mut after);
            }
        }
        drop(state);
        self.finish(after);
    }

    /// The target is on its way, and its warden will tell whether it arrives.
    pub(crate) fn on_its_way(&self, program: Program, asked: Asked) {
        let mut state = lock(&self.state);
        state.on_its_way = Some(Box::new((program, asked)));
    }

    /// Hears the tree's warden from now on.
    pub(crate) fn listen(self: &Arc<Self>) {
        let state = lock(&self.state);
        let Owner::Reaper(reaper) = &state.owner else {
            return;
        };
        let heard = self.machine.reactor.watch(
            reaper.warden(),
            reaper.token,
            Interest::BecomesReadable,
            Source::TreeWarden(Arc::clone(self)),
        );
        drop(state);
        step(Step::TreeWatched);
        if let Err(error) = heard {
            tracing::error!(%error, "a tree's warden cannot be heard");
            self.give_up("no descriptor was left to hear the tree's warden with: the tree was killed");
        }
    }

    /// The target is on its way, and nobody can tell whether it arrives. Its end is awaited all the same.
    pub(crate) fn unobserved(self: &Arc<Self>, pid: Pid, pidfd: std::io::Result<OwnedFd>, error: &Error) {
        self.started.set(Err(error.clone()));
        if let Ok(pidfd) = pidfd {
            self.running(pid, pidfd);
        } else {
            self.kill();
            self.failed(error);
        }
    }

    /// There is no target, and never will be.
    pub(crate) fn failed(self: &Arc<Self>, error: &Error) {
        self.without_target(error.clone(), Err(error.clone()));
    }

    /// The tree was ended before it had a target.
    pub(super) fn ended_unborn(self: &Arc<Self>) {
        let why = Error::new(
            ErrorKind::Cancelled,
            "spawn",
            "the tree was ended before its target was started",
        );
        let outcome = Outcome::Signaled {
            signal: SignalName::from("SIGTERM"),
            core_dumped: false,
        };
        self.without_target(why, Ok(outcome));
    }

    fn without_target(self: &Arc<Self>, why: Error, outcome: Result<Outcome, Error>) {
        // Without the lock: a stream's end wakes its readers.
        let streams: Vec<Arc<Stream>> = lock(&self.state)
            .streams
            .iter()
            .map(|(_, stream)| Arc::clone(stream))
            .collect();
        for stream in streams {
            stream.cut();
        }
        if let Some(terminal) = self.terminal.get() {
            terminal.cut();
        }
        let mut state = lock(&self.state);
        let mut after = Afterwards {
            started: true,
            ..Afterwards::default()
        };
        state.pid = None;
        state.birth.awaited = false;
        state.birth.newborn = None;
        self.started.set(Err(why));
        after.outcome = self.outcome.set(outcome.clone());
        after.done = self.done.set(outcome);
        self.gone(&mut state, &mut after);
        if let Some(key) = state.timer.take() {
            self.machine.reactor.unschedule(key);
        }
        drop(state);
        self.finish(after);
    }
}

/// Terminates a tree when its caller's token is cancelled.
struct CancelWaker(Weak<Tree>);

impl Wake for CancelWaker {
    fn wake(self: Arc<Self>) {
        if let Some(tree) = self.0.upgrade() {
            tree.terminate();
        }
    }
}
