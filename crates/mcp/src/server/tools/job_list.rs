//! `job_list`: this session's jobs.

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::json;

use super::answer::{Answer, Refusal};
use super::arguments::Arguments;
use super::call::Call;
use super::shown::{job, job_line};
use super::structured;

pub(super) fn tool() -> Tool {
    super::tool::<structured::JobList>(
        super::JOB_LIST,
        "Lists the background jobs of this session, also those that have ended.",
        &json!({}),
        &[],
        ToolAnnotations::with_title("List jobs")
            .read_only(true)
            .open_world(false),
    )
}

pub(super) fn call(call: Call<'_>, arguments: Arguments) -> Result<Answer, Refusal> {
    arguments.finish(&[])?;
    let jobs = call.session.jobs().list();
    let lines: Vec<String> = jobs
        .iter()
        .map(|info| format!("{} {}", job_line(info), info.label))
        .collect();
    let text = if lines.is_empty() {
        "(no jobs)".to_owned()
    } else {
        lines.join("\n")
    };
    let structured = structured::JobList {
        jobs: jobs.iter().map(job).collect(),
    };
    Ok(Answer::new(text, &structured))
}
