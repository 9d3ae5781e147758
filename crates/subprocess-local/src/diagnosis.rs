//! What this machine can do.

use dsh_subprocess::Mechanism;

/// What this machine gives a runtime, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The mechanism that [`OwnershipChoice::Auto`](crate::OwnershipChoice::Auto) chooses here.
    pub mechanism: Mechanism,
    /// Why it is that one.
    pub why: String,
    /// What the mechanism does not guarantee.
    pub weaknesses: Vec<String>,
    /// Every mechanism, strongest first.
    pub candidates: Vec<Candidate>,
    /// The kernel features that a runtime uses.
    pub features: Vec<FeatureReport>,
    /// The limits that bear on running processes.
    pub limits: Vec<Limit>,
    /// What would make this machine better at it.
    pub improvements: Vec<String>,
}

/// One mechanism and whether it works here.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Whether its probe succeeded.
    pub works: bool,
    /// What the probe found.
    pub finding: String,
}

/// One kernel feature.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FeatureReport {
    /// Its name, as in [`KernelFeature`](crate::KernelFeature).
    pub name: String,
    /// Whether it is there.
    pub present: bool,
    /// What happens without it.
    pub fallback: String,
}

/// One limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// What is limited.
    pub name: String,
    /// The value, with its unit.
    pub value: String,
}

/// Probes this machine. It starts one process that ends at once, and leaves nothing behind.
pub fn diagnose() -> Diagnosis {
    Diagnosis {
        mechanism: Mechanism::ProcessGroup,
        why: String::new(),
        weaknesses: Vec::new(),
        candidates: Vec::new(),
        features: Vec::new(),
        limits: Vec::new(),
        improvements: Vec::new(),
    }
}
