//! Virtual time, and what is due in it.

use std::collections::BTreeMap;
use std::time::Duration;

use dsh_subprocess::Outcome;

/// What happens to a tree at a moment.
#[derive(Debug)]
pub(super) enum Due {
    /// Its script goes on, if nothing blocks it.
    Resume(usize),
    /// A request to end it arrives in the world.
    Terminate(usize),
    /// The target ends in reaction to a signal.
    TargetEnds(usize, Outcome),
    /// A member ends.
    MemberEnds(usize, Option<u32>),
    /// The drain after the target's exit runs out.
    DrainOver(usize),
    /// The grace after `SIGTERM` runs out.
    GraceOver(usize),
    /// The bound after `SIGKILL` runs out.
    BoundOver(usize),
    /// The first write to a terminal may have got no further for the bound.
    InputStalls(usize),
    /// An answer is on its way back, and nothing else happens.
    Answer,
}

/// The events to come, in the order of their time and, within one moment, of their making.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    now: Duration,
    made: u64,
    events: BTreeMap<(Duration, u64), Due>,
}

impl Agenda {
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// Plans an event; a span beyond the end of time never comes.
    pub(super) fn plan(&mut self, after: Duration, due: Due) -> Duration {
        let at = self.now.saturating_add(after);
        self.events.insert((at, self.made), due);
        self.made += 1;
        at
    }

    /// Takes the first event that is due, moving the clock to it, but not beyond `until`.
    pub(super) fn next_until(&mut self, until: Duration) -> Option<Due> {
        let (&(at, _), _) = self.events.first_key_value()?;
        if at > until {
            return None;
        }
        self.now = self.now.max(at);
        self.events.pop_first().map(|(_, due)| due)
    }

    /// Moves the clock. Whatever is due before must have been taken.
    pub(super) fn arrive(&mut self, at: Duration) {
        self.now = self.now.max(at);
    }

    /// Returns when the first event is due.
    pub(super) fn first(&self) -> Option<Duration> {
        self.events.first_key_value().map(|(&(at, _), _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resumed(agenda: &mut Agenda, until: u64) -> Option<usize> {
        match agenda.next_until(Duration::from_millis(until)) {
            Some(Due::Resume(tree)) => Some(tree),
            Some(other) => panic!("an event that nobody planned: {other:?}"),
            None => None,
        }
    }

    #[test]
    fn events_come_by_time_and_within_a_moment_in_the_order_they_were_planned() {
        let mut agenda = Agenda::default();
        agenda.plan(Duration::from_millis(5), Due::Resume(1));
        agenda.plan(Duration::from_millis(2), Due::Resume(2));
        agenda.plan(Duration::from_millis(5), Due::Resume(3));
        assert_eq!(resumed(&mut agenda, 1), None);
        assert_eq!(resumed(&mut agenda, 9), Some(2));
        assert_eq!(agenda.now(), Duration::from_millis(2));
        assert_eq!(resumed(&mut agenda, 9), Some(1));
        assert_eq!(resumed(&mut agenda, 9), Some(3));
        assert_eq!(resumed(&mut agenda, 9), None);
        assert_eq!(agenda.now(), Duration::from_millis(5));
    }

    #[test]
    fn the_longest_span_does_not_overflow_the_clock() {
        let mut agenda = Agenda::default();
        agenda.arrive(Duration::from_secs(1));
        assert_eq!(agenda.plan(Duration::MAX, Due::Answer), Duration::MAX);
    }
}
