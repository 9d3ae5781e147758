//! One over-long line, shown by its beginning and its end.

use std::borrow::Cow;

use super::Style;

/// Text whose lines have a bounded length.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Clipped<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// How many lines were clipped.
    pub lines: usize,
    /// Bytes of the text that were left out of them.
    pub left_out: usize,
}

/// Clips each line that is longer than [`Style::max_line_bytes`] in its middle, and says there how long it was.
///
/// A line as it is shown, with what is said in it and without its line break, has at most that many bytes. It is cut
/// between characters.
///
/// ```
/// use dsh_shell::render::{Style, clip_lines};
///
/// let style = Style::default().with_max_line_bytes(200)?;
/// let text = format!("short\n{}\n", "=".repeat(1_000));
/// let clipped = clip_lines(&text, &style);
/// assert!(clipped.text.starts_with("short\n======"));
/// assert!(clipped.text.contains(&format!("[... {} of 1000 bytes of this line left out ...]", clipped.left_out)));
/// assert!(clipped.text.lines().all(|line| line.len() <= 200));
/// # Ok::<(), dsh_shell::render::StyleError>(())
/// ```
pub fn clip_lines<'a>(text: &'a str, style: &Style) -> Clipped<'a> {
    let limit = style.max_line_bytes();
    if text.len() <= limit || lines(text).all(|line| line.len() <= limit) {
        return Clipped {
            text: Cow::Borrowed(text),
            lines: 0,
            left_out: 0,
        };
    }
    let mut out = String::new();
    let clips = clip_onto(&mut out, text, limit, Ends::default());
    Clipped {
        text: Cow::Owned(out),
        lines: clips.lines,
        left_out: clips.left_out,
    }
}

/// Whether the first and the last line of a text are only parts of lines, whose length nobody knows.
#[derive(Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) first_is_part: bool,
    pub(super) last_is_part: bool,
}

/// What was clipped.
#[derive(Clone, Copy, Default)]
pub(super) struct Clips {
    pub(super) lines: usize,
    pub(super) left_out: usize,
}

/// Appends the text to `out`, its lines clipped. What lies between two clipped lines is copied at once.
pub(super) fn clip_onto(out: &mut String, text: &str, limit: usize, ends: Ends) -> Clips {
    let mut clips = Clips::default();
    let (mut copied, mut start) = (0, 0);
    for line in lines(text) {
        let end = start + line.len();
        if line.len() > limit {
            let is_part = (ends.first_is_part && start == 0) || (ends.last_is_part && end == text.len());
            let clip = Clip::of(line, limit, is_part);
            out.push_str(&text[copied..start + clip.first]);
            out.push_str(&clip.notice);
            copied = end - clip.last;
            clips.lines += 1;
            clips.left_out += line.len() - clip.first - clip.last;
        }
        start = end + 1;
    }
    out.push_str(&text[copied..]);
    clips
}

/// The lines without their breaks. After the last break comes one more, which may be empty.
fn lines(text: &str) -> std::str::Split<'_, char> {
    text.split('\n')
}

struct Clip {
    first: usize,
    notice: String,
    last: usize,
}

impl Clip {
    fn of(line: &str, limit: usize, is_part: bool) -> Self {
        let length = line.len();
        let notice = |left_out: usize| {
            if is_part {
                left_out_notice(left_out as u64)
            } else {
                format!("[... {left_out} of {length} bytes of this line left out ...]")
            }
        };
        // Fewer bytes than all will be left out, and their number is not longer.
        let room = limit - notice(length).len();
        let first = floor_boundary(line, room / 2);
        let last = ceil_boundary(line, length - (room - room / 2));
        Self {
            first,
            notice: notice(last - first),
            last: length - last,
        }
    }
}

/// Says how many bytes are missing at this place.
pub(super) fn left_out_notice(bytes: u64) -> String {
    format!("[... {bytes} bytes left out ...]")
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
