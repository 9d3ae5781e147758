//! The control group of the host's runtime, with a leaf for each of its trees, once the host has ended (cgroups(7), and the
//! kernel's cgroup-v2 document).
//!
//! Each leaf has a grace of its own, in a table that the host keeps in memory it shares: the host wrote it before it put
//! anybody into the leaf, so it is there however the host has ended.

use core::ffi::CStr;

use crate::abi::flag::{AT_FDCWD, DT_DIR, O_RDONLY, O_WRONLY, SIGCONT, SIGKILL, SIGTERM};
use crate::descriptor::{self, Descriptor, open_at, read, read_at};
use crate::directory::{self, Entries, open_directory};
use crate::pid_set::PidSet;
use crate::poll::earlier;
use crate::process;
use crate::protocol::{ASKED, Malformed, PATH};
use crate::removal::unlink;
use crate::text::{self, Numbers};

/// Groups that are open at once, each in the one before. A member that has nested deeper is killed with the rest, but gets
/// no `SIGTERM` there.
const DEPTH: usize = 64;
/// Processes that are held at once.
const HELD: usize = 32;
/// In the place of one process: all of them.
const EVERYBODY: u32 = 0;
/// Times that a list of members is read until everybody on it was signalled.
const LISTINGS: usize = 8;

/// What the host has said of a leaf.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Milliseconds, perhaps with [`ASKED`].
    grace: u32,
    /// The one who was not asked when all others were, or [`EVERYBODY`].
    unasked: u32,
}

/// The group.
#[derive(Debug)]
pub struct Group {
    directory: Descriptor,
    graces: Descriptor,
    path: [u8; PATH],
    /// `cgroup.events`, open from the start: when the host ends there may be no more descriptors to be had.
    events: Descriptor,
    /// When its end began.
    ending: Option<u64>,
}

impl Group {
    /// Takes over what the host has registered.
    pub fn new(path: &[u8], directory: Descriptor, graces: Descriptor) -> Result<Self, Malformed> {
        let events = open_at(directory.number(), c"cgroup.events", O_RDONLY).map_err(|_| Malformed)?;
        let mut group = Self {
            directory,
            graces,
            path: [0; PATH],
            events,
            ending: None,
        };
        // There is always a NUL behind it: the protocol's paths are shorter than the room.
        group
            .path
            .get_mut(..path.len())
            .ok_or(Malformed)?
            .copy_from_slice(path);
        Ok(group)
    }

    /// Begins its end: every process in it is asked, but for those that the host has asked already.
    pub fn ask(&mut self, now: u64, scratch: &mut PidSet) {
        const ASK: [i32; 2] = [SIGTERM, SIGCONT];
        self.ending = Some(now);
        signal_in(&self.directory, &ASK, EVERYBODY, scratch);
        each_group(&self.directory, &mut |leaf, name| {
            let Entry { grace, unasked } = self.entry_of(name);
            if grace & ASKED == 0 {
                signal_below(leaf, &ASK, unasked, scratch, 1);
            }
        });
    }

    /// Returns what becomes ready (`POLLPRI`) when the last process has left it.
    pub fn events(&self) -> Option<&Descriptor> {
        self.ending.map(|_| &self.events)
    }

    /// Kills those whose grace is over. Returns whether the group is empty, and the milliseconds until the next grace is
    /// over.
    pub fn kill(&self, now: u64, default_grace: u64, scratch: &mut PidSet) -> (bool, Option<u64>) {
        let Some(begun) = self.ending else {
            return (true, None);
        };
        // Reading it is what makes the next change known.
        if !is_populated(&self.events) {
            return (true, None);
        }
        let passed = now.saturating_sub(begun);
        let mut wait = None;
        each_group(&self.directory, &mut |leaf, name| {
            let grace = match self.entry_of(name).grace & !ASKED {
                0 => default_grace,
                grace => grace.into(),
            };
            if passed < grace {
                wait = earlier(wait, Some(grace - passed));
            } else {
                kill_in(leaf, scratch);
            }
        });
        // Whoever is in the group itself was put there by hand.
        if passed < default_grace {
            wait = earlier(wait, Some(default_grace - passed));
        } else if wait.is_none() {
            kill_in(&self.directory, scratch);
        }
        (false, wait)
    }

    /// Removes it, when it is empty, with the groups that members have made below their own.
    pub fn remove(&self) {
        let path = CStr::from_bytes_until_nul(&self.path).unwrap_or_default();
        remove_below(&self.directory, 0);
        // What is at the path now may be another one's.
        let here = directory::status(&self.directory).map(|status| status.place);
        let there = directory::status_of(AT_FDCWD, path).map(|status| status.place);
        if here.is_ok() && here == there {
            let _ = unlink(AT_FDCWD, path, true);
        }
    }

    /// Reads what the table says of the leaf with this name (`t17`); nothing where it says nothing.
    fn entry_of(&self, leaf: &CStr) -> Entry {
        let Some(number) = leaf.to_bytes().strip_prefix(b"t").and_then(text::number) else {
            return Entry::default();
        };
        let mut words = [[0_u8; 4]; 2];
        let bytes = words.as_flattened_mut();
        match read_at(self.graces.number(), bytes, number as usize * 8) {
            Ok(8) => Entry {
                grace: u32::from_le_bytes(words[0]),
                unasked: u32::from_le_bytes(words[1]),
            },
            _ => Entry::default(),
        }
    }
}

/// Tells whether a process is in the group or below it. One that cannot be read was removed.
fn is_populated(events: &Descriptor) -> bool {
    let mut text = [0_u8; 128];
    let Ok(length) = read_at(events.number(), &mut text, 0) else {
        return false;
    };
    let text = text.get(..length).unwrap_or_default();
    text.split(|&byte| byte == b'\n')
        .any(|line| line == b"populated 1")
}

/// Kills everybody in a group and below it.
fn kill_in(group: &Descriptor, scratch: &mut PidSet) {
    if let Ok(kill) = open_at(group.number(), c"cgroup.kill", O_WRONLY)
        && descriptor::write(kill.number(), b"1").is_ok()
    {
        return;
    }
    // Before Linux 5.14. A frozen process does not fork, and dies all the same.
    if let Ok(freeze) = open_at(group.number(), c"cgroup.freeze", O_WRONLY) {
        let _ = descriptor::write(freeze.number(), b"1");
    }
    signal_below(group, &[SIGKILL], EVERYBODY, scratch, 0);
}

/// Signals everybody in a group and below it, or one process alone.
fn signal_below(group: &Descriptor, signals: &[i32], whom: u32, scratch: &mut PidSet, depth: usize) {
    signal_in(group, signals, whom, scratch);
    if depth < DEPTH {
        each_group(group, &mut |inner, _| {
            signal_below(inner, signals, whom, scratch, depth + 1);
        });
    }
}

/// Calls `each` with every group right below one, and its name.
fn each_group(group: &Descriptor, each: &mut dyn FnMut(&Descriptor, &CStr)) {
    let mut entries = Entries::from_the_beginning(group);
    while let Some((name, kind)) = entries.next() {
        if kind == DT_DIR
            && let Ok(inner) = open_directory(group, name)
        {
            each(&inner, name);
        }
    }
}

/// Signals everybody in a group, or one process alone, once. A number on its list may be somebody else's when it is used, so each process is opened,
/// and signalled through its descriptor if the number is on the list again while it is held: then it was its own.
fn signal_in(group: &Descriptor, signals: &[i32], whom: u32, signalled: &mut PidSet) {
    signalled.clear();
    let Ok(list) = open_at(group.number(), c"cgroup.procs", O_RDONLY) else {
        return;
    };
    let mut turns = 0;
    while turns < LISTINGS {
        let mut held = [const { None::<(u32, Descriptor)> }; HELD];
        let mut count = 0;
        let mut more = false;
        each_member(&list, &mut |pid| {
            if signalled.contains(pid) || (whom != EVERYBODY && whom != pid) {
                return;
            }
            let Some(place) = held.get_mut(count) else {
                more = true;
                return;
            };
            signalled.insert(pid);
            if let Ok(process) = process::open(pid) {
                *place = Some((pid, process));
                count += 1;
            }
        });
        if count > 0 {
            each_member(&list, &mut |pid| {
                for (number, process) in held.iter().flatten() {
                    if *number == pid {
                        for &signal in signals {
                            // It may end at any time, or refuse.
                            let _ = process::signal(process, signal);
                        }
                    }
                }
            });
        }
        if !more {
            // Another look, for those that were born meanwhile.
            turns += 1;
            if count == 0 {
                return;
            }
        }
    }
}

/// Calls `each` with everybody in a group. Those of another pid namespace are listed as 0, and passed over.
fn each_member(list: &Descriptor, each: &mut dyn FnMut(u32)) {
    descriptor::rewind(list);
    let mut numbers = Numbers::default();
    let mut piece = [0_u8; 4096];
    while let Ok(length @ 1..) = read(list.number(), &mut piece) {
        numbers.read(piece.get(..length).unwrap_or_default(), |pid| {
            if pid != 0 {
                each(pid);
            }
        });
    }
    numbers.end(&mut *each);
}

/// Removes the groups below one, deepest first.
fn remove_below(group: &Descriptor, depth: usize) {
    each_group(group, &mut |inner, name| {
        if unlink(group.number(), name, true).is_err() && depth < DEPTH {
            remove_below(inner, depth + 1);
            // One that stays keeps those above it, and there is nobody to tell.
            let _ = unlink(group.number(), name, true);
        }
    });
}
