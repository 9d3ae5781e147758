//! One run, from its start to the report of its end.
//!
//! Written against the seam: which world runs the command is the choice of whoever calls [`run`].

use std::io::Write;
use std::sync::Arc;

use dsh_subprocess::{Error, OutputReader, PipeReader, Process, StreamName, SubprocessRuntime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::options::{OwnershipOption, RunOptions};
use crate::own_stream;
use crate::report::{Report, StreamReport};
use crate::request::{Input, Request, Subject};
use crate::signals::Interrupts;
use crate::stop::Stop;
use crate::stream::{self, Progress};
use crate::supervision::{self, Supervision};

/// A world to run in.
pub(crate) struct World {
    /// The seam.
    pub(crate) runtime: Arc<dyn SubprocessRuntime>,
    /// Sends `SIGKILL` to every tree at once.
    pub(crate) kill_now: Box<dyn Fn()>,
}

/// Runs what the options say, and returns the report. `make_world` is called once, when all else is in order.
pub(crate) fn run(
    mut options: RunOptions,
    make_world: impl FnOnce(OwnershipOption) -> Result<World, Error>,
) -> Report {
    let command = std::mem::take(&mut options.command);
    let subject = match Subject::of(command, options.cwd.as_deref()) {
        Ok(subject) => subject,
        Err((subject, failure)) => return Report::refused(subject, failure),
    };
    Request::new(options, &subject)
        .and_then(|request| supervision::carry_out(supervise(request, &subject, make_world)))
        .unwrap_or_else(|failure| Report::refused(subject, failure))
}

async fn supervise(
    request: Request,
    subject: &Subject,
    make_world: impl FnOnce(OwnershipOption) -> Result<World, Error>,
) -> Result<Report, Failure> {
    // From here on nobody ends this process before its tree by asking for it.
    let interrupts = Interrupts::watch().map_err(supervision::no_signals)?;
    let world = make_world(request.ownership).map_err(|error| Failure::from(&error))?;
    let mut supervision = Supervision::new(interrupts, &world, request.spec.drain);

    let began = Instant::now();
    let mut process = world
        .runtime
        .spawn(request.spec)
        .map_err(|error| Failure::from(&error))?;
    let outputs = pass_output_on(&mut process, &supervision);
    let pump = pump(&mut process, request.input, &supervision);
    let deadline = request.timeout.map(|timeout| began + timeout);
    let result = supervision
        .wait_for(process.done(), deadline, || drop(process.terminate()))
        .await;
    let duration = began.elapsed();
    pump.inspect(JoinHandle::abort);

    let mut report = Report::ended(subject.clone(), duration, result, supervision.stopped());
    supervision
        .end_tree(&process, || process.terminate(), &mut report)
        .await;
    supervision.flush(outputs.tasks, &mut report).await;
    supervision.conclude(&process, &world, &mut report).await;
    report.stdout = stream_report(&outputs.stdout, process.collected_stdout());
    report.stderr = Some(stream_report(&outputs.stderr, process.collected_stderr()));
    report.inside_line = outputs.stderr.is_inside_line();
    Ok(report)
}

/// The output on its way.
struct Outputs {
    stdout: Arc<Progress>,
    stderr: Arc<Progress>,
    tasks: Vec<JoinHandle<()>>,
}

/// Starts passing on the streams that are raw.
fn pass_output_on(process: &mut Process, supervision: &Supervision<'_>) -> Outputs {
    let mut outputs = Outputs {
        stdout: Arc::default(),
        stderr: Arc::default(),
        tasks: Vec::new(),
    };
    let (stdout, stderr) = (process.stdout(), process.stderr());
    let mut start =
        |theirs: Option<PipeReader>, ours: Box<dyn Write + Send>, progress: &Arc<Progress>, name| {
            let Some(theirs) = theirs else { return };
            let copy = stream::pass_on(theirs, ours, progress.clone(), supervision.remainder());
            outputs
                .tasks
                .push(supervision.watch(copy, move |error| Stop::of_output(name, error)));
        };
    let (ours, our_errors) = (Box::new(own_stream::stdout()), Box::new(own_stream::stderr()));
    start(stdout, ours, &outputs.stdout, StreamName::Stdout);
    start(stderr, our_errors, &outputs.stderr, StreamName::Stderr);
    outputs
}

/// Starts feeding the command.
fn pump(
    process: &mut Process,
    input: Option<Input>,
    supervision: &Supervision<'_>,
) -> Option<JoinHandle<()>> {
    let (Input { name, source }, theirs) = input.zip(process.stdin())?;
    let pump = stream::pump(source, theirs);
    Some(supervision.watch(pump, |error| Stop::InputFailed(name, error)))
}

fn stream_report(progress: &Progress, reader: Option<&OutputReader>) -> StreamReport {
    match reader {
        Some(reader) => StreamReport::of(reader),
        None => StreamReport {
            total: progress.written(),
            ..StreamReport::default()
        },
    }
}

#[cfg(test)]
mod tests;
