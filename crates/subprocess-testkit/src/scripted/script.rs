//! What a scripted program does, told beforehand.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use dsh_subprocess::{Error, Member, Outcome, SignalName, StreamName, TerminalSignal, Usage};

use super::terminal::ScriptedForeground;

/// The whole behaviour of one scripted program, step by step.
///
/// Steps happen in the order they were added, in virtual time. What stands before [`starts`](Self::starts) is the
/// world's preparation; a script that says neither `starts` nor [`fails`](Self::fails) starts at once. A script that says
/// no end goes on until the tree is terminated. Steps after the end are done by whoever is left of the tree. A script that
/// lets its target do something before it starts is a mistake of the test, and panics when it is first run.
///
/// ```
/// use std::time::Duration;
/// use dsh_subprocess_testkit::scripted::Script;
///
/// let build = Script::new()
///     .waits(Duration::from_millis(40)) // the world takes its time to start it
///     .starts()
///     .stdout("compiling\n")
///     .wait_for("the linker") // until the test opens that gate
///     .stderr("warning: unused\n")
///     .exits(0xC000_0005);
/// assert!(format!("{build:?}").contains("the linker"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) steps: VecDeque<Step>,
    pub(super) on_term: Reaction,
    pub(super) on_kill: Reaction,
    pub(super) on_signal: Vec<(TerminalSignal, Reaction)>,
}

/// What a target or a member does about a signal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Reaction {
    /// It ends at once, by that signal.
    #[default]
    Dies,
    /// It ends after a span of virtual time, in a way of its own. The outcome of a mere member is seen by nobody.
    Ends {
        /// How long after the signal.
        after: Duration,
        /// How it ends.
        outcome: Outcome,
    },
    /// It goes on.
    Ignores,
}

/// One more process of a scripted tree, beside the target.
///
/// ```
/// use dsh_subprocess::StreamName;
/// use dsh_subprocess_testkit::scripted::ScriptedMember;
/// let helper = ScriptedMember::new(77, "helper --watch").holding(StreamName::Stdout).ignoring_term();
/// assert_eq!(helper.member().pid, Some(77));
/// ```
#[derive(Clone, Debug)]
pub struct ScriptedMember {
    pub(super) member: Member,
    pub(super) holds: Vec<StreamName>,
    pub(super) on_term: Reaction,
    pub(super) on_kill: Reaction,
    /// Whether it shares the target's standard input.
    pub(super) reads: bool,
    /// Whether it left the range of the mechanism that owns the tree.
    pub(super) escaped: bool,
}

/// One step of a script.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Nothing happens for so long. The second field is the end of the span, once the step was reached.
    Wait(Duration, Option<Duration>),
    Gate(String),
    Terminated,
    Start(Option<u32>),
    Fail(Error),
    Write(StreamName, Bytes),
    /// Bytes of the stream that stay in the world.
    Keep(StreamName, Bytes),
    Close(StreamName),
    PrintEnvironment,
    Read(u64),
    ReadLine,
    ReadToEnd,
    Expect(Bytes),
    Echo,
    Bear(ScriptedMember),
    MemberEnds(u32),
    End(Outcome),
    Use(Usage),
    LoseOwnership(String),
    Disconnect(String),
    Reconnect,
    CollectLines(bool),
    PrintSize,
    Signal(TerminalSignal),
    HandTerminal(ScriptedForeground),
}

impl Script {
    /// Makes a script without any step: it starts at once and runs until it is terminated.
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    /// Lets virtual time pass.
    #[must_use]
    pub fn waits(self, span: Duration) -> Self {
        self.then(Step::Wait(span, None))
    }

    /// Waits until the test [opens](super::ScriptedWorld::open) a gate.
    #[must_use]
    pub fn wait_for(self, gate: impl Into<String>) -> Self {
        self.then(Step::Gate(gate.into()))
    }

    /// Waits until the tree is asked to terminate. Useful with a target that [ignores](Reaction::Ignores) the signal, to
    /// say what it does about it.
    #[must_use]
    pub fn until_terminated(self) -> Self {
        self.then(Step::Terminated)
    }

    /// Starts the target, in a world that has no process ids.
    #[must_use]
    pub fn starts(self) -> Self {
        self.then(Step::Start(None))
    }

    /// Starts the target under an id of the world's own, known from then on.
    #[must_use]
    pub fn starts_as(self, pid: u32) -> Self {
        self.then(Step::Start(Some(pid)))
    }

    /// Never starts the target: `started` and `done` give this error, and the tree is gone. Later steps are not reached.
    #[must_use]
    pub fn fails(self, error: Error) -> Self {
        self.then(Step::Fail(error))
    }

    /// Writes to standard output. On a raw pipe that is full it waits for the reader; on one that nobody will ever read
    /// it ends the target by `SIGPIPE`.
    #[must_use]
    pub fn stdout(self, bytes: impl Into<Bytes>) -> Self {
        self.then(Step::Write(StreamName::Stdout, bytes.into()))
    }

    /// Writes to standard error, as [`stdout`](Self::stdout).
    #[must_use]
    pub fn stderr(self, bytes: impl Into<Bytes>) -> Self {
        self.then(Step::Write(StreamName::Stderr, bytes.into()))
    }

    /// Writes to standard output bytes that the world keeps on its side: the caller's window skips them, the spill has
    /// them. On a stream that is not collected they are written as any others.
    #[must_use]
    pub fn stdout_unsent(self, bytes: impl Into<Bytes>) -> Self {
        self.then(Step::Keep(StreamName::Stdout, bytes.into()))
    }

    /// Writes to standard error bytes that the world keeps on its side, as [`stdout_unsent`](Self::stdout_unsent).
    #[must_use]
    pub fn stderr_unsent(self, bytes: impl Into<Bytes>) -> Self {
        self.then(Step::Keep(StreamName::Stderr, bytes.into()))
    }

    /// Closes the target's own end of a stream. Without it, the target's end closes with the target.
    #[must_use]
    pub fn closes(self, stream: StreamName) -> Self {
        self.then(Step::Close(stream))
    }

    /// Writes the environment the world gave it to standard output: each variable as `NAME=value` with a NUL after it.
    #[must_use]
    pub fn prints_environment(self) -> Self {
        self.then(Step::PrintEnvironment)
    }

    /// Reads so many bytes of standard input, or to its end where that comes first.
    #[must_use]
    pub fn reads(self, count: u64) -> Self {
        self.then(Step::Read(count))
    }

    /// Reads standard input to its end.
    #[must_use]
    pub fn reads_to_end(self) -> Self {
        self.then(Step::ReadToEnd)
    }

    /// Reads exactly these bytes. Anything else is a [violation](super::ScriptedWorld::violations), and the script goes
    /// on.
    #[must_use]
    pub fn expects(self, bytes: impl Into<Bytes>) -> Self {
        self.then(Step::Expect(bytes.into()))
    }

    /// Copies standard input to standard output, to its end.
    #[must_use]
    pub fn echoes(self) -> Self {
        self.then(Step::Echo)
    }

    /// Adds a process to the tree.
    #[must_use]
    pub fn bears(self, member: ScriptedMember) -> Self {
        self.then(Step::Bear(member))
    }

    /// Ends a member that [joined](Self::bears) before.
    #[must_use]
    pub fn member_ends(self, pid: u32) -> Self {
        self.then(Step::MemberEnds(pid))
    }

    /// Ends the target with an exit code.
    #[must_use]
    pub fn exits(self, code: u32) -> Self {
        self.ends(Outcome::Exited { code })
    }

    /// Ends the target by a signal of any name, known on this machine or not.
    #[must_use]
    pub fn dies_of(self, signal: impl Into<SignalName>) -> Self {
        self.ends(Outcome::Signaled {
            signal: signal.into(),
            core_dumped: false,
        })
    }

    /// Ends the target.
    #[must_use]
    pub fn ends(self, outcome: Outcome) -> Self {
        self.then(Step::End(outcome))
    }

    /// Says what the world measured so far. Without it, it measured nothing.
    #[must_use]
    pub fn uses(self, usage: Usage) -> Self {
        self.then(Step::Use(usage))
    }

    /// Loses the owner of the tree for good: a pending `done` and every wait fail with
    /// [`OwnershipLost`](dsh_subprocess::ErrorKind::OwnershipLost), and no later step is reached.
    #[must_use]
    pub fn loses_ownership(self, why: impl Into<String>) -> Self {
        self.then(Step::LoseOwnership(why.into()))
    }

    /// Loses the connection to the world: waits and questions fail with
    /// [`Transport`](dsh_subprocess::ErrorKind::Transport) until it [reconnects](Self::reconnects). The tree goes on.
    #[must_use]
    pub fn disconnects(self, why: impl Into<String>) -> Self {
        self.then(Step::Disconnect(why.into()))
    }

    /// Has the connection back.
    #[must_use]
    pub fn reconnects(self) -> Self {
        self.then(Step::Reconnect)
    }

    /// Says what the target does about `SIGTERM`. Without it, it [dies](Reaction::Dies).
    #[must_use]
    pub fn on_term(mut self, reaction: Reaction) -> Self {
        self.on_term = reaction;
        self
    }

    /// Says what the target does about `SIGKILL`. Without it, it [dies](Reaction::Dies); a target that ignores it is
    /// one stuck in its kernel.
    #[must_use]
    pub fn on_kill(mut self, reaction: Reaction) -> Self {
        self.on_kill = reaction;
        self
    }

    /// Adds the implied start.
    ///
    /// # Panics
    ///
    /// If the target would do something before it starts, or something with a terminal that it does not have: the test is
    /// wrong.
    pub(super) fn complete(mut self, on_terminal: bool) -> Self {
        let misplaced = self
            .steps
            .iter()
            .find(|step| !on_terminal && step.needs_terminal());
        assert!(
            misplaced.is_none(),
            "a script does this without a terminal: {misplaced:?}"
        );
        match self
            .steps
            .iter()
            .position(|step| matches!(step, Step::Start(_) | Step::Fail(_)))
        {
            None => self.steps.push_front(Step::Start(None)),
            Some(start) => {
                let early = self.steps.iter().take(start).find(|step| !step.is_preparation());
                assert!(
                    early.is_none(),
                    "a script does this before its target starts: {early:?}"
                );
            }
        }
        self
    }
}

impl ScriptedMember {
    /// Describes a process that holds no stream and dies of any signal.
    pub fn new(pid: u32, command: impl Into<String>) -> Self {
        Self {
            member: Member::new(pid, command),
            holds: Vec::new(),
            on_term: Reaction::Dies,
            on_kill: Reaction::Dies,
            reads: false,
            escaped: false,
        }
    }

    /// Lets it hold a stream of the target open.
    #[must_use]
    pub fn holding(mut self, stream: StreamName) -> Self {
        self.holds.push(stream);
        self
    }

    /// Lets it share the target's standard input, so that the script can go on reading when the target has ended.
    #[must_use]
    pub fn reading(mut self) -> Self {
        self.reads = true;
        self
    }

    /// Lets it ignore `SIGTERM`.
    #[must_use]
    pub fn ignoring_term(mut self) -> Self {
        self.on_term = Reaction::Ignores;
        self
    }

    /// Lets it outlive `SIGKILL`, too.
    #[must_use]
    pub fn unkillable(mut self) -> Self {
        self.on_kill = Reaction::Ignores;
        self.ignoring_term()
    }

    /// Lets it leave the range of the mechanism that owns the tree: no signal reaches it, the tree counts as gone without it,
    /// and only evidence says that it belongs to the tree. It lives until the script [ends](Script::member_ends) it.
    #[must_use]
    pub fn escaping(mut self) -> Self {
        self.escaped = true;
        self.member = self.member.possibly();
        self
    }

    /// Lets it end so long after `SIGTERM`.
    #[must_use]
    pub fn cleaning_up_for(mut self, span: Duration) -> Self {
        self.on_term = Reaction::Ends {
            after: span,
            outcome: Outcome::Exited { code: 0 },
        };
        self
    }

    /// Returns how the world will name it.
    pub fn member(&self) -> &Member {
        &self.member
    }
}

impl Step {
    fn needs_terminal(&self) -> bool {
        matches!(
            self,
            Self::ReadLine
                | Self::CollectLines(_)
                | Self::PrintSize
                | Self::Signal(_)
                | Self::HandTerminal(_)
        )
    }

    /// Tells whether a world can do it without the target.
    fn is_preparation(&self) -> bool {
        matches!(
            self,
            Self::Wait(..)
                | Self::Gate(_)
                | Self::Terminated
                | Self::LoseOwnership(_)
                | Self::Disconnect(_)
                | Self::Reconnect
        )
    }
}
