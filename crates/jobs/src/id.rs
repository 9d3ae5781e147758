//! Names: of owners, and of jobs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// Who started a job: a session of an agent, a connection, a tab. The text is the caller's own and is compared byte by
/// byte.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OwnerId(Arc<str>);

impl OwnerId {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for OwnerId {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl From<String> for OwnerId {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

impl From<Arc<str>> for OwnerId {
    fn from(text: Arc<str>) -> Self {
        Self(text)
    }
}

/// The name of a job, as in `bash-3`: its kind, a hyphen, and a number from 1 that counts the jobs of that kind in one
/// registry. No registry gives a name twice.
///
/// ```
/// use dsh_jobs::JobId;
///
/// let id: JobId = "bash-3".parse()?;
/// assert_eq!((id.kind(), id.number(), id.to_string()), ("bash", 3, "bash-3".to_owned()));
/// assert!("bash".parse::<JobId>().is_err());
/// # Ok::<_, dsh_jobs::ParseJobIdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobId(Arc<str>);

impl JobId {
    /// Names the job `number` of a kind.
    pub(crate) fn new(kind: &str, number: u64) -> Self {
        Self(Arc::from(format!("{kind}-{number}")))
    }

    /// Returns the whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the kind.
    pub fn kind(&self) -> &str {
        self.parts().0
    }

    /// Returns the number within the kind.
    pub fn number(&self) -> u64 {
        self.parts().1
    }

    fn parts(&self) -> (&str, u64) {
        split(&self.0).unwrap_or_else(|| unreachable!("both ways to make an id give it a kind and a number"))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for JobId {
    type Err = ParseJobIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match split(text) {
            Some(_) => Ok(Self(Arc::from(text))),
            None => Err(ParseJobIdError(text.to_owned())),
        }
    }
}

/// A text that can be the id of no job.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{0}` is no id of a job: it should be a kind, a hyphen and a number from 1, as in `bash-1`")]
pub struct ParseJobIdError(String);

/// Splits an id at its last hyphen, since a kind may have some of its own. The number is only taken as it is written by
/// [`JobId::new`], so that two spellings never name one job.
fn split(id: &str) -> Option<(&str, u64)> {
    let (kind, digits) = id.rsplit_once('-')?;
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let number = digits.parse().ok()?;
    (canonical && !kind.is_empty()).then_some((kind, number))
}
