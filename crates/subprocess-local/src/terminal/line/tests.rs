//! The gauge by example.

use super::{Admission, LONGEST_LINE, LineGauge};
use dsh_subprocess_sys::pty::LineMode;

/// What `stty sane` makes, without UTF-8.
pub(super) const SANE: LineMode = LineMode {
    icanon: true,
    extproc: false,
    istrip: false,
    iuclc: false,
    igncr: false,
    icrnl: true,
    inlcr: false,
    ixon: true,
    parmrk: false,
    iutf8: false,
    isig: true,
    noflsh: false,
    iexten: true,
    echo: true,
    vintr: 3,
    vquit: 28,
    vsusp: 26,
    vstart: 17,
    vstop: 19,
    verase: 127,
    vwerase: 23,
    vkill: 21,
    vlnext: 22,
    vreprint: 18,
    veof: 4,
    veol: 0,
    veol2: 0,
};

pub(super) fn admit(mode: &LineMode, bytes: &[u8]) -> Admission {
    LineGauge::default().admit(mode, bytes)
}

/// What is pending after `bytes`.
pub(super) fn pending(mode: &LineMode, bytes: &[u8]) -> usize {
    let mut gauge = LineGauge::default();
    gauge.advance(mode, bytes);
    gauge.pending
}

/// `count` bytes of text, then `end`.
pub(super) fn text(count: usize, end: &[u8]) -> Vec<u8> {
    [&vec![b'a'; count], end].concat()
}

#[test]
fn the_longest_line_that_is_kept_is_admitted_and_one_byte_more_is_not() {
    for end in [&b"\n"[..], b"\r", b"\x04", b""] {
        assert_eq!(admit(&SANE, &text(LONGEST_LINE, end)), Admission::All);
        assert_eq!(
            admit(&SANE, &text(LONGEST_LINE + 1, end)),
            Admission::TooLong {
                line_starts_at: 0,
                length: LONGEST_LINE + 1
            },
        );
    }
}

#[test]
fn lines_before_the_one_that_is_too_long_may_be_given() {
    let bytes = [b"one\ntwo\r".to_vec(), text(5000, b"\nthree\n")].concat();
    assert_eq!(
        admit(&SANE, &bytes),
        Admission::TooLong {
            line_starts_at: 8,
            length: 5000
        }
    );
}

#[test]
fn what_was_typed_before_counts() {
    let mut gauge = LineGauge::default();
    gauge.advance(&SANE, &text(4000, b""));
    assert_eq!(gauge.admit(&SANE, &text(95, b"\n")), Admission::All);
    assert_eq!(
        gauge.admit(&SANE, &text(96, b"\n")),
        Admission::TooLong {
            line_starts_at: 0,
            length: LONGEST_LINE + 1
        },
    );
}

#[test]
fn a_full_line_can_still_be_ended_erased_killed_and_interrupted() {
    let mut gauge = LineGauge::default();
    gauge.advance(&SANE, &text(LONGEST_LINE, b""));
    for bytes in [&b"\n"[..], b"\x7fa", b"\x15again", b"\x03again", b"\x16"] {
        assert_eq!(gauge.admit(&SANE, bytes), Admission::All, "{bytes:?}");
    }
    assert_ne!(gauge.admit(&SANE, b"\x16\n"), Admission::All);
}

#[test]
fn a_line_that_is_too_long_before_it_is_erased_is_too_long() {
    assert_ne!(admit(&SANE, &text(LONGEST_LINE + 1, b"\x7f\n")), Admission::All);
}

#[test]
fn a_literal_byte_neither_ends_the_line_nor_starts_another() {
    assert_eq!(pending(&SANE, b"ab\x16\n\x16\x15"), 4);
    let mut gauge = LineGauge::default();
    gauge.advance(&SANE, b"ab\x16");
    gauge.advance(&SANE, b"\n");
    assert_eq!(gauge.pending, 3);
    let bytes = [b"one\n\x16".to_vec(), text(5000, b"\n")].concat();
    assert_eq!(
        admit(&SANE, &bytes),
        Admission::TooLong {
            line_starts_at: 4,
            length: 5000
        }
    );
}

#[test]
fn a_disabled_character_is_text() {
    let mode = LineMode {
        veof: 0,
        vkill: 0,
        ..SANE
    };
    assert_eq!(pending(&mode, b"ab\0\x04\x15"), 5);
}

#[test]
fn nothing_is_too_long_outside_canonical_mode_and_nothing_of_it_is_left() {
    let raw = LineMode {
        icanon: false,
        ..SANE
    };
    let mut gauge = LineGauge::default();
    gauge.advance(&SANE, b"abc\x16");
    assert_eq!(gauge.admit(&raw, &text(10_000, b"")), Admission::All);
    gauge.advance(&raw, &text(10_000, b""));
    assert_eq!(gauge, LineGauge::default());
}

#[test]
fn a_line_without_end_is_what_an_external_editor_types() {
    let mode = LineMode {
        extproc: true,
        ..SANE
    };
    assert_eq!(pending(&mode, b"a\n\x03\x15\x16\r"), 6);
}

#[test]
fn an_erased_character_of_utf_8_counts_as_one_byte_and_a_killed_line_as_none() {
    let mode = LineMode { iutf8: true, ..SANE };
    assert_eq!(pending(&mode, "aé\x7f".as_bytes()), 2);
    assert_eq!(pending(&mode, "漢字\x15".as_bytes()), 0);
    // They belong to no character, and so the kernel does not erase them.
    assert_eq!(pending(&mode, b"\x80\x80\x7f\x7f\x7f"), 2);
}

#[test]
fn a_newline_that_the_terminal_takes_for_something_else_ends_nothing() {
    let as_return = LineMode {
        inlcr: true,
        icrnl: false,
        ..SANE
    };
    assert_eq!(pending(&as_return, b"ab\n"), 3);
    let as_stop = LineMode { vstop: b'\n', ..SANE };
    assert_eq!(pending(&as_stop, b"ab\n"), 2);
    let as_erase = LineMode {
        verase: b'\n',
        ..SANE
    };
    assert_eq!(pending(&as_erase, b"ab\n\r"), 0);
}
