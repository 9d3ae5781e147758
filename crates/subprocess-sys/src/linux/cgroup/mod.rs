//! Control groups (version 2) as owners of trees. The rules are those of cgroups(7) and of the kernel's
//! `cgroup-v2` document.

mod left;
mod mount;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::Pid;

pub use mount::{Unavailable, own_directory};

/// A group that holds leaves, one per tree.
#[derive(Debug)]
pub struct Parent {
    directory: OwnedFd,
    path: PathBuf,
}

/// What `cgroup.events` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Events {
    /// A live process is in the group or below it.
    pub populated: bool,
    /// The group is frozen.
    pub frozen: bool,
}

/// Processor time of a group since it was made, with that of the groups below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl Parent {
    /// Makes a group of this name below a directory.
    ///
    /// # Errors
    ///
    /// `EACCES` and `EROFS` where the host may not, `EEXIST`, and `EAGAIN` past a limit of descendants.
    pub fn create(below: &Path, name: &str) -> Result<Self, Unavailable> {
        let path = below.join(name);
        let unusable = |errno| Unavailable::Directory(path.clone(), errno);
        mkdirat(
            CWD,
            &path,
            Mode::RWXU | Mode::XGRP | Mode::RGRP | Mode::XOTH | Mode::ROTH,
        )
        .map_err(unusable)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, &path, flags, Mode::empty()) {
            Ok(directory) => Ok(Self { directory, path }),
            Err(errno) => {
                let _ = rustix::fs::rmdir(&path);
                Err(unusable(errno))
            }
        }
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it anew, for another process that is to list it.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENFILE`.
    pub fn reopen(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.directory, ".", flags, Mode::empty())
    }

    /// Makes an empty leaf.
    ///
    /// # Errors
    ///
    /// `EAGAIN` past a limit of descendants, `ENOMEM`.
    pub fn make_leaf(&self, leaf: &str) -> Result<(), Errno> {
        mkdirat(
            &self.directory,
            leaf,
            Mode::RWXU | Mode::XGRP | Mode::RGRP | Mode::XOTH | Mode::ROTH,
        )
    }

    /// Opens a leaf's directory, to clone into.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`.
    pub fn open_leaf(&self, leaf: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.directory, leaf, flags, Mode::empty())
    }

    /// Opens a leaf's `cgroup.procs` for the child that is to join it.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`, `EACCES`.
    pub fn open_join(&self, leaf: &str) -> Result<OwnedFd, Errno> {
        self.open(leaf, "cgroup.procs", OFlags::WRONLY)
    }

    /// Opens a leaf's `cgroup.events`, to be watched for changes.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`.
    pub fn open_events(&self, leaf: &str) -> Result<OwnedFd, Errno> {
        self.open(leaf, "cgroup.events", OFlags::RDONLY)
    }

    /// Reads a leaf's `cgroup.events`. The content is exact; only the notification of a change is late.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`.
    pub fn events(&self, leaf: &str) -> Result<Events, Errno> {
        let mut buffer = [0_u8; 128];
        let length = self.read(leaf, "cgroup.events", &mut buffer)?;
        let text = &buffer[..length];
        Ok(Events {
            populated: !contains(text, b"populated 0"),
            frozen: contains(text, b"frozen 1"),
        })
    }

    /// Appends the live processes of a leaf and of every group below it. Zombies are not listed by the kernel. A leaf that was
    /// removed has none.
    ///
    /// # Errors
    ///
    /// `EMFILE`.
    pub fn members(&self, leaf: &str, members: &mut Vec<Pid>) -> Result<(), Errno> {
        let flat = match self.is_flat(leaf) {
            Ok(flat) => flat,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        let groups = if flat {
            vec![PathBuf::from(leaf)]
        } else {
            self.groups_below(Path::new(leaf))?
        };
        for group in groups {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let procs = openat(&self.directory, group.join("cgroup.procs"), flags, Mode::empty());
            match procs.and_then(|procs| read_pids(procs, members)) {
                // A threaded group has no list of processes of its own; its domain, above, has. One that was removed since
                // it was found was empty.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOENT | Errno::NODEV) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Lists a group and all below it, each after the one it is in. Only one directory is open at a time.
    fn groups_below(&self, top: &Path) -> Result<Vec<PathBuf>, Errno> {
        let mut groups = vec![top.to_owned()];
        let mut next = 0;
        while let Some(group) = groups.get(next).cloned() {
            next += 1;
            match openat(&self.directory, &group, DIRECTORY, Mode::empty())
                .and_then(|directory| directories_in(&directory))
            {
                Ok(names) => groups.extend(names.into_iter().map(|name| group.join(name))),
                // Removed since it was found.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(groups)
    }

    /// Tells whether a leaf has no group below it.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`.
    pub fn is_flat(&self, leaf: &str) -> Result<bool, Errno> {
        // A directory counts itself, its name and each directory in it.
        Ok(rustix::fs::statat(&self.directory, leaf, AtFlags::empty())?.st_nlink <= 2)
    }

    /// Sends `SIGKILL` to every process of a leaf, by `cgroup.kill`.
    ///
    /// # Errors
    ///
    /// `ENOENT` before Linux 5.14, `EMFILE`.
    pub fn kill(&self, leaf: &str) -> Result<(), Errno> {
        self.write(leaf, "cgroup.kill", b"1")
    }

    /// Sends `SIGKILL` to every process of every leaf.
    ///
    /// # Errors
    ///
    /// As [`kill`](Self::kill).
    pub fn kill_all(&self) -> Result<(), Errno> {
        self.write(".", "cgroup.kill", b"1")
    }

    /// Tells whether a leaf's file may be written, without writing it.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check_writable(&self, leaf: &str, file: &str) -> Result<(), Errno> {
        self.open(leaf, file, OFlags::WRONLY).map(drop)
    }

    /// Stops every process of a leaf from running, or lets them run again. `SIGKILL` ends a frozen process.
    ///
    /// # Errors
    ///
    /// `ENOENT` before Linux 5.2, `EMFILE`.
    pub fn freeze(&self, leaf: &str, frozen: bool) -> Result<(), Errno> {
        self.write(leaf, "cgroup.freeze", if frozen { b"1" } else { b"0" })
    }

    /// Reads the processor time of a leaf. The kernel counts it without any controller.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`.
    pub fn times(&self, leaf: &str) -> Result<Times, Errno> {
        let mut buffer = [0_u8; 1024];
        let length = self.read(leaf, "cpu.stat", &mut buffer)?;
        let microseconds = |name: &[u8]| {
            buffer[..length]
                .split(|&byte| byte == b'\n')
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(b" "))
                .and_then(|digits| str::from_utf8(digits).ok()?.parse().ok())
                .map_or(Duration::ZERO, Duration::from_micros)
        };
        Ok(Times {
            user: microseconds(b"user_usec"),
            system: microseconds(b"system_usec"),
        })
    }

    /// Tells whether an empty leaf is as it was made: no group below it, and none of the limits that need no controller.
    ///
    /// That it was made a threaded one shows at the next clone into it, which is refused (`EOPNOTSUPP`).
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`.
    pub fn is_pristine(&self, leaf: &str) -> Result<bool, Errno> {
        let unlimited = |file: &str| {
            let mut buffer = [0_u8; 32];
            self.read(leaf, file, &mut buffer)
                .map(|length| buffer[..length].trim_ascii_end() == b"max")
        };
        Ok(self.is_flat(leaf)? && unlimited("cgroup.max.descendants")? && unlimited("cgroup.max.depth")?)
    }

    /// Removes an empty leaf, and the groups that its tree made below it, deepest first.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a process is in it.
    pub fn remove_leaf(&self, leaf: &str) -> Result<(), Errno> {
        match self.unlink(Path::new(leaf)) {
            Err(Errno::BUSY | Errno::NOTEMPTY) => {
                for group in self.groups_below(Path::new(leaf))?.iter().rev() {
                    self.unlink(group)?;
                }
                Ok(())
            }
            result => result,
        }
    }

    /// Removes every leaf and the group itself. What can be removed is, also when the rest cannot.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a process is in it.
    pub fn remove(&self) -> Result<(), Errno> {
        match rustix::fs::rmdir(&self.path) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(_) => {}
        }
        for group in self.groups_below(Path::new("."))?.iter().skip(1).rev() {
            // The last removal says whether this one mattered.
            let _ = self.unlink(group);
        }
        match rustix::fs::rmdir(&self.path) {
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }

    fn unlink(&self, group: &Path) -> Result<(), Errno> {
        match unlinkat(&self.directory, group, AtFlags::REMOVEDIR) {
            Err(Errno::NOENT) => Ok(()),
            result => result,
        }
    }

    /// Waits until no live process is in the group or below it, for at most `bound`.
    pub fn wait_until_empty(&self, bound: Duration) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let deadline = Instant::now() + bound;
        let Ok(events) = self.open_events(".") else { return };
        loop {
            let mut content = [0_u8; 128];
            // Read from the start, which also arms the notification.
            let Ok(length) = rustix::io::pread(&events, &mut content, 0) else {
                return;
            };
            if contains(&content[..length], b"populated 0") {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else {
                return;
            };
            if !matches!(
                poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&left)),
                Ok(1)
            ) {
                return;
            }
        }
    }

    fn open(&self, leaf: &str, file: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = format!("{leaf}/{file}");
        openat(&self.directory, path, flags | OFlags::CLOEXEC, Mode::empty())
    }

    fn read(&self, leaf: &str, file: &str, buffer: &mut [u8]) -> Result<usize, Errno> {
        let file = self.open(leaf, file, OFlags::RDONLY)?;
        rustix::io::read(&file, buffer)
    }

    fn write(&self, leaf: &str, file: &str, text: &[u8]) -> Result<(), Errno> {
        let file = self.open(leaf, file, OFlags::WRONLY)?;
        rustix::io::write(&file, text).map(drop)
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn contains(text: &[u8], line: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(|found| found == line)
}

fn read_pids(procs: OwnedFd, members: &mut Vec<Pid>) -> Result<(), Errno> {
    let mut text = Vec::with_capacity(256);
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    fs::File::from(procs).read_to_end(&mut text).map_err(errno)?;
    // A process of another pid namespace is listed as 0.
    let pids = text
        .split(|&byte| byte == b'\n')
        .filter_map(|line| str::from_utf8(line).ok()?.parse().ok());
    members.extend(pids.filter_map(Pid::from_raw));
    Ok(())
}

/// Lists the groups directly in a directory.
fn directories_in(directory: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() == FileType::Directory && name != c"." && name != c".." {
            names.push(OsString::from_vec(name.to_bytes().to_vec()));
        }
    }
    Ok(names)
}
