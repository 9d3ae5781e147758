//! `shell-c64`: many shell commands at once, by their number per second.

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::Result;

use super::shells::{Executor, bare, bare_under_tokio, call};
use crate::candidate::{self, Candidate};
use crate::concurrent::{CHILDREN, better_floor, rate};
use crate::finding::{Finding, Name, Unit, of_samples};
use crate::options::Row;
use crate::peers::{many_threads, on_threads, tasks};
use crate::project::tiers;
use crate::turns::{Effort, take};

const AT_ONCE: usize = 64;

const EFFORT: Effort = Effort {
    warm_up: 1,
    rounds: 60,
    time: Duration::from_secs(20),
};

/// The bare shells under tokio. The better of them and those with a thread each is the floor.
const FLOOR_UNDER_TOKIO: Name = Name {
    implementation: "floor",
    tier: Some("tokio"),
};

/// Returns everything that runs many shell commands at once.
pub(crate) fn candidates() -> Vec<Candidate> {
    let mut candidates = vec![
        Candidate::new(Name::FLOOR, || Ok(rate(|| on_threads(CHILDREN, AT_ONCE, bare)))),
        Candidate::new(FLOOR_UNDER_TOKIO, || {
            let executor = many_threads()?;
            Ok(rate(move || {
                tasks(&executor, CHILDREN, AT_ONCE, bare_under_tokio)
            }))
        }),
    ];
    candidates.extend(tiers().into_iter().map(|tier| {
        Candidate::new(Name::project(tier.name()), move || {
            let executor = Executor::new(tier, many_threads()?)?;
            Ok(rate(move || {
                tasks(&executor.tokio, CHILDREN, AT_ONCE, || {
                    let shell = executor.shell.clone();
                    async move { call(&shell).await }
                })
            }))
        })
    }));
    candidates
}

/// Measures the row.
pub(crate) fn measure(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let taken = take(candidate::alone(Row::ShellC64)?, EFFORT.asked(rounds))?;
    let taken = better_floor(taken, FLOOR_UNDER_TOKIO);
    Ok(of_samples(Row::ShellC64, Unit::PerSecond, &taken))
}
