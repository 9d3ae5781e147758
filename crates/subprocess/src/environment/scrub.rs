//! The scrub: what an environment loses before a child gets it.

use std::collections::BTreeSet;
use std::fmt;

use super::map::Environment;
#[cfg(unix)]
use super::overlay::{NameCase, merge};
use super::{names, shapes, urls};
#[cfg(unix)]
use crate::EnvOverlay;
use crate::WorldString;

/// What is left out of an environment before it reaches a child.
///
/// Two rules always hold: names that contain `KEY`, `PASSWORD`, `SECRET` or `TOKEN` in any case are dropped
/// ([`SENSITIVE_ENV_PATTERN`](crate::SENSITIVE_ENV_PATTERN)), and so are names that start with `DSH_` in any case. The
/// rest is in the [`ScrubRule`]s, which are on by default and can be switched off one by one.
///
/// The order is fixed. A `DSH_` name is dropped. Then a name [kept](Self::keep) by the user passes and one
/// [dropped](Self::also_drop) by the user goes. Then names are judged, then values. The variables that a child breaks
/// without (`PATH`, `HOME`, `USER`, `LANG`, `TMPDIR`, `TERM`, `SHELL`, `SSH_AUTH_SOCK`, …) pass unchanged.
///
/// An entry with an empty name, a name with `=`, or a NUL byte anywhere is dropped, because no program can be given it
/// or ask for it. Of several entries with one name the first is taken, as `getenv` does; when one of them is dropped,
/// the name is.
///
/// It is a heuristic. A credential with an ordinary name and an ordinary look, or encoded within something else, passes.
///
/// ```
/// use dsh_subprocess::{DropReason, Scrub};
///
/// let scrubbed = Scrub::default().keep("PUBLIC_KEY_ID").apply([
///     ("HOME".into(), "/home/ada".into()),
///     ("OPENAI_API_KEY".into(), "abc".into()),
///     ("PUBLIC_KEY_ID".into(), "7".into()),
///     ("https_proxy".into(), "http://ada:pw@proxy:3128".into()),
/// ]);
/// let left: Vec<_> = scrubbed.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
/// assert_eq!(left, ["HOME=/home/ada", "PUBLIC_KEY_ID=7", "https_proxy=http://proxy:3128"]);
/// assert_eq!(scrubbed.dropped[0].name, "OPENAI_API_KEY".into());
/// assert_eq!(scrubbed.dropped[0].reason, DropReason::SensitiveName);
/// assert_eq!(scrubbed.cleaned, ["https_proxy".into()]);
/// ```
#[derive(Clone, Debug)]
pub struct Scrub {
    rules: BTreeSet<ScrubRule>,
    kept: Vec<WorldString>,
    unwanted: Vec<WorldString>,
}

/// A rule of the [`Scrub`] beyond the names that are always dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ScrubRule {
    /// Drops further names: passphrases, `*_PASS`, `*_PWD`, credentials, authentication settings, cookies, personal
    /// access tokens. A name that tells where such a thing is (`*_FILE`, `*_PATH`, `*_SOCK`, …) passes.
    ExtraNames,
    /// Drops values that look like a credential: private keys, tokens with a known prefix, JSON web tokens,
    /// `Authorization` headers and values, `password=…` settings.
    ValueShapes,
    /// Takes the credentials out of URLs: a user with a password, a lone user of an `http`, `https`, `ws` or `wss`
    /// URL (it is a token as often as not) or of a proxy, and parameters such as `token=`. A lone user of another
    /// scheme (`ssh://git@host`, `postgres://ada@host`) stays: it is a name, and the URL means something else without
    /// it. What cannot be taken apart with certainty, or would be useless without (a webhook, a data source name), is
    /// dropped as a whole.
    UrlCredentials,
    /// Keeps names that match by accident, such as `TOKENIZERS_PARALLELISM`. Their values are still looked at.
    HarmlessNames,
}

impl ScrubRule {
    /// Every rule.
    pub const ALL: [Self; 4] = [
        Self::ExtraNames,
        Self::ValueShapes,
        Self::UrlCredentials,
        Self::HarmlessNames,
    ];
}

/// Why a variable was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// The name contains `KEY`, `PASSWORD`, `SECRET` or `TOKEN`.
    SensitiveName,
    /// The name is in the managed `DSH_` namespace.
    ManagedName,
    /// The name is another word for a credential.
    CredentialName,
    /// The user asked for it with [`Scrub::also_drop`].
    Unwanted,
    /// The value holds a private key.
    PrivateKey,
    /// The value holds a token of a known form.
    Token,
    /// The value holds an `Authorization` header, or what follows one.
    Authorization,
    /// The value holds a setting such as `password=…`.
    Setting,
    /// The value holds credentials in a URL, or what may be some, that could not be taken out.
    UrlCredentials,
    /// `GIT_CONFIG_COUNT` counted a variable that was dropped; git does not run with the rest.
    Incomplete,
    /// The name is empty or contains `=`, or there is a NUL byte.
    Malformed,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SensitiveName => "the name contains KEY, PASSWORD, SECRET or TOKEN",
            Self::ManagedName => "the name starts with DSH_",
            Self::CredentialName => "the name is that of a credential",
            Self::Unwanted => "the name is in the user's list",
            Self::PrivateKey => "the value holds a private key",
            Self::Token => "the value holds a token",
            Self::Authorization => "the value holds an authorization header",
            Self::Setting => "the value holds a password or secret setting",
            Self::UrlCredentials => "the value holds credentials in a URL",
            Self::Incomplete => "it counts a variable that was dropped",
            Self::Malformed => "it is malformed",
        })
    }
}

/// A variable that was dropped. Its value is not here.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Dropped {
    /// The name as it was spelt.
    pub name: WorldString,
    /// Why.
    pub reason: DropReason,
}

/// An environment after the scrub.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Scrubbed {
    /// What is left.
    pub environment: Environment,
    /// What was dropped, ordered by name.
    pub dropped: Vec<Dropped>,
    /// The names of variables that stayed and whose value lost its credentials, ordered.
    pub cleaned: Vec<WorldString>,
}

/// Every rule on, nothing kept or dropped beyond them.
impl Default for Scrub {
    fn default() -> Self {
        Self {
            rules: ScrubRule::ALL.into(),
            kept: Vec::new(),
            unwanted: Vec::new(),
        }
    }
}

/// What becomes of one variable.
enum Verdict {
    Passes,
    Changes(Vec<u8>),
    Drops(DropReason),
}

impl Scrub {
    /// Makes a scrub with no [`ScrubRule`]: only the names that are always dropped.
    pub fn minimal() -> Self {
        Self {
            rules: BTreeSet::new(),
            ..Self::default()
        }
    }

    /// Switches a rule on.
    #[must_use]
    pub fn with(mut self, rule: ScrubRule) -> Self {
        self.rules.insert(rule);
        self
    }

    /// Switches a rule off.
    #[must_use]
    pub fn without(mut self, rule: ScrubRule) -> Self {
        self.rules.remove(&rule);
        self
    }

    /// Keeps a variable, name and value as they are, whatever the rules say. ASCII case is ignored.
    ///
    /// It has no effect on a `DSH_` name: such a one reaches a child only as an explicit entry. The last of `keep` and
    /// [`also_drop`](Self::also_drop) holds for a name given to both.
    #[must_use]
    pub fn keep(mut self, name: impl Into<WorldString>) -> Self {
        let name = name.into();
        self.unwanted.retain(|unwanted| !same(unwanted, name.as_bytes()));
        self.kept.push(name);
        self
    }

    /// Drops a variable that the rules would let pass. ASCII case is ignored.
    #[must_use]
    pub fn also_drop(mut self, name: impl Into<WorldString>) -> Self {
        let name = name.into();
        self.kept.retain(|kept| !same(kept, name.as_bytes()));
        self.unwanted.push(name);
        self
    }

    /// Tells whether a variable of this name is dropped whatever its value, and why.
    ///
    /// ```
    /// use dsh_subprocess::{DropReason, Scrub};
    ///
    /// let scrub = Scrub::default();
    /// assert_eq!(scrub.name_is_dropped(b"npm_config__auth"), Some(DropReason::CredentialName));
    /// assert_eq!(scrub.name_is_dropped(b"GPG_TTY"), None);
    /// ```
    pub fn name_is_dropped(&self, name: &[u8]) -> Option<DropReason> {
        self.judge_name(name, &name.to_ascii_uppercase())
    }

    /// Scrubs an environment.
    ///
    /// The bytes of what passes unchanged are shared, not copied.
    pub fn apply(&self, environment: impl IntoIterator<Item = (WorldString, WorldString)>) -> Scrubbed {
        let mut scrubbed = Scrubbed::default();
        let mut upper = Vec::with_capacity(64);
        for (name, value) in environment {
            upper.clear();
            upper.extend(name.as_bytes().iter().map(u8::to_ascii_uppercase));
            match self.judge(name.as_bytes(), &upper, value.as_bytes()) {
                Verdict::Passes => {
                    scrubbed.environment.insert_new(name, value);
                }
                Verdict::Changes(cleaned) => {
                    if scrubbed.environment.insert_new(name.clone(), cleaned.into()) {
                        scrubbed.cleaned.push(name);
                    }
                }
                Verdict::Drops(reason) => scrubbed.dropped.push(Dropped { name, reason }),
            }
        }
        scrubbed.settle();
        scrubbed
    }

    /// Scrubs this process's own environment, read now.
    ///
    /// # Platform
    ///
    /// Unix.
    #[cfg(unix)]
    pub fn apply_to_parent(&self) -> Scrubbed {
        self.apply(std::env::vars_os().map(|(name, value)| (name.into(), value.into())))
    }

    /// Returns this process's environment after this scrub, read now, with an overlay on top.
    ///
    /// # Platform
    ///
    /// Unix.
    #[cfg(unix)]
    pub fn child_env(&self, overlay: &EnvOverlay) -> Environment {
        merge(self.apply_to_parent().environment, overlay, NameCase::Exact)
    }

    /// Judges a name, given as it is and in upper case.
    fn judge_name(&self, name: &[u8], upper: &[u8]) -> Option<DropReason> {
        if name.is_empty() || name.iter().any(|byte| matches!(byte, b'=' | 0)) {
            Some(DropReason::Malformed)
        } else if names::managed(upper) {
            Some(DropReason::ManagedName)
        } else if self.keeps(name) {
            None
        } else if self.unwanted.iter().any(|unwanted| same(unwanted, name)) {
            Some(DropReason::Unwanted)
        } else {
            // The lists are looked at last: few names match a rule, and only those are searched for in them.
            let reason = if names::sensitive(upper) {
                DropReason::SensitiveName
            } else if self.has(ScrubRule::ExtraNames) && names::credential(upper) && !names::essential(upper)
            {
                DropReason::CredentialName
            } else {
                return None;
            };
            (!(self.has(ScrubRule::HarmlessNames) && names::harmless(upper))).then_some(reason)
        }
    }

    fn judge(&self, name: &[u8], upper: &[u8], value: &[u8]) -> Verdict {
        if let Some(reason) = self.judge_name(name, upper) {
            return Verdict::Drops(reason);
        }
        if memchr::memchr(0, value).is_some() {
            return Verdict::Drops(DropReason::Malformed);
        }
        if value.is_empty() || names::essential(upper) || self.keeps(name) {
            return Verdict::Passes;
        }
        let mut cleaned = None;
        if self.has(ScrubRule::UrlCredentials) {
            match urls::clean(upper, value) {
                urls::Cleaned::Unchanged => {}
                urls::Cleaned::Changed(bytes) => cleaned = Some(bytes),
                urls::Cleaned::Hopeless => return Verdict::Drops(DropReason::UrlCredentials),
            }
        }
        if self.has(ScrubRule::ValueShapes)
            && let Some(reason) = shapes::credential(cleaned.as_deref().unwrap_or(value))
        {
            return Verdict::Drops(reason);
        }
        cleaned.map_or(Verdict::Passes, Verdict::Changes)
    }

    fn has(&self, rule: ScrubRule) -> bool {
        self.rules.contains(&rule)
    }

    fn keeps(&self, name: &[u8]) -> bool {
        self.kept.iter().any(|kept| same(kept, name))
    }
}

impl Scrubbed {
    /// Removes what must go with something dropped, and puts the lists in order.
    fn settle(&mut self) {
        let count = WorldString::from(names::GIT_CONFIG_COUNT);
        if self
            .dropped
            .iter()
            .any(|dropped| names::counted_by_git(&dropped.name.as_bytes().to_ascii_uppercase()))
            && self.environment.remove(count.clone()).is_some()
        {
            self.dropped.push(Dropped {
                name: count,
                reason: DropReason::Incomplete,
            });
        }
        for dropped in &self.dropped {
            self.environment.remove(dropped.name.clone());
        }
        self.dropped.sort_by(|one, other| one.name.cmp(&other.name));
        self.dropped.dedup_by(|later, earlier| later.name == earlier.name);
        self.cleaned
            .retain(|name| self.environment.contains(name.clone()));
        self.cleaned.sort();
    }
}

fn same(listed: &WorldString, name: &[u8]) -> bool {
    listed.as_bytes().eq_ignore_ascii_case(name)
}
