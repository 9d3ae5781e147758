//! The mechanisms that may own a tree.

use dsh_subprocess::Mechanism;
use dsh_subprocess_local::{Candidate, OwnershipChoice, diagnose};

/// A tier by its name in the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tier {
    Cgroup,
    Reaper,
    ProcessGroup,
}

/// The names of the tiers that have budgets of their own.
pub(crate) const CGROUP: &str = "cgroup";
pub(crate) const REAPER: &str = "reaper";

impl Tier {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cgroup => CGROUP,
            Self::Reaper => REAPER,
            Self::ProcessGroup => "process_group",
        }
    }

    /// Returns what is asked of a runtime that is to have it.
    pub(crate) fn choice(self) -> OwnershipChoice {
        match self {
            Self::Cgroup => OwnershipChoice::Cgroup,
            Self::Reaper => OwnershipChoice::Reaper,
            Self::ProcessGroup => OwnershipChoice::ProcessGroup,
        }
    }

    /// Finds a tier by its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Cgroup, Self::Reaper, Self::ProcessGroup]
            .into_iter()
            .find(|tier| tier.name() == name)
    }
}

/// Returns the tiers that work here.
pub(crate) fn tiers() -> Vec<Tier> {
    let candidates = diagnose().candidates;
    let works = |mechanism| move |candidate: &Candidate| candidate.works && candidate.mechanism == mechanism;
    let cgroup = candidates
        .iter()
        .any(works(Mechanism::Cgroup))
        .then_some(Tier::Cgroup);
    let reaper = candidates
        .iter()
        .any(works(Mechanism::Reaper))
        .then_some(Tier::Reaper);
    cgroup
        .into_iter()
        .chain(reaper)
        .chain([Tier::ProcessGroup])
        .collect()
}

/// Returns the tiers that end their trees when the host is killed.
pub(crate) fn owning_tiers() -> Vec<Tier> {
    let mut tiers = tiers();
    tiers.retain(|tier| *tier != Tier::ProcessGroup);
    tiers
}
