//! The faults that a tree may meet.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use dsh_subprocess::{ErrorKind, Mechanism, Process};
use dsh_subprocess_local::LocalRuntime;
use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::hungry::Hunger;

/// What a tree may meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Nothing.
    None,
    /// The host has hardly any descriptor when it is spawned.
    HungryBirth,
    /// The host has hardly any descriptor when it is to end.
    HungryEnd,
    /// What was spilled is removed, with its directory.
    SpillsRemoved,
    /// The target is stopped.
    Stopped,
    /// The target cannot be killed for a while.
    Frozen,
    /// Its members are killed, and their control group and all idle ones are removed.
    GroupRemoved,
    /// The tree's warden is killed.
    TreeWardenKilled,
    /// The runtime's warden is killed.
    RuntimeWardenKilled,
}

/// What the faults need to know of the host.
pub(super) struct Ground {
    mechanism: Mechanism,
    pub(super) owns_all: bool,
    spills: PathBuf,
    /// A group of the version 1 freezer, where one can be had.
    freezer: Option<Freezer>,
}

impl Ground {
    pub(super) fn new(runtime: &LocalRuntime, spills: &Path) -> io::Result<Self> {
        let mechanism = runtime.ownership().mechanism;
        Ok(Self {
            owns_all: mechanism != Mechanism::ProcessGroup,
            mechanism,
            spills: spills.canonicalize()?,
            freezer: Freezer::new().ok(),
        })
    }
}

/// A fault that lasts until this is dropped.
pub(super) enum Inflicted<'ground> {
    Nothing,
    /// Held for its drop.
    Hungry {
        _hunger: Hunger,
    },
    Frozen {
        freezer: &'ground Freezer,
        long: bool,
    },
}

impl Inflicted<'_> {
    /// Whether it is to outlast the bound of the tree's end.
    pub(super) fn lasts(&self) -> bool {
        matches!(self, Self::Hungry { .. } | Self::Frozen { long: true, .. })
    }
}

impl Drop for Inflicted<'_> {
    fn drop(&mut self) {
        if let Self::Frozen { freezer, .. } = self {
            freezer.set("THAWED").expect("it can be thawed");
        }
    }
}

impl Fault {
    /// Lists what can happen to a tree of this host.
    pub(super) fn all(ground: &Ground) -> Vec<Self> {
        let mut all = vec![
            Self::None,
            Self::HungryBirth,
            Self::HungryEnd,
            Self::SpillsRemoved,
            Self::Stopped,
        ];
        if ground.freezer.is_some() {
            all.push(Self::Frozen);
        }
        match ground.mechanism {
            Mechanism::Cgroup => all.extend([Self::GroupRemoved, Self::RuntimeWardenKilled]),
            Mechanism::Reaper => all.extend([Self::TreeWardenKilled, Self::RuntimeWardenKilled]),
            _ => {}
        }
        all
    }

    /// Whether a tree that meets it may fail like this.
    pub(super) fn may_be(self, kind: ErrorKind) -> bool {
        match self {
            Self::HungryBirth | Self::HungryEnd => kind == ErrorKind::ResourceExhausted,
            Self::TreeWardenKilled | Self::RuntimeWardenKilled => kind == ErrorKind::OwnershipLost,
            _ => false,
        }
    }

    /// What the host lacks while the tree is spawned.
    pub(super) fn at_birth(self, random: &mut Rng) -> Result<Option<Hunger>, Box<dyn Error>> {
        match self {
            Self::HungryBirth => Hunger::begin(random.usize(..16)).map(Some),
            _ => Ok(None),
        }
    }

    /// Happens to a live tree.
    pub(super) fn inflict<'ground>(
        self,
        ground: &'ground Ground,
        process: &Process,
        random: &mut Rng,
    ) -> Result<Inflicted<'ground>, Box<dyn Error>> {
        let target = Pid::from_raw(process.pid().ok_or("this world has ids")?.cast_signed());
        match self {
            Self::None | Self::HungryBirth => {}
            Self::HungryEnd => {
                return Ok(Inflicted::Hungry {
                    _hunger: Hunger::begin(random.usize(..6))?,
                });
            }
            Self::SpillsRemoved => remove_all_in(&ground.spills)?,
            // It may have ended by itself.
            Self::Stopped => {
                let _ = kill(target, Signal::SIGSTOP);
            }
            Self::Frozen => {
                let freezer = ground.freezer.as_ref().ok_or("there is no freezer")?;
                freezer.set("FROZEN")?;
                // It may have ended by itself.
                drop(fs::write(freezer.0.join("cgroup.procs"), target.to_string()));
                let long = random.u8(..16) == 0;
                return Ok(Inflicted::Frozen { freezer, long });
            }
            Self::GroupRemoved => {
                if let Some(leaf) = leaf(target) {
                    remove_group(&leaf)?;
                }
            }
            Self::TreeWardenKilled => {
                if let Some(warden) = parent(target).filter(|warden| is_warden(*warden)) {
                    kill_now(warden)?;
                }
            }
            Self::RuntimeWardenKilled => {
                kill_now(runtime_warden()?)?;
            }
        }
        Ok(Inflicted::Nothing)
    }
}

/// A group of the version 1 freezer: what is frozen in it takes `SIGKILL` only when it is thawed.
pub(super) struct Freezer(PathBuf);

impl Freezer {
    fn new() -> io::Result<Self> {
        let group = PathBuf::from(format!("/sys/fs/cgroup/freezer/dsh-test-{}", std::process::id()));
        fs::create_dir(&group)?;
        Ok(Self(group))
    }

    fn set(&self, state: &str) -> io::Result<()> {
        fs::write(self.0.join("freezer.state"), state)
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        // All that was in it is gone, or leaves it in a moment.
        let deadline = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Removes what is in a directory, though others may be at it too.
fn remove_all_in(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        match fs::remove_dir_all(entry?.path()) {
            Err(error)
                if error.kind() != io::ErrorKind::NotFound
                    && error.kind() != io::ErrorKind::DirectoryNotEmpty =>
            {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the control group of a process that is there.
fn leaf(pid: Pid) -> Option<PathBuf> {
    let membership = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    let root = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
        .into_iter()
        .find(|root| Path::new(root).join("cgroup.procs").exists())?;
    // A process that was reaped since has no group of its own any more.
    let leaf = PathBuf::from(format!("{root}{path}"));
    let own = format!("dsh-subprocess-{}-", std::process::id());
    let above = leaf.parent()?.file_name()?.to_str()?.starts_with(&own);
    above.then_some(leaf)
}

/// Kills the members of a leaf, and removes it and its idle neighbours, as somebody who tidies up might.
fn remove_group(leaf: &Path) -> Result<(), Box<dyn Error>> {
    let deadline = Instant::now() + Duration::from_secs(10);
    // Until the runtime was faster, or the last of them is gone.
    while let Ok(members) = fs::read_to_string(leaf.join("cgroup.procs")) {
        for member in members.lines() {
            // It may be gone since.
            let _ = kill(Pid::from_raw(member.parse()?), Signal::SIGKILL);
        }
        if fs::remove_dir(leaf).is_ok() || Instant::now() > deadline {
            break;
        }
    }
    let above = leaf.parent().ok_or("a leaf has a parent")?;
    for neighbour in fs::read_dir(above)?.filter_map(Result::ok) {
        if neighbour.file_type().is_ok_and(|kind| kind.is_dir()) {
            drop(fs::remove_dir(neighbour.path()));
        }
    }
    Ok(())
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name is in parentheses and may hold any character.
    let mut fields = stat[stat.rfind(')')? + 2..].split(' ').skip(1);
    Some(Pid::from_raw(fields.next()?.parse().ok()?))
}

/// Kills a process and waits until it is dead: whatever is begun from then on must not depend on it.
fn kill_now(pid: Pid) -> Result<(), Box<dyn Error>> {
    kill(pid, Signal::SIGKILL)?;
    let deadline = Instant::now() + Duration::from_secs(10);
    let is_dead =
        || fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "));
    while !is_dead() {
        if Instant::now() > deadline {
            return Err(format!("process {pid} outlives its SIGKILL").into());
        }
        thread::yield_now();
    }
    Ok(())
}

fn is_warden(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "dsh-warden\n")
}

/// Waits for the runtime's warden, which the host starts again in its own time, and until it has ended what another warden has
/// left it: should it be killed before that, nobody is there to do it.
fn runtime_warden() -> Result<Pid, Box<dyn Error>> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let found = find_runtime_warden()?;
        if let Some(warden) = found.filter(|&warden| has_wardens_alone(warden)) {
            return Ok(warden);
        }
        if Instant::now() > deadline {
            return Err(format!("the runtime's warden is not idle: {found:?}").into());
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn has_wardens_alone(pid: Pid) -> bool {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.all(|child| is_warden(Pid::from_raw(child)))
}

/// Finds the warden that holds a descriptor of this process (proc(5): the `Pid` of a pidfd in `fdinfo`) and is no other warden's
/// child.
fn find_runtime_warden() -> io::Result<Option<Pid>> {
    let own = format!("Pid:\t{}\n", std::process::id());
    let holds_this_process = |pid: Pid| {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
            return false;
        };
        descriptors
            .filter_map(Result::ok)
            .any(|entry| fs::read_to_string(entry.path()).is_ok_and(|info| info.contains(&own)))
    };
    Ok(fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .filter(|&pid| is_warden(pid) && !parent(pid).is_some_and(is_warden))
        .find(|&pid| holds_this_process(pid)))
}
