//! An environment as a map that does not print its values.

use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map};
use std::fmt;

use super::overlay::NameCase;
use crate::WorldString;

/// The names and values that a process starts with, ordered by name.
///
/// Its `Debug` output has the names alone: an environment may end in a log, a value may be a credential.
///
/// ```
/// use dsh_subprocess::Environment;
///
/// let mut environment = Environment::new();
/// environment.insert("LANG", "C.UTF-8");
/// assert_eq!(environment.get("LANG").unwrap(), &"C.UTF-8".into());
/// assert_eq!(format!("{environment:?}"), r#"Environment {"LANG"}"#);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<WorldString, WorldString>);

impl Environment {
    /// Makes an environment without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value of a variable, whose name is compared byte by byte.
    pub fn get(&self, name: impl Into<WorldString>) -> Option<&WorldString> {
        self.0.get(&name.into())
    }

    /// Finds a variable as a world with this [`NameCase`] would, and returns its name as spelt here and its value.
    ///
    /// With [`NameCase::Insensitive`] the exact spelling is preferred, and the search takes a step for each variable.
    ///
    /// ```
    /// use dsh_subprocess::{Environment, NameCase};
    ///
    /// let environment = Environment::from_iter([("Path".into(), r"C:\bin".into())]);
    /// assert!(environment.find("PATH", NameCase::Exact).is_none());
    /// let (name, value) = environment.find("PATH", NameCase::Insensitive).unwrap();
    /// assert_eq!((name.as_bytes(), value.as_bytes()), (&b"Path"[..], &br"C:\bin"[..]));
    /// ```
    pub fn find(&self, name: impl Into<WorldString>, case: NameCase) -> Option<(&WorldString, &WorldString)> {
        let name = name.into();
        self.0.get_key_value(&name).or_else(|| match case {
            NameCase::Exact => None,
            NameCase::Insensitive => self.0.iter().find(|(candidate, _)| case.same(candidate, &name)),
        })
    }

    /// Tells whether there is a variable of exactly this name.
    pub fn contains(&self, name: impl Into<WorldString>) -> bool {
        self.get(name).is_some()
    }

    /// Sets a variable and returns the value it had.
    pub fn insert(
        &mut self,
        name: impl Into<WorldString>,
        value: impl Into<WorldString>,
    ) -> Option<WorldString> {
        self.0.insert(name.into(), value.into())
    }

    /// Sets a variable unless there is one of this name, and tells whether it did.
    pub(super) fn insert_new(&mut self, name: WorldString, value: WorldString) -> bool {
        match self.0.entry(name) {
            btree_map::Entry::Vacant(entry) => {
                entry.insert(value);
                true
            }
            btree_map::Entry::Occupied(_) => false,
        }
    }

    /// Removes a variable of exactly this name and returns the value it had.
    pub fn remove(&mut self, name: impl Into<WorldString>) -> Option<WorldString> {
        self.0.remove(&name.into())
    }

    /// Removes what does not satisfy a condition.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&WorldString) -> bool) {
        self.0.retain(|name, _| keep(name));
    }

    /// Returns the number of variables.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there is no variable.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the variables, ordered by the bytes of their names.
    pub fn iter(&self) -> EnvIter<'_> {
        EnvIter(self.0.iter())
    }

    /// Returns the names in order.
    pub fn names(&self) -> impl Iterator<Item = &WorldString> {
        self.0.keys()
    }

    /// Returns the variables as this machine's strings, as [`std::process::Command::envs`] takes them.
    ///
    /// # Platform
    ///
    /// Unix, where a world's strings and this machine's are the same bytes.
    #[cfg(unix)]
    pub fn os_pairs(&self) -> impl Iterator<Item = (&std::ffi::OsStr, &std::ffi::OsStr)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment ")?;
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A later pair replaces an earlier one of the same name, as in a map of the standard library.
impl FromIterator<(WorldString, WorldString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (WorldString, WorldString)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Extend<(WorldString, WorldString)> for Environment {
    fn extend<I: IntoIterator<Item = (WorldString, WorldString)>>(&mut self, pairs: I) {
        self.0.extend(pairs);
    }
}

/// The variables of a borrowed [`Environment`].
#[derive(Clone)]
pub struct EnvIter<'a>(btree_map::Iter<'a, WorldString, WorldString>);

/// The variables of an [`Environment`] that was consumed.
pub struct EnvIntoIter(btree_map::IntoIter<WorldString, WorldString>);

impl<'a> Iterator for EnvIter<'a> {
    type Item = (&'a WorldString, &'a WorldString);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl Iterator for EnvIntoIter {
    type Item = (WorldString, WorldString);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for EnvIter<'_> {}
impl ExactSizeIterator for EnvIntoIter {}

impl fmt::Debug for EnvIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnvIter({} left)", self.len())
    }
}

impl fmt::Debug for EnvIntoIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnvIntoIter({} left)", self.len())
    }
}

impl<'a> IntoIterator for &'a Environment {
    type Item = (&'a WorldString, &'a WorldString);
    type IntoIter = EnvIter<'a>;

    fn into_iter(self) -> EnvIter<'a> {
        self.iter()
    }
}

impl IntoIterator for Environment {
    type Item = (WorldString, WorldString);
    type IntoIter = EnvIntoIter;

    fn into_iter(self) -> EnvIntoIter {
        EnvIntoIter(self.0.into_iter())
    }
}

/// The pairs as owned strings of this machine, for an interface that keeps them.
#[cfg(unix)]
impl From<Environment> for Vec<(std::ffi::OsString, std::ffi::OsString)> {
    fn from(environment: Environment) -> Self {
        environment
            .os_pairs()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

impl NameCase {
    /// Tells whether two names are one variable in a world of this kind.
    pub(super) fn same(self, one: &WorldString, other: &WorldString) -> bool {
        match self {
            Self::Exact => one == other,
            Self::Insensitive => {
                one.as_bytes().eq_ignore_ascii_case(other.as_bytes())
                    || (!(one.as_bytes().is_ascii() && other.as_bytes().is_ascii())
                        && upper(one.as_bytes()) == upper(other.as_bytes()))
            }
        }
    }

    /// Returns a form of a name that two spellings of one variable share.
    pub(super) fn fold(self, name: &WorldString) -> Cow<'_, [u8]> {
        match self {
            Self::Exact => Cow::Borrowed(name.as_bytes()),
            Self::Insensitive => Cow::Owned(upper(name.as_bytes())),
        }
    }
}

/// Upper case as Windows compares names: character by character, and a character whose upper case is several
/// characters (ß) stays. Bytes that are not UTF-8 stay too.
fn upper(name: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            let mut mapped = character.to_uppercase();
            let single = match (mapped.next(), mapped.next()) {
                (Some(upper), None) => upper,
                _ => character,
            };
            folded.extend_from_slice(single.encode_utf8(&mut [0; 4]).as_bytes());
        }
        folded.extend_from_slice(chunk.invalid());
    }
    folded
}
