//! Scenarios about many spawns in one host.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use dsh_subprocess::{Collect, Output, Process, SpawnSpec, Spill, SpillLife, SpillState, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use pollster::block_on;

use super::{Peculiar, Report, probe, spec};
use crate::facts::open_descriptors;

/// `drop-handles N`: starts N children that end at once, drops their handles, runs nothing else, and reports how many
/// children, running or zombie, the host still has when there are none, or after 10 s.
pub(super) fn drop_handles(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of children")?;
    for _ in 0..count {
        drop(runtime.spawn(spec(&["/bin/true"]))?);
    }
    // There is nothing to await by design: only the kernel's list can tell.
    let deadline = Instant::now() + Duration::from_secs(10);
    let left = loop {
        let left = children()?;
        if left.is_empty() || Instant::now() > deadline {
            break left;
        }
        thread::sleep(Duration::from_millis(5));
    };
    report.line("left", left.join(" "));
    report.line(
        "later",
        block_on(runtime.spawn(probe(&["exit", "7"])?)?.done())?.to_string(),
    );
    Ok(())
}

/// Lists the children of every thread of this process.
pub(super) fn children() -> std::io::Result<Vec<String>> {
    let mut all = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread that ended meanwhile has handed its children to another.
        let Ok(list) = std::fs::read_to_string(thread?.path().join("children")) else {
            continue;
        };
        all.extend(list.split_whitespace().map(str::to_owned));
    }
    Ok(all)
}

/// `descriptors RUNS FAILURES`: counts the host's descriptors before and after that many runs and failed spawns.
pub(super) fn descriptors(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let runs: usize = crate::number(args, 0, "the number of runs")?;
    let failures: usize = crate::number(args, 1, "the number of failures")?;
    let settle = |spec| -> Result<bool, Box<dyn Error>> {
        let process = runtime.spawn(spec)?;
        let done = block_on(process.done());
        block_on(process.terminate())?;
        Ok(done.is_ok())
    };
    // What a runtime makes once (a spare leaf, a spawner) is there after the first few.
    for _ in 0..8 {
        settle(spec(&["/bin/true"]))?;
    }
    let before = open_descriptors()?;
    let mut good = 0;
    for _ in 0..runs {
        good += usize::from(settle(spec(&["/bin/true"]))?);
    }
    let mut bad = 0;
    for round in 0..failures {
        let mut broken = spec(&[if round % 2 == 0 {
            "/nonexistent/program"
        } else {
            "/bin/true"
        }]);
        if round % 2 == 1 {
            broken.cwd = "/nonexistent/directory".into();
        }
        bad += usize::from(!settle(broken)?);
    }
    let after = open_descriptors()?;
    report.number("good", good);
    report.number("bad", bad);
    report.number("before", before.len());
    report.number("after", after.len());
    for (number, target) in after {
        report.line("open", format!("{number} {target}"));
    }
    Ok(())
}

/// `runtimes N [--spill | --late-spill]`: makes N runtimes like this one, each with one run, half of them disposed of, and
/// reports how many threads and descriptors the host has more than before once that no longer changes for the better, or
/// after 10 s.
///
/// With `--spill` each run spills its output; with `--late-spill` the first byte that does not fit comes when the runtime
/// was dropped.
pub(super) fn runtimes(peculiar: &Peculiar, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of runtimes")?;
    let one = match args.get(1).map(String::as_str) {
        None => one_run,
        Some("--spill") => one_spill,
        Some("--late-spill") => one_late_spill,
        Some(other) => return Err(format!("`{other}` is no option of `runtimes`").into()),
    };
    let counts = || -> std::io::Result<(usize, usize)> {
        Ok((
            std::fs::read_dir("/proc/self/task")?.count(),
            open_descriptors()?.len(),
        ))
    };
    // What a process makes once for all its runtimes is there after the first.
    let first = peculiar.runtime()?;
    one_spill(&first)?;
    block_on(first.dispose())?;
    drop(first);
    let before = counts()?;
    for round in 0..count {
        let runtime = peculiar.runtime()?;
        let left = one(&runtime)?;
        if round % 2 == 0 && left.is_none() {
            block_on(runtime.dispose())?;
        }
        drop(runtime);
        if let Some(left) = left {
            left.spill()?;
        }
    }
    // The threads of a dropped runtime end by themselves, and tell nobody.
    let deadline = Instant::now() + Duration::from_secs(10);
    let after = loop {
        let after = counts()?;
        if (after.0 <= before.0 && after.1 <= before.1) || Instant::now() > deadline {
            break after;
        }
        thread::sleep(Duration::from_millis(5));
    };
    report.number("threads", after.0.saturating_sub(before.0));
    report.number("descriptors", after.1.saturating_sub(before.1));
    Ok(())
}

/// A tree that outlives its runtime by one stream: this process, no member of it, holds the other end.
struct Late {
    process: Process,
    pipe: File,
}

/// More than a window of 1,000 bytes holds.
const OVERFLOW: usize = 200_000;

impl Late {
    /// Writes what does not fit in memory, now that the runtime is gone, and waits until the stream is over.
    fn spill(mut self) -> Result<(), Box<dyn Error>> {
        // The target was killed with its runtime.
        self.pipe.write_all(&vec![b'x'; OVERFLOW])?;
        drop(self.pipe);
        let outcome = block_on(self.process.done())?;
        let output = self
            .process
            .collected_stdout()
            .ok_or("the output is not collected")?;
        if outcome.signal().is_none() || output.total() < OVERFLOW as u64 {
            return Err(format!("{outcome} after {} bytes", output.total()).into());
        }
        Ok(())
    }
}

fn one_run(runtime: &LocalRuntime) -> Result<Option<Late>, Box<dyn Error>> {
    block_on(runtime.spawn(probe(&["exit", "0"])?)?.done())?;
    Ok(None)
}

fn one_spill(runtime: &LocalRuntime) -> Result<Option<Late>, Box<dyn Error>> {
    let process = runtime.spawn(spilling(probe(&["flood", &OVERFLOW.to_string()])?))?;
    block_on(process.done())?;
    match process
        .collected_stdout()
        .map(dsh_subprocess::OutputReader::spill)
    {
        Some(SpillState::Available(_)) => Ok(None),
        other => Err(format!("no spill: {other:?}").into()),
    }
}

fn one_late_spill(runtime: &LocalRuntime) -> Result<Option<Late>, Box<dyn Error>> {
    let process = runtime.spawn(spilling(probe(&["sleep"])?))?;
    let pid = super::announced(&process, "ready")?.remove(0);
    let pipe = File::options().write(true).open(format!("/proc/{pid}/fd/1"))?;
    Ok(Some(Late { process, pipe }))
}

fn spilling(mut spec: SpawnSpec) -> SpawnSpec {
    spec.drain = Duration::from_secs(300);
    spec.stdout = Output::Collect(Collect {
        max_bytes: 1000,
        head_bytes: 0,
        spill: Some(Spill {
            max_bytes: NonZeroU64::MAX,
            life: SpillLife::Runtime,
        }),
    });
    spec
}

/// `exit-codes N`: runs a command that exits with 7, N times, and reports each outcome.
pub(super) fn exit_codes(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of runs")?;
    for _ in 0..count {
        let process = runtime.spawn(probe(&["exit", "7"])?)?;
        report.line("outcome", block_on(process.done())?.to_string());
        block_on(process.terminate())?;
    }
    Ok(())
}
