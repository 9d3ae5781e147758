//! Over-long lines.

use std::borrow::Cow;

use crate::render::{Style, clip_lines};

fn style(max_line_bytes: usize) -> Style {
    Style::default().with_max_line_bytes(max_line_bytes).unwrap()
}

#[test]
fn a_line_at_the_bound_is_shown_whole() {
    let text = format!("{}\n{}", "x".repeat(200), "y".repeat(200));
    let clipped = clip_lines(&text, &style(200));
    assert!(matches!(clipped.text, Cow::Borrowed(same) if same == text));
    assert_eq!((clipped.lines, clipped.left_out), (0, 0));
}

#[test]
fn a_longer_line_shows_both_ends_and_its_length() {
    let line = format!("begin{}end", "x".repeat(1_000));
    let text = format!("before\n{line}\nafter\n{line}");
    let clipped = clip_lines(&text, &style(300));
    let lines: Vec<&str> = clipped.text.split('\n').collect();
    assert_eq!((lines[0], lines[2], lines.len()), ("before", "after", 4));
    assert_eq!(lines[1], lines[3]);
    assert!(lines[1].starts_with("beginx") && lines[1].ends_with("xend"));
    // The room is for the longest number that there may be.
    assert!((299..=300).contains(&lines[1].len()));
    assert_eq!(clipped.lines, 2);
    let left_out = clipped.left_out / 2;
    assert!(lines[1].contains(&format!(
        "x[... {left_out} of 1008 bytes of this line left out ...]x"
    )));
    assert_eq!(lines[1].matches('x').count() + left_out, 1_000);
}

#[test]
fn o12_no_character_is_cut() {
    for before in 0..4 {
        let text = "x".repeat(before) + &"😀".repeat(200);
        let clipped = clip_lines(&text, &style(200));
        let shown = clipped.text.matches('😀').count();
        assert_eq!(4 * (200 - shown), clipped.left_out);
        assert!(clipped.text.len() <= 200);
    }
}

#[test]
fn a_bound_too_small_to_show_anything_is_refused() {
    let error = Style::default().with_max_line_bytes(199).unwrap_err();
    assert_eq!(
        error.to_string(),
        "max_line_bytes is 199, and must be at least 200"
    );
    let error = Style::default().with_max_text_bytes(0).unwrap_err();
    assert_eq!(error.to_string(), "max_text_bytes is 0, and must be at least 200");
    assert!(Style::default().with_max_text_bytes(Style::LEAST).is_ok());
}
