//! Scenarios about what a spawn and its output cost the host, in counts that no other load disturbs.

use std::error::Error;

use dsh_subprocess::{Collect, Output, Process, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use nix::sys::resource::{UsageWho, getrusage};
use pollster::block_on;

use super::{Report, spec};

const PAGE: usize = 4096;

/// `page-faults MIB SPAWNS`: a host with that much touched memory spawns, and writes to all of it after each spawn.
///
/// A fork makes every page of the host copy-on-write, so that the writing faults on each; sharing the memory until exec
/// makes none fault.
pub(super) fn page_faults(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let bytes = crate::number::<usize>(args, 0, "the memory")? << 20;
    let spawns: usize = crate::number(args, 1, "the number of spawns")?;
    // A huge page would fault once for 512 of them.
    nix::sys::prctl::set_thp_disable(true)?;
    let mut memory = vec![0_u8; bytes];
    let mut touch = |value: u8| memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = value);
    touch(1);
    block_on(runtime.spawn(spec(&["/bin/true"]))?.done())?;
    let before = getrusage(UsageWho::RUSAGE_SELF)?.minor_page_faults();
    for round in 0..spawns {
        let process = runtime.spawn(spec(&["/bin/true"]))?;
        touch(u8::try_from(round % 200)?);
        block_on(process.done())?;
    }
    let after = getrusage(UsageWho::RUSAGE_SELF)?.minor_page_faults();
    report.number("pages", bytes / PAGE);
    report.number("faults", after - before);
    Ok(())
}

/// `collect COMMAND…`: runs shell commands at once, each collected into 64 KiB with 4 KiB of head, and reports how the
/// host's peak memory grew.
pub(super) fn collect(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    block_on(runtime.spawn(spec(&["/bin/true"]))?.done())?;
    let before = peak_memory_kib()?;
    let mut processes: Vec<Process> = Vec::new();
    for command in args {
        let mut spec = spec(&["/bin/sh", "-c", command]);
        spec.stdout = Output::Collect(Collect {
            max_bytes: 65_536,
            head_bytes: 4096,
            spill: None,
        });
        processes.push(runtime.spawn(spec)?);
    }
    for process in &processes {
        report.line("outcome", block_on(process.done())?.to_string());
        let output = process.collected_stdout().ok_or("the output is not collected")?;
        let snapshot = output.snapshot();
        report.number("total", snapshot.total);
        report.number("head", snapshot.head.len());
        report.number("tail", snapshot.tail.len());
    }
    report.number("grown-kib", peak_memory_kib()?.saturating_sub(before));
    Ok(())
}

pub(super) fn peak_memory_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
