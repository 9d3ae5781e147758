//! Which bytes are shown, and how many are not.

use super::{collected, snapshot};
use crate::render::excerpt::excerpt;

#[track_caller]
fn shows(head_bytes: usize, max_bytes: usize, text: &[u8], limit: usize, expected: (&str, &str, u64)) {
    let snapshot = snapshot(head_bytes, max_bytes, text);
    let excerpt = excerpt(&snapshot, limit);
    assert_eq!((&excerpt.head[..], &excerpt.tail[..], excerpt.left_out), expected);
}

#[test]
fn what_is_kept_whole_and_fits_is_shown_in_one_piece() {
    shows(0, 10, b"0123456789", 10, ("", "0123456789", 0));
    // The head and the tail adjoin.
    shows(6, 6, b"0123456789", 10, ("", "0123456789", 0));
    // A character lies across their border.
    shows(4, 4, "012é456".as_bytes(), 10, ("", "012é456", 0));
}

#[test]
fn what_is_kept_whole_and_does_not_fit_is_cut_in_its_middle() {
    shows(0, 10, b"0123456789", 7, ("012", "6789", 3));
    shows(2, 8, b"0123456789", 7, ("012", "6789", 3));
    shows(8, 2, b"0123456789", 7, ("012", "6789", 3));
}

#[test]
fn the_share_that_one_end_does_not_need_goes_to_the_other() {
    let text = b"0123456789abcdefghij";
    shows(4, 4, text, 100, ("0123", "ghij", 12));
    shows(4, 4, text, 6, ("012", "hij", 14));
    shows(2, 8, text, 8, ("01", "efghij", 12));
    shows(8, 2, text, 8, ("012345", "ij", 12));
    shows(0, 8, text, 6, ("", "efghij", 14));
}

#[test]
fn o12_what_a_cut_leaves_of_a_character_counts_as_left_out() {
    // Each is 3 bytes long.
    shows(4, 4, "→→→→→→".as_bytes(), 100, ("→", "→", 12));
    shows(0, 18, "→→→→→→".as_bytes(), 16, ("→→", "→→", 6));
}

#[test]
fn an_unfinished_character_at_the_end_does_not_count_as_left_out() {
    let (_collector, reader) = collected(2, 4, b"0123456789\xf0\x9f");
    let snapshot = reader.snapshot();
    let excerpt = excerpt(&snapshot, 100);
    assert_eq!(
        (&excerpt.head[..], &excerpt.tail[..], excerpt.left_out),
        ("01", "89", 6)
    );
}

#[test]
fn o12_bytes_that_are_no_text_are_counted() {
    let snapshot = snapshot(0, 10, b"a\xff\xfeb\xe2\x80c");
    let excerpt = excerpt(&snapshot, 10);
    assert_eq!(
        (&excerpt.tail[..], excerpt.replaced),
        ("a\u{fffd}\u{fffd}b\u{fffd}c", 3)
    );
}
