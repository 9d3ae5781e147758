//! What a terminal in canonical mode does with a byte of its input.

use dsh_subprocess_sys::pty::LineMode;

use super::doubles_0xff;

/// `_POSIX_VDISABLE`: a special character of this value is none.
const DISABLED: u8 = 0;

/// What the terminal does with a byte that is not taken literally.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// It is a byte of the line.
    Keep,
    /// It is kept as two bytes (PARMRK).
    KeepTwice,
    /// The line is as it was.
    Nothing,
    Erase,
    EraseWord,
    Kill,
    LiteralNext,
    /// What is typed next is a new line: this one is ended, or all input was thrown away on purpose, for a signal.
    End,
}

/// The effect of each byte: one look-up for each, however many characters are special.
pub(super) struct Effects([Effect; 256]);

impl Effects {
    /// Follows the kernel's order backwards, so that where two of the terminal's rules are about the same byte, the one
    /// that the kernel asks first is written last.
    pub(super) fn new(mode: &LineMode) -> Self {
        let mut effects = Self([Effect::Keep; 256]);
        if mode.extproc {
            return effects;
        }
        effects.set_line_editing(mode);
        effects.set_carriage_return(mode);
        if mode.isig {
            let signal = if mode.noflsh { Effect::Nothing } else { Effect::End };
            effects.set([mode.vsusp, mode.vquit, mode.vintr], signal);
        }
        if mode.ixon {
            effects.set([mode.vstop, mode.vstart], Effect::Nothing);
        }
        if doubles_0xff(mode) && matches!(effects.of(0xff), Effect::Keep | Effect::End) {
            // As an end of the line it is doubled too, and what is before it must leave room for both. It is so rare
            // that it is counted as if it ended nothing.
            effects.0[0xff] = Effect::KeepTwice;
        }
        effects.fold(mode);
        effects
    }

    pub(super) fn of(&self, byte: u8) -> Effect {
        self.0[usize::from(byte)]
    }

    fn set<const N: usize>(&mut self, characters: [u8; N], effect: Effect) {
        for character in characters.into_iter().filter(|character| *character != DISABLED) {
            self.0[usize::from(character)] = effect;
        }
    }

    fn set_line_editing(&mut self, mode: &LineMode) {
        if mode.iexten {
            self.set([mode.veol2], Effect::End);
        }
        self.set([mode.veol, mode.veof, b'\n'], Effect::End);
        if mode.iexten && mode.echo {
            self.set([mode.vreprint], Effect::Nothing);
        }
        if mode.iexten {
            self.set([mode.vlnext], Effect::LiteralNext);
        }
        self.set([mode.vkill], Effect::Kill);
        // Once the kernel erases, it does not ask for IEXTEN again.
        if mode.iexten || mode.vwerase == mode.vkill {
            self.set([mode.vwerase], Effect::EraseWord);
        }
        self.set([mode.verase], Effect::Erase);
    }

    /// Each of the two takes the other's effect where it is turned into it.
    fn set_carriage_return(&mut self, mode: &LineMode) {
        let (carriage_return, newline) = (self.of(b'\r'), self.of(b'\n'));
        if mode.igncr {
            self.set([b'\r'], Effect::Nothing);
        } else if mode.icrnl {
            self.set([b'\r'], newline);
        }
        if mode.inlcr {
            self.set([b'\n'], carriage_return);
        }
    }

    /// Gives a byte that becomes another before the terminal looks at it the effect of that one.
    fn fold(&mut self, mode: &LineMode) {
        if mode.iuclc && mode.iexten {
            // The kernel's letters are those of ISO 8859-1; 0xd7 is its multiplication sign.
            for upper in (b'A'..=b'Z').chain(0xc0..=0xde).filter(|byte| *byte != 0xd7) {
                self.0[usize::from(upper)] = self.of(upper + 0x20);
            }
        }
        if mode.istrip {
            self.0.copy_within(..128, 128);
        }
    }
}
