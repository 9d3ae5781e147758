//! Terminals of a host that has few descriptors left, or none.

use std::error::Error;
use std::time::Duration;

use dsh_subprocess::SubprocessRuntime;
use dsh_subprocess_local::LocalRuntime;
use pollster::block_on;

use super::{Screen, spec, words};
use crate::facts::open_descriptors;
use crate::host::Report;
use crate::host::hungry::Hunger;

/// `terminal-starved FREE ARGV…`: a command on a terminal while the host has FREE descriptors, and again when it has more.
pub(in crate::host) fn starved(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let free: usize = crate::number(args, 0, "the number of free descriptors")?;
    let argv = words(&args[1..]);
    // Whatever a runtime makes at its first spawn is there by then.
    let run = || {
        block_on(async {
            let terminal = runtime.spawn_terminal(spec(&argv)).await?;
            let outcome = terminal.done().await?;
            terminal.terminate().await?;
            Ok::<_, dsh_subprocess::Error>(outcome.to_string())
        })
    };
    report.line("before", run()?);
    report.number("open-before", open_descriptors()?.len());
    let hunger = Hunger::begin(free)?;
    let starved = run();
    drop(hunger);
    match starved {
        Ok(outcome) => report.line("starved-outcome", outcome),
        Err(error) => report.error("starved", &error),
    }
    report.line("after", run()?);
    report.number("open-after", open_descriptors()?.len());
    Ok(())
}

/// `terminal-hungry FREE COUNT ARGV…`: a session in which COUNT members say that they are ready; it is terminated while the
/// host has FREE descriptors, with a grace that no test waits out. Reports the members that are left.
pub(in crate::host) fn hungry(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let free: usize = crate::number(args, 0, "the number of free descriptors")?;
    let count: usize = crate::number(args, 1, "the number of members")?;
    let mut spec = spec(&words(&args[2..]));
    spec.grace = Duration::from_secs(300);
    let mut terminal = block_on(runtime.spawn_terminal(spec))?;
    Screen::of(&mut terminal)?.wait_for("ready", count)?;
    let hunger = Hunger::begin(free)?;
    let ended = block_on(terminal.terminate());
    drop(hunger);
    match ended {
        Ok(()) => report.line("gone", "true"),
        Err(error) => report.error("gone-error", &error),
    }
    let left = block_on(terminal.tree().members())?;
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    report.line("left", left.join(", "));
    report.line("outcome", block_on(terminal.done())?.to_string());
    Ok(())
}
