//! One tree, from before its birth until nobody looks at it any more.
//!
//! Whoever holds the state's lock may move the tree on: a caller that terminates it, the runtime's thread when a process
//! ends or a deadline passes. Promises are set under the lock and woken after it, since a waker may run anybody's code.

mod birth;
mod events;
mod exit;
mod facts;
mod others;
mod termination;
mod warden;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use dsh_subprocess::{Error, ErrorKind, MayHaveStarted, Member, Outcome, Started, StreamName, Usage};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::foreground::TerminalId;
use dsh_subprocess_sys::pidfd::{self, End, Pid, Signal, Wait};
use dsh_subprocess_sys::spawn::Program;
use dsh_subprocess_sys::table;
use tokio_util::sync::WaitForCancellationFutureOwned;

use self::exit::Exit;
use self::facts::{usage, with_times};
use self::others::{HungUp, Others};
use crate::failure::Asked;
use crate::feed::Feed;
use crate::ladder::{Act, Ladder};
use crate::machine::Machine;
use crate::owner::{Evidence, Owner, Trace};
use crate::promise::Promise;
use crate::raw_pipe::PipeEnd;
use crate::reactor::{Source, TimerKey, lock};
use crate::stream::Stream;
use crate::terminal::Master;

/// Processes that are named at most, wherever processes are named.
pub(crate) const NAMED: usize = 1024;

/// When no descriptor is left to watch a member with, the next look comes after this long. Nothing else is timed.
const BLIND: Duration = Duration::from_millis(50);

/// How long the end of a stream is waited for that another thread is writing to a file, once its drain has run out.
const CUT_BOUND: Duration = Duration::from_secs(1);

/// One tree.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) machine: Arc<Machine>,
    pub(crate) id: u64,
    state: Mutex<State>,
    pub(crate) started: Promise<Result<Started, Error>>,
    /// How the target ended, whether or not its streams have.
    pub(crate) outcome: Promise<Result<Outcome, Error>>,
    pub(crate) done: Promise<Result<Outcome, Error>>,
    used: Promise<Usage>,
    exit: Exit,
    /// What the target is on, where that is a terminal.
    terminal: OnceLock<Arc<Master>>,
}

#[derive(Debug)]
struct State {
    owner: Owner,
    ladder: Ladder,
    /// `None` before the clone, for a failed spawn, and once the target is reaped.
    leader: Option<Leader>,
    pid: Option<Pid>,
    outcome: Option<Outcome>,
    end: Option<End>,
    open_streams: usize,
    streams: Vec<(StreamName, Arc<Stream>)>,
    /// The callers' ends of raw streams.
    raw: Vec<(StreamName, u64, Arc<PipeEnd>)>,
    feed: Option<Arc<Feed>>,
    watched: HashMap<u64, (Pid, OwnedFd)>,
    group: Option<(u64, OwnedFd)>,
    /// No descriptor was left to signal or to watch a member with: look again at this time.
    blind_until: Option<Instant>,
    /// A signal that could not be sent for want of a descriptor.
    owed: Option<Act>,
    /// How long `done` waits, after the target's exit, for streams that are held open.
    drain: Duration,
    drain_until: Option<Instant>,
    /// The drain has run out, and the collected streams are being ended.
    drained: bool,
    timer: Option<TimerKey>,
    /// Members that outlived the target and were signalled.
    ended: Vec<Member>,
    /// Streams whose drain ran out.
    held: Vec<(StreamName, Medium)>,
    /// Members that were asked to end before the target.
    others: Others,
    /// The target of a terminal's tree was told that the terminal goes away.
    hung_up: Option<HungUp>,
    evidence: Evidence,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Whether the target leads a session of its own.
    has_session: bool,
    /// Kept from the owner, to find what had left the tree.
    trace: Option<Trace>,
    birth: Birth,
    /// What a failure of a launch that is still on its way will be told with.
    on_its_way: Option<Box<(Program, Asked)>>,
}

impl State {
    fn collected_ended(&self) -> bool {
        self.streams.iter().all(|(_, stream)| !stream.is_open())
    }
}

/// How far a launcher has come.
#[derive(Debug, Default)]
struct Birth {
    /// It has not begun: nothing of the tree is there, and whoever ends it now has ended it.
    awaited: bool,
    /// The child of its clone, until the owner is there: held to be signalled.
    newborn: Option<OwnedFd>,
    /// Whether that child was sent `SIGTERM`.
    asked: bool,
}

#[derive(Debug)]
struct Leader {
    pidfd: OwnedFd,
    token: u64,
}

/// What is left to do once the lock is free.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent news, each with waiters of its own"
)]
struct Afterwards {
    started: bool,
    outcome: bool,
    done: bool,
    exit: bool,
    /// An owner that is no longer needed.
    owner: Option<Owner>,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    feed: Option<Arc<Feed>>,
    /// The terminal of a target that has ended.
    terminal: Option<Arc<Master>>,
}

/// What carries a stream, as the process table shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Medium {
    /// A pipe, by its number.
    Pipe(u64),
    /// A terminal.
    Terminal(TerminalId),
}

impl Medium {
    /// Whether a process holds it open for writing.
    pub(crate) fn is_held_by(&self, pid: Pid) -> bool {
        match self {
            Self::Pipe(inode) => table::holds_pipe(pid, *inode),
            Self::Terminal(terminal) => terminal.is_held_by(pid),
        }
    }
}

impl Tree {
    /// The code that moves this tree on has failed, so nothing can be told of it any more.
    pub(crate) fn lost(self: &Arc<Self>) {
        self.give_up("the runtime failed while it moved the tree on");
    }

    /// Nothing can be told of the tree any more. What can be found of it is killed.
    fn give_up(self: &Arc<Self>, why: &'static str) {
        let mut state = lock(&self.state);
        if let Some(target) = &state.leader
            && state.outcome.is_none()
        {
            let _ = pidfd::send(&target.pidfd, Signal::KILL);
        }
        if let Some(newborn) = state.birth.newborn.take() {
            let _ = pidfd::send(&newborn, Signal::KILL);
        }
        let _ = state.owner.kill();
        let started = match self.started.peek() {
            Some(Ok(_)) => MayHaveStarted::Yes,
            _ => MayHaveStarted::Unknown,
        };
        let error = Error::new(ErrorKind::OwnershipLost, "observe", why).with_started(started);
        self.started.set(Err(error.clone()));
        self.outcome.set(Err(error.clone()));
        if state.outcome.is_some() {
            self.settle(&state);
        }
        self.done.set(Err(error.clone()));
        self.exit.set_overdue(error);
        // Nothing is sent to it any more, and nothing is waited for.
        state.ladder.gone();
        if let Some(key) = state.timer.take() {
            self.machine.reactor.unschedule(key);
        }
        let mut after = Afterwards {
            started: true,
            outcome: true,
            done: true,
            exit: true,
            terminal: self.terminal.get().cloned(),
            cancelled: state.cancelled.take(),
            feed: state.feed.take(),
            ..Afterwards::default()
        };
        if let Owner::Reaper(reaper) = &state.owner {
            self.machine.reactor.forget(reaper.warden(), reaper.token);
            after.owner = Some(std::mem::replace(&mut state.owner, Owner::Nobody));
        }
        self.forget_others(&mut state);
        drop(state);
        self.finish(after);
        if let Some(terminal) = self.terminal.get() {
            terminal.cut();
        }
        self.machine.forget(self.id);
    }

    /// Looks who is left after the target's end, and watches them.
    fn look(self: &Arc<Self>, state: &mut State, after: &mut Afterwards) {
        if state.ladder.is_gone() || state.owner.tells_its_end() {
            return;
        }
        let mut look = state.owner.look();
        if look.is_empty() {
            self.gone(state, after);
            return;
        }
        let reactor = &self.machine.reactor;
        if state.group.is_none()
            && let Owner::Cgroup(leaf) = &state.owner
            && let Ok(events) = leaf.watch()
        {
            // The backstop: late by the kernel's rate limit, and certain. Then another look, for what ended in between.
            let token = reactor.token();
            if reactor
                .watch(&events, token, Interest::Changes, Source::Group(Arc::clone(self)))
                .is_ok()
            {
                state.group = Some((token, events));
            }
            look = state.owner.look();
            if look.is_empty() {
                self.gone(state, after);
                return;
            }
        }
        if state.ladder.is_terminating() {
            let pids: Vec<Pid> = look.held.iter().map(|(pid, _)| *pid).collect();
            self.note_ended(state, pids);
        }
        if state.ladder.is_killing() {
            // Born since the last signal; whoever cannot be reached is looked for again.
            let _ = state.owner.kill();
        }
        let blind = look.blind;
        for (pid, process) in look.held {
            let token = reactor.token();
            if reactor
                .watch(
                    &process,
                    token,
                    Interest::Readable,
                    Source::Member(Arc::clone(self)),
                )
                .is_ok()
            {
                state.watched.insert(token, (pid, process));
            }
        }
        if let Some(orphans) = &self.machine.orphans {
            orphans.look_soon();
        }
        if state.watched.is_empty() && (blind || state.group.is_none()) {
            state.blind_until = Some(Instant::now() + BLIND);
        }
    }

    /// The tree is gone: nothing is sent any more, and everything that was held for it is given up.
    fn gone(&self, state: &mut State, after: &mut Afterwards) {
        state.ladder.gone();
        let reactor = &self.machine.reactor;
        for (token, (_, process)) in state.watched.drain() {
            reactor.forget(&process, token);
        }
        if let Some((token, events)) = state.group.take() {
            reactor.forget(&events, token);
        }
        self.forget_others(state);
        state.hung_up = None;
        state.blind_until = None;
        state.owed = None;
        if let Owner::Reaper(reaper) = &state.owner {
            reactor.forget(reaper.warden(), reaper.token);
        }
        if let Some(leader) = state.leader.take()
            && state.outcome.is_some()
            && state.owner.pins_leader()
        {
            // Its number may be used again from here on.
            let _ = pidfd::wait(&leader.pidfd, Wait::Reap);
        }
        if let Owner::Session(session) = &state.owner {
            state.trace = session.trace(state.evidence.clone());
        }
        after.owner = Some(std::mem::replace(&mut state.owner, Owner::Nobody));
        after.cancelled = state.cancelled.take();
        after.feed = state.feed.take();
        self.exit.set_gone();
        after.exit = true;
    }

    /// Sets how the target ended, once.
    fn settle(&self, state: &State) -> bool {
        let outcome = state.outcome.clone().unwrap_or(Outcome::Unknown);
        self.done.set(Ok(outcome))
    }

    /// Sets the timer to the next deadline.
    fn reschedule(self: &Arc<Self>, state: &mut State) {
        let hung_up = state.hung_up.map(|hung_up| hung_up.look_at);
        let due = [state.ladder.due(), state.drain_until, state.blind_until, hung_up]
            .into_iter()
            .flatten()
            .min();
        if state.timer.map(|(at, _)| at) == due {
            return;
        }
        if let Some(key) = state.timer.take() {
            self.machine.reactor.unschedule(key);
        }
        state.timer = due.map(|due| self.machine.reactor.schedule(due, Arc::downgrade(self)));
    }

    fn finish(self: &Arc<Self>, after: Afterwards) {
        if let Some(terminal) = after.terminal {
            terminal.program_ended();
        }
        if after.started {
            self.started.wake();
        }
        if after.outcome {
            self.outcome.wake();
        }
        if after.done {
            self.done.wake();
        }
        if after.exit {
            self.exit.wake();
        }
        drop(after.cancelled);
        if let Some(feed) = after.feed {
            feed.stop();
        }
        if let Some(owner) = after.owner {
            let end = lock(&self.state).end;
            match owner {
                Owner::Cgroup(leaf) => {
                    // Read once: what this tree used, and what the next one starts from.
                    let total = leaf.total();
                    self.used
                        .set(with_times(total.map(|total| leaf.since_base(total)), end));
                    self.used.wake();
                    match &self.machine.orphans {
                        Some(orphans) => orphans.tree_gone(leaf, total),
                        None => self.machine.reactor.put_off(move || leaf.release(total)),
                    }
                }
                Owner::Reaper(reaper) => {
                    self.used.set(with_times(reaper.used, end));
                    self.used.wake();
                    if let Some(wardens) = &self.machine.warden
                        && reaper.used.is_some()
                    {
                        wardens.give_back(reaper.into_warden());
                    }
                }
                owner => {
                    self.used.set(usage(&owner, end));
                    self.used.wake();
                }
            }
        }
        if (after.done || after.exit) && self.is_over() {
            self.machine.forget(self.id);
        }
    }
}
