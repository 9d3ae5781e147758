//! Whether a record's owner is dead.

use std::io;

use dsh_subprocess_sys::pidfd::{self, Pid};
use dsh_subprocess_sys::{Errno, identity, table};

use super::contents::Owner;

impl Owner {
    /// Names this process.
    ///
    /// # Errors
    ///
    /// When `/proc` does not tell: it is not mounted, or shows another pid namespace.
    pub(super) fn this_process() -> io::Result<Self> {
        let entry = table::entry(table::this_process())
            .ok_or_else(|| io::Error::other("/proc does not show this process by its own number"))?;
        Ok(Self {
            pid: identity::pid(),
            start_time: entry.start_time,
            boot: identity::boot()?,
            pid_namespace: identity::pid_namespace()?,
        })
    }

    /// Tells whether this owner, whose record's lock is free, is dead for certain.
    ///
    /// The lock alone is not asked where more can be known: a host that executed another program has lost it and lives on, as
    /// the same process.
    ///
    /// For an owner in another pid namespace it has to do, since that one's numbers mean nothing here, and it does. A record
    /// that names anything is held open until the process ends or executes another program; in both cases the runtime is
    /// gone.
    pub(super) fn is_dead(&self, here: &Self, lives: impl FnOnce(u32, u64) -> bool) -> bool {
        if self.boot != here.boot {
            return true;
        }
        self.pid_namespace != here.pid_namespace || !lives(self.pid, self.start_time)
    }
}

/// Tells whether a process of this number, started at this time, can still run. Where it cannot be known, it can.
pub(super) fn lives(pid: u32, start_time: u64) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    if matches!(pidfd::open(pid), Err(Errno::SRCH)) {
        return false;
    }
    // No line of one that is there: /proc hides it, or it has ended since. The next sweep will know.
    table::entry(pid).is_none_or(|entry| entry.start_time == start_time && !entry.is_dead())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Owner {
        Owner::this_process().expect("/proc is there")
    }

    #[test]
    fn this_process_lives() {
        let owner = here();
        assert!(lives(owner.pid, owner.start_time));
        assert!(!owner.is_dead(&here(), lives));
    }

    #[test]
    fn a_number_that_is_used_again_is_no_sign_of_life() {
        let mut owner = here();
        owner.start_time += 1;
        assert!(owner.is_dead(&here(), lives));
    }

    #[test]
    fn a_number_that_nobody_has_is_dead() {
        for pid in [0, u32::MAX, i32::MAX.unsigned_abs()] {
            assert!(!lives(pid, 1), "{pid}");
        }
    }

    #[test]
    fn nobody_outlives_the_kernel() {
        let mut owner = here();
        owner.boot = "00000000-0000-0000-0000-000000000000".to_owned();
        assert!(owner.is_dead(&here(), |_, _| true));
    }

    #[test]
    fn numbers_of_another_namespace_are_not_looked_up() {
        let mut owner = here();
        owner.pid_namespace += 1;
        assert!(owner.is_dead(&here(), |_, _| panic!("that number means nothing here")));
    }
}
