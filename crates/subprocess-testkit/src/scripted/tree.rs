//! One scripted tree: a state machine in virtual time, without any clock or thread of its own.

use std::collections::VecDeque;
use std::time::Duration;

use dsh_subprocess::{
    Environment, Error, ErrorKind, Holder, MayHaveStarted, Outcome, SpawnSpec, Started, StreamName, Usage,
};

use super::agenda::Due;
use super::inner::{CancelWatch, Scene};
use super::record::{Delivery, TerminationCause, TerminationRequest};
use super::script::{Reaction, Script, ScriptedMember, Step};
use super::stream::{InputStream, OutputStream};
use super::terminal::Tty;

/// How far the ladder of a tree has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Ladder {
    Untouched,
    Termed,
    Killed,
    /// The bound after `SIGKILL` ran out, and somebody is left.
    Exhausted,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) index: usize,
    pub(super) spec: SpawnSpec,
    pub(super) environment: Environment,
    pub(super) terminations: Vec<TerminationRequest>,
    pub(super) signals: Vec<Delivery>,
    pub(super) steps: VecDeque<Step>,
    pub(super) on_term: Reaction,
    pub(super) on_kill: Reaction,
    pub(super) input: InputStream,
    pub(super) stdout: OutputStream,
    /// `None` where it is merged into `stdout`.
    pub(super) stderr: Option<OutputStream>,
    /// `None` for a tree that has pipes.
    pub(super) terminal: Option<Tty>,
    pub(super) cancel: Option<CancelWatch>,
    pub(super) started: Option<Result<Started, Error>>,
    pub(super) outcome: Option<Outcome>,
    pub(super) done: Option<Result<Outcome, Error>>,
    pub(super) gone: bool,
    pub(super) lost: Option<Error>,
    pub(super) disconnected: Option<Error>,
    /// How long `done` waits, after the target's end, for streams that are held open.
    pub(super) drain: Duration,
    pub(super) ladder: Ladder,
    pub(super) members: Vec<LiveMember>,
    pub(super) holders: Vec<Holder>,
    pub(super) usage: Usage,
}

/// A member, and what became of it.
#[derive(Debug)]
pub(super) struct LiveMember {
    pub(super) script: ScriptedMember,
    pub(super) alive: bool,
    pub(super) signalled: bool,
    pub(super) outlived: bool,
}

impl LiveMember {
    /// Tells whether it lives where the mechanism sees it.
    pub(super) fn is_within(&self) -> bool {
        self.alive && !self.script.escaped
    }
}

impl Tree {
    /// Makes a tree that has done nothing yet.
    pub(super) fn new(
        index: usize,
        (spec, environment): (SpawnSpec, Environment),
        script: Script,
        input: InputStream,
        (stdout, stderr): (OutputStream, Option<OutputStream>),
    ) -> Self {
        Self {
            index,
            drain: spec.drain,
            spec,
            environment,
            terminations: Vec::new(),
            signals: Vec::new(),
            steps: script.steps,
            on_term: script.on_term,
            on_kill: script.on_kill,
            input,
            stdout,
            stderr,
            terminal: None,
            cancel: None,
            started: None,
            outcome: None,
            done: None,
            gone: false,
            lost: None,
            disconnected: None,
            ladder: Ladder::Untouched,
            members: Vec::new(),
            holders: Vec::new(),
            usage: Usage::default(),
        }
    }

    /// Returns a stream by the name a script uses.
    pub(super) fn stream(&mut self, name: StreamName) -> &mut OutputStream {
        match (name, &mut self.stderr) {
            (StreamName::Stderr, Some(stderr)) => stderr,
            _ => &mut self.stdout,
        }
    }

    /// Tells whether the target runs.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.started, Some(Ok(_))) && self.outcome.is_none()
    }

    /// Takes a member in.
    pub(super) fn bear(&mut self, script: ScriptedMember) {
        let outlived = self.outcome.is_some();
        self.members.push(LiveMember {
            script,
            alive: true,
            signalled: false,
            outlived,
        });
    }

    /// Notes a request to end the tree; it acts when it arrives.
    pub(super) fn request_termination(&mut self, cause: TerminationCause, scene: &mut Scene) {
        self.terminations
            .push(TerminationRequest::new(scene.agenda.now(), cause));
        self.close_terminal();
        scene.agenda.plan(Duration::ZERO, Due::Terminate(self.index));
    }

    /// Begins the ladder, once.
    pub(super) fn terminate(&mut self, scene: &mut Scene) {
        if self.gone || self.ladder != Ladder::Untouched {
            return;
        }
        self.ladder = Ladder::Termed;
        if self.started.is_none() {
            self.abort_before_start(scene);
        } else {
            self.signal_all("SIGTERM", scene);
            scene.agenda.plan(self.spec.grace, Due::GraceOver(self.index));
            self.resume(scene);
        }
    }

    /// Sends `SIGKILL` to whatever is left.
    pub(super) fn kill(&mut self, scene: &mut Scene) {
        if self.gone || self.ladder >= Ladder::Killed {
            return;
        }
        if self.started.is_none() {
            return self.abort_before_start(scene);
        }
        self.ladder = Ladder::Killed;
        self.signal_all("SIGKILL", scene);
        scene.agenda.plan(scene.kill_bound, Due::BoundOver(self.index));
        self.settle(scene);
    }

    /// Gives up waiting for a tree that outlived `SIGKILL`.
    pub(super) fn exhaust(&mut self) {
        if !self.gone {
            self.ladder = Ladder::Exhausted;
        }
    }

    fn signal_all(&mut self, signal: &'static str, scene: &mut Scene) {
        let kill = signal == "SIGKILL";
        let now = scene.agenda.now();
        for member in self.members.iter_mut().filter(|member| member.is_within()) {
            member.signalled = true;
            let pid = member.script.member.pid;
            self.signals.push(Delivery::new(now, pid, signal));
            match if kill {
                &member.script.on_kill
            } else {
                &member.script.on_term
            } {
                Reaction::Dies => member.alive = false,
                Reaction::Ends { after, .. } => {
                    scene.agenda.plan(*after, Due::MemberEnds(self.index, pid));
                }
                Reaction::Ignores => {}
            }
        }
        if self.is_running() {
            self.signals.push(Delivery::new(now, None, signal));
            let reaction = if kill {
                self.on_kill.clone()
            } else {
                self.on_term.clone()
            };
            let outcome = Outcome::Signaled {
                signal: signal.into(),
                core_dumped: false,
            };
            self.react(reaction, outcome, scene);
        }
    }

    /// Lets the target do what it does about a signal, of which the outcome would be this one.
    pub(super) fn react(&mut self, reaction: Reaction, dead: Outcome, scene: &mut Scene) {
        match reaction {
            Reaction::Dies => self.end_target(dead, scene),
            Reaction::Ends { after, outcome } => {
                scene.agenda.plan(after, Due::TargetEnds(self.index, outcome));
            }
            Reaction::Ignores => {}
        }
    }

    /// Ends the target, once.
    pub(super) fn end_target(&mut self, outcome: Outcome, scene: &mut Scene) {
        if self.outcome.is_some() || self.lost.is_some() {
            return;
        }
        self.outcome = Some(outcome);
        for member in self.members.iter_mut().filter(|member| member.alive) {
            member.outlived = true;
        }
        scene.agenda.plan(self.drain, Due::DrainOver(self.index));
        self.settle(scene);
        if let Some(terminal) = &mut self.terminal {
            terminal.program_exited();
            if !self.gone {
                self.request_termination(TerminationCause::ProgramExit, scene);
            }
        }
    }

    /// Ends a member.
    pub(super) fn end_member(&mut self, pid: Option<u32>, scene: &mut Scene) {
        for member in self
            .members
            .iter_mut()
            .filter(|member| member.script.member.pid == pid)
        {
            member.alive = false;
        }
        self.settle(scene);
    }

    /// Records that the target never ran, and why.
    pub(super) fn fail(&mut self, error: Error, scene: &mut Scene) {
        self.started = Some(Err(error.clone()));
        self.finish_unstarted(Err(error), scene);
    }

    /// A termination before the start: the target never runs, and its outcome is that of the signal.
    fn abort_before_start(&mut self, scene: &mut Scene) {
        let why = Error::new(
            ErrorKind::Cancelled,
            "spawn",
            "terminated before the target was started",
        );
        self.started = Some(Err(why));
        let outcome = Outcome::Signaled {
            signal: "SIGTERM".into(),
            core_dumped: false,
        };
        self.finish_unstarted(Ok(outcome), scene);
    }

    fn finish_unstarted(&mut self, done: Result<Outcome, Error>, scene: &mut Scene) {
        self.steps.clear();
        self.input.reader_ended(&mut scene.wakers);
        self.end_streams(scene);
        self.done = Some(done);
        self.leave(scene);
    }

    fn end_streams(&mut self, scene: &mut Scene) {
        for stream in [Some(&mut self.stdout), self.stderr.as_mut()]
            .into_iter()
            .flatten()
        {
            if !stream.ended {
                stream.end(&mut scene.wakers);
            }
        }
    }

    /// The tree is gone: nothing can be asked of it any more, not by its token either.
    fn leave(&mut self, scene: &mut Scene) {
        self.gone = true;
        scene.retired.extend(self.cancel.take());
    }

    /// Loses the owner for good.
    pub(super) fn lose(&mut self, why: &str, scene: &mut Scene) {
        let started = match self.started {
            None => MayHaveStarted::Unknown,
            Some(Ok(_)) => MayHaveStarted::Yes,
            Some(Err(_)) => MayHaveStarted::No,
        };
        let error = Error::new(ErrorKind::OwnershipLost, "observe", why).with_started(started);
        self.started.get_or_insert_with(|| Err(error.clone()));
        self.done.get_or_insert_with(|| Err(error.clone()));
        self.lost = Some(error);
        self.steps.clear();
        self.end_streams(scene);
        scene.retired.extend(self.cancel.take());
    }

    /// Lets the drain run out now, or at the end that is still to come.
    pub(super) fn cut_drain(&mut self, scene: &mut Scene) {
        self.drain = Duration::ZERO;
        if self.outcome.is_some() && self.done.is_none() {
            scene.agenda.plan(Duration::ZERO, Due::DrainOver(self.index));
        }
    }

    /// The drain ran out: collected streams and terminals are cut off with what arrived, raw pipes stay with the caller.
    pub(super) fn drain_over(&mut self, scene: &mut Scene) {
        if self.done.is_some() {
            return;
        }
        for name in [StreamName::Stdout, StreamName::Stderr] {
            if name == StreamName::Stderr && self.stderr.is_none() || self.stream(name).ended {
                continue;
            }
            let merged = self.stderr.is_none();
            self.holders.extend(
                self.members
                    .iter()
                    .filter(|member| member.alive && holds(&member.script, name, merged))
                    .map(|member| Holder::new(member.script.member.clone(), name)),
            );
            let cut_off = self.terminal.is_some();
            let stream = self.stream(name);
            if cut_off || stream.is_collected() {
                stream.end(&mut scene.wakers);
            }
        }
        self.done = self.outcome.clone().map(Ok);
    }

    /// Draws the conclusions of whatever has changed.
    pub(super) fn settle(&mut self, scene: &mut Scene) {
        if self.lost.is_some() {
            return;
        }
        let merged = self.stderr.is_none();
        let members = &self.members;
        let target_ended = self.outcome.is_some();
        if target_ended && !members.iter().any(|member| member.alive && member.script.reads) {
            self.input.reader_ended(&mut scene.wakers);
        }
        for (name, stream) in [
            (StreamName::Stdout, Some(&mut self.stdout)),
            (StreamName::Stderr, self.stderr.as_mut()),
        ] {
            let Some(stream) = stream.filter(|stream| !stream.ended) else {
                continue;
            };
            let held = members
                .iter()
                .any(|member| member.alive && holds(&member.script, name, merged));
            if (target_ended || stream.target_closed) && !held {
                stream.end(&mut scene.wakers);
            }
        }
        let Some(outcome) = &self.outcome else { return };
        if self.done.is_none() && self.streams_ended() {
            self.done = Some(Ok(outcome.clone()));
        }
        if !self.gone && !self.members.iter().any(LiveMember::is_within) {
            self.leave(scene);
        }
    }

    fn streams_ended(&self) -> bool {
        [Some(&self.stdout), self.stderr.as_ref()]
            .into_iter()
            .flatten()
            .all(|stream| stream.ended || !stream.is_owned())
    }
}

/// Tells whether a member holds a stream open; merged streams are one.
fn holds(member: &ScriptedMember, stream: StreamName, merged: bool) -> bool {
    member.holds.iter().any(|held| merged || *held == stream)
}
