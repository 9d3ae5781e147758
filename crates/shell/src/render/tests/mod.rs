//! What is shown, case by case and for any input.

mod clipping;
mod excerpts;
mod folding;
mod layout;
mod properties;
mod status;

use dsh_subprocess::{Collect, Collector, Snapshot};

use super::{StreamView, Whole};

/// What is kept of a stream that has ended.
fn snapshot(head_bytes: usize, max_bytes: usize, bytes: &[u8]) -> Snapshot {
    let (mut collector, reader) = collected(head_bytes, max_bytes, bytes);
    collector.seal();
    reader.snapshot()
}

fn collected(head_bytes: usize, max_bytes: usize, bytes: &[u8]) -> (Collector, dsh_subprocess::OutputReader) {
    let collect = Collect {
        max_bytes,
        head_bytes,
        spill: None,
    };
    let (mut collector, reader) = Collector::new(&collect, None);
    collector.push(bytes);
    (collector, reader)
}

/// A stream that is kept whole.
fn whole(text: impl AsRef<[u8]>) -> StreamView {
    let bytes = text.as_ref();
    StreamView {
        snapshot: snapshot(0, bytes.len().max(1), bytes),
        whole: Whole::InMemory,
    }
}
