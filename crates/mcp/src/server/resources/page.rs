//! One page of a stream: which bytes to read for it, and what of them to hand over. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dsh_subprocess::whole_characters;

use crate::server::config::MAX_PAGE_BYTES;

/// The content of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// UTF-8, with no character cut at its end.
    Text(String),
    /// Anything else, and text that JSON would make too long, in base64.
    Blob(String),
}

/// The most that a page becomes on its way: the longest page in base64.
const LONGEST_SENT: usize = MAX_PAGE_BYTES.div_ceil(3) * 4;

/// A page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Page {
    pub(super) content: Content,
    /// Where the next page begins. Pages that are asked for from here are the stream, each byte once.
    pub(super) next_offset: u64,
}

/// Makes a page of the bytes that begin at `offset`. `ends` says that no byte of the stream follows them.
///
/// A character that is cut at the end of the bytes is left to the next page, unless the page would be empty without it.
pub(super) fn page(bytes: &[u8], offset: u64, ends: bool) -> Page {
    let whole = whole_characters(bytes, true, ends);
    let shown = if whole.is_empty() { bytes } else { &bytes[whole] };
    let (content, taken) = match str::from_utf8(shown) {
        Ok(text) if escaped(text) <= LONGEST_SENT => (Content::Text(text.to_owned()), shown.len()),
        Ok(text) => (Content::Blob(STANDARD.encode(text)), shown.len()),
        // All of it: nothing is held back for the sake of a character that is none.
        Err(_) => (Content::Blob(STANDARD.encode(bytes)), bytes.len()),
    };
    Page {
        content,
        next_offset: offset + taken as u64,
    }
}

/// How long a text is in JSON (RFC 8259, section 7): control characters take two or six bytes.
fn escaped(text: &str) -> usize {
    let length = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(length).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(content: &Content) -> Vec<u8> {
        match content {
            Content::Text(text) => text.clone().into_bytes(),
            Content::Blob(blob) => STANDARD.decode(blob).expect("a blob is base64"),
        }
    }

    /// Pages through a stream, `length` bytes at a time.
    fn read_all(stream: &[u8], length: usize) -> (Vec<u8>, Vec<Content>) {
        let (mut all, mut contents, mut offset) = (Vec::new(), Vec::new(), 0);
        while offset < stream.len() {
            let end = stream.len().min(offset + length);
            let page = page(&stream[offset..end], offset as u64, end == stream.len());
            assert!(page.next_offset > offset as u64, "a page moves on");
            offset = usize::try_from(page.next_offset).expect("it is a small stream");
            all.extend(decoded(&page.content));
            contents.push(page.content);
        }
        (all, contents)
    }

    #[test]
    fn no_page_is_sent_longer_than_clients_take() {
        for (text, length, as_text) in [
            ("plain\n", MAX_PAGE_BYTES, true),
            ("\0", 64 << 10, true),
            ("\0", MAX_PAGE_BYTES, false),
            ("\x1b[31mred\x1b[0m", 64 << 10, true),
        ] {
            let bytes: Vec<u8> = text.bytes().cycle().take(length).collect();
            let page = page(&bytes, 0, true);
            assert_eq!(matches!(page.content, Content::Text(_)), as_text, "{text:?}");
            assert_eq!(page.next_offset, length as u64);
            let sent = match &page.content {
                Content::Text(text) => serde_json::to_string(text).expect("it is text").len(),
                Content::Blob(blob) => blob.len(),
            };
            assert!(sent <= LONGEST_SENT + 2, "{text:?}: {sent}");
        }
    }

    #[test]
    fn pages_together_are_the_stream() {
        let streams = [
            "plain".as_bytes().to_vec(),
            "wide → 漢字 → 🦀🦀🦀 end".as_bytes().to_vec(),
            (0..=255).cycle().take(1000).collect(),
            b"cut \xf0\x9f\xa6".to_vec(),
            b"\x80\x80\x80\x80\x80\x80".to_vec(),
        ];
        for stream in streams {
            for length in 1..=9 {
                assert_eq!(read_all(&stream, length).0, stream, "in pages of {length}");
            }
        }
    }

    #[test]
    fn text_is_cut_between_characters() {
        let (_, contents) = read_all("漢字🦀漢字".as_bytes(), 5);
        assert!(
            contents
                .iter()
                .all(|content| matches!(content, Content::Text(text) if !text.is_empty())),
            "{contents:?}"
        );
    }

    #[test]
    fn a_page_that_is_no_text_is_a_blob() {
        let page = page(b"a\xffb", 10, false);
        assert_eq!(page.content, Content::Blob(STANDARD.encode(b"a\xffb")));
        assert_eq!(page.next_offset, 13);
    }

    #[test]
    fn an_empty_page_is_empty_text() {
        let page = page(b"", 7, true);
        assert_eq!(
            (page.content, page.next_offset),
            (Content::Text(String::new()), 7)
        );
    }
}
