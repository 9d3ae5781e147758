//! Text as a terminal shows it, of which only the last state of each line is left.

mod row;
mod sequence;

use std::borrow::Cow;

use self::row::{Row, RowEnd};
use self::sequence::{Seen, Sequences};

pub use self::row::WIDEST_ROW;
pub use self::sequence::LONGEST_SEQUENCE;

/// Folds a whole text: what is printed over is gone, and so are escape sequences and control characters.
///
/// * A carriage return goes back to the line's first column, a backspace one column. What is printed there replaces what
///   was there, cell by cell: a wide character has two cells, a combining one none. So `\r\n` is a line's end.
/// * CSI K and CSI J erase in the line, CSI C, D, G and \` move in it. A move to the right of the line's end leaves one
///   blank. Lines above stay as they are: no sequence changes them.
/// * A tab goes to the next of the columns 8, 16, and so on, and stays a tab unless something is printed into it.
/// * All other sequences are removed: CSI, OSC, DCS, SOS, PM, APC, of two bytes, with an introducer of 7 bits or a C1
///   character. An unterminated one ends with its line, or after [`LONGEST_SEQUENCE`] bytes.
/// * A line that was printed over or erased in loses the blanks at its end, with which programs wipe what was there.
/// * Vertical tab and form feed end the line. A bell, the two shifts and DEL are removed. A terminal ignores the other control
///   characters, but in output they separate records or show that it is no text, so each becomes its picture: NUL is ␀.
///
/// The folded text is at most four times as long as the text, in bytes, and has no control character but `\n` and
/// `\t`. Folding it again changes nothing. Text without control characters is returned as it is. Time grows with the
/// text's length, and memory beside the result is bounded as for a [`Folder`].
///
/// ```
/// use dsh_shell::render::fold;
///
/// assert_eq!(fold("first\rsecond\nthird\r\nfourth\n"), "second\nthird\nfourth\n");
/// assert_eq!(fold("10%\x1b[1G\x1b[K\x1b[32m100%\x1b[0m done"), "100% done");
/// ```
pub fn fold(text: &str) -> Cow<'_, str> {
    if first_special(text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut folded = String::new();
    let mut folder = Folder::new();
    folder.push(text, &mut folded);
    folder.finish(&mut folded);
    Cow::Owned(folded)
}

/// [`fold`] for text that arrives in pieces.
///
/// A line is given out when it has ended, because until then it may still be printed over. Pieces pushed one after the other
/// and then [finished](Self::finish) give the same as [`fold`] of them all, however they were cut. A reader that cannot wait
/// for the line's end takes it as it stands with [`flush`](Self::flush).
///
/// It holds at most [`WIDEST_ROW`] cells of a line. A longer one is given out in parts, and a carriage return goes back to
/// the beginning of the last, as on a terminal of that width.
///
/// ```
/// use dsh_shell::render::Folder;
///
/// let mut folder = Folder::new();
/// let mut shown = String::new();
/// folder.push("one\n10", &mut shown);
/// assert_eq!(shown, "one\n");
/// folder.push("%\r100%", &mut shown);
/// folder.finish(&mut shown);
/// assert_eq!(shown, "one\n100%");
/// ```
#[derive(Default)]
pub struct Folder {
    row: Row,
    sequences: Sequences,
}

impl Folder {
    /// Starts at the beginning of a line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece and appends what it completes.
    pub fn push(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.row.is_fresh() && !self.sequences.is_open() {
                let (clean, others) = rest.split_at(clean_lines(rest));
                out.push_str(clean);
                rest = others;
            }
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let (line, others) = rest.split_at(end);
            self.part_of_line(line, out);
            rest = others;
        }
    }

    /// Appends the line that has not ended, as it stands, and goes on after it.
    ///
    /// What was given out cannot be taken back: what is printed over it afterwards is given out as well. An escape
    /// sequence that has begun stays open.
    pub fn flush(&mut self, out: &mut String) {
        self.row.emit(RowEnd::Break, out);
    }

    /// Says that text is missing here: [flushes](Self::flush), and forgets an escape sequence that has begun.
    pub fn gap(&mut self, out: &mut String) {
        self.flush(out);
        self.sequences.abort();
    }

    /// Appends what is left. An escape sequence that was not terminated is removed.
    pub fn finish(mut self, out: &mut String) {
        self.row.emit(RowEnd::Line, out);
    }

    fn part_of_line(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if !self.sequences.is_open() && is_printed(c) {
                // Most of a line is such text, and one by one its characters would take several times as long.
                let run = rest
                    .chars()
                    .take(self.row.room())
                    .take_while(|&c| is_printed(c))
                    .count();
                let (run, others) = rest.split_at(run);
                self.row.print_ascii(run);
                rest = others;
            } else {
                self.character(c, out);
                rest = &rest[c.len_utf8()..];
            }
            if self.row.room() == 0 {
                self.row.emit(RowEnd::Break, out);
            }
        }
    }

    fn character(&mut self, c: char, out: &mut String) {
        match self.sequences.advance(c) {
            None => {}
            Some(Seen::Printed(c)) => self.row.print(c),
            Some(Seen::Edited(edit)) => self.row.edit(edit),
            Some(Seen::Control(control)) => self.control(control, out),
        }
    }

    fn control(&mut self, control: u8, out: &mut String) {
        match control {
            b'\n' | VERTICAL_TAB | FORM_FEED => {
                self.row.emit(RowEnd::Line, out);
                out.push('\n');
            }
            b'\r' => self.row.go_to(0),
            b'\t' => self.row.tab(),
            BACKSPACE => self.row.back(1),
            BELL | SHIFT_OUT | SHIFT_IN | DELETE => {}
            other => self.row.print(picture(other)),
        }
    }
}

const BELL: u8 = 0x07;
const BACKSPACE: u8 = 0x08;
const VERTICAL_TAB: u8 = 0x0b;
const FORM_FEED: u8 = 0x0c;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;
const DELETE: u8 = 0x7f;

/// The character that depicts a control character (Unicode block Control Pictures).
fn picture(control: u8) -> char {
    char::from_u32(0x2400 + u32::from(control)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Tells whether it is a character of ASCII that has a cell.
fn is_printed(c: char) -> bool {
    matches!(c, ' '..='~')
}

/// Returns the length of the lines that are shown as they are: complete, and without control characters.
fn clean_lines(text: &str) -> usize {
    let clean = &text[..first_special(text).unwrap_or(text.len())];
    clean.rfind('\n').map_or(0, |at| at + 1)
}

/// Finds the first control character other than a line feed and a tab. The bytes are looked at, not the characters: it
/// is several times as fast, and most text has none.
fn first_special(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().position(|(at, &byte)| match byte {
        b'\n' | b'\t' => false,
        // The first byte of U+0080 to U+00BF, of which the first half is C1.
        0xc2 => bytes.get(at + 1).is_some_and(|&next| next < 0xa0),
        _ => byte.is_ascii_control(),
    })
}
