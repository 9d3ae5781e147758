//! Work that does what a test says, and a few ways to look at a registry.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dsh_jobs::{
    ForeignError, JobError, JobId, JobInfo, JobSession, Jobs, Limits, NewJob, Settled, Settlement, Work,
};
use dsh_subprocess::{Collect, Collector, OutputReader, StreamName};
use futures_core::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes: only a defect waits for it.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// What work does when it is cancelled, beside counting it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnCancel {
    /// Goes on, until the test settles it.
    Linger,
    /// Ends at once.
    End,
    Refuse,
    Panic,
}

type Ended = Result<Settlement, ForeignError>;

/// Work on strings: the test pulls them.
pub(crate) struct Puppet {
    outputs: Vec<(StreamName, OutputReader)>,
    on_cancel: OnCancel,
    cancels: AtomicUsize,
    end: Mutex<Option<oneshot::Sender<Ended>>>,
    ended: Mutex<Option<oneshot::Receiver<Ended>>>,
}

/// The strings, each of which is a stream of the work as well.
pub(crate) struct Strings {
    pub(crate) puppet: Arc<Puppet>,
    pub(crate) stdout: Collector,
    pub(crate) stderr: Collector,
}

impl Puppet {
    pub(crate) fn on_streams(on_cancel: OnCancel, outputs: Vec<(StreamName, OutputReader)>) -> Arc<Self> {
        let (end, ended) = oneshot::channel();
        Arc::new(Self {
            outputs,
            on_cancel,
            cancels: AtomicUsize::new(0),
            end: Mutex::new(Some(end)),
            ended: Mutex::new(Some(ended)),
        })
    }

    pub(crate) fn cancels(&self) -> usize {
        self.cancels.load(Ordering::SeqCst)
    }

    /// Settles the work.
    pub(crate) fn end(&self, how: Ended) {
        if let Some(end) = self.end.lock().unwrap().take() {
            end.send(how).ok();
        }
    }

    /// Waits until nobody waits for the work to settle.
    pub(crate) async fn abandoned(&self) {
        let end = self.end.lock().unwrap().take();
        end.expect("it has not settled").closed().await;
    }

    /// Makes the work panic instead of settling.
    pub(crate) fn break_down(&self) {
        self.end.lock().unwrap().take();
    }
}

impl Work for Puppet {
    fn outputs(&self) -> Vec<(StreamName, OutputReader)> {
        self.outputs.clone()
    }

    fn cancel(&self) -> Result<(), ForeignError> {
        self.cancels.fetch_add(1, Ordering::SeqCst);
        match self.on_cancel {
            OnCancel::Linger => Ok(()),
            OnCancel::End => {
                self.end(Ok(killed()));
                Ok(())
            }
            OnCancel::Refuse => Err("the world is gone".into()),
            OnCancel::Panic => panic!("a cancel that panics"),
        }
    }

    fn settled(&self) -> BoxFuture<'static, Ended> {
        let ended = self.ended.lock().unwrap().take().expect("asked once");
        Box::pin(async move { ended.await.expect("work that panics") })
    }
}

impl Strings {
    /// Work with both streams, each of which keeps 64 KiB.
    pub(crate) fn new(on_cancel: OnCancel) -> Self {
        Self::with_window(on_cancel, 64 * 1024)
    }

    pub(crate) fn with_window(on_cancel: OnCancel, max_bytes: usize) -> Self {
        let collect = Collect {
            max_bytes,
            head_bytes: 0,
            spill: None,
        };
        let (stdout, out) = Collector::new(&collect, None);
        let (stderr, err) = Collector::new(&collect, None);
        let puppet = Puppet::on_streams(
            on_cancel,
            vec![(StreamName::Stdout, out), (StreamName::Stderr, err)],
        );
        Self {
            puppet,
            stdout,
            stderr,
        }
    }

    /// Seals the streams and settles the work.
    pub(crate) fn end(self, how: Ended) {
        drop((self.stdout, self.stderr));
        self.puppet.end(how);
    }

    pub(crate) fn work(&self) -> Arc<dyn Work> {
        Arc::clone(&self.puppet) as _
    }

    /// Starts the work as a job of kind `bash`.
    pub(crate) fn start(&self, session: &JobSession) -> JobId {
        session.start(bash("a command"), || ok(self.work())).unwrap()
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it is what a start returns, with its type of error"
)]
pub(crate) fn ok(work: Arc<dyn Work>) -> Result<Arc<dyn Work>, ForeignError> {
    Ok(work)
}

pub(crate) fn bash(label: &str) -> NewJob {
    NewJob::new("bash", label)
}

pub(crate) fn exited(code: u32) -> Settlement {
    Settlement {
        status: Settled::Completed,
        detail: Some(format!("exit code: {code}")),
        output: None,
    }
}

pub(crate) fn killed() -> Settlement {
    Settlement {
        status: Settled::Killed,
        detail: Some("signal: SIGTERM".to_owned()),
        output: None,
    }
}

pub(crate) fn registry() -> Jobs {
    Jobs::new(Limits::default()).unwrap()
}

/// A registry, and the session of one owner.
pub(crate) fn session() -> (Jobs, JobSession) {
    let jobs = registry();
    let session = jobs.open("owner").unwrap();
    (jobs, session)
}

/// Waits for a settlement as an onlooker, whom no notice takes for somebody that was told.
pub(crate) async fn settled(session: &JobSession, id: &JobId) -> JobInfo {
    let mut changes = session.changes();
    let settled = async {
        loop {
            changes.borrow_and_update();
            let info = session.info(id).unwrap();
            if info.status.is_settled() {
                return info;
            }
            changes.changed().await.unwrap();
        }
    };
    bounded(settled).await
}

pub(crate) async fn wait(session: &JobSession, id: &JobId) -> JobInfo {
    session.wait(id, BOUND, &CancellationToken::new()).await.unwrap()
}

pub(crate) async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future)
        .await
        .expect("it takes forever")
}

/// Polls once. What is not ready then waits for something that has not happened.
pub(crate) fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Checks that an owner has nothing to be told.
pub(crate) fn assert_no_notice(session: &JobSession) {
    assert_eq!(poll_once(session.notice()), None);
}

pub(crate) fn is_unknown<T: std::fmt::Debug>(result: Result<T, JobError>, id: &JobId) -> bool {
    match result {
        Err(error @ JobError::UnknownJob(_)) => error.to_string() == format!("there is no job `{id}`"),
        other => panic!("{other:?}"),
    }
}
