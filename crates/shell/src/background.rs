//! A command as a job.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::sync::Arc;

use dsh_jobs::{JobError, JobSession, NewJob, Settled, Settlement, Work};
use dsh_subprocess::{Outcome, OutputReader, Snapshot, StreamName, whole_characters};
use futures_core::future::BoxFuture;

use crate::execution::{Execution, Status};
use crate::result::{Collected, Fate, RunResult};

/// What the jobs of this crate are called: their ids are `bash-1`, `bash-2` and so on.
pub const JOB_KIND: &str = "bash";

/// What a command left behind, as work: what its result showed is not shown again.
struct Rest {
    execution: Execution,
    shown: Vec<u64>,
}

impl Work for Rest {
    fn outputs(&self) -> Vec<(StreamName, OutputReader)> {
        self.execution.outputs()
    }

    fn shown(&self) -> Vec<u64> {
        self.shown.clone()
    }

    fn cancel(&self) -> Result<(), Box<dyn StdError + Send + Sync>> {
        self.execution.cancel()
    }

    fn settled(&self) -> BoxFuture<'static, Result<Settlement, Box<dyn StdError + Send + Sync>>> {
        let settled = self.execution.settled();
        Box::pin(async move {
            let mut settlement = settled.await?;
            // The exit was known before this was a job, and says nothing of how the job ended.
            if let Some(detail) = &mut settlement.detail {
                *detail = format!("its shell had ended before, {detail}");
            }
            Ok(settlement)
        })
    }
}

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
            // A process that nobody can end, or nobody watches any more, may hold the output open for ever. The registry
            // waits for the end of the output after a success only.
            let out_of_control = ended.outcome.is_err() || !ended.survivors.is_empty();
            if out_of_control && execution.outputs().iter().any(|(_, reader)| !reader.is_sealed()) {
                return Err(detail.into());
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
    let shown = [Some(shown(&result.stdout)), result.stderr.as_ref().map(shown)];
    let Some(left_behind) = &mut result.left_behind else {
        return;
    };
    let Fate::Continues(execution) = &left_behind.fate else {
        return;
    };
    let execution = execution.clone();
    let job = NewJob::new(JOB_KIND, label);
    let rest = Rest {
        execution: execution.clone(),
        shown: shown.into_iter().flatten().collect(),
    };
    let started = session.start(job, move || Ok::<_, Infallible>(Arc::new(rest) as Arc<dyn Work>));
    left_behind.fate = match started {
        Ok(id) => Fate::Job(id),
        Err(error) => {
            left_behind.refused = Some(match error {
                // An owner's name is nothing that a model should learn.
                JobError::OwnerEnded(_) => "its owner has gone".to_owned(),
                other => other.to_string(),
            });
            execution.kill();
            let survivors = execution.done().await.survivors;
            if survivors.is_empty() {
                Fate::Ended
            } else {
                Fate::Survives(survivors)
            }
        }
    };
}

/// How much of a stream a result shows: all there was then, but for a character that had only begun.
fn shown(collected: &Collected) -> u64 {
    let Snapshot {
        tail, total, sealed, ..
    } = &collected.snapshot;
    let open = tail.len() - whole_characters(tail, true, *sealed).end;
    total - open as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_subprocess::{Collect, Collector};

    #[test]
    fn a_character_that_had_only_begun_was_not_shown() {
        let collect = Collect {
            max_bytes: 64,
            head_bytes: 0,
            spill: None,
        };
        let (mut collector, reader) = Collector::new(&collect, None);
        collector.push(b"a\xe2\x80");
        assert_eq!(shown(&Collected::of(&reader)), 1);
        collector.push(b"\x94");
        assert_eq!(shown(&Collected::of(&reader)), 4);
        collector.push(b"\xe2");
        collector.seal();
        assert_eq!(shown(&Collected::of(&reader)), 5, "nothing follows");
    }
}
