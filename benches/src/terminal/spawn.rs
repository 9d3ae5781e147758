//! `pty-spawn`: one child on a terminal, from its start to the end of what it printed and of its session.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::contestants;
use crate::candidate::{self, Candidate};
use crate::finding::{Finding, Unit, add_beyond_cgroup, of_samples};
use crate::options::Row;
use crate::spawn::TRUE;
use crate::turns::{Effort, micros, take};

const EFFORT: Effort = Effort {
    warm_up: 10,
    rounds: 1000,
    time: Duration::from_secs(15),
};

/// Returns everything that runs one program.
pub(crate) fn candidates() -> Vec<Candidate> {
    contestants::candidates(|mut terminals| {
        let argv = [TRUE.to_owned()];
        let mut buffer = [0; 512];
        Ok(move || {
            let started = Instant::now();
            let printed = terminals.run(&argv, &mut buffer)?;
            let took = started.elapsed();
            ensure!(printed == 0, "{TRUE} printed {printed} bytes");
            Ok(micros(took))
        })
    })
}

/// Measures the row.
pub(crate) fn measure(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let taken = take(candidate::alone(Row::PtySpawn)?, EFFORT.asked(rounds))?;
    let mut found = of_samples(Row::PtySpawn, Unit::Micros, &taken);
    add_beyond_cgroup(&mut found, &taken);
    Ok(found)
}
