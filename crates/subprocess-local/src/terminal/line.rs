//! The gauge of a canonical line: how long the line is that was typed and not ended, and whether more of it fits.
//!
//! In canonical mode Linux's line discipline (`N_TTY`) keeps 4,095 bytes of a line beside what ends it (termios(3),
//! "Canonical and noncanonical mode"). What is typed beyond them is thrown away, and neither who types nor who reads is
//! told. Lines that were ended and not read yet do not count: while there is one, the terminal takes no more than it has
//! room for, and the rest waits (`n_tty_receive_buf_common` in the kernel's `drivers/tty/n_tty.c`).
//!
//! Pure: the mode is an argument. The count is never below the kernel's, as long as bytes meet the mode they were gauged
//! with; above it is what was lost unseen (`tcflush(3)`) or cannot be told without the text itself (a word erased).

mod effect;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use dsh_subprocess_sys::pty::LineMode;

use self::effect::{Effect, Effects};

/// The bytes of a line that the terminal keeps, its end not among them.
pub(crate) const LONGEST_LINE: usize = 4095;

/// Whether 0xff is kept as two bytes, so that nobody takes it for the mark of a parity error.
fn doubles_0xff(mode: &LineMode) -> bool {
    mode.parmrk && !mode.istrip && !mode.extproc
}

/// Whether bytes may be given to the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// All of them.
    All,
    /// A line among them would be cut.
    TooLong {
        /// Where that line starts in the bytes. Those before it may be given, and then nothing of the line was.
        line_starts_at: usize,
        /// What the terminal would have to keep of the line, in bytes, with what was typed of it before and as far as
        /// it is known.
        length: usize,
    },
}

/// How long the line is that was typed so far and not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LineGauge {
    /// Bytes of the line, or more.
    pending: usize,
    /// Characters of the line, or fewer: its bytes which do not continue one in UTF-8.
    characters: usize,
    /// Bytes at the line's start which continue no character of it, or more. With IUTF8 the kernel erases whole
    /// characters and leaves these. Where there may be no character before, a byte is counted among them, and so an
    /// erasure never takes from `pending` what the kernel did not erase.
    strays: usize,
    /// The next byte is kept, whatever it is.
    literal_next: bool,
}

impl LineGauge {
    /// How many of `bytes` may be given to the terminal without a line of it being cut.
    ///
    /// A line that is too long for a moment is too long, also when it is erased later: the kernel would have erased
    /// less than was typed.
    pub(crate) fn admit(&self, mode: &LineMode, bytes: &[u8]) -> Admission {
        if !mode.icanon {
            return Admission::All;
        }
        let effects = Effects::new(mode);
        let mut gauge = *self;
        let (mut at, mut line_starts_at, mut length) = (0, 0, 0);
        while at < bytes.len() {
            at += gauge.step(mode, &effects, &bytes[at..]);
            length = length.max(gauge.pending);
            if gauge.is_empty() {
                if length > LONGEST_LINE {
                    break;
                }
                (line_starts_at, length) = (at, 0);
            }
        }
        if length > LONGEST_LINE {
            Admission::TooLong {
                line_starts_at,
                length,
            }
        } else {
            Admission::All
        }
    }

    /// These bytes were given.
    pub(crate) fn advance(&mut self, mode: &LineMode, bytes: &[u8]) {
        if !mode.icanon {
            // On the way back to canonical mode the kernel makes a line of its own of what is there.
            *self = Self::default();
            return;
        }
        let effects = Effects::new(mode);
        let mut at = 0;
        while at < bytes.len() {
            at += self.step(mode, &effects, &bytes[at..]);
        }
        // More than the kernel keeps was not admitted, or with another mode; it is gone, and can be erased no more.
        self.pending = self.pending.min(LONGEST_LINE);
        self.strays = self.strays.min(self.pending);
    }

    /// Nothing of a line was typed.
    fn is_empty(&self) -> bool {
        self.pending == 0 && !self.literal_next
    }

    /// Takes the first of `bytes`, or all the text they begin with, and tells how many that were. There is one at least.
    fn step(&mut self, mode: &LineMode, effects: &Effects, bytes: &[u8]) -> usize {
        if self.literal_next {
            self.literal_next = false;
            self.keep(&bytes[..1]);
            self.pending += usize::from(bytes[0] == 0xff && doubles_0xff(mode));
            return 1;
        }
        match effects.of(bytes[0]) {
            Effect::Keep => {
                let end = bytes.iter().position(|byte| effects.of(*byte) != Effect::Keep);
                let text = &bytes[..end.unwrap_or(bytes.len())];
                self.keep(text);
                return text.len();
            }
            Effect::KeepTwice => {
                self.keep(&bytes[..1]);
                self.pending += 1;
            }
            Effect::Nothing => {}
            Effect::Erase => self.erase(mode),
            // How long the word was is not known; it may have been the whole line.
            Effect::EraseWord => self.characters = 0,
            Effect::Kill => {
                self.strays = if mode.iutf8 { self.strays } else { 0 };
                self.pending = self.strays;
                self.characters = 0;
            }
            Effect::LiteralNext => self.literal_next = true,
            Effect::End => *self = Self::default(),
        }
        1
    }

    fn keep(&mut self, text: &[u8]) {
        let continuations = text.iter().filter(|byte| is_continuation(**byte)).count();
        if self.characters == 0 && continuations > 0 {
            self.strays += text.iter().take_while(|byte| is_continuation(**byte)).count();
        }
        self.characters += text.len() - continuations;
        self.pending += text.len();
    }

    /// With IUTF8 a whole character goes, of unknown length; without, a byte.
    fn erase(&mut self, mode: &LineMode) {
        self.characters = self.characters.saturating_sub(1);
        if mode.iutf8 {
            self.pending = self.pending.saturating_sub(1).max(self.strays);
        } else {
            self.pending = self.pending.saturating_sub(1);
            self.strays = self.strays.min(self.pending);
        }
    }
}

/// Whether it continues a character in UTF-8. With ISTRIP another byte is kept in its place; to take it for a stray then
/// makes the count higher at most.
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
