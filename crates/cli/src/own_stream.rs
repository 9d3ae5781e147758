//! This process's own three streams, without the buffering of the standard library's handles.
//!
//! They take no further descriptor, so that a failure can be told even where none is left.

use std::io::{self, Read, Stderr, Stdin, Stdout, Write};
use std::os::fd::AsFd;

use nix::unistd;

/// One of the three, unbuffered: standard output holds back an unfinished line and standard input reads ahead, and
/// neither is wanted where bytes are only passed on.
pub(crate) struct OwnStream<S>(S);

/// Returns our standard input.
pub(crate) fn stdin() -> OwnStream<Stdin> {
    OwnStream(io::stdin())
}

/// Returns our standard output.
pub(crate) fn stdout() -> OwnStream<Stdout> {
    OwnStream(io::stdout())
}

/// Returns our standard error.
pub(crate) fn stderr() -> OwnStream<Stderr> {
    OwnStream(io::stderr())
}

impl<S: AsFd> Read for OwnStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(unistd::read(&self.0, buffer)?)
    }
}

impl<S: AsFd> Write for OwnStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(unistd::write(&self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
