//! `cargo xtask bench`: the budgets, measured beside their floors.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::command;
use crate::workspace::Workspace;

/// Measures the budgets, each beside its floor; exits 1 when one is missed
#[derive(Args)]
pub(crate) struct Options {
    /// What the bench program takes: --json for one JSON object a line, and names of rows [default: all rows]
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "[--json] ROW"
    )]
    arguments: Vec<OsString>,
}

/// Builds the bench program for release and runs it with the arguments as they are; its exit code is the task's.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let mut bench = workspace.cargo();
    bench
        .args(["run", "--release", "--package", "dsh-subprocess-benches", "--"])
        .args(&options.arguments);
    let code = command::status(&mut bench)?
        .code()
        .and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
