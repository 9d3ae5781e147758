//! The end of what lives on in the control group of a dead host.

use std::path::Path;
use std::time::Duration;

use dsh_subprocess_sys::Errno;
use dsh_subprocess_sys::cgroup::{Parent, own_directory};
use dsh_subprocess_sys::pidfd::{self, Pid, Signal};

use super::name;
use super::private::Left;

/// Between `SIGTERM` and `SIGKILL`. What the dead runtime's callers had asked for died with it.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// How long the end after `SIGKILL` is waited for.
const KILL_BOUND: Duration = Duration::from_secs(5);
/// Descriptors held at once while members are signalled.
const BATCH: usize = 256;

/// A dead runtime's group that is still there.
pub(super) struct LeftGroup<'a> {
    group: Parent,
    path: &'a Path,
}

impl<'a> LeftGroup<'a> {
    /// Opens the group that a runtime of process `pid` had. `None` where it is gone.
    ///
    /// # Errors
    ///
    /// When the path is not that of such a group, or this process is in it: a sweep from outside will end it.
    pub(super) fn open(path: &'a Path, pid: u32) -> Result<Option<Self>, Left> {
        let not_ours = || Left::NotOurs(path.to_owned(), pid);
        if !path.file_name().is_some_and(|name| name::is_of(pid, name)) {
            return Err(not_ours());
        }
        if own_directory().is_ok_and(|own| own.starts_with(path)) {
            return Err(Left::Inside(path.to_owned()));
        }
        let group = match Parent::open_existing(path) {
            Ok(group) => group,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::INVAL) => return Err(not_ours()),
            Err(errno) => return Err(Left::Refused(path.to_owned(), errno)),
        };
        Ok(Some(Self { group, path }))
    }

    /// Tells whether nothing in it can run any more.
    pub(super) fn is_empty(&self) -> bool {
        self.group.events(".").is_ok_and(|events| !events.populated)
    }

    /// Asks every member to end. A stopped one cannot act on it, so it is told to go on.
    pub(super) fn ask(&self) {
        self.signal(&[Signal::TERM, Signal::CONT]);
    }

    /// Waits until it is empty, for at most `grace`, kills what is left, and removes it with all groups in it.
    ///
    /// # Errors
    ///
    /// When a member survives, or the removal is refused.
    pub(super) fn end(self, grace: Duration) -> Result<(), Left> {
        self.group.wait_until_empty(grace);
        if !self.is_empty() {
            if self.group.kill_all().is_err() {
                // Before Linux 5.14. A frozen member can be killed and cannot fork: what is on the list is all there is.
                let _ = self.group.freeze(".", true);
                self.signal(&[Signal::KILL]);
            }
            self.group.wait_until_empty(KILL_BOUND);
        }
        self.group
            .remove()
            .map_err(|errno| Left::Refused(self.path.to_owned(), errno))
    }

    /// Sends signals, in order, to each member.
    ///
    /// A number on the list may be a stranger's by now. So each is opened first and the group is listed again: a number that is
    /// on the second list, and whose descriptor still takes a signal, was a member's all along.
    fn signal(&self, signals: &[Signal]) {
        for batch in self.members().chunks(BATCH) {
            let opened: Vec<_> = batch
                .iter()
                .filter_map(|&pid| Some((pid, pidfd::open(pid).ok()?)))
                .collect();
            let again = self.members();
            for (_, process) in opened.iter().filter(|(pid, _)| again.contains(pid)) {
                for &signal in signals {
                    // It ended by itself, or refuses: then the kill decides.
                    let _ = pidfd::send(process, signal);
                }
            }
        }
    }

    fn members(&self) -> Vec<Pid> {
        let mut members = Vec::new();
        // Without a list nobody is asked, and the kill needs none.
        let _ = self.group.members(".", &mut members);
        members
    }
}
