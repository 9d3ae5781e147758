//! The world of this machine: whole process trees, owned by control group, by reaper, or by process group and session.
//!
//! [`LocalRuntime`] implements the seam, `dsh-subprocess`. It makes no assumption about an executor: it may be used from
//! any thread, inside or outside of one.
#![forbid(unsafe_code)]

mod blocking;
mod builder;
mod choice;
mod diagnosis;
mod drive;
mod driver;
mod environment;
mod failure;
mod feed;
mod janitor;
mod ladder;
mod launch;
mod lookup;
mod machine;
mod orphans;
mod owner;
mod probe;
mod promise;
mod raw_pipe;
mod reactor;
mod runtime;
mod spill;
mod stream;
mod terminal;
mod tree;
mod warden;

pub use builder::{
    DataTransport, KernelFeature, LocalRuntimeBuilder, OwnershipChoice, SessionChoice, UnknownKernelFeature,
};
pub use diagnosis::{Candidate, Diagnosis, Facility, FeatureReport, Limit, diagnose};
pub use runtime::LocalRuntime;

/// For tests alone: where a host can be killed.
#[cfg(feature = "steps")]
pub use dsh_subprocess_sys::steps::Step;

/// Runs the examples of the project's front page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;

/// Runs the example of the page about terminals.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/terminals.md")]
struct TerminalsPage;

/// Runs the example of the page about ownership.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/ownership.md")]
struct OwnershipPage;
