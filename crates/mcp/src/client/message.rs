//! Messages from lines. No I/O and no clock.

use std::fmt;

use rmcp::model::RequestId;
use serde::de::DeserializeOwned;

use super::envelope::Envelope;
use super::excerpt::one_line;
use super::framing::Line;

/// How much of a bad line is shown, in characters before escaping.
const EXCERPT: usize = 80;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a line is.
#[derive(Clone, Debug)]
pub enum Decoded<M> {
    /// A message.
    Message(M),
    /// Nothing but spaces. Not worth a word: some servers end their messages with an empty line.
    Blank,
    /// No message.
    Bad(BadLine),
}

/// A line that was skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BadLine {
    /// Why.
    pub cause: BadLineCause,
    /// How long it was, in bytes without its end.
    pub length: u64,
    /// Its first characters, at most 80 of them, without control characters.
    pub excerpt: String,
    /// The request that it was the answer to, as far as the line tells: there may have been no such request.
    pub answers: Option<RequestId>,
}

/// Why a line was skipped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum BadLineCause {
    /// It is longer than the cap.
    TooLong,
    /// It is not UTF-8.
    NotUtf8,
    /// It is no JSON, or nested deeper than 128 levels.
    NotJson,
    /// It is JSON, and no single message of the protocol.
    NotAMessage,
}

impl fmt::Display for BadLineCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "longer than the cap",
            Self::NotUtf8 => "not UTF-8",
            Self::NotJson => "no JSON",
            Self::NotAMessage => "no message of the protocol",
        })
    }
}

/// Says what was wrong, and nothing of what the line held.
impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a line of {} bytes is {}", self.length, self.cause)
    }
}

/// Reads the message in a line.
///
/// ```
/// use dsh_mcp::client::{BadLineCause, Decoded, Line, decode};
/// use rmcp::model::ServerJsonRpcMessage;
///
/// let line = Line::Whole(b"Listening on port 3000".to_vec());
/// let Decoded::Bad(bad) = decode::<ServerJsonRpcMessage>(&line) else { panic!("it is no message") };
/// assert_eq!((bad.cause, bad.excerpt.as_str()), (BadLineCause::NotJson, "Listening on port 3000"));
/// ```
pub fn decode<M: DeserializeOwned>(line: &Line) -> Decoded<M> {
    let bytes = match line {
        Line::Whole(bytes) => bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes),
        Line::Long(long) => {
            return Decoded::Bad(BadLine {
                cause: BadLineCause::TooLong,
                length: long.length,
                excerpt: one_line(&long.start, EXCERPT),
                answers: long.envelope.answers().cloned(),
            });
        }
    };
    if bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
        return Decoded::Blank;
    }
    let error = match serde_json::from_slice(bytes) {
        Ok(message) => return Decoded::Message(message),
        Err(error) => error,
    };
    let cause = if std::str::from_utf8(bytes).is_err() {
        BadLineCause::NotUtf8
    } else if error.is_data() {
        BadLineCause::NotAMessage
    } else {
        BadLineCause::NotJson
    };
    Decoded::Bad(BadLine {
        cause,
        length: bytes.len() as u64,
        excerpt: one_line(&bytes[..bytes.len().min(4 * EXCERPT)], EXCERPT),
        answers: Envelope::of(bytes).answers().cloned(),
    })
}
