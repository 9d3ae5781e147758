//! Bytes as text: a view that never cuts a character in two.

use std::ops::Range;

use crate::{OutputReader, Snapshot};

/// The most continuation bytes one character has.
const MOST_CONTINUATIONS: usize = 3;

/// A view of one reader's bytes as text (UTF-8).
///
/// * An incomplete character at the end is held back until its other bytes arrive or the stream ends.
/// * What a gap or the start offset cut off the front of a character is left out and counted in
///   [`gap`](TextRead::gap).
/// * Bytes that are no UTF-8 become one U+FFFD for each longest part that could have begun a character, as in
///   [`String::from_utf8_lossy`], and are counted in [`replaced`](TextRead::replaced). A NUL is a character like any other.
///
/// So the reads of a cursor that started at 0 and saw no gap, put together, are the lossy text of the whole stream,
/// wherever its chunks were cut. Cursors are independent of each other.
///
/// ```
/// use dsh_subprocess::{Collect, Collector, TextCursor};
///
/// let (mut collector, reader) = Collector::new(&Collect { max_bytes: 1024, head_bytes: 0, spill: None }, None);
/// let mut cursor = TextCursor::new(0);
/// collector.push(b"caf\xc3");
/// assert_eq!(cursor.read(&reader).text, "caf");
/// collector.push(b"\xa9");
/// assert_eq!(cursor.read(&reader).text, "é");
/// ```
#[derive(Clone, Debug)]
pub struct TextCursor {
    offset: u64,
    /// How many continuation bytes at the offset may be the rest of a character that began before it. `None` before the
    /// first read, which looks.
    cut: Option<usize>,
}

/// What one text read gave.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TextRead {
    /// The text.
    pub text: String,
    /// Bytes left out before it: they left the window before they were read, or are the rest of a character whose
    /// beginning did.
    pub gap: u64,
    /// Where the cursor stands now, in bytes of the stream: before the bytes that are held back.
    pub next_offset: u64,
    /// How many times bytes that are no UTF-8 were replaced by U+FFFD. 0 says that the text is exact.
    pub replaced: usize,
    /// Whether the cursor stood beyond the end of the stream so far and was moved back to it.
    pub clamped: bool,
}

impl TextCursor {
    /// Starts at an offset of the stream. Inside a character it starts after that character.
    pub fn new(offset: u64) -> Self {
        Self { offset, cut: None }
    }

    /// Returns where the cursor stands, in bytes of the stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads what is new.
    pub fn read(&mut self, reader: &OutputReader) -> TextRead {
        self.read_some(reader, usize::MAX)
    }

    /// Reads at most `limit` bytes of what is new; what is left stays for the next read. A limit below 4, the size of the
    /// largest character, counts as 4: less could never get past one.
    ///
    /// ```
    /// use dsh_subprocess::{Collect, Collector, TextCursor};
    ///
    /// let (mut collector, reader) = Collector::new(&Collect { max_bytes: 64, head_bytes: 0, spill: None }, None);
    /// collector.push("one — two".as_bytes());
    /// let mut cursor = TextCursor::new(0);
    /// assert_eq!(cursor.read_some(&reader, 5).text, "one "); // the dash has 3 bytes, and one more fits
    /// assert_eq!(cursor.read_some(&reader, 5).text, "— t");
    /// ```
    pub fn read_some(&mut self, reader: &OutputReader, limit: usize) -> TextRead {
        let look_behind = match self.cut {
            None => self.offset.min(MOST_CONTINUATIONS as u64),
            Some(_) => 0,
        };
        let limit = limit.max(MOST_CONTINUATIONS + 1);
        let mut read = reader.read_some(
            self.offset - look_behind,
            limit.saturating_add(MOST_CONTINUATIONS),
        );
        if self.offset > read.next_offset {
            // The next read looks behind the new place.
            *self = Self::new(read.next_offset);
            return TextRead {
                text: String::new(),
                gap: 0,
                next_offset: self.offset,
                replaced: 0,
                clamped: true,
            };
        }
        let end = self.offset.max(read.offset).saturating_add(limit as u64);
        if end < read.next_offset {
            read.bytes
                .truncate(usize::try_from(end - read.offset).unwrap_or(usize::MAX));
            read.next_offset = end;
        }
        // Once a stream is sealed its total is final, so this look at it may come later.
        let ends_stream = read.sealed && read.next_offset == reader.total();

        let gap = read.offset.saturating_sub(self.offset);
        let behind = usize::try_from(self.offset.saturating_sub(read.offset)).unwrap_or(usize::MAX);
        let (behind, ahead) = read.bytes.split_at(behind.min(read.bytes.len()));
        let cut = match self.cut {
            _ if gap > 0 => MOST_CONTINUATIONS,
            Some(cut) => cut,
            None => continuations_expected(behind, read.gap == 0),
        };
        let rest = leading_continuations(ahead, cut);
        let ahead = &ahead[rest..];
        // Where nothing but such bytes arrived so far, the character may go on.
        self.cut = Some(if ahead.is_empty() { cut - rest } else { 0 });

        let whole = whole_characters(ahead, true, ends_stream);
        let held_back = ahead.len() - whole.end;
        self.offset = read.next_offset - held_back as u64;
        let (text, replaced) = decode(&ahead[whole]);
        TextRead {
            text,
            gap: gap + rest as u64,
            next_offset: self.offset,
            replaced,
            clamped: false,
        }
    }
}

/// A snapshot as text: how the stream began and how it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SnapshotText {
    /// How the stream began. Empty while the tail holds the whole stream.
    pub head: String,
    /// How the stream ended.
    pub tail: String,
    /// Bytes of the stream that are shown neither in the head nor in the tail: those between them, with the parts of
    /// characters cut there, and an incomplete character at the end of a stream that goes on.
    pub dropped: u64,
    /// How many times bytes that are no UTF-8 were replaced by U+FFFD. 0 says that both texts are exact.
    pub replaced: usize,
}

impl Snapshot {
    /// Returns head and tail as text, cut between characters. The rules are those of [`TextCursor`].
    ///
    /// ```
    /// use dsh_subprocess::{Collect, Collector};
    ///
    /// let (mut collector, reader) = Collector::new(&Collect { max_bytes: 4, head_bytes: 4, spill: None }, None);
    /// collector.push("one — two — three".as_bytes()); // 21 bytes
    /// collector.seal();
    /// let text = reader.snapshot().text();
    /// assert_eq!((&text.head[..], &text.tail[..], text.dropped), ("one ", "hree", 13));
    /// ```
    pub fn text(&self) -> SnapshotText {
        // Where nothing is missing between them, a character across the border is whole, and goes to the tail.
        let adjoining = self.dropped() == 0;
        let shown_head = whole_characters(&self.head, true, false);
        let tail = if adjoining {
            [&self.head[shown_head.end..], &self.tail[..]].concat()
        } else {
            self.tail.to_vec()
        };
        let shown_tail = whole_characters(&tail, adjoining, self.sealed);
        let shown = shown_head.len() + shown_tail.len();
        let (head, replaced_in_head) = decode(&self.head[shown_head]);
        let (tail, replaced_in_tail) = decode(&tail[shown_tail]);
        SnapshotText {
            head,
            tail,
            dropped: self.total - shown as u64,
            replaced: replaced_in_head + replaced_in_tail,
        }
    }
}

/// Returns the part of `bytes` that is left when a character cut at either border is left out.
///
/// `bytes` is a piece of a stream that should be UTF-8. `starts_stream` says that nothing came before it, so that nothing
/// is cut off its front; `ends_stream` says that nothing will follow, so that nothing is held back at its end. Bytes
/// inside that are no UTF-8 stay. At most 3 bytes go on either side.
///
/// ```
/// use dsh_subprocess::whole_characters;
///
/// let piece = &"→ a → b →".as_bytes()[1..14]; // the first arrow lost its first byte, the last one its last
/// let whole = whole_characters(piece, false, false);
/// assert_eq!(&piece[whole], " a → b ".as_bytes());
/// ```
pub fn whole_characters(bytes: &[u8], starts_stream: bool, ends_stream: bool) -> Range<usize> {
    let start = if starts_stream {
        0
    } else {
        leading_continuations(bytes, MOST_CONTINUATIONS)
    };
    let open = if ends_stream {
        None
    } else {
        open_sequence(&bytes[start..])
    };
    start..bytes.len() - open.map_or(0, |open| open.present)
}

/// Counts the continuation bytes at the front, `most` at most.
///
/// With what came before unknown, any run of one to three of them is the rest of some character, and of a longer run
/// the first three may be; the others belong to none and stay.
fn leading_continuations(bytes: &[u8], most: usize) -> usize {
    bytes
        .iter()
        .take(most)
        .take_while(|byte| is_continuation(**byte))
        .count()
}

/// Tells how many continuation bytes may come next as the rest of the character that `behind` ends in. `complete` says
/// that `behind` reaches back far enough: to the start of the stream, or over a character's length.
fn continuations_expected(behind: &[u8], complete: bool) -> usize {
    if !complete && behind.iter().all(|byte| is_continuation(*byte)) {
        return MOST_CONTINUATIONS - behind.len();
    }
    open_sequence(behind).map_or(0, |open| open.missing)
}

/// A character that has begun and could go on.
struct OpenSequence {
    /// Its bytes so far, 1 to 3.
    present: usize,
    /// Its bytes to come, 1 to 3.
    missing: usize,
}

/// Finds the incomplete character that `bytes` end in.
///
/// A look at the last three bytes decides, for a lead byte never continues anything: decoding begins afresh at each.
fn open_sequence(bytes: &[u8]) -> Option<OpenSequence> {
    let last = &bytes[bytes.len().saturating_sub(MOST_CONTINUATIONS)..];
    let lead = last.iter().rposition(|byte| !is_continuation(*byte))?;
    let sequence = &last[lead..];
    // No length of the error means that the input ended inside a sequence that was right so far.
    let incomplete = str::from_utf8(sequence).is_err_and(|error| error.error_len().is_none());
    let length = match sequence[0] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    incomplete.then(|| OpenSequence {
        present: sequence.len(),
        missing: length - sequence.len(),
    })
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Decodes bytes, and counts the replacements.
fn decode(bytes: &[u8]) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len());
    let mut replaced = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            replaced += 1;
        }
    }
    (text, replaced)
}
