//! A control group that was made an ordinary user's, as a service manager does it (cgroups(7), "Delegation").

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::scene::NOBODY;
use crate::fixture::{eventually, group_of};

/// One such group, below the test's own.
pub(super) struct Delegated(PathBuf);

impl Delegated {
    /// Makes one. For root only.
    #[track_caller]
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let own = std::process::id();
        let name = format!("dsh-test-{own}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let path = group_of(own).join(name);
        fs::create_dir(&path).expect("root makes groups");
        let group = Self(path);
        for name in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
            chown(group.0.join(name), Some(NOBODY), Some(NOBODY)).expect("root gives it away");
        }
        group
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Whoever a failed test left. The empty group that stays costs nothing.
            drop(fs::write(self.0.join("cgroup.kill"), "1"));
        } else {
            eventually("the delegated group is empty", || fs::remove_dir(&self.0).is_ok());
        }
    }
}
