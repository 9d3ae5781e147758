//! One command from its start to the end of everything it left behind.
//!
//! Two things are told on the way: the *result*, when the command is over, and the *end*, when nothing of it runs any more. They
//! differ where what it left behind is kept.

use std::pin::pin;
use std::time::Duration;

use dsh_subprocess::{Error, Member, Outcome, OutputReader};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::LeftBehindPolicy;
use crate::error::{Partial, ShellError};
use crate::execution::{Ended, Execution, Plan, Status, Told};
use crate::result::{Cause, Collected, Fate, LeftBehind, RunResult};

/// How long the streams' own end is awaited once nobody of the tree is left. The last bytes are in the pipes by then, and whoever
/// still holds them open is none of ours.
const LAST_BYTES: Duration = Duration::from_millis(500);

/// Sees one command through. It runs as a task of its own.
pub(crate) struct Supervision {
    execution: Execution,
    plan: Plan,
    result: watch::Sender<Option<Told>>,
    ended: watch::Sender<Option<Ended>>,
}

/// How the time after the shell's own end went.
enum Drained {
    /// The tree is gone, and its streams have ended.
    Complete,
    /// Somebody is left, or holds a stream.
    LeftOver,
    /// The caller does not want to wait for that.
    Stopped,
}

impl Supervision {
    pub(crate) fn new(
        execution: Execution,
        plan: Plan,
        result: watch::Sender<Option<Told>>,
        ended: watch::Sender<Option<Ended>>,
    ) -> Self {
        Self {
            execution,
            plan,
            result,
            ended,
        }
    }

    pub(crate) async fn run(self) {
        let (exited, cause) = self.until_exit().await;
        if cause != Cause::Ended {
            self.stopped(cause).await;
            return;
        }
        match exited.unwrap_or(Ok(Outcome::Unknown)) {
            Ok(outcome) => self.exited(outcome).await,
            Err(error) => self.failed(error).await,
        }
    }

    /// Waits for the shell's end, or for the first reason to end it.
    async fn until_exit(&self) -> (Option<Result<Outcome, Error>>, Cause) {
        let command = self.execution.command();
        let exited = command.process.exited();
        tokio::select! {
            // What has ended was not ended by us, however late this task is.
            biased;
            outcome = exited => {
                // The runtime ends the tree at once when a handle asks for it, so that end may be here before the request is.
                let ended_by_us = command.kill.is_cancelled();
                (Some(outcome), if ended_by_us { Cause::Aborted } else { Cause::Ended })
            }
            () = self.plan.cancel.cancelled() => (None, Cause::Aborted),
            () = command.kill.cancelled() => (None, Cause::Aborted),
            () = self.deadline() => (None, Cause::TimedOut),
        }
    }

    async fn deadline(&self) {
        match self.plan.deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// The command is ended before its time.
    async fn stopped(&self, cause: Cause) {
        let survivors = self.end_tree().await;
        match self.last_outcome().await {
            Err(error) => self.failed(error).await,
            Ok(outcome) => self.tell(cause, outcome, fate_of(survivors)),
        }
    }

    /// The shell has ended by itself.
    async fn exited(&self, outcome: Outcome) {
        let drained = self.drain().await;
        if matches!(drained, Drained::Complete) {
            let survivors = self.escaped().await;
            self.tell(Cause::Ended, outcome, fate_of(survivors));
            return;
        }
        let command = self.execution.command();
        let members = command.process.members().await.unwrap_or_default();
        let keeps = self.plan.left_behind == LeftBehindPolicy::Keep
            && matches!(drained, Drained::LeftOver)
            && !members.is_empty();
        if keeps {
            let result = self.result_now(Cause::Ended, outcome.clone(), None);
            self.tell_result(Ok(result), Some(members));
            let cause = self.until_gone().await;
            let survivors = self.end_tree().await;
            // The shell's own outcome is known; this completes the streams.
            let _ = self.last_outcome().await;
            self.tell_end(cause, &outcome, survivors);
            return;
        }
        let survivors = self.end_tree().await;
        let _ = self.last_outcome().await;
        let left_behind = match fate_of(survivors) {
            Some(survivors) => Some(survivors),
            // Nobody of the tree, but somebody whom the output was handed to.
            None if members.is_empty() => {
                let holders = command.process.holders().await.unwrap_or_default();
                let mut members: Vec<Member> = Vec::new();
                for holder in holders {
                    // One that holds both streams is listed for each.
                    if !members.contains(&holder.member) {
                        members.push(holder.member);
                    }
                }
                fate_of(members)
            }
            None => Some(LeftBehind {
                members,
                fate: Fate::Ended,
                refused: None,
            }),
        };
        self.tell(Cause::Ended, outcome, left_behind);
    }

    /// Waits, after the shell's end, for the tree and its streams to end; at most until nothing was written for a while.
    async fn drain(&self) -> Drained {
        let command = self.execution.command();
        let never = CancellationToken::new();
        let mut complete = pin!(async {
            let done = command.process.done().await;
            let gone = command.process.wait_for_exit(&never).await;
            done.is_ok() && gone.is_ok()
        });
        let last = Instant::now() + self.plan.drain;
        let mut quiet_until = Instant::now() + self.plan.quiet;
        loop {
            let seen = self.totals();
            tokio::select! {
                biased;
                whole = &mut complete => {
                    return if whole { Drained::Complete } else { Drained::LeftOver };
                }
                () = self.plan.cancel.cancelled() => return Drained::Stopped,
                () = command.kill.cancelled() => return Drained::Stopped,
                () = sleep_until(quiet_until.min(last)) => return Drained::LeftOver,
                () = self.grown(seen) => quiet_until = Instant::now() + self.plan.quiet,
            }
        }
    }

    fn totals(&self) -> (u64, u64) {
        let command = self.execution.command();
        let stderr = command.stderr.as_ref();
        (command.stdout.total(), stderr.map_or(0, OutputReader::total))
    }

    /// Resolves when either stream has grown. The end of a stream is no news here: `done` tells it.
    async fn grown(&self, (stdout, stderr): (u64, u64)) {
        async fn one(reader: Option<&OutputReader>, seen: u64) {
            if let Some(reader) = reader {
                reader.changed(seen).await;
                if reader.total() > seen {
                    return;
                }
            }
            std::future::pending::<()>().await;
        }
        let command = self.execution.command();
        tokio::select! {
            () = one(Some(&command.stdout), stdout) => {}
            () = one(command.stderr.as_ref(), stderr) => {}
        }
    }

    /// Waits for the end of what was kept, or for the reason to end it.
    async fn until_gone(&self) -> Cause {
        let command = self.execution.command();
        let never = CancellationToken::new();
        tokio::select! {
            biased;
            _ = command.process.wait_for_exit(&never) => Cause::Ended,
            () = self.plan.cancel.cancelled() => Cause::Aborted,
            () = command.kill.cancelled() => Cause::Aborted,
        }
    }

    /// Ends the tree, and returns whom it could not end.
    async fn end_tree(&self) -> Vec<Member> {
        let command = self.execution.command();
        match command.process.terminate().await {
            Ok(()) => self.escaped().await,
            Err(error) if !error.survivors().is_empty() => error.survivors().to_vec(),
            Err(_) => command.process.survivors().await.unwrap_or_default(),
        }
    }

    /// Finds who got away from a mechanism that lets processes get away.
    async fn escaped(&self) -> Vec<Member> {
        if self.plan.sees_all {
            return Vec::new();
        }
        let process = &self.execution.command().process;
        process.survivors().await.unwrap_or_default()
    }

    /// Completes the streams, and returns how the shell ended.
    async fn last_outcome(&self) -> Result<Outcome, Error> {
        let process = &self.execution.command().process;
        if let Ok(outcome) = timeout(LAST_BYTES, process.done()).await {
            return outcome;
        }
        process.cut_drain();
        // A shell that outlived SIGKILL has no outcome.
        timeout(LAST_BYTES, process.done())
            .await
            .unwrap_or(Ok(Outcome::Unknown))
    }

    /// The command could not be started, or nobody knows what has become of it.
    async fn failed(&self, error: Error) {
        let command = self.execution.command();
        // Nothing, where nothing was started.
        let _ = command.process.terminate().await;
        let partial = Partial {
            stdout: Collected::of(&command.stdout),
            stderr: command.stderr.as_ref().map(Collected::of),
        };
        self.ended.send_replace(Some(Ended {
            status: Status::Killed,
            outcome: Err(error.clone()),
            survivors: Vec::new(),
        }));
        let error = ShellError::Runtime {
            error,
            partial: Some(Box::new(partial)),
        };
        self.tell_result(Err(error), None);
    }

    /// Tells the result and the end.
    fn tell(&self, cause: Cause, outcome: Outcome, left_behind: Option<LeftBehind>) {
        let survivors = match &left_behind {
            Some(LeftBehind {
                fate: Fate::Survives(members),
                ..
            }) => members.clone(),
            _ => Vec::new(),
        };
        self.tell_end(cause, &outcome, survivors);
        let result = self.result_now(cause, outcome, left_behind);
        self.tell_result(Ok(result), None);
    }

    fn tell_result(&self, result: Result<RunResult, ShellError>, continues: Option<Vec<Member>>) {
        self.result.send_replace(Some(Told { result, continues }));
    }

    fn tell_end(&self, cause: Cause, outcome: &Outcome, survivors: Vec<Member>) {
        let killed = cause != Cause::Ended || outcome.signal().is_some() || self.execution.was_killed();
        self.ended.send_replace(Some(Ended {
            status: if killed { Status::Killed } else { Status::Completed },
            outcome: Ok(outcome.clone()),
            survivors,
        }));
    }

    fn result_now(&self, cause: Cause, outcome: Outcome, left_behind: Option<LeftBehind>) -> RunResult {
        let command = self.execution.command();
        RunResult {
            outcome,
            cause,
            timeout: self.plan.timeout,
            duration: self.plan.begin.elapsed(),
            pid: command.process.pid(),
            stdout: Collected::of(&command.stdout),
            stderr: command.stderr.as_ref().map(Collected::of),
            left_behind,
        }
    }
}

fn fate_of(survivors: Vec<Member>) -> Option<LeftBehind> {
    (!survivors.is_empty()).then(|| LeftBehind {
        members: survivors.clone(),
        fate: Fate::Survives(survivors),
        refused: None,
    })
}
