//! `idle-1000`: what a thousand children cost a host while nothing happens.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::gettid;

use crate::finding::{Field, Finding, Name};
use crate::host::{kib_of, memory_kib, numbers};
use crate::options::Row;
use crate::peers::{Peer as _, TokioProcess};
use crate::project::{Tier, World, tiers};
use crate::spawn::TRUE;

const CHILDREN: usize = 1000;
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(2);
/// Until this long after the last child started, the host may still be falling asleep.
const SETTLING: Duration = Duration::from_millis(100);
const SETTLED_WITHIN: u32 = 100;

const SLEEP: [&str; 2] = ["/bin/sleep", "1000"];

/// Measures the row, each contender in a host of its own.
pub(crate) fn measure() -> Result<Vec<Finding>> {
    let mut names: Vec<Name> = tiers()
        .into_iter()
        .map(|tier| Name::project(tier.name()))
        .collect();
    names.push(TokioProcess::NAME);
    let found = names.into_iter().map(|name| {
        let which = name.tier.unwrap_or(name.implementation);
        let numbers = numbers("idle-host", &[which, &CHILDREN.to_string()])?;
        let [wake_ups, kib, descriptors, warden_kib] = numbers[..] else {
            bail!("the idle host said {numbers:?}")
        };
        let mut numbers = vec![
            (Field::WakeUps, wake_ups),
            (Field::KibPerChild, kib),
            (Field::DescriptorsPerChild, descriptors),
        ];
        if warden_kib > 0.0 {
            numbers.push((Field::WardenKib, warden_kib));
        }
        Ok(Finding::new(Row::Idle1000, name, numbers))
    });
    found.collect()
}

/// What is counted of a host.
#[derive(Clone, Copy, Debug)]
struct Load {
    resident_kib: f64,
    descriptors: usize,
    /// The proportional set size of a tree warden, where there are any.
    warden_kib: f64,
}

impl Load {
    fn now() -> Result<Self> {
        let descriptors = fs::read_dir("/proc/self/fd")
            .context("the descriptors cannot be counted")?
            .count();
        Ok(Self {
            resident_kib: memory_kib("VmRSS")?,
            descriptors,
            warden_kib: 0.0,
        })
    }
}

/// Is an idle host: starts children, awaits them, and prints the wake-ups of its threads, the KiB and the descriptors that
/// each child cost it.
pub(crate) fn host(which: &str, count: usize) -> Result<()> {
    allow_descriptors(count * 4 + 100)?;
    let (before, (wake_ups, after)) = if let Some(tier) = Tier::named(which) {
        let world = World::new(tier)?;
        // What the first child costs is the runtime's, not the child's.
        world.run(&[TRUE])?;
        let before = Load::now()?;
        let measured = world.await_many(&SLEEP, count, watch)?;
        (before, measured)
    } else {
        ensure!(
            which == TokioProcess::NAME.implementation,
            "no host is named {which}"
        );
        let tokio = TokioProcess::new(false)?;
        tokio.run(TRUE)?;
        (Load::now()?, tokio.await_sleepers(&SLEEP, count, watch)?)
    };
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let per_child = |number: f64| number / count as f64;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let descriptors = after.descriptors as f64 - before.descriptors as f64;
    println!(
        "{wake_ups} {} {} {}",
        per_child(after.resident_kib - before.resident_kib),
        per_child(descriptors),
        after.warden_kib
    );
    Ok(())
}

/// Counts how often the other threads of this process were woken up or preempted in a while in which nothing happens.
fn watch() -> Result<(u64, Load)> {
    // Whoever is still falling asleep is given the time to; who never does is counted.
    let mut before = switches()?;
    for _ in 0..SETTLED_WITHIN {
        std::thread::sleep(SETTLING);
        let now = switches()?;
        if std::mem::replace(&mut before, now.clone()) == now {
            break;
        }
    }
    std::thread::sleep(IDLE);
    let after = switches()?;
    let mut load = Load::now()?;
    load.warden_kib = warden_kib()?;
    let woken = after
        .iter()
        .map(|(thread, count)| count - before.get(thread).unwrap_or(&0))
        .sum();
    Ok((woken, load))
}

/// Returns the mean proportional set size of the parents of the sleepers, where those are not this process.
fn warden_kib() -> Result<f64> {
    let mut wardens = Vec::new();
    for process in fs::read_dir("/proc").context("the processes cannot be listed")? {
        let path = process?.path();
        // Processes come and go; what cannot be read is none of ours.
        let Ok(line) = fs::read(path.join("cmdline")) else {
            continue;
        };
        let Ok(status) = fs::read_to_string(path.join("status")) else {
            continue;
        };
        let sleeps = line
            .split(|&byte| byte == 0)
            .eq(SLEEP.map(str::as_bytes).into_iter().chain([&b""[..]]));
        let parent = status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
        if let Some(parent) = parent
            && sleeps
            && fs::read_to_string(format!("/proc/{parent}/comm")).is_ok_and(|name| name == "dsh-warden\n")
        {
            wardens.push(parent);
        }
    }
    if wardens.is_empty() {
        return Ok(0.0);
    }
    let mut total = 0.0;
    for &warden in &wardens {
        total += kib_of(&format!("/proc/{warden}/smaps_rollup"), "Pss")?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let count = wardens.len() as f64;
    Ok(total / count)
}

/// Returns the context switches of each thread but the calling one.
fn switches() -> Result<BTreeMap<String, u64>> {
    let own = gettid().as_raw_nonzero().to_string();
    let mut switches = BTreeMap::new();
    for task in fs::read_dir("/proc/self/task").context("the threads cannot be listed")? {
        let thread = task?
            .file_name()
            .into_string()
            .ok()
            .context("a thread is named by its number")?;
        if thread == own {
            continue;
        }
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status"))?;
        let counts = status.lines().filter_map(|line| {
            let count = line
                .strip_prefix("voluntary_ctxt_switches:")
                .or(line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
            count.trim().parse::<u64>().ok()
        });
        switches.insert(thread, counts.sum());
    }
    Ok(switches)
}

/// Lets this process have so many descriptors.
fn allow_descriptors(needed: usize) -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = needed as u64;
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(needed),
            maximum,
        },
    )
    .with_context(|| format!("{needed} descriptors are needed, {maximum:?} are allowed"))
}
