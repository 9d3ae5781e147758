//! Where this process's own control group is.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

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
