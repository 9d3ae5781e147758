//! `cargo xtask bench`: the budgets, measured beside their floors.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::workspace::Workspace;
use crate::{command, node};

/// Measures the budgets, each beside its floor; exits 1 when one is missed
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    package: Option<Package>,
    /// What the bench program takes: --json for one JSON object a line, and names of rows [default: all rows]
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "[--json] ROW"
    )]
    arguments: Vec<OsString>,
}

/// Budgets that are measured elsewhere than in Rust.
#[derive(Subcommand)]
enum Package {
    /// Measures the budgets of the Node.js package, beside its peers
    Node {
        /// What the bench program takes, such as --rows and --json
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
}

/// Builds the bench program for release and runs it with the arguments as they are; its exit code is the task's.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    if let Some(Package::Node { arguments }) = &options.package {
        return run_node(workspace, arguments);
    }
    let mut bench = workspace.cargo();
    bench
        .args(["run", "--release", "--package", "dsh-subprocess-benches", "--"])
        .args(&options.arguments);
    exit_code(&mut bench)
}

/// Builds the Node.js package, installs its peers, and runs its bench program.
fn run_node(workspace: &Workspace, arguments: &[OsString]) -> Result<ExitCode> {
    let package = node::directory(workspace)?;
    node::build(workspace, &node::BuildOptions::default())?;
    node::install(&package.join("bench"))?;
    let mut bench = Command::new("node");
    bench
        .current_dir(&package)
        .args(["--expose-gc", "bench/main.mjs"])
        .args(arguments);
    exit_code(&mut bench)
}

/// Runs the program, and returns how it exited; a failure where a signal ended it.
fn exit_code(bench: &mut Command) -> Result<ExitCode> {
    let code = command::status(bench)?
        .code()
        .and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    fn parsed(line: &[&str]) -> Options {
        let line = ["bench"].iter().chain(line);
        Cli::try_parse_from(line).expect("the line is valid").options
    }

    #[test]
    fn rows_are_those_of_the_rust_benches() {
        let options = parsed(&["--json", "spawn", "--rounds=3"]);
        assert!(options.package.is_none());
        assert_eq!(options.arguments, ["--json", "spawn", "--rounds=3"]);
        assert!(parsed(&[]).package.is_none());
    }

    #[test]
    fn what_follows_node_is_for_its_own_program() {
        let options = parsed(&["node", "--json", "out.json", "--rows", "spawn"]);
        let Some(Package::Node { arguments }) = options.package else {
            panic!("it is no row of the Rust benches");
        };
        assert_eq!(arguments, ["--json", "out.json", "--rows", "spawn"]);
    }
}
