//! Lines and messages from bytes, without a process.

use dsh_mcp::client::{BadLineCause, Decoded, Envelope, EnvelopeScan, Line, Lines, decode};
use proptest::prelude::*;
use rmcp::model::{RequestId, ServerJsonRpcMessage};

/// The lines of these bytes, fed in pieces of these lengths, over and over.
fn cut(bytes: &[u8], lengths: &[usize], cap: usize) -> Vec<Line> {
    let mut lines = Lines::new(cap);
    let mut cut = Vec::new();
    let mut rest = bytes;
    let mut lengths = lengths.iter().cycle();
    while !rest.is_empty() {
        let length = (*lengths.next().unwrap_or(&1)).clamp(1, rest.len());
        let (mut piece, after) = rest.split_at(length);
        while let Some(line) = lines.feed(&mut piece) {
            cut.push(line);
        }
        rest = after;
    }
    cut.extend(lines.finish());
    cut
}

/// What lines are: cut the whole at each line feed, take off a carriage return, look at the length.
fn expected(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = bytes.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
        .into_iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect()
}

/// Bytes in which ends of lines are frequent.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        3 => Just(b'\n'),
        2 => Just(b'\r'),
        2 => Just(b'"'),
        1 => Just(b'\\'),
        2 => prop::sample::select(&b"{}[]:, "[..]),
        5 => any::<u8>(),
    ];
    prop::collection::vec(byte, 0..200)
}

/// Any JSON.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        r#"[a-z"\\{}\[\]\n]{0,8}"#.prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("(id|method|result|[a-z]{0,4})", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_chunks_give_the_same_lines(
        bytes in stream(),
        lengths in prop::collection::vec(1_usize..40, 1..8),
        cap in 1_usize..40,
    ) {
        let lines = cut(&bytes, &lengths, cap);
        prop_assert_eq!(&lines, &cut(&bytes, &[usize::MAX], cap));
        let expected = expected(&bytes);
        prop_assert_eq!(lines.len(), expected.len());
        for (line, expected) in lines.iter().zip(expected) {
            match line {
                Line::Whole(line) => {
                    prop_assert_eq!(&line[..], expected);
                    prop_assert!(line.len() <= cap);
                }
                Line::Long(line) => {
                    prop_assert!(expected.len() > cap, "the cap is exact");
                    prop_assert_eq!(line.length, expected.len() as u64);
                    prop_assert_eq!(&line.start[..], &expected[..expected.len().min(240)]);
                    prop_assert_eq!(&line.envelope, &Envelope::of(expected));
                }
            }
        }
    }

    #[test]
    fn an_envelope_is_that_of_the_outermost_object(value in json(), length in 1_usize..12) {
        let text = serde_json::to_string_pretty(&value).expect("it is JSON").replace('\n', " ");
        let mut scan = EnvelopeScan::default();
        for piece in text.as_bytes().chunks(length) {
            scan.feed(piece);
        }
        let envelope = scan.finish();
        let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
        prop_assert_eq!(&envelope.id, &id);
        prop_assert_eq!(envelope.method, value.get("method").is_some());
        prop_assert_eq!(envelope.protocol, value.get("result").is_some());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in stream(), cap in 1_usize..100) {
        for line in cut(&bytes, &[7], cap) {
            if let Decoded::Bad(bad) = decode::<ServerJsonRpcMessage>(&line) {
                prop_assert!(!bad.excerpt.chars().any(char::is_control));
                prop_assert!(bad.excerpt.len() <= 80 * 8);
            }
        }
    }
}

fn decoded(bytes: &[u8]) -> Decoded<ServerJsonRpcMessage> {
    decode(&Line::Whole(bytes.to_vec()))
}

#[test]
fn a_message_may_have_spaces_a_mark_and_a_carriage_return_around_it() {
    let message = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for (before, after) in [("\u{FEFF}", ""), (" \t", " "), ("", "\r"), ("", "")] {
        let line = [before.as_bytes(), message, after.as_bytes()].concat();
        assert!(
            matches!(decoded(&line), Decoded::Message(_)),
            "{before:?} {after:?}"
        );
    }
    for blank in ["", " ", "\t\r", "\u{FEFF}"] {
        assert!(matches!(decoded(blank.as_bytes()), Decoded::Blank), "{blank:?}");
    }
}

#[test]
fn a_bad_line_says_what_is_wrong_and_whose_answer_it_was() {
    let depth = 200;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{}{}}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    for (line, cause, answers) in [
        (&b"ready"[..], BadLineCause::NotJson, None),
        (b"caf\xe9", BadLineCause::NotUtf8, None),
        (b"[]", BadLineCause::NotAMessage, None),
        (br#"{"jsonrpc":"2.0"}"#, BadLineCause::NotAMessage, None),
        (
            br#"{"jsonrpc":"2.0","id":7}"#,
            BadLineCause::NotAMessage,
            Some(RequestId::Number(7)),
        ),
        (
            br#"{"id":"a","result":{"text":"caf"#,
            BadLineCause::NotJson,
            Some(RequestId::String("a".into())),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}",
            BadLineCause::NotUtf8,
            Some(RequestId::Number(7)),
        ),
        (deep.as_bytes(), BadLineCause::NotJson, Some(RequestId::Number(7))),
        // No answers: a log's line, a request, two ids, an id that is cut off.
        (br#"{"id":7,"level":"info"}"#, BadLineCause::NotAMessage, None),
        (
            br#"{"jsonrpc":"2.0","id":7,"method":"#,
            BadLineCause::NotJson,
            None,
        ),
        (
            br#"{"jsonrpc":"2.0","id":7,"id":8,"result":"#,
            BadLineCause::NotJson,
            None,
        ),
        (br#"{"jsonrpc":"2.0","id":7"#, BadLineCause::NotJson, None),
    ] {
        let shown = String::from_utf8_lossy(line);
        let Decoded::Bad(bad) = decoded(line) else {
            panic!("{shown} is a message");
        };
        assert_eq!((bad.cause, bad.answers), (cause, answers), "{shown}");
        assert_eq!(bad.length, line.len() as u64);
    }
}

#[test]
fn an_id_that_is_too_long_is_not_taken_for_its_beginning() {
    for (length, known) in [(254, true), (255, false)] {
        let id = "1".repeat(length);
        let line = format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":"#);
        assert_eq!(Envelope::of(line.as_bytes()).answers().is_some(), known);
    }
}
