//! How a job comes to its end.

use std::sync::Arc;
use std::time::Instant;

use dsh_subprocess::OutputReader;
use futures_core::future::BoxFuture;

use crate::Settlement;
use crate::life::Ending;
use crate::owner::{Job, lock};
use crate::registry::Registry;
use crate::work::ForeignError;

impl Registry {
    /// Follows a job to its settlement. The job's own task.
    pub(crate) fn follow(
        self: Arc<Self>,
        job: Arc<Job>,
        settled: BoxFuture<'static, Result<Settlement, ForeignError>>,
        streams: Vec<OutputReader>,
    ) -> impl Future<Output = ()> + Send {
        // Made before the first poll: a runtime that is shutting down drops the task without one.
        let unsettled = Unsettled { registry: self, job };
        async move {
            let ending = async {
                let settlement = settled.await?;
                for stream in streams {
                    // No stream gets there, so this is its end.
                    stream.changed(u64::MAX).await;
                }
                Ok(settlement)
            };
            tokio::select! {
                // A job that was declared failed has no need to be followed any more.
                _ = unsettled.job.settled.wait() => {}
                result = ending => unsettled.settle(result.map_or_else(|error: ForeignError| error.into(), Ending::from)),
            }
        }
    }

    /// Settles a job, unless it has settled: the first to come decides. Tells whether this was the first.
    ///
    /// Whoever is told can rely on what was told before: the record is written first, then those who wait for the job
    /// hear of it, then those who look at the owner's jobs, and last comes the notice.
    pub(crate) fn settle(&self, job: &Arc<Job>, ending: Ending) -> bool {
        let mut state = self.lock();
        let Some(group) = state.groups.get_mut(&job.owner.key) else {
            return false;
        };
        let Some(dropped) = group.ledger.settle(job.sequence, ending, Instant::now()) else {
            return false;
        };
        let Some(entry) = group.ledger.get_mut(job.sequence) else {
            return false;
        };
        let (info, notice_due) = (entry.info(), entry.life.notice_due());
        let onlookers = state.onlookers(&job.owner);
        let retired = state.retire(job.owner.key);
        drop(state);

        job.settled.set(info).ok();
        for onlooker in onlookers {
            onlooker.changed();
        }
        if notice_due {
            job.owner.noticed.notify_waiters();
        }
        let work = lock(&job.work).take();
        drop((work, dropped, retired));
        true
    }
}

/// A job that is being followed. When that stops for any reason, the job still settles.
struct Unsettled {
    registry: Arc<Registry>,
    job: Arc<Job>,
}

impl Unsettled {
    fn settle(&self, ending: Ending) {
        self.registry.settle(&self.job, ending);
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        // Nothing happens where it has settled.
        self.settle(Ending::failed(
            "its work was lost: it panicked, or the runtime that followed it has ended",
        ));
    }
}
