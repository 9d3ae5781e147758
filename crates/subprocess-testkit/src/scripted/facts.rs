//! What can be asked of a scripted tree.

use bytes::Bytes;
use dsh_subprocess::{Error, ErrorKind, MayHaveStarted, Member, Outcome};

use super::tree::{Ladder, Tree};

impl Tree {
    /// Returns the target's id, where it has one and it is known by now.
    pub(super) fn pid(&self) -> Option<u32> {
        match self.started {
            Some(Ok(started)) => started.pid,
            _ => None,
        }
    }

    /// How the target ended, whether or not its streams have.
    pub(super) fn exited(&self) -> Option<Result<Outcome, Error>> {
        self.outcome.clone().map(Ok).or_else(|| self.done.clone())
    }

    pub(super) fn command(&self) -> String {
        self.spec
            .argv
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Lists who lives; the target first, where it has an id.
    pub(super) fn live_members(&self) -> Vec<Member> {
        let target = self
            .pid()
            .filter(|_| self.is_running())
            .map(|pid| Member::new(pid, self.command()));
        let members = self
            .members
            .iter()
            .filter(|member| member.is_within())
            .map(|member| member.script.member.clone());
        target.into_iter().chain(members).collect()
    }

    /// Lists who is likely to run on: all that is left once `SIGKILL` did not help, and whoever escaped.
    pub(super) fn survivors(&self) -> Vec<Member> {
        let stuck = if self.ladder == Ladder::Exhausted {
            self.live_members()
        } else {
            Vec::new()
        };
        let escaped = self
            .members
            .iter()
            .filter(|member| member.alive && member.script.escaped);
        stuck
            .into_iter()
            .chain(escaped.map(|member| member.script.member.clone()))
            .collect()
    }

    /// Lists who outlived the target and was signalled.
    pub(super) fn ended_members(&self) -> Vec<Member> {
        self.members
            .iter()
            .filter(|member| member.signalled && member.outlived)
            .map(|member| member.script.member.clone())
            .collect()
    }

    /// Tells why nothing can be asked of the tree, for good or for now.
    pub(super) fn unreachable(&self) -> Option<Error> {
        self.lost.as_ref().or(self.disconnected.as_ref()).cloned()
    }

    /// Tells whether the tree is gone, or why that cannot be told. `None` while it is only a matter of time.
    pub(super) fn exit(&self) -> Option<Result<(), Error>> {
        if let Some(error) = self.unreachable() {
            return Some(Err(error));
        }
        if self.gone {
            return Some(Ok(()));
        }
        (self.ladder == Ladder::Exhausted).then(|| {
            let survivors = self.live_members();
            let mut names: Vec<_> = survivors.iter().map(ToString::to_string).collect();
            if self.is_running() && self.pid().is_none() {
                names.insert(0, format!("the target ({})", self.command()));
            }
            let text = format!("these outlived SIGKILL: {}", names.join(", "));
            Err(Error::new(ErrorKind::Survivors, "terminate", text)
                .with_started(MayHaveStarted::Yes)
                .with_survivors(survivors))
        })
    }

    /// Returns what the target read so far.
    pub(super) fn received(&self) -> Bytes {
        Bytes::copy_from_slice(self.input.received())
    }
}
