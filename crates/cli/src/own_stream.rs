//! This process's own three streams, without the buffering of the standard library's handles.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Returns our standard input.
pub(crate) fn stdin() -> io::Result<File> {
    unbuffered(io::stdin())
}

/// Returns our standard output.
pub(crate) fn stdout() -> io::Result<File> {
    unbuffered(io::stdout())
}

/// Returns our standard error.
pub(crate) fn stderr() -> io::Result<File> {
    unbuffered(io::stderr())
}

/// Standard output is line buffered and standard input reads ahead: neither is wanted where bytes are only passed on.
fn unbuffered(stream: impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}
