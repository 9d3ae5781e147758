//! Scenarios of a host that ends, in one way or another, while its trees live.

use std::error::Error;
use std::num::NonZeroU64;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio, abort, exit};
use std::time::Duration;

use dsh_subprocess::{Collect, Output, Process, SpawnSpec, Spill, SpillLife, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use fork::Fork;
use pollster::block_on;
use tokio_util::sync::CancellationToken;

use super::{Report, announced, next_line, probe, spec};
use crate::{forever, number};

/// `mortal DEATH LOG GRACE-MS`: runs a crowd whose output is spilled, and a tree whose spilled output is to be kept; then
/// dies at the next line. A death that is none of its own doing is waited for.
pub(super) fn mortal(runtime: &LocalRuntime, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let death = args.first().ok_or("the death is missing")?;
    let crowd = runtime.spawn(crowd(&args[1..])?)?;
    let kept = runtime.spawn(spilled(
        spec(&["/bin/sh", "-c", "yes | head -c 5000; echo ready; exec sleep 300"]),
        SpillLife::Keep,
    ))?;
    announced(&kept, "ready")?;
    report.number("target", crowd.pid().ok_or("this world has ids")?);
    report.line("ready", "");
    next_line()?;
    die(death, &crowd, report)
}

pub(super) fn die(death: &str, crowd: &Process, report: &Report) -> Result<(), Box<dyn Error>> {
    match death {
        // Out of `main`, which drops the runtime.
        "return" => Ok(()),
        "exit" => exit(0),
        "panic" => panic!("as it was asked to"),
        "abort" => abort(),
        "exec" => Err(Command::new("/proc/self/exe")
            .arg("sleep")
            .stdin(Stdio::null())
            .exec()
            .into()),
        // The child has a copy of every descriptor, and never executes anything.
        "forked" => match fork::fork()? {
            Fork::Child => forever(),
            Fork::Parent(child) => wait_for_death(report, "forked", child.to_string()),
        },
        "terminating" => {
            drop(crowd.terminate());
            wait_for_death(report, "terminating", String::new())
        }
        "killed" => wait_for_death(report, "waiting", String::new()),
        other => Err(format!("there is no death named `{other}`").into()),
    }
}

fn wait_for_death(report: &Report, key: &str, value: String) -> Result<(), Box<dyn Error>> {
    report.line(key, value);
    next_line()?;
    Err("nobody came".into())
}

/// `bereft LOG GRACE-MS`: runs a crowd, tells what its handle says of its end, runs another command, and at the next line
/// another crowd; then stays until the line after that.
pub(super) fn bereft(runtime: &LocalRuntime, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let process = runtime.spawn(crowd(args)?)?;
    report.number("target", process.pid().ok_or("this world has ids")?);
    report.line("ready", "");
    match block_on(process.done()) {
        Ok(outcome) => report.line("outcome", outcome.to_string()),
        Err(error) => report.error("lost", &error),
    }
    match block_on(process.wait_for_exit(&CancellationToken::new())) {
        Ok(gone) => report.line("gone", gone.to_string()),
        Err(error) => report.error("not-gone", &error),
    }
    let next = runtime.spawn(spec(&["/bin/true"]))?;
    report.line("next", block_on(next.done())?.to_string());
    next_line()?;
    let another = runtime.spawn(crowd(args)?)?;
    report.number("another", another.pid().ok_or("this world has ids")?);
    next_line()?;
    Ok(())
}

/// `by-thread`: a thread spawns a child and ends; then the child is asked for an answer.
pub(super) fn by_thread(runtime: &LocalRuntime, report: &Report) -> Result<(), Box<dyn Error>> {
    use std::io::Write;
    let mut echo = probe(&["cat"])?;
    echo.stdin = dsh_subprocess::Stdin::Pipe;
    let (mut process, thread) = std::thread::scope(|scope| {
        scope
            .spawn(|| -> Result<_, Box<dyn Error + Send + Sync>> {
                Ok((runtime.spawn(echo)?, nix::unistd::gettid()))
            })
            .join()
    })
    .map_err(|_| "the thread panicked")?
    .map_err(|error| error.to_string())?;
    // A join returns when the thread has left its memory, which is shortly before its end.
    while std::fs::exists(format!("/proc/self/task/{thread}"))? {
        std::thread::yield_now();
    }
    let input = process.stdin().ok_or("no pipe to the target")?.try_into_fd()?;
    let mut input = std::fs::File::from(input);
    input.write_all(b"alive still\n")?;
    report.line("answer", announced(&process, "alive")?.join(" "));
    drop(input);
    report.line("outcome", block_on(process.done())?.to_string());
    Ok(())
}

fn crowd(args: &[String]) -> Result<SpawnSpec, Box<dyn Error>> {
    let log = args.first().ok_or("the log is missing")?;
    let mut crowd = spilled(probe(&["crowd", log])?, SpillLife::Runtime);
    crowd.grace = Duration::from_millis(number(args, 1, "the grace in milliseconds")?);
    Ok(crowd)
}

fn spilled(mut spec: SpawnSpec, life: SpillLife) -> SpawnSpec {
    spec.stdout = Output::Collect(Collect {
        max_bytes: 1000,
        head_bytes: 0,
        spill: Some(Spill {
            max_bytes: NonZeroU64::MAX,
            life,
        }),
    });
    spec
}
