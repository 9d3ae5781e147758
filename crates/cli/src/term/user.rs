//! The terminal that is our standard input, and whoever sits at it.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};

use dsh_subprocess::TerminalSize;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, open};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use crate::own_stream;
use crate::signals::Interrupt;
use crate::stop::Stop;

/// Where the session's output is shown.
pub(super) struct Display {
    pub(super) writer: Box<dyn Write + Send>,
    /// Whether somebody sees it there.
    pub(super) is_terminal: bool,
}

/// Tells whether there is one.
pub(super) fn is_there() -> bool {
    io::stdin().is_terminal()
}

/// Returns its size. `None` where there is none, or where it does not know.
pub(super) fn size() -> Option<TerminalSize> {
    let window = tcgetwinsize(stdio::stdin()).ok()?;
    let size = TerminalSize {
        rows: window.ws_row,
        cols: window.ws_col,
    };
    size.validate().is_ok().then_some(size)
}

/// Tells whether we are in its foreground. A terminal that is not our controlling one has none that would matter.
pub(super) fn is_ours() -> bool {
    tcgetpgrp(stdio::stdin()).map_or(true, |foreground| foreground == getpgrp())
}

/// Finds where the output is shown: on standard output, unless that `is_taken`; then on the user's terminal, and nowhere if
/// nobody is there.
///
/// # Errors
///
/// The terminal cannot be written to.
pub(super) fn display(is_attached: bool, is_taken: bool) -> io::Result<Option<Display>> {
    Ok(match (is_taken, is_attached) {
        (false, _) => Some(Display {
            writer: Box::new(own_stream::stdout()),
            is_terminal: io::stdout().is_terminal(),
        }),
        (true, true) => Some(Display {
            writer: Box::new(File::from(writable()?)),
            is_terminal: true,
        }),
        (true, false) => None,
    })
}

/// Lets the user hear that what was typed is not taken.
pub(super) fn ring() {
    let Ok(terminal) = writable() else { return };
    // A terminal that takes nothing now cannot be heard either, and is not waited for.
    let mut polled = [PollFd::new(&terminal, PollFlags::OUT)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready == 1) {
        let _ = rustix::io::write(&terminal, b"\x07");
    }
}

/// Returns what the end of the user's terminal is to a program, or what else went wrong with it.
pub(super) fn lost(error: io::Error) -> Stop {
    if is_gone(&error) {
        Stop::Interrupted(Interrupt::HANG_UP)
    } else {
        Stop::InputFailed("the terminal".to_owned(), error)
    }
}

/// Tells whether a failure is the terminal's end (`EIO` in read(2) and write(2)).
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Opens it for writing. Our standard input is most often open for both.
fn writable() -> io::Result<OwnedFd> {
    let input = stdio::stdin();
    if fcntl_getfl(input)?.contains(OFlags::RDWR) {
        return input.as_fd().try_clone_to_owned();
    }
    // The same terminal, not just any of that name in this file system (proc_pid_fd(5)).
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open("/proc/self/fd/0", flags, Mode::empty())?)
}
