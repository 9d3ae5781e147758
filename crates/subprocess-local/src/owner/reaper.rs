//! A tree warden: the target's parent, and the parent of every orphan of the tree.
//!
//! It is the nearest subreaper above all members (prctl(2), `PR_SET_CHILD_SUBREAPER`), so a process whose parent ends becomes
//! its child, whatever session, group or daemon it has made of itself. When it has no child left the tree is gone, and it
//! says so: nobody looks.

use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::pidfd::{Pid, Signal};
use dsh_subprocess_sys::table;
use dsh_subprocess_sys::warden::protocol::ToTree;

use super::Reserve;
use crate::warden::{Heard, TreeWarden};

/// What a reaper does not guarantee.
pub(super) fn weaknesses() -> Vec<String> {
    let mut weaknesses = vec![
        "a member that runs as another user (a setuid program) may refuse the signals: it is named".into(),
        "work that a member hands to a daemon (docker, systemd-run, at) is the daemon's, not the tree's".into(),
        "children start with the credentials, namespaces and scheduling that this host had when the runtime was made; only \
         the file-creation mask and the resource limits follow it"
            .into(),
        super::KILLED_TOGETHER.into(),
        "if a tree's warden is killed, and the runtime's too before it has ended what that one left, members run on".into(),
    ];
    if !table::is_ours() {
        weaknesses.push(
            "the process table is not readable, so a member is reached only once its parent has ended".into(),
        );
    }
    weaknesses
}

/// A tree owned by its warden.
#[derive(Debug)]
pub(crate) struct ReaperOwner {
    warden: TreeWarden,
    /// Shared by all trees of the runtime.
    reserve: Arc<Reserve>,
    /// Names the warden's socket to the reactor.
    pub(crate) token: u64,
    /// Whether the target has a session of its own.
    has_session: bool,
    /// What the tree used, once it is gone.
    pub(crate) used: Option<(Duration, Duration)>,
}

impl ReaperOwner {
    pub(crate) fn new(warden: TreeWarden, reserve: Arc<Reserve>, token: u64, has_session: bool) -> Self {
        Self {
            warden,
            reserve,
            token,
            has_session,
            used: None,
        }
    }

    /// Returns what the warden says next.
    pub(crate) fn hear(&mut self) -> Option<Heard> {
        self.warden.hear()
    }

    pub(crate) fn warden(&self) -> &TreeWarden {
        &self.warden
    }

    pub(crate) fn into_warden(self) -> TreeWarden {
        self.warden
    }

    pub(super) fn has_session(&self) -> bool {
        self.has_session
    }

    pub(super) fn ask(&self) -> Result<(), Errno> {
        sent(self.warden.say(&ToTree::Ask))
    }

    pub(super) fn ask_others(&self) -> Result<(), Errno> {
        sent(self.warden.say(&ToTree::AskOthers))
    }

    pub(super) fn kill(&self) -> Result<(), Errno> {
        sent(self.warden.say(&ToTree::Kill))
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let number = signal.as_raw().unsigned_abs();
        sent(self.warden.say(&ToTree::Signal { number }))
    }

    pub(super) fn pids(&self) -> Vec<Pid> {
        let Some(pid) = self.warden.pid() else {
            return Vec::new();
        };
        // Out of descriptors: no member can be named.
        self.reserve
            .surely(|| table::descendants(pid))
            .unwrap_or_default()
    }
}

/// A warden that has ended cannot be told anything, and is heard to have ended.
fn sent(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
        result => result,
    }
}
