//! The record of a runtime: a text is none, or begins with what would be written for it.

#![no_main]

#[path = "../../crates/subprocess-local/src/janitor/contents.rs"]
mod contents;

use contents::{Fact, begin, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Ok(contents) = parse(text) {
        let written: String = std::iter::once(begin(&contents.owner))
            .chain(contents.facts.iter().map(Fact::line))
            .collect();
        // What is left of the text is a last line without its end.
        let rest = text.strip_prefix(written.as_bytes());
        assert!(rest.is_some_and(|rest| !rest.contains(&b'\n')));
        assert_eq!(parse(written.as_bytes()), Ok(contents));
    }
});
