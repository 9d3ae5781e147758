//! The environment a child gets: the host's own, without its credentials, with the caller's entries on top.
//!
//! One definition serves every spawn: the runtimes use it, and so can a program that starts processes by other means.
//!
//! 1. [`Scrub`] reads an environment and leaves out credentials and the managed `DSH_` namespace, by name (`names`)
//!    and by value (`shapes`, `tokens`, `settings`, `urls`).
//! 2. [`merge`] puts the caller's [`EnvOverlay`](crate::EnvOverlay) on top. Whatever a caller names wins.
//!
//! Nothing is cached: each call reads the environment as it is then. Everything works on bytes, because neither names
//! nor values need be UTF-8, and in time linear in their length.

mod map;
mod names;
mod overlay;
mod scrub;
mod settings;
mod shapes;
#[cfg(test)]
mod tests;
mod tokens;
mod urls;

pub use map::{EnvIntoIter, EnvIter, Environment};
pub use names::{DSH_ENV_PREFIX, SENSITIVE_ENV_PATTERN};
pub(crate) use overlay::OverlayNames;
pub use overlay::{NameCase, merge};
#[cfg(unix)]
pub use overlay::{child_env, scrubbed_parent_env};
pub use scrub::{DropReason, Dropped, Scrub, ScrubRule, Scrubbed};
