//! Lines as a terminal leaves them.

use crate::render::{Folder, LONGEST_SEQUENCE, WIDEST_ROW, fold};

#[track_caller]
fn folds(cases: &[(&str, &str)]) {
    for (text, folded) in cases {
        assert_eq!(fold(text), *folded, "{text:?}");
    }
}

#[test]
fn o15_of_500_progress_frames_the_last_is_left() {
    let frames: Vec<String> = (1..=500).map(|i| format!("\rprogress {}%", i / 5)).collect();
    let text = frames.concat() + "\nfinal\n";
    assert_eq!(text.len(), 6459);
    assert_eq!(fold(&text), "progress 100%\nfinal\n");
}

#[test]
fn o15_a_carriage_return_before_a_line_feed_is_a_line_end() {
    folds(&[
        ("first\rsecond\nthird\r\nfourth\n", "second\nthird\nfourth\n"),
        ("both\r\r\nof them\r\n", "both\nof them\n"),
        ("cut here\r", "cut here"),
    ]);
}

#[test]
fn o15_a_shorter_frame_leaves_the_end_of_a_longer_one() {
    folds(&[
        ("longer frame\rshort", "shortr frame"),
        ("longer frame\rshort\x1b[K\n", "short\n"),
        ("longer frame\r            \rshort\n", "short\n"),
        ("longer frame\r\x1b[2Kshort", "short"),
        ("longer frame\x1b[1G\x1b[0Jshort", "short"),
    ]);
}

#[test]
fn o15_backspaces_move_and_do_not_erase() {
    folds(&[
        ("|\x08/\x08-\x08done", "done"),
        ("abc\x08\x08X", "aXc"),
        ("\x08\x08\x08a", "a"),
        ("a_\x08b\x08_", "a_"),
    ]);
}

#[test]
fn erasing_to_the_start_leaves_blanks_and_what_comes_after() {
    folds(&[
        ("abcdef\x1b[3D\x1b[1K", "    ef"),
        ("abcdef\x1b[1K\n", "\n"),
        ("abc\x1b[2Kd\x1b[1Ke", "    e"),
        ("abcd\r\x1b[1Kx\x1b[1Ky", " ycd"),
    ]);
}

#[test]
fn a_move_to_the_right_of_the_end_leaves_one_blank() {
    folds(&[
        ("name\x1b[40Cvalue", "name value"),
        ("name\x1b[60Gvalue", "name value"),
        ("abc\r\x1b[2CX", "abX"),
    ]);
}

#[test]
fn tabs_stay_and_are_blanks_where_they_are_printed_into() {
    folds(&[
        ("a\tb\r\n", "a\tb\n"),
        ("a\tb\rX", "X\tb"),
        ("abcdefghi\r\tX", "abcdefghX"),
        ("a\tb\r\x1b[3CX", "a  X    b"),
        ("abc\r\tX", "abc\tX"),
        ("a\t\x1b[2D\x1b[KX", "a     X"),
        ("\t\t\x1b[2KX", "\t\tX"),
        // The most that three bytes become.
        ("\t\x08\0", "       ␀"),
    ]);
}

#[test]
fn wide_characters_have_two_cells_and_combining_ones_none() {
    folds(&[
        ("日本\rX", "X 本"),
        ("日本\x08X", "日 X"),
        ("ab\r日", "日"),
        ("abc\r日", "日c"),
        ("e\u{301}a\rx", "xa"),
        ("ae\u{301}\rx", "xe\u{301}"),
        ("a\x08e\u{301}\r\n", "e\u{301}\n"),
        ("👩\u{200d}💻 ok\r\n", "👩\u{200d}💻 ok\n"),
        ("日本\r\x1b[C\x1b[K", ""),
    ]);
}

#[test]
fn every_kind_of_sequence_is_removed() {
    folds(&[
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38:2::255:0:0mred\x1b[m", "red"),
        ("\x1b[?25l\x1b[?2004hx", "x"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;https://host.invalid/\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\x", "x"),
        ("\x1bPq✜✜\x1b\\x", "x"),
        ("\x1b_Gpicture\x1b\\x\x1b^private\x1b\\y\x1bXstart\x1b\\z", "xyz"),
        ("\x1b7\x1b8\x1b=\x1bc\x1bMx", "x"),
        ("\x1b(B\x1b#8\x1b%Gx", "x"),
        (
            "\u{9b}31mred\u{9b}m \u{9d}0;title\u{9c}x\u{90}q\u{9c}y\u{85}z",
            "red xyz",
        ),
        ("a\x07b\x0ec\x0fd\x7fe\u{84}f", "abcdef"),
        ("\x1b[1<1mx", "x"),
        ("\x1b[ 1m✜", "✜"),
        ("\x1b[ 1m\x7fx", "x"),
    ]);
}

#[test]
fn an_unterminated_sequence_ends_with_its_line() {
    folds(&[
        ("a\x1b[31\nb", "a\nb"),
        ("a\x1b]0;title\nb", "a\nb"),
        ("a\x1bPq\nb", "a\nb"),
        ("a\x1b", "a"),
        ("a\x1b[", "a"),
        ("a\x1b]0;title", "a"),
    ]);
}

#[test]
fn an_unterminated_sequence_ends_at_its_bound() {
    for introducer in ["\x1b]", "\x1bP", "\x1b_", "\x1b[", "\x1b ", "\u{9d}"] {
        let text = format!("{introducer}{}the rest", "0".repeat(2 * LONGEST_SEQUENCE));
        let folded = fold(&text);
        assert!(folded.ends_with("0the rest"), "{introducer:?}");
        assert!(folded.len() >= LONGEST_SEQUENCE, "{introducer:?}");
    }
    let fits = format!("\x1b]{}\x07the rest", "0".repeat(LONGEST_SEQUENCE - 4));
    assert_eq!(fold(&fits), "the rest");
}

#[test]
fn a_cancelled_sequence_is_over() {
    folds(&[
        ("\x1b[31\x18x", "x"),
        ("\x1b]0;title\x1ax", "x"),
        ("\x1bPq\x18x", "x"),
    ]);
}

#[test]
fn control_characters_inside_a_sequence_do_what_they_do() {
    folds(&[("abc\x1b[\r31mX", "Xbc"), ("abc\x1b[3\x081mX", "abX")]);
}

#[test]
fn o12_a_nul_does_not_cut_the_text_and_keeps_records_apart() {
    folds(&[
        ("a—b\u{fffd}\0z", "a—b\u{fffd}␀z"),
        ("./a\0./b\0", "./a␀./b␀"),
        ("a\x1fb\x1ec\x01", "a␟b␞c␁"),
        ("a\x18b\x1ac", "a␘b␚c"),
    ]);
}

#[test]
fn vertical_tabs_and_form_feeds_end_lines() {
    folds(&[("a\x0bb\x0c\nc", "a\nb\n\nc")]);
}

#[test]
fn clean_text_is_not_copied() {
    for text in [
        "",
        "plain\n",
        "a\tb  \n\n  ",
        "日本 e\u{301} £ ª \u{a0}\u{a0}\n",
        "\u{301}a",
    ] {
        assert!(matches!(fold(text), std::borrow::Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn o15_a_row_wider_than_any_terminal_is_given_out_in_parts() {
    let long = "x".repeat(WIDEST_ROW);
    let mut folder = Folder::new();
    let mut out = String::new();
    folder.push(&long, &mut out);
    assert_eq!(out, long);
    folder.push("tail\rTail", &mut out);
    folder.finish(&mut out);
    assert_eq!(out, format!("{long}Tail"));
}

#[test]
fn a_folder_gives_out_lines_when_they_have_ended() {
    let mut folder = Folder::new();
    let mut out = String::new();
    folder.push("one\r", &mut out);
    assert_eq!(out, "");
    folder.push("\ntwo", &mut out);
    assert_eq!(out, "one\n");
    folder.push("\rTWO\n", &mut out);
    assert_eq!(out, "one\nTWO\n");
}

#[test]
fn a_flushed_line_goes_on_after_what_was_given_out() {
    let mut folder = Folder::new();
    let mut out = String::new();
    folder.push("10%\x1b[3", &mut out);
    folder.flush(&mut out);
    assert_eq!(std::mem::take(&mut out), "10%");
    folder.push("1m\r20%", &mut out);
    folder.flush(&mut out);
    assert_eq!(std::mem::take(&mut out), "20%");
    folder.push(" done\n", &mut out);
    assert_eq!(out, " done\n");
}

#[test]
fn text_after_a_gap_belongs_to_no_sequence_from_before() {
    let mut folder = Folder::new();
    let mut out = String::new();
    folder.push("before\x1b]0;ti", &mut out);
    folder.gap(&mut out);
    folder.push("after\n", &mut out);
    assert_eq!(out, "beforeafter\n");
}

/// The row is nearly full, so that work which grows with the row would be done as often as the piece comes.
#[test]
fn o15_no_piece_makes_more_of_a_full_row_than_the_bound_however_often_it_comes() {
    const MANY: usize = 64 * 1024;
    let wide = "x".repeat(WIDEST_ROW - 1);
    for piece in [
        "\r",
        "\x1b[",
        "\x1b]",
        "\x1b",
        "\x08",
        "\u{301}",
        "\t\r",
        "日\x08",
        "\x1b[2Ky",
        "\x1b[1Ky\x08",
        "\x1b[60000C\x1b[1K\r",
        "\x1b[60000Cy\x1b[2K\rz",
        "\t\x08\x1b[K",
        "a\u{301}\x08",
        "\x1b[\r",
        "\u{9b}",
    ] {
        let text = wide.clone() + &piece.repeat(MANY);
        assert!(fold(&text).len() <= 4 * text.len());
    }
}
