//! What a server wrote, made fit for an error's text: it must neither move a terminal's cursor nor forge a line of a log.

use std::fmt::Write as _;

/// Makes one line of the first characters.
pub(super) fn one_line(bytes: &[u8], characters: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut line = String::new();
    for character in text.chars().take(characters) {
        escape(character, &mut line);
    }
    line
}

/// Makes one line of a text, of which nothing is left out.
pub(super) fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        escape(character, &mut line);
    }
    line
}

/// Makes a text of the last bytes: without escape sequences and control characters, except the ends of its lines and tabs.
pub(super) fn readable_tail(bytes: &[u8], limit: usize) -> String {
    let mut tail = &bytes[bytes.len().saturating_sub(limit)..];
    if tail.len() < bytes.len() {
        // The rest of a character that was cut in two.
        let rest = tail
            .iter()
            .take(3)
            .take_while(|&&byte| byte & 0xC0 == 0x80)
            .count();
        tail = &tail[rest..];
    }
    let plain = without_sequences(&String::from_utf8_lossy(tail));
    let mut text = String::with_capacity(plain.len());
    for character in plain.replace("\r\n", "\n").chars() {
        if matches!(character, '\n' | '\t') {
            text.push(character);
        } else {
            escape(character, &mut text);
        }
    }
    text.trim().to_owned()
}

fn escape(character: char, line: &mut String) {
    match character {
        '\n' => line.push_str("\\n"),
        '\r' => line.push_str("\\r"),
        '\t' => line.push_str("\\t"),
        _ if character.is_control() || reorders(character) => {
            // Writing to a string does not fail.
            let _ = write!(line, "\\u{{{:x}}}", u32::from(character));
        }
        _ => line.push(character),
    }
}

/// Characters that make a text look like another one: direction, and width zero.
fn reorders(character: char) -> bool {
    matches!(
        character,
        '\u{061C}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}'
            | '\u{FEFF}'
    )
}

/// Leaves out what colours a terminal, sets its title and the like (ECMA-48): control sequences, strings, and the short ones.
fn without_sequences(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\u{1B}' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('[') => {
                while characters
                    .next_if(|next| matches!(next, '\u{20}'..='\u{3F}'))
                    .is_some()
                {}
                characters.next_if(|next| matches!(next, '\u{40}'..='\u{7E}'));
            }
            // A string ends with a bell or with ESC \; one without an end loses its own line at most.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while characters.next_if(|next| !next.is_control()).is_some() {}
                if characters.next_if_eq(&'\u{1B}').is_some() {
                    characters.next_if_eq(&'\\');
                } else {
                    characters.next_if_eq(&'\u{7}');
                }
            }
            Some('\u{20}'..='\u{2F}') => {
                characters.next();
            }
            Some(_) | None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line_that_does_nothing_to_a_terminal() {
        assert_eq!(
            one_line(b"a\x1b[2Jb\nc\td\x07\xff", 80),
            "a\\u{1b}[2Jb\\nc\\td\\u{7}\u{FFFD}"
        );
        assert_eq!(one_line("a\u{202E}b".as_bytes(), 80), "a\\u{202e}b");
        assert_eq!(one_line(&[b'x'; 100], 80).len(), 80);
    }

    #[test]
    fn a_tail_keeps_its_lines_and_loses_its_colours() {
        let tail = b"\x1b]0;title\x07\x1b[1;31mError\x1b[0m: no\r\n\tat x\x00\x1b(B\n\n";
        assert_eq!(readable_tail(tail, 1024), "Error: no\n\tat x\\u{0}");
        assert_eq!(escaped("a\n\tb"), "a\\n\\tb");
    }

    #[test]
    fn a_tail_begins_with_a_whole_character() {
        let text = "äöü".as_bytes();
        assert_eq!(readable_tail(text, 3), "ü");
        assert_eq!(readable_tail(text, 6), "äöü");
    }

    #[test]
    fn a_sequence_without_an_end_takes_no_other_line_with_it() {
        assert_eq!(readable_tail(b"\x1b]0;title\nnext", 1024), "next");
        assert_eq!(readable_tail(b"text\x1b[31", 1024), "text");
        assert_eq!(readable_tail(b"text\x1b", 1024), "text");
    }
}
