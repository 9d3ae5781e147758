//! Reads, put together, are the stream.

use dsh_subprocess::{Collect, Collector, OutputReader, StreamName, TextCursor};
use proptest::prelude::*;

use super::read;

fn stream(max_bytes: usize) -> (Collector, OutputReader) {
    let collect = Collect {
        max_bytes,
        head_bytes: 0,
        spill: None,
    };
    Collector::new(&collect, None)
}

/// Reads until nothing is left, and checks that each read joins the one before.
fn read_to_the_end(cursor: &mut TextCursor, reader: &OutputReader, limit: Option<usize>) -> (String, u64) {
    let (mut text, mut lost) = (String::new(), 0);
    loop {
        let asked = cursor.offset();
        let delta = read(cursor, StreamName::Stdout, reader, limit);
        assert_eq!(delta.offset, asked + delta.gap);
        if let Some(limit) = limit {
            assert!(delta.next_offset - delta.offset <= limit.max(4) as u64);
        }
        text.push_str(&delta.text);
        lost += delta.gap;
        if delta.next_offset == asked {
            return (text, lost);
        }
    }
}

#[test]
fn a_limit_never_cuts_a_character_and_always_lets_one_through() {
    let (mut collector, reader) = stream(64);
    collector.push("a→b🦀".as_bytes());
    let mut cursor = TextCursor::new(0);
    let texts: Vec<_> = (0..3)
        .map(|_| read(&mut cursor, StreamName::Stdout, &reader, Some(1)).text)
        .collect();
    assert_eq!(texts, ["a→", "b", "🦀"]);
}

#[test]
fn a_bounded_read_says_how_much_is_left() {
    let (mut collector, reader) = stream(64);
    collector.push(b"0123456789");
    collector.seal();
    let mut cursor = TextCursor::new(0);
    let first = read(&mut cursor, StreamName::Stdout, &reader, Some(6));
    assert_eq!(
        (&first.text[..], first.next_offset, first.total),
        ("012345", 6, 10)
    );
    let second = read(&mut cursor, StreamName::Stdout, &reader, Some(6));
    assert_eq!(
        (&second.text[..], second.next_offset, second.total, second.sealed),
        ("6789", 10, 10, true)
    );
}

#[test]
fn an_offset_beyond_the_end_is_moved_back_to_it() {
    let (mut collector, reader) = stream(64);
    collector.push(b"short");
    for limit in [None, Some(8)] {
        let delta = read(&mut TextCursor::new(100), StreamName::Stdout, &reader, limit);
        assert_eq!(
            (&delta.text[..], delta.offset, delta.next_offset, delta.gap),
            ("", 5, 5, 0)
        );
    }
}

#[test]
fn what_left_memory_is_counted_as_a_gap() {
    let (mut collector, reader) = stream(8);
    collector.push(b"0123456789abcdef");
    for limit in [None, Some(8)] {
        let delta = read(&mut TextCursor::new(3), StreamName::Stdout, &reader, limit);
        assert_eq!(
            (&delta.text[..], delta.gap, delta.offset, delta.next_offset),
            ("89abcdef", 5, 8, 16)
        );
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(Vec<u8>),
    Read,
}

/// Bytes of which many are UTF-8 and some are not, in pieces that are cut anywhere.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let piece = prop_oneof![
        Just("plain".as_bytes().to_vec()),
        Just("é→🦀".as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let bytes = prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat());
    (bytes, prop::collection::vec((1..9_usize, any::<bool>()), 0..60)).prop_map(|(bytes, cuts)| {
        let mut rest = &bytes[..];
        let mut steps = Vec::new();
        for (length, reads) in cuts {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            steps.push(Step::Push(piece.to_vec()));
            steps.extend(reads.then_some(Step::Read));
            rest = after;
        }
        steps.push(Step::Push(rest.to_vec()));
        steps
    })
}

proptest! {
    #[test]
    fn bounded_reads_put_together_are_the_text_of_the_stream(
        steps in steps(),
        limit in prop::option::of(1..12_usize),
    ) {
        let (mut collector, reader) = stream(1 << 16);
        let mut cursor = TextCursor::new(0);
        let (mut pushed, mut text) = (Vec::new(), String::new());
        for step in steps {
            match step {
                Step::Push(bytes) => {
                    collector.push(&bytes);
                    pushed.extend_from_slice(&bytes);
                }
                Step::Read => text.push_str(&read(&mut cursor, StreamName::Stdout, &reader, limit).text),
            }
        }
        collector.seal();
        let (rest, lost) = read_to_the_end(&mut cursor, &reader, limit);
        text.push_str(&rest);
        prop_assert_eq!(text, String::from_utf8_lossy(&pushed));
        prop_assert_eq!(lost, 0);
    }

    #[test]
    fn what_a_small_window_loses_is_counted_exactly(
        chunks in prop::collection::vec((1..40_usize, any::<bool>()), 0..40),
        window in 1..50_usize,
        limit in prop::option::of(1..20_usize),
    ) {
        let (mut collector, reader) = stream(window);
        let mut cursor = TextCursor::new(0);
        let (mut seen, mut lost) = (0, 0);
        for (length, reads) in chunks {
            collector.push(&vec![b'x'; length]);
            if reads {
                let delta = read(&mut cursor, StreamName::Stdout, &reader, limit);
                seen += delta.text.len() as u64;
                lost += delta.gap;
            }
        }
        collector.seal();
        let (rest, gap) = read_to_the_end(&mut cursor, &reader, limit);
        prop_assert_eq!(seen + rest.len() as u64 + lost + gap, reader.total());
    }

    #[test]
    fn reads_by_offset_need_no_memory_of_the_last_one(steps in steps(), limit in prop::option::of(1..12_usize)) {
        let (mut collector, reader) = stream(1 << 16);
        let (mut pushed, mut text, mut offset) = (Vec::new(), String::new(), 0);
        let mut read_on = |offset: u64| {
            let delta = read(&mut TextCursor::new(offset), StreamName::Stdout, &reader, limit);
            text.push_str(&delta.text);
            assert_eq!(delta.gap, 0);
            delta.next_offset
        };
        for step in steps {
            match step {
                Step::Push(bytes) => {
                    collector.push(&bytes);
                    pushed.extend_from_slice(&bytes);
                }
                Step::Read => offset = read_on(offset),
            }
        }
        collector.seal();
        loop {
            let next = read_on(offset);
            if next == offset {
                break;
            }
            offset = next;
        }
        prop_assert_eq!(text, String::from_utf8_lossy(&pushed));
    }
}
