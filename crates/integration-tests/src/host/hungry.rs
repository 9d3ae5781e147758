//! Scenarios about a host whose descriptors run out while it has trees.

use std::error::Error;
use std::fs::File;
use std::num::NonZeroU64;
use std::time::Duration;

use dsh_subprocess::{
    Collect, Output, Process, SpawnSpec, Spill, SpillLife, SpillState, Stdin, SubprocessRuntime,
};
use dsh_subprocess_local::LocalRuntime;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::pipe;
use pollster::block_on;

use super::{Peculiar, Report, announced, next_line, spec};
use crate::facts::open_descriptors;

/// The host may open so many more descriptors, until this value is dropped.
pub(super) struct Hunger {
    before: (u64, u64),
    _taken: Vec<File>,
}

impl Hunger {
    pub(super) fn begin(free: usize) -> Result<Self, Box<dyn Error>> {
        let before = getrlimit(Resource::RLIMIT_NOFILE)?;
        // A limit binds the numbers. What is open above it stays open, but gives nothing back that can be used again; so
        // the limit is above all that is open, and the gaps below are filled.
        let highest = open_descriptors()?
            .into_iter()
            .map(|(number, _)| u64::from(number))
            .max()
            .ok_or("something is open")?;
        let mut limit = highest + 1 + free as u64;
        let mut taken = Vec::new();
        // The runtime's own threads may take some of what the limit gives: it is raised until there are enough.
        loop {
            setrlimit(Resource::RLIMIT_NOFILE, limit, before.1)?;
            while let Ok(file) = File::open("/dev/null") {
                taken.push(file);
            }
            match free.saturating_sub(taken.len()) {
                0 => break,
                missing => limit += missing as u64,
            }
        }
        taken.truncate(taken.len() - free);
        Ok(Self {
            before,
            _taken: taken,
        })
    }
}

impl Drop for Hunger {
    fn drop(&mut self) {
        setrlimit(Resource::RLIMIT_NOFILE, self.before.0, self.before.1).expect("it was the limit before");
    }
}

/// `hungry-end FREE GRACE_MS leader-stays|leader-ends ARGV…`: runs a tree that says `ready` until the next line of input;
/// from then on the host has FREE descriptors. The target's input ends where its end is wanted first. Reports what
/// `members` says, terminates the tree, and has descriptors again.
pub(super) fn end(runtime: &LocalRuntime, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let free: usize = crate::number(args, 0, "the number of free descriptors")?;
    let grace: u64 = crate::number(args, 1, "the grace in milliseconds")?;
    let leader_ends = args.get(2).is_some_and(|who| who == "leader-ends");
    let argv: Vec<&str> = args.iter().skip(3).map(String::as_str).collect();
    let mut spec = spec(&argv);
    spec.stdin = Stdin::Pipe;
    spec.grace = Duration::from_millis(grace);
    spec.drain = Duration::ZERO;
    let mut process = runtime.spawn(spec)?;
    let input = process.stdin();
    report.line("members-ready", announced(&process, "ready")?.join(" "));
    next_line()?;

    let hunger = Hunger::begin(free)?;
    assert_hungry(free);
    report.number("free", free);
    if leader_ends {
        drop(input);
        report.line("leader", block_on(process.done())?.to_string());
    }
    match block_on(process.members()) {
        Ok(members) => report.number("members", members.len()),
        Err(error) => report.error("members-error", &error),
    }
    terminate(report, &process);
    drop(hunger);

    report.line("outcome", block_on(process.done())?.to_string());
    next_line()?;
    Ok(())
}

fn terminate(report: &Report, process: &Process) {
    match block_on(process.terminate()) {
        Ok(()) => report.line("gone", "true"),
        Err(error) => report.error("gone-error", &error),
    }
}

/// A hunger that is none would prove nothing.
fn assert_hungry(free: usize) {
    let mut taken = Vec::new();
    while let Ok((reader, writer)) = pipe() {
        taken.extend([reader, writer]);
    }
    assert_eq!(taken.len() / 2, free / 2, "free descriptors");
}

/// `hungry-spill FREE`: a stream overflows its window while the host has FREE descriptors; reports what became of its
/// spill, and disposes of the runtime when there are descriptors again.
pub(super) fn spill(peculiar: &Peculiar, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let free: usize = crate::number(args, 0, "the number of free descriptors")?;
    let runtime = peculiar.runtime()?;
    let mut process = runtime.spawn(overflowing())?;
    let input = process.stdin();
    announced(&process, "ready")?;
    let hunger = Hunger::begin(free)?;
    drop(input);
    report.line("outcome", block_on(process.done())?.to_string());
    drop(hunger);
    let output = process.collected_stdout().ok_or("the output is not collected")?;
    report.number("total", output.total());
    report.line(
        "spill",
        match output.spill() {
            SpillState::Available(stream) => format!("available {}", stream.length),
            SpillState::Withdrawn(why) => format!("withdrawn {why}"),
            other => format!("{other:?}"),
        },
    );
    block_on(runtime.dispose())?;
    report.line("disposed", "true");
    Ok(())
}

/// Overflows when its input ends.
fn overflowing() -> SpawnSpec {
    let mut spec = spec(&[
        "/bin/sh",
        "-c",
        "echo ready; read -r go; head -c 100000 /dev/zero",
    ]);
    spec.stdin = Stdin::Pipe;
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
