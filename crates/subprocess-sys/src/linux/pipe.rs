//! Pipes.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fcntl_setfl, fstat, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use super::signal;

/// A pipe whose ends are both close-on-exec and numbered 3 or more.
#[derive(Debug)]
pub struct Pipe {
    /// Where bytes come out.
    pub reader: OwnedFd,
    /// Where bytes go in.
    pub writer: OwnedFd,
}

/// Makes a pipe. Both ends block; [`set_nonblocking`] changes the host's.
///
/// # Errors
///
/// `EMFILE`, `ENFILE`.
pub fn pipe() -> Result<Pipe, Errno> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok(Pipe {
        reader: above_standard(reader)?,
        writer: above_standard(writer)?,
    })
}

/// Makes a connected pair of stream sockets, each of which reads what the other writes. Close-on-exec, and numbered 3 or
/// more.
///
/// # Errors
///
/// `EMFILE`, `ENFILE`.
pub fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (one, other) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok((above_standard(one)?, above_standard(other)?))
}

/// Ends what a socket writes, while it goes on reading: the other side sees its end of file.
pub fn end_writing(socket: impl AsFd) {
    // The only failure is that the other side is gone already.
    let _ = shutdown(socket, Shutdown::Write);
}

/// Opens the null device for reading and writing, numbered 3 or more.
///
/// # Errors
///
/// `EMFILE`, `ENFILE`, `ENOENT` where there is no `/dev/null`.
pub fn null_device() -> Result<OwnedFd, Errno> {
    above_standard(open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// A host may run with descriptors 0 to 2 closed; what it opens then gets those numbers, where the child's own standard
/// descriptors are put.
pub(super) fn above_standard(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    fcntl_dupfd_cloexec(&fd, 3)
}

/// Makes reads and writes of this end return at once, or wait. It acts on the open file description, so the other end stays as
/// it is. The end has no other status flags: it was made here.
///
/// # Errors
///
/// None that can happen to an open pipe.
pub fn set_nonblocking(end: impl AsFd, nonblocking: bool) -> Result<(), Errno> {
    // The access mode in the argument is ignored (F_SETFL in fcntl(2)).
    fcntl_setfl(
        end,
        if nonblocking {
            OFlags::NONBLOCK
        } else {
            OFlags::empty()
        },
    )
}

/// Sets the pipe's capacity in bytes and returns what it became.
///
/// # Errors
///
/// `EPERM` above `/proc/sys/fs/pipe-max-size` or the user's limit, `EBUSY` below what the pipe holds.
pub fn set_capacity(end: impl AsFd, bytes: usize) -> Result<usize, Errno> {
    fcntl_setpipe_size(end, bytes)
}

/// Returns the number that names the pipe in `/proc/PID/fd` of everyone who holds it.
///
/// # Errors
///
/// None that can happen to an open pipe.
pub fn inode(end: impl AsFd) -> Result<u64, Errno> {
    Ok(fstat(end)?.st_ino)
}

/// Reads into one buffer.
///
/// # Errors
///
/// `WouldBlock` for an empty non-blocking pipe.
pub fn read(end: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(retry(|| rustix::io::read(&end, &mut *buffer))?)
}

/// Reads a file from its start, wherever it stands.
///
/// # Errors
///
/// Those of pread(2).
pub fn read_start(file: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(retry(|| rustix::io::pread(&file, &mut *buffer, 0))?)
}

/// Reads into several buffers, in order.
///
/// # Errors
///
/// As [`read`].
pub fn read_vectored(end: impl AsFd, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    Ok(retry(|| rustix::io::readv(&end, buffers))?)
}

/// Writes, without ever raising `SIGPIPE`.
///
/// # Errors
///
/// `BrokenPipe` when nobody can read any more, `WouldBlock` for a full non-blocking pipe.
pub fn write(end: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    without_pipe_signal(|| rustix::io::write(&end, bytes))
}

/// Writes several buffers, in order, without ever raising `SIGPIPE`.
///
/// # Errors
///
/// As [`write()`].
pub fn write_vectored(end: impl AsFd, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
    without_pipe_signal(|| rustix::io::writev(&end, buffers))
}

fn without_pipe_signal(write: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    if !signal::pipe_signal_is_fatal() {
        return Ok(retry(write)?);
    }
    // A pipe has no MSG_NOSIGNAL. The signal goes to the writing thread (pipe(7)), which blocks it and takes it back.
    let _blocked = signal::block_all();
    let written = retry(write);
    if written == Err(Errno::PIPE) {
        signal::take_pipe_signal();
    }
    Ok(written?)
}

fn retry(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Makes descriptors 0 to 2 open, on the null device where the host has closed them: whatever is opened next would get
/// their numbers, and would be written to by everything that believes in standard output.
///
/// # Errors
///
/// Those of opening the null device.
pub fn open_standard_descriptors() -> Result<(), Errno> {
    for number in 0..3 {
        // SAFETY: the number is only asked about; a closed one answers EBADF.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        if rustix::io::fcntl_getfd(fd) == Err(Errno::BADF) {
            // The lowest free number is this one, since those below are open.
            let _: i32 = open(c"/dev/null", OFlags::RDWR, Mode::empty())?.into_raw_fd();
        }
    }
    Ok(())
}
