//! The world of this machine.
#![forbid(unsafe_code)]

mod builder;
mod diagnosis;
mod runtime;

pub use builder::{KernelFeature, LocalRuntimeBuilder, OwnershipChoice};
pub use diagnosis::{Candidate, Diagnosis, FeatureReport, Limit, diagnose};
pub use runtime::LocalRuntime;
