//! Bytes as text.

use crate::OutputReader;

/// A view of one reader's bytes as text.
#[derive(Clone, Debug)]
pub struct TextCursor(());

/// What one text read gave.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TextRead {
    /// The text.
    pub text: String,
    /// Bytes that left the window before they were read.
    pub gap: u64,
    /// Where the cursor stands now, in bytes of the stream.
    pub next_offset: u64,
}

impl TextCursor {
    /// Starts at an offset of the stream.
    pub fn new(_offset: u64) -> Self {
        Self(())
    }

    /// Reads what is new.
    pub fn read(&mut self, _reader: &OutputReader) -> TextRead {
        unreachable!()
    }
}
