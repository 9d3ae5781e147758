//! `shell-call` and `mcp-call`: one shell command that does nothing, from the call to its result.

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::Result;

use super::served::Served;
use super::shells::{Executor, bare, call};
use crate::candidate::{self, Candidate};
use crate::finding::{Finding, Name, Unit, of_samples};
use crate::options::Row;
use crate::peers::one_thread;
use crate::project::tiers;
use crate::spawn::timed;
use crate::turns::{Effort, take};

const EFFORT: Effort = Effort {
    warm_up: 10,
    rounds: 1000,
    time: Duration::from_secs(15),
};

/// Returns everything that runs one shell command.
pub(crate) fn candidates(row: Row) -> Vec<Candidate> {
    let mut candidates = vec![Candidate::new(Name::FLOOR, || Ok(timed(bare)))];
    candidates.extend(tiers().into_iter().map(|tier| {
        let name = Name::project(tier.name());
        if row == Row::McpCall {
            Candidate::new(name, move || {
                let served = Served::new(tier)?;
                Ok(timed(move || served.call()))
            })
        } else {
            Candidate::new(name, move || {
                let executor = Executor::new(tier, one_thread()?)?;
                Ok(timed(move || executor.tokio.block_on(call(&executor.shell))))
            })
        }
    }));
    candidates
}

/// Measures a row.
pub(crate) fn measure(row: Row, rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let taken = take(candidate::alone(row)?, EFFORT.asked(rounds))?;
    Ok(of_samples(row, Unit::Micros, &taken))
}
