//! Item 168: settlements.

use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use dsh_jobs::{JobId, JobSession, JobStatus};
use tokio_util::sync::CancellationToken;

use crate::fixture::{
    BOUND, OnCancel, Strings, assert_no_notice, bash, bounded, exited, killed, ok, session, settled, wait,
};

/// Writes down that it was woken, and how the job stood then.
struct Recorder {
    name: &'static str,
    session: JobSession,
    id: JobId,
    log: Arc<Mutex<Vec<(&'static str, JobStatus)>>>,
}

impl Wake for Recorder {
    fn wake(self: Arc<Self>) {
        let status = self.session.info(&self.id).unwrap().status;
        self.log.lock().unwrap().push((self.name, status));
    }
}

#[tokio::test]
async fn item_168_the_order_is_record_then_waiters_then_change_then_notice() {
    let (_jobs, session) = session();
    let log = Arc::new(Mutex::new(Vec::new()));
    for somebody_waits in [true, false] {
        let strings = Strings::new(OnCancel::Linger);
        let id = strings.start(&session);
        let waker = |name| {
            Waker::from(Arc::new(Recorder {
                name,
                session: session.clone(),
                id: id.clone(),
                log: Arc::clone(&log),
            }))
        };
        let (wait_waker, change_waker, notice_waker) = (waker("wait"), waker("change"), waker("notice"));
        let cancel = CancellationToken::new();
        let mut changes = session.changes();
        let mut wait = Box::pin(session.wait(&id, BOUND, &cancel));
        let mut change = Box::pin(changes.changed());
        let mut notice = Box::pin(session.notice());
        // Asked for in the opposite order, which must not matter.
        assert!(
            notice
                .as_mut()
                .poll(&mut Context::from_waker(&notice_waker))
                .is_pending()
        );
        assert!(
            change
                .as_mut()
                .poll(&mut Context::from_waker(&change_waker))
                .is_pending()
        );
        if somebody_waits {
            assert!(
                wait.as_mut()
                    .poll(&mut Context::from_waker(&wait_waker))
                    .is_pending()
            );
        }
        strings.end(Ok(exited(0)));
        settled(&session, &id).await;
        drop(change);
        drop(wait);
        let names: Vec<_> = log.lock().unwrap().drain(..).collect();
        let completed = JobStatus::Completed;
        if somebody_waits {
            // The notice was held back for the wait, and came when that was dropped.
            assert_eq!(
                names,
                [("wait", completed), ("change", completed), ("notice", completed)]
            );
        } else {
            assert_eq!(names, [("change", completed), ("notice", completed)]);
        }
        assert_eq!(bounded(notice).await.unwrap().info.id, id);
    }
}

#[tokio::test]
async fn item_168_the_first_settlement_decides() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let puppet = strings.puppet.clone();
    let id = strings.start(&session);
    strings.end(Ok(exited(3)));
    let first = settled(&session, &id).await;
    puppet.end(Ok(killed()));
    session.kill(&id).unwrap();
    let later = session.info(&id).unwrap();
    assert_eq!(
        (later.status, &later.detail, later.ended),
        (first.status, &first.detail, first.ended)
    );
}

#[tokio::test]
async fn item_168_work_that_fails_settles_as_failed_with_its_whole_reason() {
    #[derive(Debug, thiserror::Error)]
    #[error("the stream broke")]
    struct Broken(#[source] std::fmt::Error);

    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    strings.end(Err(Box::new(Broken(std::fmt::Error))));
    let info = settled(&session, &id).await;
    assert_eq!(info.status, JobStatus::Failed);
    let reason = format!("the stream broke: {}", std::fmt::Error);
    assert_eq!(info.detail, Some(reason));
}

#[tokio::test]
async fn item_168_work_that_panics_settles_as_failed() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    strings.puppet.break_down();
    let info = wait(&session, &id).await;
    assert_eq!(info.status, JobStatus::Failed);
    assert!(info.detail.unwrap().contains("panicked"));
}

#[test]
fn item_168_a_job_whose_runtime_ends_settles_as_failed() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let id = runtime.block_on(async { strings.start(&session) });
    drop(runtime);
    assert_eq!(session.info(&id).unwrap().status, JobStatus::Failed);
}

#[tokio::test]
async fn item_168_a_job_settles_only_when_its_streams_have_ended() {
    let (_jobs, session) = session();
    let mut strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    strings.puppet.end(Ok(exited(0)));
    for _ in 0..10 {
        tokio::task::yield_now().await;
        assert_eq!(session.info(&id).unwrap().status, JobStatus::Running);
    }
    strings.stdout.push(b"the last words");
    drop((strings.stdout, strings.stderr));
    settled(&session, &id).await;
    let read = session.read(&id).unwrap();
    assert_eq!(
        (&read.streams[0].text[..], read.streams[0].sealed),
        ("the last words", true)
    );
}

#[tokio::test]
async fn item_168_the_work_is_let_go_when_it_has_settled() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let work = Arc::downgrade(&strings.puppet);
    let id = strings.start(&session);
    strings.end(Ok(exited(0)));
    wait(&session, &id).await;
    bounded(async {
        while work.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(session.read(&id).unwrap().streams[0].sealed);
}

#[tokio::test]
async fn item_168_everybody_who_sees_an_unowned_job_is_told_of_its_changes() {
    let (jobs, session) = session();
    let other = jobs.open("other").unwrap();
    let (mut here, mut there) = (session.changes(), other.changes());
    let strings = Strings::new(OnCancel::Linger);
    let id = jobs.start_unowned(bash("shared"), || ok(strings.work())).unwrap();
    for changes in [&mut here, &mut there] {
        bounded(changes.changed()).await.unwrap();
    }
    session.kill(&id).unwrap();
    bounded(there.changed()).await.unwrap();
    strings.end(Ok(killed()));
    settled(&other, &id).await;
    assert_no_notice(&session);
    assert_no_notice(&other);
}
