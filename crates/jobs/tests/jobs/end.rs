//! Item 169: the end of an owner, and of the registry.

use dsh_jobs::{JobError, JobStatus, Kill};
use dsh_subprocess::StreamName;

use crate::fixture::{
    OnCancel, Strings, bash, bounded, exited, killed, ok, poll_once, registry, session, settled, wait,
};

#[tokio::test]
async fn item_169_the_end_of_an_owner_cancels_its_jobs_and_waits_for_them() {
    let (jobs, session) = session();
    let other = jobs.open("other").unwrap();
    let strings: Vec<_> = (0..3).map(|_| Strings::new(OnCancel::Linger)).collect();
    for strings in &strings[..2] {
        strings.start(&session);
    }
    let spared = strings[2].start(&other);
    let mut end = Box::pin(session.end());
    assert!(poll_once(end.as_mut()).is_none());
    let cancels: Vec<_> = strings.iter().map(|strings| strings.puppet.cancels()).collect();
    assert_eq!(cancels, [1, 1, 0]);
    let mut strings = strings.into_iter();
    strings.next().unwrap().end(Ok(killed()));
    tokio::task::yield_now().await;
    assert!(poll_once(end.as_mut()).is_none(), "one is still live");
    strings.next().unwrap().end(Ok(killed()));
    bounded(end).await.unwrap();
    assert_eq!(other.info(&spared).unwrap().status, JobStatus::Running);
}

#[tokio::test]
async fn item_169_an_end_reports_the_jobs_and_ends_the_notices() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = strings.start(&session);
    strings.end(Ok(exited(0)));
    settled(&session, &id).await;
    bounded(session.end()).await.unwrap();
    assert_eq!(bounded(session.notice()).await, None);
    assert!(session.list().is_empty());
    assert!(matches!(session.info(&id), Err(JobError::OwnerEnded(_))));
}

#[tokio::test]
async fn item_169_a_notice_that_is_awaited_ends_with_the_session() {
    let (_jobs, session) = session();
    let notice = tokio::spawn({
        let session = session.clone();
        async move { session.notice().await }
    });
    tokio::task::yield_now().await;
    session.end().await.unwrap();
    assert_eq!(bounded(notice).await.unwrap(), None);
}

#[tokio::test]
async fn item_169_a_stopping_job_is_awaited_and_not_cancelled_again() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let puppet = strings.puppet.clone();
    let id = strings.start(&session);
    session.kill(&id).unwrap();
    let mut end = Box::pin(session.end());
    assert!(poll_once(end.as_mut()).is_none());
    strings.end(Ok(killed()));
    bounded(end).await.unwrap();
    assert_eq!(puppet.cancels(), 1);
}

#[tokio::test]
async fn item_169_a_cancel_that_fails_at_the_end_leaves_a_failed_job_that_may_be_orphaned() {
    for (on_cancel, reason) in [
        (OnCancel::Refuse, "the world is gone"),
        (OnCancel::Panic, "its cancellation panicked"),
    ] {
        let (_jobs, session) = session();
        let (stuck, willing) = (Strings::new(on_cancel), Strings::new(OnCancel::End));
        let id = stuck.start(&session);
        willing.start(&session);
        drop((willing.stdout, willing.stderr));
        let waiting = tokio::spawn({
            let (session, id) = (session.clone(), id.clone());
            async move { wait(&session, &id).await }
        });
        tokio::task::yield_now().await;

        let error = bounded(session.end()).await.unwrap_err();
        let expected = format!("some work could not be cancelled and may be orphaned: {id} ({reason})");
        assert_eq!(error.to_string(), expected);
        assert_eq!(willing.puppet.cancels(), 1, "one that fails spares no other");
        let info = bounded(waiting).await.unwrap();
        assert_eq!(info.status, JobStatus::Failed);
        assert!(info.detail.unwrap().ends_with("may be orphaned"));
        bounded(stuck.puppet.abandoned()).await;
        // Every end says the same.
        assert!(matches!(session.end().await, Err(JobError::Orphaned(_))));
    }
}

#[tokio::test]
async fn item_169_an_end_that_is_not_awaited_goes_on() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    strings.start(&session);
    assert!(poll_once(session.end()).is_none());
    assert_eq!(strings.puppet.cancels(), 1);
    assert!(matches!(
        session.start(bash("late"), || ok(strings.work())),
        Err(JobError::OwnerEnded(_))
    ));
    strings.end(Ok(killed()));
    bounded(session.end()).await.unwrap();
}

#[tokio::test]
async fn item_169_dropping_the_last_clone_begins_the_end() {
    let (jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    strings.start(&session);
    let clone = session.clone();
    drop(session);
    assert_eq!(strings.puppet.cancels(), 0);
    drop(clone);
    assert_eq!(strings.puppet.cancels(), 1);
    // It is still the registry's to wait for.
    let mut disposal = Box::pin(jobs.dispose());
    assert!(poll_once(disposal.as_mut()).is_none());
    strings.end(Ok(killed()));
    bounded(disposal).await.unwrap();
}

#[tokio::test]
async fn item_169_a_job_that_starts_while_its_owner_ends_is_cancelled_and_awaited() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let mut end = Box::pin(session.end());
    let refused = session.start(bash("a command"), || {
        assert!(
            poll_once(end.as_mut()).is_none(),
            "the end waits for what is starting"
        );
        ok(strings.work())
    });
    assert!(matches!(refused, Err(JobError::OwnerEnded(_))));
    assert_eq!(strings.puppet.cancels(), 1);
    assert!(poll_once(end.as_mut()).is_none());
    strings.end(Ok(killed()));
    bounded(end).await.unwrap();
}

#[tokio::test]
async fn item_169_an_end_waits_for_a_start_that_then_fails() {
    let (_jobs, session) = session();
    let mut end = Box::pin(session.end());
    let failed = session.start(bash("a command"), || {
        assert!(poll_once(end.as_mut()).is_none());
        Err("no such program")
    });
    assert!(matches!(failed, Err(JobError::StartFailed { .. })));
    bounded(end).await.unwrap();
}

#[tokio::test]
async fn item_169_unowned_jobs_outlive_the_sessions_and_end_with_the_registry() {
    let (jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = jobs.start_unowned(bash("shared"), || ok(strings.work())).unwrap();
    session.end().await.unwrap();
    let later = jobs.open("later").unwrap();
    assert_eq!(later.info(&id).unwrap().status, JobStatus::Running);
    assert_eq!(later.reader(&id, StreamName::Stdout).unwrap().total(), 0);

    let mut disposal = Box::pin(jobs.dispose());
    assert!(poll_once(disposal.as_mut()).is_none());
    assert_eq!(strings.puppet.cancels(), 1);
    assert!(matches!(later.kill(&id), Err(JobError::Disposed)));
    strings.end(Ok(killed()));
    bounded(disposal).await.unwrap();
    bounded(jobs.dispose()).await.unwrap();
}

#[tokio::test]
async fn item_169_the_disposal_names_the_orphans_of_all_owners() {
    let jobs = registry();
    let sessions = ["first", "second"].map(|owner| jobs.open(owner).unwrap());
    let strings = sessions.each_ref().map(|session| {
        let strings = Strings::new(OnCancel::Refuse);
        strings.start(session);
        strings
    });
    let Err(JobError::Orphaned(orphans)) = bounded(jobs.dispose()).await else {
        panic!("both refused");
    };
    let names: Vec<_> = orphans.iter().map(|orphan| orphan.id.as_str()).collect();
    assert_eq!(names, ["bash-1", "bash-2"]);
    // The works may still end, and nobody listens.
    for strings in strings {
        strings.end(Ok(killed()));
    }
}

#[tokio::test]
async fn item_169_dropping_the_registry_and_its_sessions_cancels_the_unowned_jobs() {
    let (jobs, session) = session();
    let strings = Strings::new(OnCancel::Linger);
    let id = jobs.start_unowned(bash("shared"), || ok(strings.work())).unwrap();
    drop(jobs);
    assert_eq!(strings.puppet.cancels(), 0, "the session can still reach it");
    assert_eq!(session.info(&id).unwrap().status, JobStatus::Running);
    drop(session);
    assert_eq!(strings.puppet.cancels(), 1);
}

#[tokio::test]
async fn item_169_a_kill_just_before_the_end_is_all_the_same() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::End);
    let id = strings.start(&session);
    drop((strings.stdout, strings.stderr));
    assert_eq!(session.kill(&id).unwrap(), Kill::Stopping);
    bounded(session.end()).await.unwrap();
}
