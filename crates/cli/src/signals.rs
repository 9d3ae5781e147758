//! Signals that ask this process to end.

use std::io;

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use crate::exit_status;

/// A signal by which somebody asked this process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupt(Signal);

impl Interrupt {
    /// Returns what to exit with after it.
    pub(crate) fn status(self) -> u8 {
        exit_status::of_signal_number(self.0 as u8)
    }

    /// Returns the signal's name, as in `SIGINT`.
    pub(crate) fn name(self) -> &'static str {
        self.0.as_str()
    }
}

/// Sends every interrupt from now on as `wrap` makes it, for as long as the executor runs.
///
/// A signal that was ignored when this process started stays ignored: that is how `nohup` and a shell's background jobs
/// ask for it.
pub(crate) fn forward<T: Send + 'static>(
    sender: &UnboundedSender<T>,
    wrap: fn(Interrupt) -> T,
) -> io::Result<()> {
    let ignored = ignored_signals();
    for which in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let number = which as i32;
        if ignored >> (number - 1) & 1 == 1 {
            continue;
        }
        let mut arrivals = signal(SignalKind::from_raw(number))?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while arrivals.recv().await.is_some() && sender.send(wrap(Interrupt(which))).is_ok() {}
        });
    }
    Ok(())
}

/// Reads which signals this process ignores, as a bit set (see `proc_pid_status(5)`). None where the table
/// cannot be read.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
