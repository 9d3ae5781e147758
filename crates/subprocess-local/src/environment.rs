//! The environment that children start from: this process's own, scrubbed.

use std::ffi::OsString;
use std::sync::Mutex;

use dsh_subprocess::{EnvOverlay, Environment, NameCase, Scrub, merge};

use crate::reactor::lock;

/// The host's environment, read at each spawn and judged again only when it has changed.
///
/// Judging takes longer than all other preparations of a spawn together, and a host's environment hardly ever changes;
/// comparing it costs a fifth of that.
#[derive(Debug)]
pub(crate) struct AmbientEnvironment {
    scrub: Scrub,
    last: Mutex<Judged>,
}

#[derive(Default)]
struct Judged {
    read: Vec<(OsString, OsString)>,
    scrubbed: Environment,
}

/// Values are not to be printed, by whichever way this gets into a log.
impl std::fmt::Debug for Judged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.scrubbed.fmt(f)
    }
}

impl AmbientEnvironment {
    pub(crate) fn new(scrub: Scrub) -> Self {
        Self {
            scrub,
            last: Mutex::default(),
        }
    }

    /// Returns the environment of a child, with the caller's entries on top.
    pub(crate) fn child(&self, overlay: &EnvOverlay) -> Environment {
        let read: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let mut last = lock(&self.last);
        if last.read != read {
            let pairs = read
                .iter()
                .map(|(name, value)| (name.as_os_str().into(), value.as_os_str().into()));
            last.scrubbed = self.scrub.apply(pairs).environment;
            last.read = read;
        }
        let scrubbed = last.scrubbed.clone();
        drop(last);
        merge(scrubbed, overlay, NameCase::Exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the environment that is there: a test may not change it, since other threads read it.
    #[test]
    fn item_1_the_answer_is_the_scrubs_own_the_first_time_and_every_time() {
        let ambient = AmbientEnvironment::new(Scrub::default());
        let overlay = EnvOverlay::from([("X_TOKEN".into(), Some("given".into())), ("PATH".into(), None)]);
        let expected = Scrub::default().child_env(&overlay);
        assert_eq!(ambient.child(&overlay), expected);
        assert_eq!(ambient.child(&overlay), expected);
        assert_ne!(ambient.child(&EnvOverlay::new()), expected);
    }
}
