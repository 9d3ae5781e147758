//! Item 170: notices.

use dsh_jobs::{Delivery, JobId, JobSession, JobStatus, Jobs, Limits};

use crate::fixture::{OnCancel, Strings, assert_no_notice, bounded, exited, poll_once, session, settled};

/// Runs a job to its end, without anybody who waits for it.
async fn run(session: &JobSession, code: u32) -> JobId {
    let strings = Strings::new(OnCancel::End);
    let id = strings.start(session);
    strings.end(Ok(exited(code)));
    settled(session, &id).await;
    id
}

async fn delivery(session: &JobSession) -> Delivery {
    let id = run(session, 0).await;
    let notice = bounded(session.notice()).await.unwrap();
    assert_eq!(notice.info.id, id);
    notice.delivery
}

#[tokio::test]
async fn item_170_the_end_of_an_unreported_job_is_announced_once_with_its_facts() {
    let (_jobs, session) = session();
    let id = run(&session, 3).await;
    let notice = bounded(session.notice()).await.unwrap();
    assert_eq!(notice.info.id, id);
    // A command that exited with another code than 0 has completed.
    assert_eq!(notice.info.status, JobStatus::Completed);
    assert_eq!(notice.info.detail.as_deref(), Some("exit code: 3"));
    assert!(notice.info.reported);
    assert_no_notice(&session);
}

#[tokio::test]
async fn item_170_what_was_reported_meanwhile_is_not_announced() {
    let (_jobs, session) = session();
    let (read, left) = (run(&session, 0).await, run(&session, 0).await);
    session.read(&read).unwrap();
    assert_eq!(bounded(session.notice()).await.unwrap().info.id, left);
    assert_no_notice(&session);
}

#[tokio::test]
async fn item_170_notices_come_in_the_order_of_the_settlements() {
    let (_jobs, session) = session();
    let (first, second) = (Strings::new(OnCancel::End), Strings::new(OnCancel::End));
    let (started_first, settled_first) = (first.start(&session), second.start(&session));
    second.end(Ok(exited(0)));
    settled(&session, &settled_first).await;
    first.end(Ok(exited(0)));
    settled(&session, &started_first).await;
    for id in [settled_first, started_first] {
        assert_eq!(bounded(session.notice()).await.unwrap().info.id, id);
    }
}

#[tokio::test]
async fn item_170_each_notice_goes_to_one_of_those_who_wait() {
    let (_jobs, session) = session();
    let listening: Vec<_> = (0..2)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.notice().await.unwrap().info.id })
        })
        .collect();
    tokio::task::yield_now().await;
    let mut expected = vec![run(&session, 0).await, run(&session, 0).await];
    let mut heard = Vec::new();
    for listening in listening {
        heard.push(bounded(listening).await.unwrap());
    }
    heard.sort();
    expected.sort();
    assert_eq!(heard, expected);
}

#[tokio::test]
async fn item_170_a_notice_that_was_not_awaited_to_its_end_is_not_lost() {
    let (_jobs, session) = session();
    let mut abandoned = Box::pin(session.notice());
    assert!(poll_once(abandoned.as_mut()).is_none());
    let id = run(&session, 0).await;
    drop(abandoned);
    assert_eq!(bounded(session.notice()).await.unwrap().info.id, id);
}

#[tokio::test]
async fn item_170_a_busy_owner_gets_its_notices_injected() {
    let (_jobs, session) = session();
    session.set_busy(true);
    for _ in 0..5 {
        assert_eq!(delivery(&session).await, Delivery::Inject);
    }
}

#[tokio::test]
async fn item_170_an_idle_owner_is_woken_three_times_until_its_user_says_something() {
    let (_jobs, session) = session();
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!(delivery(&session).await, Delivery::Wake);
        }
        assert_eq!(delivery(&session).await, Delivery::Quiet);
        // To have been busy in between is no word of the user's.
        session.set_busy(true);
        assert_eq!(delivery(&session).await, Delivery::Inject);
        session.set_busy(false);
        assert_eq!(delivery(&session).await, Delivery::Quiet);
        session.user_input();
    }
}

#[tokio::test]
async fn item_170_the_delivery_is_decided_when_the_notice_is_handed_out() {
    let (_jobs, session) = session();
    run(&session, 0).await;
    session.set_busy(true);
    assert_eq!(
        bounded(session.notice()).await.unwrap().delivery,
        Delivery::Inject
    );
}

#[tokio::test]
async fn item_170_a_quiet_notice_leaves_the_job_unreported_and_is_not_repeated() {
    let jobs = Jobs::new(Limits {
        wakes_per_input: 0,
        ..Limits::default()
    })
    .unwrap();
    let session = jobs.open("owner").unwrap();
    let id = run(&session, 0).await;
    let notice = bounded(session.notice()).await.unwrap();
    assert_eq!((notice.delivery, notice.info.reported), (Delivery::Quiet, false));
    assert!(!session.info(&id).unwrap().reported);
    assert_no_notice(&session);
}
