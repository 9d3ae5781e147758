//! O18, and what else must hold while everything happens at once.

use std::sync::Arc;

use dsh_jobs::{JobSession, JobStatus, Jobs, Limits, NewJob};
use dsh_subprocess::StreamName;
use proptest::prelude::*;
use tokio::task::JoinSet;

use crate::fixture::{OnCancel, Strings, bash, bounded, exited, ok, poll_once, settled, wait};

/// Prints like `seq 1 2000; echo LAST`, a few lines at a time, and ends at once after it.
async fn print(mut strings: Strings, pace: usize) -> String {
    let mut whole = String::new();
    for number in 1..=2000 {
        let line = format!("{number}\n");
        strings.stdout.push(line.as_bytes());
        whole.push_str(&line);
        if number % pace == 0 {
            tokio::task::yield_now().await;
        }
    }
    strings.stdout.push(b"LAST\n");
    whole.push_str("LAST\n");
    strings.end(Ok(exited(0)));
    whole
}

/// Follows a job by its offset, and stops with the read that saw it settled.
async fn follow_by_offset(session: JobSession, id: dsh_jobs::JobId) -> String {
    let (mut text, mut offset) = (String::new(), 0);
    loop {
        let read = session.read_from(&id, &[(StreamName::Stdout, offset)]).unwrap();
        let delta = &read.streams[0];
        assert_eq!((delta.offset, delta.gap), (offset, 0));
        assert!(delta.next_offset >= offset);
        text.push_str(&delta.text);
        offset = delta.next_offset;
        if read.info.status.is_settled() {
            return text;
        }
        tokio::task::yield_now().await;
    }
}

/// Follows a job by consuming reads, and stops in the same way.
async fn follow_by_reading(session: JobSession, id: dsh_jobs::JobId) -> String {
    let mut text = String::new();
    loop {
        let read = session.read(&id).unwrap();
        text.push_str(&read.streams[0].text);
        if read.info.status.is_settled() {
            return text;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn o18_no_line_is_lost_between_the_last_read_and_the_exit() {
    let jobs = Jobs::new(Limits {
        live_per_owner: 16,
        ..Limits::default()
    })
    .unwrap();
    let mut followed = 0;
    for round in 0..13 {
        let session = jobs.open(format!("owner {round}")).unwrap();
        let mut tasks = JoinSet::new();
        for number in 0..16 {
            let strings = Strings::new(OnCancel::Linger);
            let id = strings.start(&session);
            let printed = tokio::spawn(print(strings, 1 + (number * 7 + round) % 50));
            let by_offset = tokio::spawn(follow_by_offset(session.clone(), id.clone()));
            let by_reading = tokio::spawn(follow_by_reading(session.clone(), id));
            tasks.spawn(async move {
                (
                    printed.await.unwrap(),
                    by_offset.await.unwrap(),
                    by_reading.await.unwrap(),
                )
            });
        }
        while let Some(joined) = bounded(tasks.join_next()).await {
            let (printed, by_offset, by_reading) = joined.unwrap();
            assert_eq!(by_offset, printed);
            assert_eq!(by_reading, printed);
            followed += 1;
        }
        session.end().await.unwrap();
    }
    assert_eq!(followed, 208);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_end_is_told_once_by_a_wait_or_by_a_notice() {
    let jobs = Jobs::new(Limits {
        live_per_owner: 200,
        settled_per_owner: 200,
        ..Limits::default()
    })
    .unwrap();
    let session = jobs.open("owner").unwrap();
    session.set_busy(true);
    let mut waits = JoinSet::new();
    let mut all = Vec::new();
    for number in 0..200 {
        let strings = Strings::new(OnCancel::Linger);
        let id = strings.start(&session);
        all.push(id.clone());
        tokio::spawn(async move { strings.end(Ok(exited(0))) });
        if number % 2 == 0 {
            let session = session.clone();
            waits.spawn(async move {
                let told = wait(&session, &id).await;
                assert_eq!(told.status, JobStatus::Completed);
                id
            });
        }
    }
    for id in &all {
        settled(&session, id).await;
    }
    let mut waited = Vec::new();
    while let Some(id) = bounded(waits.join_next()).await {
        waited.push(id.unwrap());
    }
    let noticed: Vec<_> = std::iter::from_fn(|| poll_once(session.notice()).flatten())
        .map(|notice| notice.info.id)
        .collect();
    assert_eq!(waited.len(), 100);
    for (position, id) in all.iter().enumerate() {
        let times = noticed.iter().filter(|noticed| *noticed == id).count();
        // One that nobody waited for has a notice. One that somebody waited for has none, unless it had settled before
        // that wait began and the notice was out by then; here notices are only taken after all waits.
        assert_eq!(times, position % 2, "{id}");
        assert!(session.info(id).unwrap().reported);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_that_start_kill_and_end_at_once_leave_nothing_live() {
    let jobs = Jobs::new(Limits::default()).unwrap();
    let mut owners = JoinSet::new();
    for owner in 0..32 {
        let jobs = jobs.clone();
        owners.spawn(async move {
            let session = jobs.open(format!("owner {owner}")).unwrap();
            let mut starting = JoinSet::new();
            for number in 0..8 {
                let strings = Strings::new(OnCancel::End);
                let session = session.clone();
                starting.spawn(async move {
                    let started = session.start(bash("a command"), || ok(strings.work()));
                    if let (Ok(id), true) = (&started, number % 3 == 0) {
                        session.kill(id).ok();
                    }
                    let (started, puppet) = (started.is_ok(), Arc::clone(&strings.puppet));
                    // The streams end now, so that the job may.
                    drop(strings);
                    (started, puppet)
                });
            }
            bounded(session.end()).await.unwrap();
            while let Some(started) = bounded(starting.join_next()).await {
                let (started, puppet) = started.unwrap();
                assert!(!started || puppet.cancels() >= 1);
            }
            assert!(session.list().is_empty());
        });
    }
    while let Some(owner) = bounded(owners.join_next()).await {
        owner.unwrap();
    }
    bounded(jobs.dispose()).await.unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Push(Vec<u8>),
    Read,
    ReadByOffset,
    Yield,
    Seal,
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..8).prop_map(Step::Push),
        2 => Just(Step::Push("é→🦀".as_bytes()[..5].to_vec())),
        2 => Just(Step::Push("é→🦀".as_bytes()[5..].to_vec())),
        3 => Just(Step::Read),
        2 => Just(Step::ReadByOffset),
        2 => Just(Step::Yield),
        1 => Just(Step::Seal),
        1 => Just(Step::Settle),
    ]
}

async fn reads_are_the_stream(steps: Vec<Step>, max_read_bytes: Option<usize>) {
    let jobs = Jobs::new(Limits::default()).unwrap();
    let session = jobs.open("owner").unwrap();
    let Strings {
        puppet,
        stdout,
        stderr,
    } = Strings::new(OnCancel::Linger);
    let job = NewJob {
        max_read_bytes,
        ..bash("a command")
    };
    let id = session.start(job, || ok(Arc::clone(&puppet) as _)).unwrap();
    drop(stderr);
    let mut stdout = Some(stdout);
    let mut pushed = Vec::new();
    let (mut consumed, mut by_offset, mut offset) = (String::new(), String::new(), 0);
    let mut read = |both: bool| {
        let mut settled = true;
        if both {
            let read = session.read(&id).unwrap();
            consumed.push_str(&read.streams[0].text);
            settled = read.info.status.is_settled() && read.streams[0].next_offset == read.streams[0].total;
        }
        let read = session.read_from(&id, &[(StreamName::Stdout, offset)]).unwrap();
        let delta = &read.streams[0];
        by_offset.push_str(&delta.text);
        offset = delta.next_offset;
        if read.info.status.is_settled() {
            assert!(delta.sealed, "nothing is added to the streams of a settled job");
        }
        settled && read.info.status.is_settled() && delta.next_offset == delta.total
    };
    for step in steps {
        match step {
            Step::Push(bytes) => {
                if let Some(stdout) = &mut stdout {
                    stdout.push(&bytes);
                    pushed.extend_from_slice(&bytes);
                }
            }
            Step::Read => {
                read(true);
            }
            Step::ReadByOffset => {
                read(false);
            }
            Step::Yield => tokio::task::yield_now().await,
            Step::Seal => stdout = None,
            Step::Settle => puppet.end(Ok(exited(0))),
        }
    }
    drop(stdout);
    puppet.end(Ok(exited(0)));
    settled(&session, &id).await;
    while !read(true) {}
    let whole = String::from_utf8_lossy(&pushed);
    assert_eq!(consumed, whole);
    assert_eq!(by_offset, whole);
}

proptest! {
    #[test]
    fn o18_reads_are_the_stream_however_pushes_reads_and_the_end_interleave(
        steps in prop::collection::vec(step(), 0..60),
        max_read_bytes in prop::option::of(1..16_usize),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(reads_are_the_stream(steps, max_read_bytes));
    }
}
