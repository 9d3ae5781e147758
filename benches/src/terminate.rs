//! `terminate-1`, `-100`, `-1000`: from the call that ends a tree of sleepers until it is gone.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use dsh_subprocess::Process;
use futures_executor::block_on;

use crate::finding::{Finding, Name, Unit, of_samples};
use crate::helper;
use crate::host::numbers;
use crate::options::Row;
use crate::peers::{ProcessWrap, Processkit, TokioProcess};
use crate::project::{self, World};
use crate::turns::{Contender, Effort, micros, take};

/// Returns the size of the tree and how often it is ended.
fn shape(row: Row) -> (&'static str, Effort) {
    let effort = |rounds, seconds| Effort {
        warm_up: 1,
        rounds,
        time: Duration::from_secs(seconds),
    };
    match row {
        Row::Terminate1 => ("1", effort(200, 8)),
        Row::Terminate100 => ("100", effort(60, 12)),
        _ => ("1000", effort(15, 25)),
    }
}

/// Samples how long `end` takes on what `start` made.
fn contender<'a, Means: 'a, Tree>(
    name: Name,
    means: Means,
    start: impl Fn(&Means) -> Result<Tree> + 'a,
    end: impl Fn(&Means, Tree) -> Result<()> + 'a,
) -> Contender<'a> {
    Contender::new(name, move || {
        let tree = start(&means)?;
        let started = Instant::now();
        end(&means, tree)?;
        Ok(micros(started.elapsed()))
    })
}

/// Starts a tree and waits until it has said that all of it is there.
fn start(world: &World, tree: &[String]) -> Result<Process> {
    let process = world.spawn(tree, None)?;
    let out = process
        .collected_stdout()
        .context("standard output is collected")?;
    block_on(out.changed(0));
    ensure!(out.text() == "ready\n", "the tree said {:?}", out.text());
    Ok(process)
}

/// Measures a row.
pub(crate) fn measure(row: Row, rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let (members, effort) = shape(row);
    let tree = helper::command("sleepers", &[members])?;
    let tree = tree.as_slice();

    let mut contenders = vec![Contender::new(Name::FLOOR, || {
        Ok(numbers("kill-and-reap", &[members])?[0])
    })];
    for world in project::worlds()? {
        let end = |_: &World, process: Process| Ok(block_on(process.terminate())?);
        contenders.push(contender(world.name(), world, |world| start(world, tree), end));
    }
    contenders.push(contender(
        TokioProcess::WITH_SESSION,
        TokioProcess::new(true)?,
        |tokio| tokio.start_tree(tree),
        TokioProcess::end_tree,
    ));
    contenders.push(contender(
        ProcessWrap::NAME,
        ProcessWrap::new()?,
        |wrap| wrap.start_tree(tree),
        ProcessWrap::end_tree,
    ));
    contenders.push(contender(
        Processkit::NAME,
        Processkit::new()?,
        |kit| kit.start_tree(tree),
        Processkit::end_tree,
    ));
    let taken = take(contenders, effort.asked(rounds))?;
    Ok(of_samples(row, Unit::Micros, &taken))
}
