//! A host that forks while it has a terminal: what the child does with its copy of the handle, and what becomes of the parent's.

use std::error::Error;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use dsh_subprocess::{SubprocessRuntime, Terminal, TerminalSignal, TerminalSize};
use dsh_subprocess_local::LocalRuntime;
use fork::Fork;
use pollster::block_on;

use super::{Screen, spec};
use crate::host::Report;

/// `terminal-forked`: in a forked child, uses a terminal in every way there is, and drops it; then goes on in the parent.
pub(in crate::host) fn forked(runtime: &LocalRuntime, report: &Report) -> Result<(), Box<dyn Error>> {
    let script = r#"stty -echo; trap 'echo interrupted' INT
        echo ready; while read -r line; do echo "read $line $(stty size)"; done"#;
    let mut terminal = block_on(runtime.spawn_terminal(spec(&["/bin/bash", "-c", script])))?;
    let mut screen = Screen::of(&mut terminal)?;
    screen.wait_for("ready", 1)?;
    let pending = runtime.spawn_terminal(spec(&["/bin/cat"]));
    match fork::fork()? {
        Fork::Child => {
            drop(pending);
            in_the_child(runtime, terminal, screen, report);
            std::process::exit(0);
        }
        Fork::Parent(child) => report.number("child-status", fork::waitpid(child)?),
    }
    let other = block_on(pending)?;
    block_on(other.write("\u{4}"))?;
    report.line("other-outcome", block_on(other.done())?.to_string());
    block_on(terminal.write("after\n"))?;
    screen.wait_for("read", 1)?;
    block_on(terminal.terminate())?;
    report.line("output", screen.rest()?);
    report.line("outcome", block_on(terminal.done())?.to_string());
    Ok(())
}

fn in_the_child(runtime: &LocalRuntime, terminal: Terminal, screen: Screen, report: &Report) {
    let size = TerminalSize { rows: 1, cols: 1 };
    tell(report, "child-write", terminal.write("by the child\n"));
    tell(report, "child-resize", terminal.resize(size));
    tell(
        report,
        "child-signal",
        terminal.signal_foreground(TerminalSignal::Interrupt),
    );
    tell(report, "child-inspect", terminal.inspect_foreground());
    tell(
        report,
        "child-spawn",
        runtime.spawn_terminal(spec(&["/bin/true"])),
    );
    drop(terminal.terminate());
    drop(screen);
    drop(terminal);
    report.line("child-tried", "everything");
}

/// Tells how a call fails. Nothing in the child could make one ready that is not.
fn tell<T>(report: &Report, key: &str, call: impl Future<Output = Result<T, dsh_subprocess::Error>>) {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(_)) => report.line(key, "done"),
        Poll::Ready(Err(error)) => report.error(key, &error),
        Poll::Pending => report.line(key, "pending"),
    }
}
