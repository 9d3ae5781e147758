//! Whoever follows a job misses nothing, and sees nothing twice (O18).

use std::time::Duration;

use dsh_jobs::{JobId, JobSession, JobStatus};
use dsh_shell::StreamName;

use crate::fixture::{Tier, on_each_tier};
use crate::stage::Stage;

on_each_tier! {
    o18_concatenated_reads_are_the_whole_output_of_each_of_200_jobs,
}

const JOBS: usize = 200;

fn expected() -> String {
    let numbers = (1..=2000).map(|number| number.to_string());
    numbers
        .chain(["LAST".to_owned(), String::new()])
        .collect::<Vec<_>>()
        .join("\n")
}

/// Two readers of one job: one consumes, one keeps an offset of its own.
struct Follower {
    id: JobId,
    consumed: String,
    by_offset: String,
    offset: u64,
    settled: bool,
}

impl Follower {
    /// Reads once in both ways. A reader stops when it has seen the settled state: there is no read after that.
    #[track_caller]
    fn read(&mut self, session: &JobSession) {
        let read = session
            .read_from(&self.id, &[(StreamName::Stdout, self.offset)])
            .expect("it is there");
        let delta = &read.streams[0];
        assert_eq!((delta.gap, delta.offset), (0, self.offset), "{}", self.id);
        assert!(delta.next_offset >= self.offset);
        self.offset = delta.next_offset;
        self.by_offset.push_str(&delta.text);
        let settled_for_the_other = read.info.status.is_settled();

        let read = session.read(&self.id).expect("it is there");
        let stdout = &read.streams[0];
        assert_eq!((stdout.stream, stdout.gap), (StreamName::Stdout, 0));
        self.consumed.push_str(&stdout.text);
        self.settled = read.info.status.is_settled();
        if self.settled && !settled_for_the_other {
            // It settled between the two: the other reader's last read is still to come.
            let read = session
                .read_from(&self.id, &[(StreamName::Stdout, self.offset)])
                .expect("it is there");
            self.by_offset.push_str(&read.streams[0].text);
        }
    }
}

fn o18_concatenated_reads_are_the_whole_output_of_each_of_200_jobs(tier: Tier) {
    let stage = Stage::new(tier);
    let session = stage.jobs.open("owner").expect("it is the first");
    let mut followers: Vec<Follower> = (0..JOBS)
        .map(|_| Follower {
            id: stage.start_job(&session, "sleep 0.$((RANDOM%9)); seq 1 2000; echo LAST"),
            consumed: String::new(),
            by_offset: String::new(),
            offset: 0,
            settled: false,
        })
        .collect();
    stage.within(async {
        while followers.iter().any(|follower| !follower.settled) {
            for follower in followers.iter_mut().filter(|follower| !follower.settled) {
                follower.read(&session);
            }
            // The pace of a poller, which is what is tested: no event of the job wakes it.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let expected = expected();
    for follower in &followers {
        assert!(
            follower.consumed == expected,
            "{}: {} bytes",
            follower.id,
            follower.consumed.len()
        );
        assert!(
            follower.by_offset == expected,
            "{}: {} bytes",
            follower.id,
            follower.by_offset.len()
        );
        let info = session.info(&follower.id).expect("it is there");
        assert_eq!(
            (info.status, info.detail.as_deref()),
            (JobStatus::Completed, Some("exit code: 0"))
        );
        assert!(info.reported);
    }
    stage.within(session.end()).expect("nothing is left to end");
    stage.end();
}
