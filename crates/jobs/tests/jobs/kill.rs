//! Item 166: kills.

use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use dsh_jobs::{JobError, JobId, JobSession, JobStatus, Kill};
use tokio_util::sync::CancellationToken;

use crate::fixture::{
    BOUND, OnCancel, Strings, assert_no_notice, exited, killed, poll_once, session, settled,
};

#[tokio::test]
async fn item_166_a_kill_cancels_and_then_marks_stopping_and_reported() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    assert_eq!(session.kill(&id).unwrap(), Kill::Stopping);
    assert_eq!(strings.puppet.cancels(), 1);
    let info = session.info(&id).unwrap();
    assert_eq!(
        (info.status, info.reported, info.ended),
        (JobStatus::Stopping, true, None)
    );
    strings.end(Ok(killed()));
    let info = settled(&session, &id).await;
    assert_eq!(
        (info.status, info.detail.as_deref()),
        (JobStatus::Killed, Some("signal: SIGTERM"))
    );
    assert_no_notice(&session);
}

#[tokio::test]
async fn item_166_work_that_ends_well_after_a_kill_has_completed() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    session.kill(&id).unwrap();
    strings.end(Ok(exited(0)));
    assert_eq!(settled(&session, &id).await.status, JobStatus::Completed);
}

#[tokio::test]
async fn item_166_a_second_kill_cancels_again() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    session.kill(&id).unwrap();
    assert_eq!(session.kill(&id).unwrap(), Kill::Stopping);
    assert_eq!(strings.puppet.cancels(), 2);
}

#[tokio::test]
async fn item_166_a_finished_job_is_not_cancelled() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::End);
    let puppet = strings.puppet.clone();
    let id = strings.start(&session);
    strings.end(Ok(exited(0)));
    settled(&session, &id).await;
    assert_eq!(session.kill(&id).unwrap(), Kill::AlreadyFinished);
    assert_eq!(puppet.cancels(), 0);
    assert_eq!(session.info(&id).unwrap().status, JobStatus::Completed);
    assert!(
        poll_once(session.notice()).is_some(),
        "the owner has still to be told how it ended"
    );
}

#[tokio::test]
async fn item_166_a_cancel_that_fails_leaves_the_state() {
    let (_jobs, session) = session();
    for on_cancel in [OnCancel::Refuse, OnCancel::Panic] {
        let strings = Strings::new(on_cancel);
        let id = strings.start(&session);
        let before = session.info(&id).unwrap();
        let error = session.kill(&id).unwrap_err();
        assert!(matches!(&error, JobError::CancelFailed { id: named, .. } if *named == id));
        assert!(std::error::Error::source(&error).is_some());
        assert_eq!(session.info(&id).unwrap(), before);
        strings.end(Ok(exited(0)));
        settled(&session, &id).await;
        let notice = poll_once(session.notice()).flatten().unwrap();
        assert_eq!(notice.info.id, id, "nobody was told yet");
    }
}

/// Kills a job when it is woken: at once after its settlement.
struct Killer {
    session: JobSession,
    id: JobId,
    answer: Mutex<Option<Kill>>,
}

impl Wake for Killer {
    fn wake(self: Arc<Self>) {
        *self.answer.lock().unwrap() = self.session.kill(&self.id).ok();
    }
}

#[tokio::test]
async fn item_166_a_job_is_finished_from_the_moment_it_has_settled() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let puppet = Arc::clone(&strings.puppet);
    let id = strings.start(&session);
    let killer = Arc::new(Killer {
        session: session.clone(),
        id: id.clone(),
        answer: Mutex::new(None),
    });
    let cancel = CancellationToken::new();
    let mut wait = Box::pin(session.wait(&id, BOUND, &cancel));
    let waker = Waker::from(Arc::clone(&killer));
    assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    strings.end(Ok(exited(0)));
    settled(&session, &id).await;
    assert_eq!(*killer.answer.lock().unwrap(), Some(Kill::AlreadyFinished));
    assert_eq!(puppet.cancels(), 0);
}
