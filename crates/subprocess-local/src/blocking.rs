//! Looks that may take long: through the process table, into a file. One thread, made at the first of them.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use dsh_subprocess::{Error, ErrorKind};
use futures_core::future::BoxFuture;
use tokio::sync::oneshot;

use crate::reactor::lock;

type Job = Box<dyn FnOnce() + Send>;

/// The thread's inbox.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    jobs: Mutex<Option<Sender<Job>>>,
}

impl Blocking {
    /// Runs a job there and returns its answer. Dropping the future drops the answer, not the job.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move || {
            // Nobody listens any more: that is the caller's choice.
            let _ = answer.send(job());
        });
        let sent = self.send(job);
        Box::pin(async move {
            sent.map_err(|error| {
                Error::new(
                    ErrorKind::ResourceExhausted,
                    operation,
                    "no thread could be made to look",
                )
                .with_source(error)
            })?;
            answered.await.map_err(|_| {
                Error::new(
                    ErrorKind::Os,
                    operation,
                    "the thread that was to look ended without an answer",
                )
            })
        })
    }

    /// Runs a job there and waits for its answer, for at most `bound`.
    pub(crate) fn run_within<T: Send + 'static>(
        &self,
        bound: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = channel();
        self.send(Box::new(move || drop(answer.send(job())))).ok()?;
        answered.recv_timeout(bound).ok()
    }

    fn send(&self, job: Job) -> std::io::Result<()> {
        let mut jobs = lock(&self.jobs);
        if jobs.is_none() {
            let (sender, receiver) = channel::<Job>();
            let _mask = dsh_subprocess_sys::signal::block_for_new_thread();
            thread::Builder::new()
                .name("dsh-looks".to_owned())
                .spawn(move || {
                    for job in receiver {
                        job();
                    }
                })?;
            *jobs = Some(sender);
        }
        if let Some(jobs) = jobs.as_ref() {
            // The receiver lives as long as the sender does.
            let _ = jobs.send(job);
        }
        Ok(())
    }
}
