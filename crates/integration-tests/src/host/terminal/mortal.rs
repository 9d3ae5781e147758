//! A host that ends, in one way or another, while its sessions live.

use std::error::Error;
use std::time::Duration;

use dsh_subprocess::SubprocessRuntime;
use dsh_subprocess_local::LocalRuntime;
use pollster::block_on;

use super::{Screen, spec};
use crate::host::death::die;
use crate::host::{Report, next_line};

/// `terminal-mortal DEATH LOG GRACE-MS`: runs a crowd on a terminal, whose members mind no hang-up, and an interactive shell on
/// another one, with a job; then dies at the next line. A death that is none of its own doing is waited for.
pub(in crate::host) fn mortal(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let [death, log, grace] = args else {
        return Err("a death, a log and a grace are wanted".into());
    };
    let own = std::env::current_exe()?;
    let own = own.to_str().ok_or("the program's name is text")?;
    // What is ignored stays so through every exec.
    let script = r#"trap "" HUP; exec "$0" crowd "$1""#;
    let mut crowd = spec(&["/bin/sh", "-c", script, own, log]);
    crowd.grace = Duration::from_millis(grace.parse()?);
    let mut shell = spec(&["/bin/bash", "--norc", "-i"]);
    shell.grace = crowd.grace;
    let crowd = block_on(runtime.spawn_terminal(crowd))?;
    let mut shell = block_on(runtime.spawn_terminal(shell))?;
    let mut screen = Screen::of(&mut shell)?;
    block_on(shell.write("sleep 300 &\necho; echo at the prompt\n"))?;
    screen.wait_for("at", 1)?;
    report.number("target", crowd.pid().ok_or("this world has ids")?);
    report.line("ready", "");
    next_line()?;
    die(death, crowd.tree(), report)
}
