//! Terminals: pairs of devices, of which the host has the master and the programs have the slave (pty(7)).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, ptsname, unlockpt};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Winsize, tcgetattr, tcgetpgrp, tcsetattr,
    tcsetwinsize,
};

use super::pipe;

/// A new terminal. Both ends are close-on-exec and numbered 3 or more.
#[derive(Debug)]
pub struct Pty {
    /// The host's end, in non-blocking mode.
    pub master: OwnedFd,
    /// The programs' end.
    pub slave: OwnedFd,
}

/// Makes a terminal with a window of this size, in the state that the kernel gives a new one, but for one thing: erasing a
/// character erases a whole UTF-8 sequence (`IUTF8` in termios(3)).
///
/// ```
/// use dsh_subprocess_sys::{pipe, pty};
/// let pty = pty::open(24, 80)?;
/// pipe::write(&pty.master, b"typed\n")?;
/// let mut line = [0; 16];
/// assert_eq!(pipe::read(&pty.slave, &mut line)?, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// `ENOSPC` when the machine has no terminal left (`/proc/sys/kernel/pty/max`), `EMFILE`, `ENFILE`; `ENOENT` where there is
/// no `/dev/ptmx`, `EACCES` where it may not be used.
pub fn open(rows: u16, cols: u16) -> Result<Pty, Errno> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let master = pipe::above_standard(fs::open(c"/dev/ptmx", flags, Mode::empty())?)?;
    unlockpt(&master)?;
    let slave = pipe::above_standard(open_slave(&master)?)?;
    let mut state = tcgetattr(&slave)?;
    state.input_modes |= InputModes::IUTF8;
    tcsetattr(&slave, OptionalActions::Now, &state)?;
    resize(&master, rows, cols)?;
    Ok(Pty { master, slave })
}

/// Opens the slave by its master (`ioctl_tty(2)`, `TIOCGPTPEER`): a name could lead into another file system of terminals.
fn open_slave(master: &OwnedFd) -> Result<OwnedFd, Errno> {
    match ioctl_tiocgptpeer(
        master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    ) {
        // Kernels that only look like Linux do not all have it.
        Err(Errno::NOTTY | Errno::INVAL | Errno::NOSYS) => {
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            fs::open(ptsname(master, Vec::new())?, flags, Mode::empty())
        }
        opened => opened,
    }
}

/// What a read of a master came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// So many bytes.
    Bytes(usize),
    /// There is nothing to read now.
    Empty,
    /// There is nothing to read, and nobody has the slave open (the kernel says `EIO`). Somebody whose controlling terminal
    /// this is may open it again.
    Closed,
}

/// Reads what the programs have printed.
///
/// # Errors
///
/// Those of read(2) that are no answer of a terminal.
pub fn read(master: impl AsFd, buffer: &mut [u8]) -> io::Result<Read> {
    match pipe::read(master, buffer) {
        // A master never ends: a read of nothing is what `EIO` is, on kernels that say it so.
        Ok(0) if !buffer.is_empty() => Ok(Read::Closed),
        Ok(length) => Ok(Read::Bytes(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Empty),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => Ok(Read::Closed),
        Err(error) => Err(error),
    }
}

/// Types bytes, as many as the terminal takes now: `None` where that is none, because it is full. What is typed while nobody has
/// the slave open is there for whoever opens it next.
///
/// # Errors
///
/// Those of write(2) that are no answer of a terminal.
pub fn write(master: impl AsFd, bytes: &[u8]) -> io::Result<Option<usize>> {
    match rustix::io::retry_on_intr(|| rustix::io::write(&master, bytes)) {
        Ok(0) | Err(Errno::AGAIN | Errno::IO) => Ok(None),
        Ok(length) => Ok(Some(length)),
        Err(errno) => Err(errno.into()),
    }
}

/// Tells whether nobody has the slave open any more.
pub fn is_closed(master: impl AsFd) -> bool {
    let mut asked = [PollFd::new(&master, PollFlags::empty())];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        && asked[0].revents().contains(PollFlags::HUP)
}

/// What a terminal does with its input: the part of its state that decides how long a line is. Named as in termios(3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of termios")]
#[expect(missing_docs, reason = "the names are those of the manual page")]
pub struct LineMode {
    /// Input is given to readers by the line. Nothing below matters without it.
    pub icanon: bool,
    /// Whoever types edits the line: no character is special.
    pub extproc: bool,
    pub istrip: bool,
    pub iuclc: bool,
    pub igncr: bool,
    pub icrnl: bool,
    pub inlcr: bool,
    pub ixon: bool,
    pub parmrk: bool,
    pub iutf8: bool,
    pub isig: bool,
    pub noflsh: bool,
    pub iexten: bool,
    pub echo: bool,
    pub vintr: u8,
    pub vquit: u8,
    pub vsusp: u8,
    pub vstart: u8,
    pub vstop: u8,
    pub verase: u8,
    pub vwerase: u8,
    pub vkill: u8,
    pub vlnext: u8,
    pub vreprint: u8,
    pub veof: u8,
    pub veol: u8,
    pub veol2: u8,
}

/// Returns what the terminal does with its input at this moment.
///
/// # Errors
///
/// `ENOTTY` after the terminal's end.
pub fn line_mode(master: impl AsFd) -> Result<LineMode, Errno> {
    let state = tcgetattr(master)?;
    let input = |mode| state.input_modes.contains(mode);
    let local = |mode| state.local_modes.contains(mode);
    let codes = &state.special_codes;
    Ok(LineMode {
        icanon: local(LocalModes::ICANON),
        extproc: local(LocalModes::EXTPROC),
        istrip: input(InputModes::ISTRIP),
        iuclc: input(InputModes::IUCLC),
        igncr: input(InputModes::IGNCR),
        icrnl: input(InputModes::ICRNL),
        inlcr: input(InputModes::INLCR),
        ixon: input(InputModes::IXON),
        parmrk: input(InputModes::PARMRK),
        iutf8: input(InputModes::IUTF8),
        isig: local(LocalModes::ISIG),
        noflsh: local(LocalModes::NOFLSH),
        iexten: local(LocalModes::IEXTEN),
        echo: local(LocalModes::ECHO),
        vintr: codes[SpecialCodeIndex::VINTR],
        vquit: codes[SpecialCodeIndex::VQUIT],
        vsusp: codes[SpecialCodeIndex::VSUSP],
        vstart: codes[SpecialCodeIndex::VSTART],
        vstop: codes[SpecialCodeIndex::VSTOP],
        verase: codes[SpecialCodeIndex::VERASE],
        vwerase: codes[SpecialCodeIndex::VWERASE],
        vkill: codes[SpecialCodeIndex::VKILL],
        vlnext: codes[SpecialCodeIndex::VLNEXT],
        vreprint: codes[SpecialCodeIndex::VREPRINT],
        veof: codes[SpecialCodeIndex::VEOF],
        veol: codes[SpecialCodeIndex::VEOL],
        veol2: codes[SpecialCodeIndex::VEOL2],
    })
}

/// Sets the size of the window. The foreground group gets `SIGWINCH` where it changes (`ioctl_tty(2)`, `TIOCSWINSZ`).
///
/// # Errors
///
/// None that can happen to a master.
pub fn resize(master: impl AsFd, rows: u16, cols: u16) -> Result<(), Errno> {
    tcsetwinsize(
        master,
        Winsize {
            ws_row: rows,
            ws_col: cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )
}

/// Returns the process group that has the terminal. `None` where none has, or one that this pid namespace has no number for.
///
/// The number may be that of a group whose last member has just ended.
///
/// # Errors
///
/// `ENOTTY` after the terminal's end.
pub fn foreground_group(master: impl AsFd) -> Result<Option<Pid>, Errno> {
    match tcgetpgrp(master) {
        Ok(group) => Ok(Some(group)),
        // What the library makes of 0.
        Err(Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Sends `SIGINT`, `SIGQUIT` or `SIGTSTP` to the group that has the terminal at this moment, as its special characters do
/// (`TIOCSIG`, which the kernel has for these three). The sender is the kernel, so members of any user get it.
///
/// # Errors
///
/// `EINVAL` for another signal, `ENOTTY` after the terminal's end.
pub fn signal_foreground(master: impl AsFd, signal: Signal) -> Result<(), Errno> {
    // SAFETY: the request takes the signal's number as an integer, and touches no memory.
    let request = unsafe { rustix::ioctl::IntegerSetter::<TIOCSIG>::new_usize(signal.as_raw() as usize) };
    // SAFETY: as above: it is the request that the wrapper was made for.
    unsafe { rustix::ioctl::ioctl(master, request) }
}

/// Sends a signal to a terminal's foreground group (asm-generic/ioctls.h; alike on both architectures).
const TIOCSIG: rustix::ioctl::Opcode = 0x4004_5436;

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_terminal_has_its_size_from_the_start() {
        let pty = open(7, 65535).expect("a terminal");
        let size = rustix::termios::tcgetwinsize(&pty.slave).expect("it is one");
        assert_eq!((size.ws_row, size.ws_col), (7, 65535));
        assert!(pty.master.as_raw_fd() > 2 && pty.slave.as_raw_fd() > 2);
    }

    #[test]
    fn o21_what_was_printed_before_the_last_close_is_read_first() {
        let pty = open(24, 80).expect("a terminal");
        assert!(!is_closed(&pty.master));
        pipe::write(&pty.slave, b"last words").expect("there is room");
        drop(pty.slave);
        assert!(is_closed(&pty.master));
        let mut words = [0; 64];
        assert_eq!(read(&pty.master, &mut words).expect("it is one"), Read::Bytes(10));
        assert_eq!(read(&pty.master, &mut words).expect("it is one"), Read::Closed);
    }

    #[test]
    fn what_is_typed_while_nobody_has_the_slave_open_is_kept_for_the_next() {
        let pty = open(24, 80).expect("a terminal");
        drop(pty.slave);
        assert_eq!(write(&pty.master, b"typed\n").expect("it is one"), Some(6));
        let slave = open_slave(&pty.master).expect("it is opened again");
        let mut line = [0; 16];
        assert_eq!(pipe::read(&slave, &mut line).expect("it is one"), 6);
    }

    #[test]
    fn a_terminal_without_a_session_has_no_foreground() {
        let pty = open(24, 80).expect("a terminal");
        assert_eq!(foreground_group(&pty.master), Ok(None));
        // Nobody gets it.
        assert_eq!(signal_foreground(&pty.master, Signal::INT), Ok(()));
        assert_eq!(signal_foreground(&pty.master, Signal::TERM), Err(Errno::INVAL));
    }
}
