//! The budgets, each measured beside its floor.
//!
//! For each row this project (once per ownership tier that works here), the floor (a raw loop over the same system calls)
//! and what else a user might pick are measured in turns, so that a slow moment of the machine falls on all of them. The
//! rows and their budgets are described in `docs/benchmarks.md`; the exit status is 1 when a budget is missed, and 2 when
//! something could not be measured.
#![deny(unsafe_code)]

mod budget;
mod candidate;
mod collect;
mod concurrent;
mod death;
mod finding;
mod floor;
mod helper;
mod host;
mod idle;
mod linger;
mod options;
mod peers;
mod project;
mod report;
mod shell;
mod spawn;
mod statistics;
mod terminal;
mod terminate;
mod turns;

use std::process::ExitCode;

use clap::Parser as _;

use options::{Options, Row};

fn main() -> ExitCode {
    // The programs that the rows spawn are this one, called differently.
    if let Some(call) = helper::call() {
        return match helper::answer(&call) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        };
    }
    match bench(&Options::parse()) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("dsh-subprocess-benches: {error:#}");
    ExitCode::from(2)
}

fn bench(options: &Options) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    for row in options.rows() {
        eprintln!("measuring {row} …");
        let mut found = match row {
            Row::Spawn => spawn::measure(options.rounds),
            Row::Spawn4g => spawn::measure_large(options.rounds),
            Row::SpawnC16 | Row::SpawnC64 => concurrent::measure(row, options.rounds),
            Row::Terminate1 | Row::Terminate100 | Row::Terminate1000 => {
                terminate::measure(row, options.rounds)
            }
            Row::Linger => linger::measure(options.rounds),
            Row::Collect | Row::CollectSpill => collect::measure(row, options.rounds),
            Row::Idle1000 => idle::children::measure(),
            Row::HostDeath => death::measure(options.rounds),
            Row::PtySpawn => terminal::spawn::measure(options.rounds),
            Row::PtyEcho => terminal::echo::measure(options.rounds),
            Row::PtyBulkCooked | Row::PtyBulkRaw => terminal::bulk::measure(row, options.rounds),
            Row::PtyIdle200 => idle::terminals::measure(),
            Row::PtyInspect => terminal::inspect::measure(options.rounds),
            Row::ShellCall | Row::McpCall => shell::call::measure(row, options.rounds),
            Row::ShellC64 => shell::concurrent::measure(options.rounds),
        }?;
        budget::judge(&mut found);
        if options.json {
            report::objects(&found)?;
        }
        findings.append(&mut found);
    }
    if !options.json {
        report::table(&findings)?;
    }
    Ok(if report::misses(&findings) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
