//! `cargo xtask check`: the rules between the crates that the compiler does not enforce.
//!
//! [`rooms`] holds the rules about dependencies, [`features`] the one about features for tests, [`sources`] those about what may
//! stand in a file.

mod features;
mod rooms;
mod sources;

use std::fmt;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    /// A package, or a file and a line.
    place: String,
    /// What is wrong there.
    what: String,
}

impl Violation {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.what)
    }
}

/// Checks every rule, prints each violation, and fails if there is one.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut violations = rooms::violations(workspace.packages());
    violations.extend(features::violations(workspace.packages()));
    let sources = sources::inspect(workspace)?;
    violations.extend(sources.violations);
    for violation in &violations {
        eprintln!("{violation}");
    }
    if !violations.is_empty() {
        bail!("rules broken between the crates: {}", violations.len());
    }
    println!(
        "{} packages and {} source files keep the rules",
        workspace.packages().len(),
        sources.files
    );
    Ok(())
}
