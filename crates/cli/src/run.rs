//! One run, from its start to the report of its end.
//!
//! Written against the seam: which world runs the command is the choice of whoever calls [`run`].

use std::future::pending;
use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{Error, Outcome, OutputReader, PipeReader, Process, StreamName, SubprocessRuntime};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::options::{OwnershipOption, RunOptions};
use crate::own_stream;
use crate::report::{Cause, Report, StreamReport};
use crate::request::{Input, Request, Subject};
use crate::signals::Interrupts;
use crate::stop::Stop;
use crate::stream::{self, Progress};

/// How long the reader of our output may leave us waiting when the run was cut short.
const LAST_WRITE: Duration = Duration::from_secs(1);

/// A world to run in.
pub(crate) struct World {
    /// The seam.
    pub(crate) runtime: Box<dyn SubprocessRuntime>,
    /// Sends `SIGKILL` to every tree at once.
    pub(crate) kill_now: Box<dyn Fn()>,
}

/// Runs what the options say, and returns the report. `make_world` is called once, when all else is in order.
pub(crate) fn run(
    mut options: RunOptions,
    make_world: impl FnOnce(OwnershipOption) -> Result<World, Error>,
) -> Report {
    let subject = match Subject::of(&mut options) {
        Ok(subject) => subject,
        Err((subject, failure)) => return Report::refused(subject, failure),
    };
    let attempt = Request::new(options, &subject).and_then(|request| {
        let executor = tokio::runtime::Builder::new_current_thread()
            // The clock alone: its driver of descriptors and signals panics without a descriptor for it.
            .enable_time()
            .build()
            .map_err(|error| {
                Failure::new(
                    "resource_exhausted",
                    format!("no event loop can be made: {error}"),
                )
            })?;
        let report = executor.block_on(supervise(request, &subject, make_world));
        // A thread may be stuck in a read or a write for ever; the process ends without it.
        executor.shutdown_background();
        report
    });
    attempt.unwrap_or_else(|failure| Report::refused(subject, failure))
}

async fn supervise(
    request: Request,
    subject: &Subject,
    make_world: impl FnOnce(OwnershipOption) -> Result<World, Error>,
) -> Result<Report, Failure> {
    // From here on nobody ends this process before its tree by asking for it.
    let interrupts = Interrupts::watch().map_err(|error| {
        Failure::new(
            "resource_exhausted",
            format!("signals cannot be awaited: {error}"),
        )
    })?;
    let (sender, stops) = mpsc::unbounded_channel();
    let world = make_world(request.ownership).map_err(|error| Failure::from(&error))?;

    let began = Instant::now();
    let drain = request.spec.drain;
    let process = world
        .runtime
        .spawn(request.spec)
        .map_err(|error| Failure::from(&error))?;
    let mut run = Run {
        process,
        kill_now: &*world.kill_now,
        over: CancellationToken::new(),
        sender,
        stops,
        interrupts,
        stopped: None,
        drain,
    };
    let outputs = run.pass_output_on();
    let pump = run.pump(request.input);
    let result = run
        .wait_for_end(request.timeout.map(|timeout| began + timeout))
        .await;
    let duration = began.elapsed();
    pump.inspect(JoinHandle::abort);

    let mut report = Report::ended(subject.clone(), duration, result, run.stopped.take());
    // Who holds a stream can only be told while they live.
    report.holders = run.process.holders().await.unwrap_or_default();
    let termination = run.process.terminate();
    let gone = run.hasten(termination).await;
    run.over.cancel();
    report.stuck = run.flush(outputs.tasks, &mut report).await;

    report.pid = run.process.pid();
    report.ended = run.process.ended().await.unwrap_or_default();
    report.usage = run.process.usage().await.unwrap_or_default();
    if report.cause != Cause::SpawnFailed {
        report.ownership = run.process.ownership().await.ok();
    }
    report.stdout = stream_report(&outputs.stdout, run.process.collected_stdout());
    report.stderr = stream_report(&outputs.stderr, run.process.collected_stderr());
    report.add_survivors(run.process.survivors().await.unwrap_or_default());
    let disposed = run.hasten(world.runtime.dispose()).await;
    for error in [gone, disposed].into_iter().filter_map(Result::err) {
        report.add_failed_end(&error);
    }
    Ok(report)
}

/// The output on its way.
struct Outputs {
    stdout: Arc<Progress>,
    stderr: Arc<Progress>,
    tasks: Vec<JoinHandle<()>>,
}

/// A live tree and what may stop it.
struct Run<'a> {
    process: Process,
    kill_now: &'a dyn Fn(),
    /// Cancelled when the tree is over.
    over: CancellationToken,
    /// Kept, so that `stops` never ends.
    sender: UnboundedSender<Stop>,
    stops: UnboundedReceiver<Stop>,
    interrupts: Interrupts,
    /// Why it was cut short. The first reason stands.
    stopped: Option<Stop>,
    drain: Duration,
}

impl Run<'_> {
    /// Starts passing on the streams that are raw.
    fn pass_output_on(&mut self) -> Outputs {
        let mut outputs = Outputs {
            stdout: Arc::default(),
            stderr: Arc::default(),
            tasks: Vec::new(),
        };
        let (stdout, stderr) = (self.process.stdout(), self.process.stderr());
        let mut start =
            |theirs: Option<PipeReader>, ours: Box<dyn Write + Send>, progress: &Arc<Progress>, name| {
                let Some(theirs) = theirs else { return };
                let copy = stream::pass_on(theirs, ours, progress.clone(), self.over.clone(), self.drain);
                let sender = self.sender.clone();
                outputs.tasks.push(tokio::spawn(async move {
                    if let Err(error) = copy.await {
                        // The receiver lives as long as the executor.
                        let _ = sender.send(Stop::of_output(name, error));
                    }
                }));
            };
        let (ours, our_errors) = (Box::new(own_stream::stdout()), Box::new(own_stream::stderr()));
        start(stdout, ours, &outputs.stdout, StreamName::Stdout);
        start(stderr, our_errors, &outputs.stderr, StreamName::Stderr);
        outputs
    }

    /// Starts feeding the command.
    fn pump(&mut self, input: Option<Input>) -> Option<JoinHandle<()>> {
        let (input, theirs) = input.zip(self.process.stdin())?;
        let sender = self.sender.clone();
        Some(tokio::spawn(async move {
            let name = input.name.clone();
            if let Err(error) = stream::pump(input, theirs).await {
                let _ = sender.send(Stop::InputFailed(name, error));
            }
        }))
    }

    /// Waits for the command's end, and brings it about when the time is up or something stops the run.
    async fn wait_for_end(&mut self, deadline: Option<Instant>) -> Result<Outcome, Error> {
        let mut done = self.process.done();
        let time_is_up = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => pending().await,
            }
        };
        self.stopped = tokio::select! {
            // The end comes first: a command that ended in the same moment was not stopped.
            biased;
            result = &mut done => return result,
            interrupt = self.interrupts.next() => Some(Stop::Interrupted(interrupt)),
            stop = self.stops.recv() => stop,
            () = time_is_up => Some(Stop::TimedOut),
        };
        drop(self.process.terminate());
        self.hasten(done).await
    }

    /// Waits for something that is bound to come, sooner if interrupted: whoever interrupts a run that is already ending
    /// does not want to wait for the grace.
    async fn hasten<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        loop {
            tokio::select! {
                biased;
                value = &mut awaited => return value,
                _ = self.interrupts.next() => (self.kill_now)(),
            }
        }
    }

    /// Waits until the output is passed on, and tells whether that was given up.
    ///
    /// After a natural end it takes as long as our reader takes, as with any program in a pipeline; an interrupt ends it.
    /// After a run that was cut short the reader gets a moment.
    async fn flush(&mut self, tasks: Vec<JoinHandle<()>>, report: &mut Report) -> bool {
        let bound = report.was_stopped().then_some(self.drain + LAST_WRITE);
        let mut all = pin!(async {
            for task in tasks {
                // It ends in no other way than by returning: nothing aborts it.
                let _ = task.await;
            }
        });
        let mut give_up = pin!(async {
            match bound {
                Some(bound) => tokio::time::sleep(bound).await,
                None => pending().await,
            }
        });
        loop {
            tokio::select! {
                biased;
                interrupt = self.interrupts.next() => {
                    report.stop_late(Stop::Interrupted(interrupt));
                    return true;
                }
                stop = self.stops.recv() => if let Some(stop) = stop {
                    report.stop_late(stop);
                },
                () = &mut all => {
                    while let Ok(stop) = self.stops.try_recv() {
                        report.stop_late(stop);
                    }
                    return false;
                }
                () = &mut give_up => return true,
            }
        }
    }
}

fn stream_report(progress: &Progress, reader: Option<&OutputReader>) -> StreamReport {
    match reader {
        Some(reader) => {
            let retained = reader.snapshot();
            StreamReport {
                total: retained.total,
                retained: Some(retained),
                spill: reader.spill(),
                inside_line: false,
            }
        }
        None => StreamReport {
            total: progress.written(),
            inside_line: progress.is_inside_line(),
            ..StreamReport::default()
        },
    }
}

#[cfg(test)]
mod tests;
