//! `pty-echo`: a byte is typed, the program prints it, and it is read.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::contestants;
use super::processor::OneProcessor;
use crate::candidate::{self, Candidate};
use crate::finding::{Finding, Unit, of_samples};
use crate::helper::{self, READY};
use crate::options::Row;
use crate::statistics::median;
use crate::turns::{Effort, micros, take};

/// What is typed, one byte at a time. A sample is the median of as many round trips: one alone would be that of a program
/// that the other contenders' turns have made cold.
const TYPED: &[u8] = &[b'a'; 200];

const EFFORT: Effort = Effort {
    warm_up: 1,
    rounds: 200,
    time: Duration::from_secs(10),
};

/// Returns everything that types.
pub(crate) fn candidates() -> Result<Vec<Candidate>> {
    let argv = helper::command("echo", &[])?;
    Ok(contestants::candidates(move |terminals| {
        let mut conversation = terminals.converse(&argv)?;
        let first = conversation.hear()?;
        ensure!(first == READY, "the program said {first}");
        Ok(move || {
            let mut trips = Vec::with_capacity(TYPED.len());
            for &typed in TYPED {
                let started = Instant::now();
                let printed = conversation.exchange(typed)?;
                trips.push(micros(started.elapsed()));
                ensure!(printed == typed, "{typed} was typed and {printed} printed");
            }
            Ok(median(&trips))
        })
    }))
}

/// Measures the row.
pub(crate) fn measure(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let _one = OneProcessor::stay()?;
    let taken = take(candidate::alone(Row::PtyEcho)?, EFFORT.asked(rounds))?;
    Ok(of_samples(Row::PtyEcho, Unit::Micros, &taken))
}
