//! What holds for any output.

use dsh_subprocess::{Outcome, SignalName};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{collected, snapshot};
use crate::render::excerpt::excerpt;
use crate::render::{
    Folder, ParsedExit, RenderInput, StreamView, Style, Whole, clip_lines, fold, parse_exit_status, render,
};

/// Text of which much moves, erases and introduces sequences.
fn terminal_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => select(vec![
            "\r", "\n", "\r\n", "\t", "\x08", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[J", "\x1b[2D", "\x1b[3C", "\x1b[5G",
            "\x1b[9999C", "\x1b[31m", "\x1b]0;t\x07", "\x1b]", "\x1b[", "\x1b", "\x1bP", "\x1b\\", "\u{9b}", "\u{9d}",
            "\u{9c}", "\u{85}", "\0", "\x07", "\x18", "\x1a", "\x0b", "\x7f", "\u{301}", "日", "😀", "✜", "\u{200d}", " ",
            "[exit code: 0]", "\x1b[ 1m",
        ])
        .prop_map(str::to_owned),
        2 => "[a-z ]{1,12}",
        1 => any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..48).prop_map(|pieces| pieces.concat())
}

fn folded_in_pieces(text: &str, piece: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut folder = Folder::new();
    let mut out = String::new();
    for part in characters.chunks(piece) {
        folder.push(&part.iter().collect::<String>(), &mut out);
    }
    folder.finish(&mut out);
    out
}

fn has_no_control_but_line_feeds_and_tabs(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t'))
}

/// What can happen to narrow characters in one line.
#[derive(Clone, Debug)]
enum Act {
    Print(char),
    Return,
    Back(usize),
    EraseToEnd,
    EraseToStart,
    EraseAll,
}

impl Act {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            4 => (b'a'..=b'z').prop_map(|letter| Self::Print(char::from(letter))),
            1 => Just(Self::Return),
            2 => (1_usize..5).prop_map(Self::Back),
            1 => Just(Self::EraseToEnd),
            1 => Just(Self::EraseToStart),
            1 => Just(Self::EraseAll),
        ]
    }

    fn written(&self) -> String {
        match self {
            Self::Print(c) => c.to_string(),
            Self::Return => "\r".to_owned(),
            Self::Back(columns) => format!("\x1b[{columns}D"),
            Self::EraseToEnd => "\x1b[K".to_owned(),
            Self::EraseToStart => "\x1b[1K".to_owned(),
            Self::EraseAll => "\x1b[2K".to_owned(),
        }
    }
}

/// A terminal's line that does at once what it is told.
fn shown_by_a_terminal(acts: &[Act]) -> String {
    let mut cells = vec![' '; acts.len() + 1];
    let mut cursor = 0;
    for act in acts {
        match act {
            Act::Print(c) => {
                cells[cursor] = *c;
                cursor += 1;
            }
            Act::Return => cursor = 0,
            Act::Back(columns) => cursor = cursor.saturating_sub(*columns),
            Act::EraseToEnd => cells[cursor..].fill(' '),
            Act::EraseToStart => cells[..=cursor].fill(' '),
            Act::EraseAll => cells.fill(' '),
        }
    }
    cells.iter().collect::<String>().trim_end().to_owned()
}

proptest! {
    #[test]
    fn o15_a_line_is_folded_to_what_a_terminal_shows(acts in vec(Act::any(), 0..64)) {
        let text: String = acts.iter().map(Act::written).collect();
        prop_assert_eq!(fold(&text), shown_by_a_terminal(&acts));
    }

    #[test]
    fn folded_text_has_no_control_characters_and_a_bounded_length(text in terminal_text()) {
        let folded = fold(&text);
        prop_assert!(has_no_control_but_line_feeds_and_tabs(&folded));
        prop_assert!(folded.len() <= 4 * text.len());
        let ends = |text: &str| text.matches(['\n', '\x0b', '\x0c']).count();
        prop_assert!(ends(&folded) <= ends(&text));
    }

    #[test]
    fn folding_twice_is_folding_once(text in terminal_text()) {
        let folded = fold(&text);
        prop_assert_eq!(fold(&folded), folded.clone());
    }

    #[test]
    fn folding_in_pieces_is_folding_at_once(text in terminal_text(), piece in 1_usize..9) {
        prop_assert_eq!(folded_in_pieces(&text, piece), fold(&text));
    }

    #[test]
    fn clean_text_is_its_own_folding_on_the_slow_way_too(text in "[\\PC\n\t\u{301}\u{200d}日]{0,64}") {
        prop_assert_eq!(folded_in_pieces(&text, 1), text);
    }

    #[test]
    fn flushing_anywhere_loses_no_text(pieces in vec("[a-z\n\t]{0,9}", 0..9)) {
        let mut folder = Folder::new();
        let mut out = String::new();
        for piece in &pieces {
            folder.push(piece, &mut out);
            folder.flush(&mut out);
        }
        folder.finish(&mut out);
        prop_assert_eq!(out, pieces.concat());
    }

    #[test]
    fn what_is_shown_and_what_is_left_out_are_all(
        bytes in vec(any::<u8>(), 0..300), head in 0_usize..80, tail in 1_usize..80, limit in 1_usize..200,
    ) {
        // Latin-1 as UTF-8: no byte is replaced, and the text's length is that of the bytes.
        let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        let snapshot = snapshot(head, tail, text.as_bytes());
        let excerpt = excerpt(&snapshot, limit);
        let shown = excerpt.head.len() + excerpt.tail.len();
        prop_assert!(shown <= limit);
        prop_assert_eq!(shown as u64 + excerpt.left_out, text.len() as u64);
        prop_assert!(text.starts_with(&*excerpt.head) && text.ends_with(&*excerpt.tail));
        prop_assert_eq!(excerpt.replaced, 0);
    }

    #[test]
    fn a_clipped_line_and_what_is_left_out_of_it_are_all(line in "[a-z日😀]{0,400}", bound in 200_usize..400) {
        let style = Style::default().with_max_line_bytes(bound).unwrap();
        let clipped = clip_lines(&line, &style);
        prop_assert!(clipped.text.len() <= bound);
        if clipped.lines == 0 {
            prop_assert_eq!(clipped.text, line.as_str());
        } else {
            let notice = format!("[... {} of {} bytes of this line left out ...]", clipped.left_out, line.len());
            let (first, last) = clipped.text.split_once(&notice).unwrap();
            prop_assert!(line.starts_with(first) && line.ends_with(last));
            prop_assert_eq!(first.len() + clipped.left_out + last.len(), line.len());
        }
    }

    #[test]
    fn item_128_the_status_is_read_back_whatever_was_printed(
        stdout in vec(any::<u8>(), 0..200),
        stderr in proptest::option::of(terminal_text()),
        outcome in proptest::option::of(prop_oneof![
            any::<u32>().prop_map(|code| Outcome::Exited { code }),
            "SIG[A-Z0-9+-]{1,9}".prop_map(|name| Outcome::Signaled { signal: SignalName::from(name), core_dumped: false }),
            Just(Outcome::Unknown),
        ]),
        notes in vec(terminal_text(), 0..3),
        place in ".{0,9}",
    ) {
        let view = |bytes: &[u8]| StreamView {
            snapshot: collected(20, 40, bytes).1.snapshot(),
            whole: Whole::At(place.clone()),
        };
        let input = RenderInput {
            stderr: stderr.as_ref().map(|text| view(text.as_bytes())),
            outcome: outcome.clone(),
            notes,
            ..RenderInput::new(view(&stdout))
        };
        let text = render(&input, &Style::default()).text;
        prop_assert!(has_no_control_but_line_feeds_and_tabs(&text));
        let (body, exit) = parse_exit_status(&text);
        let expected = match outcome {
            None => ParsedExit::Running,
            Some(Outcome::Exited { code }) => ParsedExit::Code(code),
            Some(Outcome::Signaled { signal, .. }) => ParsedExit::Signal(signal),
            Some(Outcome::Unknown) => ParsedExit::Unknown,
        };
        prop_assert_eq!(exit, Some(expected));
        prop_assert!(!body.is_empty() || text.starts_with('\n'));
    }
}
