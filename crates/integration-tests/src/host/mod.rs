//! `host`: a program that embeds the local world, with peculiarities that a whole process must have.
//!
//! `probe host [PECULIARITY…] SCENARIO [ARGUMENT…]`. Whatever it finds, it reports as lines `key value`; a scenario that
//! holds a state for the test to look at reports `ready` and goes on at the next line of its input.

mod costs;
mod death;
mod fault;
mod faults;
mod forked;
mod hungry;
mod init;
mod left;
mod many;
mod peculiar;
mod report;
mod reuse;
mod run;
mod shell;
mod stay;
mod steps;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use dsh_subprocess::{Collect, ErrorOutput, Output, SpawnSpec, Stdin};
use dsh_subprocess_local::LocalRuntime;
use tokio_util::sync::CancellationToken;

use crate::Answer;
use peculiar::Peculiar;
use report::Report;

/// `host`: see the module.
pub(crate) fn host(args: Vec<String>) -> Answer {
    let (peculiar, mut args) = Peculiar::parse(args)?;
    if args.is_empty() {
        return Err("the scenario is missing".into());
    }
    let scenario = args.remove(0);
    let report = Report::open()?;
    let leaked = peculiar.take_effect()?;
    if scenario == "build" {
        match peculiar.runtime() {
            Ok(_) => report.line("built", "true"),
            Err(error) => report.error("refused", &error),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if init::to_the_end(&scenario, &peculiar, &report)? {
        return Ok(ExitCode::SUCCESS);
    }
    if scenario == "faults" {
        faults::faults(&peculiar, &report, &args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = peculiar.runtime()?;
    report.line("mechanism", runtime.ownership().mechanism.to_string());
    match scenario.as_str() {
        "run" => run::run(&runtime, &report, args)?,
        "starved" => run::starved(&runtime, &report, &args)?,
        "orphan" => stay::orphan(&runtime, &report)?,
        "nested" => stay::nested(&runtime, &report, &args)?,
        "idle" => stay::idle(&runtime, &report, &args)?,
        "survivors" => stay::survivors(&runtime, &report, &args)?,
        "unkillable-once" => stay::unkillable_once(&runtime, &report, &args)?,
        "unkillable" => stay::unkillable(&runtime, &report, &args)?,
        "drop-handles" => many::drop_handles(&runtime, &report, &args)?,
        "descriptors" => many::descriptors(&runtime, &report, &args)?,
        "runtimes" => many::runtimes(&peculiar, &report, &args)?,
        "exit-codes" => many::exit_codes(&runtime, &report, &args)?,
        "forked" => forked::forked(&peculiar, &report)?,
        "steps" => steps::steps(&runtime, &report)?,
        "orphans" => init::orphans(&runtime, &report, &args)?,
        "dropped" => init::dropped(&runtime, &report, &args)?,
        "statuses" => init::statuses(&runtime, &report, &args)?,
        "hungry-end" => hungry::end(&runtime, &report, &args)?,
        "hungry-spill" => hungry::spill(&peculiar, &report, &args)?,
        "reuse" => reuse::reuse(&runtime, &report)?,
        "reuse-early" => reuse::reuse_early(&runtime, &report)?,
        "spilled" => left::spilled(&runtime, &report, &args)?,
        "spilled-below" => left::spilled_below(&runtime, &report, &args)?,
        "abandon" => left::abandon(&peculiar, &report, &args)?,
        "records" => left::records(&report),
        "mortal" => death::mortal(&runtime, &report, &args)?,
        "bereft" => death::bereft(&runtime, &report, &args)?,
        "by-thread" => death::by_thread(&runtime, &report)?,
        "resolve" => run::resolve(&runtime, &report, &args)?,
        "watch" => stay::watch(&runtime, &report, &args)?,
        "terminal" => terminal::run(&runtime, &report, args)?,
        "terminal-descriptors" => terminal::descriptors(&runtime, &report, &args)?,
        "terminal-orphans" => terminal::orphans(&runtime, &report, &args)?,
        "terminal-starved" => terminal::starved(&runtime, &report, &args)?,
        "terminal-hungry" => terminal::hungry(&runtime, &report, &args)?,
        "terminal-forked" => terminal::forked(&runtime, &report)?,
        "terminal-mortal" => terminal::mortal(&runtime, &report, &args)?,
        "page-faults" => costs::page_faults(&runtime, &report, &args)?,
        "collect" => costs::collect(&runtime, &report, &args)?,
        "shell" => shell::shell(&runtime, &report, &args)?,
        "shell-at-once" => shell::at_once(&runtime, &report, &args)?,
        "shell-job" => shell::job(&runtime, &report, &args)?,
        other => return Err(format!("there is no scenario named `{other}`").into()),
    }
    drop(leaked);
    Ok(ExitCode::SUCCESS)
}

/// A spec with small windows, the host's environment, and a grace that no test waits out.
fn spec(argv: &[&str]) -> SpawnSpec {
    let window = Collect {
        max_bytes: 65_536,
        head_bytes: 0,
        spill: None,
    };
    SpawnSpec {
        argv: argv.iter().map(|&argument| argument.into()).collect(),
        cwd: "/".into(),
        // The scrub drops the name; what marks a test's processes must reach them.
        env: std::env::var_os("DSH_CASE")
            .map(|marker| ("DSH_CASE".into(), Some(marker.into())))
            .into_iter()
            .collect(),
        stdin: Stdin::Ignore,
        stdout: Output::Collect(window.clone()),
        stderr: ErrorOutput::Own(Output::Collect(window)),
        grace: Duration::from_secs(30),
        drain: Duration::from_secs(5),
        control: false,
        cancel: CancellationToken::new(),
    }
}

/// A spec that runs a call of this program.
fn probe(call: &[&str]) -> std::io::Result<SpawnSpec> {
    let mut spec = spec(call);
    spec.argv.insert(0, std::env::current_exe()?.into());
    Ok(spec)
}

/// Waits for a line that starts with `word` in a tree's collected output, and returns the words after it.
fn announced(process: &dsh_subprocess::Process, word: &str) -> Result<Vec<String>, String> {
    let output = process.collected_stdout().ok_or("the output is not collected")?;
    loop {
        let total = output.total();
        let text = output.text();
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        if let Some(line) = complete.lines().find(|line| line.split(' ').next() == Some(word)) {
            return Ok(line.split(' ').skip(1).map(str::to_owned).collect());
        }
        if output.is_sealed() && output.total() == total {
            return Err(format!("the output ended without `{word}`: {text:?}"));
        }
        pollster::block_on(output.changed(total));
    }
}

/// Waits for the next line of this process's input; its end counts as one.
fn next_line() -> std::io::Result<()> {
    std::io::stdin().read_line(&mut String::new()).map(drop)
}

/// Builds the runtime that a host's arguments ask for.
impl Peculiar {
    fn runtime(&self) -> Result<LocalRuntime, dsh_subprocess::Error> {
        let mut builder = LocalRuntime::builder().ownership(self.ownership);
        for &feature in &self.without {
            builder = builder.without(feature);
        }
        builder = builder.reap_orphans(self.reap_orphans);
        if let Some(bound) = self.kill_bound {
            builder = builder.kill_bound(bound);
        }
        if let Some(parent) = &self.spill_parent {
            builder = builder.spill_parent(parent);
        }
        builder.build()
    }
}
