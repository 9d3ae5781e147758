//! `process_info`: what the runtime knows of a job's processes, or of itself.

use std::fmt::Write as _;

use dsh_jobs::JobId;
use dsh_shell::{Execution, ShellRequest};
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::json;

use super::answer::{Answer, Refusal};
use super::arguments::Arguments;
use super::call::Call;
use super::shown::{job, job_line, member, millis, one_line};
use super::structured;

const DESCRIPTION: &str = "Tells of a background job which processes it has, what they used, and what keeps them together; \
without a job_id, where commands run and within which limits.";

pub(super) fn tool() -> Tool {
    let properties = json!({
        "job_id": { "type": "string", "description": "The job, as in `bash-1`." },
    });
    super::tool::<structured::ProcessInfo>(
        super::PROCESS_INFO,
        DESCRIPTION,
        &properties,
        &[],
        ToolAnnotations::with_title("Inspect processes")
            .read_only(true)
            .open_world(false),
    )
}

pub(super) async fn call(call: Call<'_>, mut arguments: Arguments) -> Result<Answer, Refusal> {
    let id = match arguments.optional_text("job_id")? {
        Some(text) => Some(call.known_job(&text)?),
        None => None,
    };
    arguments.finish(&["job_id"])?;
    match id {
        Some(id) => of_job(call, &id).await,
        None => of_world(call),
    }
}

async fn of_job(call: Call<'_>, id: &JobId) -> Result<Answer, Refusal> {
    let info = call
        .session
        .jobs()
        .info(id)
        .map_err(|error| call.job_failed(&error))?;
    let execution: Execution = call.session.execution(id).ok_or_else(|| {
        Refusal(format!(
            "the job `{id}` has no processes that this server knows of"
        ))
    })?;
    let process = execution.process();
    let seen = async {
        let ownership = process.ownership().await?;
        let usage = process.usage().await?;
        Ok::<_, dsh_subprocess::Error>(structured::TreeInfo {
            job: job(&info),
            pid: execution.pid(),
            mechanism: ownership.mechanism.to_string(),
            weaknesses: ownership.weaknesses,
            members: process.members().await?.iter().map(member).collect(),
            usage: structured::Usage {
                user_ms: usage.user.map(millis),
                system_ms: usage.system.map(millis),
                peak_memory_bytes: usage.peak_memory_bytes,
            },
            holders: process
                .holders()
                .await?
                .iter()
                .map(|holder| member(&holder.member))
                .collect(),
            survivors: process.survivors().await?.iter().map(member).collect(),
        })
    };
    let tree = tokio::select! {
        seen = seen => seen.map_err(|error| Refusal(format!("the processes of the job `{id}` cannot be seen: {error}")))?,
        () = call.given_up() => return Err(Refusal("the call was given up".to_owned())),
    };

    let mut text = format!("{} kept together by {}", job_line(&info), tree.mechanism);
    for (name, members) in [
        ("process", &tree.members),
        ("holds its output", &tree.holders),
        ("survives", &tree.survivors),
    ] {
        for one in members {
            let pid = one.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
            let _ = write!(text, "\n{name}{pid}: {}", one_line(&one.command));
        }
    }
    Ok(Answer::new(text, &structured::ProcessInfo::Job(Box::new(tree))))
}

fn of_world(call: Call<'_>) -> Result<Answer, Refusal> {
    let capabilities = call.world.capabilities();
    let config = call.shell.config();
    // The directory that a command would have now; the command is not run.
    let spec = call
        .shell
        .resolve(ShellRequest::new(":"))
        .map_err(|error| Refusal(error.to_string()))?;
    let live = call
        .session
        .jobs()
        .list()
        .iter()
        .filter(|job| !job.status.is_settled())
        .count();
    let world = structured::WorldInfo {
        mechanism: capabilities.mechanism.to_string(),
        ends_trees_on_host_death: capabilities.ends_trees_on_host_death,
        spill: capabilities.spill && config.max_spill_bytes > 0,
        workdir: spec.workdir.to_string(),
        shell: config.program.iter().map(ToString::to_string).collect(),
        default_timeout_ms: millis(config.timeout.min(config.max_timeout)),
        max_timeout_ms: millis(config.max_timeout),
        max_output_bytes: config.max_output_bytes as u64,
        live_jobs: live as u64,
    };
    let text = format!(
        "{} runs commands in {}\ntimeout {} ms, at most {} ms; {} bytes of each stream are shown\n\
         process trees are kept together by {}; {live} jobs run",
        world.shell.join(" "),
        world.workdir,
        world.default_timeout_ms,
        world.max_timeout_ms,
        world.max_output_bytes,
        world.mechanism,
    );
    Ok(Answer::new(text, &structured::ProcessInfo::World(world)))
}
