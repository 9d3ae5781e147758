//! Tests of the room as a whole: the contract's items here, comparisons with naive models beside them.

mod contract;
mod text;
mod waiting;
mod window;

use crate::{Collect, Collector, OutputReader};

/// A stream with a tail and a head, without a spill.
fn stream(max_bytes: usize, head_bytes: usize) -> (Collector, OutputReader) {
    Collector::new(
        &Collect {
            max_bytes,
            head_bytes,
            spill: None,
        },
        None,
    )
}
