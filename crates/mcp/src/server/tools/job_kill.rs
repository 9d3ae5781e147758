//! `job_kill`: the end of a job.

use std::time::Duration;

use dsh_jobs::Kill;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Refusal};
use super::arguments::Arguments;
use super::call::Call;
use super::shown::{job, job_line};
use super::structured;

/// How long a job's end is awaited beyond the shell's grace.
const BEYOND_GRACE: Duration = Duration::from_secs(2);

const DESCRIPTION: &str = "Ends a background job with everything it started: SIGTERM, a grace, SIGKILL. It waits for the end. \
A job that has ended already is left as it is.";

pub(super) fn tool() -> Tool {
    let properties = json!({
        "job_id": { "type": "string", "description": "The job, as in `bash-1`." },
    });
    super::tool::<structured::JobKill>(
        super::JOB_KILL,
        DESCRIPTION,
        &properties,
        &["job_id"],
        ToolAnnotations::with_title("End a job")
            .read_only(false)
            .destructive(true)
            .idempotent(true)
            .open_world(false),
    )
}

pub(super) async fn call(call: Call<'_>, mut arguments: Arguments) -> Result<Answer, Refusal> {
    let id = call.job_id(&mut arguments)?;
    arguments.finish(&["job_id"])?;
    let jobs = call.session.jobs();
    let killed = jobs.kill(&id).map_err(|error| call.job_failed(&error))?;
    let never = CancellationToken::new();
    let bound = call.shell.config().grace + BEYOND_GRACE;
    let info = match killed {
        Kill::AlreadyFinished => jobs.info(&id),
        // A call that is given up does not stop the ending.
        Kill::Stopping => tokio::select! {
            info = jobs.wait(&id, bound, &never) => info,
            () = call.given_up() => jobs.info(&id),
        },
    }
    .map_err(|error| call.job_failed(&error))?;
    let result = match killed {
        Kill::AlreadyFinished => structured::KillResult::AlreadyFinished,
        Kill::Stopping if info.status.is_settled() => structured::KillResult::Stopped,
        Kill::Stopping => structured::KillResult::Stopping,
    };
    let structured = structured::JobKill {
        job_id: id.to_string(),
        result,
        job: job(&info),
    };
    Ok(Answer::new(job_line(&info), &structured))
}
