//! A command as a job.

use std::error::Error as StdError;

use dsh_jobs::{JobSession, NewJob, Settled, Settlement, Work};
use dsh_subprocess::{Outcome, OutputReader, StreamName};
use futures_core::future::BoxFuture;

use crate::execution::{Execution, Status};
use crate::result::{Fate, RunResult};

/// What the jobs of this crate are called: their ids are `bash-1`, `bash-2` and so on.
pub const JOB_KIND: &str = "bash";

impl Work for Execution {
    fn outputs(&self) -> Vec<(StreamName, OutputReader)> {
        let stdout = Some((StreamName::Stdout, self.stdout().clone()));
        let stderr = self.stderr().map(|reader| (StreamName::Stderr, reader.clone()));
        stdout.into_iter().chain(stderr).collect()
    }

    fn cancel(&self) -> Result<(), Box<dyn StdError + Send + Sync>> {
        // `false` says that it has ended, or is ending already.
        self.kill();
        Ok(())
    }

    fn settled(&self) -> BoxFuture<'static, Result<Settlement, Box<dyn StdError + Send + Sync>>> {
        let execution = self.clone();
        Box::pin(async move {
            let ended = execution.done().await;
            let mut detail = match &ended.outcome {
                Ok(Outcome::Exited { code }) => format!("exit code: {code}"),
                Ok(Outcome::Signaled { signal, .. }) => format!("signal: {signal}"),
                Ok(Outcome::Unknown) => "exit status unknown".to_owned(),
                Err(error) => error.to_string(),
            };
            if !ended.survivors.is_empty() {
                let names: Vec<String> = ended.survivors.iter().map(ToString::to_string).collect();
                detail = format!("{detail}; could not be ended: {}", names.join(", "));
            }
            Ok(Settlement {
                status: if ended.status == Status::Completed {
                    Settled::Completed
                } else {
                    Settled::Killed
                },
                detail: Some(detail),
                output: None,
            })
        })
    }
}

/// Makes a job of what a command left behind, where it goes on.
///
/// `label` is what the job is listed as. A registry that takes no more jobs has the rest ended, and the result's
/// [`Fate`] says which it was.
pub async fn hand_over(session: &JobSession, label: impl Into<String>, result: &mut RunResult) {
    let Some(left_behind) = &mut result.left_behind else {
        return;
    };
    let Fate::Continues(execution) = &left_behind.fate else {
        return;
    };
    let execution = execution.clone();
    let job = NewJob {
        kind: JOB_KIND.to_owned(),
        label: label.into(),
        max_read_bytes: None,
    };
    let work = execution.clone();
    let started = session.start(job, move || {
        Ok::<_, std::convert::Infallible>(std::sync::Arc::new(work) as std::sync::Arc<dyn Work>)
    });
    left_behind.fate = if let Ok(id) = started {
        Fate::Job(id)
    } else {
        execution.kill();
        let survivors = execution.done().await.survivors;
        if survivors.is_empty() {
            Fate::Ended
        } else {
            Fate::Survives(survivors)
        }
    };
}
