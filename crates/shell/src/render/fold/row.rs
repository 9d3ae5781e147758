//! One row of cells with a cursor, as terminals have them.

use std::collections::BTreeMap;
use std::mem;
use std::ops::RangeInclusive;

use unicode_width::UnicodeWidthChar;

use super::sequence::Edit;

/// How many cells of a line are kept to be printed over, counting each byte of combining characters as one.
pub const WIDEST_ROW: usize = 16 * 1024;

const TAB_STOP: usize = 8;

/// How a row comes to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// The line ends.
    Line,
    /// The line goes on in another row.
    Break,
}

/// The end of a line, or all of it, that can still be printed over.
///
/// The cursor is never to the right of the end. A character's cells stay together: the first has the character, the
/// others are its rest, and whatever changes one of them makes blanks of all.
#[derive(Default)]
pub(super) struct Row {
    cells: Vec<Cell>,
    /// Characters without a cell, by the cursor they were printed at: that of the cell after which they come, plus 1.
    marks: BTreeMap<usize, String>,
    marks_bytes: usize,
    /// Erasures from the first column on, each up to the column given, in their order. They are
    /// [settled](Self::settle) all at once: done one by one, each would cost the length of the row.
    erasures: Vec<usize>,
    cursor: usize,
    /// Whether anything was printed over or erased.
    rewritten: bool,
}

#[derive(Clone, Copy)]
struct Cell {
    glyph: Glyph,
    /// How many erasures there were when it was printed: those after them erased it.
    printed_after: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Glyph {
    First(char),
    Rest,
}

const BLANK: Glyph = Glyph::First(' ');

impl Row {
    /// Tells whether nothing has happened in it.
    pub(super) fn is_fresh(&self) -> bool {
        self.cells.is_empty() && self.marks.is_empty() && !self.rewritten
    }

    /// Returns how many more cells it may have.
    pub(super) fn room(&self) -> usize {
        WIDEST_ROW.saturating_sub(self.cells.len() + self.marks_bytes)
    }

    pub(super) fn print(&mut self, c: char) {
        match c.width() {
            None | Some(0) => {
                self.marks.entry(self.cursor).or_default().push(c);
                self.marks_bytes += c.len_utf8();
            }
            Some(1) => self.put(Glyph::First(c)),
            Some(_) => {
                self.put(Glyph::First(c));
                self.put(Glyph::Rest);
            }
        }
    }

    /// Prints characters of ASCII that have a cell.
    pub(super) fn print_ascii(&mut self, text: &str) {
        let (over, beyond) = text.split_at(text.len().min(self.cells.len() - self.cursor));
        for c in over.chars() {
            self.put(Glyph::First(c));
        }
        let printed_after = self.erasures.len();
        self.cells.extend(beyond.chars().map(|c| Cell {
            glyph: Glyph::First(c),
            printed_after,
        }));
        self.cursor += beyond.len();
    }

    /// Goes to the next tab stop. In the row it only moves; beyond its end the tab becomes part of the row.
    pub(super) fn tab(&mut self) {
        let stop = (self.cursor / TAB_STOP + 1) * TAB_STOP;
        if stop > self.cells.len() {
            self.cursor = self.cells.len();
            self.put(Glyph::First('\t'));
            while self.cursor < stop {
                self.put(Glyph::Rest);
            }
        }
        self.cursor = stop;
    }

    pub(super) fn back(&mut self, columns: usize) {
        self.cursor = self.cursor.saturating_sub(columns);
    }

    pub(super) fn go_to(&mut self, column: usize) {
        if column > self.cells.len() {
            // A blank keeps what comes apart. As many as there would be on a terminal could be made without end.
            self.cursor = self.cells.len();
            self.put(BLANK);
        } else {
            self.cursor = column;
        }
    }

    pub(super) fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Back(columns) => self.back(columns),
            Edit::Forward(columns) => self.go_to(self.cursor + columns),
            Edit::GoTo(column) => self.go_to(column),
            Edit::EraseToEnd => self.truncate(),
            Edit::EraseToStart => self.erase(self.cursor + 1),
            Edit::EraseAll => self.erase(usize::MAX),
        }
    }

    /// Appends the row as it stands, and begins another.
    pub(super) fn emit(&mut self, end: RowEnd, out: &mut String) {
        self.settle();
        let start = out.len();
        let mut marks = mem::take(&mut self.marks).into_iter().peekable();
        let mut put_marks = |out: &mut String, cursor: usize| {
            if let Some((_, text)) = marks.next_if(|&(at, _)| at == cursor) {
                out.push_str(&text);
            }
        };
        put_marks(out, 0);
        for (column, cell) in self.cells.iter().enumerate() {
            if let Glyph::First(c) = cell.glyph {
                out.push(c);
            }
            put_marks(out, column + 1);
        }
        if self.rewritten && end == RowEnd::Line {
            let shown = out[start..].trim_end_matches([' ', '\t']).len();
            out.truncate(start + shown);
        }
        self.cells.clear();
        self.marks_bytes = 0;
        self.cursor = 0;
        self.rewritten = false;
    }

    /// Puts a cell at the cursor, over what is there.
    fn put(&mut self, glyph: Glyph) {
        let cell = Cell {
            glyph,
            printed_after: self.erasures.len(),
        };
        if self.cursor < self.cells.len() {
            self.break_up(self.cursor);
            self.cells[self.cursor] = cell;
            self.rewritten = true;
        } else {
            self.cells.push(cell);
        }
        self.cursor += 1;
    }

    /// Makes blanks of the character that a cell belongs to.
    fn break_up(&mut self, column: usize) {
        let is_rest = |cell: &Cell| cell.glyph == Glyph::Rest;
        let first = column
            - self.cells[..=column]
                .iter()
                .rev()
                .take_while(|cell| is_rest(cell))
                .count();
        let rest = self.cells[first + 1..]
            .iter()
            .take_while(|cell| is_rest(cell))
            .count();
        for cell in &mut self.cells[first..=first + rest] {
            cell.glyph = BLANK;
        }
        if !self.marks.is_empty() {
            // What was printed before the first cell of all goes with that.
            let from = if first == 0 { 0 } else { first + 1 };
            remove_marks(&mut self.marks, &mut self.marks_bytes, from..=first + rest + 1);
        }
    }

    /// Erases from the cursor on.
    fn truncate(&mut self) {
        if self.cursor >= self.cells.len() {
            return;
        }
        self.break_up(self.cursor);
        self.cells.truncate(self.cursor);
        for text in self.marks.split_off(&(self.cursor + 1)).into_values() {
            self.marks_bytes -= text.len();
        }
        self.rewritten = true;
    }

    /// Erases what is to the left of a column.
    fn erase(&mut self, column: usize) {
        if self.cells.is_empty() {
            return;
        }
        self.erasures.push(column);
        self.rewritten = true;
        // So many that settling them costs no more than they did.
        if self.erasures.len() > self.cells.len() {
            self.settle();
        }
    }

    /// Carries out the erasures.
    fn settle(&mut self) {
        let mut erasures = mem::take(&mut self.erasures);
        if erasures.is_empty() {
            return;
        }
        // How far the erasures from each one on reach.
        let mut farthest = 0;
        for column in erasures.iter_mut().rev() {
            farthest = farthest.max(*column);
            *column = farthest;
        }
        let (mut is_tab, mut is_broken) = (false, false);
        for (column, cell) in self.cells.iter_mut().enumerate() {
            let printed_after = mem::take(&mut cell.printed_after);
            let is_erased = erasures.get(printed_after).is_some_and(|&reach| reach > column);
            if let Glyph::First(c) = cell.glyph {
                is_tab = c == '\t';
                is_broken = false;
            }
            is_broken |= is_erased;
            // A tab is blank already, and as blanks it would be longer.
            if is_broken && !is_tab {
                cell.glyph = BLANK;
            }
            if is_erased && !self.marks.is_empty() {
                let from = if column == 0 { 0 } else { column + 1 };
                remove_marks(&mut self.marks, &mut self.marks_bytes, from..=column + 1);
            }
        }
    }
}

fn remove_marks(marks: &mut BTreeMap<usize, String>, bytes: &mut usize, cursors: RangeInclusive<usize>) {
    for cursor in cursors {
        if let Some(text) = marks.remove(&cursor) {
            *bytes -= text.len();
        }
    }
}
