//! Bytes as text: whatever the chunks, the windows and the offsets.

use proptest::collection::vec;
use proptest::prelude::*;

use super::stream;
use crate::{Collector, OutputReader, TextCursor, whole_characters};

fn written(max_bytes: usize, head_bytes: usize, bytes: &[u8]) -> (Collector, OutputReader) {
    let (mut collector, reader) = stream(max_bytes, head_bytes);
    collector.push(bytes);
    (collector, reader)
}

#[test]
fn o12_a_split_character_comes_whole_and_a_bad_byte_is_replaced_once() {
    let (mut collector, reader) = stream(64, 0);
    let mut cursor = TextCursor::new(0);
    let mut text = String::new();
    for chunk in [&b"a\xe2"[..], b"\x80\x94b", b"\xff\x00z"] {
        collector.push(chunk);
        text += &cursor.read(&reader).text;
    }
    assert_eq!(text, "a—b\u{FFFD}\0z");
    assert_eq!(reader.text(), text);
    assert_eq!(&reader.read_from(0).bytes[..], b"a\xe2\x80\x94b\xff\x00z");
}

#[test]
fn item_42_an_incomplete_end_is_held_back_until_the_stream_ends() {
    let (mut collector, reader) = written(64, 0, b"ok \xf0\x9f\x98");
    let mut cursor = TextCursor::new(0);
    let read = cursor.read(&reader);
    assert_eq!((&read.text[..], read.next_offset, read.replaced), ("ok ", 3, 0));
    assert_eq!(reader.text(), "ok ");
    collector.seal();
    let read = cursor.read(&reader);
    assert_eq!(
        (&read.text[..], read.next_offset, read.replaced),
        ("\u{FFFD}", 6, 1)
    );
    assert_eq!(cursor.read(&reader).text, "");
    assert_eq!(reader.text(), "ok \u{FFFD}");
}

#[test]
fn item_42_a_tail_cut_inside_a_character_starts_after_it() {
    for (max_bytes, expected, gap) in [
        (8, "x😀end", 0),
        (7, "😀end", 1),
        (6, "end", 5),
        (4, "end", 5),
        (3, "end", 5),
    ] {
        let (_collector, reader) = written(max_bytes, 0, "x😀end".as_bytes());
        let read = TextCursor::new(0).read(&reader);
        assert_eq!(
            (&read.text[..], read.gap, read.replaced),
            (expected, gap, 0),
            "window of {max_bytes}"
        );
        assert_eq!(reader.text(), expected);
    }
}

#[test]
fn the_rest_of_a_cut_character_is_left_out_even_when_it_arrives_in_pieces() {
    let (mut collector, reader) = stream(1, 0);
    let mut cursor = TextCursor::new(0);
    collector.push(b"\xf0\x9f");
    let read = cursor.read(&reader);
    assert_eq!((&read.text[..], read.gap, read.next_offset), ("", 2, 2));
    collector.push(b"\x98");
    assert_eq!(cursor.read(&reader).gap, 1);
    collector.push(b"\x80");
    assert_eq!(cursor.read(&reader).gap, 1);
    collector.push(b"a");
    let read = cursor.read(&reader);
    assert_eq!((&read.text[..], read.gap, read.next_offset), ("a", 0, 5));
}

#[test]
fn after_a_gap_no_more_is_left_out_than_one_character_can_need() {
    let (_collector, reader) = written(6, 0, b"gone\x80\x81\x82\x83\xffz");
    let read = TextCursor::new(0).read(&reader);
    assert_eq!(
        (&read.text[..], read.gap, read.replaced),
        ("\u{FFFD}\u{FFFD}z", 7, 2)
    );
    // A byte that continues nothing is no rest of a character.
    let (_collector, reader) = written(2, 0, b"gone\xffz");
    let read = TextCursor::new(0).read(&reader);
    assert_eq!((&read.text[..], read.gap, read.replaced), ("\u{FFFD}z", 4, 1));
}

#[test]
fn without_a_gap_stray_continuation_bytes_are_replaced() {
    let (_collector, reader) = written(64, 0, b"\x80\x80a");
    let read = TextCursor::new(0).read(&reader);
    assert_eq!(
        (&read.text[..], read.gap, read.replaced),
        ("\u{FFFD}\u{FFFD}a", 0, 2)
    );
    // The bytes before the offset are there to tell: a stray byte after a whole character is no part of it.
    let read = TextCursor::new(1).read(&reader);
    assert_eq!((&read.text[..], read.gap), ("\u{FFFD}a", 0));
}

#[test]
fn a_cursor_in_step_knows_stray_bytes_though_the_bytes_before_them_are_gone() {
    let (mut collector, reader) = written(1, 0, b"-a");
    let mut cursor = TextCursor::new(0);
    assert_eq!(cursor.read(&reader).gap, 1);
    collector.push(b"\x80");
    let read = cursor.read(&reader);
    assert_eq!((&read.text[..], read.gap, read.replaced), ("\u{FFFD}", 0, 1));
}

#[test]
fn a_cursor_that_starts_at_the_edge_of_the_window_leaves_out_what_may_be_the_rest_of_a_character() {
    let (_collector, reader) = written(3, 0, "€b".as_bytes());
    let read = TextCursor::new(1).read(&reader);
    assert_eq!((&read.text[..], read.gap, read.replaced), ("b", 2, 0));
}

#[test]
fn item_41_a_cursor_beyond_the_end_moves_back_and_finds_its_character() {
    let (mut collector, reader) = written(64, 0, b"a\xe2\x82");
    let mut cursor = TextCursor::new(1000);
    let read = cursor.read(&reader);
    assert!(read.clamped);
    assert_eq!((read.next_offset, cursor.offset()), (3, 3));
    collector.push(b"\xacb");
    let read = cursor.read(&reader);
    assert_eq!(
        (&read.text[..], read.gap, read.replaced, read.clamped),
        ("b", 1, 0, false)
    );
}

#[test]
fn item_38_cursors_are_independent() {
    let (mut collector, reader) = written(64, 0, "äö".as_bytes());
    let (mut one, mut other) = (TextCursor::new(0), TextCursor::new(2));
    assert_eq!(one.read(&reader).text, "äö");
    collector.push("ü".as_bytes());
    assert_eq!(one.read(&reader).text, "ü");
    assert_eq!(other.read(&reader).text, "öü");
}

#[test]
fn a_snapshot_shows_whole_characters_and_counts_all_the_others() {
    // Eight euro signs: 24 bytes, of which 7 are kept from the beginning and 8 from the end.
    let (mut collector, reader) = written(8, 7, "€€€€€€€€".as_bytes());
    collector.seal();
    let text = reader.snapshot().text();
    assert_eq!((&text.head[..], &text.tail[..]), ("€€", "€€"));
    assert_eq!((text.dropped, text.replaced), (12, 0));
}

#[test]
fn a_character_across_head_and_tail_is_whole_where_nothing_is_missing() {
    let (mut collector, reader) = written(2, 2, "a€".as_bytes());
    collector.seal();
    let snapshot = reader.snapshot();
    assert_eq!(
        (&snapshot.head[..], &snapshot.tail[..]),
        (&b"a\xe2"[..], &b"\x82\xac"[..])
    );
    let text = snapshot.text();
    assert_eq!(
        (&text.head[..], &text.tail[..], text.dropped, text.replaced),
        ("a", "€", 0, 0)
    );
}

/// Bytes that are often almost UTF-8.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        any::<char>().prop_map(|character| character.to_string().into_bytes()),
        any::<char>().prop_map(|character| {
            let mut cut = character.to_string().into_bytes();
            cut.pop();
            cut
        }),
        (0x80_u8..=0xBF).prop_map(|byte| vec![byte]),
        (0xC0_u8..=0xFF).prop_map(|byte| vec![byte]),
        Just(b"a".to_vec()),
        Just(b"\0".to_vec()),
    ];
    vec(part, 0..40).prop_map(|parts| parts.concat())
}

/// Chunk lengths, and whether to read after each chunk.
fn chunks() -> impl Strategy<Value = Vec<(usize, bool)>> {
    vec((1_usize..9, any::<bool>()), 1..20)
}

/// Pushes `bytes` in these chunks, over and over, and hands each text read on.
fn follow(
    max_bytes: usize,
    bytes: &[u8],
    chunks: &[(usize, bool)],
    mut cursor: TextCursor,
    mut seen: impl FnMut(crate::TextRead),
) {
    let (mut collector, reader) = stream(max_bytes, 0);
    let mut rest = bytes;
    for &(length, read) in chunks.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, later) = rest.split_at(length.min(rest.len()));
        collector.push(chunk);
        rest = later;
        if read {
            seen(cursor.read(&reader));
        }
    }
    collector.seal();
    seen(cursor.read(&reader));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn o12_any_text_reads_back_equal_wherever_it_was_cut(text in ".{0,60}", chunks in chunks()) {
        let mut seen = String::new();
        follow(1 << 20, text.as_bytes(), &chunks, TextCursor::new(0), |read| {
            assert_eq!((read.gap, read.replaced), (0, 0));
            seen += &read.text;
        });
        prop_assert_eq!(seen, text);
    }

    #[test]
    fn o12_any_bytes_read_back_as_their_lossy_text(bytes in bytes(), chunks in chunks()) {
        let mut seen = String::new();
        let mut replaced = 0;
        follow(1 << 20, &bytes, &chunks, TextCursor::new(0), |read| {
            seen += &read.text;
            replaced += read.replaced;
        });
        prop_assert_eq!(&seen, &String::from_utf8_lossy(&bytes));
        prop_assert_eq!(replaced, bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count());
    }

    #[test]
    fn a_cursor_resumes_at_its_offset_as_if_it_were_the_same(bytes in bytes(), chunks in chunks()) {
        let (mut collector, reader) = stream(1 << 20, 0);
        let mut offset = 0;
        let mut seen = String::new();
        let mut rest = &bytes[..];
        for &(length, _) in chunks.iter().cycle() {
            let (chunk, later) = rest.split_at(length.min(rest.len()));
            collector.push(chunk);
            rest = later;
            if rest.is_empty() {
                collector.seal();
            }
            let mut cursor = TextCursor::new(offset);
            seen += &cursor.read(&reader).text;
            offset = cursor.offset();
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(seen, String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn item_42_gaps_never_break_a_character_and_account_for_every_byte(
        text in "[a-zäöü€😀]{0,60}",
        chunks in chunks(),
        max_bytes in 0_usize..12,
    ) {
        let mut at = 0;
        follow(max_bytes, text.as_bytes(), &chunks, TextCursor::new(0), |read| {
            assert_eq!(read.replaced, 0);
            // The text is what stands at its place in the stream.
            at += usize::try_from(read.gap).expect("small");
            assert_eq!(&text.as_bytes()[at..at + read.text.len()], read.text.as_bytes());
            at += read.text.len();
            assert_eq!(read.next_offset, at as u64);
        });
        prop_assert_eq!(at, text.len());
    }

    #[test]
    fn a_cursor_that_starts_inside_a_character_starts_after_it(
        text in "[aä€😀]{1,12}",
        start in 0_usize..48,
        chunks in chunks(),
    ) {
        let start = start.min(text.len());
        let boundary = (start..=text.len()).find(|at| text.is_char_boundary(*at)).expect("the end is one");
        let (collector, reader) = written(1 << 20, 0, text.as_bytes());
        drop(collector);
        let read = TextCursor::new(start as u64).read(&reader);
        prop_assert_eq!(read.gap, (boundary - start) as u64);
        prop_assert_eq!(read.text, &text[boundary..]);
        // The same when the start is there before the rest of the character.
        let (mut collector, reader) = written(1 << 20, 0, &text.as_bytes()[..start]);
        let mut cursor = TextCursor::new(start as u64);
        let mut seen = cursor.read(&reader).text;
        let mut rest = &text.as_bytes()[start..];
        for &(length, _) in chunks.iter().cycle() {
            let (chunk, later) = rest.split_at(length.min(rest.len()));
            collector.push(chunk);
            seen += &cursor.read(&reader).text;
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(seen, &text[boundary..]);
    }

    #[test]
    fn any_piece_of_a_text_is_cut_to_whole_characters(text in "[aä€😀]{0,12}", from in 0_usize..48, to in 0_usize..48) {
        let (from, to) = (from.min(to).min(text.len()), from.max(to).min(text.len()));
        let piece = &text.as_bytes()[from..to];
        let whole = whole_characters(piece, from == 0, to == text.len());
        let start = (from..=text.len()).find(|at| text.is_char_boundary(*at)).expect("the end is one");
        let end = (0..=to).rfind(|at| text.is_char_boundary(*at)).expect("the start is one");
        prop_assert_eq!(&piece[whole], text.as_bytes().get(start..end).unwrap_or_default());
    }

    #[test]
    fn a_snapshot_accounts_for_every_byte(text in "[aä€😀]{0,40}", max_bytes in 0_usize..60, head_bytes in 0_usize..60) {
        let (mut collector, reader) = written(max_bytes, head_bytes, text.as_bytes());
        collector.seal();
        let shown = reader.snapshot().text();
        prop_assert_eq!(shown.replaced, 0);
        prop_assert!(text.starts_with(&shown.head) && text.ends_with(&shown.tail));
        prop_assert_eq!(shown.dropped, (text.len() - shown.head.len() - shown.tail.len()) as u64);
        if max_bytes + head_bytes >= text.len() {
            prop_assert_eq!(shown.dropped, 0);
        }
    }
}
