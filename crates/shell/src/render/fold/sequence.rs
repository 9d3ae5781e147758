//! Escape sequences: where they end, and the few that edit a line.

use vte::{Params, Parser, Perform};

/// The most bytes that an escape sequence takes. What comes after them in a longer one is text. Inline images are sent
/// in pieces of half as much.
pub const LONGEST_SEQUENCE: usize = 8 * 1024;

/// What a character turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// A character of the text.
    Printed(char),
    /// A control character, of C0 or DEL.
    Control(u8),
    /// The last character of a sequence that edits the line.
    Edited(Edit),
}

/// An edit of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Edit {
    Back(usize),
    Forward(usize),
    GoTo(usize),
    EraseToEnd,
    EraseToStart,
    EraseAll,
}

/// Tells sequences and text apart.
///
/// The parser is asked inside sequences only. It takes bytes, but here come characters, so that it never has to decode any and
/// a C1 character introduces what its two bytes of 7 bits would.
#[derive(Default)]
pub(super) struct Sequences {
    parser: Parser,
    /// Bytes of the open sequence so far. 0: none is open.
    taken: usize,
}

impl Sequences {
    pub(super) fn is_open(&self) -> bool {
        self.taken > 0
    }

    /// Forgets the open sequence.
    pub(super) fn abort(&mut self) {
        if self.is_open() {
            *self = Self::default();
        }
    }

    /// Takes the next character. `None`: it belongs to a sequence and does nothing.
    pub(super) fn advance(&mut self, c: char) -> Option<Seen> {
        match c {
            '\n' => {
                self.abort();
                Some(Seen::Control(b'\n'))
            }
            '\x1b' => {
                self.introduce();
                None
            }
            '\u{80}'..='\u{9f}' => {
                self.introduce();
                let second = u32::from(c) - 0x40;
                self.inside(char::from_u32(second)?)
            }
            c if self.is_open() => self.inside(c),
            c => Some(plain(c)),
        }
    }

    /// Takes the escape character, which ends whatever sequence was open.
    fn introduce(&mut self) {
        self.parser.advance(&mut Found::default(), b"\x1b");
        self.taken = 1;
    }

    fn inside(&mut self, c: char) -> Option<Seen> {
        self.taken += c.len_utf8();
        // What the character is, no sequence depends on. In its place comes one without the byte 0x9C, which ends a
        // device control string for the parser even in the middle of a character.
        let fed = if c.is_ascii() { c } else { '\u{a0}' };
        let mut found = Found::default();
        self.parser
            .advance(&mut found, fed.encode_utf8(&mut [0; 4]).as_bytes());
        if found.outside {
            // It ended before this character and said nothing, as sequences do that are not well-formed.
            self.taken = 0;
            return Some(plain(c));
        }
        if found.ended {
            self.taken = 0;
        } else if self.taken >= LONGEST_SEQUENCE {
            self.abort();
        }
        found.seen
    }
}

/// What a character is outside of sequences.
fn plain(c: char) -> Seen {
    match u8::try_from(c) {
        Ok(control) if control.is_ascii_control() => Seen::Control(control),
        _ => Seen::Printed(c),
    }
}

/// What the parser made of one character.
#[derive(Default)]
struct Found {
    seen: Option<Seen>,
    /// The sequence ended with it.
    ended: bool,
    /// No sequence is open, and none was.
    outside: bool,
}

const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

impl Perform for Found {
    fn print(&mut self, _: char) {
        self.outside = true;
    }

    fn execute(&mut self, control: u8) {
        if matches!(control, CANCEL | SUBSTITUTE) {
            self.ended = true;
        } else {
            self.seen = Some(Seen::Control(control));
        }
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], bell_terminated: bool) {
        // Otherwise an escape character ended it, and the sequence goes on with that.
        self.ended |= bell_terminated;
    }

    fn csi_dispatch(&mut self, parameters: &Params, intermediates: &[u8], ignored: bool, last: char) {
        self.ended = true;
        if !ignored && intermediates.is_empty() {
            let first = parameters
                .iter()
                .next()
                .and_then(|values| values.first())
                .copied();
            self.seen = edit(last, first.unwrap_or(0)).map(Seen::Edited);
        }
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
        self.ended = true;
    }
}

fn edit(last: char, parameter: u16) -> Option<Edit> {
    let count = usize::from(parameter.max(1));
    Some(match (last, parameter) {
        ('C', _) => Edit::Forward(count),
        ('D', _) => Edit::Back(count),
        ('G' | '`', _) => Edit::GoTo(count - 1),
        // Of the display, too, only this line can be erased.
        ('K' | 'J', 0) => Edit::EraseToEnd,
        ('K' | 'J', 1) => Edit::EraseToStart,
        ('K' | 'J', 2) => Edit::EraseAll,
        _ => return None,
    })
}
