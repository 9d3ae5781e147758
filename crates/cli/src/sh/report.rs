//! What became of a command text, and what a model sees of that.

use std::time::Duration;

use dsh_shell::render::{RenderInput, StreamView, Style, Whole, render};
use dsh_shell::{Cause, Collected, Fate, LeftBehind, Partial, RunResult, ShellError, view};
use dsh_subprocess::{Error, ErrorKind, MayHaveStarted, Member, Outcome, Ownership, SpillState, Usage};

use super::failure_of;
use super::request::Subject;
use crate::exit_status;
use crate::failure::Failure;
use crate::report::StreamReport;
use crate::signals::Interrupt;

/// Everything there is to say about one command text.
#[derive(Debug)]
pub(crate) struct ShReport {
    pub(crate) subject: Subject,
    pub(crate) pid: Option<u32>,
    pub(crate) outcome: Option<Outcome>,
    /// `None` where the command has no result.
    pub(crate) cause: Option<Cause>,
    pub(crate) failure: Option<Failure>,
    /// What to exit with.
    pub(crate) status: u8,
    /// `None`: without limit, or there is nothing that had one.
    pub(crate) timeout: Option<Duration>,
    pub(crate) duration: Option<Duration>,
    pub(crate) stdout: StreamReport,
    /// `None` where it is merged into `stdout`.
    pub(crate) stderr: Option<StreamReport>,
    pub(crate) left_behind: Option<Remains>,
    pub(crate) ownership: Option<Ownership>,
    pub(crate) usage: Usage,
    /// What a model sees. `None` of a command that printed nothing and has no result.
    pub(crate) rendered: Option<String>,
    /// Whether the command possibly ran.
    pub(crate) started: bool,
}

/// Who outlived a command, and who of them could not be ended.
#[derive(Debug)]
pub(crate) struct Remains {
    pub(crate) members: Vec<Member>,
    pub(crate) survivors: Vec<Member>,
}

impl ShReport {
    /// Reports a command that was refused before there was a process.
    pub(crate) fn refused(subject: Subject, failure: Failure) -> Self {
        Self {
            status: failure.status,
            failure: Some(failure),
            ..Self::new(subject)
        }
    }

    fn new(subject: Subject) -> Self {
        Self {
            subject,
            pid: None,
            outcome: None,
            cause: None,
            status: 0,
            failure: None,
            timeout: None,
            duration: None,
            stdout: StreamReport::default(),
            stderr: Some(StreamReport::default()),
            left_behind: None,
            ownership: None,
            usage: Usage::default(),
            rendered: None,
            started: false,
        }
    }

    /// Reports how a command ended, or why it has no result.
    pub(super) fn ended(
        subject: Subject,
        timeout: Option<Duration>,
        result: Result<RunResult, ShellError>,
        interrupt: Option<Interrupt>,
    ) -> Self {
        match result {
            Ok(result) => Self::with_result(subject, timeout, result, interrupt),
            Err(error) => Self::without_result(subject, timeout, &error, interrupt),
        }
    }

    fn with_result(
        subject: Subject,
        timeout: Option<Duration>,
        result: RunResult,
        interrupt: Option<Interrupt>,
    ) -> Self {
        let status = match result.cause {
            Cause::Ended => exit_status::of_outcome(&result.outcome),
            Cause::TimedOut => exit_status::TIMED_OUT,
            // Nothing else here aborts a command.
            Cause::Aborted => interrupt.map_or(exit_status::OWN_FAILURE, Interrupt::status),
        };
        let unknown = result.outcome == Outcome::Unknown && result.cause == Cause::Ended;
        Self {
            rendered: Some(render(&view(&result), &Style::default()).text),
            pid: result.pid,
            cause: Some(result.cause),
            failure: unknown.then(Failure::status_unknown),
            status,
            timeout,
            duration: Some(result.duration),
            stdout: stream(&result.stdout),
            stderr: result.stderr.as_ref().map(stream),
            left_behind: result.left_behind.map(Remains::from),
            outcome: Some(result.outcome),
            started: true,
            ..Self::new(subject)
        }
    }

    fn without_result(
        subject: Subject,
        timeout: Option<Duration>,
        error: &ShellError,
        interrupt: Option<Interrupt>,
    ) -> Self {
        let mut failure = failure_of(error);
        let (mut started, mut partial) = (false, None);
        if let ShellError::Runtime {
            error,
            partial: printed,
        } = error
        {
            started = error.started() != MayHaveStarted::No;
            partial = printed.as_deref();
            // The command may have run, and its status is lost: never that of an exec that failed.
            if started {
                failure.status = exit_status::OWN_FAILURE;
            }
            if let Some(interrupt) = interrupt
                && (started || error.kind() == ErrorKind::Cancelled)
            {
                failure.status = interrupt.status();
            }
        }
        let mut report = Self {
            timeout,
            started,
            ..Self::refused(subject, failure)
        };
        if let Some(partial) = partial {
            report.stdout = stream(&partial.stdout);
            report.stderr = partial.stderr.as_ref().map(stream);
            report.rendered = rendered(partial);
        }
        report
    }

    /// Adds that what was left could not be ended, or that nobody knows.
    pub(super) fn add_failed_end(&mut self, error: &Error) {
        self.failure.get_or_insert_with(|| Failure::from(error));
        if error.survivors().is_empty() {
            return;
        }
        let remains = self.left_behind.get_or_insert_with(|| Remains {
            members: Vec::new(),
            survivors: Vec::new(),
        });
        for member in error.survivors() {
            for list in [&mut remains.members, &mut remains.survivors] {
                if list.iter().all(|known| known.pid != member.pid) {
                    list.push(member.clone());
                }
            }
        }
    }

    /// Returns the line for stderr, without its line end. `None` where there is nothing to say.
    pub(crate) fn line(&self, spills: bool) -> Option<String> {
        let mut parts: Vec<_> = self
            .failure
            .iter()
            .map(|failure| failure.message.clone())
            .collect();
        if spills {
            parts.extend(StreamReport::without_file(&self.stdout, self.stderr.as_ref()));
        }
        (!parts.is_empty()).then(|| parts.join(" · "))
    }
}

impl From<LeftBehind> for Remains {
    fn from(left_behind: LeftBehind) -> Self {
        Self {
            members: left_behind.members,
            survivors: match left_behind.fate {
                Fate::Survives(survivors) => survivors,
                // Nothing here keeps what is left: what is not ended yet ends with this process.
                Fate::Ended | Fate::Continues(_) | Fate::Job(_) => Vec::new(),
            },
        }
    }
}

fn stream(collected: &Collected) -> StreamReport {
    StreamReport {
        total: collected.snapshot.total,
        retained: Some(collected.snapshot.clone()),
        spill: collected.spill.clone(),
    }
}

/// Shows what a command printed whose end is not known. `None` where that is nothing.
fn rendered(partial: &Partial) -> Option<String> {
    let printed =
        partial.stdout.snapshot.total + partial.stderr.as_ref().map_or(0, |stderr| stderr.snapshot.total);
    if printed == 0 {
        return None;
    }
    let shown = |collected: &Collected| StreamView {
        snapshot: collected.snapshot.clone(),
        whole: match &collected.spill {
            _ if !collected.is_truncated() => Whole::InMemory,
            SpillState::Available(spilled) => Whole::At(spilled.location.to_string()),
            _ => Whole::Unavailable,
        },
    };
    let input = RenderInput {
        stderr: partial.stderr.as_ref().map(shown),
        outcome: Some(Outcome::Unknown),
        ..RenderInput::new(shown(&partial.stdout))
    };
    Some(render(&input, &Style::default()).text)
}
