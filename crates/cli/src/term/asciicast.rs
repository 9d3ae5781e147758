//! The format of a recording: asciicast v2, a line of JSON for the header and one for each event. Pure: time is an argument.
//!
//! As described at <https://docs.asciinema.org/manual/asciicast/v2/>.

use std::time::Duration;

use dsh_subprocess::TerminalSize;
use serde::Serialize;

/// What a recording says of its terminal.
#[derive(Serialize)]
pub(super) struct Header {
    version: u8,
    width: u16,
    height: u16,
    timestamp: u64,
    env: Variables,
}

#[derive(Serialize)]
struct Variables {
    #[serde(rename = "SHELL", skip_serializing_if = "Option::is_none")]
    shell: Option<String>,
    #[serde(rename = "TERM")]
    terminal_type: String,
}

impl Header {
    /// `since_epoch` is the time at which the recording begins.
    pub(super) fn new(
        size: TerminalSize,
        since_epoch: Duration,
        shell: Option<String>,
        terminal_type: String,
    ) -> Self {
        Self {
            version: 2,
            width: size.cols,
            height: size.rows,
            timestamp: since_epoch.as_secs(),
            env: Variables { shell, terminal_type },
        }
    }

    /// Returns the first line.
    pub(super) fn line(&self) -> String {
        line(self)
    }
}

/// The events of a recording.
///
/// They are JSON, and so are text: a character that is still incomplete is carried over to the next event, and bytes that
/// are no UTF-8 become U+FFFD, in the same places as [`String::from_utf8_lossy`] has it.
#[derive(Default)]
pub(super) struct Events {
    /// The beginning of a character, at most 3 bytes.
    carried: Vec<u8>,
}

impl Events {
    /// Returns the line for what the terminal showed. `None` where that completes no character.
    pub(super) fn output(&mut self, at: Duration, bytes: &[u8]) -> Option<String> {
        let mut whole = std::mem::take(&mut self.carried);
        whole.extend_from_slice(bytes);
        let mut text = String::with_capacity(whole.len());
        let mut chunks = whole.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            if chunks.peek().is_none() && is_incomplete(chunk.invalid()) {
                self.carried = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        (!text.is_empty()).then(|| event(at, "o", &text))
    }

    /// Returns the line for a new size.
    pub(super) fn resize(at: Duration, size: TerminalSize) -> String {
        event(at, "r", &size.to_string())
    }

    /// Returns the line for a character that was never completed. `None` where there is none.
    pub(super) fn end(&mut self, at: Duration) -> Option<String> {
        let rest = std::mem::take(&mut self.carried);
        (!rest.is_empty()).then(|| event(at, "o", &String::from_utf8_lossy(&rest)))
    }
}

/// Tells whether more bytes could make a character of these.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

fn event(at: Duration, code: &str, data: &str) -> String {
    // To the microsecond, which is more than anybody sees and takes no 17 digits.
    let seconds = Duration::from_micros(u64::try_from(at.as_micros()).unwrap_or(u64::MAX)).as_secs_f64();
    line(&(seconds, code, data))
}

fn line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value);
    text.expect("it has string keys only and no number that JSON cannot hold") + "\n"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const AT: Duration = Duration::from_nanos(1_234_567_891);

    /// Puts the events of a stream one behind the other, and checks that each is one line.
    fn recorded<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut events = Events::default();
        let mut lines: Vec<_> = chunks
            .into_iter()
            .filter_map(|chunk| events.output(AT, chunk))
            .collect();
        lines.extend(events.end(AT));
        lines
            .iter()
            .map(|line| {
                let (line, rest) = line.split_once('\n').expect("it has an end");
                assert_eq!(rest, "");
                let event: Value = serde_json::from_str(line).expect("it is JSON");
                assert_eq!(
                    (&event[0], &event[1]),
                    (&json!(1.234_567), &json!("o")),
                    "{event}"
                );
                event[2].as_str().expect("it is text").to_owned()
            })
            .collect()
    }

    #[test]
    fn the_header_says_what_a_player_needs() {
        let size = TerminalSize { rows: 24, cols: 80 };
        let since_epoch = Duration::from_millis(1_700_000_000_999);
        let header = Header::new(size, since_epoch, Some("/bin/sh".to_owned()), "dumb".to_owned());
        assert_eq!(
            header.line(),
            "{\"version\":2,\"width\":80,\"height\":24,\"timestamp\":1700000000,\
             \"env\":{\"SHELL\":\"/bin/sh\",\"TERM\":\"dumb\"}}\n"
        );
        let header = Header::new(size, since_epoch, None, "dumb".to_owned());
        assert!(header.line().ends_with("\"env\":{\"TERM\":\"dumb\"}}\n"));
    }

    #[test]
    fn a_new_size_is_columns_by_rows() {
        let size = TerminalSize { rows: 40, cols: 132 };
        assert_eq!(
            Events::resize(Duration::from_millis(1500), size),
            "[1.5,\"r\",\"132x40\"]\n"
        );
    }

    #[test]
    fn a_character_across_two_reads_is_one() {
        assert_eq!(recorded([&b"a\xe2\x82"[..], b"\xac", b"z"]), "a€z");
        let mut events = Events::default();
        assert_eq!(events.output(AT, b"\xe2"), None, "there is nothing to show yet");
    }

    #[test]
    fn a_character_that_is_never_completed_is_shown_as_one_that_is_none() {
        assert_eq!(recorded([&b"a\xe2"[..], b"\x82"]), "a\u{fffd}");
        assert_eq!(recorded([&b"a\xe2\x82"[..], b"z"]), "a\u{fffd}z");
    }

    #[test]
    fn control_characters_do_not_end_the_line() {
        assert_eq!(
            recorded([&b"a\r\n\x1b[31m\0\x7f\"\\"[..]]),
            "a\r\n\u{1b}[31m\0\u{7f}\"\\"
        );
    }

    proptest! {
        /// Bytes near the borders of what UTF-8 allows, so that most streams hold parts of characters.
        #[test]
        fn whatever_is_shown_and_however_it_is_cut_the_text_is_the_same(
            bytes in proptest::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(b"\xe2\x82\xac\xf0\x9f\x98\x80\xed\xc3a".to_vec())],
                0..200,
            ),
            lengths in proptest::collection::vec(1_usize..9, 200),
        ) {
            let mut rest = &bytes[..];
            let mut chunks = Vec::new();
            for length in lengths {
                let (chunk, left) = rest.split_at(length.min(rest.len()));
                chunks.push(chunk);
                rest = left;
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(recorded(chunks), String::from_utf8_lossy(&bytes));
        }
    }
}
