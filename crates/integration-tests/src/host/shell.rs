//! Scenarios of a host that runs shell commands.

use std::error::Error;
use std::sync::Arc;

use dsh_jobs::{Jobs, Limits, NewJob, Work};
use dsh_shell::{Cause, Config, JOB_KIND, RunResult, Shell, ShellError, ShellRequest};
use dsh_subprocess::EnvOverlay;
use dsh_subprocess_local::LocalRuntime;

use super::costs::peak_memory_kib;
use super::{Report, next_line};

/// `shell [--workdir=DIRECTORY] COMMAND…`: runs shell commands, one after the other.
pub(super) fn shell(runtime: &LocalRuntime, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let (workdir, commands) = match args.first().and_then(|first| first.strip_prefix("--workdir=")) {
        Some(workdir) => (Some(workdir), &args[1..]),
        None => (None, args),
    };
    executor()?.block_on(async {
        let shell = Shell::new(Arc::new(runtime.clone()), config())?;
        for command in commands {
            let mut request = ShellRequest::new(command.as_str());
            request.workdir = workdir.map(Into::into);
            let result = match shell.resolve(request) {
                Ok(spec) => shell.run(spec).await,
                Err(error) => Err(error),
            };
            tell(report, &result);
        }
        Ok(())
    })
}

/// `shell-at-once COMMAND…`: runs shell commands at the same time, and reports how the host's peak memory grew.
pub(super) fn at_once(
    runtime: &LocalRuntime,
    report: &Report,
    args: &[String],
) -> Result<(), Box<dyn Error>> {
    executor()?.block_on(async {
        let shell = Shell::new(Arc::new(runtime.clone()), config())?;
        shell.run(shell.resolve(ShellRequest::new("true"))?).await?;
        let before = peak_memory_kib()?;
        let mut executions = Vec::new();
        for command in args {
            executions.push(shell.execute(shell.resolve(ShellRequest::new(command.as_str()))?)?);
        }
        for execution in executions {
            let result = execution.result().await?;
            report.number("head", result.stdout.snapshot.head.len());
            report.number("tail", result.stdout.snapshot.tail.len());
            report.number("total", result.stdout.snapshot.total);
            tell_end(report, &result);
        }
        report.number("grown-kib", peak_memory_kib()?.saturating_sub(before));
        Ok(())
    })
}

/// `shell-job COMMAND`: starts a shell command as a job, says so once it has said `ready`, and stays until the next line.
pub(super) fn job(runtime: &LocalRuntime, report: &Report, args: &[String]) -> Result<(), Box<dyn Error>> {
    let command = args.first().ok_or("the command is missing")?;
    executor()?.block_on(async {
        let shell = Shell::new(Arc::new(runtime.clone()), config())?;
        let jobs = Jobs::new(Limits::default())?;
        let session = jobs.open("host")?;
        let execution = shell.start(shell.resolve(ShellRequest::new(command.as_str()))?)?;
        let work = execution.clone();
        let id = session.start(NewJob::new(JOB_KIND, command), move || {
            Ok::<_, ShellError>(Arc::new(work) as Arc<dyn Work>)
        })?;
        while !execution.stdout().text().contains("ready") {
            execution.stdout().changed(execution.stdout().total()).await;
        }
        report.line("job", id.to_string());
        report.number("target", execution.pid().ok_or("this world has ids")?);
        report.line("ready", "");
        next_line()?;
        session.end().await?;
        report.line("ended", "true");
        Ok(())
    })
}

fn executor() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
}

/// The defaults, and the mark of this test's processes.
fn config() -> Config {
    let marker = std::env::var_os("DSH_CASE").map(|marker| ("DSH_CASE".into(), Some(marker.into())));
    Config {
        env: EnvOverlay::from_iter(marker),
        ..Config::default()
    }
}

fn tell(report: &Report, result: &Result<RunResult, ShellError>) {
    match result {
        Ok(result) => {
            report.line("stdout", result.stdout.reader.text());
            if let Some(stderr) = &result.stderr {
                report.line("stderr", stderr.reader.text());
            }
            tell_end(report, result);
        }
        Err(error) => {
            report.line("failed", format!("{:?}", error.kind()));
            report.line("failed-text", error.to_string());
        }
    }
}

fn tell_end(report: &Report, result: &RunResult) {
    report.line("outcome", result.outcome.to_string());
    report.line(
        "cause",
        match result.cause {
            Cause::Ended => "ended",
            Cause::TimedOut => "timed out",
            Cause::Aborted => "aborted",
        },
    );
}
