//! What is peculiar about a host, as its arguments say it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use dsh_subprocess_local::{KernelFeature, OwnershipChoice};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::SigSet;
use nix::sys::wait::wait;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// The peculiarities, and the runtime's settings.
#[derive(Default)]
pub(super) struct Peculiar {
    pub(super) ownership: OwnershipChoice,
    pub(super) without: Vec<KernelFeature>,
    pub(super) kill_bound: Option<Duration>,
    pub(super) reap_orphans: bool,
    pub(super) spill_parent: Option<PathBuf>,
    effects: Vec<Effect>,
}

/// One change to the process.
enum Effect {
    /// Its working directory is gone.
    RemovedCwd,
    /// Descriptors 0 to 2 are closed.
    CloseStdio,
    /// It holds that many descriptors that every exec hands on, as libraries in a host do.
    Leak(usize),
    /// A resource's limit, soft and hard.
    Limit(Resource, u64),
    /// Its threads block every signal.
    BlockSignals,
    /// The kernel answers an error to some system calls, as an old one does, or the seccomp profile of a container.
    Refuse(Calls, i32),
    /// Another part of it takes the status of whichever child ends.
    RivalReaper,
    /// The orphans among its descendants come to it.
    Subreaper,
}

/// System calls, each with the rules of which one is enough to match; none matches every call.
type Calls = BTreeMap<i64, Vec<SeccompRule>>;

impl Peculiar {
    /// Takes the leading `--name[=value]` arguments off.
    pub(super) fn parse(args: Vec<String>) -> Result<(Self, Vec<String>), Box<dyn Error>> {
        let mut peculiar = Self::default();
        let mut rest = args.into_iter().peekable();
        while let Some(argument) = rest.next_if(|argument| argument.starts_with("--")) {
            let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
            match name {
                "--ownership" => {
                    peculiar.ownership = match value {
                        "cgroup" => OwnershipChoice::Cgroup,
                        "reaper" => OwnershipChoice::Reaper,
                        "process_group" => OwnershipChoice::ProcessGroup,
                        "auto" => OwnershipChoice::Auto,
                        other => return Err(format!("there is no mechanism named `{other}`").into()),
                    }
                }
                "--without" => peculiar.without.push(value.parse()?),
                "--kill-bound-ms" => peculiar.kill_bound = Some(Duration::from_millis(value.parse()?)),
                "--reap-orphans" => peculiar.reap_orphans = true,
                "--spill-parent" => peculiar.spill_parent = Some(value.into()),
                "--nofile" => peculiar
                    .effects
                    .push(Effect::Limit(Resource::RLIMIT_NOFILE, value.parse()?)),
                "--fsize" => peculiar
                    .effects
                    .push(Effect::Limit(Resource::RLIMIT_FSIZE, value.parse()?)),
                "--block-signals" => peculiar.effects.push(Effect::BlockSignals),
                "--close-stdio" => peculiar.effects.push(Effect::CloseStdio),
                "--leak" => peculiar.effects.push(Effect::Leak(value.parse()?)),
                "--rival-reaper" => peculiar.effects.push(Effect::RivalReaper),
                "--subreaper" => peculiar.effects.push(Effect::Subreaper),
                "--removed-cwd" => peculiar.effects.push(Effect::RemovedCwd),
                "--enosys" => peculiar.effects.push(Effect::Refuse(calls(value)?, libc::ENOSYS)),
                "--einval" => peculiar.effects.push(Effect::Refuse(calls(value)?, libc::EINVAL)),
                "--eperm" => peculiar.effects.push(Effect::Refuse(calls(value)?, libc::EPERM)),
                other => return Err(format!("there is no peculiarity named `{other}`").into()),
            }
        }
        Ok((peculiar, rest.collect()))
    }

    /// Makes this process as peculiar as it was asked to be, in the order it was asked, before it has a runtime.
    /// The descriptors it answers must live as long as the host.
    pub(super) fn take_effect(&self) -> Result<Vec<OwnedFd>, Box<dyn Error>> {
        let mut leaked = Vec::new();
        for effect in &self.effects {
            match effect {
                Effect::RemovedCwd => leave_a_removed_directory_behind()?,
                Effect::CloseStdio => (0..3).try_for_each(nix::unistd::close)?,
                Effect::Leak(count) => {
                    for _ in 0..*count {
                        leaked.push(open_without_close_on_exec()?);
                    }
                }
                Effect::Limit(resource, limit) => setrlimit(*resource, *limit, *limit)?,
                Effect::BlockSignals => SigSet::all().thread_block()?,
                Effect::Refuse(calls, error) => refuse(calls, *error)?,
                Effect::Subreaper => nix::sys::prctl::set_child_subreaper(true)?,
                Effect::RivalReaper => drop(thread::spawn(wait_for_any_child)),
            }
        }
        Ok(leaked)
    }
}

fn leave_a_removed_directory_behind() -> std::io::Result<()> {
    let directory = std::env::temp_dir().join(format!("dsh-probe-removed-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    std::env::set_current_dir(&directory)?;
    std::fs::remove_dir(&directory)
}

fn open_without_close_on_exec() -> Result<OwnedFd, Box<dyn Error>> {
    let file = File::open("/dev/null")?;
    fcntl(file.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(file.into())
}

fn calls(name: &str) -> Result<Calls, Box<dyn Error>> {
    let every = |call| Calls::from([(call, Vec::new())]);
    Ok(match name {
        "clone3" => every(libc::SYS_clone3),
        "close_range" => every(libc::SYS_close_range),
        "setsid" => every(libc::SYS_setsid),
        "flock" => every(libc::SYS_flock),
        // What Linux 5.3 to 5.9 does: it knows the call, and not one flag of it.
        "pidfd_open-flags" => Calls::from([(libc::SYS_pidfd_open, vec![argument(1, SeccompCmpOp::Ne, 0)?])]),
        // A whole process group, by either call that reaches one.
        "signal-group" => Calls::from([
            (
                libc::SYS_kill,
                vec![argument(0, SeccompCmpOp::Gt, i32::MAX.unsigned_abs().into())?],
            ),
            (
                libc::SYS_pidfd_send_signal,
                vec![argument(3, SeccompCmpOp::Ne, 0)?],
            ),
        ]),
        other => return Err(format!("there is no rule for the system call `{other}`").into()),
    })
}

/// A rule about one argument, as an unsigned number of 32 bits.
fn argument(index: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(
        index,
        SeccompCmpArgLen::Dword,
        is,
        value,
    )?])
}

fn refuse(calls: &Calls, error: i32) -> Result<(), Box<dyn Error>> {
    let filter = SeccompFilter::new(
        calls.clone(),
        SeccompAction::Allow,
        SeccompAction::Errno(error.unsigned_abs()),
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    Ok(seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?)
}

/// A second reaper in the host: takes the status of whichever child ends.
fn wait_for_any_child() {
    loop {
        if wait() == Err(Errno::ECHILD) {
            // There is nothing to block on while the host has no child.
            thread::sleep(Duration::from_millis(1));
        }
    }
}
