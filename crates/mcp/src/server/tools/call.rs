//! What a tool has while it is called.

use std::time::Duration;

use dsh_jobs::{JobError, JobId};
use dsh_shell::Shell;
use dsh_subprocess::SubprocessRuntime;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio_util::sync::CancellationToken;

use super::answer::Refusal;
use super::arguments::Arguments;
use super::shown::quoted;
use crate::server::session::SessionRef;

/// One call of a tool.
#[derive(Clone, Copy)]
pub(in crate::server) struct Call<'a> {
    pub(in crate::server) world: &'a dyn SubprocessRuntime,
    pub(in crate::server) shell: &'a Shell,
    pub(in crate::server) session: &'a SessionRef,
    pub(in crate::server) context: &'a RequestContext<RoleServer>,
    /// Cancelled when the session's calls are to end.
    pub(in crate::server) given_up: &'a CancellationToken,
    pub(in crate::server) progress_interval: Duration,
}

impl Call<'_> {
    /// Resolves when nobody wants the answer any more: the client cancelled the call, or the session is over.
    pub(super) async fn given_up(&self) {
        tokio::select! {
            () = self.context.ct.cancelled() => {}
            () = self.given_up.cancelled() => {}
        }
    }

    /// Reads which job is meant.
    pub(super) fn job_id(&self, arguments: &mut Arguments) -> Result<JobId, Refusal> {
        let text = arguments.required_text("job_id")?;
        self.known_job(&text)
    }

    /// Reads the id of a job. What is no id at all names no job either.
    pub(super) fn known_job(&self, text: &str) -> Result<JobId, Refusal> {
        text.parse().map_err(|_| self.unknown(text))
    }

    /// Puts a registry's error into words for the session that it is about.
    pub(super) fn job_failed(&self, error: &JobError) -> Refusal {
        match error {
            JobError::UnknownJob(id) => self.unknown(id.as_str()),
            // Owners have no name that anybody should learn.
            JobError::OwnerEnded(_) => Refusal("this session has ended".to_owned()),
            JobError::StartFailed { source, .. } | JobError::CancelFailed { source, .. } => {
                Refusal(format!("{error}: {source}"))
            }
            other => Refusal(other.to_string()),
        }
    }

    /// Says that there is no such job, whether there is none at all or it belongs to somebody else.
    fn unknown(&self, id: &str) -> Refusal {
        let own: Vec<String> = self
            .session
            .jobs()
            .list()
            .iter()
            .map(|job| format!("`{}`", job.id))
            .collect();
        let id = quoted(id);
        Refusal(match own.as_slice() {
            [] => format!("there is no job {id}: this session has none"),
            own => format!("there is no job {id}: this session has {}", own.join(", ")),
        })
    }
}
