//! Many sessions in one host, one after another, and what is left of them.

use std::error::Error;
use std::fs;

use dsh_subprocess::{SubprocessRuntime, Terminal};
use dsh_subprocess_local::LocalRuntime;
use pollster::block_on;
use tokio_util::sync::CancellationToken;

use super::{Screen, spec};
use crate::facts::open_descriptors;
use crate::host::Report;
use crate::host::init::{later, settled, zombies};

/// `terminal-descriptors dropped|unread|output-dropped|read RUNS FAILURES`: counts the host's descriptors, and the terminals
/// of its file system, before and after that many sessions that print something, and others that cannot start. The handles are
/// dropped while the programs run, or kept: with their output unread, or thrown away, or read to its end.
pub(in crate::host) fn descriptors(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let manner = args.first().ok_or("the manner is missing")?;
    let runs: usize = crate::number(args, 1, "the number of runs")?;
    let failures: usize = crate::number(args, 2, "the number of failures")?;
    // What a runtime makes once is there after the first few; and what it keeps for the next ones, which is bounded (wardens),
    // after more at once than it keeps.
    let at_once: Vec<Terminal> = (0..24)
        .map(|_| block_on(runtime.spawn_terminal(spec(&["/bin/cat"]))))
        .collect::<Result<_, _>>()?;
    for terminal in &at_once {
        drop(terminal.terminate());
    }
    for terminal in &at_once {
        block_on(terminal.terminate())?;
    }
    drop(at_once);
    session(runtime, manner)?;
    let before = open_descriptors()?.len();
    report.number("terminals-before", settled(terminals, |count| *count == 0)?);
    let kept: Vec<Option<Terminal>> = (0..runs)
        .map(|_| session(runtime, manner))
        .collect::<Result<_, _>>()?;
    let bad = (0..failures).filter(|round| {
        let mut broken = spec(&[if round % 2 == 0 {
            "/nonexistent/program"
        } else {
            "/bin/true"
        }]);
        if round % 2 == 1 {
            broken.cwd = "/nonexistent/directory".into();
        }
        block_on(runtime.spawn_terminal(broken)).is_err()
    });
    report.number("bad", bad.count());
    report.number("good", kept.len());
    // The last session of a dropped handle is over, and nobody is told when the runtime has let it go.
    let after = settled(|| Ok(open_descriptors()?.len()), |after| *after <= before + 2)?;
    report.number("terminals-after", settled(terminals, |count| *count == 0)?);
    report.number("before", before);
    report.number("after", after);
    for (number, target) in open_descriptors()? {
        report.line("open", format!("{number} {target}"));
    }
    drop(kept);
    Ok(())
}

/// A session from its beginning to its end. Returns its handle, where that is kept.
fn session(runtime: &LocalRuntime, manner: &str) -> Result<Option<Terminal>, Box<dyn Error>> {
    let mut terminal = block_on(runtime.spawn_terminal(spec(&["/bin/echo", "printed"])))?;
    let done = terminal.done();
    let kept = match manner {
        "dropped" => {
            drop(terminal);
            None
        }
        "unread" => Some(terminal),
        "output-dropped" => {
            drop(terminal.output());
            Some(terminal)
        }
        "read" => {
            let printed = Screen::of(&mut terminal)?.rest()?;
            if printed != "printed\r\n" {
                return Err(format!("it printed {printed:?}").into());
            }
            Some(terminal)
        }
        other => return Err(format!("there is no manner `{other}`").into()),
    };
    if !block_on(done)?.success() {
        return Err("the program failed".into());
    }
    if let Some(terminal) = &kept {
        block_on(terminal.wait_for_exit(&CancellationToken::new()))?;
    }
    Ok(kept)
}

/// Counts the terminals of the host's file system of them.
fn terminals() -> std::io::Result<usize> {
    let entries = fs::read_dir("/dev/pts")?.collect::<Result<Vec<_>, _>>()?;
    Ok(entries.iter().filter(|entry| entry.file_name() != "ptmx").count())
}

/// `terminal-orphans N`: N sessions that leave an orphan each, all of them over; reports how many zombies the host has when
/// there are none, or after a bound, and what a later command's status is.
pub(in crate::host) fn orphans(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of sessions")?;
    let script = "(sleep 0.2 &) ; true";
    let sessions: Vec<Terminal> = (0..count)
        .map(|_| block_on(runtime.spawn_terminal(spec(&["/bin/sh", "-c", script]))))
        .collect::<Result<_, _>>()?;
    for terminal in &sessions {
        block_on(terminal.done())?;
        block_on(terminal.wait_for_exit(&CancellationToken::new()))?;
    }
    let zombies = || Ok(zombies()?.len());
    report.number("zombies", settled(zombies, |zombies| *zombies == 0)?);
    report.line("later", later(runtime)?);
    Ok(())
}
