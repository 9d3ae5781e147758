//! The caller's end of a raw pipe, for any executor.
//!
//! Reads and writes are made by whoever polls, on the descriptor itself, so no byte is copied twice. The runtime's thread
//! only tells when it is worth trying again.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use dsh_subprocess::{PipeSink, PipeSource};
use dsh_subprocess_sys::event::Interest;
use dsh_subprocess_sys::pipe;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::reactor::{Reactor, Source, lock};
use crate::tree::Tree;

/// One end, shared with the runtime's thread.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    reactor: Arc<Reactor>,
    token: u64,
    /// `None` once it is closed or given up.
    fd: Mutex<Option<OwnedFd>>,
    waker: Mutex<Option<Waker>>,
    /// Whether the other direction has a descriptor of its own for the same socket, so that closing this one alone is no
    /// end of file.
    duplex: bool,
    /// The tree whose `done` waits for the end of this stream, and whether it was told.
    tree: Weak<Tree>,
    told: AtomicBool,
}

impl PipeEnd {
    /// Starts watching an end in non-blocking mode. `tree` is told when the other side is closed.
    pub(crate) fn new(
        reactor: &Arc<Reactor>,
        fd: OwnedFd,
        interest: Interest,
        tree: Weak<Tree>,
    ) -> io::Result<Arc<Self>> {
        Self::watched(reactor, fd, interest, tree, false)
    }

    /// Starts watching both directions of a socket, in non-blocking mode: the reading end and the writing one.
    pub(crate) fn duplex(reactor: &Arc<Reactor>, socket: OwnedFd) -> io::Result<[Arc<Self>; 2]> {
        let writer = socket.try_clone()?;
        let reader = Self::watched(reactor, socket, Interest::BecomesReadable, Weak::new(), false)?;
        match Self::watched(reactor, writer, Interest::BecomesWritable, Weak::new(), true) {
            Ok(writer) => Ok([reader, writer]),
            Err(error) => {
                drop(reader.take());
                Err(error)
            }
        }
    }

    fn watched(
        reactor: &Arc<Reactor>,
        fd: OwnedFd,
        interest: Interest,
        tree: Weak<Tree>,
        duplex: bool,
    ) -> io::Result<Arc<Self>> {
        let token = reactor.token();
        let end = Arc::new(Self {
            reactor: Arc::clone(reactor),
            token,
            fd: Mutex::new(Some(fd)),
            waker: Mutex::default(),
            duplex,
            tree,
            told: AtomicBool::new(false),
        });
        let held = lock(&end.fd);
        if let Some(fd) = held.as_ref() {
            reactor.watch(fd, token, interest, Source::Pipe(Arc::clone(&end)))?;
        }
        drop(held);
        Ok(end)
    }

    /// The end of a pipe that could not be made.
    pub(crate) fn closed(reactor: &Arc<Reactor>) -> Arc<Self> {
        Arc::new(Self {
            reactor: Arc::clone(reactor),
            token: 0,
            fd: Mutex::default(),
            waker: Mutex::default(),
            duplex: false,
            tree: Weak::new(),
            told: AtomicBool::new(true),
        })
    }

    /// The descriptor may have something to give or take.
    pub(crate) fn ready(&self, hung_up: bool) {
        self.wake();
        if hung_up {
            self.tell();
        }
    }

    /// Whether somebody may still write to it, as far as the runtime was told.
    pub(crate) fn is_open(&self) -> bool {
        !self.told.load(Ordering::Acquire)
    }

    fn wake(&self) {
        let waker = lock(&self.waker).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The stream is over, or the caller has taken it out of the runtime's sight.
    fn tell(&self) {
        if !self.told.swap(true, Ordering::AcqRel)
            && let Some(tree) = self.tree.upgrade()
        {
            tree.stream_ended();
        }
    }

    /// Closes the writing end: the other side's end of file.
    fn end_writing(&self) {
        if let Some(fd) = self.take()
            && self.duplex
        {
            pipe::end_writing(&fd);
        }
    }

    fn take(&self) -> Option<OwnedFd> {
        let fd = lock(&self.fd).take()?;
        self.reactor.forget(&fd, self.token);
        Some(fd)
    }

    fn give_up(&self) -> Option<OwnedFd> {
        let fd = self.take()?;
        self.tell();
        pipe::set_nonblocking(&fd, false).ok()?;
        Some(fd)
    }

    /// Tries a call now, and again after the waker is in place: the change that comes between the two rings it.
    fn attempt<T>(
        &self,
        context: &Context<'_>,
        closed: impl Fn() -> io::Result<T>,
        mut call: impl FnMut(&OwnedFd) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let held = lock(&self.fd);
        let Some(fd) = held.as_ref() else {
            return Poll::Ready(closed());
        };
        for waiting in [false, true] {
            match call(fd) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !waiting {
                        *lock(&self.waker) = Some(context.waker().clone());
                    }
                }
                result => return Poll::Ready(result),
            }
        }
        Poll::Pending
    }
}

/// Reads from a child.
#[derive(Debug)]
pub(crate) struct RawReader(pub(crate) Arc<PipeEnd>);

/// Writes to a child.
#[derive(Debug)]
pub(crate) struct RawWriter(pub(crate) Arc<PipeEnd>);

impl Drop for RawReader {
    fn drop(&mut self) {
        drop(self.0.take());
        self.0.tell();
    }
}

impl Drop for RawWriter {
    fn drop(&mut self) {
        self.0.end_writing();
    }
}

impl AsyncRead for RawReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.attempt(
            context,
            || Ok(0),
            |fd| pipe::read(fd, buffer.initialize_unfilled()),
        );
        read.map_ok(|length| buffer.advance(length))
    }
}

impl AsyncWrite for RawWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.attempt(context, closed, |fd| pipe::write(fd, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0
            .attempt(context, closed, |fd| pipe::write_vectored(fd, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.end_writing();
        Poll::Ready(Ok(()))
    }
}

fn closed<T>() -> io::Result<T> {
    Err(io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the child's standard input was shut down",
    ))
}

impl PipeSource for RawReader {
    fn into_fd(self: Box<Self>) -> Option<OwnedFd> {
        self.0.give_up()
    }
}

impl PipeSink for RawWriter {
    fn into_fd(self: Box<Self>) -> Option<OwnedFd> {
        self.0.give_up()
    }
}
