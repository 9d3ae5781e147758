//! The parts of a rendered command, in their order.

use std::fmt::Write as _;

use super::clip::{Clips, Ends, clip_onto, left_out_notice};
use super::excerpt::{Excerpt, excerpt};
use super::{ParsedExit, RenderInput, StreamView, Style, Whole, fold};

const NO_OUTPUT: &str = "(no output)";
const STDERR: &str = "[stderr]\n";

/// A command as a model sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Rendered {
    /// The text. It has no line break at its end.
    pub text: String,
    /// What of stdout is in it.
    pub stdout: Shown,
    /// What of stderr is in it. `None`: merged into stdout.
    pub stderr: Option<Shown>,
}

/// How much of a stream is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Shown {
    /// The bytes of the stream so far.
    pub total: u64,
    /// Bytes of the stream that are left out between its head and its tail.
    pub left_out: u64,
    /// How many lines were clipped.
    pub clipped_lines: usize,
    /// Bytes of folded text that were left out of clipped lines.
    pub clipped_bytes: usize,
    /// How many times bytes that are no UTF-8 were replaced by U+FFFD.
    pub replaced: usize,
}

impl Shown {
    /// Tells whether the text has less than the whole stream, folding aside.
    pub fn is_truncated(&self) -> bool {
        self.left_out > 0 || self.clipped_lines > 0
    }
}

/// Lays out a command for a model.
///
/// The text has no control character but line feeds and tabs, whatever the command printed, and its last line says how
/// the command ended: see [`parse_exit_status`](super::parse_exit_status). The time it takes grows with what was
/// kept of the streams, not with their length.
///
/// ```
/// use dsh_shell::render::{RenderInput, StreamView, Style, Whole, render};
/// use dsh_subprocess::{Collect, Collector, Outcome};
///
/// let (mut collector, reader) = Collector::new(&Collect { max_bytes: 1024, head_bytes: 0, spill: None }, None);
/// collector.push(b"\rbuilding 10%\rbuilding 100%\n\x1b[32mdone\x1b[0m\n");
/// collector.seal();
///
/// let mut input = RenderInput::new(StreamView { snapshot: reader.snapshot(), whole: Whole::InMemory });
/// input.outcome = Some(Outcome::Exited { code: 0 });
/// assert_eq!(render(&input, &Style::default()).text, "building 100%\ndone\n[exit code: 0]");
/// ```
pub fn render(input: &RenderInput, style: &Style) -> Rendered {
    let mut text = String::new();
    let stdout = show(&mut text, &input.stdout, style);
    let stderr = input.stderr.as_ref().map(|view| {
        let before = text.len();
        end_line(&mut text);
        text.push_str(STDERR);
        let section = text.len();
        let shown = show(&mut text, view, style);
        if text.len() == section {
            text.truncate(before);
        }
        shown
    });
    if text.is_empty() {
        text.push_str(NO_OUTPUT);
    }

    mark_truncated(&mut text, "output", &stdout, &input.stdout.whole);
    if let (Some(shown), Some(view)) = (&stderr, &input.stderr) {
        mark_truncated(&mut text, "stderr output", shown, &view.whole);
    }
    for note in &input.notes {
        mark(&mut text, fold(note).trim_end_matches('\n'));
    }
    if let Some(deadline) = input.timed_out {
        mark(
            &mut text,
            &format!("[timed out after {}ms]", deadline.as_millis()),
        );
    }
    if input.aborted {
        mark(&mut text, "[aborted]");
    }
    mark(&mut text, &ParsedExit::of(input.outcome.as_ref()).line());
    Rendered { text, stdout, stderr }
}

/// Appends a stream.
fn show(out: &mut String, view: &StreamView, style: &Style) -> Shown {
    let Excerpt {
        head,
        tail,
        left_out,
        replaced,
    } = excerpt(&view.snapshot, style.max_text_bytes());
    let limit = style.max_line_bytes();
    let is_cut = left_out > 0;
    let mut clips = Clips::default();
    let mut append = |out: &mut String, text: &str, ends: Ends| {
        let text = fold(text);
        let more = clip_onto(out, &text, limit, ends);
        clips.lines += more.lines;
        clips.left_out += more.left_out;
    };

    if is_cut {
        append(
            out,
            &head,
            Ends {
                first_is_part: false,
                last_is_part: true,
            },
        );
        // The line that the head ends in and the one that the tail begins in are not one.
        end_line(out);
        out.push_str(&left_out_notice(left_out));
        out.push('\n');
    }
    append(
        out,
        &tail,
        Ends {
            first_is_part: is_cut,
            last_is_part: false,
        },
    );
    Shown {
        total: view.snapshot.total,
        left_out,
        clipped_lines: clips.lines,
        clipped_bytes: clips.left_out,
        replaced,
    }
}

/// Says that a stream is not shown whole, and where it is. What is in memory only, and shown but for a part of a
/// line, needs no such line: the clipped one says it.
fn mark_truncated(text: &mut String, what: &str, shown: &Shown, whole: &Whole) {
    let place = match whole {
        Whole::At(place) if shown.is_truncated() => printable(place),
        Whole::InMemory | Whole::Unavailable if shown.left_out > 0 => "(unavailable)".to_owned(),
        _ => return,
    };
    mark(text, &format!("[{what} truncated; full output: {place}]"));
}

/// Appends a line. The last line of a text is left without its break.
fn mark(text: &mut String, line: &str) {
    if !line.is_empty() {
        end_line(text);
        text.push_str(line);
    }
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// A file's name may have any character in it, and the line is one line.
fn printable(place: &str) -> String {
    let mut printable = String::with_capacity(place.len());
    for c in place.chars() {
        if c.is_control() {
            let _ = write!(printable, "{}", c.escape_default());
        } else {
            printable.push(c);
        }
    }
    printable
}
