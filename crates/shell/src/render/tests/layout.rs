//! The parts of a rendered command.

use std::time::Duration;

use dsh_subprocess::Outcome;

use super::{collected, snapshot, whole};
use crate::render::{RenderInput, StreamView, Style, Whole, render};

fn ended(stdout: StreamView, stderr: StreamView) -> RenderInput {
    RenderInput {
        stderr: Some(stderr),
        outcome: Some(Outcome::Exited { code: 0 }),
        ..RenderInput::new(stdout)
    }
}

fn text(input: &RenderInput) -> String {
    render(input, &Style::default()).text
}

#[test]
fn item_128_stdout_comes_first_and_stderr_under_its_heading() {
    for (stdout, stderr, expected) in [
        ("out\n", "err\n", "out\n[stderr]\nerr\n[exit code: 0]"),
        ("out", "err", "out\n[stderr]\nerr\n[exit code: 0]"),
        ("", "err\n", "[stderr]\nerr\n[exit code: 0]"),
        ("out\n\n", "", "out\n\n[exit code: 0]"),
        ("out", "", "out\n[exit code: 0]"),
        ("", "", "(no output)\n[exit code: 0]"),
        ("\x1b[0m", "\x07", "(no output)\n[exit code: 0]"),
        ("\n", "", "\n[exit code: 0]"),
    ] {
        let input = ended(whole(stdout), whole(stderr));
        assert_eq!(text(&input), expected, "{stdout:?} {stderr:?}");
    }
}

#[test]
fn item_128_markers_come_in_their_order_and_the_status_last() {
    let cut = |whole| StreamView {
        snapshot: snapshot(0, 4, b"123456789\n"),
        whole,
    };
    let input = RenderInput {
        notes: vec![
            "[denied: network]".into(),
            String::new(),
            "[hint: \x1b[1mask\x1b[m]\n".into(),
        ],
        timed_out: Some(Duration::from_micros(1_500_900)),
        aborted: true,
        ..ended(cut(Whole::At("/tmp/a\nb".into())), cut(Whole::Unavailable))
    };
    let expected = [
        "[... 6 bytes left out ...]",
        "789",
        "[stderr]",
        "[... 6 bytes left out ...]",
        "789",
        r"[output truncated; full output: /tmp/a\nb]",
        "[stderr output truncated; full output: (unavailable)]",
        "[denied: network]",
        "[hint: ask]",
        "[timed out after 1500ms]",
        "[aborted]",
        "[exit code: 0]",
    ];
    assert_eq!(text(&input), expected.join("\n"));
}

#[test]
fn o13_one_line_of_which_head_and_tail_are_kept_is_never_joined() {
    let view = StreamView {
        snapshot: snapshot(4_000, 4_000, "x".repeat(500_000).as_bytes()),
        whole: Whole::At("/spill".into()),
    };
    let rendered = render(&RenderInput::new(view), &Style::default());
    let lines: Vec<&str> = rendered.text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[0].len() <= 2_000 && lines[0].starts_with("xxx") && lines[0].ends_with("xxx"));
    assert_eq!(lines[1], "[... 492000 bytes left out ...]");
    assert!(lines[2].len() <= 2_000 && lines[2].starts_with("xxx") && lines[2].ends_with("xxx"));
    // Nobody knows how long the line is that either is a part of.
    assert!(!rendered.text.contains("of this line"));
    assert_eq!(
        lines[3..],
        ["[output truncated; full output: /spill]", "[still running]"]
    );
    let shown: usize = rendered.text.matches('x').count();
    assert_eq!(shown + rendered.stdout.clipped_bytes + 492_000, 500_000);
    assert_eq!(
        (rendered.stdout.clipped_lines, rendered.stdout.left_out),
        (2, 492_000)
    );
    assert!(rendered.stdout.is_truncated());
}

#[test]
fn o15_a_frame_in_the_tail_does_not_print_over_the_head() {
    let view = StreamView {
        snapshot: snapshot(4, 4, b"headxxxxx\rend"),
        whole: Whole::Unavailable,
    };
    let expected = "head\n[... 5 bytes left out ...]\nend\n[output truncated; full output: (unavailable)]\n[still running]";
    assert_eq!(text(&RenderInput::new(view)), expected);
}

#[test]
fn a_stream_in_memory_is_said_to_be_truncated_where_the_style_cuts_it() {
    let style = Style::default().with_max_text_bytes(200).unwrap();
    let rendered = render(&RenderInput::new(whole("y\n".repeat(1_000))), &style);
    let half = "y\n".repeat(50);
    let expected = format!(
        "{half}[... 1800 bytes left out ...]\n{half}[output truncated; full output: (unavailable)]\n[still running]"
    );
    assert_eq!(rendered.text, expected);
}

#[test]
fn a_clipped_line_is_said_to_be_elsewhere_only_where_it_is() {
    for (place, expected) in [
        (Whole::InMemory, false),
        (Whole::Unavailable, false),
        (Whole::At("/spill".into()), true),
    ] {
        let view = StreamView {
            whole: place,
            ..whole("x".repeat(3_000))
        };
        let text = text(&RenderInput::new(view));
        assert!(text.contains("of 3000 bytes of this line left out"));
        assert_eq!(text.contains("[output truncated; full output: /spill]"), expected);
    }
}

#[test]
fn o12_the_first_part_of_a_character_is_still_to_come() {
    let (mut collector, reader) = collected(0, 64, b"ok \xf0\x9f\x98");
    let view = |reader: &dsh_subprocess::OutputReader| StreamView {
        snapshot: reader.snapshot(),
        whole: Whole::InMemory,
    };
    let rendered = render(&RenderInput::new(view(&reader)), &Style::default());
    assert_eq!(rendered.text, "ok \n[still running]");
    assert_eq!((rendered.stdout.left_out, rendered.stdout.total), (0, 6));
    collector.seal();
    let rendered = render(&RenderInput::new(view(&reader)), &Style::default());
    assert_eq!(rendered.text, "ok \u{fffd}\n[still running]");
    assert_eq!(rendered.stdout.replaced, 1);
}
