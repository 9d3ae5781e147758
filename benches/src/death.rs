//! `host-death`: from `kill -9` of a host until the last member of its tree is gone.

use std::num::NonZeroUsize;
use std::os::fd::AsFd as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::finding::{Finding, Name, Unit, of_samples};
use crate::floor::{Cloner, Program};
use crate::helper;
use crate::host::Host;
use crate::options::Row;
use crate::project::{Tier, World, owning_tiers};
use crate::turns::{Contender, Effort, micros, take};

/// Members of the tree.
const MEMBERS: &str = "10";

const EFFORT: Effort = Effort {
    warm_up: 1,
    rounds: 100,
    time: Duration::from_secs(15),
};

/// What the host is called that owns nothing: this process ends its tree, as somebody who watches would.
const NOBODY: &str = "nobody";

/// Measures the row: each sample is a host of its own.
pub(crate) fn measure(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let mut contenders = vec![Contender::new(Name::FLOOR, || sample(NOBODY))];
    contenders.extend(
        owning_tiers()
            .into_iter()
            .map(|tier| Contender::new(Name::project(tier.name()), move || sample(tier.name()))),
    );
    let taken = take(contenders, EFFORT.asked(rounds))?;
    Ok(of_samples(Row::HostDeath, Unit::Micros, &taken))
}

/// Starts a host with a tree, kills it, and waits until every member is gone.
fn sample(owner: &str) -> Result<f64> {
    let mut host = Host::start("dying-host", &[owner])?;
    let said = host.answer()?;
    let pids: Vec<Pid> = said
        .split(' ')
        .map(|word| word.parse().ok().and_then(Pid::from_raw))
        .collect::<Option<_>>()
        .with_context(|| format!("the host said {said:?}"))?;
    let [itself, target, ..] = pids[..] else {
        bail!("the host named {pids:?}")
    };
    let open = |&pid: &Pid| pidfd_open(pid, PidfdFlags::empty()).context("a member is not there");
    let all: Vec<OwnedFd> = pids.iter().map(open).collect::<Result<_>>()?;

    let started = Instant::now();
    kill_process(itself, Signal::KILL).context("the host cannot be killed")?;
    wait_for(&all[0])?;
    if owner == NOBODY {
        kill_process_group(target, Signal::TERM).context("the tree cannot be signalled")?;
    }
    all.iter().try_for_each(wait_for)?;
    Ok(micros(started.elapsed()))
}

fn wait_for(process: &OwnedFd) -> Result<()> {
    poll(&mut [PollFd::new(process, PollFlags::IN)], None).context("a member cannot be waited for")?;
    Ok(())
}

/// Is a host that is to be killed: starts a tree, names itself, the target and the other members, and waits.
pub(crate) fn host(owner: &str) -> Result<()> {
    let tree = helper::command("sleepers", &[MEMBERS])?;
    let itself = rustix::process::getpid();
    if owner == NOBODY {
        let program = Program::new(&tree[0], tree[1..].iter().map(String::as_str))?;
        let (ready, says_ready) = pipe_with(PipeFlags::CLOEXEC)?;
        let target = Cloner::new()?.spawn(&program, says_ready.as_fd(), rustix::stdio::stderr())?;
        rustix::io::read(&ready, &mut [0; 16])?;
        name(itself, &members(&target)?);
        loop {
            rustix::event::pause();
        }
    }
    let tier = Tier::named(owner).with_context(|| format!("no tier is named {owner}"))?;
    let world = World::new(tier)?;
    let process = world.spawn(&tree, None)?;
    ensure!(world.said(&process)? == "ready\n", "the tree is not ready");
    let mut pids = world.members(&process)?;
    let target = process.pid().context("the target runs")?;
    pids.sort_by_key(|pid| *pid != target);
    name(itself, &pids);
    loop {
        rustix::event::pause();
    }
}

fn name(itself: Pid, pids: &[u32]) {
    let words: Vec<String> = pids.iter().map(ToString::to_string).collect();
    println!("{} {}", itself.as_raw_nonzero(), words.join(" "));
}

/// Lists a target, which leads its group, and its children.
fn members(target: &OwnedFd) -> Result<Vec<u32>> {
    let information = format!("/proc/self/fdinfo/{}", std::os::fd::AsRawFd::as_raw_fd(target));
    let information = std::fs::read_to_string(information)?;
    let pid = information
        .lines()
        .find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
        .context("a pidfd names its process")?;
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    Ok(std::iter::once(pid).chain(children).collect())
}
