//! The caller's entries, merged after the scrub.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use super::map::Environment;
#[cfg(unix)]
use super::scrub::Scrub;
use crate::EnvOverlay;

/// How a world compares the names of variables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NameCase {
    /// Byte by byte: POSIX.
    Exact,
    /// Without regard to case: Windows, where `Path` and `PATH` are one variable. The last spelling set is kept.
    ///
    /// Characters are compared by their upper case, one by one; bytes that are not UTF-8 are compared as they are.
    Insensitive,
}

/// Prints an overlay without its values, which may be credentials.
pub(crate) struct OverlayNames<'a>(pub(crate) &'a EnvOverlay);

impl fmt::Debug for OverlayNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = |value: &Option<_>| {
            if value.is_some() {
                format_args!("set")
            } else {
                format_args!("removed")
            }
        };
        f.debug_map()
            .entries(self.0.iter().map(|(name, value)| (name, change(value))))
            .finish()
    }
}

/// Puts an overlay on top of an environment.
///
/// An entry wins whatever its name is: a credential that a caller names, and a `DSH_` name, reach the child. `None`
/// removes a variable; where there is none of that name, it does nothing.
///
/// Where the world ignores case, an entry replaces each spelling of its name and brings its own. Should the overlay
/// itself spell one name in several ways, the removals are done first, so that removing `PATH` and setting `Path` sets
/// it; of several values the first in the order of the bytes is taken, as Node does it.
///
/// ```
/// use dsh_subprocess::{EnvOverlay, Environment, NameCase, merge};
///
/// let ambient = Environment::from_iter([("PATH".into(), r"C:\Windows".into()), ("OS".into(), "nt".into())]);
/// let overlay = EnvOverlay::from([("Path".into(), Some(r"C:\bin".into())), ("OS".into(), None)]);
///
/// let child = merge(ambient.clone(), &overlay, NameCase::Insensitive);
/// assert_eq!(child, Environment::from_iter([("Path".into(), r"C:\bin".into())]));
///
/// let child = merge(ambient, &overlay, NameCase::Exact);
/// assert_eq!(child.names().map(|name| name.to_string()).collect::<Vec<_>>(), ["PATH", "Path"]);
/// ```
#[must_use]
pub fn merge(mut environment: Environment, overlay: &EnvOverlay, case: NameCase) -> Environment {
    match case {
        NameCase::Exact => {
            for (name, value) in overlay {
                match value {
                    Some(value) => environment.insert(name.clone(), value.clone()),
                    None => environment.remove(name.clone()),
                };
            }
        }
        NameCase::Insensitive => {
            let named: BTreeSet<Cow<'_, [u8]>> = overlay.keys().map(|name| case.fold(name)).collect();
            environment.retain(|name| !named.contains(&case.fold(name)));
            let mut set = BTreeSet::new();
            for (name, value) in overlay {
                if let Some(value) = value
                    && set.insert(case.fold(name))
                {
                    environment.insert(name.clone(), value.clone());
                }
            }
        }
    }
    environment
}

/// Returns this process's environment after the default [`Scrub`], read now.
///
/// # Platform
///
/// Unix. A world of another kind gives its own variables to [`Scrub::apply`].
#[cfg(unix)]
pub fn scrubbed_parent_env() -> Environment {
    Scrub::default().apply_to_parent().environment
}

/// Returns this process's environment after the default [`Scrub`], read now, with an overlay on top.
///
/// It is what a child of the local world starts with, and a program that starts a process by other means gives it to
/// that process the same way:
///
/// ```
/// use std::process::Command;
/// use dsh_subprocess::{EnvOverlay, child_env};
///
/// let overlay = EnvOverlay::from([("SERVICE_TOKEN".into(), Some("for this child".into()))]);
/// let output = Command::new("sh")
///     .args(["-c", "printf %s \"$SERVICE_TOKEN\""])
///     .env_clear()
///     .envs(child_env(&overlay).os_pairs())
///     .output()?;
/// assert_eq!(output.stdout, b"for this child");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The overlay is not checked here: [`validate_overlay`](crate::validate_overlay) does that.
///
/// # Platform
///
/// Unix.
#[cfg(unix)]
pub fn child_env(overlay: &EnvOverlay) -> Environment {
    Scrub::default().child_env(overlay)
}
