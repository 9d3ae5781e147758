//! Reading the streams of a job.

use dsh_subprocess::{Collect, Collector, OutputReader, StreamName, TextCursor, TextRead};

use crate::StreamDelta;

/// The size of the largest character: a read of less could make no progress.
const LARGEST_CHARACTER: usize = 4;

/// How far before its offset a cursor looks, to see whether it stands inside a character.
const LOOK_BEHIND: u64 = LARGEST_CHARACTER as u64 - 1;

/// Reads what a cursor has not read yet, `limit` bytes at most.
pub(crate) fn read(
    cursor: &mut TextCursor,
    stream: StreamName,
    reader: &OutputReader,
    limit: Option<usize>,
) -> StreamDelta {
    let asked = cursor.offset();
    // In this order: nothing follows what is read after the stream was seen sealed, and the total is never behind the
    // text.
    let sealed = reader.is_sealed();
    let read = match limit {
        Some(limit) => read_some(cursor, reader, limit.max(LARGEST_CHARACTER)),
        None => cursor.read(reader),
    };
    StreamDelta {
        stream,
        offset: if read.clamped {
            read.next_offset
        } else {
            asked + read.gap
        },
        text: read.text,
        gap: read.gap,
        next_offset: read.next_offset,
        total: reader.total(),
        replaced: read.replaced,
        sealed,
        spill: reader.spill(),
    }
}

/// Reads at most `limit` bytes. A cursor reads all that its stream has, so it is given a stream that has no more: the
/// same bytes at the same offsets, up to the limit, and ended only where that is the end.
fn read_some(cursor: &mut TextCursor, reader: &OutputReader, limit: usize) -> TextRead {
    let offset = cursor.offset();
    let behind = offset.min(LOOK_BEHIND);
    let read = reader.read_some(offset - behind, limit.saturating_add(LARGEST_CHARACTER - 1));
    let end = offset
        .max(read.offset)
        .saturating_add(limit as u64)
        .min(read.next_offset);
    let length = usize::try_from(end - read.offset).unwrap_or(usize::MAX);
    let bytes = &read.bytes[..length];

    let collect = Collect {
        max_bytes: bytes.len(),
        head_bytes: 0,
        spill: None,
    };
    let (mut excerpt, excerpt_reader) = Collector::new(&collect, None);
    excerpt.skip(read.offset);
    excerpt.push(bytes);
    // Once a stream is sealed its total is final, so this look at it may come later.
    if read.sealed && end == reader.total() {
        excerpt.seal();
    }
    // The collector lives until after the read, since its drop would seal the excerpt.
    let text = cursor.read(&excerpt_reader);
    drop(excerpt);
    text
}

#[cfg(test)]
mod tests;
