//! What became of a run, and the one line that says it to people.

use std::fmt::Write as _;
use std::time::Duration;

use dsh_subprocess::{
    Error, ErrorKind, Holder, MayHaveStarted, Member, Outcome, OutputReader, Ownership, Snapshot, SpillState,
    StreamName, Usage,
};

use crate::exit_status;
use crate::failure::Failure;
use crate::quantity::{one_line, spoken};
use crate::request::Subject;
use crate::stop::Stop;

/// The most processes that a line names; JSON names them all.
const MOST_NAMED: usize = 8;

/// The most of a command line that a line shows.
const MOST_OF_A_COMMAND: usize = 80;

/// Everything there is to say about one run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) subject: Subject,
    pub(crate) pid: Option<u32>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) cause: Cause,
    pub(crate) failure: Option<Failure>,
    /// What to exit with.
    pub(crate) status: u8,
    pub(crate) stdout: StreamReport,
    /// `None` of a terminal, which is one stream.
    pub(crate) stderr: Option<StreamReport>,
    /// Whether the last thing that was passed on to where stderr is seen ended no line.
    pub(crate) inside_line: bool,
    pub(crate) ownership: Option<Ownership>,
    pub(crate) ended: Vec<Member>,
    pub(crate) survivors: Vec<Member>,
    pub(crate) holders: Vec<Holder>,
    pub(crate) duration: Duration,
    pub(crate) usage: Usage,
    /// Whether somebody does not read our output, so that a line after it may be stuck, too.
    pub(crate) stuck: bool,
    /// Why a recording ends before its session.
    pub(crate) recording_stopped: Option<String>,
    stopped: Option<Stop>,
}

/// Why the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// By itself.
    Exited,
    /// By a signal that this run did not send.
    Signaled,
    /// By this run, when its time was up.
    TimedOut,
    /// By this run, when it was interrupted, its output was closed, or its owner failed.
    Aborted,
    /// It never started.
    SpawnFailed,
}

/// What became of one output stream.
#[derive(Debug, Default)]
pub(crate) struct StreamReport {
    /// Bytes of the stream: passed on, or collected.
    pub(crate) total: u64,
    /// What is retained of a collected stream.
    pub(crate) retained: Option<Snapshot>,
    /// Where it was spilled.
    pub(crate) spill: SpillState,
}

impl StreamReport {
    /// Reports a collected stream.
    pub(crate) fn of(reader: &OutputReader) -> Self {
        let retained = reader.snapshot();
        Self {
            total: retained.total,
            retained: Some(retained),
            spill: reader.spill(),
        }
    }

    /// Says of each stream that was to have a file and has none why that is.
    pub(crate) fn without_file(stdout: &Self, stderr: Option<&Self>) -> Vec<String> {
        let stderr = stderr.map(|stream| (StreamName::Stderr, stream));
        [(StreamName::Stdout, stdout)]
            .into_iter()
            .chain(stderr)
            .filter_map(|(name, stream)| match &stream.spill {
                SpillState::Withdrawn(why) => Some(format!("{name} is not kept in a file: {why}")),
                _ => None,
            })
            .collect()
    }
}

impl Report {
    /// Reports a run that was refused before there was a process.
    pub(crate) fn refused(subject: Subject, failure: Failure) -> Self {
        Self::new(subject, Cause::SpawnFailed, failure.status, Some(failure))
    }

    /// Reports how a process ended, or why there was none.
    pub(crate) fn ended(
        subject: Subject,
        duration: Duration,
        result: Result<Outcome, Error>,
        stopped: Option<Stop>,
    ) -> Self {
        // A start that was abandoned because of the stop says nothing of its own.
        let abandoned =
            stopped.is_some() && (result.as_ref()).is_err_and(|error| error.kind() == ErrorKind::Cancelled);
        let (cause, status, failure) = match (&result, &stopped) {
            (Err(error), _) if error.started() == MayHaveStarted::No && !abandoned => {
                let failure = Failure::from(error);
                (Cause::SpawnFailed, failure.status, Some(failure))
            }
            (_, Some(stop)) => {
                let cause = if matches!(stop, Stop::TimedOut) {
                    Cause::TimedOut
                } else {
                    Cause::Aborted
                };
                let lost = result.as_ref().err().filter(|_| !abandoned);
                let lost = lost.map(Failure::from);
                (cause, stop.status(), stop.failure().or(lost))
            }
            // The command may have run, and its status is lost: never that of an exec that failed.
            (Err(error), None) => (
                Cause::Aborted,
                exit_status::OWN_FAILURE,
                Some(Failure::from(error)),
            ),
            (Ok(outcome), None) => {
                let (cause, failure) = match outcome {
                    Outcome::Exited { .. } => (Cause::Exited, None),
                    Outcome::Signaled { .. } => (Cause::Signaled, None),
                    Outcome::Unknown => (Cause::Exited, Some(Failure::status_unknown())),
                };
                (cause, exit_status::of_outcome(outcome), failure)
            }
        };
        Self {
            outcome: result.ok(),
            duration,
            stopped,
            ..Self::new(subject, cause, status, failure)
        }
    }

    fn new(subject: Subject, cause: Cause, status: u8, failure: Option<Failure>) -> Self {
        Self {
            subject,
            pid: None,
            outcome: None,
            cause,
            failure,
            status,
            stdout: StreamReport::default(),
            stderr: Some(StreamReport::default()),
            inside_line: false,
            ownership: None,
            ended: Vec::new(),
            survivors: Vec::new(),
            holders: Vec::new(),
            duration: Duration::ZERO,
            usage: Usage::default(),
            stuck: false,
            recording_stopped: None,
            stopped: None,
        }
    }

    /// Tells whether the run was cut short.
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Takes note of what went wrong with the output after the command's end. Its cause and outcome stay; what the
    /// caller did not get decides the status. The first such thing stands.
    pub(crate) fn stop_late(&mut self, stop: Stop) {
        let is_input = matches!(stop, Stop::InputFailed(..) | Stop::InputRefused(..));
        if self.stopped.is_none() && !is_input {
            self.status = stop.status();
            self.failure = self.failure.take().or_else(|| stop.failure());
            self.stopped = Some(stop);
        }
    }

    /// Adds processes that run on.
    pub(crate) fn add_survivors(&mut self, members: Vec<Member>) {
        for member in members {
            if self.survivors.iter().all(|known| known.pid != member.pid) {
                self.survivors.push(member);
            }
        }
    }

    /// Adds that the tree could not be ended, or that nobody knows.
    pub(crate) fn add_failed_end(&mut self, error: &Error) {
        self.failure.get_or_insert_with(|| Failure::from(error));
        self.add_survivors(error.survivors().to_vec());
    }

    /// Returns the line for stderr, without its line end. `None` where there is nothing to say.
    ///
    /// A failure and a survivor are said even if the facts are not wanted.
    pub(crate) fn line(&self, facts: bool) -> Option<String> {
        if self.cause == Cause::SpawnFailed {
            return self.failure.as_ref().map(|failure| failure.message.clone());
        }
        let mut parts = Vec::new();
        if facts {
            parts.push(format!("{} in {}", self.end(), spoken(self.duration)));
            parts.extend(
                self.ownership
                    .as_ref()
                    .map(|ownership| ownership.mechanism.to_string()),
            );
            if let Some(stderr) = &self.stderr {
                parts.push(format!("stdout {} B", self.stdout.total));
                parts.push(format!("stderr {} B", stderr.total));
            } else {
                parts.push(format!("terminal {} B", self.stdout.total));
            }
        } else if self.failure.is_some() {
            parts.push(self.end());
        }
        if facts && !self.ended.is_empty() {
            parts.push(format!("ended what was left: {}", named(&self.ended)));
        }
        if facts {
            parts.extend(self.held(StreamName::Stdout));
            parts.extend(self.held(StreamName::Stderr));
            parts.extend(self.held(StreamName::Terminal));
        }
        let (possible, certain): (Vec<_>, Vec<_>) = self
            .survivors
            .iter()
            .cloned()
            .partition(|member| member.uncertain);
        if !certain.is_empty() {
            parts.push(format!("could not end: {}", named(&certain)));
        }
        if !possible.is_empty() {
            parts.push(format!("may still run: {}", named(&possible)));
        }
        parts.extend(self.recording());
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    /// Returns the line for stderr where the rest is told in an object. `None` where there is nothing to say.
    ///
    /// `spills` says whether somebody counts on the files for streams that do not fit.
    pub(crate) fn line_beside_object(&self, spills: bool) -> Option<String> {
        let mut parts: Vec<_> = self
            .failure
            .iter()
            .map(|failure| failure.message.clone())
            .collect();
        if spills {
            parts.extend(StreamReport::without_file(&self.stdout, self.stderr.as_ref()));
        }
        parts.extend(self.recording());
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    /// Says how the command ended, and what had a part in it.
    fn end(&self) -> String {
        let mut said = String::new();
        if let Some(stop) = &self.stopped {
            said = stop.spoken();
        } else if let Some(failure) = &self.failure {
            said.clone_from(&failure.message);
        }
        match &self.outcome {
            Some(outcome) if said.is_empty() => said = outcome.to_string(),
            // What the failure says is all there is to say.
            Some(Outcome::Unknown) | None => {}
            // A String takes every write.
            Some(outcome) => drop(write!(said, ", {outcome}")),
        }
        said
    }

    fn recording(&self) -> Option<String> {
        let why = self.recording_stopped.as_ref()?;
        Some(format!("the recording stops before the end: {why}"))
    }

    fn held(&self, stream: StreamName) -> Option<String> {
        let holders: Vec<_> = self
            .holders
            .iter()
            .filter(|holder| holder.stream == stream)
            .map(|holder| holder.member.clone())
            .collect();
        (!holders.is_empty()).then(|| format!("{stream} was held open by {}", named(&holders)))
    }
}

/// Lists processes, as many as a line bears.
fn named(members: &[Member]) -> String {
    let mut list: Vec<_> = members
        .iter()
        .take(MOST_NAMED)
        .map(|member| {
            let command = one_line(&member.command, MOST_OF_A_COMMAND);
            match member.pid {
                Some(pid) => format!("{pid} ({command})"),
                None => command,
            }
        })
        .collect();
    if let Some(more) = members.len().checked_sub(MOST_NAMED).filter(|&more| more > 0) {
        list.push(format!("{more} more"));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use dsh_subprocess::Mechanism;

    use super::*;

    fn ended(result: Result<Outcome, Error>, stopped: Option<Stop>) -> Report {
        let mut report = Report::ended(Subject::default(), Duration::from_millis(12), result, stopped);
        report.ownership = Some(Ownership::new(Mechanism::Cgroup, Vec::new()));
        report
    }

    const fn exited(code: u32) -> Outcome {
        Outcome::Exited { code }
    }

    fn error(kind: ErrorKind, started: MayHaveStarted) -> Error {
        Error::new(kind, "spawn", "why it failed").with_started(started)
    }

    #[test]
    fn a_timeout_decides_cause_and_status_whatever_the_command_made_of_it() {
        let report = ended(Ok(exited(0)), Some(Stop::TimedOut));
        assert_eq!(
            (report.cause, report.status, report.failure.is_none()),
            (Cause::TimedOut, 124, true)
        );
        assert_eq!(
            report.line(true).as_deref(),
            Some("timed out, exited with code 0 in 12 ms · cgroup · stdout 0 B · stderr 0 B")
        );
        assert_eq!(report.line(false), None);
    }

    #[test]
    fn a_command_that_never_started_did_not_time_out() {
        let result = Err(error(ErrorKind::ProgramNotFound, MayHaveStarted::No));
        let report = ended(result, Some(Stop::TimedOut));
        assert_eq!((report.cause, report.status), (Cause::SpawnFailed, 127));
        assert_eq!(report.line(true).as_deref(), Some("why it failed"));
        assert_eq!(report.line(false).as_deref(), Some("why it failed"));
    }

    #[test]
    fn a_status_that_was_lost_is_never_success() {
        let report = ended(Ok(Outcome::Unknown), None);
        assert_eq!((report.cause, report.status), (Cause::Exited, 125));
        assert_eq!(
            report.failure.as_ref().map(|failure| &failure.kind[..]),
            Some("status_unknown")
        );
        assert!(report.line(false).is_some_and(|line| line.contains("not known")));
    }

    #[test]
    fn an_owner_that_failed_after_the_start_is_no_failed_exec() {
        // Even a kind that has a status of its own: 127 would say that nothing ran.
        for started in [MayHaveStarted::Yes, MayHaveStarted::Unknown] {
            let report = ended(Err(error(ErrorKind::ProgramNotFound, started)), None);
            assert_eq!((report.cause, report.status), (Cause::Aborted, 125));
            assert_eq!(report.line(false).as_deref(), Some("why it failed"));
        }
    }

    #[test]
    fn output_that_failed_is_told_even_without_the_facts() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let report = ended(Ok(exited(1)), Some(Stop::of_output(StreamName::Stdout, full)));
        assert_eq!((report.cause, report.status), (Cause::Aborted, 125));
        assert_eq!(
            report.line(false).as_deref(),
            Some("stdout: no storage space, exited with code 1")
        );
    }

    #[test]
    fn what_goes_wrong_after_the_end_changes_the_status_and_not_the_cause() {
        let mut report = ended(Ok(exited(0)), None);
        report.stop_late(Stop::InputFailed(
            "--stdin -".to_owned(),
            io::ErrorKind::Other.into(),
        ));
        assert_eq!(report.status, 0, "the command wanted no more input");
        report.stop_late(Stop::OutputClosed(StreamName::Stdout));
        assert_eq!((report.cause, report.status), (Cause::Exited, 141));
        report.stop_late(Stop::OutputFailed(
            StreamName::Stderr,
            io::ErrorKind::StorageFull.into(),
        ));
        assert_eq!(
            (report.status, report.failure),
            (141, None),
            "the first one stands"
        );
    }

    #[test]
    fn survivors_are_told_apart_and_once_each() {
        let mut report = ended(Ok(exited(0)), None);
        let stuck = Member::new(7, "stuck");
        let left =
            Error::new(ErrorKind::Survivors, "terminate", "7 lives").with_survivors(vec![stuck.clone()]);
        report.add_failed_end(&left);
        report.add_survivors(vec![stuck, Member::new(8, "a daemon").possibly()]);
        report.add_failed_end(&left);
        assert_eq!(report.survivors.len(), 2);
        assert_eq!(report.status, 0, "the status is the command's");
        let line = report.line(false).expect("it is said even without the facts");
        assert!(
            line.ends_with(" · could not end: 7 (stuck) · may still run: 8 (a daemon)"),
            "{line}"
        );
    }

    #[test]
    fn beside_an_object_the_line_says_what_went_wrong() {
        let mut report = ended(Ok(exited(0)), None);
        assert_eq!(report.line_beside_object(true), None);
        report.stderr.get_or_insert_default().spill = SpillState::Withdrawn("no room".to_owned());
        assert_eq!(report.line_beside_object(false), None);
        assert_eq!(
            report.line_beside_object(true).as_deref(),
            Some("stderr is not kept in a file: no room")
        );
        report.add_failed_end(&error(ErrorKind::Survivors, MayHaveStarted::Yes));
        assert_eq!(
            report.line_beside_object(true).as_deref(),
            Some("why it failed · stderr is not kept in a file: no room")
        );
    }

    #[test]
    fn a_line_names_so_many_processes_and_counts_the_rest() {
        let mut report = ended(Ok(exited(0)), None);
        report.ended = (1..=10).map(|pid| Member::new(pid, "a\nb".repeat(100))).collect();
        let line = report.line(true).expect("there are facts");
        assert!(
            line.contains("ended what was left: 1 (a\\nb") && line.ends_with("…), 2 more"),
            "{line}"
        );
        assert!(!line.contains('\n') && !line.contains("9 ("), "{line}");
    }
}
