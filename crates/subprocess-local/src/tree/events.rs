//! What happens to a tree: processes and streams end, deadlines pass.

use std::borrow::Cow;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use dsh_subprocess::{Outcome, SignalName, StreamName};
use dsh_subprocess_sys::pidfd::{self, End, Status, Wait};
use dsh_subprocess_sys::{pipe, signal};

use super::{Afterwards, CUT_BOUND, Medium, State, Tree, others};
use crate::ladder::Act;
use crate::owner::Owner;
use crate::reactor::{TimerKey, lock};
use crate::stream::Stream;

impl Tree {
    /// The target's descriptor is readable.
    pub(crate) fn leader_ended(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let Some(leader) = &state.leader else { return };
        if state.outcome.is_some() {
            return;
        }
        let pinned = state.owner.pins_leader();
        let (outcome, end) = match pidfd::wait(&leader.pidfd, if pinned { Wait::Look } else { Wait::Reap }) {
            // A tracer has it first; the descriptor becomes readable again when the tracer lets go of it.
            Ok(None) => return,
            Ok(Some(end)) => (outcome(end.status), Some(end)),
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
                (status.map_or(Outcome::Unknown, outcome), None)
            }
        };
        if let Some(leader) = &state.leader {
            self.machine.reactor.forget(&leader.pidfd, leader.token);
        }
        if !pinned {
            state.leader = None;
        }
        let mut after = Afterwards::default();
        self.target_ended(&mut state, outcome, end, &mut after);
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// The target has ended; its streams, and other members, may not have.
    pub(super) fn target_ended(
        self: &Arc<Self>,
        state: &mut State,
        outcome: Outcome,
        end: Option<End>,
        after: &mut Afterwards,
    ) {
        state.end = end;
        after.outcome = self.outcome.set(Ok(outcome.clone()));
        state.outcome = Some(outcome);
        if state.open_streams == 0 {
            after.done = self.settle(state);
        } else {
            state.drain_until = Some(Instant::now() + state.drain);
        }
        state.ladder.target_ended();
        state.hung_up = None;
        self.forget_others(state);
        self.look(state, after);
        if let Some(terminal) = self.terminal.get() {
            after.terminal = Some(Arc::clone(terminal));
            // A session does not outlive its leader.
            let act = state.ladder.terminate(Instant::now());
            if act == Act::Kill {
                self.exit.try_again();
            }
            self.advance(state, act, after);
        }
    }

    /// A watched member has ended.
    pub(crate) fn member_ended(self: &Arc<Self>, token: u64) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        if !self.other_ended(&mut state, token, &mut after) {
            let Some((pid, pidfd)) = state.watched.remove(&token) else {
                return;
            };
            self.machine.reactor.forget(&pidfd, token);
            if let Some(orphans) = &self.machine.orphans {
                orphans.member_ended(pid, &pidfd);
            }
            // As long as another watched one lives the tree is not gone, and there is nothing to look for.
            if state.watched.is_empty() {
                self.look(&mut state, &mut after);
            }
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
    pub(crate) fn stream_ended(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        state.open_streams = state.open_streams.saturating_sub(1);
        let complete = state.open_streams == 0 || (state.drained && state.collected_ended());
        if complete && state.outcome.is_some() {
            after.done = self.settle(&state);
            state.drain_until = None;
            self.reschedule(&mut state);
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
            if others::is_blind(&state) {
                self.await_others(&mut state, &mut after);
            }
            if state.watched.is_empty() && state.outcome.is_some() {
                self.look(&mut state, &mut after);
            }
        }
        if state.hung_up.is_some_and(|hung_up| hung_up.look_at <= now)
            && let Some(terminal) = self.terminal.get()
        {
            self.look_at_target(&mut state, terminal.id);
        }
        match state.ladder.elapse(now) {
            Act::ReportSurvivors => {
                self.let_go(&mut state, &mut after);
                if state.outcome.is_some() {
                    // The last may have gone just now.
                    self.look(&mut state, &mut after);
                }
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

    /// The caller lets the drain run out: now, or at the exit that is still to come.
    ///
    /// Only the deadline is moved. The cut takes the streams' locks, and a caller may have one: the waker of a reader, which a
    /// stream wakes under its own.
    pub(crate) fn cut_drain(self: &Arc<Self>) {
        // A forked child shares the clock with its parent, whose deadlines it would set anew.
        if !self.machine.is_at_home() {
            return;
        }
        let mut state = lock(&self.state);
        state.drain = Duration::ZERO;
        let now = Instant::now();
        // A deadline that has passed stays as it is: a new one makes an alarm that is on its way void, and callers who go on
        // cutting would put the end off for as long as they do.
        let runs = state.drain_until.is_some_and(|until| until > now);
        // After the drain it is that of a thread which writes files.
        if runs && !state.drained && self.done.peek().is_none() {
            state.drain_until = Some(now);
            self.reschedule(&mut state);
        }
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
            .map(|(name, stream)| (*name, Medium::Pipe(stream.inode)))
            .chain(raw.map(|(name, inode, _)| (*name, Medium::Pipe(*inode))))
            .collect();
        let terminal = self.terminal.get().filter(|terminal| terminal.is_open());
        if let Some(terminal) = terminal {
            state
                .held
                .push((StreamName::Terminal, Medium::Terminal(terminal.id)));
        }
        let streams: Vec<Arc<Stream>> = state
            .streams
            .iter()
            .map(|(_, stream)| Arc::clone(stream))
            .collect();
        drop(state);
        if let Some(terminal) = terminal {
            terminal.cut();
        }
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
}

pub(super) fn outcome(status: Status) -> Outcome {
    match status {
        Status::Exited(code) => Outcome::Exited { code: code.into() },
        Status::Signaled {
            signal: number,
            core_dumped,
        } => {
            let signal = match signal::name(number) {
                Cow::Borrowed(name) => SignalName::from(name),
                Cow::Owned(name) => SignalName::from(name),
            };
            Outcome::Signaled { signal, core_dumped }
        }
    }
}
