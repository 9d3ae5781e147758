//! Programs for a terminal.

use anyhow::{Context as _, Result};
use rustix::io::{Errno, read, write};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::writer;

/// What [`echo`] prints once it is ready.
pub(crate) const READY: u8 = b'!';

/// Bytes per line that [`print()`] prints, with the line feed.
const LINE: usize = 64;

/// How a program has its terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// As it comes: of each line feed two characters are made.
    Cooked,
    /// Bytes pass unchanged.
    Raw,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cooked => "cooked",
            Self::Raw => "raw",
        }
    }

    /// Returns how many bytes come out of the terminal where [`print()`] prints `total`, which are whole lines.
    pub(crate) fn comes_out(self, total: u64) -> u64 {
        match self {
            Self::Cooked => total + total / LINE as u64,
            Self::Raw => total,
        }
    }
}

/// Prints this many bytes, in lines.
pub(super) fn print(total: u64, mode: &str) -> Result<()> {
    if mode == Mode::Raw.name() {
        make_raw()?;
    }
    let line: Vec<u8> = std::iter::repeat_n(b'.', LINE - 1).chain([b'\n']).collect();
    writer::write(total, &line.repeat(writer::CHUNK / LINE))
}

/// Says that it is ready, and prints each byte that is typed, until the terminal is gone.
pub(super) fn echo() -> Result<()> {
    make_raw()?;
    let mut bytes = [READY; 64];
    let mut length = 1;
    while length > 0 {
        let mut left = &bytes[..length];
        while !left.is_empty() {
            left = &left[write(stdout(), left)?..];
        }
        length = match read(stdin(), &mut bytes) {
            Err(Errno::IO) => 0,
            read => read?,
        };
    }
    Ok(())
}

/// Makes the terminal pass bytes unchanged, and echo none by itself (`cfmakeraw` in `termios(3)`).
fn make_raw() -> Result<()> {
    let mut modes = tcgetattr(stdin()).context("there is no terminal")?;
    modes.make_raw();
    tcsetattr(stdin(), OptionalActions::Now, &modes).context("the terminal cannot be made raw")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cooked_line_is_one_byte_longer() {
        assert_eq!(Mode::Cooked.comes_out(128), 130);
        assert_eq!(Mode::Raw.comes_out(128), 128);
    }

    #[test]
    fn a_chunk_is_whole_lines() {
        assert_eq!(writer::CHUNK % LINE, 0);
    }
}
