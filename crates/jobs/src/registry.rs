//! The registry: all owners and their jobs, under one lock.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::owner::{Owner, lock};
use crate::state::{State, UNOWNED};
use crate::work::ForeignError;
use crate::{JobError, JobId, JobSession, Limits, NewJob, OwnerId, Work};

/// A registry of background jobs. Clones are the same registry.
///
/// Everything but the waiting is immediate. Starting a job needs a running tokio runtime, which follows it to its
/// settlement; waiting needs one with its timer. No thread is started.
///
/// Dropping the last clone, with every session gone too, cancels the unowned jobs and waits for nothing;
/// [`dispose`](Self::dispose) waits.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// use dsh_jobs::{ForeignError, JobStatus, Jobs, Limits, NewJob, Settled, Settlement, Work};
/// use dsh_subprocess::{Collect, Collector, OutputReader, StreamName};
/// use futures_core::future::BoxFuture;
/// use tokio::sync::oneshot;
/// use tokio_util::sync::CancellationToken;
///
/// /// A count that goes on until it is cancelled.
/// struct Count {
///     output: OutputReader,
///     stop: CancellationToken,
///     over: Mutex<Option<oneshot::Receiver<u64>>>,
/// }
///
/// impl Count {
///     fn start() -> Arc<dyn Work> {
///         let collect = Collect { max_bytes: 4096, head_bytes: 0, spill: None };
///         let (mut collector, output) = Collector::new(&collect, None);
///         let stop = CancellationToken::new();
///         let (ended, over) = oneshot::channel();
///         let stopped = stop.clone();
///         tokio::spawn(async move {
///             let mut number = 0;
///             while !stopped.is_cancelled() {
///                 number += 1;
///                 collector.push(format!("{number}\n").as_bytes());
///                 tokio::task::yield_now().await;
///             }
///             collector.seal();
///             ended.send(number).ok();
///         });
///         Arc::new(Self { output, stop, over: Mutex::new(Some(over)) })
///     }
/// }
///
/// impl Work for Count {
///     fn outputs(&self) -> Vec<(StreamName, OutputReader)> {
///         vec![(StreamName::Stdout, self.output.clone())]
///     }
///
///     fn cancel(&self) -> Result<(), ForeignError> {
///         self.stop.cancel();
///         Ok(())
///     }
///
///     fn settled(&self) -> BoxFuture<'static, Result<Settlement, ForeignError>> {
///         let over = self.over.lock().unwrap().take();
///         Box::pin(async move {
///             let number = over.ok_or("it is awaited already")?.await?;
///             Ok(Settlement {
///                 status: Settled::Killed,
///                 detail: Some(format!("counted to {number}")),
///                 output: None,
///             })
///         })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let jobs = Jobs::new(Limits::default())?;
/// let session = jobs.open("first conversation")?;
/// let id = session.start(NewJob::new("count", "counts up"), || Ok::<_, ForeignError>(Count::start()))?;
/// assert_eq!(id.as_str(), "count-1");
///
/// session.reader(&id, StreamName::Stdout)?.changed(0).await;
/// assert!(session.read(&id)?.streams[0].text.starts_with("1\n"));
///
/// session.kill(&id)?;
/// let info = session.wait(&id, Duration::from_secs(60), &CancellationToken::new()).await?;
/// assert_eq!(info.status, JobStatus::Killed);
///
/// // Another owner sees nothing of it.
/// assert!(jobs.open("second conversation")?.read(&id).is_err());
/// jobs.dispose().await?;
/// # Ok::<_, dsh_jobs::JobError>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Jobs(Arc<Handle>);

/// What the clones of a [`Jobs`] and its sessions share. The tasks that follow jobs hold the registry alone, so that
/// this goes with the last of those who could ask for anything.
pub(crate) struct Handle(pub(crate) Arc<Registry>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.begin_disposal();
    }
}

impl Jobs {
    /// Makes an empty registry.
    ///
    /// # Errors
    ///
    /// [`BadLimit`](JobError::BadLimit) for a limit that is 0 and must not be.
    pub fn new(limits: Limits) -> Result<Self, JobError> {
        limits.validate()?;
        let unowned = Owner::new(UNOWNED, None);
        let state = State::new(&unowned, &limits);
        Ok(Self(Arc::new(Handle(Arc::new(Registry {
            limits,
            unowned,
            state: Mutex::new(state),
        })))))
    }

    /// Opens the session of an owner: who holds it or a clone of it acts for that owner. It lasts until its
    /// [end](JobSession::end).
    ///
    /// An owner whose session has ended may open another one, which knows nothing of the jobs of the former.
    ///
    /// # Errors
    ///
    /// [`EmptyOwner`](JobError::EmptyOwner), [`OwnerTaken`](JobError::OwnerTaken) while the owner's session is open,
    /// and [`Disposed`](JobError::Disposed).
    pub fn open(&self, owner: impl Into<OwnerId>) -> Result<JobSession, JobError> {
        let id = owner.into();
        if id.as_str().is_empty() {
            return Err(JobError::EmptyOwner);
        }
        let registry = &self.0.0;
        let owner = registry.lock().admit(id.clone(), &registry.limits)?;
        Ok(JobSession::new(Arc::clone(&self.0), id, owner))
    }

    /// Starts a job that belongs to nobody: every session can list, read, await and kill it, and it outlives them all.
    /// Its end is announced to none.
    ///
    /// Otherwise as [`JobSession::start`].
    ///
    /// # Errors
    ///
    /// [`NoController`](JobError::NoController) while no session is open, and those of [`JobSession::start`].
    pub fn start_unowned<E: Into<ForeignError>>(
        &self,
        job: NewJob,
        start: impl FnOnce() -> Result<Arc<dyn Work>, E>,
    ) -> Result<JobId, JobError> {
        let registry = &self.0.0;
        registry.start(&registry.unowned, job, start)
    }

    /// Ends the registry: refuses every later start, cancels all jobs, marks them reported, and waits until they have
    /// settled. It ends every session, as [`JobSession::end`] does.
    ///
    /// It takes as long as the works take to end: they bound it, not this. It may be called again, and then waits as
    /// well.
    ///
    /// # Errors
    ///
    /// [`Orphaned`](JobError::Orphaned) names the jobs whose works refused to be cancelled. They count as failed.
    ///
    /// # Cancellation
    ///
    /// The disposal has begun with the first poll, and goes on when the future is dropped.
    pub async fn dispose(&self) -> Result<(), JobError> {
        let registry = &self.0.0;
        let owners = registry.begin_disposal();
        let mut orphans = Vec::new();
        for owner in owners {
            registry.ended(&owner).await;
            orphans.extend_from_slice(&lock(&owner.orphans));
        }
        if orphans.is_empty() {
            Ok(())
        } else {
            Err(JobError::Orphaned(orphans))
        }
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs")
            .field("limits", &self.0.0.limits)
            .finish_non_exhaustive()
    }
}

/// What everything else of this crate is a method of.
pub(crate) struct Registry {
    pub(crate) limits: Limits,
    pub(crate) unowned: Arc<Owner>,
    state: Mutex<State>,
}

impl Registry {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
