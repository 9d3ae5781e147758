//! Control groups (version 2) as owners of trees. The rules are those of cgroups(7) and of the kernel's
//! `cgroup-v2` document.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::Pid;

/// The deepest nesting that is walked. The kernel's own limit is the path's length.
const DEPTH: usize = 64;

/// Why there is no control group to use.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// The process table cannot be read.
    #[error("{0} cannot be read")]
    Unreadable(&'static str, #[source] io::Error),
    /// This process is in no version-2 group.
    #[error("this process is in no cgroup of version 2")]
    NoGroup,
    /// No version-2 hierarchy is mounted that shows this process's group.
    #[error("no cgroup2 file system is mounted that shows the group of this process")]
    NotMounted,
    /// The directory named cannot be made or used.
    #[error("{}", .0.display())]
    Directory(PathBuf, #[source] Errno),
}

/// Finds the directory of this process's own group.
///
/// # Errors
///
/// When there is none, or it is not mounted.
pub fn own_directory() -> Result<PathBuf, Unavailable> {
    let groups =
        fs::read("/proc/self/cgroup").map_err(|error| Unavailable::Unreadable("/proc/self/cgroup", error))?;
    let group = groups
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"));
    let group = group.ok_or(Unavailable::NoGroup)?;
    let mounts = fs::read("/proc/self/mountinfo")
        .map_err(|error| Unavailable::Unreadable("/proc/self/mountinfo", error))?;
    mounts
        .split(|&byte| byte == b'\n')
        .filter_map(|line| directory_in_mount(line, group))
        .find(|directory| directory.join("cgroup.procs").exists())
        .ok_or(Unavailable::NotMounted)
}

/// Returns where a group is found below a mount, from the mount's line (`proc_pid_mountinfo(5)`).
fn directory_in_mount(line: &[u8], group: &[u8]) -> Option<PathBuf> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let separator = fields.iter().position(|field| *field == b"-")?;
    if *fields.get(separator + 1)? != b"cgroup2" {
        return None;
    }
    let (root, point) = (unescape(fields.get(3)?), unescape(fields.get(4)?));
    let below = if root == b"/" {
        group
    } else {
        group.strip_prefix(root.as_slice())?
    };
    let mut path = PathBuf::from(OsString::from_vec(point));
    path.push(Path::new(std::ffi::OsStr::from_bytes(
        below.strip_prefix(b"/").unwrap_or(below),
    )));
    Some(path)
}

/// Undoes the octal escapes of space, tab, newline and backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            plain.push(byte);
            rest = &after[3..];
        } else {
            plain.push(first);
            rest = after;
        }
    }
    plain
}

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

    /// Appends the live processes of a leaf and of every group below it. Zombies are not listed by the kernel.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`.
    pub fn members(&self, leaf: &str, members: &mut Vec<Pid>) -> Result<(), Errno> {
        let directory = openat(&self.directory, leaf, DIRECTORY, Mode::empty())?;
        members_below(directory.as_fd(), members, DEPTH)
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

    /// Tells whether an empty leaf is as it was made: no group below it, not a threaded one, no limit of its own.
    ///
    /// # Errors
    ///
    /// `EMFILE`, `ENOENT`.
    pub fn is_pristine(&self, leaf: &str) -> Result<bool, Errno> {
        let directory = openat(&self.directory, leaf, DIRECTORY, Mode::empty())?;
        if fstat(&directory)?.st_nlink > 2 {
            return Ok(false);
        }
        let says = |file: &str, expected: &[u8]| {
            let mut buffer = [0_u8; 64];
            read_at(directory.as_fd(), file, &mut buffer)
                .map(|length| buffer[..length].trim_ascii_end() == expected)
        };
        Ok(says("cgroup.max.descendants", b"max")?
            && says("cgroup.max.depth", b"max")?
            && says("cgroup.type", b"domain")?
            && says("cgroup.controllers", b"")?)
    }

    /// Removes an empty leaf, and the groups that its tree made below it, deepest first.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a process is in it.
    pub fn remove_leaf(&self, leaf: &str) -> Result<(), Errno> {
        match unlinkat(&self.directory, leaf, AtFlags::REMOVEDIR) {
            Err(Errno::BUSY | Errno::NOTEMPTY) => {
                let directory = openat(&self.directory, leaf, DIRECTORY, Mode::empty())?;
                remove_below(directory.as_fd(), DEPTH)?;
                unlinkat(&self.directory, leaf, AtFlags::REMOVEDIR)
            }
            result => result,
        }
    }

    /// Removes every leaf and the group itself.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a process is in it.
    pub fn remove(&self) -> Result<(), Errno> {
        remove_below(self.directory.as_fd(), DEPTH)?;
        rustix::fs::rmdir(&self.path)
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

fn read_at(directory: BorrowedFd<'_>, file: &str, buffer: &mut [u8]) -> Result<usize, Errno> {
    let file = openat(directory, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::read(&file, buffer)
}

fn members_below(directory: BorrowedFd<'_>, members: &mut Vec<Pid>, depth: usize) -> Result<(), Errno> {
    let procs = openat(
        directory,
        "cgroup.procs",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    match procs.and_then(|procs| read_pids(procs, members)) {
        // A threaded group has no list of processes of its own; its domain, above, has.
        Ok(()) | Err(Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(errno),
    }
    if depth == 0 || fstat(directory)?.st_nlink <= 2 {
        return Ok(());
    }
    for name in below(directory)? {
        match openat(directory, name, DIRECTORY, Mode::empty()) {
            Ok(inner) => members_below(inner.as_fd(), members, depth - 1)?,
            // Removed since it was listed, so empty.
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
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

fn remove_below(directory: BorrowedFd<'_>, depth: usize) -> Result<(), Errno> {
    for name in below(directory)? {
        if depth > 0
            && let Ok(inner) = openat(directory, &name, DIRECTORY, Mode::empty())
        {
            remove_below(inner.as_fd(), depth - 1)?;
        }
        match unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Lists the groups directly below a directory.
fn below(directory: BorrowedFd<'_>) -> Result<Vec<std::ffi::CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() == FileType::Directory && name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT: &[u8] = b"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn a_group_is_found_below_its_mount() {
        assert_eq!(
            directory_in_mount(MOUNT, b"/user.slice"),
            Some("/sys/fs/cgroup/user.slice".into())
        );
        assert_eq!(directory_in_mount(MOUNT, b"/"), Some("/sys/fs/cgroup/".into()));
    }

    #[test]
    fn a_mount_of_a_part_of_the_hierarchy_shows_the_groups_of_that_part() {
        let line = b"30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw";
        assert_eq!(
            directory_in_mount(line, b"/docker/abc/x"),
            Some("/sys/fs/cgroup/x".into())
        );
        assert_eq!(directory_in_mount(line, b"/other"), None);
    }

    #[test]
    fn an_escaped_mount_point_is_spelt_out() {
        let line = b"30 23 0:26 / /a\\040b\\134 rw - cgroup2 cgroup2 rw";
        assert_eq!(directory_in_mount(line, b"/x"), Some("/a b\\/x".into()));
    }

    #[test]
    fn other_file_systems_and_broken_lines_are_passed_over() {
        for line in [
            &b""[..],
            b"30 23 0:26 / /proc rw - proc proc rw",
            b"- cgroup2",
            b"1 2 3 4 - cgroup2",
        ] {
            assert_eq!(directory_in_mount(line, b"/x"), None);
        }
    }
}
