//! What a record says, as text. Pure.
//!
//! One fact per line, each written by one system call. The first two lines are written together when the file is made;
//! what follows is appended before the thing that it names is made. So the only thing that a host can leave half-written is
//! a last line without its end, about something that never came to be.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest record, in bytes.
pub(super) const LIMIT: u64 = 64 * 1024;
/// The first line.
const VERSION: &str = "dsh-subprocess record 1";

/// The process that keeps a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    /// Its number, in its own pid namespace.
    pub(super) pid: u32,
    /// When it was started, in clock ticks since boot.
    pub(super) start_time: u64,
    /// The kernel's name for its run.
    pub(super) boot: String,
    /// The number of its pid namespace.
    pub(super) pid_namespace: u64,
}

/// A fact that is appended to a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fact {
    /// The runtime has a control group here.
    Group(PathBuf),
    /// The runtime has a private directory here.
    Directory(PathBuf),
    /// The members of its groups were asked to end, by somebody who cleans up after it.
    Asked(SystemTime),
}

/// A whole record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Contents {
    pub(super) owner: Owner,
    pub(super) facts: Vec<Fact>,
}

/// Why a text is no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Malformed {
    /// It is longer than any record.
    #[error("it is longer than {LIMIT} bytes")]
    TooLong,
    /// It begins otherwise.
    #[error("it is of another version, or no record")]
    Version,
    /// The second line does not name the owner.
    #[error("its second line names no owner")]
    Owner,
    /// A later line says nothing that is known.
    #[error("its line {0} says nothing that is known")]
    Line(usize),
}

/// Writes the lines that a record begins with.
pub(super) fn begin(owner: &Owner) -> String {
    let Owner {
        pid,
        start_time,
        boot,
        pid_namespace,
    } = owner;
    format!("{VERSION}\nowner {pid} {start_time} {boot} {pid_namespace}\n")
}

impl Fact {
    /// Writes the fact's line.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Group(path) => format!("group {}\n", escape(path)),
            Self::Directory(path) => format!("directory {}\n", escape(path)),
            Self::Asked(when) => {
                let since = when.duration_since(UNIX_EPOCH).unwrap_or_default();
                format!("asked {}\n", since.as_millis())
            }
        }
    }

    fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ')? {
            ("group", path) => unescape(path).map(Self::Group),
            ("directory", path) => unescape(path).map(Self::Directory),
            ("asked", millis) => UNIX_EPOCH
                .checked_add(Duration::from_millis(number(millis)?))
                .map(Self::Asked),
            _ => None,
        }
    }
}

/// Reads a record. A last line without its end counts as not there.
///
/// # Errors
///
/// Where anything else is not as [`begin`] and [`Fact::line`] write it.
pub(super) fn parse(text: &[u8]) -> Result<Contents, Malformed> {
    if text.len() as u64 > LIMIT {
        return Err(Malformed::TooLong);
    }
    let end = text.iter().rposition(|&byte| byte == b'\n');
    let mut lines = text[..end.unwrap_or(0)]
        .split(|&byte| byte == b'\n')
        .map(|line| str::from_utf8(line).ok());
    if lines.next().flatten() != Some(VERSION) {
        return Err(Malformed::Version);
    }
    let owner = lines
        .next()
        .flatten()
        .and_then(parse_owner)
        .ok_or(Malformed::Owner)?;
    let facts = lines
        .zip(3..)
        .map(|(line, number)| line.and_then(Fact::parse).ok_or(Malformed::Line(number)));
    Ok(Contents {
        owner,
        facts: facts.collect::<Result<_, _>>()?,
    })
}

fn parse_owner(line: &str) -> Option<Owner> {
    let mut words = line.strip_prefix("owner ")?.split(' ');
    let owner = Owner {
        pid: u32::try_from(number(words.next()?)?).ok()?,
        start_time: number(words.next()?)?,
        boot: words
            .next()
            .filter(|boot| {
                boot.len() == 36 && boot.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
            })?
            .to_owned(),
        pid_namespace: number(words.next()?)?,
    };
    words.next().is_none().then_some(owner)
}

/// Reads a number as it is written: digits only, none too many in front.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Writes a path in printable ASCII without spaces: `%` and two digits for every other byte.
fn escape(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            text.push(char::from(byte));
        } else {
            // A String takes every write.
            let _ = write!(text, "%{byte:02x}");
        }
    }
    text
}

/// Reads an absolute path that was written by [`escape`].
fn unescape(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(escaped) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..escaped]);
        let digits = rest.get(escaped + 1..escaped + 3)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[escaped + 3..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    let path = PathBuf::from(OsString::from_vec(bytes));
    // Whatever else was written otherwise than it would have been is not ours.
    (path.is_absolute() && escape(&path) == text && !path.as_os_str().as_bytes().contains(&0)).then_some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOOT: &str = "01234567-89ab-cdef-0123-456789abcdef";

    fn owner() -> Owner {
        Owner {
            pid: 42,
            start_time: 4711,
            boot: BOOT.to_owned(),
            pid_namespace: 4_026_531_836,
        }
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let facts = vec![
            Fact::Directory("/tmp/a b\n%/\u{e9}".into()),
            Fact::Group("/sys/fs/cgroup/x".into()),
            Fact::Directory(OsString::from_vec(b"/\xff".to_vec()).into()),
            Fact::Asked(UNIX_EPOCH + Duration::from_millis(1_234)),
        ];
        let text: String = std::iter::once(begin(&owner()))
            .chain(facts.iter().map(Fact::line))
            .collect();
        assert!(text.is_ascii());
        assert_eq!(
            parse(text.as_bytes()),
            Ok(Contents {
                owner: owner(),
                facts
            })
        );
    }

    #[test]
    fn a_last_line_without_its_end_is_not_there() {
        let text = begin(&owner());
        let torn = format!("{text}directory /tmp/dsh");
        assert_eq!(parse(torn.as_bytes()), parse(text.as_bytes()));
    }

    #[test]
    fn anything_else_is_malformed() {
        let begun = begin(&owner());
        for (text, why) in [
            (String::new(), Malformed::Version),
            ("dsh-subprocess record 1".to_owned(), Malformed::Version),
            ("dsh-subprocess record 2\nowner\n".to_owned(), Malformed::Version),
            ("dsh-subprocess record 1\n".to_owned(), Malformed::Owner),
            (begun.replace("42", "-42"), Malformed::Owner),
            (begun.replace("42", "042"), Malformed::Owner),
            (begun.replace("42", "4294967338"), Malformed::Owner),
            (begun.replace(BOOT, "boot"), Malformed::Owner),
            (begun.replace("836", "836 1"), Malformed::Owner),
            (format!("{begun}\n"), Malformed::Line(3)),
            (format!("{begun}file /tmp\n"), Malformed::Line(3)),
            (format!("{begun}group relative\n"), Malformed::Line(3)),
            (format!("{begun}group /a\ngroup /%\n"), Malformed::Line(4)),
            (format!("{begun}group /%4\n"), Malformed::Line(3)),
            (format!("{begun}group /%+1\n"), Malformed::Line(3)),
            (format!("{begun}group /%00\n"), Malformed::Line(3)),
            (format!("{begun}group /a b\n"), Malformed::Line(3)),
            (format!("{begun}group /\u{e9}\n"), Malformed::Line(3)),
            (format!("{begun}asked soon\n"), Malformed::Line(3)),
            (format!("{begun}{}", "x".repeat(70_000)), Malformed::TooLong),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(why), "{text:.200}");
        }
    }

    proptest! {
        #[test]
        fn a_path_of_any_bytes_survives(bytes in prop::collection::vec(1..=255_u8, 0..100)) {
            let path = PathBuf::from(OsString::from_vec([b"/".as_slice(), &bytes].concat()));
            prop_assert_eq!(unescape(&escape(&path)), Some(path));
        }

        #[test]
        fn no_text_is_read_that_would_be_written_otherwise(tail in "[ -~\n\u{0}\u{e9}]{0,80}") {
            let text = begin(&owner()) + &tail;
            if let Ok(contents) = parse(text.as_bytes()) {
                let written: String = std::iter::once(begin(&contents.owner))
                    .chain(contents.facts.iter().map(Fact::line))
                    .collect();
                prop_assert!(text.starts_with(&written));
            }
        }

        #[test]
        fn no_bytes_are_too_much_for_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
        }
    }
}
