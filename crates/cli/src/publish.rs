//! Saying what there is to say, on the stream where it belongs. No function here panics on a stream that is closed.

use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::exit_status;
use crate::failure::Failure;
use crate::json::RunObject;
use crate::options::RunOptions;
use crate::own_stream;
use crate::quantity::one_line;
use crate::report::Report;
use crate::sh::{ShObject, ShOptions, ShReport};
use crate::term::TermOptions;

/// The most characters of a line on stderr.
const LONGEST_LINE: usize = 8192;

/// How long a line may take when our output was found stuck before.
const STUCK_BOUND: Duration = Duration::from_secs(1);

/// How a run is reported.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// One line on stderr, with the facts or without.
    Line { facts: bool },
    /// One object on stdout.
    Json { keep_spill: bool, quiet: bool },
}

impl Form {
    /// How a command line is reported that asks for an object and cannot be carried out.
    pub(crate) const REFUSED_JSON: Self = Self::Json {
        keep_spill: false,
        quiet: false,
    };

    /// Reads what the options of a run say.
    pub(crate) fn of(options: &RunOptions) -> Self {
        Self::new(options.json, options.quiet, options.keep_spill)
    }

    /// Reads what the options of a session on a terminal say.
    pub(crate) fn of_term(options: &TermOptions) -> Self {
        Self::new(options.json, options.quiet, false)
    }

    /// Reads what the options of a command text say.
    pub(crate) fn of_sh(options: &ShOptions) -> Self {
        Self::new(options.json, false, options.keep_spill)
    }

    fn new(json: bool, quiet: bool, keep_spill: bool) -> Self {
        if json {
            Self::Json { keep_spill, quiet }
        } else {
            Self::Line { facts: !quiet }
        }
    }
}

/// Reports a run, and returns what to exit with.
pub(crate) fn run(report: &Report, form: Form) -> u8 {
    match form {
        Form::Line { facts } => {
            if let Some(line) = report.line(facts) {
                // Beside an unfinished line of the command's the facts would not be seen.
                line_to_stderr(&line, report.inside_line, report.stuck);
            }
            report.status
        }
        Form::Json { keep_spill, quiet } => {
            let object = serde_json::to_string(&RunObject::new(report, keep_spill));
            let text = object.expect("the object has string keys only and no number that JSON cannot hold");
            let written = to_stdout(format!("{text}\n").as_bytes());
            // The object comes first: whoever wants that may not read stderr.
            if let Some(line) = report.line_beside_object(keep_spill && !quiet) {
                line_to_stderr(&line, false, false);
            }
            match written {
                0 => report.status,
                failed => failed,
            }
        }
    }
}

/// Reports a command text, and returns what to exit with.
pub(crate) fn sh(report: &ShReport, form: Form) -> u8 {
    let (written, spills) = match form {
        Form::Line { .. } => {
            let shown = report.rendered.as_ref();
            // In text, what was cut says itself whether it is anywhere.
            (
                shown.map_or(0, |text| to_stdout(format!("{text}\n").as_bytes())),
                false,
            )
        }
        Form::Json { keep_spill, quiet } => {
            let object = serde_json::to_string(&ShObject::new(report, keep_spill));
            let text = object.expect("the object has string keys only and no number that JSON cannot hold");
            (to_stdout(format!("{text}\n").as_bytes()), keep_spill && !quiet)
        }
    };
    if let Some(line) = report.line(spills) {
        line_to_stderr(&line, false, false);
    }
    match written {
        0 => report.status,
        failed => failed,
    }
}

/// Says why nothing is done, and returns what to exit with.
pub(crate) fn refusal(failure: &Failure) -> u8 {
    line_to_stderr(&failure.message, false, false);
    failure.status
}

/// Says something to whoever started this process.
pub(crate) fn note(text: &str) {
    line_to_stderr(text, false, false);
}

/// Shows how this program is called to somebody who called it with nothing.
pub(crate) fn usage(text: &str) -> u8 {
    // Nothing is left to do for somebody who reads neither stream.
    let _ = own_stream::stderr().write_all(text.as_bytes());
    exit_status::OWN_FAILURE
}

/// Writes to stdout, and returns what to exit with: 0, unless that failed.
pub(crate) fn to_stdout(bytes: &[u8]) -> u8 {
    match own_stream::stdout().write_all(bytes) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit_status::OUTPUT_CLOSED,
        Err(error) => refusal(&Failure::new("output", format!("stdout: {error}"))),
    }
}

/// Writes one line, in one call, so that it stays whole beside other writers.
fn line_to_stderr(line: &str, after_unfinished_line: bool, stuck: bool) {
    let start = if after_unfinished_line { "\n" } else { "" };
    let text = format!("{start}dsh-subprocess: {}\n", one_line(line, LONGEST_LINE));
    // Nothing is left to do for somebody who does not read the line.
    let write = move || drop(own_stream::stderr().write_all(text.as_bytes()));
    if !stuck {
        return write();
    }
    let (written, line) = mpsc::channel();
    thread::spawn(move || {
        write();
        let _ = written.send(());
    });
    let _ = line.recv_timeout(STUCK_BOUND);
}
