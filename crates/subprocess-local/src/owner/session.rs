//! The target's process group and session: what every POSIX system has, and what Linux adds to it.
//!
//! The target leads a new session, so its pid is the id of its session and of its process group. Those numbers stay taken
//! as long as the target is a zombie or a member lives, so they cannot name strangers; the target is therefore reaped last.

use std::sync::Arc;
use std::time::Instant;

use dsh_subprocess::Member;
use dsh_subprocess_sys::foreground::TerminalId;
use dsh_subprocess_sys::pidfd::{self, Pid, Signal};
use dsh_subprocess_sys::table::{self, Entry, Session};

use super::{Look, Reserve, member, send};

/// Processes outside the session that are looked at for having left it.
const STRANGERS: usize = 256;

/// What a session does not guarantee.
pub(super) fn weaknesses(has_session: bool) -> Vec<String> {
    let mut weaknesses = vec![
        "a process that makes a session of its own (setsid, a daemon) leaves the tree and is not ended"
            .into(),
        "a process that runs as another user may refuse the signals".into(),
        "if this host is killed, its trees run on".into(),
    ];
    if !has_session {
        weaknesses.insert(
            0,
            "the target could not be given a session of its own, so signals reach the target alone".into(),
        );
    }
    if !table::is_ours() {
        weaknesses.push(
            "the process table is not readable, so only the target's own group is seen for sure".into(),
        );
    }
    weaknesses
}

/// A tree owned by its session.
#[derive(Debug)]
pub(crate) struct SessionOwner {
    leader: Pid,
    /// `None` where the target is in the host's own session: then its numbers are not to be used for anything.
    session: Option<Session>,
    /// Whether the leader, living or zombie, keeps the numbers taken. Not after somebody else reaped it.
    pinned: bool,
    /// Descendants that had a session of their own when the tree was terminated.
    escaped: Vec<Escaped>,
    /// Shared by all trees of the runtime.
    reserve: Arc<Reserve>,
}

/// A process that left the session. The start time tells it from a later one with its number.
#[derive(Clone, Copy, Debug)]
struct Escaped {
    pid: Pid,
    start_time: u64,
}

impl SessionOwner {
    pub(crate) fn new(leader: Pid, has_session: bool, born: Instant, reserve: Arc<Reserve>) -> Self {
        // Numbers that mean "everybody" or "init" are no group to signal, however they came about.
        let usable = has_session && leader != Pid::INIT;
        Self {
            leader,
            session: usable.then(|| Session::new(leader, born)),
            pinned: true,
            escaped: Vec::new(),
            reserve,
        }
    }

    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Somebody else reaped the target.
    pub(crate) fn unpin(&mut self) {
        self.pinned = false;
    }

    /// The session, as long as its number is sure to be its own.
    fn visible(&self) -> Option<Session> {
        // With the target's number free, a process that has it is a stranger who may lead a session of the same number.
        let taken_by_a_stranger = !self.pinned && table::session_of(self.leader).is_some();
        self.session.filter(|_| !taken_by_a_stranger)
    }

    /// Calls `visit` with each member but the target.
    fn members(&self, mut visit: impl FnMut(Pid)) {
        if let Some(session) = self.visible() {
            session.visit(|pid, inside| {
                if inside {
                    visit(pid);
                }
            });
        }
    }

    pub(super) fn look(&self) -> Look {
        let mut look = Look::default();
        self.members(|pid| look.take(pid, &self.reserve, || self.is_member(pid)));
        look
    }

    fn is_member(&self, pid: Pid) -> bool {
        table::session_of(pid) == Some(self.leader)
    }

    /// Tells whether a process that was a member, and is held, has a session of its own now; if so, notes it as a survivor.
    pub(super) fn has_left(&mut self, pid: Pid) -> bool {
        let Some(entry) = table::entry(pid) else {
            return false;
        };
        if entry.session == self.leader.as_raw_nonzero().get() || entry.is_dead() {
            return false;
        }
        self.escaped.push(Escaped {
            pid,
            start_time: entry.start_time,
        });
        true
    }

    pub(super) fn pids(&self) -> Vec<Pid> {
        let mut pids = Vec::new();
        if self.pinned && table::entry(self.leader).is_none_or(|entry| !entry.is_dead()) {
            pids.push(self.leader);
        }
        self.members(|pid| pids.push(pid));
        pids
    }

    /// Lists the members, as [`pids`](Self::pids) does, by the lists of children that the kernel keeps: in a time that does not
    /// depend on how many processes the machine has. A member is missed whose parent left the session and has ended.
    pub(super) fn pids_by_descent(&self) -> Vec<Pid> {
        let found = if self.pinned && self.session.is_some() {
            self.reserve
                .surely(|| table::session_by_descent(self.leader))
                .unwrap_or_default()
        } else {
            None
        };
        found.unwrap_or_else(|| self.pids())
    }

    /// Sends `SIGTERM`, then `SIGCONT`, to every member, and notes who had left the tree before.
    pub(super) fn ask(&mut self) {
        let (inside, strangers) = self.survey();
        // Before the signals: a dead parent can be asked for nothing.
        self.note_escaped(&inside, strangers);
        self.signal(&[Signal::TERM, Signal::CONT], &inside);
    }

    /// Sends `SIGTERM`, then `SIGCONT`, to every member but the leader, and notes who had left the tree before.
    pub(super) fn ask_others(&mut self) {
        let (inside, strangers) = self.survey();
        self.note_escaped(&inside, strangers);
        self.signal_each(&[Signal::TERM, Signal::CONT], &inside);
    }

    /// Sends `SIGKILL` to every member.
    pub(super) fn kill(&self) {
        let (inside, _) = self.survey();
        self.signal(&[Signal::KILL], &inside);
    }

    /// Sends a signal to every member.
    pub(super) fn signal_members(&self, signal: Signal) {
        let (inside, _) = self.survey();
        self.signal(&[signal], &inside);
    }

    /// Lists the members but the target, and other processes that are younger than it.
    fn survey(&self) -> (Vec<Pid>, Vec<Pid>) {
        let (mut inside, mut strangers) = (Vec::new(), Vec::new());
        if let Some(session) = self.visible() {
            session.visit(|pid, member| {
                if member {
                    inside.push(pid);
                } else if strangers.len() < STRANGERS {
                    strangers.push(pid);
                }
            });
        }
        (inside, strangers)
    }

    fn signal(&self, signals: &[Signal], inside: &[Pid]) {
        let group_signalled = self.session.is_some()
            && self.pinned
            // One call reaches the whole group, also members that are being born.
            && signals.iter().all(|&signal| table::signal_group(self.leader, signal).is_ok());
        if !group_signalled && self.pinned {
            for &signal in signals {
                // A zombie takes no harm.
                let _ = pidfd::send_by_number(self.leader, signal);
            }
        }
        let mut others = inside.to_vec();
        others.retain(|pid| !group_signalled || table::group_of(*pid) != Some(self.leader));
        self.signal_each(signals, &others);
    }

    fn signal_each(&self, signals: &[Signal], inside: &[Pid]) {
        for &pid in inside {
            // Opened before its session is asked again: a number that changed hands is not signalled.
            let process = pidfd::open(pid);
            if self.is_member(pid) {
                send(pid, &process, signals);
            }
        }
    }

    /// Notes which descendants have left the session, while their parents can still be asked.
    fn note_escaped(&mut self, inside: &[Pid], strangers: Vec<Pid>) {
        let mut parents: Vec<Pid> = inside.iter().copied().chain([self.leader]).collect();
        let mut outside: Vec<(Pid, Entry)> = strangers
            .into_iter()
            .filter_map(|pid| Some((pid, table::entry(pid)?)))
            .collect();
        // Children of members first, then their children, until nobody new is found.
        loop {
            let (found, rest): (Vec<_>, Vec<_>) = outside.into_iter().partition(|(_, entry)| {
                Pid::from_raw(entry.parent).is_some_and(|parent| parents.contains(&parent))
            });
            if found.is_empty() {
                return;
            }
            for (pid, entry) in found {
                parents.push(pid);
                self.escaped.push(Escaped {
                    pid,
                    start_time: entry.start_time,
                });
            }
            outside = rest;
        }
    }

    /// What it takes to name the processes that left the tree.
    pub(crate) fn trace(&self, evidence: Evidence) -> Option<Trace> {
        Some(Trace {
            session: self.session?,
            until: table::now(),
            escaped: self.escaped.clone(),
            evidence,
        })
    }
}

/// What points to a tree after its members left its session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The inodes of the tree's pipes.
    pub(crate) pipes: Vec<u64>,
    /// The terminal that the target is on. Its number is another one's once nobody has it open, which is after the tree's end.
    pub(crate) terminal: Option<TerminalId>,
    /// Variables that the caller set for this tree, as `NAME=value`.
    pub(crate) variables: Vec<Vec<u8>>,
}

/// A look for processes that left a tree. It reads the process table and may take long.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    session: Session,
    /// When the tree was gone, or looked at: the terminal of whoever was born later may be another one.
    until: u64,
    escaped: Vec<Escaped>,
    evidence: Evidence,
}

impl Trace {
    /// Names those that can still run. A descendant that was seen leaving is certain; an orphan with a session of its own
    /// that is younger than the target, and holds one of its pipes or its terminal or has all of its own variables, is likely.
    pub(crate) fn survivors(&self) -> Vec<Member> {
        let mut survivors: Vec<Member> = Vec::new();
        for escaped in &self.escaped {
            let alive = table::entry(escaped.pid)
                .is_some_and(|entry| !entry.is_dead() && entry.start_time == escaped.start_time);
            survivors.extend(alive.then(|| member(escaped.pid)).flatten());
        }
        self.session.visit(|pid, inside| {
            let number = pid.as_raw_nonzero().get().unsigned_abs();
            if inside || survivors.iter().any(|known| known.pid == Some(number)) {
                return;
            }
            let entry = table::entry(pid).filter(|entry| !entry.is_dead());
            if entry.is_some_and(|entry| self.points_here(pid, entry)) {
                survivors.extend(member(pid).map(Member::possibly));
            }
        });
        survivors
    }

    fn points_here(&self, pid: Pid, entry: Entry) -> bool {
        self.evidence
            .pipes
            .iter()
            .any(|&pipe| table::holds_pipe(pid, pipe))
            || self
                .evidence
                .terminal
                .filter(|_| entry.start_time <= self.until)
                .is_some_and(|terminal| terminal.is_held_by(pid))
            || (!self.evidence.variables.is_empty()
                && table::environment(pid).is_some_and(|environment| {
                    let has =
                        |wanted: &Vec<u8>| environment.split(|&byte| byte == 0).any(|entry| entry == *wanted);
                    self.evidence.variables.iter().all(has)
                }))
    }
}
