//! What was found of one contender in one row.

use std::fmt;

use crate::options::Row;
use crate::project::{CGROUP, REAPER};
use crate::statistics::{median, p95, paired_ratio};

/// Whose samples these are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    /// `dsh-subprocess`, `floor`, or a peer's name.
    pub(crate) implementation: &'static str,
    /// The ownership tier, of this project.
    pub(crate) tier: Option<&'static str>,
}

const PROJECT: &str = "dsh-subprocess";
/// This project where an executor of tokio's waits instead of the runtime's own `block_on`. It is told beside the other, and
/// has no budget.
const PROJECT_UNDER_TOKIO: &str = "dsh-subprocess under tokio";

impl Name {
    /// The raw loop over the same system calls.
    pub(crate) const FLOOR: Self = Self {
        implementation: "floor",
        tier: None,
    };

    /// This project, by a tier's name.
    pub(crate) const fn project(tier: &'static str) -> Self {
        Self {
            implementation: PROJECT,
            tier: Some(tier),
        }
    }

    /// This project under tokio, by a tier's name.
    pub(crate) const fn project_under_tokio(tier: &'static str) -> Self {
        Self {
            implementation: PROJECT_UNDER_TOKIO,
            tier: Some(tier),
        }
    }

    /// What a user might pick instead.
    pub(crate) const fn peer(implementation: &'static str) -> Self {
        Self {
            implementation,
            tier: None,
        }
    }

    pub(crate) fn is_the_project(self) -> bool {
        self.implementation == PROJECT
    }

    pub(crate) fn is_a_peer(self) -> bool {
        ![PROJECT, PROJECT_UNDER_TOKIO, Self::FLOOR.implementation].contains(&self.implementation)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.implementation)?;
        self.tier.map_or(Ok(()), |tier| write!(f, " ({tier})"))
    }
}

/// What a row's samples are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// Microseconds: less is better.
    Micros,
    /// Mebibytes per second: more is better.
    MebibytesPerSecond,
    /// Completed spawns per second: more is better.
    PerSecond,
}

impl Unit {
    /// Returns the field that holds the median.
    pub(crate) fn field(self) -> Field {
        match self {
            Self::Micros => Field::MedianMicros,
            Self::MebibytesPerSecond => Field::MebibytesPerSecond,
            Self::PerSecond => Field::PerSecond,
        }
    }
}

/// A number that is printed, and that a budget may limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    MedianMicros,
    P95Micros,
    MebibytesPerSecond,
    PerSecond,
    /// The median of the ratios to the floor's sample of the same round.
    FloorRatio,
    /// The same against `tokio::process` with `pre_exec(setsid)`: how many times longer that takes.
    TokioSetsidRatio,
    /// The same against this contender in a small host.
    SmallHostRatio,
    /// How much the host's peak of resident memory grew.
    MemoryGrowthKib,
    /// How often the host's threads ran while nothing happened.
    WakeUps,
    KibPerChild,
    DescriptorsPerChild,
    /// How many threads more the host has than before its first child.
    Threads,
    /// The reaper's median less the control group's, of paired samples.
    BeyondCgroupMicros,
    /// The proportional set size of a tree warden.
    WardenKib,
}

impl Field {
    /// Returns its name in the output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MedianMicros => "median_us",
            Self::P95Micros => "p95_us",
            Self::MebibytesPerSecond => "mib_s",
            Self::PerSecond => "per_s",
            Self::FloorRatio => "floor_ratio",
            Self::TokioSetsidRatio => "tokio_setsid_ratio",
            Self::SmallHostRatio => "small_host_ratio",
            Self::MemoryGrowthKib => "memory_growth_kib",
            Self::WakeUps => "wake_ups",
            Self::KibPerChild => "kib_per_child",
            Self::DescriptorsPerChild => "descriptors_per_child",
            Self::Threads => "threads",
            Self::BeyondCgroupMicros => "beyond_cgroup_us",
            Self::WardenKib => "warden_pss_kib",
        }
    }
}

/// One line of the result.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Finding {
    pub(crate) row: Row,
    pub(crate) name: Name,
    /// In the order they are printed in.
    pub(crate) numbers: Vec<(Field, f64)>,
    /// Whether every budget of the row is kept. `None` for others, who have none.
    pub(crate) within_budget: Option<bool>,
}

impl Finding {
    pub(crate) fn new(row: Row, name: Name, numbers: Vec<(Field, f64)>) -> Self {
        Self {
            row,
            name,
            numbers,
            within_budget: None,
        }
    }

    /// Returns a number, where it was measured.
    pub(crate) fn number(&self, field: Field) -> Option<f64> {
        self.numbers
            .iter()
            .find(|(known, _)| *known == field)
            .map(|(_, number)| *number)
    }
}

/// Makes the findings of a row from paired samples.
pub(crate) fn of_samples(row: Row, unit: Unit, taken: &[(Name, Vec<f64>)]) -> Vec<Finding> {
    let floor = taken
        .iter()
        .find(|(name, _)| *name == Name::FLOOR)
        .map(|(_, samples)| samples);
    let found = taken.iter().map(|(name, samples)| {
        let mut numbers = vec![(unit.field(), median(samples))];
        if unit == Unit::Micros {
            numbers.push((Field::P95Micros, p95(samples)));
        }
        numbers.extend(floor.map(|floor| (Field::FloorRatio, paired_ratio(samples, floor))));
        Finding::new(row, *name, numbers)
    });
    found.collect()
}

/// Adds to the reaper's finding how much longer it takes than a control group, in the median of the differences of two
/// samples of the same round.
pub(crate) fn add_beyond_cgroup(found: &mut [Finding], taken: &[(Name, Vec<f64>)]) {
    let of = |tier| taken.iter().find(|(name, _)| *name == Name::project(tier));
    if let (Some((_, cgroup)), Some((name, reaper))) = (of(CGROUP), of(REAPER))
        && let Some(finding) = found.iter_mut().find(|finding| finding.name == *name)
    {
        let beyond: Vec<f64> = reaper
            .iter()
            .zip(cgroup)
            .map(|(reaper, cgroup)| reaper - cgroup)
            .collect();
        finding.numbers.push((Field::BeyondCgroupMicros, median(&beyond)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_reaper_takes_beyond_a_cgroup_is_a_median_of_differences() {
        let taken = [
            (Name::project(CGROUP), vec![10.0, 20.0, 30.0]),
            (Name::project(REAPER), vec![11.0, 25.0, 32.0]),
        ];
        let mut found = of_samples(Row::PtySpawn, Unit::Micros, &taken);
        add_beyond_cgroup(&mut found, &taken);
        assert_eq!(found[0].number(Field::BeyondCgroupMicros), None);
        assert_eq!(found[1].number(Field::BeyondCgroupMicros), Some(2.0));
    }

    #[test]
    fn this_project_is_no_peer_under_tokio_and_has_no_budget_there() {
        let name = Name::project_under_tokio(CGROUP);
        assert!(!name.is_a_peer() && !name.is_the_project());
        assert!(Name::peer("p").is_a_peer());
    }

    #[test]
    fn a_finding_holds_the_median_and_the_ratio_to_the_floor() {
        let taken = [
            (Name::FLOOR, vec![10.0, 20.0, 30.0]),
            (Name::project("cgroup"), vec![12.0, 22.0, 33.0]),
        ];
        let found = of_samples(Row::Spawn, Unit::Micros, &taken);
        let ours = &found[1];
        assert_eq!(ours.number(Field::MedianMicros), Some(22.0));
        assert_eq!(ours.number(Field::P95Micros), Some(33.0));
        assert_eq!(ours.number(Field::FloorRatio), Some(1.1));
        assert_eq!(found[0].number(Field::FloorRatio), Some(1.0));
    }

    #[test]
    fn a_throughput_has_no_time_fields() {
        let found = of_samples(
            Row::Collect,
            Unit::MebibytesPerSecond,
            &[(Name::FLOOR, vec![100.0])],
        );
        assert_eq!(found[0].number(Field::MebibytesPerSecond), Some(100.0));
        assert_eq!(found[0].number(Field::P95Micros), None);
    }
}
