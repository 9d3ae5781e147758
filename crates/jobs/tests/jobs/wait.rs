//! Item 167: waits.

use std::time::Duration;

use dsh_jobs::{JobError, JobStatus};
use tokio_util::sync::CancellationToken;

use crate::fixture::{
    BOUND, OnCancel, Strings, assert_no_notice, bounded, exited, poll_once, session, settled, wait,
};

#[tokio::test]
async fn item_167_a_timeout_of_zero_is_refused() {
    let (_jobs, session) = session();
    let id = Strings::new(OnCancel::End).start(&session);
    let wait = session.wait(&id, Duration::ZERO, &CancellationToken::new()).await;
    assert!(matches!(wait, Err(JobError::BadTimeout)));
}

#[tokio::test(start_paused = true)]
async fn item_167_a_timeout_returns_the_live_job() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    let info = session
        .wait(&id, Duration::from_secs(5), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (info.status, info.reported, info.ended),
        (JobStatus::Running, false, None)
    );
    // That wait is over and holds nothing back.
    strings.end(Ok(exited(0)));
    settled(&session, &id).await;
    assert!(poll_once(session.notice()).is_some());
}

#[tokio::test]
async fn item_167_the_longest_timeout_is_a_timeout() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    let waiting = tokio::spawn({
        let (session, id) = (session.clone(), id.clone());
        async move { session.wait(&id, Duration::MAX, &CancellationToken::new()).await }
    });
    strings.end(Ok(exited(0)));
    let info = bounded(waiting).await.unwrap().unwrap();
    assert_eq!(info.status, JobStatus::Completed);
}

#[tokio::test]
async fn item_167_a_cancelled_wait_is_an_error_only_while_the_job_is_live() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let wait = session.wait(&id, BOUND, &cancelled).await;
    assert!(matches!(wait, Err(JobError::Cancelled(named)) if named == id));
    strings.end(Ok(exited(3)));
    settled(&session, &id).await;
    let info = session.wait(&id, BOUND, &cancelled).await.unwrap();
    assert_eq!(info.detail.as_deref(), Some("exit code: 3"));
}

#[tokio::test]
async fn item_167_a_settlement_that_somebody_waits_for_has_no_notice() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    let cancel = CancellationToken::new();
    let mut waiting = Box::pin(session.wait(&id, BOUND, &cancel));
    assert!(poll_once(waiting.as_mut()).is_none());
    strings.end(Ok(exited(0)));
    settled(&session, &id).await;
    assert_no_notice(&session);
    assert!(bounded(waiting).await.unwrap().reported);
    assert_no_notice(&session);
}

#[tokio::test]
async fn item_167_a_wait_that_is_dropped_before_it_answered_gives_the_notice_back() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    let cancel = CancellationToken::new();
    let mut waiting = Box::pin(session.wait(&id, BOUND, &cancel));
    assert!(poll_once(waiting.as_mut()).is_none());
    let notice = tokio::spawn({
        let session = session.clone();
        async move { session.notice().await }
    });
    strings.end(Ok(exited(0)));
    settled(&session, &id).await;
    drop(waiting);
    assert_eq!(bounded(notice).await.unwrap().unwrap().info.id, id);
}

#[tokio::test]
async fn item_167_all_who_wait_are_answered() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let (session, id) = (session.clone(), id.clone());
            tokio::spawn(async move { wait(&session, &id).await })
        })
        .collect();
    tokio::task::yield_now().await;
    strings.end(Ok(exited(0)));
    for waiting in waiting {
        assert_eq!(bounded(waiting).await.unwrap().status, JobStatus::Completed);
    }
}

#[tokio::test]
async fn item_167_a_wait_under_way_is_answered_although_the_session_ends() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::End);
    let id = strings.start(&session);
    let cancel = CancellationToken::new();
    let mut waiting = Box::pin(session.wait(&id, BOUND, &cancel));
    assert!(poll_once(waiting.as_mut()).is_none());
    drop((strings.stdout, strings.stderr));
    bounded(session.end()).await.unwrap();
    let info = bounded(waiting).await.unwrap();
    assert_eq!((info.status, info.reported), (JobStatus::Killed, true));
}
