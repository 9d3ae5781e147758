//! Scenarios of a host that adopts orphans: process 1 of a pid namespace, or a subreaper.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use dsh_subprocess::{Process, SpawnSpec, SubprocessRuntime};
use dsh_subprocess_local::{LocalRuntime, diagnose};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pollster::block_on;
use tokio_util::sync::CancellationToken;

use super::many::children;
use super::{Peculiar, Report, announced, probe, spec};

/// Case O11's own: a command that leaves an orphan, which ends soon after it.
const LEAVES_AN_ORPHAN: &str = "(sleep 0.2 &) ; true";
/// The same, with a status to tell, and without a hold on its output.
const LEAVES_AN_ORPHAN_AND_EXITS: &str = "(sleep 0.05 >/dev/null 2>&1 &) ; exit 7";
/// Runs at once.
const WAVE: usize = 32;
/// There is nothing to await by design: only the kernel's list can tell. Far more than it takes.
const BOUND: Duration = Duration::from_secs(30);

/// `orphans N LEFT`: N trees that leave an orphan each, all of them over; reports how many zombies the host has once that
/// they are LEFT, or after a bound, and what a later command's status is.
pub(super) fn orphans(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of trees")?;
    let left: usize = crate::number(args, 1, "the number of zombies to be left")?;
    let trees: Vec<Process> = (0..count)
        .map(|_| runtime.spawn(shell(LEAVES_AN_ORPHAN)))
        .collect::<Result<_, _>>()?;
    for tree in &trees {
        block_on(tree.done())?;
        block_on(tree.wait_for_exit(&CancellationToken::new()))?;
    }
    let zombies = || Ok(zombies()?.len());
    report.number("zombies", settled(zombies, |zombies| *zombies == left)?);
    report.line("later", later(runtime)?);
    Ok(())
}

/// `dropped N`: N children whose handles are dropped at once, with nothing else run; reports how many children there are,
/// wardens that live left out, once there are none, or after a bound.
pub(super) fn dropped(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of children")?;
    for _ in 0..count {
        drop(runtime.spawn(spec(&["/bin/true"]))?);
    }
    let others = || {
        let mut children = children()?;
        children.retain(|pid| !is_warden(pid) || state(pid) == Some('Z'));
        Ok(children.len())
    };
    report.number("left", settled(others, |others| *others == 0)?);
    report.line("later", later(runtime)?);
    Ok(())
}

/// `statuses N`: N runs that exit with 7, some of which leave an orphan, in waves, beside children of the host's own that exit
/// with 9; reports each status with how often it was seen, and how many zombies there are at the end.
pub(super) fn statuses(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of runs")?;
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    let mut begun = 0;
    while begun < count {
        let size = WAVE.min(count - begun);
        let mut own = Vec::new();
        let mut runs = Vec::new();
        for number in 0..size {
            if number % 8 == 0 {
                own.push(Command::new("/bin/sh").args(["-c", "exit 9"]).spawn()?);
            }
            runs.push(runtime.spawn(shell(if number % 4 == 0 {
                LEAVES_AN_ORPHAN_AND_EXITS
            } else {
                "exit 7"
            }))?);
        }
        begun += size;
        for run in runs {
            *outcomes.entry(block_on(run.done())?.to_string()).or_default() += 1;
        }
        for child in &mut own {
            // An error is a status that was stolen.
            let status = child.wait()?;
            *outcomes.entry(format!("own {status}")).or_default() += 1;
        }
    }
    for (outcome, times) in outcomes {
        report.line("outcome", format!("{times} {outcome}"));
    }
    let zombies = || Ok(zombies()?.len());
    report.number("zombies", settled(zombies, |zombies| *zombies == 0)?);
    Ok(())
}

/// Scenarios of a host whose runtime is over before the host is. Answers whether this was one.
pub(super) fn to_the_end(
    scenario: &str,
    peculiar: &Peculiar,
    report: &Report,
) -> Result<bool, Box<dyn Error>> {
    match scenario {
        "end" => end(peculiar, report)?,
        "diagnosis" => diagnosis(report)?,
        "killed-wardens" => killed_wardens(peculiar, report)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// `end`: a run, and the end of the runtime by `dispose`; reports the children that are left once there are none, or after a
/// bound.
fn end(peculiar: &Peculiar, report: &Report) -> Result<(), Box<dyn Error>> {
    let runtime = peculiar.runtime()?;
    report.line("run", later(&runtime)?);
    block_on(runtime.dispose())?;
    drop(runtime);
    report_children(report)
}

/// `diagnosis`: looks what this machine can do, which starts and ends wardens; reports as `end` does.
fn diagnosis(report: &Report) -> Result<(), Box<dyn Error>> {
    report.line("warden", diagnose().warden.works.to_string());
    report_children(report)
}

/// `killed-wardens`: kills the runtime's warden below a tree that lives, waits for the next one, and ends the runtime.
fn killed_wardens(peculiar: &Peculiar, report: &Report) -> Result<(), Box<dyn Error>> {
    let runtime = peculiar.runtime()?;
    let tree = runtime.spawn(probe(&["trap-term", "ended", "0"])?)?;
    announced(&tree, "ready")?;
    let wardens = || -> std::io::Result<Vec<String>> {
        let mut children = children()?;
        children.retain(|pid| is_warden(pid) && state(pid) != Some('Z'));
        Ok(children)
    };
    let [first] = &wardens()?[..] else {
        return Err("the runtime has not one warden".into());
    };
    kill(Pid::from_raw(first.parse()?), Signal::SIGKILL)?;
    // The wardens of trees come here, and end.
    let next = settled(wardens, |now| now.len() == 1 && !now.contains(first))?;
    report.number("wardens", next.len());
    let zombies = || Ok(zombies()?.len());
    report.number("zombies", settled(zombies, |zombies| *zombies == 0)?);
    block_on(tree.terminate())?;
    report.line("later", later(&runtime)?);
    block_on(runtime.dispose())?;
    drop(tree);
    drop(runtime);
    report_children(report)
}

/// Returns the status of a command that exits with 7.
pub(super) fn later(runtime: &LocalRuntime) -> Result<String, Box<dyn Error>> {
    Ok(block_on(runtime.spawn(shell("exit 7"))?.done())?.to_string())
}

fn shell(script: &str) -> SpawnSpec {
    spec(&["/bin/sh", "-c", script])
}

fn report_children(report: &Report) -> Result<(), Box<dyn Error>> {
    let left = settled(children, Vec::is_empty)?;
    report.line("left", left.join(" "));
    Ok(())
}

/// Lists the children of the host that are zombies.
pub(super) fn zombies() -> std::io::Result<Vec<String>> {
    let mut children = children()?;
    children.retain(|pid| state(pid) == Some('Z'));
    Ok(children)
}

fn state(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].chars().next()
}

fn is_warden(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "dsh-warden")
}

/// Looks until what is seen is as it should be, and returns what was seen last.
pub(super) fn settled<T>(
    look: impl Fn() -> std::io::Result<T>,
    is_so: impl Fn(&T) -> bool,
) -> std::io::Result<T> {
    let deadline = Instant::now() + BOUND;
    loop {
        let seen = look()?;
        if is_so(&seen) || Instant::now() > deadline {
            return Ok(seen);
        }
        thread::sleep(Duration::from_millis(5));
    }
}
