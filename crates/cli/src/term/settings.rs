//! The settings of the terminal that is our standard input (termios(3)): raw while it is attached, and as they were after
//! that.

use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::stdio;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::watcher::Watcher;

/// The settings that the user had. They are put back when this is dropped, and by the [`Watcher`] where that never happens.
pub(super) struct Settings {
    saved: Termios,
    _watcher: Watcher,
}

impl Settings {
    /// Takes note of them, and changes nothing yet.
    ///
    /// # Errors
    ///
    /// Standard input is no terminal, or nobody can be found to watch over it.
    pub(super) fn keep() -> io::Result<Self> {
        Ok(Self {
            saved: read()?,
            _watcher: Watcher::start()?,
        })
    }

    /// Makes every key a byte that can be read at once, and shows every byte that is written as it is.
    ///
    /// # Errors
    ///
    /// The terminal is gone.
    pub(super) fn make_raw(&self) -> io::Result<()> {
        let mut raw = self.saved.clone();
        raw.make_raw();
        // Now, and nothing is thrown away: what was typed ahead is for the command.
        Ok(tcsetattr(stdio::stdin(), OptionalActions::Now, &raw)?)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        put_back(&self.saved);
    }
}

/// Reads the settings.
pub(super) fn read() -> io::Result<Termios> {
    Ok(tcgetattr(stdio::stdin())?)
}

/// Tells whether the terminal is still as [`Settings::make_raw`] left it, for all that matters. A shell's line editor, to
/// which the terminal may have gone meanwhile, leaves the keys that make signals alone.
pub(super) fn are_raw() -> bool {
    read().is_ok_and(|now| !now.local_modes.intersects(LocalModes::ICANON | LocalModes::ISIG))
}

/// Puts settings back. A terminal that somebody else has set since is left as it is: a shell that took it back from a
/// process which was stopped or killed has made it its own.
pub(super) fn put_back(saved: &Termios) {
    if !are_raw() {
        return;
    }
    // In the background this would stop us, at our very end; a caller that blocks the signal is let through instead
    // (tcsetattr(3p)). Failing to block it fails for no signal that exists.
    let stopping = SigSet::from(Signal::SIGTTOU);
    let before = stopping.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    // Now: waiting for the output to be shown could be for ever. There is no terminal left where it fails.
    let _ = tcsetattr(stdio::stdin(), OptionalActions::Now, saved);
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
}
