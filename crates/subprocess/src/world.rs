//! Words of a world: byte strings, so that a client on one system can name things on another.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

/// An argument, or the name or value of a variable, as the world's own bytes.
///
/// Nothing is assumed about the encoding: a Unix world takes any bytes but NUL, a world with another encoding
/// documents its own. Cloning is cheap (the bytes are shared).
///
/// ```
/// use dsh_subprocess::WorldString;
/// let word = WorldString::from("--color=never");
/// assert_eq!(word.as_bytes(), b"--color=never");
/// assert_eq!(word.to_string_lossy(), "--color=never");
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorldString(Bytes);

impl WorldString {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text, with U+FFFD in place of bytes that are not UTF-8.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// Tells whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for WorldString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Display for WorldString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_string_lossy())
    }
}

/// A path in the world's own spelling.
///
/// It names a place in the world that runs the process; nothing about it may be opened on this machine without
/// asking that world.
///
/// ```
/// use dsh_subprocess::WorldPath;
/// assert_eq!(WorldPath::from("/srv/build").as_bytes(), b"/srv/build");
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorldPath(WorldString);

impl WorldPath {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the text, with U+FFFD in place of bytes that are not UTF-8.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        self.0.to_string_lossy()
    }

    /// Returns the path as a plain string of the world.
    pub fn as_world_string(&self) -> &WorldString {
        &self.0
    }
}

impl fmt::Debug for WorldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for WorldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<&str> for WorldString {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for WorldString {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl From<&[u8]> for WorldString {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl From<Vec<u8>> for WorldString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::from(bytes))
    }
}

impl From<Bytes> for WorldString {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl<T: Into<WorldString>> From<T> for WorldPath {
    fn from(word: T) -> Self {
        Self(word.into())
    }
}

/// Conversions between this machine's strings and a Unix world's, which are the same bytes.
#[cfg(unix)]
mod unix {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use super::{WorldPath, WorldString};

    impl WorldString {
        /// Returns the bytes as one of this machine's strings.
        pub fn as_os_str(&self) -> &OsStr {
            OsStr::from_bytes(self.as_bytes())
        }
    }

    impl WorldPath {
        /// Returns the bytes as a path of this machine. It means something only for the local world.
        pub fn as_local_path(&self) -> &Path {
            Path::new(self.0.as_os_str())
        }
    }

    impl From<&OsStr> for WorldString {
        fn from(text: &OsStr) -> Self {
            Self::from(text.as_bytes())
        }
    }

    impl From<OsString> for WorldString {
        fn from(text: OsString) -> Self {
            Self::from(text.into_vec())
        }
    }

    impl From<&Path> for WorldString {
        fn from(path: &Path) -> Self {
            Self::from(path.as_os_str())
        }
    }

    impl From<PathBuf> for WorldString {
        fn from(path: PathBuf) -> Self {
            Self::from(path.into_os_string())
        }
    }
}
