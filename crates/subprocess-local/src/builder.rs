//! How a local runtime is made.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use dsh_subprocess::{Error, Mechanism, Scrub};

use crate::LocalRuntime;

/// Which ownership mechanism a runtime uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OwnershipChoice {
    /// The strongest one that works here.
    #[default]
    Auto,
    /// A control group per tree, or an error.
    Cgroup,
    /// The process group and session.
    ProcessGroup,
}

/// A feature of the kernel that a runtime uses where it is there and can do without.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KernelFeature {
    /// `clone3` (Linux 5.5 for what is used of it); without it, `clone`.
    Clone3,
    /// `CLONE_INTO_CGROUP` (Linux 5.7); without it the child moves itself before exec.
    CloneIntoCgroup,
    /// `close_range` (Linux 5.9); without it the child walks its descriptor table.
    CloseRange,
    /// `cgroup.kill` (Linux 5.14); without it members are killed one by one, until none is left.
    CgroupKill,
    /// `PIDFD_GET_INFO` with exit status (Linux 6.15); without it a status that somebody else took is unknown.
    PidfdGetInfo,
}

/// Makes a [`LocalRuntime`] with settings of its own.
#[derive(Debug, Default)]
pub struct LocalRuntimeBuilder {
    _private: (),
}

impl LocalRuntimeBuilder {
    /// Chooses the ownership mechanism.
    #[must_use]
    pub fn ownership(self, _choice: OwnershipChoice) -> Self {
        self
    }

    /// Does without a kernel feature even where it is there.
    #[must_use]
    pub fn without(self, _feature: KernelFeature) -> Self {
        self
    }

    /// Sets how long the end of a tree is waited for after `SIGKILL`. 5 s where it is not set.
    #[must_use]
    pub fn kill_bound(self, _bound: Duration) -> Self {
        self
    }

    /// Replaces the environment scrub.
    #[must_use]
    pub fn scrub(self, _scrub: Scrub) -> Self {
        self
    }

    /// Sets where the private directory for spilled streams is made. `TMPDIR`, or `/tmp`, where it is not set.
    #[must_use]
    pub fn spill_parent(self, _directory: impl Into<PathBuf>) -> Self {
        self
    }

    /// Sets where kept spills are moved to.
    #[must_use]
    pub fn kept_spills(self, _directory: impl Into<PathBuf>) -> Self {
        self
    }

    /// Sets how many bytes the runtime's spilled streams may take in all. 4 GiB where it is not set.
    #[must_use]
    pub fn spill_total(self, _bytes: u64) -> Self {
        self
    }

    /// Makes the runtime.
    ///
    /// # Errors
    ///
    /// [`OwnershipUnavailable`](dsh_subprocess::ErrorKind::OwnershipUnavailable).
    pub fn build(self) -> Result<LocalRuntime, Error> {
        Err(Error::new(dsh_subprocess::ErrorKind::Unsupported, "build", "not written yet"))
    }
}

impl fmt::Display for KernelFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for KernelFeature {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Err(Error::new(dsh_subprocess::ErrorKind::InvalidSpec, "build", format!("no kernel feature is named `{name}`")))
    }
}

#[expect(dead_code, reason = "skeleton")]
fn unused(_: Mechanism) {}
