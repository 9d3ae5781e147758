//! A project that has done nothing but `cargo add`: it builds without the network, and has the whole guarantee.
//!
//! That a tree ends with its host takes a program that no package contains: the build script compiles it. Here it is done as a
//! user's build does it, in a project of its own, which shares neither manifest nor target directory with this one. Then its
//! program is killed, and what it has left behind must go.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::command;
use crate::workspace::Workspace;

/// The project's program: a host with one tree, whose daemon has left its session.
const HOST: &str = include_str!("host.rs");

/// How long the tree may take to end. It is asked, and takes milliseconds.
const BOUND: Duration = Duration::from_secs(60);

/// Makes the project, builds it offline, and kills its program.
pub(super) fn run(workspace: &Workspace) -> Result<()> {
    let directory = tempfile::tempdir().context("cannot make a directory for a fresh project")?;
    let project = directory.path().join("fresh");
    let cargo = |arguments: &[&str]| {
        let mut cargo = workspace.cargo();
        // Its own, whatever this run builds into.
        cargo.env("CARGO_TARGET_DIR", directory.path().join("target"));
        cargo.args(arguments);
        cargo
    };
    command::run(
        cargo(&["init", "--quiet", "--vcs", "none", "--name", "fresh"])
            .arg(&project)
            .current_dir(directory.path()),
    )?;
    // The versions that this machine has already: the build has no network.
    fs::copy(workspace.root().join("Cargo.lock"), project.join("Cargo.lock"))
        .context("cannot copy Cargo.lock")?;
    for package in ["subprocess", "subprocess-local"] {
        let path = workspace.root().join("crates").join(package);
        command::run(
            cargo(&["add", "--quiet", "--offline", "--path"])
                .arg(path)
                .current_dir(&project),
        )?;
    }
    fs::write(project.join("src/main.rs"), HOST).context("cannot write the project's program")?;
    command::run(cargo(&["build", "--quiet", "--offline"]).current_dir(&project))?;
    tree_ends_with_its_host(&directory.path().join("target/debug/fresh"))
}

/// Starts the program, kills it, and reads what its tree writes until nobody is left who could write.
fn tree_ends_with_its_host(program: &Path) -> Result<()> {
    let mut host = Command::new(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let ended = daemon_of(&mut host).and_then(|(daemon, output)| {
        host.kill().context("cannot kill the project's program")?;
        let rest = read_to_end(output);
        if rest.is_err() {
            // It leads a group of its own.
            let _ = kill_process_group(daemon, Signal::KILL);
        }
        rest
    });
    let _ = host.kill();
    host.wait().context("cannot wait for the project's program")?;
    let rest = ended?;
    ensure!(
        rest == "asked\n",
        "the daemon of a killed host was not asked to end before it was killed; it wrote {rest:?}"
    );
    println!("a daemon was asked to end, and ended, when its host was killed");
    Ok(())
}

type Output = BufReader<std::process::ChildStdout>;

/// Reads the daemon's pid, the first thing it writes.
fn daemon_of(host: &mut Child) -> Result<(Pid, Output)> {
    let mut output = BufReader::new(host.stdout.take().context("the output is a pipe")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let pid = line.trim().parse().ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| anyhow!("the project's program started no daemon; it wrote {line:?}"))?;
    Ok((pid, output))
}

/// Reads to the end of file, which comes when the last process that holds the output is gone.
fn read_to_end(mut output: Output) -> Result<String> {
    let (sender, receiver) = mpsc::channel();
    // Left behind where the end does not come; this program ends then.
    thread::spawn(move || {
        let mut rest = String::new();
        let read = output.read_to_string(&mut rest).map(|_| rest);
        let _ = sender.send(read);
    });
    match receiver.recv_timeout(BOUND) {
        Ok(read) => read.context("cannot read what the daemon writes"),
        Err(_) => bail!("the tree of a killed host still runs after {} s", BOUND.as_secs()),
    }
}
