//! What a host tells its test.

use std::fs::File;
use std::io::Write;

use dsh_subprocess::Error;

/// A line-by-line report on what was standard output when the host began, whatever becomes of descriptor 1.
pub(super) struct Report(File);

impl Report {
    pub(super) fn open() -> std::io::Result<Self> {
        // `try_clone` answers a close-on-exec descriptor above 2, so no child and no closing of stdio reaches it.
        let fd = std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned()?;
        Ok(Self(File::from(fd)))
    }

    /// Reports one fact. Line ends in the value are escaped.
    pub(super) fn line(&self, key: &str, value: impl AsRef<str>) {
        let value = value.as_ref().replace('\\', "\\\\").replace('\n', "\\n");
        // A test that went away needs no report.
        drop((&self.0).write_all(format!("{key} {value}\n").as_bytes()));
    }

    /// Reports a number.
    pub(super) fn number(&self, key: &str, value: impl TryInto<u64>) {
        self.line(
            key,
            value
                .try_into()
                .map_or_else(|_| "overflow".to_owned(), |value| value.to_string()),
        );
    }

    /// Reports an error's kind and text, as `key` and `key-text`.
    pub(super) fn error(&self, key: &str, error: &Error) {
        self.line(key, format!("{:?}", error.kind()));
        self.line(&format!("{key}-text"), error.to_string());
    }
}
