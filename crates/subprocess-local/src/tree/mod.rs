//! One tree, from before its birth until nobody looks at it any more.
//!
//! Whoever holds the state's lock may move the tree on: a caller that terminates it, the runtime's thread when a process
//! ends or a deadline passes. Promises are set under the lock and woken after it, since a waker may run anybody's code.

mod exit;
mod facts;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use dsh_subprocess::{
    Error, ErrorKind, MayHaveStarted, Member, Outcome, SignalName, Started, StreamName, Usage,
};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::pidfd::{self, End, Pid, Signal, Status, Wait};
use dsh_subprocess_sys::{pipe, signal};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use self::exit::Exit;
use self::facts::{usage, with_times};
use crate::feed::Feed;
use crate::ladder::{Act, Ladder};
use crate::machine::Machine;
use crate::owner::{self, Evidence, Owner, Trace};
use crate::promise::Promise;
use crate::raw_pipe::PipeEnd;
use crate::reactor::{Source, TimerKey, lock};
use crate::stream::Stream;

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
    drain: Duration,
    state: Mutex<State>,
    pub(crate) started: Promise<Result<Started, Error>>,
    pub(crate) done: Promise<Result<Outcome, Error>>,
    used: Promise<Usage>,
    exit: Exit,
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
    drain_until: Option<Instant>,
    /// The drain has run out, and the collected streams are being ended.
    drained: bool,
    timer: Option<TimerKey>,
    /// Members that outlived the target and were signalled.
    ended: Vec<Member>,
    /// Streams whose drain ran out, by their pipes' numbers.
    held: Vec<(StreamName, u64)>,
    evidence: Evidence,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Whether the target leads a session of its own.
    has_session: bool,
    /// Kept from the owner, to find what had left the tree.
    trace: Option<Trace>,
}

impl State {
    fn collected_ended(&self) -> bool {
        self.streams.iter().all(|(_, stream)| !stream.is_open())
    }
}

#[derive(Debug)]
struct Leader {
    pidfd: OwnedFd,
    token: u64,
}

/// What is left to do once the lock is free.
#[derive(Default)]
struct Afterwards {
    started: bool,
    done: bool,
    exit: bool,
    /// An owner that is no longer needed.
    owner: Option<Owner>,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    feed: Option<Arc<Feed>>,
}

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
            drain,
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
                drain_until: None,
                drained: false,
                timer: None,
                ended: Vec::new(),
                held: Vec::new(),
                evidence: Evidence {
                    pipes: Vec::new(),
                    variables,
                },
                cancelled: None,
                has_session: true,
                trace: None,
            }),
            started: Promise::new(),
            done: Promise::new(),
            used: Promise::new(),
            exit: Exit::default(),
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

    /// Data is being written to the target.
    pub(crate) fn add_feed(&self, feed: Arc<Feed>) {
        lock(&self.state).feed = Some(feed);
    }

    /// The child was cloned. It may still be on its way to its program; it can be signalled from now on.
    pub(crate) fn cloned(self: &Arc<Self>, owner: Owner, pid: Pid) {
        let mut state = lock(&self.state);
        state.has_session = owner.has_session();
        state.owner = owner;
        state.pid = Some(pid);
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
    }

    /// The target runs: its end is awaited from now on.
    pub(crate) fn running(self: &Arc<Self>, pid: Pid, pidfd: OwnedFd) {
        let mut state = lock(&self.state);
        let mut after = Afterwards {
            started: true,
            ..Afterwards::default()
        };
        let number = pid.as_raw_nonzero().get().unsigned_abs();
        self.started.set(Ok(Started::new(Some(number))));
        let reactor = &self.machine.reactor;
        let token = reactor.token();
        match reactor.watch(
            &pidfd,
            token,
            Interest::BecomesReadable,
            Source::Leader(Arc::clone(self)),
        ) {
            Ok(()) => state.leader = Some(Leader { pidfd, token }),
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
                after.done = self.done.set(Err(lost));
                self.gone(&mut state, &mut after);
            }
        }
        drop(state);
        self.finish(after);
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

    /// The code that moves this tree on has failed, so nothing can be told of it any more. What can be found is killed.
    pub(crate) fn lost(&self) {
        let mut state = lock(&self.state);
        let _ = state.owner.kill();
        let error = Error::new(
            ErrorKind::OwnershipLost,
            "observe",
            "the runtime failed while it moved the tree on",
        )
        .with_started(MayHaveStarted::Unknown);
        self.started.set(Err(error.clone()));
        self.done.set(Err(error.clone()));
        self.exit.set_overdue(error);
        drop(state);
        self.finish(Afterwards {
            started: true,
            done: true,
            exit: true,
            ..Afterwards::default()
        });
        self.machine.forget(self.id);
    }

    /// There is no target, and never will be.
    pub(crate) fn failed(&self, error: &Error) {
        // Without the lock: a stream's end wakes its readers.
        let streams: Vec<Arc<Stream>> = lock(&self.state)
            .streams
            .iter()
            .map(|(_, stream)| Arc::clone(stream))
            .collect();
        for stream in streams {
            stream.cut();
        }
        let mut state = lock(&self.state);
        let mut after = Afterwards {
            started: true,
            ..Afterwards::default()
        };
        state.pid = None;
        self.started.set(Err(error.clone()));
        after.done = self.done.set(Err(error.clone()));
        self.gone(&mut state, &mut after);
        if let Some(key) = state.timer.take() {
            self.machine.reactor.unschedule(key);
        }
        drop(state);
        self.finish(after);
    }

    /// The target's descriptor is readable.
    pub(crate) fn leader_ended(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let Some(leader) = &state.leader else { return };
        if state.outcome.is_some() {
            return;
        }
        let pinned = state.owner.pins_leader();
        let outcome = match pidfd::wait(&leader.pidfd, if pinned { Wait::Look } else { Wait::Reap }) {
            // A tracer has it first; the descriptor becomes readable again when the tracer lets go of it.
            Ok(None) => return,
            Ok(Some(end)) => {
                let outcome = outcome(end.status);
                state.end = Some(end);
                outcome
            }
            // Somebody else in the host took the status.
            Err(_) => {
                let status = self
                    .machine
                    .kernel
                    .pidfd_get_info
                    .then(|| pidfd::reaped_status(&leader.pidfd))
                    .flatten();
                if let Owner::Session(session) = &mut state.owner {
                    session.unpin();
                }
                status.map_or(Outcome::Unknown, outcome)
            }
        };
        if let Some(leader) = &state.leader {
            self.machine.reactor.forget(&leader.pidfd, leader.token);
        }
        if !pinned {
            state.leader = None;
        }
        let mut after = Afterwards::default();
        state.outcome = Some(outcome);
        if state.open_streams == 0 {
            after.done = self.settle(&state);
        } else {
            state.drain_until = Some(Instant::now() + self.drain);
        }
        self.look(&mut state, &mut after);
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// A watched member has ended.
    pub(crate) fn member_ended(self: &Arc<Self>, token: u64) {
        let mut state = lock(&self.state);
        let Some((_, pidfd)) = state.watched.remove(&token) else {
            return;
        };
        self.machine.reactor.forget(&pidfd, token);
        let mut after = Afterwards::default();
        // As long as another watched one lives the tree is not gone, and there is nothing to look for.
        if state.watched.is_empty() {
            self.look(&mut state, &mut after);
        }
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// The tree's `cgroup.events` has changed.
    pub(crate) fn group_changed(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let Some((_, events)) = &state.group else { return };
        // Read to be told of the next change.
        let mut content = [0; 64];
        let populated = pipe::read_start(events, &mut content).map_or(true, |length| {
            !content[..length].windows(11).any(|line| line == b"populated 0")
        });
        let mut after = Afterwards::default();
        if !populated || state.watched.is_empty() {
            self.look(&mut state, &mut after);
        }
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// A stream has ended, or the caller has taken it away.
    pub(crate) fn stream_ended(&self) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        state.open_streams = state.open_streams.saturating_sub(1);
        let complete = state.open_streams == 0 || (state.drained && state.collected_ended());
        if complete && state.outcome.is_some() {
            after.done = self.settle(&state);
            state.drain_until = None;
            self.reschedule_weak(&mut state);
        }
        drop(state);
        self.finish(after);
    }

    /// A deadline that was set may have come.
    pub(crate) fn elapse(self: &Arc<Self>, key: TimerKey) {
        let mut state = lock(&self.state);
        if state.timer != Some(key) {
            return;
        }
        state.timer = None;
        let now = Instant::now();
        let mut after = Afterwards::default();
        if state.drain_until.is_some_and(|until| until <= now) {
            state.drain_until = None;
            if state.drained {
                // A thread that writes files is stuck in the kernel. The stream is sealed when it returns.
                after.done = self.settle(&state);
            } else {
                state = self.cut_streams(state, &mut after);
            }
        }
        if state.blind_until.is_some_and(|until| until <= now) {
            state.blind_until = None;
            if let Some(owed) = state.owed.take() {
                self.advance(&mut state, owed, &mut after);
            }
            if state.watched.is_empty() && state.outcome.is_some() {
                self.look(&mut state, &mut after);
            }
        }
        match state.ladder.elapse(now) {
            Act::ReportSurvivors => {
                self.let_go(&mut state, &mut after);
                if !state.ladder.is_gone() {
                    after.exit |= self.report_survivors(&state);
                }
            }
            act => self.advance(&mut state, act, &mut after),
        }
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// The drain has run out: ends the collected streams with what has arrived. The lock is not held meanwhile, since a
    /// stream's end wakes its readers.
    fn cut_streams<'a>(
        self: &'a Arc<Self>,
        mut state: MutexGuard<'a, State>,
        after: &mut Afterwards,
    ) -> MutexGuard<'a, State> {
        state.drained = true;
        let collected = state.streams.iter().filter(|(_, stream)| stream.is_open());
        let raw = state.raw.iter().filter(|(_, _, end)| end.is_open());
        state.held = collected
            .map(|(name, stream)| (*name, stream.inode))
            .chain(raw.map(|(name, inode, _)| (*name, *inode)))
            .collect();
        let streams: Vec<Arc<Stream>> = state
            .streams
            .iter()
            .map(|(_, stream)| Arc::clone(stream))
            .collect();
        drop(state);
        let mut all = true;
        for stream in streams {
            all &= stream.cut();
        }
        let mut state = lock(&self.state);
        if all || state.collected_ended() {
            after.done = self.settle(&state);
        } else {
            state.drain_until = Some(Instant::now() + CUT_BOUND);
        }
        state
    }

    /// Begins the ladder.
    pub(crate) fn terminate(self: &Arc<Self>) {
        // A forked child may drop a guard of its parent's: the tree is not its to end.
        if !self.machine.is_at_home() {
            return;
        }
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        let act = state.ladder.terminate(Instant::now());
        if act == Act::Kill {
            // Another attempt at survivors: whoever waits from now on waits for its end.
            self.exit.try_again();
        }
        self.advance(&mut state, act, &mut after);
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// Ends the tree without grace.
    pub(crate) fn kill(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        let act = state.ladder.kill(Instant::now());
        self.advance(&mut state, act, &mut after);
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// Acts, and lets go of members that are none any more.
    fn advance(self: &Arc<Self>, state: &mut State, act: Act, after: &mut Afterwards) {
        self.act(state, act);
        if matches!(act, Act::Ask | Act::Kill) {
            self.let_go(state, after);
        }
    }

    /// Gives up watched members that have left the range of the owner since they were seen: a daemon that was about to
    /// make its own session. They are named as survivors, and no longer keep the tree open.
    fn let_go(self: &Arc<Self>, state: &mut State, after: &mut Afterwards) {
        let left = state
            .owner
            .left(state.watched.iter().map(|(token, (pid, _))| (*token, *pid)));
        if left.is_empty() {
            return;
        }
        for token in left {
            if let Some((_, process)) = state.watched.remove(&token) {
                self.machine.reactor.forget(&process, token);
            }
        }
        if state.watched.is_empty() {
            self.look(state, after);
        }
    }

    fn act(&self, state: &mut State, act: Act) {
        if !matches!(act, Act::Ask | Act::Kill) {
            return;
        }
        if let (Owner::Session(session), Some(leader)) = (&mut state.owner, &state.leader)
            && pidfd::is_reaped(&leader.pidfd)
        {
            // Somebody else in the host took it, and its number is free.
            session.unpin();
        }
        if state.outcome.is_some() {
            let pids = state.owner.pids();
            self.note_ended(state, pids);
        }
        let target = state.leader.as_ref().filter(|_| state.outcome.is_none());
        let delivered = if act == Act::Ask {
            // In a control group the target gets it first, by the descriptor that is held anyway: it is what most trees
            // consist of, and it may have moved itself out of the group.
            let first = target.filter(|_| matches!(state.owner, Owner::Cgroup(_)));
            if let Some(target) = first {
                let _ = pidfd::send(&target.pidfd, Signal::TERM);
                let _ = pidfd::send(&target.pidfd, Signal::CONT);
            }
            let signalled = first.and(state.pid);
            state.owner.ask(signalled)
        } else {
            if let Some(target) = target {
                let _ = pidfd::send(&target.pidfd, Signal::KILL);
            }
            state.owner.kill()
        };
        state.owed = delivered.is_err().then_some(act);
        if let Err(errno) = delivered {
            tracing::warn!(%errno, "the members of a tree could not be listed; it is tried again");
            state.blind_until = Some(Instant::now() + BLIND);
        }
    }

    /// Remembers members that outlived the target and are being signalled.
    fn note_ended(&self, state: &mut State, mut pids: Vec<Pid>) {
        pids.retain(|pid| {
            state
                .ended
                .iter()
                .all(|known| known.pid != Some(owner::number(*pid)))
        });
        pids.truncate(NAMED - state.ended.len());
        if !pids.is_empty() {
            state.ended.extend(self.machine.name(pids));
        }
    }

    /// Looks who is left after the target's end, and watches them.
    fn look(self: &Arc<Self>, state: &mut State, after: &mut Afterwards) {
        if state.ladder.is_gone() {
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
        if state.watched.is_empty() && state.group.is_none() {
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
        state.blind_until = None;
        state.owed = None;
        if let Some(leader) = state.leader.take()
            && state.outcome.is_some()
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

    fn report_survivors(&self, state: &State) -> bool {
        let mut pids = state.owner.pids();
        pids.extend(state.watched.values().map(|(pid, _)| *pid));
        pids.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        pids.dedup();
        pids.truncate(NAMED);
        let survivors = self.machine.name(pids);
        let names: Vec<String> = survivors.iter().take(8).map(ToString::to_string).collect();
        let more = if survivors.len() > names.len() {
            ", …"
        } else {
            ""
        };
        let who = match survivors.len() {
            0 => "processes that cannot be listed now".to_owned(),
            1 => format!("a process: {}", names.join("")),
            count => format!("{count} processes: {}{more}", names.join(", ")),
        };
        let error = Error::new(
            ErrorKind::Survivors,
            "terminate",
            format!("SIGKILL was outlived by {:?} by {who}", self.machine.kill_bound),
        )
        .with_started(MayHaveStarted::Yes)
        .with_survivors(survivors);
        self.exit.set_overdue(error);
        true
    }

    /// Sets the timer to the next deadline.
    fn reschedule(self: &Arc<Self>, state: &mut State) {
        let due = [state.ladder.due(), state.drain_until, state.blind_until]
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

    /// Takes the timer back where no deadline is left; a deadline that is merely later is found when the timer fires.
    fn reschedule_weak(&self, state: &mut State) {
        if state.ladder.due().is_none()
            && state.blind_until.is_none()
            && let Some(key) = state.timer.take()
        {
            self.machine.reactor.unschedule(key);
        }
    }

    fn finish(&self, after: Afterwards) {
        if after.started {
            self.started.wake();
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
                    leaf.release(total);
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

fn outcome(status: Status) -> Outcome {
    match status {
        Status::Exited(code) => Outcome::Exited { code: code.into() },
        Status::Signaled {
            signal: number,
            core_dumped,
        } => {
            let signal = match signal::name(number) {
                std::borrow::Cow::Borrowed(name) => SignalName::from(name),
                std::borrow::Cow::Owned(name) => SignalName::from(name),
            };
            Outcome::Signaled { signal, core_dumped }
        }
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
