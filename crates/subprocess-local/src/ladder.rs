//! The termination ladder: `SIGTERM`, the grace, `SIGKILL`, the bound. Pure: time is an argument, and what is to be sent
//! is the answer.

use std::time::{Duration, Instant};

/// Where a tree stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Step {
    /// Nobody asked for its end.
    #[default]
    Idle,
    /// `SIGTERM` was sent to every member but the target.
    AskedOthers { until: Instant },
    /// `SIGTERM` was sent.
    Asked { kill_at: Instant },
    /// `SIGKILL` was sent.
    Killed { overdue_at: Instant },
    /// Members outlived `SIGKILL` by the bound.
    Overdue,
    /// The tree is gone. Its numbers may belong to strangers: nothing is sent any more.
    Gone,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    /// Nothing.
    Rest,
    /// Send `SIGTERM`, then `SIGCONT`, to every member but the target.
    AskOthers,
    /// Send `SIGKILL` to those members; and then as [`Ask`](Self::Ask).
    KillOthersAndAsk,
    /// Send `SIGTERM`, then `SIGCONT`, to every member.
    Ask,
    /// Send `SIGKILL` to every member.
    Kill,
    /// Tell the waiters who is left.
    ReportSurvivors,
}

/// One tree's ladder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ladder {
    step: Step,
    grace: Duration,
    bound: Duration,
    /// Whether the target is asked only when the others are gone, or their grace is over.
    target_last: bool,
}

impl Ladder {
    /// `grace` lies between the two signals, `bound` after the second.
    pub(crate) fn new(grace: Duration, bound: Duration) -> Self {
        Self {
            step: Step::Idle,
            grace,
            bound,
            target_last: false,
        }
    }

    /// Has the target asked last, with a grace of its own.
    pub(crate) fn set_target_last(&mut self) {
        self.target_last = true;
    }

    /// Somebody wants the tree ended. Only the first time counts, and the first after members were found to outlive
    /// `SIGKILL`: what kept them alive may have changed.
    pub(crate) fn terminate(&mut self, now: Instant) -> Act {
        match self.step {
            Step::Idle if self.target_last => {
                self.step = Step::AskedOthers {
                    until: now + self.grace,
                };
                Act::AskOthers
            }
            Step::Idle => {
                self.step = Step::Asked {
                    kill_at: now + self.grace,
                };
                Act::Ask
            }
            Step::Overdue => {
                self.step = Step::Killed {
                    overdue_at: now + self.bound,
                };
                Act::Kill
            }
            Step::AskedOthers { .. } | Step::Asked { .. } | Step::Killed { .. } | Step::Gone => Act::Rest,
        }
    }

    /// The members that were asked before the target are gone.
    pub(crate) fn others_gone(&mut self, now: Instant) -> Act {
        match self.step {
            Step::AskedOthers { .. } => {
                self.step = Step::Asked {
                    kill_at: now + self.grace,
                };
                Act::Ask
            }
            _ => Act::Rest,
        }
    }

    /// The target has ended: from now on all members are alike. Those that were asked have the rest of their grace.
    pub(crate) fn target_ended(&mut self) {
        self.target_last = false;
        if let Step::AskedOthers { until } = self.step {
            self.step = Step::Asked { kill_at: until };
        }
    }

    /// The tree is to be ended without grace.
    pub(crate) fn kill(&mut self, now: Instant) -> Act {
        match self.step {
            Step::Idle | Step::AskedOthers { .. } | Step::Asked { .. } => {
                self.step = Step::Killed {
                    overdue_at: now + self.bound,
                };
                Act::Kill
            }
            Step::Killed { .. } | Step::Overdue => Act::Kill,
            Step::Gone => Act::Rest,
        }
    }

    /// Time has passed.
    pub(crate) fn elapse(&mut self, now: Instant) -> Act {
        match self.step {
            Step::AskedOthers { until } if until <= now => {
                self.step = Step::Asked {
                    kill_at: now + self.grace,
                };
                Act::KillOthersAndAsk
            }
            Step::Asked { kill_at } if kill_at <= now => self.kill(now),
            Step::Killed { overdue_at } if overdue_at <= now => {
                self.step = Step::Overdue;
                Act::ReportSurvivors
            }
            _ => Act::Rest,
        }
    }

    /// When [`elapse`](Self::elapse) has something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.step {
            Step::AskedOthers { until } => Some(until),
            Step::Asked { kill_at } => Some(kill_at),
            Step::Killed { overdue_at } => Some(overdue_at),
            Step::Idle | Step::Overdue | Step::Gone => None,
        }
    }

    /// The tree was seen to be gone.
    pub(crate) fn gone(&mut self) {
        self.step = Step::Gone;
    }

    /// Whether the end was asked for.
    pub(crate) fn is_terminating(&self) -> bool {
        matches!(
            self.step,
            Step::AskedOthers { .. } | Step::Asked { .. } | Step::Killed { .. } | Step::Overdue
        )
    }

    /// Whether a member that shows up now is to be killed at sight.
    pub(crate) fn is_killing(&self) -> bool {
        matches!(self.step, Step::Killed { .. } | Step::Overdue)
    }

    /// Whether the tree was seen to be gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.step == Step::Gone
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GRACE: Duration = Duration::from_secs(3);
    const BOUND: Duration = Duration::from_secs(5);

    #[test]
    fn item_61_term_then_kill_after_the_grace_then_the_survivors_after_the_bound() {
        let start = Instant::now();
        let mut ladder = Ladder::new(GRACE, BOUND);
        assert_eq!(ladder.due(), None);
        assert_eq!(ladder.terminate(start), Act::Ask);
        assert_eq!(ladder.due(), Some(start + GRACE));
        assert_eq!(ladder.elapse(start + Duration::from_millis(2_999)), Act::Rest);
        assert_eq!(ladder.elapse(start + GRACE), Act::Kill);
        assert_eq!(ladder.due(), Some(start + GRACE + BOUND));
        assert_eq!(ladder.elapse(start + GRACE + BOUND), Act::ReportSurvivors);
        assert_eq!(ladder.due(), None);
    }

    #[test]
    fn item_62_a_second_terminate_changes_nothing() {
        let start = Instant::now();
        let mut ladder = Ladder::new(GRACE, BOUND);
        ladder.terminate(start);
        let before = ladder;
        assert_eq!(ladder.terminate(start + GRACE / 2), Act::Rest);
        assert_eq!(ladder, before);
    }

    #[test]
    fn item_93_the_target_of_a_terminal_is_asked_when_the_others_are_gone() {
        let start = Instant::now();
        let mut ladder = Ladder::new(GRACE, BOUND);
        ladder.set_target_last();
        assert_eq!(ladder.terminate(start), Act::AskOthers);
        assert_eq!(ladder.terminate(start), Act::Rest);
        let later = start + GRACE / 2;
        assert_eq!(ladder.others_gone(later), Act::Ask);
        assert_eq!(ladder.others_gone(later), Act::Rest);
        assert_eq!(ladder.due(), Some(later + GRACE));
        assert_eq!(ladder.elapse(later + GRACE), Act::Kill);
    }

    #[test]
    fn item_93_the_target_of_a_terminal_has_a_grace_of_its_own() {
        let start = Instant::now();
        let mut ladder = Ladder::new(GRACE, BOUND);
        ladder.set_target_last();
        ladder.terminate(start);
        assert_eq!(ladder.elapse(start + GRACE), Act::KillOthersAndAsk);
        assert_eq!(ladder.elapse(start + GRACE * 2), Act::Kill);
    }

    #[test]
    fn item_93_after_the_targets_end_all_members_are_alike() {
        let start = Instant::now();
        let mut ladder = Ladder::new(GRACE, BOUND);
        ladder.set_target_last();
        let mut asked = ladder;
        asked.terminate(start);
        asked.target_ended();
        assert_eq!(asked.due(), Some(start + GRACE));
        assert_eq!(asked.elapse(start + GRACE), Act::Kill);
        ladder.target_ended();
        assert_eq!(ladder.terminate(start), Act::Ask);
    }

    #[derive(Clone, Debug)]
    enum Event {
        TargetLast,
        OthersGone,
        TargetEnded,
        Terminate,
        Kill,
        Elapse(u64),
        Gone,
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = prop_oneof![
            Just(Event::TargetLast),
            Just(Event::OthersGone),
            Just(Event::TargetEnded),
            Just(Event::Terminate),
            Just(Event::Kill),
            (0_u64..10_000).prop_map(Event::Elapse),
            Just(Event::Gone),
        ];
        proptest::collection::vec(event, 0..32)
    }

    proptest! {
        #[test]
        fn item_64_nothing_is_sent_once_the_tree_is_gone(events in events()) {
            let mut now = Instant::now();
            let mut ladder = Ladder::new(GRACE, BOUND);
            let mut gone = false;
            for event in events {
                let act = match event {
                    Event::TargetLast => { ladder.set_target_last(); Act::Rest }
                    Event::OthersGone => ladder.others_gone(now),
                    Event::TargetEnded => { ladder.target_ended(); Act::Rest }
                    Event::Terminate => ladder.terminate(now),
                    Event::Kill => ladder.kill(now),
                    Event::Elapse(ms) => { now += Duration::from_millis(ms); ladder.elapse(now) }
                    Event::Gone => { ladder.gone(); gone = true; Act::Rest }
                };
                if gone {
                    prop_assert_eq!(act, Act::Rest);
                    prop_assert_eq!(ladder.due(), None);
                }
            }
        }

        #[test]
        fn term_is_sent_at_most_once_and_never_after_kill(events in events()) {
            let mut now = Instant::now();
            let mut ladder = Ladder::new(GRACE, BOUND);
            let (mut others, mut asked, mut killed) = (0, 0, 0);
            for event in events {
                let act = match event {
                    Event::TargetLast => { ladder.set_target_last(); Act::Rest }
                    Event::OthersGone => ladder.others_gone(now),
                    Event::TargetEnded => { ladder.target_ended(); Act::Rest }
                    Event::Terminate => ladder.terminate(now),
                    Event::Kill => ladder.kill(now),
                    Event::Elapse(ms) => { now += Duration::from_millis(ms); ladder.elapse(now) }
                    Event::Gone => { ladder.gone(); Act::Rest }
                };
                match act {
                    Act::Ask | Act::KillOthersAndAsk => { asked += 1; prop_assert_eq!(killed, 0); }
                    Act::AskOthers => { others += 1; prop_assert_eq!(asked + killed, 0); }
                    Act::Kill => killed += 1,
                    Act::Rest | Act::ReportSurvivors => {}
                }
            }
            prop_assert!(asked <= 1 && others <= 1);
        }

        #[test]
        fn a_terminating_tree_that_does_not_go_is_always_due_until_it_is_overdue(events in events()) {
            let mut now = Instant::now();
            let mut ladder = Ladder::new(GRACE, BOUND);
            for event in events {
                match event {
                    Event::TargetLast => ladder.set_target_last(),
                    Event::OthersGone => { ladder.others_gone(now); }
                    Event::TargetEnded => ladder.target_ended(),
                    Event::Terminate => { ladder.terminate(now); }
                    Event::Kill => { ladder.kill(now); }
                    Event::Elapse(ms) => { now += Duration::from_millis(ms); ladder.elapse(now); }
                    Event::Gone => break,
                }
                if ladder.is_terminating() && ladder.step != Step::Overdue {
                    prop_assert!(ladder.due().is_some());
                }
            }
        }
    }
}
