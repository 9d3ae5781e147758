//! `spawn-c16` and `spawn-c64`: many children at once, by their number per second.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::candidate::{self, Candidate};
use crate::finding::{Finding, Name, Unit, of_samples};
use crate::floor::{self, Cloner, Program};
use crate::options::Row;
use crate::peers::{PEERS, on_threads};
use crate::project::{World, tiers};
use crate::spawn::TRUE;
use crate::statistics::median;
use crate::turns::{Effort, take};

/// Children per sample.
pub(crate) const CHILDREN: usize = 256;

const EFFORT: Effort = Effort {
    warm_up: 1,
    rounds: 60,
    time: Duration::from_secs(15),
};

/// The raw loop on two threads. The better of it and the loop on one is the floor.
const FLOOR_ON_TWO: Name = Name {
    implementation: "floor",
    tier: Some("two threads"),
};

/// How many children are run at once.
fn at_once(row: Row) -> usize {
    if row == Row::SpawnC16 { 16 } else { 64 }
}

/// Makes a sampler of how many children per second `run` completes.
pub(crate) fn rate(mut run: impl FnMut() -> Result<()>) -> impl FnMut() -> Result<f64> {
    move || {
        let started = Instant::now();
        run()?;
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let children = CHILDREN as f64;
        Ok(children / started.elapsed().as_secs_f64())
    }
}

/// Runs the raw loop on this many threads.
fn raw(threads: usize) -> Result<()> {
    on_threads(threads, threads, || {
        let mut cloner = Cloner::new()?;
        let program = Program::new(TRUE, [])?;
        (0..CHILDREN / threads).try_for_each(|_| floor::run(&mut cloner, &program))
    })
}

/// Returns everything that runs many programs at once.
pub(crate) fn candidates(row: Row) -> Vec<Candidate> {
    let at_once = at_once(row);
    let mut candidates = vec![
        Candidate::new(Name::FLOOR, || Ok(rate(|| raw(1)))),
        Candidate::new(FLOOR_ON_TWO, || Ok(rate(|| raw(2)))),
    ];
    candidates.extend(tiers().into_iter().map(|tier| {
        Candidate::new(Name::project(tier.name()), move || {
            let world = World::new(tier)?;
            Ok(rate(move || world.run_many(&[TRUE], CHILDREN, at_once)))
        })
    }));
    candidates.extend(PEERS.into_iter().map(|(name, make)| {
        Candidate::new(name, move || {
            let peer = make()?;
            Ok(rate(move || peer.run_many(TRUE, CHILDREN, at_once)))
        })
    }));
    candidates
}

/// Measures a row.
pub(crate) fn measure(row: Row, rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let taken = better_floor(take(candidate::alone(row)?, EFFORT.asked(rounds))?, FLOOR_ON_TWO);
    Ok(of_samples(row, Unit::PerSecond, &taken))
}

/// Leaves the better of the floor and another one, as the floor.
pub(crate) fn better_floor(mut taken: Vec<(Name, Vec<f64>)>, other: Name) -> Vec<(Name, Vec<f64>)> {
    let at = taken.iter().position(|(name, _)| *name == other);
    if let Some((_, other)) = at.map(|at| taken.remove(at))
        && let Some((_, floor)) = taken.iter_mut().find(|(name, _)| *name == Name::FLOOR)
        && median(&other) > median(floor)
    {
        *floor = other;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_better_of_the_two() {
        for (one, two, better) in [(1.0, 2.0, 2.0), (3.0, 2.0, 3.0)] {
            let taken = vec![
                (Name::FLOOR, vec![one]),
                (FLOOR_ON_TWO, vec![two]),
                (Name::peer("p"), vec![9.0]),
            ];
            let left = better_floor(taken, FLOOR_ON_TWO);
            assert_eq!(left[0], (Name::FLOOR, vec![better]));
            assert_eq!(left.len(), 2);
        }
    }
}
