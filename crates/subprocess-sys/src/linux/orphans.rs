//! Where processes go whose parent has ended, and how they are taken leave of there.

use std::fs;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};

use super::descendants::{children, there};
use super::pidfd::{self, Wait};
use super::table::is_ours;

/// Tells whether orphans come to this process because it is the init of its pid namespace.
pub fn come_to_init() -> bool {
    std::process::id() == 1
}

/// Tells whether orphans among this process's descendants come to it because it has marked itself a subreaper
/// (`PR_SET_CHILD_SUBREAPER`, prctl(2)).
pub fn come_to_subreaper() -> bool {
    rustix::process::child_subreaper().is_ok_and(|mark| mark.is_some())
}

/// Tells whether orphans come to this process, for either reason.
pub fn come_here() -> bool {
    come_to_init() || come_to_subreaper()
}

/// Lists this process's children, zombies included. One that is born or adopted during the look may be missing.
///
/// # Errors
///
/// `EMFILE` and `ENFILE`: without a descriptor to look with, none would be found.
pub fn own_children() -> Result<Vec<Pid>, Errno> {
    if is_ours() {
        children(getpid())
    } else {
        Ok(Vec::new())
    }
}

/// A process that is not waited for by whoever started it.
#[derive(Debug)]
pub struct Orphan(OwnedFd);

/// What became of an [`Orphan`] that was to be reaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaped {
    /// It is no more: reaped now, or by somebody else before.
    Gone,
    /// It is a child of this process, and has not ended.
    Alive,
    /// It is, for now, another process's child, living or dead.
    Elsewhere,
}

impl Orphan {
    /// Holds a process. Who it is must be found out after this: from then on the number is no other process's, unless
    /// [`reap`](Self::reap) says that the process is gone. `None` where there is no such process.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENFILE`.
    pub fn hold(pid: Pid) -> Result<Option<Self>, Errno> {
        match pidfd::open(pid) {
            Ok(process) => Ok(Some(Self(process))),
            Err(errno @ (Errno::MFILE | Errno::NFILE)) => Err(errno),
            Err(_) => Ok(None),
        }
    }

    /// Reaps it, if it is a child of this process and has ended. It waits for nothing.
    pub fn reap(&self) -> Reaped {
        match pidfd::wait(&self.0, Wait::Reap) {
            Ok(Some(_)) => Reaped::Gone,
            Ok(None) => Reaped::Alive,
            Err(_) if pidfd::is_reaped(&self.0) => Reaped::Gone,
            Err(_) => Reaped::Elsewhere,
        }
    }

    /// Waits for its end if it is a child of this process, for at most `bound`, and reaps it.
    pub fn wait(&self, bound: Duration) -> Reaped {
        let deadline = Instant::now() + bound;
        loop {
            let reaped = self.reap();
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(timeout) = Timespec::try_from(left) else {
                return reaped;
            };
            if reaped != Reaped::Alive || left.is_zero() {
                return reaped;
            }
            // Whatever it answers, the next look tells.
            let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout));
        }
    }
}

impl AsFd for Orphan {
    /// Readable when the process has ended (`pidfd_open(2)`).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns the version-2 control group of a process, as its line in `/proc/PID/cgroup` names it: a zombie is still in the
/// one it ended in, and ` (deleted)` follows the name of a group that was removed (cgroups(7)). `None` for a process that
/// is gone, or is in no such group.
///
/// # Errors
///
/// `EMFILE`, `ENFILE`.
pub fn group_of(pid: Pid) -> Result<Option<Vec<u8>>, Errno> {
    /// Version 1 has a line for each of at most a dozen hierarchies, and a path is at most 4,096 bytes long.
    const LONGEST: u64 = 64 * 1024;
    if !is_ours() {
        return Ok(None);
    }
    let mut lines = Vec::new();
    let opened = there(fs::File::open(format!("/proc/{}/cgroup", pid.as_raw_nonzero())))?;
    if opened.is_none_or(|file| file.take(LONGEST).read_to_end(&mut lines).is_err()) {
        return Ok(None);
    }
    let line = lines
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"));
    Ok(line.map(<[u8]>::to_vec))
}

/// Returns the name of the group directly below the one named `parent` that `group`, an answer of [`group_of`], is or is in.
///
/// ```
/// use dsh_subprocess_sys::orphans::group_below;
/// assert_eq!(group_below(b"/host/runtime-1/t3/made/by/it", b"runtime-1"), Some(&b"t3"[..]));
/// assert_eq!(group_below(b"/host/runtime-1/t3 (deleted)", b"runtime-1"), Some(&b"t3"[..]));
/// assert_eq!(group_below(b"/host/runtime-1", b"runtime-1"), None);
/// ```
pub fn group_below<'a>(group: &'a [u8], parent: &[u8]) -> Option<&'a [u8]> {
    let group = group.strip_suffix(b" (deleted)").unwrap_or(group);
    let mut names = group.split(|&byte| byte == b'/');
    names.find(|name| *name == parent)?;
    names.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Far more than the end of a process takes.
    const BOUND: Duration = Duration::from_secs(60);

    #[test]
    fn a_test_is_neither_init_nor_a_subreaper() {
        assert!(!come_to_init());
        assert!(!come_to_subreaper());
    }

    #[test]
    fn a_child_is_listed_until_it_is_reaped_by_its_descriptor() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
        let pid = Pid::from_child(&child);
        let orphan = Orphan::hold(pid)
            .expect("descriptors are left")
            .expect("it is there");
        assert_eq!(orphan.reap(), Reaped::Alive);
        assert_eq!(orphan.wait(Duration::ZERO), Reaped::Alive);
        assert!(own_children().expect("descriptors are left").contains(&pid));
        assert!(group_of(pid).is_ok());
        child.kill().expect("it is there");

        assert_eq!(orphan.wait(BOUND), Reaped::Gone);
        assert!(!own_children().expect("descriptors are left").contains(&pid));
        assert_eq!(orphan.reap(), Reaped::Gone);
        assert_eq!(group_of(pid), Ok(None));
        // It was reaped behind the standard library's back.
        assert!(child.wait().is_err());
    }

    #[test]
    fn a_zombie_is_still_in_its_group() {
        let mut child = Command::new("true").spawn().expect("it starts");
        let pid = Pid::from_child(&child);
        let orphan = Orphan::hold(pid)
            .expect("descriptors are left")
            .expect("it is there");
        let ended = poll(&mut [PollFd::new(&orphan.0, PollFlags::IN)], None);
        assert_eq!(ended, Ok(1));
        assert_eq!(group_of(pid), group_of(getpid()));
        assert!(child.wait().expect("nobody else reaped it").success());
    }

    #[test]
    fn what_is_no_child_is_left_alone() {
        let parent = rustix::process::getppid().expect("a test has a parent");
        let orphan = Orphan::hold(parent)
            .expect("descriptors are left")
            .expect("it is there");
        assert_eq!(orphan.wait(BOUND), Reaped::Elsewhere);
    }

    #[test]
    fn a_name_counts_as_a_whole() {
        assert_eq!(group_below(b"/a/runtime-12/t3", b"runtime-1"), None);
        assert_eq!(
            group_below(b"/../../runtime-1/t3", b"runtime-1"),
            Some(&b"t3"[..])
        );
        assert_eq!(group_below(b"/", b"runtime-1"), None);
        assert_eq!(group_below(b"", b"runtime-1"), None);
    }
}
