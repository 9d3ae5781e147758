//! Whose answer a line is that cannot be read: its outermost members, without the line in memory.

use memchr::memchr2;
use rmcp::model::RequestId;

/// The longest id that is recognized, in bytes of JSON.
const LONGEST_ID: usize = 256;
/// The longest name of a member that matters is `jsonrpc`.
const LONGEST_NAME: usize = 8;

/// What the outermost object of a line says of it, as far as it could be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Envelope {
    /// Its `id`, where there is exactly one and it is a number or a string.
    pub id: Option<RequestId>,
    /// Whether it has an `id`, of whatever kind and however often.
    pub has_id: bool,
    /// Whether it has a `method`, which makes it a request or a notification.
    pub method: bool,
    /// Whether it has a `result`, an `error` or a `jsonrpc`.
    pub protocol: bool,
}

impl Envelope {
    /// Reads what a whole line says of itself.
    pub fn of(line: &[u8]) -> Self {
        let mut scan = EnvelopeScan::default();
        scan.feed(line);
        scan.finish()
    }

    /// Returns the id of the request that the line answers, where it is an answer: a line of the protocol that has an id and
    /// no method.
    ///
    /// A line of a log that happens to have an `id` is none.
    pub fn answers(&self) -> Option<&RequestId> {
        self.id.as_ref().filter(|_| self.protocol && !self.method)
    }
}

/// Reads an [`Envelope`] from a line in any chunks, in constant memory.
///
/// It is no validator. It follows what the line is made of until that is no object any more, and knows then what came before.
///
/// ```
/// use dsh_mcp::client::EnvelopeScan;
///
/// let mut scan = EnvelopeScan::default();
/// for piece in [r#"{"result":{"id":1},"jso"#, r#"nrpc":"2.0","id":7} and no more JSON"#] {
///     scan.feed(piece.as_bytes());
/// }
/// assert_eq!(scan.finish().answers(), Some(&rmcp::model::RequestId::Number(7)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct EnvelopeScan {
    place: Place,
    /// How many objects and arrays are open below the outermost object.
    depth: u64,
    /// Whether the byte before was the backslash of an escape.
    escaped: bool,
    name: Vec<u8>,
    value: Vec<u8>,
    ids: usize,
    envelope: Envelope,
}

/// Where in the line the next byte is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    /// Before the brace.
    #[default]
    Start,
    /// Before a name, or the closing brace.
    Member,
    Name,
    Colon,
    /// Before a value.
    Value,
    /// In a string that is the value of a member.
    Text,
    /// In a number, `true`, `false` or `null`.
    Word,
    /// In an object or array.
    Nested,
    /// In a string below that.
    NestedText,
    /// After the closing brace, or where the line is no object any more.
    End,
}

impl EnvelopeScan {
    /// Takes the next bytes of the line.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.place == Place::End {
                return;
            }
            // Nearly all of a long line is in strings below: nothing in them matters but where they end.
            if self.place == Place::NestedText && !self.escaped {
                match memchr2(b'"', b'\\', bytes) {
                    None => return,
                    Some(at) if at > 0 => {
                        bytes = &bytes[at..];
                        continue;
                    }
                    Some(_) => {}
                }
            }
            self.take(byte);
            bytes = rest;
        }
    }

    /// Gives what is known when nothing more will come. A value that the line's end cut off is none.
    pub fn finish(self) -> Envelope {
        let mut envelope = self.envelope;
        envelope.has_id = self.ids > 0;
        if self.ids != 1 {
            envelope.id = None;
        }
        envelope
    }

    fn take(&mut self, byte: u8) {
        let space = matches!(byte, b' ' | b'\t' | b'\r');
        self.place = match (self.place, byte) {
            // A byte order mark may stand before the brace.
            (Place::Start, 0xEF | 0xBB | 0xBF) => Place::Start,
            (Place::Start | Place::Member | Place::Colon | Place::Value, _) if space => self.place,
            (Place::Start, b'{') | (Place::Member, b',') => Place::Member,
            (Place::Member, b'"') => {
                self.name.clear();
                Place::Name
            }
            (Place::Name, _) if self.ends_string(byte) => Place::Colon,
            (Place::Name, _) => {
                push(&mut self.name, byte, LONGEST_NAME);
                Place::Name
            }
            (Place::Colon, b':') => {
                self.named();
                Place::Value
            }
            (Place::Value, b'{' | b'[') => {
                self.depth = 1;
                Place::Nested
            }
            (Place::Value, b'"') => self.begin_value(byte, Place::Text),
            (Place::Value, b'-' | b'0'..=b'9' | b'a'..=b'z') => self.begin_value(byte, Place::Word),
            (Place::Text, _) => {
                push(&mut self.value, byte, LONGEST_ID);
                if self.ends_string(byte) {
                    self.valued();
                    Place::Member
                } else {
                    Place::Text
                }
            }
            (Place::Word, b',') => self.end_word(Place::Member),
            (Place::Word, b'}') => self.end_word(Place::End),
            (Place::Word, _) if space => self.end_word(Place::Member),
            (Place::Word, _) => {
                push(&mut self.value, byte, LONGEST_ID);
                Place::Word
            }
            (Place::Nested, b'"') => Place::NestedText,
            (Place::Nested, b'{' | b'[') => {
                self.depth = self.depth.saturating_add(1);
                Place::Nested
            }
            (Place::Nested, b'}' | b']') => {
                self.depth -= 1;
                if self.depth == 0 {
                    Place::Member
                } else {
                    Place::Nested
                }
            }
            (Place::Nested, _) => Place::Nested,
            (Place::NestedText, _) if self.ends_string(byte) => Place::Nested,
            (Place::NestedText, _) => Place::NestedText,
            (Place::Start | Place::Member | Place::Colon | Place::Value | Place::End, _) => Place::End,
        };
    }

    /// Whether this byte of a string is the quote at its end.
    fn ends_string(&mut self, byte: u8) -> bool {
        if std::mem::take(&mut self.escaped) {
            return false;
        }
        self.escaped = byte == b'\\';
        byte == b'"'
    }

    fn named(&mut self) {
        match &self.name[..] {
            b"id" => self.ids += 1,
            b"method" => self.envelope.method = true,
            b"result" | b"error" | b"jsonrpc" => self.envelope.protocol = true,
            _ => {}
        }
    }

    fn begin_value(&mut self, byte: u8, place: Place) -> Place {
        self.value.clear();
        self.value.push(byte);
        place
    }

    fn end_word(&mut self, place: Place) -> Place {
        self.valued();
        place
    }

    fn valued(&mut self) {
        if self.name == b"id" && self.value.len() <= LONGEST_ID {
            self.envelope.id = serde_json::from_slice(&self.value).ok();
        }
    }
}

/// Keeps one byte more than the limit, so that what is too long is not taken for its beginning.
fn push(buffer: &mut Vec<u8>, byte: u8, limit: usize) {
    if buffer.len() <= limit {
        buffer.push(byte);
    }
}
