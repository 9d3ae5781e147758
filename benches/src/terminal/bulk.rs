//! `pty-bulk-cooked` and `pty-bulk-raw`: how fast what a program prints is taken off its terminal.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::contestants;
use super::processor::OneProcessor;
use crate::candidate::{self, Candidate};
use crate::finding::{Finding, Unit, of_samples};
use crate::floor::CHUNK;
use crate::helper::{self, Mode};
use crate::options::Row;
use crate::turns::{Effort, take};

/// Mebibytes that the program prints.
const PRINTED_MIB: u32 = 64;

const EFFORT: Effort = Effort {
    warm_up: 1,
    rounds: 15,
    time: Duration::from_secs(20),
};

/// Returns how a row's program has its terminal.
fn mode(row: Row) -> Mode {
    if row == Row::PtyBulkRaw {
        Mode::Raw
    } else {
        Mode::Cooked
    }
}

/// Returns everything that reads a terminal.
pub(crate) fn candidates(row: Row) -> Result<Vec<Candidate>> {
    let mode = mode(row);
    let printed = u64::from(PRINTED_MIB) << 20;
    let argv = helper::command("print", &[&printed.to_string(), mode.name()])?;
    Ok(contestants::candidates(move |mut terminals| {
        let argv = argv.clone();
        let mut buffer = vec![0; CHUNK];
        Ok(move || {
            let started = Instant::now();
            let came_out = terminals.run(&argv, &mut buffer)?;
            let took = started.elapsed();
            let expected = mode.comes_out(printed);
            ensure!(came_out == expected, "{came_out} of {expected} bytes came out");
            Ok(f64::from(PRINTED_MIB) / took.as_secs_f64())
        })
    }))
}

/// Measures a row.
pub(crate) fn measure(row: Row, rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let _one = OneProcessor::stay()?;
    let taken = take(candidate::alone(row)?, EFFORT.asked(rounds))?;
    Ok(of_samples(row, Unit::MebibytesPerSecond, &taken))
}
