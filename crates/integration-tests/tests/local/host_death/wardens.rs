//! The wardens of a host, found without asking it.

use std::fs;
use std::path::PathBuf;

use crate::fixture::row;

/// Lists the wardens that watch a host which lives: they hold a pidfd of it, whose number is in `fdinfo` (`pidfd_open(2)`).
pub(crate) fn of(host: u32) -> Vec<u32> {
    let watched = format!("Pid:\t{host}");
    let holds = |pid: u32| {
        // Gone meanwhile, or another user's: none of this host's.
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else {
            return false;
        };
        descriptors.filter_map(Result::ok).any(|descriptor| {
            fs::read_to_string(descriptor.path()).is_ok_and(|info| info.lines().any(|line| line == watched))
        })
    };
    let processes = fs::read_dir("/proc").expect("/proc is there");
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "dsh-warden\n")
        })
        .filter(|&pid| holds(pid))
        .collect()
}

/// Returns the one that is the parent of all others.
pub(super) fn of_the_runtime(host: u32) -> Option<u32> {
    let wardens = of(host);
    let is_first = |warden: u32| row(warden).is_some_and(|row| !wardens.contains(&row.parent));
    wardens.iter().copied().find(|&warden| is_first(warden))
}

/// Lists what a warden holds.
pub(super) fn descriptors(warden: u32) -> Vec<PathBuf> {
    let Ok(held) = fs::read_dir(format!("/proc/{warden}/fd")) else {
        return Vec::new();
    };
    held.filter_map(|held| fs::read_link(held.ok()?.path()).ok())
        .collect()
}
