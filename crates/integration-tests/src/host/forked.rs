//! Scenarios about a host that forks: what the child may not do, and what it does to the parent.

use std::error::Error;
use std::io::Write;

use dsh_subprocess::{Process, ScopedProcess, Stdin, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use fork::Fork;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use pollster::block_on;

use super::{Peculiar, Report, announced, probe, spec};

/// What a host has when it forks.
struct Belongings {
    echo: Process,
    scoped: ScopedProcess,
    tokened: Process,
    token: tokio_util::sync::CancellationToken,
}

/// `forked`: in a forked child, uses the runtime and tries to end each of its trees in every way there is; then goes on in
/// the parent.
pub(super) fn forked(peculiar: &Peculiar, report: &Report) -> Result<(), Box<dyn Error>> {
    // A runtime of its own, whose last reference the child has a copy of.
    let runtime = peculiar.runtime()?;
    let mut echo = probe(&["cat"])?;
    echo.stdin = Stdin::Pipe;
    let mut echo = runtime.spawn(echo)?;
    let input = echo.stdin().ok_or("no pipe to the target")?.try_into_fd()?;
    let mut input = std::fs::File::from(input);
    let tokened = probe(&["sleep"])?;
    let token = tokened.cancel.clone();
    let belongings = Belongings {
        scoped: runtime.spawn(probe(&["sleep"])?)?.scoped(),
        tokened: runtime.spawn(tokened)?,
        token,
        echo,
    };
    let mut pids = announced(&belongings.scoped, "ready")?;
    pids.extend(announced(&belongings.tokened, "ready")?);
    input.write_all(b"before 1\n")?;
    announced(&belongings.echo, "before")?;
    pids.extend(belongings.echo.pid().map(|pid| pid.to_string()));

    match fork::fork()? {
        Fork::Child => {
            in_the_child(runtime, belongings, report);
            std::process::exit(0);
        }
        Fork::Parent(child) => report.number("child-status", fork::waitpid(child)?),
    }

    // Its stream is still watched, and its pipe still open.
    input.write_all(b"after 1\n")?;
    report.line("echo", announced(&belongings.echo, "after")?.join(" "));
    let alive = pids
        .iter()
        .filter(|pid| {
            pid.parse()
                .is_ok_and(|pid| kill(Pid::from_raw(pid), None).is_ok())
        })
        .count();
    report.number("trees-alive", alive);
    drop(input);
    report.line("echo-outcome", block_on(belongings.echo.done())?.to_string());
    belongings.token.cancel();
    report.line(
        "tokened-outcome",
        block_on(belongings.tokened.done())?.to_string(),
    );
    let done = belongings.scoped.done();
    drop(belongings.scoped);
    report.line("scoped-outcome", block_on(done)?.to_string());
    report.line(
        "parent",
        block_on(runtime.spawn(spec(&["/bin/true"]))?.done())?.to_string(),
    );
    block_on(runtime.dispose())?;
    report.line("disposed", "true");
    Ok(())
}

fn in_the_child(runtime: LocalRuntime, belongings: Belongings, report: &Report) {
    match runtime.spawn(spec(&["/bin/true"])) {
        Ok(_) => report.line("child", "spawned"),
        Err(error) => report.error("child", &error),
    }
    belongings.token.cancel();
    drop(belongings.scoped);
    drop(belongings.echo.terminate());
    drop(belongings.tokened.terminate());
    runtime.kill_all();
    drop(belongings.echo);
    drop(belongings.tokened);
    drop(runtime);
    report.line("child-tried", "everything");
}
