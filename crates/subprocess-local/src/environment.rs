//! The environment that children start from: this process's own, or one that the caller gave, scrubbed.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use dsh_subprocess::{EnvOverlay, Environment, NameCase, Scrub, merge};

use crate::reactor::lock;

type Pairs = Vec<(OsString, OsString)>;

/// Whose environment the children of one reference to a runtime start from.
#[derive(Clone, Debug, Default)]
pub(crate) enum Ambient {
    /// This process's, as it is at each spawn.
    #[default]
    Host,
    /// One that was given. This process's is not looked at.
    Given(Arc<Judged>),
}

impl Ambient {
    /// Returns a variable as it was before the scrub.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        match self {
            Self::Host => std::env::var_os(name),
            Self::Given(given) => {
                let found = given.read.iter().find(|(candidate, _)| candidate == name);
                found.map(|(_, value)| value.clone())
            }
        }
    }

    /// Returns the directory for temporary files (`environ(7)`, `TMPDIR`).
    pub(crate) fn temporary_directory(&self) -> PathBuf {
        self.variable("TMPDIR")
            .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    }
}

/// An environment, and what the scrub leaves of it.
#[derive(Default)]
pub(crate) struct Judged {
    read: Arc<Pairs>,
    scrubbed: Environment,
}

impl Judged {
    fn new(scrub: &Scrub, read: Arc<Pairs>) -> Self {
        let pairs = read
            .iter()
            .map(|(name, value)| (name.as_os_str().into(), value.as_os_str().into()));
        let scrubbed = scrub.apply(pairs).environment;
        Self { read, scrubbed }
    }
}

/// Values are not to be printed, by whichever way this gets into a log.
impl fmt::Debug for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scrubbed.fmt(f)
    }
}

/// The environments of a runtime's children, each judged again only when it has changed.
///
/// Judging takes longer than all other preparations of a spawn together, and an environment hardly ever changes; comparing it
/// costs a fifth of that.
#[derive(Debug)]
pub(crate) struct Environments {
    scrub: Scrub,
    /// The host's, when it was last read.
    host: Mutex<Arc<Judged>>,
    /// The one that was given last.
    given: Mutex<Arc<Judged>>,
}

impl Environments {
    pub(crate) fn new(scrub: Scrub) -> Self {
        Self {
            scrub,
            host: Mutex::default(),
            given: Mutex::default(),
        }
    }

    /// Judges an environment that the caller gives, unless it was the last one to be given.
    pub(crate) fn give(&self, read: Arc<Pairs>) -> Ambient {
        Ambient::Given(self.judged(&self.given, read))
    }

    /// Returns the environment of a child, with the caller's entries on top.
    pub(crate) fn child(&self, ambient: &Ambient, overlay: &EnvOverlay) -> Environment {
        let scrubbed = match ambient {
            Ambient::Host => {
                let read = Arc::new(std::env::vars_os().collect());
                self.judged(&self.host, read).scrubbed.clone()
            }
            Ambient::Given(given) => given.scrubbed.clone(),
        };
        merge(scrubbed, overlay, NameCase::Exact)
    }

    fn judged(&self, last: &Mutex<Arc<Judged>>, read: Arc<Pairs>) -> Arc<Judged> {
        let mut last = lock(last);
        if !Arc::ptr_eq(&last.read, &read) && last.read != read {
            *last = Arc::new(Judged::new(&self.scrub, read));
        }
        Arc::clone(&last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the environment that is there: a test may not change it, since other threads read it.
    #[test]
    fn item_1_the_answer_is_the_scrubs_own_the_first_time_and_every_time() {
        let environments = Environments::new(Scrub::default());
        let overlay = EnvOverlay::from([("X_TOKEN".into(), Some("given".into())), ("PATH".into(), None)]);
        let expected = Scrub::default().child_env(&overlay);
        for _ in 0..2 {
            assert_eq!(environments.child(&Ambient::Host, &overlay), expected);
        }
        assert_ne!(environments.child(&Ambient::Host, &EnvOverlay::new()), expected);
    }

    fn pairs(pairs: &[(&str, &str)]) -> Arc<Pairs> {
        Arc::new(
            pairs
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    #[test]
    fn item_1_a_given_environment_is_scrubbed_and_nothing_is_added_to_it() {
        let environments = Environments::new(Scrub::default());
        let ambient = environments.give(pairs(&[("X_TOKEN", "secret"), ("LANG", "C"), ("DSH_X", "own")]));
        let child = environments.child(&ambient, &EnvOverlay::new());
        assert_eq!(child, Environment::from_iter([("LANG".into(), "C".into())]));
        assert_eq!(ambient.variable("X_TOKEN"), Some("secret".into()));
        assert_eq!(ambient.temporary_directory(), PathBuf::from("/tmp"));
        assert!(!format!("{ambient:?}").contains("secret"));
        let empty = environments.give(pairs(&[]));
        assert!(environments.child(&empty, &EnvOverlay::new()).is_empty());
    }

    #[test]
    fn equal_content_is_judged_once_whoever_gives_it() {
        let environments = Environments::new(Scrub::default());
        let judged = |ambient| match ambient {
            Ambient::Given(judged) => judged,
            Ambient::Host => panic!("it was given"),
        };
        let first = judged(environments.give(pairs(&[("LANG", "C")])));
        assert!(Arc::ptr_eq(
            &first,
            &judged(environments.give(pairs(&[("LANG", "C")])))
        ));
        let other = judged(environments.give(pairs(&[("LANG", "de_DE")])));
        assert!(!Arc::ptr_eq(&first, &other));
        let overlay = EnvOverlay::new();
        assert_ne!(
            environments.child(&Ambient::Given(first), &overlay),
            environments.child(&Ambient::Given(other), &overlay)
        );
    }
}
