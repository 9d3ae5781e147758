//! The raw ends of a child's pipes.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a provider puts under a [`PipeReader`].
pub trait PipeSource: AsyncRead + Send + Sync + Unpin + 'static {
    /// Gives up the pipe as a descriptor, in blocking mode, where it is one of this machine's. Whatever was not read
    /// yet is still in it. The default is that it is not.
    #[cfg(unix)]
    fn into_fd(self: Box<Self>) -> Option<std::os::fd::OwnedFd> {
        None
    }
}

/// What a provider puts under a [`PipeWriter`].
pub trait PipeSink: AsyncWrite + Send + Sync + Unpin + 'static {
    /// Gives up the pipe as a descriptor, in blocking mode, where it is one of this machine's. The default is that it
    /// is not.
    #[cfg(unix)]
    fn into_fd(self: Box<Self>) -> Option<std::os::fd::OwnedFd> {
        None
    }
}

/// The reading end of a child's raw output.
///
/// It works under any executor. Nothing is buffered on this side: a slow reader slows the child. Dropping it closes the
/// pipe, and a child that goes on writing gets `SIGPIPE` or `EPIPE`.
pub struct PipeReader(Box<dyn PipeSource>);

impl PipeReader {
    /// Wraps a provider's pipe.
    pub fn new(source: impl PipeSource) -> Self {
        Self(Box::new(source))
    }

    /// Gives up the pipe as a descriptor in blocking mode.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] where the pipe is not one of this machine's.
    ///
    /// # Platform
    ///
    /// Unix.
    #[cfg(unix)]
    pub fn try_into_fd(self) -> io::Result<std::os::fd::OwnedFd> {
        self.0.into_fd().ok_or_else(not_a_descriptor)
    }
}

/// The writing end of a child's standard input.
///
/// It works under any executor. Dropping it, or shutting it down, is the child's end of file. A write after the child
/// closed its end fails with [`io::ErrorKind::BrokenPipe`]; the host gets no `SIGPIPE`.
pub struct PipeWriter(Box<dyn PipeSink>);

impl PipeWriter {
    /// Wraps a provider's pipe.
    pub fn new(sink: impl PipeSink) -> Self {
        Self(Box::new(sink))
    }

    /// Gives up the pipe as a descriptor in blocking mode.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::Unsupported`] where the pipe is not one of this machine's.
    ///
    /// # Platform
    ///
    /// Unix.
    #[cfg(unix)]
    pub fn try_into_fd(self) -> io::Result<std::os::fd::OwnedFd> {
        self.0.into_fd().ok_or_else(not_a_descriptor)
    }
}

/// A child's control pipe: what the child writes to its control descriptor is read here, and the other way round.
///
/// The two directions are independent: shutting down or dropping the writer is the child's end of file, and reading goes on.
#[derive(Debug)]
pub struct ControlPipe {
    /// What the child says.
    pub reader: PipeReader,
    /// What is said to the child.
    pub writer: PipeWriter,
}

#[cfg(unix)]
fn not_a_descriptor() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "the pipe belongs to another machine and has no descriptor here",
    )
}

impl AsyncRead for PipeReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for PipeWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl fmt::Debug for PipeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PipeReader")
    }
}

impl fmt::Debug for PipeWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PipeWriter")
    }
}
