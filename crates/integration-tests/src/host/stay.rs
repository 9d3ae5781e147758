//! Scenarios that hold a state for the test to look at.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use dsh_subprocess::{ErrorKind, ErrorOutput, Output, Stdin, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use pollster::block_on;
use tokio_util::sync::CancellationToken;

use super::{Report, announced, next_line, probe, spec};

/// `orphan`: a tree whose handle and runtime are dropped while it runs; then stays until the next line.
pub(super) fn orphan(runtime: &LocalRuntime, report: &Report) -> Result<(), Box<dyn Error>> {
    // The caller's reference goes on; this scenario is about the last one, so it makes a runtime of its own.
    let own = LocalRuntime::builder()
        .ownership(match runtime.ownership().mechanism {
            dsh_subprocess::Mechanism::Cgroup => dsh_subprocess_local::OwnershipChoice::Cgroup,
            dsh_subprocess::Mechanism::Reaper => dsh_subprocess_local::OwnershipChoice::Reaper,
            _ => dsh_subprocess_local::OwnershipChoice::ProcessGroup,
        })
        .build()?;
    let process = own.spawn(probe(&["tree", "3"])?)?;
    report.line("tree", announced(&process, "ready")?.join(" "));
    drop(process);
    drop(own);
    report.line("ready", "");
    next_line()?;
    Ok(())
}

/// `nested ARGV…`: runs a tree, tells what it announced, and stays until the next line, with the tree alive.
pub(super) fn nested(runtime: &LocalRuntime, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let process = runtime.spawn(spec(&args.iter().map(String::as_str).collect::<Vec<_>>()))?;
    let pids = announced(&process, "ready")?;
    report.line("ready", pids.join(" "));
    next_line()?;
    Ok(())
}

/// `watch ARGV…`: runs a tree, tells what it announced, and waits for its end.
pub(super) fn watch(runtime: &LocalRuntime, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let process = runtime.spawn(spec(&args.iter().map(String::as_str).collect::<Vec<_>>()))?;
    report.line("ready", announced(&process, "ready")?.join(" "));
    report.line("outcome", block_on(process.done())?.to_string());
    report.line(
        "gone",
        block_on(process.wait_for_exit(&CancellationToken::new()))?.to_string(),
    );
    Ok(())
}

/// `idle N`: N quiet children, all collected, none awaited; reports what each costs in descriptors and stays.
pub(super) fn idle(runtime: &LocalRuntime, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of children")?;
    block_on(runtime.spawn(probe(&["exit", "0"])?)?.done())?;
    let before = crate::facts::open_descriptors()?.len();
    let mut children = Vec::new();
    for _ in 0..count {
        let child = runtime.spawn(probe(&["sleep"])?)?;
        announced(&child, "ready")?;
        children.push(child);
    }
    report.number("descriptors", crate::facts::open_descriptors()?.len() - before);
    report.line("ready", "");
    next_line()?;
    block_on(runtime.dispose())?;
    report.line("disposed", "true");
    next_line()?;
    Ok(())
}

/// `survivors N`: a leader that exits and leaves N helpers; reports their pids and stays, with `done` settled.
pub(super) fn survivors(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let count: usize = crate::number(args, 0, "the number of helpers")?;
    let script = r#"i=0; while [ $i -lt "$1" ]; do sleep 300 </dev/null >/dev/null 2>&1 & echo "helper $!"; i=$((i+1)); done"#;
    let process = runtime.spawn(spec(&["/bin/sh", "-c", script, "sh", &count.to_string()]))?;
    let outcome = block_on(process.done())?;
    report.line("outcome", outcome.to_string());
    let text = process
        .collected_stdout()
        .ok_or("the output is not collected")?
        .text();
    report.line(
        "helpers",
        text.lines()
            .filter_map(|line| line.strip_prefix("helper "))
            .collect::<Vec<_>>()
            .join(" "),
    );
    report.number("members", block_on(process.members())?.len());
    report.line("ready", "");
    next_line()?;
    block_on(process.terminate())?;
    report.line("gone", "true");
    Ok(())
}

/// `unkillable-once PROGRAM`: terminates a tree whose target is not this user's to signal; then it becomes so, and is
/// terminated again.
pub(super) fn unkillable_once(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let program = args.first().ok_or("the program is missing")?;
    let mut spec = spec(&[program, "become-root", "--and-back"]);
    spec.stdin = Stdin::Pipe;
    spec.grace = Duration::from_millis(100);
    let mut process = runtime.spawn(spec)?;
    let input = process.stdin();
    announced(&process, "ready")?;
    match block_on(process.terminate()) {
        Ok(()) => report.line("first", "ended"),
        Err(error) => report.error("first", &error),
    }
    drop(input);
    announced(&process, "back")?;
    match block_on(process.terminate()) {
        Ok(()) => report.line("second", "ended"),
        Err(error) => {
            report.error("second", &error);
            // Only so that this host ends.
            runtime.kill_all();
        }
    }
    report.line("outcome", block_on(process.done())?.to_string());
    Ok(())
}

/// `unkillable PROGRAM`: terminates a tree whose target is no longer this user's to signal; then its input ends, which
/// it obeys.
pub(super) fn unkillable(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let program = args.first().ok_or("the program is missing")?;
    let mut spec = spec(&[program, "become-root"]);
    spec.stdin = Stdin::Pipe;
    spec.stderr = ErrorOutput::Own(Output::Inherit);
    spec.grace = Duration::from_millis(100);
    let mut process = runtime.spawn(spec)?;
    let input = process.stdin();
    report.line("member", announced(&process, "ready")?.join(" "));
    match block_on(process.terminate()) {
        Ok(()) => report.line("terminated", "true"),
        Err(error) => {
            report.error("terminated", &error);
            for survivor in error.survivors() {
                report.number("survivor", survivor.pid.expect("this world has ids"));
            }
        }
    }
    drop(input);
    report.line("outcome", block_on(process.done())?.to_string());
    // The runtime went on owning the tree. A wait that is asked before it has seen the end still names the survivor.
    let deadline = Instant::now() + Duration::from_secs(10);
    let gone = loop {
        match block_on(process.wait_for_exit(&CancellationToken::new())) {
            Err(error) if error.kind() == ErrorKind::Survivors && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            gone => break gone?,
        }
    };
    report.line("gone", gone.to_string());
    Ok(())
}
