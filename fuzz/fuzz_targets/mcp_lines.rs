//! What an MCP server writes, cut into chunks anywhere: the lines are those of the whole, and reading them ends.

#![no_main]

use dsh_mcp::client::{Decoded, Envelope, Line, Lines, decode};
use libfuzzer_sys::fuzz_target;
use rmcp::model::ServerJsonRpcMessage;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (cap, chunk, bytes) = input;
    let cap = usize::from(cap).max(1);
    let mut lines = Lines::new(cap);
    let mut cut = Vec::new();
    for mut chunk in bytes.chunks(usize::from(chunk).max(1)) {
        while let Some(line) = lines.feed(&mut chunk) {
            cut.push(line);
        }
    }
    cut.extend(lines.finish());

    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut expected = whole.split(|&byte| byte == b'\n');
    for line in &cut {
        let expected = expected.next().expect("there is no line too many");
        let expected = expected.strip_suffix(b"\r").unwrap_or(expected);
        match line {
            Line::Whole(line) => assert!(line == expected && line.len() <= cap),
            Line::Long(line) => {
                assert!(expected.len() > cap);
                assert_eq!(line.length, expected.len() as u64);
                assert_eq!(line.envelope, Envelope::of(expected));
            }
        }
        if let Decoded::Bad(bad) = decode::<ServerJsonRpcMessage>(line) {
            assert!(!bad.excerpt.chars().any(char::is_control));
        }
    }
    // Of no bytes at all there is no line, and splitting them gives one.
    assert!(bytes.is_empty() || expected.next().is_none());
});
