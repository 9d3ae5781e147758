//! The budgets, as data.

use std::fmt;

use crate::finding::{Field, Finding};
use crate::options::Row;

/// One limit on one number of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    row: Row,
    field: Field,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

use Limit::{AtLeast, AtMost};

/// What collecting may add to the host's memory: what the stream retains ([`crate::collect::RETAINED`]) and 2 MiB.
const COLLECTING_KIB: f64 = 64.0 + 2048.0;

const fn budget(row: Row, field: Field, limit: Limit) -> Budget {
    Budget { row, field, limit }
}

const BUDGETS: &[Budget] = &[
    budget(Row::Spawn, Field::FloorRatio, AtMost(1.2)),
    budget(Row::Spawn, Field::TokioSetsidRatio, AtLeast(1.25)),
    budget(Row::Spawn4g, Field::SmallHostRatio, AtMost(1.3)),
    budget(Row::SpawnC16, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::SpawnC64, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::Terminate1, Field::FloorRatio, AtMost(1.5)),
    budget(Row::Terminate100, Field::FloorRatio, AtMost(1.5)),
    budget(Row::Terminate1000, Field::FloorRatio, AtMost(1.5)),
    budget(Row::Linger, Field::MedianMicros, AtMost(1000.0)),
    budget(Row::Collect, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::Collect, Field::MemoryGrowthKib, AtMost(COLLECTING_KIB)),
    budget(Row::CollectSpill, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::CollectSpill, Field::MemoryGrowthKib, AtMost(COLLECTING_KIB)),
    budget(Row::Idle1000, Field::WakeUps, AtMost(0.0)),
    budget(Row::Idle1000, Field::KibPerChild, AtMost(32.0)),
    budget(Row::Idle1000, Field::DescriptorsPerChild, AtMost(3.0)),
];

impl Budget {
    /// Tells whether a finding keeps the budget. A number that was not measured keeps none.
    fn is_kept_by(&self, finding: &Finding) -> bool {
        finding.number(self.field).is_some_and(|number| match self.limit {
            AtMost(limit) => number <= limit,
            AtLeast(limit) => number >= limit,
        })
    }
}

/// Returns the budgets that a finding misses.
pub(crate) fn missed(finding: &Finding) -> impl Iterator<Item = &'static Budget> {
    BUDGETS
        .iter()
        .filter(|budget| budget.row == finding.row && !budget.is_kept_by(finding))
}

/// Says of each finding of this project whether it is within its row's budgets.
pub(crate) fn judge(findings: &mut [Finding]) {
    for finding in findings {
        finding.within_budget = finding
            .name
            .is_the_project()
            .then(|| missed(finding).next().is_none());
    }
}

impl Budget {
    /// Says what was found and what was allowed.
    pub(crate) fn verdict(&self, finding: &Finding) -> String {
        match finding.number(self.field) {
            Some(number) => format!("{} is {number:.2}, the budget is {self}", self.field.name()),
            None => format!("{} was not measured, the budget is {self}", self.field.name()),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            AtMost(limit) => write!(f, "at most {limit}"),
            AtLeast(limit) => write!(f, "at least {limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Name;
    use clap::ValueEnum as _;

    fn spawn(floor: f64, tokio: Option<f64>) -> Finding {
        let mut numbers = vec![(Field::FloorRatio, floor)];
        numbers.extend(tokio.map(|ratio| (Field::TokioSetsidRatio, ratio)));
        Finding::new(Row::Spawn, Name::project("cgroup"), numbers)
    }

    #[test]
    fn every_row_has_a_budget() {
        for row in Row::value_variants() {
            assert!(BUDGETS.iter().any(|budget| budget.row == *row), "{row}");
        }
    }

    #[test]
    fn a_finding_is_within_budget_when_every_limit_is_kept_inclusively() {
        let mut found = vec![
            spawn(1.2, Some(1.25)),
            spawn(1.21, Some(1.25)),
            spawn(1.2, Some(1.24)),
        ];
        judge(&mut found);
        let within: Vec<_> = found.iter().map(|finding| finding.within_budget).collect();
        assert_eq!(within, [Some(true), Some(false), Some(false)]);
    }

    #[test]
    fn a_number_that_was_not_measured_misses_its_budget() {
        let finding = spawn(1.0, None);
        let missed: Vec<String> = missed(&finding).map(|budget| budget.verdict(&finding)).collect();
        assert_eq!(
            missed,
            ["tokio_setsid_ratio was not measured, the budget is at least 1.25"]
        );
    }

    #[test]
    fn others_have_no_budget() {
        let mut found = vec![Finding::new(
            Row::Spawn,
            Name::FLOOR,
            vec![(Field::FloorRatio, 9.0)],
        )];
        judge(&mut found);
        assert_eq!(found[0].within_budget, None);
    }
}
