//! A scenario of many trees, each of which meets a fault.

use std::error::Error;
use std::fs;
use std::future::Future;
use std::num::NonZeroU64;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use dsh_subprocess::{Collect, ErrorKind, Output, Process, SpawnSpec, Spill, SpillLife, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use fastrand::Rng;
use tokio_util::sync::CancellationToken;

use super::fault::{Fault, Ground};
use super::{Peculiar, Report, announced, spec};
use crate::facts::open_descriptors;

/// Far more than a fault may cost on a loaded machine.
const BOUND: Duration = Duration::from_secs(30);

/// A tree's target, and whom it takes with it.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Ends at once.
    Brief,
    /// Stays.
    Sleeper,
    /// Has members; where the mechanism owns them, also in a session of their own.
    Family,
    /// The same, and all of them ignore `SIGTERM`.
    Stubborn,
    /// Writes more than its window holds, and stays.
    Spiller,
}

/// `faults CYCLES SPILLS [SEED]`: so many trees are spawned and ended, each with a fault that a generator chooses; `SPILLS` is
/// the directory in which the runtime makes its own. Reports the seed, how often each fault was met, and what the host has
/// before and after: descriptors, children and threads.
pub(super) fn faults(peculiar: &Peculiar, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let cycles: usize = crate::number(args, 0, "the number of cycles")?;
    let spills = args.get(1).ok_or("the directory of the spills is missing")?;
    let seed = match args.get(2) {
        Some(_) => crate::number(args, 2, "the seed")?,
        None => fastrand::u64(..),
    };
    report.number("seed", seed);
    let mut random = Rng::with_seed(seed);
    // What a process makes once and keeps is there after the first runtime.
    let first = peculiar.runtime()?;
    let ground = Ground::new(&first, Path::new(spills))?;
    for fault in Fault::all(&ground) {
        cycle(&first, &ground, fault, &mut random)
            .map_err(|error| format!("warming up, {fault:?}: {error}"))?;
    }
    within(first.dispose())??;
    drop(first);
    let before = settled(None)?;
    report.line("before", &before);

    let runtime = peculiar.runtime()?;
    let all = Fault::all(&ground);
    let mut met = vec![0_usize; all.len()];
    let mut most = 0;
    let mut last = Fault::None;
    for count in 0..cycles {
        let chosen = random.usize(..all.len());
        cycle(&runtime, &ground, all[chosen], &mut random).map_err(|error| {
            format!(
                "cycle {count} of seed {seed}, {:?} after {last:?}: {error}",
                all[chosen]
            )
        })?;
        met[chosen] += 1;
        last = all[chosen];
        if count % 64 == 0 {
            most = most.max(open_descriptors()?.len());
            // Whoever waits for the next line waits for no more than these.
            report.number("cycle", count);
        }
    }
    for (fault, times) in all.iter().zip(met) {
        report.line("met", format!("{fault:?} {times}"));
    }
    report.number("most-descriptors", most);
    within(runtime.dispose())??;
    drop(runtime);
    report.line("after", settled(Some(&before))?);
    Ok(())
}

/// Tells what the host has, as soon as it has no more than expected, or after a while. Threads and orphans take a moment to
/// go, which nobody is told of.
fn settled(expected: Option<&str>) -> Result<String, Box<dyn Error>> {
    let deadline = Instant::now() + BOUND;
    loop {
        let threads: Vec<_> = fs::read_dir("/proc/self/task")?.collect::<Result<_, _>>()?;
        let children = threads
            .iter()
            .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let children: usize = children.map(|list| list.split_whitespace().count()).sum();
        let has = format!(
            "{} descriptors, {children} children, {} threads",
            open_descriptors()?.len(),
            threads.len()
        );
        let done = match expected {
            Some(expected) => has == expected,
            None => children == 0 && threads.len() == 1,
        };
        if done || Instant::now() > deadline {
            return Ok(has);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// One tree from its spawn to its end.
fn cycle(
    runtime: &LocalRuntime,
    ground: &Ground,
    fault: Fault,
    random: &mut Rng,
) -> Result<(), Box<dyn Error>> {
    let shape = match fault {
        Fault::SpillsRemoved => Shape::Spiller,
        // What such a warden leaves is the runtime warden's, which grants it more than this test has time for.
        Fault::TreeWardenKilled => random
            .choice([Shape::Brief, Shape::Sleeper, Shape::Family, Shape::Spiller])
            .ok_or("there are shapes")?,
        _ => random
            .choice([
                Shape::Brief,
                Shape::Sleeper,
                Shape::Family,
                Shape::Stubborn,
                Shape::Spiller,
            ])
            .ok_or("there are shapes")?,
    };
    live(runtime, ground, fault, shape, random).map_err(|error| format!("{shape:?}: {error}").into())
}

fn live(
    runtime: &LocalRuntime,
    ground: &Ground,
    fault: Fault,
    shape: Shape,
    random: &mut Rng,
) -> Result<(), Box<dyn Error>> {
    let hunger = fault.at_birth(random)?;
    let process = runtime.spawn(tree(shape, ground.owns_all))?;
    let started = within(process.started())?;
    drop(hunger);
    if let Err(error) = started {
        if !fault.may_be(error.kind()) {
            return Err(format!("it did not start: {:?}: {error}", error.kind()).into());
        }
        within(process.terminate())??;
        return Ok(());
    }
    if matches!(shape, Shape::Family | Shape::Stubborn | Shape::Spiller) {
        match announced(&process, "ready") {
            // The host may have killed it: it could not have waited for its end.
            Ok(_) => {}
            Err(unsaid) => match within(process.done())? {
                Err(error) if fault.may_be(error.kind()) => {}
                ended => return Err(format!("{unsaid}; it ended: {ended:?}").into()),
            },
        }
    }
    let inflicted = fault.inflict(ground, &process, random)?;
    let ending = process.terminate();
    let end = if inflicted.lasts() {
        // The bound of its end is waited out.
        let end = within(ending)?;
        drop(inflicted);
        end
    } else {
        drop(inflicted);
        within(ending)?
    };
    match end {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::Survivors => gone(&process)?,
        Err(error) if fault.may_be(error.kind()) => {}
        Err(error) => return Err(format!("it did not end: {:?}: {error}", error.kind()).into()),
    }
    match within(process.done())? {
        Ok(_) => Ok(()),
        Err(error) if fault.may_be(error.kind()) => Ok(()),
        Err(error) => Err(format!("how it ended is not known: {:?}: {error}", error.kind()).into()),
    }
}

/// Waits for the end of a tree that had outlived its `SIGKILL`. It has one now.
fn gone(process: &Process) -> Result<(), Box<dyn Error>> {
    let deadline = Instant::now() + BOUND;
    loop {
        match within(process.wait_for_exit(&CancellationToken::new()))? {
            Err(error) if error.kind() == ErrorKind::Survivors && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            gone => return gone.map(drop).map_err(Into::into),
        }
    }
}

fn tree(shape: Shape, owns_all: bool) -> SpawnSpec {
    let members = if owns_all {
        "sleep 300 & setsid sleep 300 &"
    } else {
        "sleep 300 & sleep 300 &"
    };
    let script = match shape {
        Shape::Brief => "exit 7".to_owned(),
        Shape::Sleeper => "exec sleep 300".to_owned(),
        Shape::Family => format!("{members} echo ready; exec sleep 300"),
        Shape::Stubborn => format!("trap '' TERM; {members} echo ready; exec sleep 300"),
        Shape::Spiller => "head -c 500 /dev/zero | tr '\\0' x; echo; echo ready; exec sleep 300".to_owned(),
    };
    let mut spec = spec(&["/bin/sh", "-c", &script]);
    spec.grace = Duration::from_millis(3);
    spec.drain = Duration::ZERO;
    spec.stdout = Output::Collect(Collect {
        max_bytes: 100,
        head_bytes: 0,
        spill: Some(Spill {
            max_bytes: NonZeroU64::MAX,
            life: SpillLife::Handle,
        }),
    });
    spec
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future, or tells that it never comes.
fn within<F: Future>(future: F) -> Result<F::Output, Box<dyn Error>> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let deadline = Instant::now() + BOUND;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("nothing happened within {BOUND:?}").into());
        }
        thread::park_timeout(left);
    }
}
