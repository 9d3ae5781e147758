//! Item 165: reads of streams and of final outputs.

use dsh_jobs::{JobError, JobStatus, Jobs, Limits, NewJob, Settled, Settlement};
use dsh_subprocess::StreamName::{Stderr, Stdout, Terminal};

use crate::fixture::{
    OnCancel, Puppet, Strings, assert_no_notice, bash, exited, is_unknown, ok, poll_once, session, settled,
};

#[tokio::test]
async fn item_165_a_read_gives_what_is_new_of_each_stream() {
    let (_jobs, session) = session();
    let mut strings = Strings::new(OnCancel::End);
    let id = strings.start(&session);
    strings.stdout.push(b"one ");
    strings.stderr.push(b"warning");
    let read = session.read(&id).unwrap();
    assert_eq!(read.info.status, JobStatus::Running);
    assert_eq!(
        (read.streams[0].stream, &read.streams[0].text[..]),
        (Stdout, "one ")
    );
    assert_eq!(
        (read.streams[1].stream, &read.streams[1].text[..]),
        (Stderr, "warning")
    );
    strings.stdout.push(b"two");
    let read = session.read(&id).unwrap();
    assert_eq!((&read.streams[0].text[..], read.streams[0].offset), ("two", 4));
    assert_eq!((&read.streams[1].text[..], read.streams[1].offset), ("", 7));
    assert_eq!(read.output, None);
}

#[tokio::test]
async fn item_165_a_read_holds_back_half_a_character() {
    let (_jobs, session) = session();
    let mut strings = Strings::new(OnCancel::End);
    let id = strings.start(&session);
    strings.stdout.push(b"caf\xc3");
    let read = session.read(&id).unwrap();
    assert_eq!(
        (
            &read.streams[0].text[..],
            read.streams[0].next_offset,
            read.streams[0].total
        ),
        ("caf", 3, 4)
    );
    strings.stdout.push(b"\xa9");
    assert_eq!(session.read(&id).unwrap().streams[0].text, "é");
}

#[tokio::test]
async fn item_165_a_read_says_how_much_left_memory_before_it() {
    let (_jobs, session) = session();
    let mut strings = Strings::with_window(OnCancel::End, 4);
    let id = strings.start(&session);
    strings.stdout.push(b"0123456789");
    let delta = &session.read(&id).unwrap().streams[0];
    assert_eq!(
        (&delta.text[..], delta.gap, delta.offset, delta.next_offset),
        ("6789", 6, 6, 10)
    );
}

#[tokio::test]
async fn item_165_bounded_reads_leave_the_rest_for_the_next() {
    let (_jobs, session) = session();
    let mut strings = Strings::new(OnCancel::End);
    let job = NewJob {
        max_read_bytes: Some(5),
        ..bash("a command")
    };
    let id = session.start(job, || ok(strings.work())).unwrap();
    strings.stdout.push(b"0123456789");
    strings.stderr.push(b"abcdefg");
    strings.end(Ok(exited(0)));
    settled(&session, &id).await;
    let first = session.read(&id).unwrap();
    assert_eq!(
        (&first.streams[0].text[..], &first.streams[1].text[..]),
        ("01234", "abcde")
    );
    assert!(first.streams[0].next_offset < first.streams[0].total);
    let second = session.read(&id).unwrap();
    assert_eq!(
        (&second.streams[0].text[..], &second.streams[1].text[..]),
        ("56789", "fg")
    );
    let by_offset = session.read_from(&id, &[(Stdout, 3)]).unwrap();
    assert_eq!(by_offset.streams[0].text, "34567");
}

#[tokio::test]
async fn item_165_a_final_output_is_given_by_every_read() {
    let (_jobs, session) = session();
    let puppet = Puppet::on_streams(OnCancel::End, Vec::new());
    let id = session
        .start(NewJob::new("fetch", "a page"), || ok(puppet.clone()))
        .unwrap();
    let read = session.read(&id).unwrap();
    assert_eq!((read.output, read.streams.len()), (None, 0));
    puppet.end(Ok(Settlement {
        status: Settled::Completed,
        detail: None,
        output: Some("the page".to_owned()),
    }));
    settled(&session, &id).await;
    for _ in 0..3 {
        assert_eq!(session.read(&id).unwrap().output.as_deref(), Some("the page"));
    }
    assert_eq!(
        session.read_from(&id, &[]).unwrap().output.as_deref(),
        Some("the page")
    );
}

#[tokio::test]
async fn item_165_a_read_of_a_settled_job_reports_it() {
    let (_jobs, session) = session();
    let strings = Strings::new(OnCancel::End);
    let id = strings.start(&session);
    assert!(!session.read(&id).unwrap().info.reported);
    strings.end(Ok(exited(0)));
    assert!(!settled(&session, &id).await.reported);
    assert!(
        !session.read_from(&id, &[(Stdout, 0)]).unwrap().info.reported,
        "a read by offset reports nothing"
    );
    assert!(session.read(&id).unwrap().info.reported);
    assert!(session.info(&id).unwrap().reported);
    assert_no_notice(&session);
}

#[tokio::test]
async fn item_165_reads_by_offset_take_nothing_from_others() {
    let (_jobs, session) = session();
    let mut strings = Strings::new(OnCancel::End);
    let id = strings.start(&session);
    strings.stdout.push(b"abcdef");
    for _ in 0..2 {
        let read = session.read_from(&id, &[(Stdout, 2)]).unwrap();
        assert_eq!((read.streams.len(), &read.streams[0].text[..]), (1, "cdef"));
    }
    assert_eq!(session.read(&id).unwrap().streams[0].text, "abcdef");
    let missing = session.read_from(&id, &[(Terminal, 0)]).unwrap_err();
    assert_eq!(missing.to_string(), "the job `bash-1` has no stream `terminal`");
    assert!(matches!(
        session.reader(&id, Terminal),
        Err(JobError::UnknownStream { .. })
    ));
}

#[tokio::test]
async fn item_165_a_reader_outlives_its_job() {
    let (_jobs, session) = session();
    let mut strings = Strings::new(OnCancel::End);
    let id = strings.start(&session);
    let reader = session.reader(&id, Stdout).unwrap();
    strings.stdout.push(b"kept");
    drop(strings);
    session.end().await.unwrap();
    assert_eq!(&reader.read_from(0).bytes[..], b"kept");
}

#[tokio::test]
async fn item_165_the_oldest_reported_job_is_dropped_first() {
    let jobs = Jobs::new(Limits {
        settled_per_owner: 2,
        ..Limits::default()
    })
    .unwrap();
    let session = jobs.open("owner").unwrap();
    let mut ids = Vec::new();
    for _ in 0..4 {
        let strings = Strings::new(OnCancel::End);
        let id = strings.start(&session);
        strings.end(Ok(exited(0)));
        settled(&session, &id).await;
        if id.number() == 2 {
            session.read(&id).unwrap();
        }
        ids.push(id);
    }
    // The third made the second go, since that one was reported; the fourth made the first go, since none was.
    assert!(is_unknown(session.info(&ids[0]), &ids[0]));
    assert!(is_unknown(session.info(&ids[1]), &ids[1]));
    let noticed: Vec<_> = std::iter::from_fn(|| poll_once(session.notice()).flatten())
        .map(|notice| notice.info.id)
        .collect();
    assert_eq!(noticed, ids[2..]);
}
