//! The gauge beside a line discipline that keeps the text itself and has no bound.

use super::tests::{SANE, admit, pending, text};
use super::{Admission, LONGEST_LINE, LineGauge, doubles_0xff};
use dsh_subprocess_sys::pty::LineMode;
use proptest::prelude::*;

/// A line discipline which keeps all text, asked in the kernel's order.
#[derive(Default)]
struct Discipline {
    line: Vec<u8>,
    literal_next: bool,
    /// The longest that any line was.
    longest: usize,
}

impl Discipline {
    fn take(&mut self, mode: &LineMode, typed: u8) {
        let mut byte = if mode.istrip { typed & 0x7f } else { typed };
        let is_upper = byte.is_ascii_uppercase() || (0xc0..=0xde).contains(&byte) && byte != 0xd7;
        if mode.iuclc && mode.iexten && is_upper {
            byte += 0x20;
        }
        let literal = std::mem::take(&mut self.literal_next);
        if literal || mode.extproc || byte == 0 {
            return self.keep(mode, byte);
        }
        if mode.ixon && [mode.vstart, mode.vstop].contains(&byte) {
            return;
        }
        if mode.isig && [mode.vintr, mode.vquit, mode.vsusp].contains(&byte) {
            if !mode.noflsh {
                self.line.clear();
            }
            return;
        }
        match byte {
            b'\r' if mode.igncr => return,
            b'\r' if mode.icrnl => byte = b'\n',
            b'\n' if mode.inlcr => byte = b'\r',
            _ => {}
        }
        self.edit(mode, byte);
    }

    fn edit(&mut self, mode: &LineMode, byte: u8) {
        if byte == mode.verase {
            self.erase(mode);
        } else if byte == mode.vwerase && (mode.iexten || byte == mode.vkill) {
            self.erase_word(mode);
        } else if byte == mode.vkill {
            while self.erase(mode).is_some() {}
        } else if byte == mode.vlnext && mode.iexten {
            self.literal_next = true;
        } else if byte != mode.vreprint || !mode.iexten || !mode.echo {
            let ends = [b'\n', mode.veof, mode.veol].contains(&byte) || byte == mode.veol2 && mode.iexten;
            if ends {
                self.line.clear();
            } else {
                self.keep(mode, byte);
            }
        }
    }

    fn keep(&mut self, mode: &LineMode, byte: u8) {
        let copies = if byte == 0xff && doubles_0xff(mode) { 2 } else { 1 };
        self.line.extend(std::iter::repeat_n(byte, copies));
        self.longest = self.longest.max(self.line.len());
    }

    /// Erases the last character, if there is one, and gives its first byte.
    fn erase(&mut self, mode: &LineMode) -> Option<u8> {
        let begins = |byte: &u8| !mode.iutf8 || byte & 0xc0 != 0x80;
        let at = self.line.iter().rposition(begins)?;
        let first = self.line[at];
        self.line.truncate(at);
        Some(first)
    }

    /// Erases what is no word, then a word.
    fn erase_word(&mut self, mode: &LineMode) {
        let mut in_word = false;
        loop {
            let before = self.line.clone();
            let Some(first) = self.erase(mode) else { return };
            let is_word = first.is_ascii_alphanumeric() || first == b'_' || first >= 0xc0;
            if in_word && !is_word {
                self.line = before;
                return;
            }
            in_word |= is_word;
        }
    }
}

/// A mode in which any flag may be set, and a character may be none or another one's too.
fn modes() -> impl Strategy<Value = LineMode> {
    let usual = [
        SANE.vintr,
        SANE.vquit,
        SANE.vsusp,
        SANE.vstart,
        SANE.vstop,
        SANE.verase,
        SANE.vwerase,
        SANE.vkill,
        SANE.vlnext,
        SANE.vreprint,
        SANE.veof,
        SANE.veol,
        SANE.veol2,
    ];
    let special = usual.map(|usual| prop_oneof![3 => Just(usual), 1 => odd_bytes()]);
    (any::<[bool; 12]>(), special).prop_map(|(flags, special)| {
        let [
            istrip,
            iuclc,
            igncr,
            icrnl,
            inlcr,
            ixon,
            parmrk,
            iutf8,
            isig,
            noflsh,
            iexten,
            echo,
        ] = flags;
        let [
            vintr,
            vquit,
            vsusp,
            vstart,
            vstop,
            verase,
            vwerase,
            vkill,
            vlnext,
            vreprint,
            veof,
            veol,
            veol2,
        ] = special;
        LineMode {
            icanon: true,
            extproc: false,
            istrip,
            iuclc,
            igncr,
            icrnl,
            inlcr,
            ixon,
            parmrk,
            iutf8,
            isig,
            noflsh,
            iexten,
            echo,
            vintr,
            vquit,
            vsusp,
            vstart,
            vstop,
            verase,
            vwerase,
            vkill,
            vlnext,
            vreprint,
            veof,
            veol,
            veol2,
        }
    })
}

/// Bytes that a terminal may have rules about.
fn odd_bytes() -> impl Strategy<Value = u8> {
    proptest::sample::select(b"\0\x03\x04\n\r\x11\x12\x15\x16\x17\x1c\x7faA\x80\xc9\xe9\xff".as_slice())
}

/// What somebody types or pastes: text, text of UTF-8, rubbish, and characters that may be special.
fn typed() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => (0..2500_usize).prop_map(|count| text(count, b"")),
        4 => odd_bytes().prop_map(|byte| vec![byte]),
        1 => (odd_bytes(), 0..300_usize).prop_map(|(byte, count)| vec![byte; count]),
        1 => proptest::collection::vec(any::<u8>(), 0..100),
        1 => "\\PC{0,50}".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_admitted_is_never_cut_and_the_count_is_never_too_low(
        writes in proptest::collection::vec((modes(), typed()), 1..5),
    ) {
        let mut gauge = LineGauge::default();
        let mut discipline = Discipline::default();
        for (mode, bytes) in writes {
            let admitted = match gauge.admit(&mode, &bytes) {
                Admission::All => &bytes[..],
                Admission::TooLong { line_starts_at, .. } => &bytes[..line_starts_at],
            };
            gauge.advance(&mode, admitted);
            for byte in admitted {
                discipline.take(&mode, *byte);
            }
            prop_assert!(discipline.longest <= LONGEST_LINE);
            prop_assert!(gauge.pending >= discipline.line.len());
        }
    }

    #[test]
    fn the_count_is_exact_where_no_word_and_no_character_of_several_bytes_is_erased(
        mode in modes(), bytes in typed(),
    ) {
        let mode = LineMode { iutf8: false, parmrk: false, vwerase: 0, ..mode };
        let mut discipline = Discipline::default();
        for byte in &bytes {
            discipline.take(&mode, *byte);
        }
        let admission = admit(&mode, &bytes);
        prop_assert_eq!(admission == Admission::All, discipline.longest <= LONGEST_LINE);
        if admission == Admission::All {
            prop_assert_eq!(pending(&mode, &bytes), discipline.line.len());
        }
    }

    #[test]
    fn how_bytes_are_split_into_writes_does_not_matter(
        mode in modes(), bytes in typed(), at in any::<prop::sample::Index>(),
    ) {
        let (first, second) = bytes.split_at(at.index(bytes.len() + 1));
        let mut split = LineGauge::default();
        let first_fits = split.admit(&mode, first) == Admission::All;
        split.advance(&mode, first);
        let both_fit = first_fits && split.admit(&mode, second) == Admission::All;
        split.advance(&mode, second);

        let mut whole = LineGauge::default();
        prop_assert_eq!(whole.admit(&mode, &bytes) == Admission::All, both_fit);
        whole.advance(&mode, &bytes);
        if both_fit {
            prop_assert_eq!(whole, split);
        }
    }

    #[test]
    fn nothing_is_pending_where_a_line_that_is_too_long_starts(mode in modes(), bytes in typed()) {
        if let Admission::TooLong { line_starts_at, length } = admit(&mode, &bytes) {
            let before = &bytes[..line_starts_at];
            prop_assert!(length > LONGEST_LINE);
            prop_assert_eq!(admit(&mode, before), Admission::All);
            prop_assert_eq!(pending(&mode, before), 0);
        }
    }
}
