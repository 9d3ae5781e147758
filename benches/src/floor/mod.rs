//! The floors: the shortest loops that do a row's work, one thread, blocking calls, nothing owned beyond a single child.

#[expect(unsafe_code, reason = "a raw clone is the floor of a spawn")]
mod clone;
#[expect(unsafe_code, reason = "a sleeper that needs no exec is a fork")]
mod fork;
pub(crate) mod terminal;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};

use anyhow::{Context as _, Result, ensure};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitId, WaitIdOptions, waitid};

pub(crate) use clone::{Cloner, Program};
pub(crate) use fork::fork;

/// Bytes read at a time: what a pipe holds.
pub(crate) const CHUNK: usize = 64 * 1024;

/// Runs a program with a pipe on each of its output streams, reads both to their end, and reaps it.
pub(crate) fn run(cloner: &mut Cloner, program: &Program) -> Result<()> {
    let (out, out_child) = pipe_with(PipeFlags::CLOEXEC)?;
    let (err, err_child) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = cloner.spawn(program, out_child.as_fd(), err_child.as_fd())?;
    drop((out_child, err_child));
    let mut bytes = [0_u8; 512];
    for stream in [&out, &err] {
        while rustix::io::read(stream, &mut bytes)? > 0 {}
    }
    reap(&child)
}

/// Runs a program and passes what it writes to its standard output to `each`. Its error output is the host's.
pub(crate) fn read(
    cloner: &mut Cloner,
    program: &Program,
    buffer: &mut [u8],
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let (out, out_child) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = cloner.spawn(program, out_child.as_fd(), rustix::stdio::stderr())?;
    drop(out_child);
    let mut out = File::from(out);
    let mut total = 0;
    loop {
        let length = out.read(buffer)?;
        if length == 0 {
            break;
        }
        each(&buffer[..length])?;
        total += length as u64;
    }
    reap(&child)?;
    Ok(total)
}

/// As [`read`], into a file.
pub(crate) fn read_and_write(
    cloner: &mut Cloner,
    program: &Program,
    buffer: &mut [u8],
    mut file: &File,
) -> Result<u64> {
    read(cloner, program, buffer, |bytes| Ok(file.write_all(bytes)?))
}

/// Waits for a child and requires its success.
pub(crate) fn reap(child: &OwnedFd) -> Result<()> {
    let status = waitid(WaitId::PidFd(child.as_fd()), WaitIdOptions::EXITED)?
        .context("a blocking wait has an answer")?;
    ensure!(
        status.exit_status() == Some(0),
        "the child of the floor failed: {status:?}"
    );
    Ok(())
}
