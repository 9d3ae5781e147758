//! A process's or a thread's directory of `/proc`, by descriptor.
//!
//! What is read by way of it is that process's or nobody's: the number may be another's by now, the directory is not.

use std::os::fd::{AsFd, OwnedFd, RawFd};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Statx, StatxFlags, openat, readlinkat_raw, statx};
use rustix::io::{Errno, pread};
use rustix::path::Arg;
use rustix::process::Pid;

use super::answer::{Missed, Unseen, any};
use super::text::{self, Stat};

/// How much memory is read at once, in bytes. A whole number of the structures that are read.
const PART: usize = 4096;

/// `/proc/PID` or `/proc/PID/task/TID`.
#[derive(Debug)]
pub(super) struct Directory(OwnedFd);

impl Directory {
    /// Opens a process's.
    pub(super) fn of(process: Pid) -> Result<Self, Errno> {
        Self::below(CWD, format!("/proc/{}", process.as_raw_nonzero()))
    }

    fn below(directory: impl AsFd, name: impl Arg) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(directory, name, flags, Mode::empty()).map(Self)
    }

    /// Lists the threads of a process.
    pub(super) fn threads(&self) -> Result<Threads, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let task = openat(&self.0, c"task", flags, Mode::empty())?;
        Ok(Threads {
            entries: Dir::read_from(&task)?,
            task,
        })
    }

    /// Lists the descriptors of a process.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = openat(&self.0, c"fd", flags, Mode::empty()).and_then(Dir::new);
        entries
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok())
    }

    /// Opens a file.
    pub(super) fn open(&self, name: impl Arg) -> Result<OwnedFd, Errno> {
        openat(&self.0, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// Reads the beginning of a file, as much as there is room for.
    pub(super) fn read<'b>(&self, name: impl Arg, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        from_start(&self.open(name)?, buffer)
    }

    /// Reads `stat`.
    pub(super) fn stat(&self) -> Result<Stat, Missed> {
        // The fields up to the number of threads take less than 512 bytes, were each as long as it can be.
        let mut line = [0; 512];
        let line = self.read(c"stat", &mut line)?;
        Ok(text::stat(line).ok_or(Unseen::Form)?)
    }

    /// Returns the file that a descriptor is open on.
    pub(super) fn file(&self, descriptor: RawFd) -> Result<Statx, Errno> {
        // What the kernel has in memory is enough, and asking a file server that is gone for more would take for ever.
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let wanted = StatxFlags::TYPE | StatxFlags::INO;
        statx(&self.0, format!("fd/{descriptor}"), flags, wanted)
    }

    /// Returns what a descriptor's link says, as much as there is room for.
    pub(super) fn link<'b>(&self, descriptor: RawFd, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        let length = readlinkat_raw(&self.0, format!("fd/{descriptor}"), &mut *buffer)?;
        Ok(&buffer[..length])
    }

    /// Looks at memory, part by part, until a part is proof. `look` is given each with its distance from the first byte.
    pub(super) fn memory(
        &self,
        address: u64,
        length: usize,
        mut look: impl FnMut(usize, &[u8]) -> Result<bool, Missed>,
    ) -> Result<bool, Missed> {
        if length == 0 {
            return Ok(false);
        }
        let memory = self.open(c"mem")?;
        any((0..length).step_by(PART).map(|distance| {
            let mut part = [0; PART];
            let wanted = PART.min(length - distance);
            let from = address.wrapping_add(distance as u64);
            // Nothing is mapped there, or what is there cannot be had.
            let read = pread(&memory, &mut part[..wanted], from).map_err(|_| Unseen::Memory)?;
            let rest = if read < wanted {
                Err(Unseen::Memory.into())
            } else {
                Ok(false)
            };
            any([look(distance, &part[..read]), rest])
        }))
    }
}

/// Reads the beginning of a file of `/proc` anew, as much as there is room for: it is made for each read at its start.
pub(super) fn from_start<'b>(file: &OwnedFd, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let length = pread(file, &mut *buffer, 0)?;
    Ok(&buffer[..length])
}

/// The threads of a process, as they are listed. One that is born meanwhile may be missing (`proc_pid_task(5)`).
#[derive(Debug)]
pub(super) struct Threads {
    entries: Dir,
    task: OwnedFd,
}

impl Iterator for Threads {
    type Item = Result<Directory, Errno>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next()? {
                Ok(entry) if entry.file_name().to_bytes().starts_with(b".") => {}
                Ok(entry) => return Some(Directory::below(&self.task, entry.file_name())),
                Err(errno) => return Some(Err(errno)),
            }
        }
    }
}
