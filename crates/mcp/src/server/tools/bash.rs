//! `bash`: one command, waited for or not.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use dsh_jobs::{NewJob, Work};
use dsh_shell::render::{Shown, Style, render};
use dsh_shell::{
    Cause, Collected, Execution, Fate, JOB_KIND, LeftBehind, Outcome, RunResult, ShellError, ShellRequest,
    ShellSpec, StreamName, hand_over, view,
};
use dsh_subprocess::Started;
use rmcp::model::{Resource, Tool, ToolAnnotations};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Refusal};
use super::arguments::Arguments;
use super::call::Call;
use super::progress::Progress;
use super::shown::{clip, end_line, member, millis, one_line, path, stream_text};
use super::structured;
use crate::server::resources::OutputUri;

/// The longest label that a job gets from its command, in characters.
const LABEL_CHARACTERS: usize = 120;

/// How long a background command may take to say whether it could be started.
const STARTING: Duration = Duration::from_secs(5);

const DESCRIPTION: &str = "Runs a command with the shell and returns what it printed and how it ended. Each call has a shell of \
its own: the working directory and variables are not kept between calls. There is no terminal and standard input is empty, so \
questions are answered with nothing; do not start editors. Credentials in the server's environment are not passed on: a tool that \
says it is not logged in may lack its variable. A command that exceeds its timeout (timeout_ms, process_info tells the default) is \
ended with everything it started. For servers, watchers and other long work use run_in_background and follow it with job_output; \
do not use nohup or a trailing `&`.";

pub(super) fn tool() -> Tool {
    let properties = json!({
        "command": {
            "type": "string",
            "minLength": 1,
            "description": "The command, in the language of the shell (bash unless process_info tells another).",
        },
        "description": {
            "type": "string",
            "description": "What the command does, in a few words. A job is listed under it.",
        },
        "timeout_ms": {
            "type": "integer",
            "minimum": 1,
            "description": "How long the command may take; two minutes by default, unless process_info tells another time. A \
                            longer time than the server allows (ten minutes by default) is shortened to that. Without effect in \
                            the background.",
        },
        "workdir": {
            "type": "string",
            "description": "Where the command runs. A relative path begins at the server's working directory.",
        },
        "run_in_background": {
            "type": "boolean",
            "description": "Start the command as a job, without a timeout, and return its job_id at once.",
        },
    });
    super::tool::<structured::Bash>(
        super::BASH,
        DESCRIPTION,
        &properties,
        &["command"],
        ToolAnnotations::with_title("Run a command")
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(true),
    )
}

pub(super) async fn call(call: Call<'_>, mut arguments: Arguments) -> Result<Answer, Refusal> {
    let command = arguments.required_text("command")?;
    let description = arguments.optional_text("description")?;
    let timeout = arguments.optional_number("timeout_ms", 1, u64::MAX)?;
    let workdir = arguments.optional_text("workdir")?;
    let in_background = arguments.flag("run_in_background")?;
    arguments.finish(&[
        "command",
        "description",
        "timeout_ms",
        "workdir",
        "run_in_background",
    ])?;

    let label = description
        .map(|text| one_line(text.trim()).into_owned())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| one_line(command.trim()).into_owned());
    // A command of blanks is still one, and its job needs a name.
    let label = if label.is_empty() {
        JOB_KIND.to_owned()
    } else {
        clip(&label, LABEL_CHARACTERS)
    };

    let mut request = ShellRequest::new(command);
    request.workdir = workdir.map(Into::into);
    request.timeout = timeout.map(Duration::from_millis);
    let cancel = request.cancel.clone();
    let spec = call.shell.resolve(request).map_err(|error| failed(&error))?;
    if in_background {
        start(call, spec, label).await
    } else {
        run(call, spec, cancel, label).await
    }
}

/// Starts a job.
async fn start(call: Call<'_>, spec: ShellSpec, label: String) -> Result<Answer, Refusal> {
    let jobs = call.session.jobs();
    let mut execution = None;
    let id = jobs
        .start(NewJob::new(JOB_KIND, label), || {
            let started = call.shell.start(spec)?;
            execution = Some(started.clone());
            Ok::<_, ShellError>(Arc::new(started) as Arc<dyn Work>)
        })
        .map_err(|error| call.job_failed(&error))?;
    let execution = execution.expect("a job that started has its work");
    call.session.remember(id.clone(), execution.clone());
    call.session.outputs().changed();

    // What cannot be started is an error of this call, not news for a later one. A world that is slow to tell has the
    // job's own end tell.
    let started = tokio::select! {
        started = tokio::time::timeout(STARTING, execution.process().started()) => started,
        // Nobody waits for it to run. Whether it ever does is the job's news.
        () = call.given_up() => Ok(Ok(Started::new(None))),
    };
    if let Ok(Err(error)) = started {
        let _ = jobs.wait(&id, STARTING, &CancellationToken::new()).await;
        return Err(Refusal(format!("could not start {id}: {error}")));
    }
    let answer = structured::Bash::Background(structured::Background {
        job_id: id.to_string(),
        pid: execution.pid(),
    });
    Ok(Answer::new(format!("started background job {id}"), &answer))
}

/// Runs a command to its end.
async fn run(
    call: Call<'_>,
    spec: ShellSpec,
    cancel: CancellationToken,
    label: String,
) -> Result<Answer, Refusal> {
    let execution = call.shell.execute(spec).map_err(|error| failed(&error))?;
    let guard = execution.clone().scoped();
    let result = await_result(call, &execution, &cancel).await;
    guard.release();
    let mut result = result.map_err(|error| failed(&error))?;

    let left = match result.left_behind.as_ref().map(|left| &left.fate) {
        Some(Fate::Continues(execution)) => Some(execution.clone()),
        _ => None,
    };
    hand_over(call.session.jobs(), label, &mut result).await;
    if let (
        Some(execution),
        Some(LeftBehind {
            fate: Fate::Job(id), ..
        }),
    ) = (left, &result.left_behind)
    {
        call.session.remember(id.clone(), execution);
        call.session.outputs().changed();
    }
    Ok(answer(call, &result))
}

/// Awaits a command's end, telling the client of it meanwhile. When nobody wants the answer any more the command is ended, and
/// its end is awaited all the same.
async fn await_result(
    call: Call<'_>,
    execution: &Execution,
    cancel: &CancellationToken,
) -> Result<RunResult, ShellError> {
    let telling = async {
        if let Some(progress) = Progress::of(call.context, call.progress_interval) {
            progress.tell_of(execution).await;
        }
        pending::<Infallible>().await
    };
    let giving_up = async {
        call.given_up().await;
        cancel.cancel();
        pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        result = execution.result() => result,
        never = giving_up => match never {},
        never = telling => match never {},
    }
}

/// Says why there is no result, and what the command had printed by then.
fn failed(error: &ShellError) -> Refusal {
    let mut text = error.to_string();
    if let ShellError::Runtime {
        partial: Some(partial),
        ..
    } = error
    {
        let stdout = stream_text(&partial.stdout.snapshot);
        let stderr = partial
            .stderr
            .as_ref()
            .map(|stream| stream_text(&stream.snapshot));
        for (name, stream) in [("stdout", Some(stdout)), ("stderr", stderr)] {
            if let Some(stream) = stream.filter(|stream| !stream.is_empty()) {
                end_line(&mut text);
                let _ = write!(text, "[{name} so far]\n{stream}");
            }
        }
    }
    Refusal(text)
}

fn answer(call: Call<'_>, result: &RunResult) -> Answer {
    let rendered = render(&view(result), &Style::default());
    let streams: Vec<(StreamName, &Collected, Shown)> = [
        Some((StreamName::Stdout, &result.stdout, rendered.stdout)),
        result
            .stderr
            .as_ref()
            .zip(rendered.stderr)
            .map(|(stream, shown)| (StreamName::Stderr, stream, shown)),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Also a stream that is whole in memory, where a line of it is too long to be shown: the rest is nowhere else.
    let shortened: Vec<_> = streams
        .iter()
        .filter(|(_, _, shown)| shown.is_truncated())
        .map(|(name, stream, _)| (*name, stream.reader.clone()))
        .collect();
    let names: Vec<StreamName> = shortened.iter().map(|(name, _)| *name).collect();
    let id = (!shortened.is_empty()).then(|| call.session.outputs().keep(shortened));
    let uri = |name: StreamName| {
        let id = id.as_ref().filter(|_| names.contains(&name))?;
        Some(OutputUri::whole(id.clone(), name).to_string())
    };
    let links = streams
        .iter()
        .filter_map(|(name, stream, _)| {
            let link = Resource::new(uri(*name)?, format!("{name} of the command"))
                .with_description("The whole of it: read it in pages, with offset and length.")
                .with_mime_type("text/plain")
                .with_size(stream.snapshot.total);
            Some(link)
        })
        .collect();
    let structured = structured::Bash::Foreground(Box::new(structured::Foreground {
        exit_code: result.outcome.code(),
        signal: match &result.outcome {
            Outcome::Signaled { signal, .. } => Some(signal.to_string()),
            Outcome::Exited { .. } | Outcome::Unknown => None,
        },
        cause: match result.cause {
            Cause::Ended => structured::Cause::Ended,
            Cause::TimedOut => structured::Cause::TimedOut,
            Cause::Aborted => structured::Cause::Aborted,
        },
        timeout_ms: millis(result.timeout),
        duration_ms: millis(result.duration),
        pid: result.pid,
        stdout: stream(&result.stdout, uri(StreamName::Stdout)),
        stderr: result
            .stderr
            .as_ref()
            .map(|collected| stream(collected, uri(StreamName::Stderr))),
        left_behind: result.left_behind.as_ref().map(left_behind),
    }));
    Answer::new(rendered.text, &structured).with_links(links)
}

fn stream(collected: &Collected, uri: Option<String>) -> structured::Stream {
    structured::Stream {
        text: stream_text(&collected.snapshot),
        total_bytes: collected.snapshot.total,
        omitted_bytes: collected.snapshot.dropped(),
        uri,
        path: path(&collected.spill),
    }
}

fn left_behind(left: &LeftBehind) -> structured::LeftBehind {
    let (fate, job_id) = match &left.fate {
        Fate::Ended => (structured::Fate::Ended, None),
        Fate::Job(id) => (structured::Fate::Job, Some(id.to_string())),
        Fate::Survives(_) | Fate::Continues(_) => (structured::Fate::Survives, None),
    };
    let members = match &left.fate {
        Fate::Survives(survivors) => survivors,
        _ => &left.members,
    };
    structured::LeftBehind {
        members: members.iter().map(member).collect(),
        fate,
        job_id,
        refused: left.refused.clone(),
    }
}
