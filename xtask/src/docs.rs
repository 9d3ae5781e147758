//! `cargo xtask docs`: the manual pages and shell completions, from the CLI's own definitions.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::command;
use crate::workspace::Workspace;

/// Writes the manual pages and the shell completions to docs/cli
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail when a file is not what the command would print now
    #[arg(long)]
    check: bool,
}

/// The files, each with the arguments that make the CLI print it.
const FILES: &[(&str, [&str; 2])] = &[
    ("dsh-subprocess.1", ["man", "main"]),
    ("dsh-subprocess-run.1", ["man", "run"]),
    ("dsh-subprocess-sh.1", ["man", "sh"]),
    ("dsh-subprocess-mcp.1", ["man", "mcp"]),
    ("dsh-subprocess-term.1", ["man", "term"]),
    ("dsh-subprocess-exec.1", ["man", "exec"]),
    ("dsh-subprocess-doctor.1", ["man", "doctor"]),
    ("dsh-subprocess.bash", ["completions", "bash"]),
    ("dsh-subprocess.fish", ["completions", "fish"]),
    ("_dsh-subprocess", ["completions", "zsh"]),
];

/// Writes every file, or compares it with what is there.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if options.check {
        return check(workspace);
    }
    let directory = directory(workspace);
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    for (name, arguments) in FILES {
        let path = directory.join(name);
        fs::write(&path, printed(workspace, arguments)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Fails when a file is not what the CLI prints now.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let directory = directory(workspace);
    for (name, arguments) in FILES {
        let path = directory.join(name);
        let written = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if written != printed(workspace, arguments)? {
            bail!(
                "{} is out of date; `cargo xtask docs` writes it anew",
                path.display()
            );
        }
    }
    println!("{} files are what the command prints now", FILES.len());
    Ok(())
}

fn directory(workspace: &Workspace) -> PathBuf {
    workspace.root().join("docs").join("cli")
}

/// What the CLI prints when it is run with the arguments.
fn printed(workspace: &Workspace, arguments: &[&str]) -> Result<Vec<u8>> {
    let mut cli = workspace.cargo();
    command::output(
        cli.args(["run", "--quiet", "--package", "dsh-subprocess-cli", "--"])
            .args(arguments),
    )
}
