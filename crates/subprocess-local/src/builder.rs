//! How a local runtime is made.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use dsh_subprocess::{Error, ErrorKind, MAX_GRACE, Scrub};
use dsh_subprocess_sys::kernel::Kernel;
use dsh_subprocess_sys::pipe;
use dsh_subprocess_sys::spawn::Session;
use dsh_subprocess_sys::steps::{Step, step};

use crate::LocalRuntime;
use crate::choice::{self, Chosen};
use crate::janitor::{self, Record};
use crate::launch::HANDSHAKE;
use crate::machine::{Machine, Parts};
use crate::spill::{SpillDirectory, SpillPlaces};

/// How long the end of a tree is waited for after `SIGKILL`, unless told otherwise.
const KILL_BOUND: Duration = Duration::from_secs(5);
/// How long a write to a terminal may get no further, unless told otherwise.
const WRITE_BOUND: Duration = Duration::from_secs(5);
/// What all spilled streams of a runtime may take, unless told otherwise.
const SPILL_TOTAL: u64 = 4 * 1024 * 1024 * 1024;

/// Which ownership mechanism a runtime uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OwnershipChoice {
    /// The strongest one that works here.
    #[default]
    Auto,
    /// A control group per tree, or an error.
    Cgroup,
    /// A warden per tree that adopts every orphan of it, or an error. It needs no privilege.
    Reaper,
    /// The process group and session.
    ProcessGroup,
}

/// Which session and process group children are started in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum SessionChoice {
    /// A session of their own, without a controlling terminal: nothing they do reaches the host's terminal.
    #[default]
    Own,
    /// The host's own: they can use its terminal, and get the signals that are typed there. Only where it is a control group
    /// or a reaper that owns the trees; a process group cannot own what is in the host's.
    Host,
}

/// What a child's standard input is where the spec gives it [data](dsh_subprocess::Stdin::Data).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum DataTransport {
    /// A pipe: what a shell would give it.
    #[default]
    Pipe,
    /// A Unix stream socket, as children of Node.js get. Opening `/dev/stdin` fails on it.
    Socket,
}

/// A feature of the kernel that a runtime uses where it is there and can do without.
///
/// ```
/// use dsh_subprocess_local::KernelFeature;
/// assert_eq!("close-range".parse(), Ok(KernelFeature::CloseRange));
/// assert_eq!(KernelFeature::CloseRange.to_string(), "close-range");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KernelFeature {
    /// `clone3` (Linux 5.5 for what is used of it); without it, `clone`.
    Clone3,
    /// `CLONE_INTO_CGROUP` (Linux 5.7); without it the child moves itself before exec.
    CloneIntoCgroup,
    /// `close_range` (Linux 5.9); without it the child walks its descriptor table.
    CloseRange,
    /// `cgroup.kill` (Linux 5.14); without it the group is frozen and its members are killed one by one.
    CgroupKill,
    /// `PIDFD_GET_INFO` with exit status (Linux 6.15); without it a status that somebody else took is unknown.
    PidfdGetInfo,
    /// Running a program from a file in memory (`memfd_create`, which `vm.memfd_noexec` can forbid); without it the wardens
    /// are run from a private file.
    MemfdExec,
}

impl KernelFeature {
    /// Every feature.
    pub const ALL: [Self; 6] = [
        Self::Clone3,
        Self::CloneIntoCgroup,
        Self::CloseRange,
        Self::CgroupKill,
        Self::PidfdGetInfo,
        Self::MemfdExec,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Clone3 => "clone3",
            Self::CloneIntoCgroup => "clone-into-cgroup",
            Self::CloseRange => "close-range",
            Self::CgroupKill => "cgroup-kill",
            Self::PidfdGetInfo => "pidfd-get-info",
            Self::MemfdExec => "memfd-exec",
        }
    }

    /// Returns what happens without it.
    pub(crate) fn fallback(self) -> &'static str {
        match self {
            Self::Clone3 => "clone",
            Self::CloneIntoCgroup => "the child moves itself into its cgroup before exec",
            Self::CloseRange => "the child walks its descriptor table",
            Self::CgroupKill => "the cgroup is frozen and its members are killed one by one",
            Self::PidfdGetInfo => "a status that somebody else in the host took is unknown",
            Self::MemfdExec => "the wardens are run from a private file",
        }
    }

    pub(crate) fn is_in(self, kernel: Kernel) -> bool {
        match self {
            Self::Clone3 => kernel.clone3,
            Self::CloneIntoCgroup => kernel.clone_into_cgroup,
            Self::CloseRange => kernel.close_range,
            Self::CgroupKill => kernel.cgroup_kill,
            Self::PidfdGetInfo => kernel.pidfd_get_info,
            Self::MemfdExec => kernel.memfd_exec,
        }
    }

    fn take_from(self, kernel: &mut Kernel) {
        match self {
            // The flag belongs to the newer call.
            Self::Clone3 => (kernel.clone3, kernel.clone_into_cgroup) = (false, false),
            Self::CloneIntoCgroup => kernel.clone_into_cgroup = false,
            Self::CloseRange => kernel.close_range = false,
            Self::CgroupKill => kernel.cgroup_kill = false,
            Self::PidfdGetInfo => kernel.pidfd_get_info = false,
            Self::MemfdExec => kernel.memfd_exec = false,
        }
    }
}

impl fmt::Display for KernelFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no [`KernelFeature`]'s.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no kernel feature is named `{0}`: there are {all}", all = KernelFeature::ALL.map(KernelFeature::name).join(", "))]
pub struct UnknownKernelFeature(String);

impl FromStr for KernelFeature {
    type Err = UnknownKernelFeature;

    fn from_str(name: &str) -> Result<Self, UnknownKernelFeature> {
        Self::ALL
            .into_iter()
            .find(|feature| feature.name() == name)
            .ok_or_else(|| UnknownKernelFeature(name.to_owned()))
    }
}

/// Makes a [`LocalRuntime`] with settings of its own.
///
/// ```
/// use dsh_subprocess::{Mechanism, SubprocessRuntime};
/// use dsh_subprocess_local::{KernelFeature, LocalRuntime, OwnershipChoice};
/// let world = LocalRuntime::builder()
///     .ownership(OwnershipChoice::ProcessGroup)
///     .without(KernelFeature::Clone3)
///     .build()?;
/// assert_eq!(world.capabilities().mechanism, Mechanism::ProcessGroup);
/// # Ok::<(), dsh_subprocess::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LocalRuntimeBuilder {
    ownership: OwnershipChoice,
    session: SessionChoice,
    without: Vec<KernelFeature>,
    handshake: Duration,
    kill_bound: Duration,
    write_bound: Duration,
    reap_orphans: bool,
    scrub: Scrub,
    data: DataTransport,
    spills: SpillPlaces,
}

impl Default for LocalRuntimeBuilder {
    fn default() -> Self {
        Self {
            ownership: OwnershipChoice::Auto,
            session: SessionChoice::Own,
            without: Vec::new(),
            handshake: HANDSHAKE,
            kill_bound: KILL_BOUND,
            write_bound: WRITE_BOUND,
            reap_orphans: false,
            scrub: Scrub::default(),
            data: DataTransport::default(),
            spills: SpillPlaces {
                parent: None,
                kept: None,
                total: SPILL_TOTAL,
            },
        }
    }
}

impl LocalRuntimeBuilder {
    /// Chooses the ownership mechanism. [`OwnershipChoice::Auto`] where it is not set.
    pub fn ownership(mut self, choice: OwnershipChoice) -> Self {
        self.ownership = choice;
        self
    }

    /// Chooses the children's session. [`SessionChoice::Own`] where it is not set.
    pub fn session(mut self, choice: SessionChoice) -> Self {
        self.session = choice;
        self
    }

    /// Does without a kernel feature even where it is there.
    pub fn without(mut self, feature: KernelFeature) -> Self {
        self.without.push(feature);
        self
    }

    /// Sets how long [`spawn`](dsh_subprocess::SubprocessRuntime::spawn) waits until the target runs, so that its pid is known
    /// when it returns. 1 s where it is not set, and at most that.
    ///
    /// With less the target is started on another thread, of which the runtime has one per processor, and more while an exec
    /// hangs; with [`Duration::ZERO`] the caller only makes the streams and waits for nothing, which suits the thread of an
    /// event loop. Failures, the pid and the end are told by the handle as ever. A tree that is ended before it is started never
    /// has a target: [`Process::started`](dsh_subprocess::Process::started) says
    /// [`Cancelled`](ErrorKind::Cancelled), and its outcome is that of `SIGTERM`.
    ///
    /// A terminal's program is started in the same way, whether or not its future is polled.
    pub fn handshake(mut self, handshake: Duration) -> Self {
        self.handshake = handshake;
        self
    }

    /// Sets how long the end of a tree is waited for after `SIGKILL`, before its survivors are reported. 5 s where it is
    /// not set, and at most [`MAX_GRACE`](dsh_subprocess::MAX_GRACE).
    pub fn kill_bound(mut self, bound: Duration) -> Self {
        self.kill_bound = bound;
        self
    }

    /// Sets how long a write to a terminal may get no further before it is refused. 5 s where it is not set, and at most
    /// [`MAX_GRACE`](dsh_subprocess::MAX_GRACE).
    pub fn write_bound(mut self, bound: Duration) -> Self {
        self.write_bound = bound;
        self
    }

    /// Reaps what the trees leave to this process where it adopts orphans: as process 1 of its pid namespace, or as a subreaper.
    /// It is not done where this is not set, and has no effect elsewhere.
    ///
    /// It matters to control groups alone: where a reaper owns the trees (which is the first choice of such a host) their
    /// orphans come to the reaper. A process is reaped if it is a child of this one, has ended, and did so in the group of a
    /// tree; the status of no other child is taken. It happens when a target or a member of a tree ends, so an orphan stays a
    /// zombie until then, and at most until its tree is gone.
    ///
    /// # Platform
    ///
    /// Linux, with a `/proc` of this process's own pid namespace.
    pub fn reap_orphans(mut self, reap: bool) -> Self {
        self.reap_orphans = reap;
        self
    }

    /// Replaces the environment scrub.
    pub fn scrub(mut self, scrub: Scrub) -> Self {
        self.scrub = scrub;
        self
    }

    /// Chooses what carries data to a child's standard input. [`DataTransport::Pipe`] where it is not set.
    pub fn data_transport(mut self, transport: DataTransport) -> Self {
        self.data = transport;
        self
    }

    /// Sets where the private directory for spilled streams is made. `TMPDIR`, or `/tmp`, where it is not set.
    pub fn spill_parent(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spills.parent = Some(directory.into());
        self
    }

    /// Sets the directory that kept spills are made in. It is made with mode 0700, and must be private if it exists.
    /// `dsh-subprocess/spills` below `XDG_STATE_HOME`, or below `~/.local/state`, where it is not set.
    /// Until its stream has ended a file's name ends in `.partial`, and what a host that died had written stays so.
    pub fn kept_spills(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spills.kept = Some(directory.into());
        self
    }

    /// Sets how many bytes the runtime's spilled streams may take in all. 4 GiB where it is not set.
    pub fn spill_total(mut self, bytes: u64) -> Self {
        self.spills.total = bytes;
        self
    }

    /// Makes the runtime: probes the mechanisms, strongest first, and starts its thread. Another thread cleans up what dead
    /// hosts of this user left on disk, where there is any.
    ///
    /// # Errors
    ///
    /// [`InvalidSpec`](ErrorKind::InvalidSpec) for a kill bound or a handshake above its maximum;
    /// [`OwnershipUnavailable`](ErrorKind::OwnershipUnavailable) when the chosen mechanism does not work here;
    /// [`ResourceExhausted`](ErrorKind::ResourceExhausted) without descriptors or threads to be had.
    pub fn build(self) -> Result<LocalRuntime, Error> {
        if self.kill_bound > MAX_GRACE {
            let message = format!(
                "the kill bound is {:?}: it must be at most {} ms",
                self.kill_bound,
                MAX_GRACE.as_millis()
            );
            return Err(Error::new(ErrorKind::InvalidSpec, "build", message));
        }
        if self.handshake > HANDSHAKE {
            let message = format!(
                "the handshake is {:?}: it must be at most {} ms",
                self.handshake,
                HANDSHAKE.as_millis()
            );
            return Err(Error::new(ErrorKind::InvalidSpec, "build", message));
        }
        let mut kernel = Kernel::get();
        for feature in self.without {
            feature.take_from(&mut kernel);
        }
        let failed = |what: &str, error: std::io::Error| {
            Error::new(ErrorKind::ResourceExhausted, "build", format!("{what}: {error}")).with_source(error)
        };
        pipe::open_standard_descriptors()
            .map_err(|errno| failed("descriptors 0 to 2 cannot be opened", errno.into()))?;
        let null = pipe::null_device().map_err(|errno| failed("/dev/null cannot be opened", errno.into()))?;
        let session = match self.session {
            SessionChoice::Own => Session::Own,
            SessionChoice::Host => Session::Host,
        };
        janitor::sweep();
        let record = Record::create()
            .inspect_err(|why| tracing::debug!(%why, "what this runtime has on disk is not recorded"))
            .ok();
        let Chosen {
            mechanism,
            leaves,
            warden,
            kernel,
        } = choice::choose(self.ownership, kernel, session, &null, record.as_ref())?;
        if let (Some(warden), Some(record)) = (&warden, &record) {
            record.entrust(warden);
        }
        step(Step::RecordEntrusted);
        let spills = SpillDirectory::new(self.spills, record.clone(), warden.clone());
        let parts = Parts {
            kernel,
            mechanism,
            leaves,
            warden,
            session,
            handshake: self.handshake,
            kill_bound: self.kill_bound,
            write_bound: self.write_bound,
            reap_orphans: self.reap_orphans,
            scrub: self.scrub,
            data: self.data,
            spills,
            record,
            null,
        };
        let leaves = parts.leaves.clone();
        let machine = Machine::start(parts).map_err(|error| {
            // Nobody else knows of it yet.
            if let Some(leaves) = leaves {
                let _ = leaves.remove();
            }
            failed("the runtime's thread cannot be started", error)
        })?;
        Ok(LocalRuntime::from_machine(machine))
    }
}
