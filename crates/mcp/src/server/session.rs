//! One session: whose jobs and outputs are whose, and what ends with it.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dsh_jobs::{JobError, JobId, JobSession, Jobs};
use dsh_shell::Execution;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::SessionEnd;
use super::http::token::random_hex;
use super::outputs::Outputs;
use super::traffic::{CallGuard, Traffic};

/// How long calls may go on after the client's last message. A client that pipes its messages in and closes its end has its
/// answers to quick calls; one that is gone has its commands ended soon.
const LINGER: Duration = Duration::from_secs(1);

/// How long jobs may be waited for at once. The wait is begun again.
const LONG: Duration = Duration::from_secs(3600);

/// A session. It ends once [`close`](Self::close) was called, when a task of its own has ended its jobs.
pub(super) struct Session {
    jobs: JobSession,
    outputs: Outputs,
    /// What the seam knows of the jobs that are commands.
    executions: Mutex<HashMap<JobId, Execution>>,
    traffic: Traffic,
    /// No message comes any more.
    closed: CancellationToken,
    /// Nothing is answered any more either.
    finished: CancellationToken,
    /// Ends the calls that run.
    calls_end: Mutex<CancellationToken>,
    /// The lowest level of log messages that the client wants, as its place in the list of levels.
    log_level: watch::Sender<u8>,
    announced: AtomicBool,
}

/// A session, shared by its transport and its calls. Cheap to clone, as what travels with each message must be.
#[derive(Clone)]
pub(super) struct SessionRef(Arc<Session>);

/// A stream on which the client listens, until it is dropped.
pub(super) struct Listening(SessionRef);

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("{0}")]
    Jobs(#[from] JobError),
    #[error("no random bytes for the session's owner: {0}")]
    Random(getrandom::Error),
}

/// What sessions are opened with.
pub(super) struct Opening<'a> {
    pub(super) jobs: &'a Jobs,
    pub(super) kept_outputs: usize,
    pub(super) max_calls: usize,
    pub(super) end: SessionEnd,
    /// Closes the session.
    pub(super) stop: &'a CancellationToken,
    /// Has the task that ends the session.
    pub(super) tasks: &'a TaskTracker,
}

impl SessionRef {
    /// Opens a session of an owner that nobody can guess, and nobody is told.
    pub(super) fn open(opening: &Opening<'_>) -> Result<Self, OpenError> {
        let owner = random_hex::<16>().map_err(OpenError::Random)?;
        let session = Self(Arc::new(Session {
            jobs: opening.jobs.open(owner)?,
            outputs: Outputs::new(opening.kept_outputs),
            executions: Mutex::default(),
            traffic: Traffic::new(opening.max_calls),
            closed: opening.stop.child_token(),
            finished: CancellationToken::new(),
            calls_end: Mutex::default(),
            log_level: watch::Sender::new(INFO),
            announced: AtomicBool::new(false),
        }));
        opening.tasks.spawn(session.clone().run(opening.end));
        Ok(session)
    }

    /// Waits for the end of the session's messages, and ends it.
    async fn run(self, end: SessionEnd) {
        self.closed.cancelled().await;
        let jobs = async {
            match end {
                SessionEnd::EndJobs => self.end_jobs().await,
                SessionEnd::KeepJobs => {}
            }
        };
        let calls = async {
            // A call whose request came last may not have begun yet, so only the transport knows when all are answered.
            let _ = tokio::time::timeout(LINGER, self.finished.cancelled()).await;
            // Whoever is still at work is asked to end, and answers for its own tree.
            self.calls_end().cancel();
            self.finished.cancelled().await;
            self.traffic.no_calls().await;
        };
        tokio::join!(jobs, calls);
        self.outputs.clear();
        if end == SessionEnd::KeepJobs {
            // The jobs are the session's as long as they run: its last clone would end them.
            let jobs = self.jobs.clone();
            tokio::spawn(async move {
                outlast(&jobs).await;
                let _ = jobs.end().await;
            });
        }
        tracing::info!("a session has ended");
    }

    async fn end_jobs(&self) {
        if let Err(error) = self.jobs.end().await {
            tracing::error!(%error, "a session's jobs could not be ended");
        }
    }
}

impl SessionRef {
    /// Counts the client as being there.
    pub(super) fn listen(&self) -> Listening {
        self.traffic.begin_listening();
        Listening(self.clone())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.traffic.end_listening();
    }
}

impl Deref for SessionRef {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

/// The place of `info` in the protocol's list of levels, which begins with `debug`.
pub(super) const INFO: u8 = 1;

impl Session {
    /// Says that no message comes any more. It waits for nothing, and does nothing the second time.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// Says that nothing is answered any more either: the transport is closed.
    pub(super) fn finish(&self) {
        self.closed.cancel();
        self.finished.cancel();
    }

    /// Resolves when no message comes any more.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Tells whether no message comes any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Begins a call, unless as many as may run at once are running. The token says when nobody wants its answer any more.
    pub(super) fn begin_call(&self) -> Option<(CallGuard<'_>, CancellationToken)> {
        let call = self.traffic.begin_call(&self.jobs)?;
        // A call is the client's doing, so there is somebody to tell of what ends.
        self.jobs.user_input();
        Some((call, self.calls_end().clone()))
    }

    /// Ends the calls that run, and not those that begin later.
    pub(super) fn give_calls_up(&self) {
        std::mem::take(&mut *self.calls_end()).cancel();
    }

    fn calls_end(&self) -> MutexGuard<'_, CancellationToken> {
        self.calls_end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn jobs(&self) -> &JobSession {
        &self.jobs
    }

    pub(super) fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Remembers the command of a job, and forgets those whose jobs the registry has forgotten.
    pub(super) fn remember(&self, id: JobId, execution: Execution) {
        let known = self.jobs.list();
        let mut executions = self.executions();
        executions.retain(|id, _| known.iter().any(|job| job.id == *id));
        executions.insert(id, execution);
    }

    /// Returns the command of a job that this session started.
    pub(super) fn execution(&self, id: &JobId) -> Option<Execution> {
        self.executions().get(id).cloned()
    }

    fn executions(&self) -> MutexGuard<'_, HashMap<JobId, Execution>> {
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the lowest level of log messages that the client wants.
    pub(super) fn set_log_level(&self, level: u8) {
        self.log_level.send_replace(level);
    }

    /// Resolves when the client wants log messages of a level, or wants none. Until it says otherwise, it wants those from `info`
    /// on.
    pub(super) async fn logs(&self, level: u8, wanted: bool) {
        let mut least = self.log_level.subscribe();
        // The sender is borrowed, so it cannot go while this waits.
        let _ = least.wait_for(|least| (level >= *least) == wanted).await;
    }

    /// Returns `true` the first time: whoever gets it announces to the client what happens meanwhile.
    pub(super) fn begin_announcing(&self) -> bool {
        !self.announced.swap(true, Ordering::AcqRel)
    }
}

/// Waits for the end of every job.
async fn outlast(jobs: &JobSession) {
    let never = CancellationToken::new();
    loop {
        let live = jobs
            .list()
            .into_iter()
            .find(|job| !job.status.is_settled() && job.owner.is_some());
        let Some(live) = live else { return };
        if jobs.wait(&live.id, LONG, &never).await.is_err() {
            // The registry was disposed of, and the jobs with it.
            return;
        }
    }
}
