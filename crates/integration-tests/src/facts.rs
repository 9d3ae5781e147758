//! Calls that tell what a process is: its descriptors and its ids.

use std::process::ExitCode;

use nix::unistd::{getpgrp, getpid, getppid, getsid};

use crate::{Answer, announce};

/// `fds`: writes one line per open descriptor, `NUMBER TARGET`.
///
/// The Rust runtime opens the null device in place of a closed descriptor 0, 1 or 2 before `main`.
pub(crate) fn descriptors() -> Answer {
    for (number, target) in open_descriptors()? {
        announce(format!("{number} {target}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the open descriptors of this process, and what each one is.
pub(crate) fn open_descriptors() -> std::io::Result<Vec<(u32, String)>> {
    let mut numbers: Vec<u32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    // The listing's own descriptor is closed by now, so its link is gone.
    Ok(numbers
        .into_iter()
        .filter_map(|number| {
            let target = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
            Some((number, target.display().to_string()))
        })
        .collect())
}

/// `ids`: writes `pid ppid pgid sid`.
pub(crate) fn ids() -> Answer {
    announce(format!(
        "{} {} {} {}",
        getpid(),
        getppid(),
        getpgrp(),
        getsid(None)?
    ))?;
    Ok(ExitCode::SUCCESS)
}
