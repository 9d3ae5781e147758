//! One child on a terminal of its own, by the calls of `pty(7)`.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Cloner, Program, reap};
use crate::finding::Name;
use crate::terminal::{COLS, Conversation, ROWS, Terminals};

/// Makes terminals with a child each.
pub(crate) struct RawTerminals(Cloner);

impl RawTerminals {
    pub(crate) const NAME: Name = Name::FLOOR;

    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Cloner::new()?))
    }

    /// Starts a program on a new terminal. Returns the terminal and the program.
    pub(crate) fn start(&mut self, argv: &[String]) -> Result<(OwnedFd, OwnedFd)> {
        let program = Program::new(&argv[0], argv[1..].iter().map(String::as_str))?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags).context("no terminal can be had")?;
        unlockpt(&terminal)?;
        let of_program = ioctl_tiocgptpeer(&terminal, flags)?;
        tcsetwinsize(
            &terminal,
            Winsize {
                ws_row: ROWS,
                ws_col: COLS,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )?;
        let child = self.0.spawn_on(&program, of_program.as_fd())?;
        Ok((terminal, child))
    }
}

impl Terminals for RawTerminals {
    fn run(&mut self, argv: &[String], buffer: &mut [u8]) -> Result<u64> {
        let (terminal, child) = self.start(argv)?;
        let mut total = 0;
        while let length @ 1.. = read(terminal.as_fd(), buffer)? {
            total += length as u64;
        }
        reap(&child)?;
        Ok(total)
    }

    fn converse(mut self: Box<Self>, argv: &[String]) -> Result<Box<dyn Conversation>> {
        let (terminal, _) = self.start(argv)?;
        Ok(Box::new(RawConversation(terminal)))
    }
}

/// Reads what there is. That nobody holds the other side any more is an error (`EIO`) to the system, and the end here.
fn read(terminal: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize> {
    match rustix::io::read(terminal, buffer) {
        Err(Errno::IO) => Ok(0),
        read => Ok(read?),
    }
}

/// A loop of `write`, `poll` and `read`.
struct RawConversation(OwnedFd);

impl Conversation for RawConversation {
    fn hear(&mut self) -> Result<u8> {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None)?;
        let mut byte = [0];
        if read(self.0.as_fd(), &mut byte)? == 0 {
            bail!("the program has ended");
        }
        Ok(byte[0])
    }

    fn exchange(&mut self, typed: u8) -> Result<u8> {
        let taken = rustix::io::write(&self.0, &[typed])?;
        ensure!(taken == 1, "the terminal took {taken} bytes");
        self.hear()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<u64> {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        RawTerminals::new()?.run(&argv, &mut [0; 64])
    }

    #[test]
    fn a_program_has_the_terminal_and_its_size() {
        // `/dev/tty` is there for those alone that have a controlling terminal (`tty(4)`).
        let total = run("test \"$(stty size < /dev/tty)\" = '24 80' && test -t 0 && test -t 2 && echo ok");
        assert_eq!(
            total.expect("the shell succeeds"),
            4,
            "a line feed has become two characters"
        );
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        let error = run("exit 3").expect_err("it fails");
        assert!(
            error.to_string().contains("the child of the floor failed"),
            "{error:#}"
        );
    }
}
