//! The process whose end is the tree's end: this process's parent, or one that was named.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::failure::Failure;

/// A process, held by its descriptor, which becomes readable when it ends (`pidfd_open(2)`).
pub(super) struct Guardian(OwnedFd);

impl AsFd for Guardian {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Guardian {
    /// Finds the one that was named, or the parent. `None` where the parent is in another pid namespace, as that of a
    /// container's first process is: it has no number here, and its end is the namespace's business.
    ///
    /// # Errors
    ///
    /// It has ended, or cannot be watched.
    pub(super) fn find(named: Option<i32>) -> Result<Option<Self>, Failure> {
        match named {
            Some(number) => Self::named(number).map(Some),
            None => getppid().map(Self::parent).transpose(),
        }
    }

    fn named(number: i32) -> Result<Self, Failure> {
        let what = format!("--die-with {number}");
        // Whoever wrote the number saw to it that it was right; here it is only asked whether it still is.
        let pid = Pid::from_raw(number)
            .ok_or_else(|| Failure::bad_option(format!("{what}: it is no process's number")))?;
        let guardian = Self::open(pid).map_err(|error| unwatchable(&what, &error))?;
        if guardian.has_ended() {
            return Err(unwatchable(&what, &rustix::io::Errno::SRCH.into()));
        }
        Ok(guardian)
    }

    fn parent(pid: Pid) -> Result<Self, Failure> {
        let what = format!("the parent, process {}", pid.as_raw_nonzero());
        let guardian = Self::open(pid);
        // Its number may have become another's between the two calls; but while it still is our parent, it cannot have.
        if getppid() != Some(pid) {
            return Err(unwatchable(&what, &rustix::io::Errno::SRCH.into()));
        }
        guardian.map_err(|error| unwatchable(&what, &error))
    }

    fn open(pid: Pid) -> io::Result<Self> {
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// A zombie can be opened, and has ended all the same.
    fn has_ended(&self) -> bool {
        let mut asked = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

fn unwatchable(what: &str, error: &io::Error) -> Failure {
    if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) {
        Failure::new(
            "guardian_ended",
            format!("{what}: it has ended, so nothing is started"),
        )
    } else {
        Failure::new(
            "guardian_unwatchable",
            format!("{what}: it cannot be watched: {error}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_live_process_is_watched_until_it_ends() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("cat is there");
        let guardian = Guardian::find(Some(child.id().cast_signed())).ok().flatten();
        let guardian = guardian.expect("it can be watched");
        assert!(!guardian.has_ended());
        drop(child.stdin.take());
        let ended = poll(&mut [PollFd::new(&guardian, PollFlags::IN)], None);
        assert_eq!(ended, Ok(1));

        // A zombie, and then not even that.
        for _ in 0..2 {
            let failure = Guardian::find(Some(child.id().cast_signed())).err();
            let failure = failure.expect("it has ended");
            assert_eq!(failure.kind, "guardian_ended");
            assert_eq!(failure.status, 125);
            child.wait().expect("it is our child");
        }
    }

    #[test]
    fn the_parent_is_found_where_nobody_is_named() {
        let parent = Guardian::find(None).expect("the parent lives");
        assert!(parent.is_some_and(|parent| !parent.has_ended()));
    }
}
