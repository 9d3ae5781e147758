//! Scenarios about many spawns in one host.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use dsh_subprocess::SubprocessRuntime;
use dsh_subprocess_local::LocalRuntime;
use fork::Fork;
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
fn children() -> std::io::Result<Vec<String>> {
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

/// `runtimes N`: makes N runtimes like this one, each with one run, half of them disposed of, and reports how many threads
/// and descriptors the host has more than before once that no longer changes for the better, or after 10 s.
pub(super) fn runtimes(peculiar: &Peculiar, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of runtimes")?;
    let counts = || -> std::io::Result<(usize, usize)> {
        Ok((
            std::fs::read_dir("/proc/self/task")?.count(),
            open_descriptors()?.len(),
        ))
    };
    let one = |dispose: bool| -> Result<(), Box<dyn Error>> {
        let runtime = peculiar.runtime()?;
        block_on(runtime.spawn(probe(&["exit", "0"])?)?.done())?;
        if dispose {
            block_on(runtime.dispose())?;
        }
        Ok(())
    };
    // What a process makes once for all its runtimes is there after the first.
    one(true)?;
    let before = counts()?;
    for round in 0..count {
        one(round % 2 == 0)?;
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

/// `forked`: uses the runtime in a forked child, then again in the parent.
pub(super) fn forked(runtime: &LocalRuntime, report: &Report) -> Result<(), Box<dyn Error>> {
    let process = runtime.spawn(probe(&["sleep"])?)?;
    let pids = super::announced(&process, "ready")?;
    match fork::fork()? {
        Fork::Child => {
            match runtime.spawn(spec(&["/bin/true"])) {
                Ok(_) => report.line("child", "spawned"),
                Err(error) => report.error("child", &error),
            }
            // Neither the drop of a handle nor that of the runtime may touch the parent's trees.
            drop(process);
            std::process::exit(0);
        }
        Fork::Parent(child) => {
            report.number("child-status", fork::waitpid(child)?);
        }
    }
    let alive = std::path::Path::new(&format!("/proc/{}", pids.first().ok_or("no pid")?)).exists();
    report.line("tree-alive", alive.to_string());
    block_on(process.terminate())?;
    report.line(
        "parent",
        block_on(runtime.spawn(spec(&["/bin/true"]))?.done())?.to_string(),
    );
    Ok(())
}
