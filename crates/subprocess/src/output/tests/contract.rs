//! The contract's items on collected output, one by one.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use futures_core::future::BoxFuture;

use super::stream;
use crate::{Collect, Collector, Error, ErrorKind, MayHaveStarted, SpillSource, SpillState, SpilledStream};

#[test]
fn item_38_reads_never_consume_and_readers_are_independent() {
    let (mut collector, one) = stream(64, 0);
    let other = one.clone();
    collector.push(b"abc");
    assert_eq!(&one.read_from(0).bytes[..], b"abc");
    assert_eq!(&one.read_from(0).bytes[..], b"abc");
    collector.push(b"def");
    collector.seal();
    assert_eq!(&one.read_from(3).bytes[..], b"def");
    assert_eq!(&other.read_from(1).bytes[..], b"bcdef");
    drop(collector);
    assert_eq!(&other.read_from(0).bytes[..], b"abcdef");
}

#[test]
fn item_39_output_exactly_at_the_cap_is_whole() {
    let (mut collector, reader) = stream(4, 0);
    collector.push(b"ab");
    collector.push(b"cd");
    let read = reader.read_from(0);
    assert_eq!(
        (&read.bytes[..], read.gap, reader.snapshot().dropped()),
        (&b"abcd"[..], 0, 0)
    );
    assert_eq!(collector.tail(), b"abcd");
    collector.push(b"e");
    let read = reader.read_from(0);
    assert_eq!((&read.bytes[..], read.offset, read.gap), (&b"bcde"[..], 1, 1));
}

#[test]
fn item_40_an_offset_that_left_the_window_gives_the_whole_tail_and_the_gap() {
    let (mut collector, reader) = stream(4, 0);
    collector.push(b"0123456789");
    let lossy = reader.read_from(2);
    assert_eq!(
        (&lossy.bytes[..], lossy.offset, lossy.gap, lossy.next_offset),
        (&b"6789"[..], 6, 4, 10)
    );
    let whole = reader.read_from(6);
    assert_eq!((&whole.bytes[..], whole.gap), (&b"6789"[..], 0));
    let page = reader.read_some(2, 3);
    assert_eq!((&page.bytes[..], page.gap, page.next_offset), (&b"678"[..], 4, 9));
}

#[test]
fn item_41_an_offset_beyond_the_end_is_moved_back_and_said() {
    let (mut collector, reader) = stream(4, 0);
    collector.push(b"abc");
    let read = reader.read_from(u64::MAX);
    assert_eq!(
        (read.bytes.len(), read.offset, read.next_offset, read.gap),
        (0, 3, 3, 0)
    );
    assert!(read.clamped);
    let end = reader.read_from(3);
    assert_eq!((end.bytes.len(), end.next_offset), (0, 3));
    assert!(!end.clamped);
}

#[test]
fn a_kept_head_is_read_by_offset_only_while_nothing_is_missing_after_it() {
    let (mut collector, reader) = stream(3, 3);
    collector.push(b"012345");
    assert_eq!(&reader.read_from(0).bytes[..], b"012345");
    assert_eq!(&reader.read_some(1, 3).bytes[..], b"123");
    collector.push(b"6");
    let read = reader.read_from(1);
    assert_eq!((&read.bytes[..], read.gap), (&b"456"[..], 3));
    assert_eq!(&reader.head()[..], b"012");
}

#[test]
fn item_183_a_snapshot_holds_head_tail_and_the_exact_count_between() {
    let (mut collector, reader) = stream(3, 4);
    collector.push(b"01");
    let whole = reader.snapshot();
    assert_eq!(
        (&whole.head[..], &whole.tail[..], whole.total, whole.dropped()),
        (&b""[..], &b"01"[..], 2, 0)
    );
    collector.push(b"23456789");
    let lossy = reader.snapshot();
    assert_eq!(
        (&lossy.head[..], &lossy.tail[..], lossy.total),
        (&b"0123"[..], &b"789"[..], 10)
    );
    assert_eq!((lossy.dropped(), lossy.sealed), (3, false));
    collector.seal();
    assert!(reader.snapshot().sealed);
}

#[test]
fn skipped_bytes_are_counted_and_never_served() {
    let (mut collector, reader) = stream(8, 4);
    collector.push(b"ab");
    collector.skip(10);
    let read = reader.read_from(0);
    assert_eq!((read.bytes.len(), read.gap, read.offset), (0, 12, 12));
    collector.push(b"cdef");
    let read = reader.read_from(5);
    assert_eq!(
        (&read.bytes[..], read.gap, read.next_offset),
        (&b"cdef"[..], 7, 16)
    );
    let kept = reader.snapshot();
    assert_eq!(
        (&kept.head[..], &kept.tail[..], kept.total),
        (&b"ab"[..], &b"cdef"[..], 16)
    );
    assert_eq!(kept.dropped(), 10);
}

#[test]
fn an_absurd_skip_neither_overflows_nor_invents_bytes() {
    let (mut collector, reader) = stream(8, 4);
    collector.push(b"ab");
    collector.skip(u64::MAX);
    collector.push(b"cd");
    assert_eq!(reader.total(), u64::MAX);
    assert_eq!(&reader.read_from(0).bytes[..], b"cd");
    assert_eq!(reader.snapshot().dropped(), u64::MAX - 4);
}

#[test]
fn a_window_of_nothing_still_counts() {
    let (mut collector, reader) = stream(0, 0);
    collector.push(b"abc");
    collector
        .fill(|buffers| Ok(buffers[0].len().min(2)))
        .expect("the read succeeds");
    let read = reader.read_from(1);
    assert_eq!((read.bytes.len(), read.gap, read.next_offset), (0, 4, 5));
    assert!(!collector.is_full());
}

#[test]
fn item_49_seal_is_idempotent_and_final() {
    let (mut collector, reader) = stream(8, 0);
    collector.push(b"ab");
    collector.seal();
    collector.seal();
    collector.push(b"cd");
    collector.skip(5);
    let filled = collector.fill(|_| unreachable!("a sealed stream reads nothing"));
    assert_eq!(filled.expect("nothing was tried"), 0);
    assert_eq!((&reader.read_from(0).bytes[..], reader.total()), (&b"ab"[..], 2));
    assert!(reader.is_sealed());
}

#[test]
fn a_dropped_collector_seals() {
    let (collector, reader) = stream(8, 0);
    assert!(!reader.is_sealed());
    drop(collector);
    assert!(reader.is_sealed() && reader.read_from(0).sealed);
}

/// A world that keeps the digits of every offset.
struct Digits;

impl SpillSource for Digits {
    fn read(
        &self,
        stream: &SpilledStream,
        offset: u64,
        length: usize,
    ) -> BoxFuture<'static, Result<Bytes, Error>> {
        let available = stream.length.saturating_sub(offset).min(length as u64);
        Box::pin(async move {
            Ok((offset..offset + available)
                .map(|at| b'0' + (at % 10) as u8)
                .collect())
        })
    }
}

#[test]
fn item_50_a_spill_is_told_by_every_read_and_read_through_its_world() {
    let (mut collector, reader) = Collector::new(
        &Collect {
            max_bytes: 4,
            head_bytes: 0,
            spill: None,
        },
        Some(Arc::new(Digits)),
    );
    assert_eq!(reader.read_from(0).spill, SpillState::None);
    collector.push(b"0123456789");
    let spilled = SpilledStream::new(7, 10, "/spill/7");
    collector.spill_reached(spilled.clone());
    assert_eq!(reader.read_from(10).spill, SpillState::Available(spilled));
    let bytes = pollster::block_on(reader.read_spilled(8, 100)).expect("the spill is there");
    assert_eq!(&bytes[..], b"89");
}

#[test]
fn item_46_a_withdrawn_spill_is_never_told_again() {
    let (mut collector, reader) = Collector::new(
        &Collect {
            max_bytes: 4,
            head_bytes: 0,
            spill: None,
        },
        Some(Arc::new(Digits)),
    );
    let refusal = |reader: &crate::OutputReader| {
        let error = pollster::block_on(reader.read_spilled(0, 1)).expect_err("there is no spill");
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::SpillUnavailable, "read")
        );
        assert_eq!(error.started(), MayHaveStarted::Unknown);
        error.to_string()
    };
    assert!(refusal(&reader).contains("still fits in memory"));
    collector.spill_reached(SpilledStream::new(1, 10, "/spill/1"));
    collector.seal();
    collector.spill_withdrawn("the disk is full");
    collector.spill_withdrawn("another reason");
    collector.spill_reached(SpilledStream::new(1, 20, "/spill/1"));
    assert_eq!(reader.spill(), SpillState::Withdrawn("the disk is full".into()));
    assert!(refusal(&reader).contains("the disk is full"));
}

#[test]
fn a_spill_that_its_world_cannot_read_says_where_it_is() {
    let (mut collector, reader) = stream(4, 0);
    collector.spill_reached(SpilledStream::new(1, 10, "/spill/1"));
    let error = pollster::block_on(reader.read_spilled(0, 1)).expect_err("there is no source");
    assert!(error.to_string().contains("/spill/1"), "{error}");
}

/// The smallest window that is filled in place.
const IN_PLACE: usize = 32 * 1024;

#[test]
fn fill_reads_in_place_once_the_window_is_full() {
    let (mut collector, reader) = stream(IN_PLACE, 10);
    // Not in place: the head still takes what leaves the tail.
    collector.push(&vec![b'a'; IN_PLACE]);
    assert!(!collector.is_full());
    collector.push(&[b'b'; 10]);
    assert!(collector.is_full());
    let count = collector.fill(|buffers| {
        assert_eq!(
            buffers.iter().map(|buffer| buffer.len()).collect::<Vec<_>>(),
            [IN_PLACE - 10, 10]
        );
        buffers[0].fill(b'c');
        buffers[1][..4].fill(b'd');
        Ok(IN_PLACE - 10 + 4)
    });
    assert_eq!(count.expect("the read succeeds"), IN_PLACE - 6);
    let kept = reader.snapshot();
    assert_eq!(kept.total, 2 * IN_PLACE as u64 + 4);
    assert_eq!(&kept.head[..], [b'a'; 10]);
    let expected = [vec![b'b'; 6], vec![b'c'; IN_PLACE - 10], vec![b'd'; 4]].concat();
    assert_eq!(kept.tail, expected);
}

#[test]
fn a_fill_that_fails_ends_or_panics_changes_nothing() {
    for size in [8, IN_PLACE] {
        let (mut collector, reader) = stream(size, 0);
        collector.push(&vec![b'a'; size + 1]);
        let before = reader.snapshot();
        let error = collector
            .fill(|_| Err(io::ErrorKind::WouldBlock.into()))
            .expect_err("the read failed");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(collector.fill(|_| Ok(0)).expect("the end is no error"), 0);
        catch_unwind(AssertUnwindSafe(|| {
            collector.fill(|_| panic!("a provider's fault"))
        }))
        .expect_err("the panic is the provider's to handle");
        assert_eq!(reader.snapshot(), before);
        collector.push(b"b");
        assert_eq!(reader.total(), before.total + 1);
    }
}

#[test]
fn a_fill_that_claims_more_than_it_was_given_is_taken_as_all_of_it() {
    for size in [8, IN_PLACE] {
        let (mut collector, _reader) = stream(size, 0);
        collector.push(&vec![0; size]);
        let mut offered = 0;
        let count = collector.fill(|buffers| {
            offered = buffers.iter().map(|buffer| buffer.len()).sum();
            Ok(usize::MAX)
        });
        assert_eq!(count.expect("the read succeeds"), offered);
        assert_eq!(collector.total(), (size + offered) as u64);
        assert_eq!(collector.tail().len(), size);
    }
}

#[test]
fn debug_shows_counts_and_no_output() {
    let (mut collector, reader) = stream(64, 0);
    collector.push(b"hunter2");
    let shown = format!("{collector:?} {reader:?}");
    assert!(
        shown.contains("total: 7") && !shown.contains("hunter2"),
        "{shown}"
    );
}
