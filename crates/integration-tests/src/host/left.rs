//! Scenarios of a host that leaves something on disk.

use std::error::Error;
use std::num::NonZeroU64;
use std::process::exit;

use dsh_subprocess::{Collect, Output, Process, Spill, SpillLife, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;

use super::{Peculiar, Report, announced, next_line, spec};

/// `spilled runtime|keep ARGV…`: a tree whose output is spilled; tells what it announced, and stays until the next line with
/// the tree alive.
pub(super) fn spilled(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let _process = spill(runtime, args)?;
    report.line("ready", "");
    next_line()?;
    Ok(())
}

/// `spilled-below DIRECTORY ARGV…`: such a tree, and another one whose output is spilled below that directory.
pub(super) fn spilled_below(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let (directory, argv) = args.split_first().ok_or("the directory is missing")?;
    let args = [&["runtime".to_owned()], argv].concat();
    let _first = spill(runtime, &args)?;
    runtime.set_spill_parent(Some(directory.into()));
    let _second = spill(runtime, &args)?;
    report.line("ready", "");
    next_line()?;
    Ok(())
}

/// `abandon runtime|keep ARGV…`: the same, but it drops all that it has of the runtime while the tree runs, and exits at once.
pub(super) fn abandon(peculiar: &Peculiar, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let runtime = peculiar.runtime()?;
    let process = spill(&runtime, args)?;
    report.line("ready", "");
    next_line()?;
    drop(process);
    drop(runtime);
    exit(0)
}

fn spill(runtime: &LocalRuntime, args: &[String]) -> Result<Process, Box<dyn Error>> {
    let (life, argv) = args.split_first().ok_or("the life of the spill is missing")?;
    let mut spec = spec(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    spec.stdout = Output::Collect(Collect {
        max_bytes: 1000,
        head_bytes: 0,
        spill: Some(Spill {
            max_bytes: NonZeroU64::MAX,
            life: match life.as_str() {
                "runtime" => SpillLife::Runtime,
                "keep" => SpillLife::Keep,
                other => return Err(format!("no spill lives for `{other}`").into()),
            },
        }),
    });
    let process = runtime.spawn(spec)?;
    announced(&process, "ready")?;
    Ok(process)
}

/// `records`: what the diagnosis says of them.
pub(super) fn records(report: &Report) {
    let records = dsh_subprocess_local::diagnose().records;
    report.line("works", records.works.to_string());
    report.line("finding", records.finding);
}
