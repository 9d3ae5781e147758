//! `spawn` and `spawn-4g`: one child from its start to the end of its streams and its tree.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::candidate::{self, Candidate};
use crate::finding::{Field, Finding, Name, Unit, add_beyond_cgroup, of_samples};
use crate::floor::{self, Cloner, Program};
use crate::host::kib_of;
use crate::options::Row;
use crate::peers::{PEERS, TokioProcess};
use crate::project::{World, tiers};
use crate::statistics::paired_ratio;
use crate::turns::{Contender, Effort, micros, take};

/// The shortest program there is.
pub(crate) const TRUE: &str = "/bin/true";

const ALONE: Effort = Effort {
    warm_up: 10,
    rounds: 1500,
    time: Duration::from_secs(15),
};
const FROM_A_LARGE_HOST: Effort = Effort {
    warm_up: 2,
    rounds: 200,
    time: Duration::from_secs(20),
};

const LARGE_HOST_GIB: usize = 4;
/// Hosts of that size that are there at once, with some room.
const NEEDED_GIB: usize = 2 * LARGE_HOST_GIB + 1;

/// Makes a sampler of how long `run` takes, in microseconds.
pub(crate) fn timed(mut run: impl FnMut() -> Result<()>) -> impl FnMut() -> Result<f64> {
    move || {
        let started = Instant::now();
        run()?;
        Ok(micros(started.elapsed()))
    }
}

/// Returns everything that runs one program.
pub(crate) fn candidates() -> Vec<Candidate> {
    let mut candidates = vec![Candidate::new(Name::FLOOR, || {
        let mut cloner = Cloner::new()?;
        let program = Program::new(TRUE, [])?;
        Ok(timed(move || floor::run(&mut cloner, &program)))
    })];
    candidates.extend(tiers().into_iter().map(|tier| {
        Candidate::new(Name::project(tier.name()), move || {
            let world = World::new(tier)?;
            Ok(timed(move || world.run(&[TRUE])))
        })
    }));
    candidates.extend(PEERS.into_iter().map(|(name, make)| {
        Candidate::new(name, move || {
            let peer = make()?;
            Ok(timed(move || peer.run(TRUE)))
        })
    }));
    candidates
}

/// Measures `spawn`.
pub(crate) fn measure(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let taken = take(candidate::alone(Row::Spawn)?, ALONE.asked(rounds))?;
    let mut found = of_samples(Row::Spawn, Unit::Micros, &taken);
    if let Some((_, tokio)) = taken.iter().find(|(name, _)| *name == TokioProcess::WITH_SESSION) {
        for (finding, (name, samples)) in found.iter_mut().zip(&taken) {
            if name.is_the_project() {
                finding
                    .numbers
                    .push((Field::TokioSetsidRatio, paired_ratio(tokio, samples)));
            }
        }
    }
    add_beyond_cgroup(&mut found, &taken);
    Ok(found)
}

/// Measures `spawn-4g`: a turn takes a sample in a host of 4 GiB and one in a small host.
pub(crate) fn measure_large(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let available = kib_of("/proc/meminfo", "MemAvailable")?;
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    let needed = (NEEDED_GIB << 20) as f64;
    ensure!(
        available >= needed,
        "spawn-4g needs {needed} KiB of free memory, there are {available}"
    );

    // For each contender, a pair per round: in the large host, and in the small one.
    let pairs = RefCell::new(Vec::new());
    let mut small = candidate::alone(Row::Spawn4g)?;
    let mut both = Vec::new();
    for mut large in candidate::in_large_hosts(Row::Spawn4g, LARGE_HOST_GIB)? {
        let name = large.name;
        let here = small
            .iter()
            .position(|contender| contender.name == name)
            .map(|at| small.swap_remove(at));
        let Some(mut here) = here else { continue };
        let index = pairs.borrow().len();
        pairs.borrow_mut().push((name, Vec::new()));
        let pairs = &pairs;
        both.push(Contender::new(name, move || {
            let pair = (large.sample()?, here.sample()?);
            pairs.borrow_mut()[index].1.push(pair);
            Ok(pair.0)
        }));
    }
    let effort = FROM_A_LARGE_HOST.asked(rounds);
    let taken = take(both, effort)?;

    let mut found = of_samples(Row::Spawn4g, Unit::Micros, &taken);
    for (name, pairs) in pairs.into_inner() {
        let (large, small): (Vec<f64>, Vec<f64>) = pairs.into_iter().skip(effort.warm_up).unzip();
        if let Some(finding) = found.iter_mut().find(|finding| finding.name == name) {
            finding
                .numbers
                .push((Field::SmallHostRatio, paired_ratio(&large, &small)));
        }
    }
    Ok(found)
}
