//! Members that are asked to end before the target of a terminal's tree.
//!
//! The target leads the terminal's session, and when a leader ends the kernel hangs its terminal up: the foreground group gets
//! `SIGHUP` (`setsid(2)`), by which a member that is cleaning up after `SIGTERM` would be ended in the middle of it. So the
//! others are asked first, and the target when they are gone; whoever is born meanwhile is asked with the target.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::foreground::{self, InputWaiting, TerminalId};
use dsh_subprocess_sys::pidfd::{self, Pid, Signal};
use dsh_subprocess_sys::{Errno, table};

use super::{Afterwards, BLIND, State, Tree};
use crate::ladder::Act;
use crate::owner::WATCHED;
use crate::reactor::{Source, lock};

/// Those that were asked.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Whose end is awaited, by the tokens of their descriptors.
    watched: HashMap<u64, (Pid, OwnedFd)>,
    /// Who is looked at when those have ended.
    rest: Vec<Pid>,
}

impl Tree {
    /// Sends `SIGTERM` and `SIGCONT` to every member but the target, and to the target when there is none.
    pub(super) fn ask_others(self: &Arc<Self>, state: &mut State, after: &mut Afterwards) {
        // Whoever is born from here on is asked with the target, and not awaited before it.
        let whom = others(state);
        let asked = match state.pid {
            Some(target) if !whom.is_empty() => state.owner.ask_others(target),
            _ => Ok(()),
        };
        if let Err(errno) = asked {
            tracing::warn!(%errno, "the members of a terminal's tree could not be listed; it is tried again");
            state.owed = Some(Act::AskOthers);
            state.blind_until = Some(Instant::now() + BLIND);
            return;
        }
        state.others.rest = whom;
        self.await_others(state, after);
    }

    /// One of those that were asked has ended. `false` where the token is none of theirs.
    pub(super) fn other_ended(
        self: &Arc<Self>,
        state: &mut State,
        token: u64,
        after: &mut Afterwards,
    ) -> bool {
        let Some((pid, process)) = state.others.watched.remove(&token) else {
            return false;
        };
        self.machine.reactor.forget(&process, token);
        if let Some(orphans) = &self.machine.orphans {
            orphans.member_ended(pid, &process);
        }
        if state.others.watched.is_empty() {
            self.await_others(state, after);
        }
        true
    }

    /// Watches the next of them, and goes on with the ladder when there is none.
    pub(super) fn await_others(self: &Arc<Self>, state: &mut State, after: &mut Afterwards) {
        self.let_others_go(state);
        let reactor = &self.machine.reactor;
        if !state.others.rest.is_empty() {
            let members = others(state);
            state.others.rest.retain(|pid| members.contains(pid));
        }
        while state.others.watched.len() < WATCHED
            && let Some(pid) = state.others.rest.pop()
        {
            let process = match pidfd::open(pid) {
                Ok(process) if pidfd::is_running(&process) => process,
                Ok(_) | Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => continue,
                Err(_) => {
                    state.others.rest.push(pid);
                    break;
                }
            };
            let token = reactor.token();
            let source = Source::Member(Arc::clone(self));
            if reactor
                .watch(&process, token, Interest::Readable, source)
                .is_err()
            {
                state.others.rest.push(pid);
                break;
            }
            state.others.watched.insert(token, (pid, process));
        }
        if !state.others.watched.is_empty() {
            return;
        }
        if state.others.rest.is_empty() {
            let act = state.ladder.others_gone(Instant::now());
            self.advance(state, act, after);
        } else {
            // No descriptor to watch them with.
            state.blind_until = Some(Instant::now() + BLIND);
        }
    }

    /// Awaits no more who has left the range of the owner: a daemon with a session of its own, which is named as a survivor.
    fn let_others_go(&self, state: &mut State) {
        let watched = &state.others.watched;
        let watched = watched.iter().map(|(token, (pid, _))| (*token, *pid));
        for token in state.owner.left(watched) {
            if let Some((_, process)) = state.others.watched.remove(&token) {
                self.machine.reactor.forget(&process, token);
            }
        }
    }

    /// The grace of the others is over.
    pub(super) fn kill_others(&self, state: &mut State) {
        self.let_others_go(state);
        for (_, process) in state.others.watched.values() {
            let _ = pidfd::send(process, Signal::KILL);
        }
        let rest = std::mem::take(&mut state.others.rest);
        for batch in rest.chunks(WATCHED) {
            let held: Vec<_> = batch.iter().map(|&pid| (pid, pidfd::open(pid))).collect();
            let members = others(state);
            for (pid, process) in held.iter().filter(|(pid, _)| members.contains(pid)) {
                let _ = match process {
                    Ok(process) => pidfd::send(process, Signal::KILL),
                    Err(_) => pidfd::send_by_number(*pid, Signal::KILL),
                };
            }
        }
        self.forget_others(state);
    }

    /// Has somebody look whether the target has missed that it was hung up upon, off everybody's thread.
    ///
    /// A shell notes the signal in a handler; if it is just about to wait for a key, it wakes up for the next signal only. At a
    /// terminal that is really gone its read would fail, but here its last words are still to be read. So it gets the signal once
    /// more where it waits for input as if nothing had happened.
    pub(super) fn look_at_target(self: &Arc<Self>, state: &mut State, terminal: TerminalId) {
        let Some(HungUp { after, .. }) = state.hung_up else {
            return;
        };
        let Some(target) = state.pid.filter(|_| state.outcome.is_none()) else {
            state.hung_up = None;
            return;
        };
        // A slow machine has the shell late for both: each time it is given twice as long.
        let after = after * 2;
        state.hung_up = Some(HungUp {
            look_at: Instant::now() + after,
            after,
        });
        let tree = Arc::clone(self);
        let look = self.machine.blocking.run("observe", move || {
            if foreground::input_waiting(&terminal, target, &[target]) == InputWaiting::Proven {
                let state = lock(&tree.state);
                // Nobody else has its number, as long as its end was not seen.
                if state.hung_up.is_some() {
                    send_hang_up(&state, target);
                }
            }
        });
        // The answer is what was done.
        drop(look);
    }

    /// Nobody is awaited any more before the ladder goes on.
    pub(super) fn forget_others(&self, state: &mut State) {
        for (token, (_, process)) in std::mem::take(&mut state.others).watched {
            self.machine.reactor.forget(&process, token);
        }
    }
}

/// A shell that was hung up upon looks at that within this long, unless it has missed it.
const LOOK_AFTER: Duration = Duration::from_millis(100);

/// That a target was hung up upon, and when it is looked at again.
#[derive(Clone, Copy, Debug)]
pub(super) struct HungUp {
    pub(super) look_at: Instant,
    after: Duration,
}

/// Tells a target that ignores `SIGTERM`, as interactive shells do, by the signal of a terminal that goes away.
pub(super) fn hang_up(state: &mut State) {
    if let Some(target) = state.pid.filter(|_| state.outcome.is_none())
        && table::ignores(target, Signal::TERM)
    {
        send_hang_up(state, target);
        state.hung_up = Some(HungUp {
            look_at: Instant::now() + LOOK_AFTER,
            after: LOOK_AFTER,
        });
    }
}

fn send_hang_up(state: &State, target: Pid) {
    match &state.leader {
        Some(leader) => drop(pidfd::send(&leader.pidfd, Signal::HUP)),
        None => {
            // A warden's child, whose number a stranger could have only as the leader of another session.
            if let Ok(process) = pidfd::open(target)
                && table::session_of(target) == Some(target)
            {
                let _ = pidfd::send(&process, Signal::HUP);
            }
        }
    }
}

/// The members but the target.
fn others(state: &State) -> Vec<Pid> {
    let mut pids = state.owner.pids_by_descent();
    pids.retain(|pid| Some(*pid) != state.pid);
    pids
}

/// Whether members that were asked could not be watched, for want of descriptors.
pub(super) fn is_blind(state: &State) -> bool {
    state.others.watched.is_empty() && !state.others.rest.is_empty()
}
