//! Scenarios about one command.

use std::error::Error;
use std::num::NonZeroU64;

use dsh_subprocess::{Collect, Lookup, Output, Process, Spill, SpillLife, SpillState, SubprocessRuntime};
use dsh_subprocess_local::LocalRuntime;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use pollster::block_on;
use tokio_util::sync::CancellationToken;

use super::{Report, announced, spec};

/// `run [--cwd=DIR] [--max-bytes=N] [--spill=BYTES] [--grace-ms=N] [--until=WORD] ARGV…`: one command to the end of its tree. With
/// `--until` the tree is terminated once its output has a line that starts with that word.
pub(super) fn run(runtime: &LocalRuntime, report: &Report, args: Vec<String>) -> Result<(), Box<dyn Error>> {
    let mut window = Collect {
        max_bytes: 65_536,
        head_bytes: 0,
        spill: None,
    };
    let mut until = None;
    let mut cwd = None;
    let mut grace = None;
    let mut rest = args.into_iter().peekable();
    while let Some(option) = rest.next_if(|argument| argument.starts_with("--")) {
        match option.split_once('=') {
            Some(("--cwd", directory)) => cwd = Some(directory.to_owned()),
            Some(("--max-bytes", bytes)) => window.max_bytes = bytes.parse()?,
            Some(("--grace-ms", millis)) => grace = Some(std::time::Duration::from_millis(millis.parse()?)),
            Some(("--until", word)) => until = Some(word.to_owned()),
            Some(("--spill", bytes)) => {
                let max_bytes = bytes.parse::<NonZeroU64>()?;
                window.spill = Some(Spill {
                    max_bytes,
                    life: SpillLife::Runtime,
                });
            }
            _ => return Err(format!("`{option}` is no option of `run`").into()),
        }
    }
    let argv: Vec<String> = rest.collect();
    let mut spec = spec(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    spec.stdout = Output::Collect(window);
    if let Some(cwd) = cwd {
        spec.cwd = cwd.into();
    }
    if let Some(grace) = grace {
        spec.grace = grace;
    }
    let process = match runtime.spawn(spec) {
        Ok(process) => process,
        Err(error) => {
            report.error("refused", &error);
            return Ok(());
        }
    };
    if let Some(word) = until {
        announced(&process, &word)?;
        drop(process.terminate());
    }
    tell(report, &process);
    match block_on(process.terminate()) {
        Ok(()) => report.line("gone", "true"),
        Err(error) => report.error("gone-error", &error),
    }
    match block_on(runtime.dispose()) {
        Ok(()) => report.line("disposed", "true"),
        Err(error) => report.error("dispose-error", &error),
    }
    Ok(())
}

/// Reports how a process ended and what it wrote.
fn tell(report: &Report, process: &Process) {
    match block_on(process.done()) {
        Ok(outcome) => report.line("outcome", outcome.to_string()),
        Err(error) => report.error("failed", &error),
    }
    if let Some(pid) = process.pid() {
        report.number("pid", pid);
    }
    if let Ok(ownership) = block_on(process.ownership()) {
        for weakness in ownership.weaknesses {
            report.line("weakness", weakness);
        }
    }
    for (key, reader) in [
        ("stdout", process.collected_stdout()),
        ("stderr", process.collected_stderr()),
    ] {
        let Some(reader) = reader else { continue };
        report.line(key, reader.text());
        report.number(&format!("{key}-total"), reader.total());
        let state = match reader.spill() {
            SpillState::None => "none".to_owned(),
            SpillState::Available(stream) => format!("available {} {}", stream.length, stream.location),
            SpillState::Withdrawn(why) => format!("withdrawn {why}"),
            other => format!("{other:?}"),
        };
        report.line(&format!("{key}-spill"), state);
    }
}

/// `resolve COMMAND PATH`: looks a command up, with that search path.
pub(super) fn resolve(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let [command, path] = args else {
        return Err("a command and a search path are wanted".into());
    };
    let found = block_on(runtime.resolve_executable(Lookup {
        command: command.as_str().into(),
        env: [("PATH".into(), Some(path.as_str().into()))].into(),
        cancel: CancellationToken::new(),
    }));
    match found {
        Ok(path) => report.line("found", path.to_string()),
        Err(error) => report.error("missed", &error),
    }
    Ok(())
}

/// `starved descriptors|processes`: a spawn while the host has none left, and one after it has some again.
pub(super) fn starved(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    let command = spec(&["/bin/echo", "fed"]);
    // Whatever a runtime makes at its first spawn is there by then.
    report.line(
        "before",
        block_on(runtime.spawn(command.clone())?.done())?.to_string(),
    );
    let (resource, low) = match args.first().map(String::as_str) {
        // A limit below what is open refuses each new one.
        Some("descriptors") => (Resource::RLIMIT_NOFILE, 3),
        Some("processes") => (Resource::RLIMIT_NPROC, 0),
        _ => return Err("starved of what: `descriptors` or `processes`".into()),
    };
    let (soft, hard) = getrlimit(resource)?;
    setrlimit(resource, low, hard)?;
    let starved = runtime.spawn(command.clone());
    let outcome = starved.as_ref().map(|process| block_on(process.done()));
    setrlimit(resource, soft, hard)?;
    match outcome {
        Ok(Ok(outcome)) => report.line("starved-outcome", outcome.to_string()),
        Ok(Err(error)) => report.error("starved", &error),
        Err(error) => report.error("refused", error),
    }
    if let Ok(process) = starved {
        report.line(
            "inert",
            (process.pid().is_none() && block_on(process.terminate()).is_ok()).to_string(),
        );
    }
    report.line("after", block_on(runtime.spawn(command)?.done())?.to_string());
    Ok(())
}
