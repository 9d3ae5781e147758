//! Reading the streams of a job.

use dsh_subprocess::{OutputReader, StreamName, TextCursor};

use crate::StreamDelta;

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
        Some(limit) => cursor.read_some(reader, limit),
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

#[cfg(test)]
mod tests;
