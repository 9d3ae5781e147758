//! The parts of the program that are pure: they are compiled here a second time, since a program has no library.

use std::collections::BTreeSet;

use proptest::prelude::*;

#[expect(unreachable_pub, reason = "the file is the program's")]
#[path = "../../src/program/ladder.rs"]
mod ladder;
#[expect(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::large_stack_arrays,
    reason = "the file is the program's"
)]
#[path = "../../src/program/pid_set.rs"]
mod pid_set;
#[expect(unreachable_pub, reason = "the file is the program's")]
#[path = "../../src/program/text.rs"]
mod text;

use ladder::{Ladder, Step};
use pid_set::PidSet;

/// A step of the host's, or of time.
#[derive(Clone, Copy, Debug)]
enum Event {
    Asked,
    Killed,
    GivenUp,
    Passed(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Asked),
        Just(Event::Killed),
        Just(Event::GivenUp),
        (0..300_u64).prop_map(Event::Passed),
    ]
}

proptest! {
    // A set is half a megabyte of zeroes, so there are fewer cases than usual.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_tree_that_is_given_up_is_asked_once_and_killed_when_its_grace_is_over(
        events in prop::collection::vec(event(), 0..20),
        grace in 0..200_u64,
    ) {
        let mut ladder = Ladder::new();
        let (mut now, mut asked_at, mut killing, mut alone) = (1000, None, false, false);
        for event in events.into_iter().chain([Event::GivenUp, Event::Passed(0), Event::Passed(grace)]) {
            match event {
                Event::Asked if !alone => {
                    ladder.asked(now);
                    asked_at = Some(now);
                }
                Event::Killed if !alone => {
                    ladder.killed();
                    killing = true;
                }
                Event::Asked | Event::Killed => {}
                Event::GivenUp => {
                    ladder.go_on_alone(grace);
                    alone = true;
                }
                Event::Passed(span) => now += span,
            }
            let step = ladder.climb(now);
            if !alone || killing {
                prop_assert_eq!(step, None);
            } else if let Some(at) = asked_at {
                let over = now >= at + grace;
                prop_assert_eq!(step, over.then_some(Step::Kill));
                killing |= over;
            } else {
                prop_assert_eq!(step, Some(Step::Ask));
                asked_at = Some(now);
            }
            // While there is a step to come, it is known when.
            let wait = ladder.wait(now);
            prop_assert_eq!(wait.is_some(), alone && !killing);
            prop_assert!(wait.is_none_or(|wait| wait <= grace));
        }
        prop_assert!(killing);
        prop_assert!(ladder.is_killing() && ladder.has_begun());
    }

    #[test]
    fn a_set_of_processes_is_a_set(
        actions in prop::collection::vec((0..3_u8, prop_oneof![0..200_u32, 4_194_200..4_194_400_u32]), 0..200),
    ) {
        let mut set = Box::new(PidSet::new());
        let mut model = BTreeSet::new();
        for (action, pid) in actions {
            let possible = (1..4_194_304).contains(&pid);
            match action {
                0 => prop_assert_eq!(set.insert(pid), possible && model.insert(pid)),
                1 => {
                    set.remove(pid);
                    model.remove(&pid);
                }
                _ => prop_assert_eq!(set.take(), model.pop_first()),
            }
            prop_assert_eq!(set.contains(pid), model.contains(&pid));
            prop_assert_eq!(set.next(pid), model.range(pid..).next().copied());
        }
        let mut all = Vec::new();
        let mut from = 0;
        while let Some(pid) = set.next(from) {
            all.push(pid);
            from = pid + 1;
        }
        prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        set.clear();
        prop_assert_eq!(set.next(0), None);
    }

    #[test]
    fn numbers_are_the_same_however_a_list_is_cut(numbers in prop::collection::vec(any::<u32>(), 0..50), cut in 1..9_usize) {
        let list = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let mut read = Vec::new();
        let mut reader = text::Numbers::default();
        for piece in list.as_bytes().chunks(cut) {
            reader.read(piece, |number| read.push(number));
        }
        reader.end(|number| read.push(number));
        prop_assert_eq!(read, numbers);
    }

    #[test]
    fn a_number_is_written_as_it_is_read(number in any::<u32>()) {
        let written = text::Text::new().with(b"/proc/").with_number(number);
        let written = written.as_c_str().to_bytes();
        let expected = format!("/proc/{number}");
        prop_assert_eq!(written, expected.as_bytes());
        prop_assert_eq!(text::number(&written[6..]), Some(number));
    }
}

#[test]
fn a_ladder_that_begins_anew_asks_again() {
    let mut ladder = Ladder::new();
    ladder.killed();
    ladder.restart_alone(5);
    assert_eq!(ladder.climb(1), Some(Step::Ask));
    assert_eq!((ladder.climb(5), ladder.climb(6)), (None, Some(Step::Kill)));
}
