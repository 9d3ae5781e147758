//! One page of a stream: which bytes to read for it, and what of them to hand over. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dsh_subprocess::whole_characters;

/// The content of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// UTF-8, with no character cut at its end.
    Text(String),
    /// Anything else, in base64.
    Blob(String),
}

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
        Ok(text) => (Content::Text(text.to_owned()), shown.len()),
        // All of it: nothing is held back for the sake of a character that is none.
        Err(_) => (Content::Blob(STANDARD.encode(bytes)), bytes.len()),
    };
    Page {
        content,
        next_offset: offset + taken as u64,
    }
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
