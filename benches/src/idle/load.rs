//! What a host of many children that do nothing is measured by.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::gettid;

use crate::finding::{Field, Finding, Name};
use crate::host::{kib_of, memory_kib, numbers};
use crate::options::Row;

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(2);
/// Until this long after the last child started, the host may still be falling asleep.
const SETTLING: Duration = Duration::from_millis(100);
const SETTLED_WITHIN: u32 = 100;

/// Asks a host of each name for its numbers, which it [tells](tell).
pub(super) fn ask(row: Row, call: &str, names: impl IntoIterator<Item = Name>) -> Result<Vec<Finding>> {
    let found = names.into_iter().map(|name| {
        let numbers = numbers(call, &[name.tier.unwrap_or(name.implementation)])?;
        let [wake_ups, kib, descriptors, threads, warden_kib] = numbers[..] else {
            bail!("the idle host said {numbers:?}")
        };
        let mut numbers = vec![
            (Field::WakeUps, wake_ups),
            (Field::KibPerChild, kib),
            (Field::DescriptorsPerChild, descriptors),
            (Field::Threads, threads),
        ];
        if warden_kib > 0.0 {
            numbers.push((Field::WardenKib, warden_kib));
        }
        Ok(Finding::new(row, name, numbers))
    });
    found.collect()
}

/// Prints the wake-ups of a host's threads, the KiB and the descriptors that each of its children cost it, the threads that
/// all of them did, and the KiB of a tree warden.
#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
pub(super) fn tell(before: &Load, (wake_ups, after): (u64, Load), count: usize) {
    let per_child = |number: f64| number / count as f64;
    let more = |after: usize, before: usize| after as f64 - before as f64;
    println!(
        "{wake_ups} {} {} {} {}",
        per_child(after.resident_kib - before.resident_kib),
        per_child(more(after.descriptors, before.descriptors)),
        more(after.threads, before.threads),
        after.warden_kib
    );
}

/// What is counted of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    resident_kib: f64,
    descriptors: usize,
    threads: usize,
    /// The proportional set size of a tree warden, where there are any.
    warden_kib: f64,
}

impl Load {
    pub(super) fn now() -> Result<Self> {
        let entries = |path| -> Result<usize> {
            let directory = fs::read_dir(path).with_context(|| format!("{path} cannot be listed"))?;
            Ok(directory.count())
        };
        Ok(Self {
            resident_kib: memory_kib("VmRSS")?,
            descriptors: entries("/proc/self/fd")?,
            threads: entries("/proc/self/task")?,
            warden_kib: 0.0,
        })
    }
}

/// Counts how often the other threads of this process were woken up or preempted in a while in which nothing happens, and
/// what its children, which run `argv`, cost it.
pub(super) fn watch(argv: &[&str]) -> Result<(u64, Load)> {
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
    load.warden_kib = warden_kib(argv)?;
    let woken = after
        .iter()
        .map(|(thread, count)| count - before.get(thread).unwrap_or(&0))
        .sum();
    Ok((woken, load))
}

/// Returns the mean proportional set size of the wardens whose children run `argv`, where there are any.
fn warden_kib(argv: &[&str]) -> Result<f64> {
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
        let runs_it = line
            .split(|&byte| byte == 0)
            .eq(argv.iter().map(|word| word.as_bytes()).chain([&b""[..]]));
        let parent = status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
        if let Some(parent) = parent
            && runs_it
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
pub(super) fn allow_descriptors(needed: usize) -> Result<()> {
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
