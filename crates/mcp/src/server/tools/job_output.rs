//! `job_output`: what is new of a job.

use std::fmt::Write as _;
use std::time::Duration;

use dsh_jobs::{JobId, JobRead, StreamDelta};
use dsh_shell::StreamName;
use dsh_shell::render::fold;
use dsh_subprocess::OutputReader;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Refusal};
use super::arguments::Arguments;
use super::call::Call;
use super::shown::{end_line, job, job_line, path};
use super::structured;
use crate::server::resources::OutputUri;

/// The longest wait, in milliseconds.
const LONGEST_WAIT: u64 = 600_000;

const DESCRIPTION: &str = "Returns what a background job has printed since the last call, and how far it is. Each piece is \
returned once; the whole can be read as a resource. With wait_ms it waits until there is something new or the job has ended.";

pub(super) fn tool() -> Tool {
    let properties = json!({
        "job_id": { "type": "string", "description": "The job, as in `bash-1`." },
        "wait_ms": {
            "type": "integer",
            "minimum": 0,
            "maximum": LONGEST_WAIT,
            "description": "How long to wait for new output or the end of the job, where there is none yet.",
        },
    });
    super::tool::<structured::JobOutput>(
        super::JOB_OUTPUT,
        DESCRIPTION,
        &properties,
        &["job_id"],
        ToolAnnotations::with_title("Read a job's output")
            .read_only(true)
            .open_world(false),
    )
}

pub(super) async fn call(call: Call<'_>, mut arguments: Arguments) -> Result<Answer, Refusal> {
    let id = call.job_id(&mut arguments)?;
    let wait = arguments.optional_number("wait_ms", 0, LONGEST_WAIT)?;
    arguments.finish(&["job_id", "wait_ms"])?;
    let read = read(call, &id, Duration::from_millis(wait.unwrap_or(0))).await?;
    Ok(answer(&read))
}

/// Reads on, and waits until there is something to be read.
async fn read(call: Call<'_>, id: &JobId, wait: Duration) -> Result<JobRead, Refusal> {
    let jobs = call.session.jobs();
    let failed = |error: dsh_jobs::JobError| call.job_failed(&error);
    let deadline = Instant::now() + wait;
    loop {
        let read = jobs.read(id).map_err(failed)?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || read.info.status.is_settled() || read.streams.iter().any(has_news) {
            return Ok(read);
        }
        let never = CancellationToken::new();
        tokio::select! {
            // A wait that is under way when the job ends is who is told of it.
            settled = jobs.wait(id, left, &never) => {
                settled.map_err(failed)?;
            }
            () = growth(call, id, &read.streams) => {}
            () = call.given_up() => return Ok(read),
        }
    }
}

fn has_news(delta: &StreamDelta) -> bool {
    !delta.text.is_empty() || delta.gap > 0
}

/// Resolves when one of the streams that go on has more than it had.
async fn growth(call: Call<'_>, id: &JobId, seen: &[StreamDelta]) {
    let of = |stream: StreamName| {
        let delta = seen.iter().find(|delta| delta.stream == stream && !delta.sealed);
        let reader = delta.and_then(|delta| {
            let reader: OutputReader = call.session.jobs().reader(id, stream).ok()?;
            Some(reader.changed(delta.total))
        });
        async move {
            match reader {
                Some(changed) => changed.await,
                None => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        () = of(StreamName::Stdout) => {}
        () = of(StreamName::Stderr) => {}
        () = of(StreamName::Terminal) => {}
    }
}

fn answer(read: &JobRead) -> Answer {
    let of = |streams: &[StreamName]| read.streams.iter().find(|delta| streams.contains(&delta.stream));
    // What a terminal shows is one stream, as two are that were merged.
    let stdout = of(&[StreamName::Stdout, StreamName::Terminal]);
    let stderr = of(&[StreamName::Stderr]);
    let structured = structured::JobOutput {
        job: job(&read.info),
        stdout: stdout.map(|delta| self::delta(&read.info.id, delta)),
        stderr: stderr.map(|delta| self::delta(&read.info.id, delta)),
        output: read.output.clone(),
    };
    Answer::new(text(read, stdout, stderr), &structured)
}

fn text(read: &JobRead, stdout: Option<&StreamDelta>, stderr: Option<&StreamDelta>) -> String {
    let mut text = String::new();
    if let Some(delta) = stdout {
        append(&mut text, "", delta);
    }
    if let Some(delta) = stderr {
        append(&mut text, "[stderr]\n", delta);
    }
    if let Some(output) = &read.output {
        end_line(&mut text);
        text.push_str(&fold(output));
    }
    if text.is_empty() {
        text.push_str("(no new output)");
    }
    end_line(&mut text);
    text.push_str(&job_line(&read.info));
    text
}

/// Appends what is new of a stream, and what of it is lost before that.
fn append(text: &mut String, heading: &str, delta: &StreamDelta) {
    if !has_news(delta) {
        return;
    }
    end_line(text);
    text.push_str(heading);
    if delta.gap > 0 {
        let place = path(&delta.spill).unwrap_or_else(|| "(unavailable)".to_owned());
        let lost = delta.gap;
        let _ = writeln!(
            text,
            "[{lost} bytes were dropped from memory; full output: {place}]"
        );
    }
    text.push_str(&fold(&delta.text));
}

fn delta(id: &JobId, delta: &StreamDelta) -> structured::Delta {
    structured::Delta {
        text: delta.text.clone(),
        offset: delta.offset,
        next_offset: delta.next_offset,
        lost_bytes: delta.gap,
        total_bytes: delta.total,
        uri: OutputUri::whole(id.as_str(), delta.stream).to_string(),
        path: path(&delta.spill),
    }
}
