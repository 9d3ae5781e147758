//! `spawn` and `spawn-4g`: one child from its start to the end of its streams and its tree.

use std::cell::RefCell;
use std::io::{BufRead as _, Write as _};
use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::finding::{Field, Finding, Name, Unit, of_samples};
use crate::floor::{self, Cloner, Program};
use crate::host::{Host, kib_of};
use crate::options::Row;
use crate::peers::{self, TokioProcess};
use crate::project;
use crate::statistics::paired_ratio;
use crate::turns::{Contender, Effort, take};

/// The shortest program there is.
pub(crate) const TRUE: &str = "/bin/true";

const ALONE: Effort = Effort {
    warm_up: 10,
    rounds: 1500,
    time: Duration::from_secs(18),
};
const FROM_A_LARGE_HOST: Effort = Effort {
    warm_up: 2,
    rounds: 200,
    time: Duration::from_secs(25),
};

const LARGE_HOST_GIB: usize = 4;

/// Everything that runs one program, in this host.
fn contenders() -> Result<Vec<Contender<'static>>> {
    let mut cloner = Cloner::new()?;
    let program = Program::new(TRUE, [])?;
    let mut contenders = vec![Contender::timed(Name::FLOOR, move || {
        floor::run(&mut cloner, &program)
    })];
    for world in project::worlds()? {
        contenders.push(Contender::timed(world.name(), move || world.run(&[TRUE])));
    }
    for peer in peers::all()? {
        contenders.push(Contender::timed(peer.name(), move || peer.run(TRUE)));
    }
    Ok(contenders)
}

/// Measures `spawn`.
pub(crate) fn alone(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let taken = take(contenders()?, ALONE.asked(rounds))?;
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
    Ok(found)
}

/// Measures `spawn-4g`: a round takes a sample of each contender in a host of 4 GiB and one in this small host.
pub(crate) fn from_a_large_host(rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let needed = (LARGE_HOST_GIB + 1) << 20;
    let available = kib_of("/proc/meminfo", "MemAvailable")?;
    #[expect(clippy::cast_precision_loss, reason = "a few million")]
    let enough = available >= needed as f64;
    ensure!(
        enough,
        "spawn-4g needs {needed} KiB of free memory, there are {available}"
    );

    let mut large = Host::start("large-host", &[&LARGE_HOST_GIB.to_string()])?;
    ensure!(large.answer()? == "ready", "the large host is not ready");
    let large = RefCell::new(large);
    let ask = |index: usize| -> Result<f64> {
        let mut host = large.borrow_mut();
        host.ask(&index.to_string())?;
        let answer = host.answer()?;
        let failed = || format!("in the host of {LARGE_HOST_GIB} GiB: {answer}");
        answer.parse().with_context(failed)
    };
    // For each contender, a pair per round: in the large host, and here.
    let pairs = RefCell::new(Vec::new());
    let mut both = Vec::new();
    for (index, mut here) in contenders()?.into_iter().enumerate() {
        pairs.borrow_mut().push((here.name, Vec::new()));
        let (pairs, ask) = (&pairs, &ask);
        both.push(Contender::new(here.name, move || {
            let pair = (ask(index)?, here.sample()?);
            pairs.borrow_mut()[index].1.push(pair);
            Ok(pair.0)
        }));
    }
    let effort = FROM_A_LARGE_HOST.asked(rounds);
    let taken = take(both, effort)?;
    large.into_inner().end()?;

    let mut found = of_samples(Row::Spawn4g, Unit::Micros, &taken);
    for (name, pairs) in pairs.into_inner() {
        let (there, here): (Vec<f64>, Vec<f64>) = pairs.into_iter().skip(effort.warm_up).unzip();
        if let Some(finding) = found.iter_mut().find(|finding| finding.name == name) {
            finding
                .numbers
                .push((Field::SmallHostRatio, paired_ratio(&there, &here)));
        }
    }
    Ok(found)
}

/// Is the large host: makes its memory resident, and takes a sample of the contender whose number it is told.
pub(crate) fn serve(gib: usize) -> Result<()> {
    let mut contenders = contenders()?;
    let mut memory = vec![0_u8; gib << 30];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        let index: usize = line?.parse().context("the number of a contender is asked for")?;
        let contender = contenders.get_mut(index).context("there is no such contender")?;
        match contender.sample() {
            Ok(sample) => writeln!(out, "{sample}")?,
            Err(error) => writeln!(out, "{error:#}")?,
        }
    }
    std::hint::black_box(&memory);
    Ok(())
}
