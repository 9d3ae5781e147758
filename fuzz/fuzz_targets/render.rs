//! What a command prints, as a model sees it: without control characters, within its bounds, the same however it came, and
//! with the status that it did not print itself.

#![no_main]

use dsh_shell::render::{
    Folder, ParsedExit, RenderInput, StreamView, Style, Whole, clip_lines, fold, parse_exit_status, render,
};
use dsh_subprocess::{Collect, Collector, Outcome, Snapshot};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, Vec<u8>)| {
    let (first, second, bytes) = input;
    let text = String::from_utf8_lossy(&bytes);
    let folded = fold(&text);
    assert!(is_plain(&folded));
    assert!(folded.len() <= 4 * text.len());
    assert_eq!(fold(&folded), folded);

    let cut = text.floor_char_boundary(usize::from(first) * text.len() / 256);
    let mut folder = Folder::new();
    let mut in_pieces = String::new();
    folder.push(&text[..cut], &mut in_pieces);
    folder.push(&text[cut..], &mut in_pieces);
    folder.finish(&mut in_pieces);
    assert_eq!(in_pieces, folded);

    let style = Style::default()
        .with_max_line_bytes(Style::LEAST + usize::from(first))
        .and_then(|style| style.with_max_text_bytes(Style::LEAST + usize::from(second)))
        .unwrap();
    let clipped = clip_lines(&folded, &style);
    assert!(
        clipped
            .text
            .split('\n')
            .all(|line| line.len() <= style.max_line_bytes())
    );

    let outcome = Outcome::Exited { code: second.into() };
    let view = |head_bytes: u8, max_bytes: u8| StreamView {
        snapshot: snapshot(head_bytes.into(), max_bytes.into(), &bytes),
        whole: Whole::At(text.to_string()),
    };
    let rendered = render(
        &RenderInput {
            stderr: Some(view(second, first)),
            outcome: Some(outcome.clone()),
            notes: vec![text.to_string()],
            ..RenderInput::new(view(first, second))
        },
        &style,
    );
    assert!(is_plain(&rendered.text));
    assert_eq!(
        parse_exit_status(&rendered.text).1,
        Some(ParsedExit::of(Some(&outcome)))
    );
});

fn is_plain(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t'))
}

fn snapshot(head_bytes: usize, max_bytes: usize, bytes: &[u8]) -> Snapshot {
    let collect = Collect {
        max_bytes: max_bytes + 1,
        head_bytes,
        spill: None,
    };
    let (mut collector, reader) = Collector::new(&collect, None);
    collector.push(bytes);
    reader.snapshot()
}
