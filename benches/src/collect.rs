//! `collect` and `collect-spill`: how fast a child's output is taken off its pipe.

use std::fs::{self, DirEntry, File};
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use dsh_subprocess::SpillState;
use tempfile::TempDir;

use crate::candidate::{self, Candidate};
use crate::finding::{Field, Finding, Name, Unit, of_samples};
use crate::floor::{self, CHUNK, Cloner, Program};
use crate::helper;
use crate::host::{memory_kib, numbers};
use crate::options::Row;
use crate::peers::{Processkit, StdProcess, TokioProcess};
use crate::project::{self, Tier, World, tiers};
use crate::spawn::TRUE;
use crate::turns::{Effort, take};

/// Bytes that a collected stream retains.
pub(crate) const RETAINED: usize = 64 * 1024;

/// Bytes that the child writes.
const WRITTEN: u64 = 2 << 30;

const COLLECT: Effort = Effort {
    warm_up: 1,
    rounds: 15,
    time: Duration::from_secs(20),
};
const SPILL: Effort = Effort {
    warm_up: 0,
    rounds: 10,
    time: Duration::from_secs(30),
};

/// Returns the command line of the child.
fn writer() -> Result<Vec<String>> {
    helper::command("write", &[&WRITTEN.to_string()])
}

/// Makes a sampler of the mebibytes per second of `run`.
fn rate(mut run: impl FnMut() -> Result<Taken>) -> impl FnMut() -> Result<f64> {
    move || {
        let started = Instant::now();
        let taken = run()?;
        let took = started.elapsed();
        ensure!(
            taken.bytes == WRITTEN,
            "{} of {WRITTEN} bytes arrived",
            taken.bytes
        );
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let mebibytes = (WRITTEN >> 20) as f64;
        (taken.tidy)()?;
        Ok(mebibytes / took.as_secs_f64())
    }
}

/// What came off the pipe.
struct Taken {
    bytes: u64,
    /// Called once the clock has stopped: removing a large file takes its time, and is nobody's throughput.
    tidy: Box<dyn FnOnce() -> Result<()>>,
}

impl Taken {
    fn new(bytes: u64) -> Self {
        Self::with(bytes, || Ok(()))
    }

    fn with(bytes: u64, tidy: impl FnOnce() -> Result<()> + 'static) -> Self {
        Self {
            bytes,
            tidy: Box::new(tidy),
        }
    }

    fn with_file(bytes: u64, file: File) -> Self {
        Self::with(bytes, move || {
            drop(file);
            Ok(())
        })
    }
}

/// Makes a directory in a file system that is memory where there is one: how fast a disk takes the file is not the question.
fn directory() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::tempdir_in(&parent).with_context(|| format!("no directory can be made in {}", parent.display()))
}

/// Waits until no file is left below a directory: this project removes a spill on a thread of its own.
fn wait_until_empty(directory: &Path) -> Result<()> {
    for _ in 0..1000 {
        let mut files = 0;
        for entry in fs::read_dir(directory)? {
            files += fs::read_dir(entry?.path())?
                .filter(|file| file.as_ref().is_ok_and(is_a_spill))
                .count();
        }
        if files == 0 {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!("a spill is still there in {}", directory.display())
}

/// Tells a spilled stream from what else a runtime keeps beside it, which is small.
fn is_a_spill(file: &DirEntry) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() >= WRITTEN)
}

/// A runtime and where it spills.
struct Spiller {
    world: World,
    directory: Rc<TempDir>,
}

impl Spiller {
    fn new(tier: Tier) -> Result<Self> {
        let directory = directory()?;
        Ok(Self {
            world: World::with_spills_in(tier, directory.path())?,
            directory: Rc::new(directory),
        })
    }

    /// Runs the child through this project.
    fn take(&self, writer: &[String], row: Row) -> Result<Taken> {
        let spilled = row == Row::CollectSpill;
        let process = self.world.spawn(writer, spilled.then(project::spill))?;
        self.world.finish(&process)?;
        let out = process
            .collected_stdout()
            .context("standard output is collected")?;
        ensure!(out.snapshot().tail.len() == RETAINED, "the tail is short");
        let bytes = match (spilled, out.spill()) {
            (false, _) => out.total(),
            (true, SpillState::Available(stream)) => stream.length,
            (true, other) => bail!("the stream was not spilled: {other:?}"),
        };
        let directory = Rc::clone(&self.directory);
        Ok(Taken::with(bytes, move || {
            // With the handle goes its spill.
            drop(process);
            wait_until_empty(directory.path())
        }))
    }
}

/// Returns everything that takes output off a pipe; with a file, everything that writes it to one.
pub(crate) fn candidates(row: Row) -> Result<Vec<Candidate>> {
    let writer = writer()?;
    let mut candidates = if row == Row::Collect {
        readers(&writer)
    } else {
        copiers(&writer)
    };
    candidates.extend(tiers().into_iter().map(|tier| {
        let writer = writer.clone();
        Candidate::new(Name::project(tier.name()), move || {
            let spiller = Spiller::new(tier)?;
            Ok(rate(move || spiller.take(&writer, row)))
        })
    }));
    Ok(candidates)
}

fn program(writer: &[String]) -> Result<Program> {
    Program::new(&writer[0], writer[1..].iter().map(String::as_str))
}

fn readers(writer: &[String]) -> Vec<Candidate> {
    let [floor, blocking, tokio, kit] = [(); 4].map(|()| writer.to_vec());
    vec![
        Candidate::new(Name::FLOOR, move || {
            let (mut cloner, program, mut buffer) = (Cloner::new()?, program(&floor)?, vec![0; CHUNK]);
            Ok(rate(move || {
                Ok(Taken::new(floor::read(
                    &mut cloner,
                    &program,
                    &mut buffer,
                    |_| Ok(()),
                )?))
            }))
        }),
        Candidate::new(StdProcess::NAME, move || {
            let mut buffer = vec![0; CHUNK];
            Ok(rate(move || {
                Ok(Taken::new(StdProcess::read(&blocking, &mut buffer)?))
            }))
        }),
        Candidate::new(TokioProcess::NAME, move || {
            let (process, mut buffer) = (TokioProcess::new(false)?, vec![0; CHUNK]);
            Ok(rate(move || Ok(Taken::new(process.read(&tokio, &mut buffer)?))))
        }),
        Candidate::new(Processkit::NAME, move || {
            let process = Processkit::new()?;
            Ok(rate(move || Ok(Taken::new(process.read(&kit)?))))
        }),
    ]
}

fn copiers(writer: &[String]) -> Vec<Candidate> {
    let file = || {
        let directory = directory()?;
        // The file outlives its name.
        tempfile::tempfile_in(directory.path()).context("no file to write to")
    };
    let [floor, blocking, tokio] = [(); 3].map(|()| writer.to_vec());
    vec![
        Candidate::new(Name::FLOOR, move || {
            let (mut cloner, program, mut buffer) = (Cloner::new()?, program(&floor)?, vec![0; CHUNK]);
            Ok(rate(move || {
                let file = file()?;
                let bytes = floor::read_and_write(&mut cloner, &program, &mut buffer, &file)?;
                Ok(Taken::with_file(bytes, file))
            }))
        }),
        Candidate::new(StdProcess::NAME, move || {
            Ok(rate(move || {
                let mut file = file()?;
                let bytes = StdProcess::copy(&blocking, &mut file)?;
                Ok(Taken::with_file(bytes, file))
            }))
        }),
        Candidate::new(TokioProcess::NAME, move || {
            let process = TokioProcess::new(false)?;
            Ok(rate(move || {
                let file = file()?;
                let bytes = process.copy(&tokio, file.try_clone()?)?;
                Ok(Taken::with_file(bytes, file))
            }))
        }),
    ]
}

/// Measures a row.
pub(crate) fn measure(row: Row, rounds: Option<NonZeroUsize>) -> Result<Vec<Finding>> {
    let effort = if row == Row::Collect { COLLECT } else { SPILL };
    let taken = take(candidate::alone(row)?, effort.asked(rounds))?;
    let mut found = of_samples(row, Unit::MebibytesPerSecond, &taken);
    for finding in &mut found {
        if let Some(tier) = finding.name.tier {
            let growth = numbers("collecting-host", &[tier, row.name()])?[0];
            finding.numbers.push((Field::MemoryGrowthKib, growth));
        }
    }
    Ok(found)
}

/// Is a host that collects one stream: prints by how many KiB its peak of resident memory grew beyond what was resident
/// before, after a first child that wrote nothing.
pub(crate) fn host(tier: &str, row: Row) -> Result<()> {
    let tier = Tier::named(tier).context("there is no such tier")?;
    let spiller = Spiller::new(tier)?;
    spiller.world.run(&[TRUE])?;
    // 5 resets the peak to what is resident now (proc(5)).
    fs::write("/proc/self/clear_refs", "5").context("the peak of resident memory cannot be reset")?;
    let before = memory_kib("VmRSS")?;
    let taken = spiller.take(&writer()?, row)?;
    ensure!(
        taken.bytes == WRITTEN,
        "{} of {WRITTEN} bytes arrived",
        taken.bytes
    );
    println!("{}", memory_kib("VmHWM")? - before);
    (taken.tidy)()
}
