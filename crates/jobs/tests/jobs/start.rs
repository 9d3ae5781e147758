//! Item 163: what is refused, and that a refusal leaves nothing.

use std::cell::Cell;

use dsh_jobs::{ForeignError, JobError, JobId, JobStatus, Jobs, Limits, NewJob};

use crate::fixture::{OnCancel, Strings, bash, exited, ok, registry, session, settled, wait};

#[tokio::test]
async fn item_163_ids_count_up_from_one_within_their_kind() {
    let (_jobs, session) = session();
    let strings: Vec<_> = (0..4).map(|_| Strings::new(OnCancel::End)).collect();
    let kinds = ["bash", "bash", "fetch", "bash"];
    let ids: Vec<_> = strings
        .iter()
        .zip(kinds)
        .map(|(strings, kind)| {
            session
                .start(NewJob::new(kind, "label"), || ok(strings.work()))
                .unwrap()
        })
        .collect();
    let names: Vec<_> = ids.iter().map(JobId::as_str).collect();
    assert_eq!(names, ["bash-1", "bash-2", "fetch-1", "bash-3"]);
}

#[tokio::test]
async fn item_163_ids_are_never_given_twice_in_one_registry() {
    let jobs = registry();
    let first = jobs.open("first").unwrap();
    let strings = Strings::new(OnCancel::End);
    let id = strings.start(&first);
    strings.end(Ok(exited(0)));
    wait(&first, &id).await;
    first.end().await.unwrap();
    let again = jobs.open("first").unwrap();
    assert_eq!(Strings::new(OnCancel::End).start(&again).as_str(), "bash-2");
}

#[tokio::test]
async fn item_163_an_unowned_start_needs_an_open_session() {
    let jobs = registry();
    let strings = Strings::new(OnCancel::End);
    let start = || jobs.start_unowned(bash("shared"), || ok(strings.work()));
    assert!(matches!(start(), Err(JobError::NoController)));
    let session = jobs.open("owner").unwrap();
    assert_eq!(start().unwrap().as_str(), "bash-1");
    session.end().await.unwrap();
    assert!(matches!(start(), Err(JobError::NoController)));
}

#[tokio::test]
async fn item_163_blank_kinds_and_labels_and_a_zero_limit_are_refused_before_the_work_starts() {
    let (_jobs, session) = session();
    let started = Cell::new(false);
    let refused = |job: NewJob| {
        session
            .start(job, || {
                started.set(true);
                Err::<_, ForeignError>("not reached".into())
            })
            .unwrap_err()
    };
    assert!(matches!(refused(NewJob::new("", "label")), JobError::EmptyKind));
    assert!(matches!(refused(NewJob::new(" ", "label")), JobError::EmptyKind));
    assert!(matches!(refused(NewJob::new("bash", "")), JobError::EmptyLabel));
    assert!(matches!(refused(NewJob::new("bash", "\n")), JobError::EmptyLabel));
    let unreadable = NewJob {
        max_read_bytes: Some(0),
        ..bash("label")
    };
    let error = refused(unreadable);
    assert_eq!(error.to_string(), "`max_read_bytes` is 0, and must be 1 or more");
    assert!(!started.get());
    assert!(session.list().is_empty());
}

#[test]
fn item_163_limits_of_zero_are_refused() {
    for (limits, name) in [
        (
            Limits {
                live_per_owner: 0,
                ..Limits::default()
            },
            "live_per_owner",
        ),
        (
            Limits {
                settled_per_owner: 0,
                ..Limits::default()
            },
            "settled_per_owner",
        ),
    ] {
        let error = Jobs::new(limits).unwrap_err();
        assert!(matches!(error, JobError::BadLimit { name: named } if named == name));
    }
}

#[tokio::test]
async fn item_163_an_owner_has_at_most_ten_live_jobs_running_and_stopping() {
    let jobs = registry();
    let session = jobs.open("owner").unwrap();
    let mut strings: Vec<_> = (0..10).map(|_| Strings::new(OnCancel::Linger)).collect();
    let ids: Vec<_> = strings.iter().map(|strings| strings.start(&session)).collect();
    session.kill(&ids[0]).unwrap();
    assert_eq!(session.info(&ids[0]).unwrap().status, JobStatus::Stopping);

    let another = Strings::new(OnCancel::End);
    let error = session
        .start(bash("one too many"), || ok(another.work()))
        .unwrap_err();
    assert!(matches!(error, JobError::TooManyJobs { limit: 10 }));
    assert_eq!(session.list().len(), 10);

    // Other owners have their own count, and so have the unowned ones.
    let other = jobs.open("other").unwrap();
    Strings::new(OnCancel::End).start(&other);
    let unowned = Strings::new(OnCancel::End);
    jobs.start_unowned(bash("shared"), || ok(unowned.work())).unwrap();

    strings.remove(0).end(Ok(exited(0)));
    settled(&session, &ids[0]).await;
    another.start(&session);
    for strings in strings {
        strings.end(Ok(exited(0)));
    }
}

#[tokio::test]
async fn item_163_a_start_that_is_under_way_counts_as_live() {
    let jobs = Jobs::new(Limits {
        live_per_owner: 1,
        ..Limits::default()
    })
    .unwrap();
    let session = jobs.open("owner").unwrap();
    let strings = Strings::new(OnCancel::End);
    session
        .start(bash("outer"), || {
            let inner = session.start(bash("inner"), || ok(strings.work()));
            assert!(matches!(inner, Err(JobError::TooManyJobs { limit: 1 })));
            ok(strings.work())
        })
        .unwrap();
}

#[tokio::test]
async fn item_163_a_failed_start_leaves_nothing_and_keeps_its_cause() {
    let jobs = Jobs::new(Limits {
        live_per_owner: 1,
        ..Limits::default()
    })
    .unwrap();
    let session = jobs.open("owner").unwrap();
    for _ in 0..3 {
        let error = session
            .start(bash("frobnicate"), || {
                Err::<_, ForeignError>("no such program".into())
            })
            .unwrap_err();
        assert_eq!(error.to_string(), "could not start `frobnicate`");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, "no such program");
    }
    assert!(session.list().is_empty());
    assert_eq!(Strings::new(OnCancel::End).start(&session).as_str(), "bash-1");
}

#[tokio::test]
async fn item_163_a_start_that_panics_leaves_nothing() {
    let jobs = Jobs::new(Limits {
        live_per_owner: 1,
        ..Limits::default()
    })
    .unwrap();
    let session = jobs.open("owner").unwrap();
    let in_task = session.clone();
    let task = tokio::spawn(async move {
        let start = || -> Result<_, ForeignError> { panic!("a start that panics") };
        in_task.start(bash("panics"), start)
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(Strings::new(OnCancel::End).start(&session).as_str(), "bash-1");
    session.end().await.unwrap();
}

#[tokio::test]
async fn item_163_an_owner_that_has_ended_starts_nothing() {
    let (jobs, session) = session();
    session.end().await.unwrap();
    let strings = Strings::new(OnCancel::End);
    let late = session.start(bash("late"), || ok(strings.work()));
    assert!(matches!(late, Err(JobError::OwnerEnded(owner)) if owner.as_str() == "owner"));
    jobs.dispose().await.unwrap();
    let late = session.start(bash("late"), || ok(strings.work()));
    assert!(matches!(late, Err(JobError::Disposed)));
    assert!(matches!(jobs.open("another"), Err(JobError::Disposed)));
}

#[tokio::test]
async fn item_163_one_owner_has_one_open_session() {
    let (jobs, session) = session();
    assert!(matches!(jobs.open("owner"), Err(JobError::OwnerTaken(_))));
    assert!(matches!(jobs.open(""), Err(JobError::EmptyOwner)));
    let clone = session.clone();
    drop(session);
    assert!(
        matches!(jobs.open("owner"), Err(JobError::OwnerTaken(_))),
        "a clone is the same session"
    );
    drop(clone);
    jobs.open("owner").unwrap();
}

#[test]
fn item_163_a_start_without_a_tokio_runtime_is_refused() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::End);
    let error = session
        .start(bash("a command"), || ok(strings.work()))
        .unwrap_err();
    assert!(matches!(error, JobError::NoRuntime));
    assert!(session.list().is_empty());
}
