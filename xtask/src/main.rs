//! The project's own tasks, run as `cargo xtask …` from anywhere in the checkout.
#![forbid(unsafe_code)]

mod bench;
mod build;
mod check;
mod command;
mod docs;
mod node;
mod prerequisites;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// The project's own tasks.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Test(test::Options),
    /// Checks the rules between the crates: who may depend on whom, and who may hold unsafe code
    Check,
    #[command(subcommand)]
    Build(build::Build),
    #[command(subcommand)]
    Pack(build::Pack),
    Bench(bench::Options),
    Docs(docs::Options),
}

fn main() -> ExitCode {
    let task = Cli::parse().task;
    let outcome = Workspace::load().and_then(|workspace| match task {
        Task::Test(options) => test::run(&workspace, &options).map(|()| ExitCode::SUCCESS),
        Task::Check => check::run(&workspace).map(|()| ExitCode::SUCCESS),
        Task::Build(what) => what.run(&workspace).map(|()| ExitCode::SUCCESS),
        Task::Pack(what) => what.run(&workspace).map(|()| ExitCode::SUCCESS),
        Task::Bench(options) => bench::run(&workspace, &options),
        Task::Docs(options) => docs::run(&workspace, &options).map(|()| ExitCode::SUCCESS),
    });
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
