//! Ending a tree: what is sent to whom, and who is left.

use std::sync::Arc;
use std::time::Instant;

use dsh_subprocess::{Error, ErrorKind, MayHaveStarted};
use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::pidfd::{self, Pid, Signal};

use super::{Afterwards, BLIND, NAMED, State, Tree, others};
use crate::ladder::Act;
use crate::owner::{self, Owner};
use crate::reactor::lock;

impl Tree {
    /// Begins the ladder.
    pub(crate) fn terminate(self: &Arc<Self>) {
        // A forked child may drop a guard of its parent's: the tree is not its to end.
        if !self.machine.is_at_home() {
            return;
        }
        self.begin_end();
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        let act = state.ladder.terminate(Instant::now());
        if std::mem::take(&mut state.birth.awaited) {
            drop(state);
            return self.ended_unborn();
        }
        if act == Act::Kill {
            // Another attempt at survivors: whoever waits from now on waits for its end.
            self.exit.try_again();
        }
        self.advance(&mut state, act, &mut after);
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// Lets the handle of a terminal's tree do no more.
    fn begin_end(&self) {
        if let Some(terminal) = self.terminal.get() {
            terminal.begin_end();
        }
    }

    /// The terminal that the target is on cannot be used any more, which is not its normal end.
    pub(crate) fn terminal_failed(self: &Arc<Self>, error: &Error) {
        if self.done.set(Err(error.clone())) {
            self.done.wake();
        }
        self.terminate();
    }

    /// Ends the tree without grace.
    pub(crate) fn kill(self: &Arc<Self>) {
        // As for `terminate`.
        if !self.machine.is_at_home() {
            return;
        }
        self.begin_end();
        let mut state = lock(&self.state);
        let mut after = Afterwards::default();
        let act = state.ladder.kill(Instant::now());
        if std::mem::take(&mut state.birth.awaited) {
            drop(state);
            return self.ended_unborn();
        }
        self.advance(&mut state, act, &mut after);
        self.reschedule(&mut state);
        drop(state);
        self.finish(after);
    }

    /// Sends a signal once to every member. Nothing is sent to a tree that is gone.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let state = lock(&self.state);
        if state.ladder.is_gone() {
            return Ok(());
        }
        state.owner.signal(signal)
    }

    /// Acts, and lets go of members that are none any more.
    pub(super) fn advance(self: &Arc<Self>, state: &mut State, act: Act, after: &mut Afterwards) {
        match act {
            Act::Rest | Act::ReportSurvivors => return,
            Act::AskOthers => return self.ask_others(state, after),
            Act::KillOthersAndAsk => {
                self.kill_others(state);
                self.act(state, Act::Ask);
            }
            Act::Ask | Act::Kill => self.act(state, act),
        }
        self.let_go(state, after);
    }

    /// Gives up watched members that have left the range of the owner since they were seen: a daemon that was about to
    /// make its own session. They are named as survivors, and no longer keep the tree open.
    pub(super) fn let_go(self: &Arc<Self>, state: &mut State, after: &mut Afterwards) {
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

    pub(super) fn act(&self, state: &mut State, act: Act) {
        if !matches!(act, Act::Ask | Act::Kill) {
            return;
        }
        self.forget_others(state);
        state.hung_up = None;
        if let Some(newborn) = &state.birth.newborn {
            // Whoever else there is by the time it has an owner gets the signal then.
            let signals: &[Signal] = match act {
                Act::Ask => &[Signal::TERM, Signal::CONT],
                _ => &[Signal::KILL],
            };
            for &signal in signals {
                let _ = pidfd::send(newborn, signal);
            }
            state.birth.asked |= act == Act::Ask;
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
            let signalled = state.pid.filter(|_| first.is_some() || state.birth.asked);
            state.owner.ask(signalled)
        } else {
            if let Some(target) = target {
                let _ = pidfd::send(&target.pidfd, Signal::KILL);
            }
            state.owner.kill()
        };
        if act == Act::Ask && self.terminal.get().is_some() {
            others::hang_up(state);
        }
        state.owed = delivered.is_err().then_some(act);
        if let Err(errno) = delivered {
            tracing::warn!(%errno, "the members of a tree could not be listed; it is tried again");
            state.blind_until = Some(Instant::now() + BLIND);
        }
    }

    /// Remembers members that outlived the target and are being signalled.
    pub(super) fn note_ended(&self, state: &mut State, mut pids: Vec<Pid>) {
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

    pub(super) fn report_survivors(&self, state: &State) -> bool {
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
}
