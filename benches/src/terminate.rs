//! `terminate-1`, `-100`, `-1000`: from the call that ends a tree of sleepers until it is gone.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dsh_subprocess::Process;

use crate::candidate::{self, Candidate};
use crate::finding::{Finding, Name, Unit, of_samples};
use crate::helper;
use crate::host::numbers;
use crate::options::Row;
use crate::peers::{ProcessWrap, Processkit, TokioProcess};
use crate::project::{World, tiers};
use crate::turns::{Effort, micros, take};

/// Returns the size of the tree and how often it is ended.
fn shape(row: Row) -> (&'static str, Effort) {
    let effort = |rounds, seconds| Effort {
        warm_up: 1,
        rounds,
        time: Duration::from_secs(seconds),
    };
    match row {
        Row::Terminate1 => ("1", effort(200, 8)),
        Row::Terminate100 => ("100", effort(60, 10)),
        _ => ("1000", effort(15, 20)),
    }
}

/// Compares how long `end` takes on what `start` makes of the same command line.
fn candidate<Means: 'static, Tree>(
    name: Name,
    tree: &[String],
    means: impl FnOnce() -> Result<Means> + 'static,
    start: impl Fn(&Means, &[String]) -> Result<Tree> + 'static,
    end: impl Fn(&Means, Tree) -> Result<()> + 'static,
) -> Candidate {
    let tree = tree.to_vec();
    Candidate::new(name, move || {
        let means = means()?;
        Ok(move || {
            let tree = start(&means, &tree)?;
            let started = Instant::now();
            end(&means, tree)?;
            Ok(micros(started.elapsed()))
        })
    })
}

/// Starts a tree and waits until it has said that all of it is there.
fn start(world: &World, tree: &[String]) -> Result<Process> {
    let process = world.spawn(tree, None)?;
    let said = world.said(&process)?;
    ensure!(said == "ready\n", "the tree said {said:?}");
    Ok(process)
}

/// Returns everything that ends trees.
pub(crate) fn candidates(row: Row) -> Result<Vec<Candidate>> {
    let (members, _) = shape(row);
    let tree = helper::command("sleepers", &[members])?;
    let tree = tree.as_slice();

    let floor = move || Ok(numbers("kill-and-reap", &[members])?[0]);
    let mut candidates = vec![Candidate::new(Name::FLOOR, move || Ok(floor))];
    candidates.extend(tiers().into_iter().map(|tier| {
        let end = |world: &World, process: Process| world.terminate(&process);
        candidate(
            Name::project(tier.name()),
            tree,
            move || World::new(tier),
            start,
            end,
        )
    }));
    candidates.extend([
        candidate(
            TokioProcess::WITH_SESSION,
            tree,
            || TokioProcess::new(true),
            TokioProcess::start_tree,
            TokioProcess::end_tree,
        ),
        candidate(
            ProcessWrap::NAME,
            tree,
            ProcessWrap::new,
            ProcessWrap::start_tree,
            ProcessWrap::end_tree,
        ),
        candidate(
            Processkit::NAME,
            tree,
            Processkit::new,
            Processkit::start_tree,
            Processkit::end_tree,
        ),
    ]);
    Ok(candidates)
}

/// Measures a row.
pub(crate) fn measure(row: Row, rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let (_, effort) = shape(row);
    let taken = take(candidate::alone(row)?, effort.asked(rounds))?;
    Ok(of_samples(row, Unit::Micros, &taken))
}
