//! The secret that clients of the HTTP endpoint show.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The bytes of a token that is made here.
const TOKEN_BYTES: usize = 32;

/// The shortest token that is taken from a file. Whoever chooses one of their own should not choose a word.
const FEWEST_BYTES: usize = 16;

const MOST_BYTES: u64 = 4096;

/// A secret that is shown in each request, as `Authorization: Bearer TOKEN`.
///
/// Nothing prints it: neither `Debug` nor an error. Comparing takes the same time whatever was shown.
///
/// ```no_run
/// use dsh_mcp::server::BearerToken;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Made once; clients are given the file's content.
/// BearerToken::create("/run/user/1000/dsh-token")?;
/// let token = BearerToken::from_file("/run/user/1000/dsh-token")?;
/// assert_eq!(format!("{token:?}"), "BearerToken");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct BearerToken(Box<[u8]>);

/// Why there is no token. The text names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file could not be read or made.
    #[error("token file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// The file is none that a secret may be in.
    #[error("token file {}: {why}", path.display())]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file's content is no token.
    #[error("token file {}: {why}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system has no random bytes.
    #[error("no random bytes: {0}")]
    Random(getrandom::Error),
}

impl BearerToken {
    /// Reads a token: the content of a file, without white space around it, 16 to 4,096 printable ASCII characters.
    ///
    /// It must be called within a tokio runtime with I/O enabled.
    ///
    /// # Errors
    ///
    /// [`Unsafe`](TokenError::Unsafe) for a file that somebody else may read, that belongs to somebody else, or that is no
    /// regular file (a symbolic link is not followed); [`Content`](TokenError::Content);
    /// [`File`](TokenError::File).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, TokenError> {
        let path = path.as_ref();
        let failed = |source| TokenError::File {
            path: path.to_owned(),
            source,
        };
        let unsafe_file = |why: String| TokenError::Unsafe {
            path: path.to_owned(),
            why,
        };
        // The entry itself is looked at first, and the file that was opened must be the same one: so no link was followed,
        // and what was checked is what is read.
        let entry = path.symlink_metadata().map_err(failed)?;
        if !entry.is_file() {
            return Err(unsafe_file("it is no regular file".to_owned()));
        }
        let mut file = File::open(path).map_err(failed)?;
        let opened = file.metadata().map_err(failed)?;
        if (opened.dev(), opened.ino()) != (entry.dev(), entry.ino()) {
            return Err(unsafe_file(
                "it was replaced while it was being opened".to_owned(),
            ));
        }
        if opened.mode() & 0o077 != 0 {
            return Err(unsafe_file(format!(
                "others may use it: its mode is {:04o}, and must be 0600 or 0400",
                opened.mode() & 0o7777
            )));
        }
        let own = own_uid().map_err(failed)?;
        if opened.uid() != own {
            return Err(unsafe_file(format!(
                "it belongs to user {}, and this process is user {own}",
                opened.uid()
            )));
        }
        let mut content = Vec::new();
        let mut limited = (&mut file).take(MOST_BYTES + 1);
        limited.read_to_end(&mut content).map_err(failed)?;
        Self::from_content(&content).map_err(|why| TokenError::Content {
            path: path.to_owned(),
            why,
        })
    }

    /// Makes a file with a new token: 256 random bits in hexadecimal and a line end, readable by its owner alone.
    ///
    /// # Errors
    ///
    /// [`File`](TokenError::File), also where there is such a file already; [`Random`](TokenError::Random).
    pub fn create(path: impl AsRef<Path>) -> Result<Self, TokenError> {
        let path = path.as_ref();
        let failed = |source| TokenError::File {
            path: path.to_owned(),
            source,
        };
        let token = random_hex::<TOKEN_BYTES>().map_err(TokenError::Random)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        file.write_all(format!("{token}\n").as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        Ok(Self(token.into_bytes().into()))
    }

    fn from_content(content: &[u8]) -> Result<Self, &'static str> {
        let token = content.trim_ascii();
        if token.len() < FEWEST_BYTES {
            return Err("it holds fewer than 16 characters");
        }
        if content.len() as u64 > MOST_BYTES {
            return Err("it holds more than 4,096 characters");
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err("it holds something else than printable ASCII characters");
        }
        Ok(Self(token.into()))
    }

    /// Tells whether this is what was shown.
    pub(super) fn is(&self, shown: &[u8]) -> bool {
        if shown.len() != self.0.len() {
            return false;
        }
        // Every byte is looked at, so that the time does not tell how many of the first ones were right.
        let difference = self.0.iter().zip(shown).fold(0, |difference, (own, shown)| {
            black_box(difference | (own ^ shown))
        });
        black_box(difference) == 0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken")
    }
}

/// Returns random bytes of the system in hexadecimal.
pub(in crate::server) fn random_hex<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    let mut text = String::with_capacity(2 * BYTES);
    for byte in bytes {
        let digits = [byte >> 4, byte & 0xf].map(|digit| char::from_digit(u32::from(digit), 16));
        text.extend(digits.into_iter().flatten());
    }
    Ok(text)
}

/// Returns the user that this process acts as: whoever made a pair of sockets is who the kernel says is at either end.
fn own_uid() -> io::Result<u32> {
    let (end, _other) = tokio::net::UnixStream::pair()?;
    Ok(end.peer_cred()?.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn refusal(path: &Path) -> String {
        BearerToken::from_file(path)
            .expect_err("the file is refused")
            .to_string()
    }

    #[tokio::test]
    async fn a_token_that_was_made_is_read_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        let made = BearerToken::create(&path).expect("a token is made");
        let text = std::fs::read_to_string(&path).expect("the file is there");
        assert_eq!(text.trim_end().len(), 64);
        assert_eq!(path.metadata().expect("its metadata").mode() & 0o7777, 0o600);

        let read = BearerToken::from_file(&path).expect("it is read");
        assert!(read.is(text.trim_end().as_bytes()) && made.is(text.trim_end().as_bytes()));
        assert!(!read.is(b"") && !read.is(text.as_bytes()) && !read.is(&text.as_bytes()[..63]));
        let mut other = text.trim_end().as_bytes().to_vec();
        other[63] ^= 1;
        assert!(!read.is(&other));
    }

    #[tokio::test]
    async fn a_token_is_made_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        BearerToken::create(&path).expect("a token is made");
        let before = std::fs::read(&path).expect("the file is there");
        let error = BearerToken::create(&path)
            .expect_err("it is there already")
            .to_string();
        assert!(error.contains("token") && error.contains("exists"), "{error}");
        assert_eq!(std::fs::read(&path).expect("the file is there"), before);
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        BearerToken::create(&path).expect("a token is made");
        for mode in [0o640, 0o604, 0o620, 0o601] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("its mode is set");
            assert!(
                refusal(&path).contains(&format!("its mode is {mode:04o}")),
                "{mode:o}"
            );
        }
    }

    #[tokio::test]
    async fn a_link_a_directory_and_nothing_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        BearerToken::create(&path).expect("a token is made");
        let link = directory.path().join("link");
        symlink(&path, &link).expect("a link is made");
        assert!(refusal(&link).contains("no regular file"));
        assert!(refusal(directory.path()).contains("no regular file"));
        let missing = refusal(&directory.path().join("missing"));
        assert!(
            missing.contains("missing") && missing.contains("No such file"),
            "{missing}"
        );
    }

    #[tokio::test]
    async fn as_root_a_file_of_somebody_else_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        BearerToken::create(&path).expect("a token is made");
        std::os::unix::fs::chown(&path, Some(65534), None).expect("root gives files away");
        assert!(refusal(&path).contains("it belongs to user 65534, and this process is user 0"));
    }

    #[test]
    fn a_token_is_long_and_printable() {
        assert!(BearerToken::from_content(b" 0123456789abcdef\r\n").is_ok());
        for wrong in [
            &b""[..],
            b"0123456789abcde",
            b"0123456789 abcdef",
            b"0123456789\0abcdef",
            &[b'x'; 4097],
        ] {
            assert!(BearerToken::from_content(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn nothing_prints_a_token() {
        let token = BearerToken::from_content(b"0123456789abcdef").expect("it is a token");
        assert_eq!(format!("{token:?}"), "BearerToken");
    }
}
