//! How a process ended.

use std::borrow::Cow;
use std::fmt;

/// How the target of a spawn ended. Exit facts only: why it was ended is known by whoever ended it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It called exit, or returned.
    Exited {
        /// The exit code as the world gives it: 0 to 255 on Unix, any `u32` on Windows.
        code: u32,
    },
    /// A signal ended it.
    Signaled {
        /// The signal's name.
        signal: SignalName,
        /// Whether the world wrote a core dump.
        core_dumped: bool,
    },
    /// It ended, and nobody can tell how: somebody else in the host took its status. Never reported as 0.
    Unknown,
}

impl Outcome {
    /// Returns the exit code, where there is one.
    pub fn code(&self) -> Option<u32> {
        match self {
            Self::Exited { code } => Some(*code),
            Self::Signaled { .. } | Self::Unknown => None,
        }
    }

    /// Returns the signal, where there is one.
    pub fn signal(&self) -> Option<&SignalName> {
        match self {
            Self::Signaled { signal, .. } => Some(signal),
            Self::Exited { .. } | Self::Unknown => None,
        }
    }

    /// Tells whether the process exited with code 0.
    pub fn success(&self) -> bool {
        self.code() == Some(0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exited with code {code}"),
            Self::Signaled { signal, core_dumped } => {
                write!(f, "ended by {signal}")?;
                if *core_dumped {
                    f.write_str(" (core dumped)")?;
                }
                Ok(())
            }
            Self::Unknown => f.write_str("ended, with a status that is not known"),
        }
    }
}

/// A signal by its name, as in `"SIGTERM"`: numbers differ between systems.
///
/// ```
/// use dsh_subprocess::SignalName;
/// assert_eq!(SignalName::from("SIGTERM").as_str(), "SIGTERM");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SignalName(Cow<'static, str>);

impl SignalName {
    /// Returns the name, with its `SIG` prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for SignalName {
    fn from(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl From<String> for SignalName {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl fmt::Debug for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
