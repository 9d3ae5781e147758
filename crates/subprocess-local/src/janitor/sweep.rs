//! The next start's look at what dead hosts left.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use dsh_subprocess_sys::{Errno, file, identity, signal};

use super::contents::{self, Contents, Fact, LIMIT, Malformed, Owner};
use super::directory::RecordDirectory;
use super::group::{GRACE, LeftGroup};
use super::private::Left;
use super::{name, private, proof, record};

/// The process that sweeps at the moment, or 0.
static SWEEPING: AtomicU32 = AtomicU32::new(0);

/// Cleans up after dead hosts of this user, on a thread of its own that ends with it.
///
/// The caller waits for a listing of the records, and for no more. Where all of them are this process's there is no
/// thread. It may end with the process at any moment: what is left then is the next start's.
pub(crate) fn sweep() {
    let found: Vec<(RecordDirectory, Vec<OsString>)> = RecordDirectory::existing()
        .into_iter()
        .map(|directory| {
            let mut names = directory.names();
            names.retain(|name| name::recorded(name).is_some());
            record::retain_others(&mut names);
            names.sort_unstable();
            (directory, names)
        })
        .filter(|(_, names)| !names.is_empty())
        .collect();
    if found.is_empty() {
        return;
    }
    let Some(turn) = Turn::take() else { return };
    // Blocked before the thread is made: the host's signals are the host's.
    let _mask = signal::block_for_new_thread();
    let swept = thread::Builder::new()
        .name("dsh-janitor".to_owned())
        .spawn(move || {
            let _turn = turn;
            for (directory, names) in found {
                for name in names {
                    look_at(&directory, &name);
                }
            }
        });
    if let Err(error) = swept {
        tracing::debug!(%error, "no thread could be made to clean up after dead hosts");
    }
}

/// The right to sweep: one thread of a process at a time.
struct Turn;

impl Turn {
    fn take() -> Option<Self> {
        let this = identity::pid();
        // The mark of a parent that was sweeping when it forked is not this process's.
        SWEEPING
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |sweeping| {
                (sweeping != this).then_some(this)
            })
            .ok()
            .map(|_| Self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        SWEEPING.store(0, Ordering::Release);
    }
}

/// Why a record was passed over.
#[derive(Debug, thiserror::Error)]
enum Passed {
    #[error("its owner lives")]
    Alive,
    #[error("it was removed meanwhile")]
    Gone,
    #[error("it cannot be opened or locked: {0}")]
    Unusable(#[from] Errno),
    #[error("it cannot be read or written: {0}")]
    Unreadable(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    Left(#[from] Left),
}

fn look_at(directory: &RecordDirectory, name: &OsStr) {
    let path = directory.path.join(name);
    match clean_up(directory, name) {
        Ok(()) => tracing::debug!(path = %path.display(), "cleaned up after a dead host"),
        Err(why @ (Passed::Alive | Passed::Gone)) => {
            tracing::trace!(path = %path.display(), %why, "a record is passed over");
        }
        Err(why) => tracing::warn!(path = %path.display(), %why, "a record is passed over"),
    }
}

/// Ends and removes what a record names, and the record last, if its owner is dead.
fn clean_up(directory: &RecordDirectory, name: &OsStr) -> Result<(), Passed> {
    let record = match directory.directory.open_file(name) {
        Err(Errno::NOENT) => return Err(Passed::Gone),
        opened => opened?,
    };
    // Held to the end, so that of two sweeps one passes over.
    if !file::try_lock(&record)? {
        return Err(Passed::Alive);
    }
    // Another sweep may have been done between the opening and the lock.
    if !directory.directory.names_file(name, &record) {
        return Err(Passed::Gone);
    }
    let mut text = Vec::new();
    (&record).take(LIMIT + 1).read_to_end(&mut text)?;
    // An empty one names nothing: its owner died, or is about to lock it and will find that it has to make another.
    if !text.is_empty() {
        let contents = contents::parse(&text)?;
        if name::recorded(name) != Some(contents.owner.pid) {
            return Err(Malformed::Owner.into());
        }
        if !contents.owner.is_dead(&Owner::this_process()?, proof::lives) {
            return Err(Passed::Alive);
        }
        // Half a line would make one with the next.
        let complete = text
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        record.set_len(complete as u64)?;
        remove_all(&record, &contents)?;
    }
    directory.directory.unlink(name)?;
    Ok(())
}

/// Removes what a record names. What can be removed is, also when the rest cannot.
fn remove_all(record: &File, contents: &Contents) -> Result<(), Passed> {
    let pid = contents.owner.pid;
    let mut result = Ok(());
    let asked = contents.facts.iter().find_map(|fact| match fact {
        Fact::Asked(when) => Some(*when),
        _ => None,
    });
    // Groups first: their members may still write into the directories.
    for fact in &contents.facts {
        if let Fact::Group(path) = fact {
            result = result.and(end_group(record, path, pid, asked));
        }
    }
    for fact in &contents.facts {
        if let Fact::Directory(path) = fact {
            result = result.and(private::remove(path, pid).map_err(Passed::from));
        }
    }
    result
}

fn end_group(record: &File, path: &Path, pid: u32, asked: Option<SystemTime>) -> Result<(), Passed> {
    let Some(group) = LeftGroup::open(path, pid)? else {
        return Ok(());
    };
    let grace = match asked {
        _ if group.is_empty() => Duration::ZERO,
        // A start before this one asked, and ended before the grace did. A clock that was set back has no say.
        Some(when) => when
            .elapsed()
            .map_or(Duration::ZERO, |elapsed| GRACE.saturating_sub(elapsed)),
        None => {
            // Written down first: whoever asks is obliged to nobody, so each could ask anew and none kill.
            (&*record).write_all(Fact::Asked(SystemTime::now()).line().as_bytes())?;
            group.ask();
            GRACE
        }
    };
    group.end(grace)?;
    Ok(())
}
