//! Whatever happens to the jobs of an owner, in whatever order: they settle once, and their owner is told once.

use std::collections::BTreeMap;
use std::time::Instant;

use proptest::prelude::*;

use super::Ledger;
use crate::life::Ending;
use crate::notice::{Attention, Delivery};
use crate::{JobStatus, Settled, Settlement};

const SETTLED_LIMIT: usize = 4;
const WAKES: u32 = 2;

/// Something that happens. A number names one of the jobs that were started, or none.
#[derive(Clone, Copy, Debug)]
enum Event {
    Start,
    Settle(usize, JobStatus),
    Stop(usize),
    Report(usize),
    BeginWait(usize),
    EndWait(usize),
    AnswerWait(usize),
    TakeNotice,
    SetBusy(bool),
    UserInput,
}

fn event() -> impl Strategy<Value = Event> {
    let job = 0..12_usize;
    let status = prop_oneof![
        Just(JobStatus::Completed),
        Just(JobStatus::Killed),
        Just(JobStatus::Failed)
    ];
    prop_oneof![
        4 => Just(Event::Start),
        6 => (job.clone(), status).prop_map(|(job, status)| Event::Settle(job, status)),
        1 => job.clone().prop_map(Event::Stop),
        1 => job.clone().prop_map(Event::Report),
        2 => job.clone().prop_map(Event::BeginWait),
        1 => job.clone().prop_map(Event::EndWait),
        1 => job.prop_map(Event::AnswerWait),
        3 => Just(Event::TakeNotice),
        1 => any::<bool>().prop_map(Event::SetBusy),
        1 => Just(Event::UserInput),
    ]
}

/// What should be known of a job, by the plainest means.
#[derive(Default, Debug)]
struct Expected {
    settled: Option<(usize, JobStatus)>,
    reported: bool,
    waiters: usize,
    notices: usize,
    dropped: bool,
}

/// The ledger, beside what is expected of it.
struct World {
    ledger: Ledger<usize>,
    jobs: BTreeMap<usize, Expected>,
    settlements: usize,
    busy: bool,
    wakes: u32,
}

impl World {
    fn new() -> Self {
        Self {
            ledger: Ledger::new(SETTLED_LIMIT, Attention::new(WAKES)),
            jobs: BTreeMap::new(),
            settlements: 0,
            busy: false,
            wakes: 0,
        }
    }

    /// Does something to a job, where there is one with this number that was not dropped.
    fn with(&mut self, job: usize, change: impl FnOnce(&mut super::Life, &mut Expected)) {
        let entry = self.ledger.get_mut(job as u64);
        let expected = self.jobs.get_mut(&job).filter(|expected| !expected.dropped);
        assert_eq!(entry.is_some(), expected.is_some(), "job {job} is kept or not");
        if let (Some(entry), Some(expected)) = (entry, expected) {
            change(&mut entry.life, expected);
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Start => {
                let job = self.jobs.len();
                self.ledger.enter(job as u64, job, Instant::now());
                self.jobs.insert(job, Expected::default());
            }
            Event::Settle(job, status) => self.settle(job, status),
            Event::Stop(job) => self.with(job, |life, expected| {
                life.stop();
                expected.reported = true;
            }),
            Event::Report(job) => self.with(job, |life, expected| {
                life.report();
                expected.reported = true;
            }),
            Event::BeginWait(job) => self.with(job, |life, expected| {
                life.begin_wait();
                expected.waiters += 1;
            }),
            Event::EndWait(job) => self.with(job, |life, expected| {
                if expected.waiters > 0 {
                    life.end_wait();
                    expected.waiters -= 1;
                }
            }),
            Event::AnswerWait(job) => self.with(job, |life, expected| {
                if expected.waiters > 0 && life.is_settled() {
                    life.report();
                    life.end_wait();
                    expected.waiters -= 1;
                    expected.reported = true;
                }
            }),
            Event::TakeNotice => {
                self.take_notice();
            }
            Event::SetBusy(busy) => {
                self.ledger.attention.set_busy(busy);
                self.busy = busy;
            }
            Event::UserInput => {
                self.ledger.attention.user_input();
                self.wakes = 0;
            }
        }
    }

    fn settle(&mut self, job: usize, status: JobStatus) {
        let ending = match status {
            JobStatus::Failed => Ending::failed(format!("ending {}", self.settlements)),
            status => Ending::from(Settlement {
                status: if status == JobStatus::Killed {
                    Settled::Killed
                } else {
                    Settled::Completed
                },
                detail: Some(format!("ending {}", self.settlements)),
                output: None,
            }),
        };
        let dropped = self.ledger.settle(job as u64, ending, Instant::now());
        let first = self
            .jobs
            .get(&job)
            .is_some_and(|expected| expected.settled.is_none());
        assert_eq!(
            dropped.is_some(),
            first,
            "the first settlement of job {job} counts, and no other"
        );
        if let (true, Some(expected)) = (first, self.jobs.get_mut(&job)) {
            expected.settled = Some((self.settlements, status));
            self.settlements += 1;
        }
        for dropped in dropped.into_iter().flatten() {
            assert_ne!(dropped, job, "the latest one stays");
            self.expect_dropped(dropped, job);
        }
    }

    /// The one that was dropped is the oldest reported one, or else the oldest.
    fn expect_dropped(&mut self, dropped: usize, latest: usize) {
        let candidates = || {
            self.jobs
                .iter()
                .filter(|(job, expected)| **job != latest && !expected.dropped)
                .filter_map(|(job, expected)| Some((expected.settled?.0, *job, expected.reported)))
        };
        let oldest = candidates()
            .filter(|(_, _, reported)| *reported)
            .min()
            .or_else(|| candidates().min());
        assert_eq!(oldest.map(|(_, job, _)| job), Some(dropped));
        if let Some(expected) = self.jobs.get_mut(&dropped) {
            expected.dropped = true;
        }
    }

    /// Takes a notice, and tells whether there was one.
    fn take_notice(&mut self) -> bool {
        let due = self
            .jobs
            .iter()
            .filter(|(_, expected)| {
                !expected.reported && !expected.dropped && expected.waiters == 0 && expected.notices == 0
            })
            .filter_map(|(job, expected)| Some((expected.settled?.0, *job)))
            .min();
        let taken = self
            .ledger
            .take_notice()
            .map(|(entry, delivery)| (entry.job, delivery));
        assert_eq!(
            taken.map(|(job, _)| job),
            due.map(|(_, job)| job),
            "the first that is due"
        );
        let Some((job, delivery)) = taken else {
            return false;
        };
        let expected_delivery = match (self.busy, self.wakes < WAKES) {
            (true, _) => Delivery::Inject,
            (false, true) => Delivery::Wake,
            (false, false) => Delivery::Quiet,
        };
        assert_eq!(delivery, expected_delivery);
        self.wakes += u32::from(delivery == Delivery::Wake);
        if let Some(expected) = self.jobs.get_mut(&job) {
            expected.notices += 1;
            expected.reported |= delivery != Delivery::Quiet;
        }
        true
    }

    fn check(&mut self) {
        let live = self
            .jobs
            .values()
            .filter(|expected| expected.settled.is_none())
            .count();
        assert_eq!(self.ledger.live(), live);
        assert!(self.ledger.iter().count() <= live + SETTLED_LIMIT);
        for (job, expected) in &self.jobs {
            let Some(entry) = self.ledger.get_mut(*job as u64) else {
                continue;
            };
            let life = &entry.life;
            assert_eq!(life.reported, expected.reported);
            assert_eq!(life.ended.is_some(), expected.settled.is_some());
            if let Some((ending, status)) = expected.settled {
                assert_eq!(
                    (life.status, &life.detail),
                    (status, &Some(format!("ending {ending}")))
                );
            }
        }
    }

    /// Everybody who waits goes without having been answered, and the owner takes all notices there are.
    fn finish(&mut self) {
        for job in 0..self.jobs.len() {
            while self
                .jobs
                .get(&job)
                .is_some_and(|expected| !expected.dropped && expected.waiters > 0)
            {
                self.apply(Event::EndWait(job));
            }
        }
        while self.take_notice() {}
        for (job, expected) in &self.jobs {
            let told = expected.notices == 1 || expected.reported;
            assert!(
                told || expected.dropped || expected.settled.is_none(),
                "nobody was told of the end of job {job}: {expected:?}"
            );
            assert!(expected.notices <= 1);
        }
    }
}

proptest! {
    #[test]
    fn jobs_settle_once_and_no_notice_is_lost(events in prop::collection::vec(event(), 0..120)) {
        let mut world = World::new();
        for event in events {
            world.apply(event);
            world.check();
        }
        world.finish();
        world.check();
    }
}
