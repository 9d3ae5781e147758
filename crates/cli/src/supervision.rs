//! Looking after one tree: what may cut it short, its end, and what there is to say of that.
//!
//! The same for a tree with pipes and for one on a terminal.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::time::Duration;

use dsh_subprocess::{Error, Process, Termination};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::report::{Cause, Report};
use crate::run::World;
use crate::signals::{Interrupt, Interrupts};
use crate::stop::Stop;
use crate::stream::Remainder;

/// How long the reader of our output may leave us waiting when the run was cut short.
const LAST_WRITE: Duration = Duration::from_secs(1);

/// Carries a run out, from its start to its report.
///
/// # Errors
///
/// Those of the run, and that there is nothing left to run it with.
pub(crate) fn carry_out<R>(run: impl Future<Output = Result<R, Failure>>) -> Result<R, Failure> {
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
    let report = executor.block_on(run);
    // A thread may be stuck in a read or a write for ever; the process ends without it.
    executor.shutdown_background();
    report
}

/// Says why signals cannot be awaited.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` calls")]
pub(crate) fn no_signals(error: io::Error) -> Failure {
    Failure::new(
        "resource_exhausted",
        format!("signals cannot be awaited: {error}"),
    )
}

/// What may cut a live tree short.
pub(crate) struct Supervision<'a> {
    interrupts: Interrupts,
    kill_now: &'a dyn Fn(),
    /// Cancelled when the tree is over.
    over: CancellationToken,
    /// Cancelled when the tree is being ended.
    ending: CancellationToken,
    /// Kept, so that `stops` never ends.
    sender: UnboundedSender<Stop>,
    stops: UnboundedReceiver<Stop>,
    /// Why it was cut short. The first reason stands.
    stopped: Option<Stop>,
    drain: Duration,
    /// Whether somebody's terminal is attached.
    attached: bool,
}

impl<'a> Supervision<'a> {
    pub(crate) fn new(interrupts: Interrupts, world: &'a World, drain: Duration) -> Self {
        let (sender, stops) = mpsc::unbounded_channel();
        Self {
            interrupts,
            kill_now: &*world.kill_now,
            over: CancellationToken::new(),
            ending: CancellationToken::new(),
            sender,
            stops,
            stopped: None,
            drain,
            attached: false,
        }
    }

    /// Takes into account that somebody's terminal is attached. The end of one is told several times: by the terminal, by
    /// its session's leader, by whoever showed it. None of them means more than the first.
    pub(crate) fn attach(&mut self) {
        self.attached = true;
    }

    /// Starts something whose failure cuts the run short.
    pub(crate) fn watch<E: Send + 'static>(
        &self,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
        stop: impl FnOnce(E) -> Stop + Send + 'static,
    ) -> JoinHandle<()> {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            if let Err(error) = task.await {
                // The receiver lives as long as the executor.
                let _ = sender.send(stop(error));
            }
        })
    }

    /// Cuts the run short.
    pub(crate) fn stop(&self, stop: Stop) {
        let _ = self.sender.send(stop);
    }

    /// Bounds the reading of an output once the tree is over.
    pub(crate) fn remainder(&self) -> Remainder {
        Remainder::new(self.over.clone(), self.drain)
    }

    /// A token that is cancelled when the tree begins to be ended, for whatever reason.
    pub(crate) fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }

    /// Takes the reason why the run was cut short.
    pub(crate) fn stopped(&mut self) -> Option<Stop> {
        self.stopped.take()
    }

    /// Waits for something that the run goes through, and has it ended when the time is up or something stops the run.
    pub(crate) async fn wait_for<T>(
        &mut self,
        awaited: impl Future<Output = Result<T, Error>>,
        deadline: Option<Instant>,
        end: impl FnOnce(),
    ) -> Result<T, Error> {
        let mut awaited = pin!(awaited);
        if self.stopped.is_none() {
            let time_is_up = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => pending().await,
                }
            };
            self.stopped = tokio::select! {
                // The end comes first: a command that ended in the same moment was not stopped.
                biased;
                result = &mut awaited => return result,
                interrupt = self.interrupts.next() => Some(Stop::Interrupted(interrupt)),
                stop = self.stops.recv() => stop,
                () = time_is_up => Some(Stop::TimedOut),
            };
        }
        self.ending.cancel();
        end();
        self.hasten(awaited).await
    }

    /// Ends what is left of the tree.
    pub(crate) async fn end_tree(
        &mut self,
        tree: &Process,
        terminate: impl FnOnce() -> Termination,
        report: &mut Report,
    ) {
        self.ending.cancel();
        // Who holds a stream can only be told while they live.
        report.holders = tree.holders().await.unwrap_or_default();
        if let Err(error) = self.hasten(terminate()).await {
            report.add_failed_end(&error);
        }
        self.over.cancel();
    }

    /// Waits until the output is passed on, or that is given up, which the report then says.
    ///
    /// After a natural end it takes as long as our reader takes, as with any program in a pipeline; an interrupt ends it.
    /// After a run that was cut short the reader gets a moment.
    pub(crate) async fn flush(&mut self, tasks: Vec<JoinHandle<()>>, report: &mut Report) {
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
                    report.stuck = true;
                    return;
                }
                stop = self.stops.recv() => if let Some(stop) = stop {
                    report.stop_late(stop);
                },
                () = &mut all => {
                    while let Ok(stop) = self.stops.try_recv() {
                        report.stop_late(stop);
                    }
                    return;
                }
                () = &mut give_up => {
                    report.stuck = true;
                    return;
                }
            }
        }
    }

    /// Reports what there is to say of a tree that is over, and disposes of the world.
    pub(crate) async fn conclude(&mut self, tree: &Process, world: &World, report: &mut Report) {
        report.pid = tree.pid();
        report.ended = tree.ended().await.unwrap_or_default();
        report.usage = tree.usage().await.unwrap_or_default();
        if report.cause != Cause::SpawnFailed {
            report.ownership = tree.ownership().await.ok();
        }
        report.add_survivors(tree.survivors().await.unwrap_or_default());
        if let Err(error) = self.hasten(world.runtime.dispose()).await {
            report.add_failed_end(&error);
        }
    }

    /// Waits for something that is bound to come, sooner if interrupted: whoever interrupts a run that is already ending
    /// does not want to wait for the grace.
    async fn hasten<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        loop {
            tokio::select! {
                biased;
                value = &mut awaited => return value,
                interrupt = self.interrupts.next() => if !(self.attached && interrupt == Interrupt::HANG_UP) {
                    (self.kill_now)();
                },
            }
        }
    }
}
