//! Who owns a tree: the mechanism that can see its members and signal them.

mod leaves;
mod reaper;
mod reserve;
mod session;

use std::os::fd::OwnedFd;

use dsh_subprocess::{Mechanism, Member, Ownership};
use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::pidfd::{self, Pid, Signal};
use dsh_subprocess_sys::table;

pub(crate) use leaves::{Entrance, Leaf, Leaves};
pub(crate) use reaper::ReaperOwner;
pub(crate) use reserve::Reserve;
pub(crate) use session::{Evidence, SessionOwner, Trace};

/// What the owners that outlive the host do not guarantee.
pub(super) const KILLED_TOGETHER: &str =
    "if this host and all its wardens are killed at once (kill -9 -1 by the same user), its trees run on";

/// Members whose end is watched at once. More are looked at when these have ended.
pub(crate) const WATCHED: usize = 64;

/// The owner of one tree. One owner serves both signalling and looking.
#[derive(Debug)]
pub(crate) enum Owner {
    /// Before the target was cloned, and for a spawn that failed.
    Nobody,
    /// A control group.
    Cgroup(Leaf),
    /// A tree warden.
    Reaper(ReaperOwner),
    /// The target's session.
    Session(SessionOwner),
}

/// What a look at the members found.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Members that can run, at most [`WATCHED`] of them, each held by a descriptor.
    pub(crate) held: Vec<(Pid, OwnedFd)>,
    /// Whether members may be left that are not held.
    pub(crate) more: bool,
    /// Whether nothing could be seen, for want of descriptors.
    pub(crate) blind: bool,
}

impl Look {
    /// One that saw nothing.
    fn blind() -> Self {
        Self {
            held: Vec::new(),
            more: true,
            blind: true,
        }
    }

    /// Takes a process in, if it runs. `member` confirms it once it is held, and its number cannot change hands any more.
    fn take(&mut self, pid: Pid, reserve: &Reserve, member: impl FnOnce() -> bool) {
        if self.held.len() == WATCHED {
            self.more = true;
            return;
        }
        match hold(pid, reserve) {
            Held::Running(process) if member() => self.held.push((pid, process)),
            Held::Running(_) | Held::Gone => {}
            Held::Unwatchable => {
                // Some are given back: signals and further looks need descriptors too.
                self.held.truncate(self.held.len() / 2);
                self.more = true;
            }
        }
    }

    /// Whether no member is left that can run.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && !self.more
    }
}

impl Owner {
    /// Looks at the members that can run, the target left out.
    pub(crate) fn look(&self) -> Look {
        match self {
            // Never asked: see `tells_its_end`.
            Self::Nobody | Self::Reaper(_) => Look::default(),
            Self::Cgroup(leaf) => leaf.look(),
            Self::Session(session) => session.look(),
        }
    }

    /// Sends `SIGTERM` once to every member but `signalled`, the target where it has got it, and `SIGCONT` after it.
    ///
    /// # Errors
    ///
    /// When the members could not be listed.
    pub(crate) fn ask(&mut self, signalled: Option<Pid>) -> Result<(), Errno> {
        match self {
            Self::Nobody => Ok(()),
            Self::Cgroup(leaf) => leaf.ask(signalled),
            Self::Reaper(reaper) => reaper.ask(),
            Self::Session(session) => {
                match signalled {
                    Some(_) => session.ask_others(),
                    None => session.ask(),
                }
                Ok(())
            }
        }
    }

    /// Sends `SIGTERM` once to every member but the target, and `SIGCONT` after it. Should this process end now, nobody is asked
    /// twice.
    ///
    /// # Errors
    ///
    /// When the members could not be listed.
    pub(crate) fn ask_others(&mut self, target: Pid) -> Result<(), Errno> {
        match self {
            Self::Nobody => Ok(()),
            Self::Cgroup(leaf) => leaf.ask_others(target),
            Self::Reaper(reaper) => reaper.ask_others(),
            Self::Session(session) => {
                session.ask_others();
                Ok(())
            }
        }
    }

    /// Sends a signal once to every member.
    ///
    /// # Errors
    ///
    /// When the members could not be listed.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        match self {
            Self::Nobody => Ok(()),
            Self::Cgroup(leaf) => leaf.signal(signal),
            Self::Reaper(reaper) => reaper.signal(signal),
            Self::Session(session) => {
                session.signal_members(signal);
                Ok(())
            }
        }
    }

    /// Sends `SIGKILL` to every member.
    ///
    /// # Errors
    ///
    /// When the members could not be listed.
    pub(crate) fn kill(&mut self) -> Result<(), Errno> {
        match self {
            Self::Nobody => Ok(()),
            Self::Cgroup(leaf) => leaf.kill(),
            Self::Reaper(reaper) => reaper.kill(),
            Self::Session(session) => {
                session.kill();
                Ok(())
            }
        }
    }

    /// Returns the tokens of watched processes that are members no more.
    pub(crate) fn left(&mut self, watched: impl Iterator<Item = (u64, Pid)>) -> Vec<u64> {
        match self {
            // What leaves a group does so by privilege, and nothing is known of it any more; the group's own word counts.
            Self::Nobody | Self::Cgroup(_) | Self::Reaper(_) => Vec::new(),
            Self::Session(session) => watched
                .filter(|(_, pid)| session.has_left(*pid))
                .map(|(token, _)| token)
                .collect(),
        }
    }

    /// Lists the pids of members, the target included while it can run.
    pub(crate) fn pids(&self) -> Vec<Pid> {
        match self {
            Self::Nobody => Vec::new(),
            Self::Cgroup(leaf) => leaf.pids(),
            Self::Reaper(reaper) => reaper.pids(),
            Self::Session(session) => session.pids(),
        }
    }

    /// As [`pids`](Self::pids), at a price that does not depend on how many other processes there are.
    pub(crate) fn pids_by_descent(&self) -> Vec<Pid> {
        match self {
            Self::Session(session) => session.pids_by_descent(),
            Self::Nobody | Self::Cgroup(_) | Self::Reaper(_) => self.pids(),
        }
    }

    /// Whether the owner says by itself when the target has ended and when the tree is gone, so that nobody looks.
    pub(crate) fn tells_its_end(&self) -> bool {
        matches!(self, Self::Reaper(_))
    }

    /// Whether the target must stay a zombie until the tree is gone, so that its number names nobody else.
    pub(crate) fn pins_leader(&self) -> bool {
        matches!(self, Self::Session(_))
    }

    /// Whether the target leads a session of its own, as far as that matters to the owner.
    pub(crate) fn has_session(&self) -> bool {
        match self {
            Self::Session(session) => session.has_session(),
            Self::Reaper(reaper) => reaper.has_session(),
            Self::Nobody | Self::Cgroup(_) => true,
        }
    }
}

/// States a mechanism and its weaknesses.
pub(crate) fn ownership(mechanism: &Mechanism, has_session: bool, has_warden: bool) -> Ownership {
    let weaknesses = match mechanism {
        Mechanism::Cgroup => leaves::weaknesses(has_warden),
        Mechanism::Reaper => reaper::weaknesses(),
        _ => session::weaknesses(has_session),
    };
    Ownership::new(mechanism.clone(), weaknesses)
}

/// A pid as the seam has it.
pub(crate) fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Names a process for a person.
pub(crate) fn member(pid: Pid) -> Option<Member> {
    let command = table::command(pid)?;
    Some(Member::new(number(pid), command))
}

/// Names a process that can still run.
pub(crate) fn live_member(pid: Pid) -> Option<Member> {
    match table::entry(pid) {
        Some(entry) if entry.is_dead() => None,
        Some(_) => member(pid),
        // Out of descriptors to look with, which does not make it dead.
        None => table::session_of(pid).map(|_| Member::new(number(pid), "[?]")),
    }
}

/// Names a process that can still run by what the kernel itself knows of it.
pub(crate) fn briefly(pid: Pid) -> Option<Member> {
    let dead = table::entry(pid).is_some_and(|entry| entry.is_dead()) || table::session_of(pid).is_none();
    (!dead).then(|| {
        Member::new(
            number(pid),
            table::short_name(pid).unwrap_or_else(|| "[?]".to_owned()),
        )
    })
}

/// Opens a process to watch it. A zombie has nothing left to watch.
fn hold(pid: Pid, reserve: &Reserve) -> Held {
    match pidfd::open(pid) {
        Ok(process) if pidfd::is_running(&process) => Held::Running(process),
        // ESRCH, or the number is now a thread's: it is gone.
        Ok(_) | Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Held::Gone,
        // No descriptor to keep. One for a moment tells whether it is a zombie, which may stay one for long.
        Err(_) => match reserve.surely(|| pidfd::open(pid).map(|process| pidfd::is_running(&process))) {
            Ok(false) | Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Held::Gone,
            Ok(true) | Err(_) => Held::Unwatchable,
        },
    }
}

/// Sends signals to a process, by its descriptor where there is one.
fn send(pid: Pid, process: &Result<OwnedFd, Errno>, signals: &[Signal]) {
    for &signal in signals {
        // Already gone (ESRCH), or a member that may not be signalled (EPERM): the ladder goes on and names whoever survives
        // it.
        let _ = match process {
            Ok(process) => pidfd::send(process, signal),
            Err(Errno::SRCH) => Ok(()),
            Err(_) => pidfd::send_by_number(pid, signal),
        };
    }
}

enum Held {
    Running(OwnedFd),
    Gone,
    Unwatchable,
}
