//! What an owner does with its jobs.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dsh_subprocess::{OutputReader, StreamName, TextCursor};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::notice::Attention;
use crate::owner::{Cancel, Job, Owner, lock};
use crate::registry::{Handle, Registry};
use crate::state::UNOWNED;
use crate::wait::Waiter;
use crate::work::ForeignError;
use crate::{JobError, JobId, JobInfo, JobRead, Kill, NewJob, Notice, OwnerId, Work, reading};

/// One owner's hold on its jobs. Clones are the same session; [`Jobs::open`](crate::Jobs::open) makes it.
///
/// It reaches the owner's own jobs and the unowned ones. A job of another owner looks exactly like one that does not
/// exist. Once the session has [ended](Self::end), every request is refused.
///
/// Dropping the last clone ends the session, too, and waits for nothing. A future of this session holds on to it.
#[derive(Clone)]
pub struct JobSession(Arc<Open>);

struct Open {
    id: OwnerId,
    owner: Arc<Owner>,
    // Dropped after the session's own end, which needs it.
    handle: Arc<Handle>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.handle.0.begin_end(&self.owner);
    }
}

impl JobSession {
    pub(crate) fn new(handle: Arc<Handle>, id: OwnerId, owner: Arc<Owner>) -> Self {
        Self(Arc::new(Open { id, owner, handle }))
    }

    /// Returns whose session it is.
    pub fn owner(&self) -> &OwnerId {
        &self.0.id
    }

    /// Starts a job of this owner and gives it a name.
    ///
    /// `start` runs once everything that can be checked has been checked, on the caller's thread. The work it returns
    /// is followed by a task of the current tokio runtime.
    ///
    /// # Errors
    ///
    /// [`EmptyKind`](JobError::EmptyKind), [`EmptyLabel`](JobError::EmptyLabel), [`BadLimit`](JobError::BadLimit),
    /// [`NoRuntime`](JobError::NoRuntime), [`TooManyJobs`](JobError::TooManyJobs), [`OwnerEnded`](JobError::OwnerEnded)
    /// and [`Disposed`](JobError::Disposed), all before `start` runs; and [`StartFailed`](JobError::StartFailed) with
    /// its error. None leaves anything behind, nor uses up a name. Where the session ends while `start` runs, the work
    /// is cancelled, and that end waits for it.
    pub fn start<E: Into<ForeignError>>(
        &self,
        job: NewJob,
        start: impl FnOnce() -> Result<Arc<dyn Work>, E>,
    ) -> Result<JobId, JobError> {
        self.registry().start(&self.0.owner, job, start)
    }

    /// Returns what is known of the owner's jobs and the unowned ones, in the order in which they were started.
    /// Nothing, once the session has ended.
    pub fn list(&self) -> Vec<JobInfo> {
        let state = self.registry().lock();
        if state.refuse_ended(&self.0.owner).is_err() {
            return Vec::new();
        }
        let mut jobs: Vec<_> = [self.0.owner.key, UNOWNED]
            .iter()
            .filter_map(|key| state.groups.get(key))
            .flat_map(|group| group.ledger.iter())
            .map(|(sequence, entry)| (sequence, entry.info()))
            .collect();
        jobs.sort_unstable_by_key(|(sequence, _)| *sequence);
        jobs.into_iter().map(|(_, info)| info).collect()
    }

    /// Returns what is known of a job. It reports nothing.
    ///
    /// # Errors
    ///
    /// [`UnknownJob`](JobError::UnknownJob), [`OwnerEnded`](JobError::OwnerEnded), [`Disposed`](JobError::Disposed).
    pub fn info(&self, id: &JobId) -> Result<JobInfo, JobError> {
        Ok(self.registry().lock().find(&self.0.owner, id)?.info())
    }

    /// Reads on where the last such read of the job ended: of each stream what is new, and of a settled job its final
    /// output. All who call this for one job share one position; [`read_from`](Self::read_from) has none.
    ///
    /// A read of a settled job marks it [reported](JobInfo::reported). Once a job was seen settled, by whatever way,
    /// the next read gives all that is left of each stream, or with a [bound](NewJob::max_read_bytes) as much of it;
    /// the one after it goes on.
    ///
    /// # Errors
    ///
    /// [`UnknownJob`](JobError::UnknownJob), [`OwnerEnded`](JobError::OwnerEnded), [`Disposed`](JobError::Disposed).
    pub fn read(&self, id: &JobId) -> Result<JobRead, JobError> {
        // The state is read before the streams: what is said to be over has been read to its end.
        let (job, mut read) = self.begin_read(id)?;
        let mut cursors = lock(&job.cursors);
        read.streams = job
            .streams
            .iter()
            .zip(cursors.iter_mut())
            .map(|((name, reader), cursor)| reading::read(cursor, *name, reader, job.new.max_read_bytes))
            .collect();
        drop(cursors);
        if read.info.status.is_settled() {
            read.info.reported = true;
            if let Some(entry) = self.registry().lock().entry(&job) {
                entry.life.report();
            }
        }
        Ok(read)
    }

    /// Reads the named streams from the given offsets on, in bytes of the stream, and the final output. It takes
    /// nothing from other readers and reports nothing.
    ///
    /// To follow a job, read on from each [`next_offset`](crate::StreamDelta::next_offset). The
    /// [bound](NewJob::max_read_bytes) of a read holds here, too.
    ///
    /// # Errors
    ///
    /// [`UnknownStream`](JobError::UnknownStream) for a stream that the job does not have, and those of
    /// [`read`](Self::read).
    pub fn read_from(&self, id: &JobId, offsets: &[(StreamName, u64)]) -> Result<JobRead, JobError> {
        let (job, mut read) = self.begin_read(id)?;
        for (stream, offset) in offsets {
            let reader = job.reader(*stream).ok_or_else(|| unknown_stream(id, *stream))?;
            let mut cursor = TextCursor::new(*offset);
            read.streams.push(reading::read(
                &mut cursor,
                *stream,
                reader,
                job.new.max_read_bytes,
            ));
        }
        Ok(read)
    }

    /// Returns a reader of one of a job's streams: it goes on working when the job is gone from the registry.
    ///
    /// # Errors
    ///
    /// Those of [`read_from`](Self::read_from).
    pub fn reader(&self, id: &JobId, stream: StreamName) -> Result<OutputReader, JobError> {
        let mut state = self.registry().lock();
        let job = &state.find(&self.0.owner, id)?.job;
        job.reader(stream)
            .cloned()
            .ok_or_else(|| unknown_stream(id, stream))
    }

    /// Waits until a job has settled, at most for `timeout`, and returns it as it is then: live, where the time ran
    /// out.
    ///
    /// To return a settled job is to report it: where a wait was under way when the job settled, there is no notice of
    /// it.
    ///
    /// # Errors
    ///
    /// [`BadTimeout`](JobError::BadTimeout) for a timeout of 0. [`Cancelled`](JobError::Cancelled) when `cancel` is
    /// cancelled while the job is live; a settled job is returned all the same. And those of [`info`](Self::info). A
    /// wait that was under way when the session ended is answered as any other.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing, and a notice that it held back comes after all.
    pub async fn wait(
        &self,
        id: &JobId,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<JobInfo, JobError> {
        if timeout.is_zero() {
            return Err(JobError::BadTimeout);
        }
        let waiter = Waiter::new(self.registry(), &self.0.owner, id)?;
        let cancelled = tokio::select! {
            biased;
            () = waiter.settled() => false,
            () = cancel.cancelled() => true,
            () = tokio::time::sleep(timeout) => false,
        };
        let info = waiter.look().await;
        if cancelled && !info.status.is_settled() {
            return Err(JobError::Cancelled(id.clone()));
        }
        Ok(info)
    }

    /// Cancels a job, and does not wait for its end. Whoever kills a job needs no notice of its end.
    ///
    /// # Errors
    ///
    /// [`CancelFailed`](JobError::CancelFailed) where its work refuses: nothing about the job has changed then. And
    /// those of [`info`](Self::info).
    pub fn kill(&self, id: &JobId) -> Result<Kill, JobError> {
        // The end may come while the work is still being cancelled, and its notice must not be quicker than this call.
        let waiter = Waiter::new(self.registry(), &self.0.owner, id)?;
        if waiter.was_late {
            return Ok(Kill::AlreadyFinished);
        }
        let cancelled = waiter.job.cancel().map_err(|source| JobError::CancelFailed {
            id: id.clone(),
            source,
        })?;
        if let Cancel::NothingLeft = cancelled {
            return Ok(Kill::AlreadyFinished);
        }
        let mut state = self.registry().lock();
        if let Some(entry) = state.entry(&waiter.job) {
            entry.life.stop();
        }
        let onlookers = state.onlookers(&waiter.job.owner);
        drop(state);
        for onlooker in onlookers {
            onlooker.changed();
        }
        Ok(Kill::Stopping)
    }

    /// Waits for the next end of a job of this owner that the owner has not been told of. `None` once the session has
    /// ended.
    ///
    /// Each end is handed out once, in the order of the settlements, and to one of those who wait. What is reported by
    /// then is left out. How it is to be delivered is decided when it is handed out, and reports it unless it is to be
    /// [quiet](crate::Delivery::Quiet).
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no notice.
    pub async fn notice(&self) -> Option<Notice> {
        loop {
            // Registered before the look: what falls due after it wakes this.
            let mut noticed = pin!(self.0.owner.noticed.notified());
            noticed.as_mut().enable();
            {
                let mut state = self.registry().lock();
                state.refuse_ended(&self.0.owner).ok()?;
                let group = state.groups.get_mut(&self.0.owner.key)?;
                if let Some((entry, delivery)) = group.ledger.take_notice() {
                    return Some(Notice {
                        info: entry.info(),
                        delivery,
                    });
                }
            }
            noticed.await;
        }
    }

    /// Says whether the owner is at work: then its notices are to be injected, otherwise they wake it. An owner begins
    /// idle.
    pub fn set_busy(&self, busy: bool) {
        self.attend(|attention| attention.set_busy(busy));
    }

    /// Says that the owner's user has said something, so that notices may wake the owner again.
    pub fn user_input(&self) {
        self.attend(Attention::user_input);
    }

    /// Returns a count that grows whenever a job that this session sees is started, is being stopped or has settled,
    /// and when the session ends. It says that there is something to look at, not what. Once the session is gone, it
    /// has no sender.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.owner.changes.subscribe()
    }

    /// Ends the session: refuses what is asked of it later, cancels the owner's jobs, marks them reported, and waits
    /// until they have settled. The unowned ones go on.
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
    /// The end has begun with the first poll, and goes on when the future is dropped.
    pub async fn end(&self) -> Result<(), JobError> {
        let owner = &self.0.owner;
        self.registry().begin_end(owner);
        self.registry().ended(owner).await;
        let orphans = lock(&owner.orphans).clone();
        if orphans.is_empty() {
            Ok(())
        } else {
            Err(JobError::Orphaned(orphans))
        }
    }

    fn registry(&self) -> &Arc<Registry> {
        &self.0.handle.0
    }

    /// Returns a job, and the read of it without its streams.
    fn begin_read(&self, id: &JobId) -> Result<(Arc<Job>, JobRead), JobError> {
        let mut state = self.registry().lock();
        let entry = state.find(&self.0.owner, id)?;
        let (job, info) = (Arc::clone(&entry.job), entry.info());
        let output = entry.life.output.clone();
        drop(state);
        let read = JobRead {
            info,
            streams: Vec::new(),
            output: output.map(|text| text.to_string()),
        };
        Ok((job, read))
    }

    fn attend(&self, change: impl FnOnce(&mut Attention)) {
        if let Some(group) = self.registry().lock().groups.get_mut(&self.0.owner.key) {
            change(&mut group.ledger.attention);
        }
    }
}

fn unknown_stream(id: &JobId, stream: StreamName) -> JobError {
    JobError::UnknownStream {
        id: id.clone(),
        stream,
    }
}

impl fmt::Debug for JobSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobSession")
            .field("owner", &self.0.id)
            .finish_non_exhaustive()
    }
}
