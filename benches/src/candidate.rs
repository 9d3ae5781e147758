//! Everything that a row compares, each in a host process of its own.
//!
//! A peer that forks leaves every page of its process to be copied at the next write, and one that starts threads changes
//! what a spawn costs: in one process each would be measured with the others' marks on it.

use std::cell::RefCell;
use std::io::{BufRead as _, Write as _};
use std::rc::Rc;

use anyhow::{Context as _, Result, anyhow, ensure};

use crate::finding::Name;
use crate::helper::Call;
use crate::host::Host;
use crate::options::Row;
use crate::peers::FORKING;
use crate::turns::Contender;
use crate::{collect, concurrent, linger, shell, spawn, terminal, terminate};

/// Takes one sample.
pub(crate) type Sampler = Box<dyn FnMut() -> Result<f64>>;

/// What can be compared, and is not made yet.
pub(crate) struct Candidate {
    pub(crate) name: Name,
    make: Box<dyn FnOnce() -> Result<Sampler>>,
}

impl Candidate {
    /// Compares what the samplers return that `make` makes.
    pub(crate) fn new<S: FnMut() -> Result<f64> + 'static>(
        name: Name,
        make: impl FnOnce() -> Result<S> + 'static,
    ) -> Self {
        let make = Box::new(move || -> Result<Sampler> { Ok(Box::new(make()?)) });
        Self { name, make }
    }
}

/// Returns what a row compares.
fn candidates(row: Row) -> Result<Vec<Candidate>> {
    Ok(match row {
        Row::Spawn | Row::Spawn4g => spawn::candidates(),
        Row::SpawnC16 | Row::SpawnC64 => concurrent::candidates(row),
        Row::Terminate1 | Row::Terminate100 | Row::Terminate1000 => terminate::candidates(row)?,
        Row::Linger => linger::candidates()?,
        Row::Collect | Row::CollectSpill => collect::candidates(row)?,
        Row::PtySpawn => terminal::spawn::candidates(),
        Row::PtyEcho => terminal::echo::candidates()?,
        Row::PtyBulkCooked | Row::PtyBulkRaw => terminal::bulk::candidates(row)?,
        Row::PtyInspect => terminal::inspect::candidates(),
        Row::ShellCall | Row::McpCall => shell::call::candidates(row),
        Row::ShellC64 => shell::concurrent::candidates(),
        Row::Idle1000 | Row::HostDeath | Row::PtyIdle200 => Vec::new(),
    })
}

/// Starts a host for each candidate of a row.
pub(crate) fn alone(row: Row) -> Result<Vec<Contender<'static>>> {
    let names = candidates(row)?.into_iter().map(|candidate| candidate.name);
    together(row, 0, names.map(|name| vec![name]).collect())
}

/// Starts two hosts of so much resident memory for the candidates of a row: one for those that fork, one for the others.
pub(crate) fn in_large_hosts(row: Row, gib: usize) -> Result<Vec<Contender<'static>>> {
    let names = candidates(row)?.into_iter().map(|candidate| candidate.name);
    let (forking, others) = names.partition(|name| FORKING.contains(name));
    together(row, gib, vec![others, forking])
}

/// Starts a host for each group of candidates.
fn together(row: Row, gib: usize, groups: Vec<Vec<Name>>) -> Result<Vec<Contender<'static>>> {
    let mut contenders = Vec::new();
    for group in groups {
        let names: Vec<String> = group.iter().map(ToString::to_string).collect();
        let mut arguments = vec![row.name().to_owned(), gib.to_string()];
        arguments.extend(names);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let host = Rc::new(RefCell::new(Host::start("compare", &arguments)?));
        for (index, name) in group.into_iter().enumerate() {
            let host = Rc::clone(&host);
            contenders.push(Contender::new(name, move || {
                let mut host = host.borrow_mut();
                host.ask(&index.to_string())?;
                let answer = host.answer()?;
                // What is no number says what went wrong.
                answer.parse().map_err(|_| anyhow!(answer))
            }));
        }
    }
    Ok(contenders)
}

/// Is a host: makes memory resident, and takes a sample of the candidate whose number it is told, until nothing follows. A
/// candidate is made when it is asked for first.
pub(crate) fn serve(call: &Call) -> Result<()> {
    let row = call.argument(0)?;
    let gib: usize = call.argument(1)?;
    let mut memory = vec![0_u8; gib << 30];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    let mut made: Vec<Option<Sampler>> = Vec::new();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let index: usize = line?.parse().context("the number of a candidate is asked for")?;
        if made.len() <= index {
            made.resize_with(index + 1, || None);
        }
        let sample = match &mut made[index] {
            Some(sampler) => sampler(),
            empty => {
                make(row, &call.argument::<String>(2 + index)?).and_then(|sampler| empty.insert(sampler)())
            }
        };
        match sample {
            Ok(sample) => writeln!(out, "{sample}")?,
            Err(error) => writeln!(out, "{}", format!("{error:#}").replace('\n', " "))?,
        }
    }
    std::hint::black_box(&memory);
    Ok(())
}

fn make(row: Row, name: &str) -> Result<Sampler> {
    let mut candidates = candidates(row)?;
    candidates.retain(|candidate| candidate.name.to_string() == name);
    ensure!(candidates.len() == 1, "{row} compares no {name}");
    candidates
        .into_iter()
        .next()
        .map(|candidate| (candidate.make)())
        .context("there is one")?
}
