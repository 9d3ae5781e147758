//! A scenario about a process's number that is used again.

use std::error::Error;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dsh_subprocess::{Process, Stdin, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use pollster::block_on;

use super::{Report, announced, probe, spec};

/// `reuse`: a tree ends within its grace, a stranger gets its number and leads a group of that number, and the tree is
/// terminated, killed, dropped and outlived by its deadline. For a pid namespace in which this process may choose numbers.
pub(super) fn reuse(runtime: &LocalRuntime, report: &Report) -> Result<(), Box<dyn Error>> {
    let mut quick = probe(&["sleep"])?;
    quick.grace = Duration::from_millis(500);
    let process = runtime.spawn(quick)?;
    let number = process.pid().ok_or("this world has ids")?;
    announced(&process, "ready")?;
    // Begins the ladder; the deadline of its SIGKILL is still to come when the tree is gone.
    block_on(process.terminate())?;
    report.line("outcome", block_on(process.done())?.to_string());

    let mut stranger = stranger_with(number)?;
    report.line("reused", (stranger.id() == number).to_string());
    block_on(process.terminate())?;
    report.number("members", block_on(process.members())?.len());
    // Its deadline is later than that of the first.
    let mut stubborn = probe(&["ignore-term"])?;
    stubborn.grace = Duration::from_millis(500);
    let stubborn = runtime.spawn(stubborn)?;
    announced(&stubborn, "ready")?;
    block_on(stubborn.terminate())?;
    report.line("stubborn", block_on(stubborn.done())?.to_string());
    runtime.kill_all();
    end_of(process);
    block_on(runtime.dispose())?;

    // Whatever was sent to it has arrived by now: a signal is pending when its sender goes on.
    report.line(
        "stranger",
        stranger
            .try_wait()?
            .map_or("alive".to_owned(), |status| status.to_string()),
    );
    stranger.kill()?;
    stranger.wait()?;
    Ok(())
}

/// `reuse-early`: a target ends and leaves a member, in a session of its own, so that nothing keeps the number; a stranger gets its number and leads a group of that number, and then the
/// tree is terminated. For the same namespace, and a mechanism to which the target's number means nothing.
pub(super) fn reuse_early(runtime: &LocalRuntime, report: &Report) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the build directory's name is text")?;
    let mut left = spec(&[
        "/bin/sh",
        "-c",
        "setsid \"$0\" ignore-term & read -r end",
        program,
    ]);
    left.stdin = Stdin::Pipe;
    left.grace = Duration::from_millis(100);
    left.drain = Duration::ZERO;
    let mut process = runtime.spawn(left)?;
    let number = process.pid().ok_or("this world has ids")?;
    report.line("member", announced(&process, "ready")?.join(" "));
    drop(process.stdin());
    report.line("outcome", block_on(process.done())?.to_string());
    let mut stranger = stranger_with(number)?;
    report.line("reused", (stranger.id() == number).to_string());
    let members = block_on(process.members())?;
    let members = members
        .iter()
        .filter_map(|member| member.pid)
        .map(|pid| pid.to_string());
    report.line("members", members.collect::<Vec<_>>().join(" "));
    block_on(process.terminate())?;
    report.number("left", block_on(process.members())?.len());
    report.line(
        "stranger",
        stranger
            .try_wait()?
            .map_or("alive".to_owned(), |status| status.to_string()),
    );
    stranger.kill()?;
    stranger.wait()?;
    Ok(())
}

fn end_of(process: Process) {
    drop(process.scoped());
}

/// Starts a process that is nobody's, as often as it takes until it has the number.
fn stranger_with(number: u32) -> Result<Child, Box<dyn Error>> {
    loop {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string())?;
        let mut stranger = Command::new("/proc/self/exe")
            .arg("sleep")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        if stranger.id() == number {
            return Ok(stranger);
        }
        // Something else of this host's came first: a thread, or a child.
        stranger.kill()?;
        stranger.wait()?;
    }
}
