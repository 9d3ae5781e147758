//! The budgets, as data.

use std::fmt;

use crate::finding::{Field, Finding};
use crate::options::Row;
use crate::project::REAPER;

/// One limit on one number of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    row: Row,
    /// The tiers it is for.
    tiers: Tiers,
    field: Field,
    limit: Limit,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// Whose a budget is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tiers {
    All,
    /// All but the reaper, which pays for a process of its own, and has budgets of its own.
    Direct,
    Reaper,
}

impl Tiers {
    fn include(self, tier: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Direct => tier != Some(REAPER),
            Self::Reaper => tier == Some(REAPER),
        }
    }
}

use Limit::{AtLeast, AtMost};
use Tiers::{All, Direct, Reaper};

/// What collecting may add to the host's memory: what the stream retains ([`crate::collect::RETAINED`]) and 2 MiB.
const COLLECTING_KIB: f64 = 64.0 + 2048.0;

/// When a tree that obeys `SIGTERM` must be gone after its host was killed: it takes none of its grace.
const OBEDIENT_MICROS: f64 = 1e6;

const fn budget(row: Row, tiers: Tiers, field: Field, limit: Limit) -> Budget {
    Budget {
        row,
        tiers,
        field,
        limit,
    }
}

const BUDGETS: &[Budget] = &[
    budget(Row::Spawn, Direct, Field::FloorRatio, AtMost(1.2)),
    budget(Row::Spawn, Direct, Field::TokioSetsidRatio, AtLeast(1.25)),
    budget(Row::Spawn4g, All, Field::SmallHostRatio, AtMost(1.3)),
    budget(Row::SpawnC16, Direct, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::SpawnC64, Direct, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::Terminate1, Direct, Field::FloorRatio, AtMost(1.5)),
    budget(Row::Terminate100, Direct, Field::FloorRatio, AtMost(1.5)),
    budget(Row::Terminate1000, Direct, Field::FloorRatio, AtMost(1.5)),
    budget(Row::Linger, All, Field::MedianMicros, AtMost(1000.0)),
    budget(Row::Collect, All, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::Collect, All, Field::MemoryGrowthKib, AtMost(COLLECTING_KIB)),
    budget(Row::CollectSpill, All, Field::FloorRatio, AtLeast(0.9)),
    budget(
        Row::CollectSpill,
        All,
        Field::MemoryGrowthKib,
        AtMost(COLLECTING_KIB),
    ),
    budget(Row::Idle1000, All, Field::WakeUps, AtMost(0.0)),
    budget(Row::Idle1000, All, Field::KibPerChild, AtMost(32.0)),
    budget(Row::Idle1000, All, Field::DescriptorsPerChild, AtMost(3.0)),
    budget(Row::Idle1000, Reaper, Field::WardenKib, AtMost(150.0)),
    budget(Row::Spawn, Reaper, Field::BeyondCgroupMicros, AtMost(250.0)),
    budget(Row::Terminate1000, Reaper, Field::FloorRatio, AtMost(2.0)),
    budget(Row::HostDeath, All, Field::MedianMicros, AtMost(OBEDIENT_MICROS)),
    budget(Row::PtySpawn, Direct, Field::FloorRatio, AtMost(1.3)),
    budget(Row::PtySpawn, Reaper, Field::BeyondCgroupMicros, AtMost(250.0)),
    budget(Row::PtyEcho, All, Field::FloorRatio, AtMost(1.3)),
    budget(Row::PtyBulkCooked, All, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::PtyBulkRaw, All, Field::FloorRatio, AtLeast(0.9)),
    budget(Row::PtyIdle200, All, Field::WakeUps, AtMost(0.0)),
    budget(Row::PtyIdle200, All, Field::KibPerChild, AtMost(32.0)),
    budget(Row::PtyIdle200, All, Field::DescriptorsPerChild, AtMost(3.0)),
    budget(Row::PtyIdle200, Reaper, Field::WardenKib, AtMost(150.0)),
    budget(Row::PtyInspect, All, Field::MedianMicros, AtMost(500.0)),
    budget(Row::ShellCall, All, Field::FloorRatio, AtMost(1.25)),
    budget(Row::McpCall, All, Field::FloorRatio, AtMost(1.5)),
    budget(Row::ShellC64, All, Field::FloorRatio, AtLeast(0.8)),
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
    BUDGETS.iter().filter(|budget| {
        budget.row == finding.row && budget.tiers.include(finding.name.tier) && !budget.is_kept_by(finding)
    })
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
    fn the_reaper_has_budgets_of_its_own() {
        let mut found = vec![Finding::new(
            Row::Spawn,
            Name::project(REAPER),
            vec![(Field::FloorRatio, 1.6), (Field::BeyondCgroupMicros, 250.0)],
        )];
        judge(&mut found);
        assert_eq!(found[0].within_budget, Some(true));
        found[0].numbers[1].1 = 251.0;
        judge(&mut found);
        assert_eq!(found[0].within_budget, Some(false));
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
