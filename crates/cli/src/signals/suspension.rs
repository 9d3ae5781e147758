//! Stopping this process for now, as one does that leaves `SIGTSTP` its default effect.
//!
//! The handler of that signal only tells of it, and the stop comes later. Meanwhile whoever asked may have changed his mind.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::sys::signal::{SigSet, Signal};
use signal_hook::{flag, low_level};

use super::ignored;

/// The signals that stop a process by default, that have no handler here, and that know orphans, as `SIGSTOP` does not.
const STOPPING: [Signal; 2] = [Signal::SIGTTOU, Signal::SIGTTIN];

/// What is asked of this process now, whatever is still on its way to whoever reads it.
#[derive(Clone)]
pub(super) struct Suspension {
    /// Which of `SIGTSTP` and `SIGCONT` came last, by its number.
    last: Arc<AtomicUsize>,
    interrupted: Arc<AtomicBool>,
}

impl Suspension {
    /// Begins to keep an eye on those of these signals that matter. The handlers write it down themselves: among signals that
    /// are read together, the order is lost.
    ///
    /// # Errors
    ///
    /// A signal cannot be caught.
    pub(super) fn watch(asking: &[Signal], others: &[Signal]) -> io::Result<Self> {
        let suspension = Self {
            last: Arc::default(),
            interrupted: Arc::default(),
        };
        for &signal in asking {
            flag::register(signal as i32, suspension.interrupted.clone())?;
        }
        for &signal in others {
            if matches!(signal, Signal::SIGTSTP | Signal::SIGCONT) {
                flag::register_usize(signal as i32, suspension.last.clone(), signal as usize)?;
            }
        }
        Ok(suspension)
    }

    /// Tells whether a stop is asked for, and neither taken back nor overtaken by the end.
    pub(super) fn is_wanted(&self) -> bool {
        self.last.load(Ordering::SeqCst) == Signal::SIGTSTP as usize
            && !self.interrupted.load(Ordering::SeqCst)
    }

    /// Stops this process until somebody continues it, if that is wanted.
    ///
    /// In an orphaned process group, where nobody would continue it, it is not stopped (setpgid(2)).
    pub(super) fn carry_out(&self) {
        let ignored = ignored();
        let Some(signal) = STOPPING.into_iter().find(|&signal| !ignored.contains(signal)) else {
            return;
        };
        let set = SigSet::from(signal);
        // None of these can fail for signals that exist. Pending while it is blocked, the stop is discarded by whatever
        // continues us from here on (POSIX.1, Signal Generation and Delivery): nothing falls between the look and the stop.
        let _ = set.thread_block();
        let _ = low_level::raise(signal as i32);
        if !self.is_wanted() {
            let _ = low_level::raise(Signal::SIGCONT as i32);
        }
        let _ = set.thread_unblock();
    }
}
