//! Signals that ask this process to end, and those that would end it before its tree.

mod suspension;

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use self::suspension::Suspension;
use crate::exit_status;

/// The signals that ask for an end.
const ASKING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// The signals that tell of the terminal somebody sits at.
const TELLING: [Signal; 3] = [Signal::SIGWINCH, Signal::SIGTSTP, Signal::SIGCONT];

/// How long a report may take to be written once somebody asked for the end of this process.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A signal by which somebody asked this process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupt(Signal);

impl Interrupt {
    /// What the end of its terminal is to a program.
    pub(crate) const HANG_UP: Self = Self(Signal::SIGHUP);

    /// Returns what to exit with after it.
    pub(crate) fn status(self) -> u8 {
        exit_status::of_signal_number(self.0 as u8)
    }

    /// Returns the signal's name, as in `SIGINT`.
    pub(crate) fn name(self) -> &'static str {
        self.0.as_str()
    }
}

/// What happens to the terminal somebody sits at, and to this process on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It may have another size.
    Resized,
    /// Somebody wants this process to stop for now.
    Stop,
    /// It goes on after a stop.
    Continued,
}

impl Notice {
    fn of(signal: Signal) -> Option<Self> {
        match signal {
            Signal::SIGWINCH => Some(Self::Resized),
            Signal::SIGTSTP => Some(Self::Stop),
            Signal::SIGCONT => Some(Self::Continued),
            _ => None,
        }
    }
}

/// The notices of this process, one after the other.
///
/// While it lives, a stop is for whoever reads it to carry out. Once it is dropped, a stop stops.
pub(crate) struct Notices {
    receiver: UnboundedReceiver<Notice>,
    suspension: Suspension,
}

impl Notices {
    /// Waits for the next one.
    ///
    /// # Cancellation
    ///
    /// None is lost.
    pub(crate) async fn next(&mut self) -> Notice {
        match self.receiver.recv().await {
            Some(notice) => notice,
            // The thread lives as long as this process.
            None => std::future::pending().await,
        }
    }

    /// Tells whether a stop is still wanted: nobody has continued this process since, and nobody has asked for its end.
    pub(crate) fn want_stop(&self) -> bool {
        self.suspension.is_wanted()
    }

    /// Stops this process until somebody continues it, if that is still wanted. In an orphaned process group, where nobody
    /// would, it is not stopped.
    pub(crate) fn stop(&self) {
        self.suspension.carry_out();
    }
}

/// Stops this process as its terminal does one that uses it from the background. In an orphaned process group, where nobody
/// would continue it, it is not stopped (setpgid(2)).
pub(crate) fn stop_in_background() {
    let _ = low_level::raise(Signal::SIGTTOU as i32);
}

/// Makes signals reach this process in the way the rest of it expects. Before the first thread: a mask is a thread's own,
/// and threads inherit it.
pub(crate) fn prepare() {
    // Neither can fail for a signal that exists, and both would leave things as they were.
    // Whoever started us may have blocked them, and an interrupt would wait for ever.
    let _ = SigSet::from_iter(ASKING).thread_unblock();
    // A file at its size limit is a failed write, EFBIG, and not the end of a process whose tree runs on. Ignored, it would
    // be ignored by whatever is started without resetting it; caught, it is not inherited; signal(7).
    let _ = flag::register(Signal::SIGXFSZ as i32, Arc::new(AtomicBool::new(false)));
}

/// The interrupts of this process, one after the other.
///
/// While it lives, they end nothing by themselves. Once it is dropped there is no tree left to end, and an interrupt ends
/// this process: after [`LAST_WORDS`], so that a report which somebody reads is written whole; a second one at once.
pub(crate) struct Interrupts(UnboundedReceiver<Interrupt>);

impl Interrupts {
    /// Begins to watch.
    ///
    /// A signal that was ignored when this process started stays ignored: that is how `nohup` and a shell's background
    /// jobs ask for it.
    ///
    /// # Errors
    ///
    /// There is no descriptor or no thread left to watch with. Signals end this process then.
    pub(crate) fn watch() -> io::Result<Self> {
        Ok(watch(&[])?.0)
    }

    /// Begins to watch, and to read what happens to the terminal, too.
    ///
    /// # Errors
    ///
    /// Those of [`watch`](Self::watch).
    pub(crate) fn watch_terminal() -> io::Result<(Self, Notices)> {
        watch(&TELLING)
    }

    /// Waits for the next one.
    ///
    /// # Cancellation
    ///
    /// None is lost.
    pub(crate) async fn next(&mut self) -> Interrupt {
        match self.0.recv().await {
            Some(interrupt) => interrupt,
            // The thread lives as long as this process.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // From here on the thread sees that nobody listens. What it sent before is for it now, too.
        self.0.close();
        while let Ok(Interrupt(signal)) = self.0.try_recv() {
            // It cannot fail for a signal that exists.
            let _ = low_level::raise(signal as i32);
        }
    }
}

/// Begins to watch those that ask for an end, and these others.
fn watch(others: &[Signal]) -> io::Result<(Interrupts, Notices)> {
    let ignored = ignored();
    let watched = |signals: &[Signal]| -> Vec<_> {
        let signals = signals.iter().copied();
        signals.filter(|&signal| !ignored.contains(signal)).collect()
    };
    let (asking, others) = (watched(&ASKING), watched(others));
    // True until everything is in place: there is no tree yet, and no interrupt may be lost.
    let at_once = Arc::new(AtomicBool::new(true));
    // Before the others: actions run in this order, and at the first interrupt that ends this process the thread may
    // set the flag while the handler is still under way.
    for &signal in &asking {
        let status = Interrupt(signal).status();
        flag::register_conditional_shutdown(signal as i32, status.into(), at_once.clone())?;
    }
    // Before the signals are passed on, so that it is never behind them.
    let suspension = Suspension::watch(&asking, &others)?;
    let signals = Signals::new([asking, others].concat().iter().map(|&signal| signal as i32))?;
    let (interrupt_sender, interrupts) = mpsc::unbounded_channel();
    let (notice_sender, notices) = mpsc::unbounded_channel();
    let (last, stopping) = (at_once.clone(), suspension.clone());
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || forward(signals, &interrupt_sender, &notice_sender, &stopping, &last))?;
    at_once.store(false, Ordering::Relaxed);
    let notices = Notices {
        receiver: notices,
        suspension,
    };
    Ok((Interrupts(interrupts), notices))
}

/// Passes signals on for as long as somebody listens, and ends this process at the first interrupt after that.
fn forward(
    mut signals: Signals,
    interrupts: &mpsc::UnboundedSender<Interrupt>,
    notices: &mpsc::UnboundedSender<Notice>,
    suspension: &Suspension,
    at_once: &AtomicBool,
) {
    for number in signals.forever() {
        let Ok(signal) = Signal::try_from(number) else {
            continue;
        };
        if let Some(notice) = Notice::of(signal) {
            if notices.send(notice).is_err() && notice == Notice::Stop {
                suspension.carry_out();
            }
            continue;
        }
        let interrupt = Interrupt(signal);
        if interrupts.send(interrupt).is_err() {
            at_once.store(true, Ordering::Relaxed);
            thread::sleep(LAST_WORDS);
            process::exit(interrupt.status().into());
        }
    }
}

/// A set of signals.
pub(crate) struct Ignored(u64);

impl Ignored {
    /// Tells whether a signal is in it.
    pub(crate) fn contains(&self, signal: Signal) -> bool {
        self.0 >> (signal as i32 - 1) & 1 == 1
    }
}

/// Reads which signals this process ignores (see `proc_pid_status(5)`). None where the table cannot be read.
pub(crate) fn ignored() -> Ignored {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    Ignored(mask.unwrap_or(0))
}
