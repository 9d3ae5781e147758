//! Which values are credentials by their look.
//!
//! One pass over the bytes; the rules are asked only where one of them can begin.

use super::{DropReason, settings, tokens};

/// Tells whether a value holds a credential, and of which kind.
pub(super) fn credential(value: &[u8]) -> Option<DropReason> {
    if authorization_value(value) {
        return Some(DropReason::Authorization);
    }
    // An exported shell function assigns variables called `password` without holding one.
    let asked = if value.starts_with(b"() {") {
        DASH | BEGINS
    } else {
        SIGN | DASH | BEGINS
    };
    let mut possible = asked;
    for (at, &byte) in value.iter().enumerate() {
        let class = CLASSES[usize::from(byte)];
        let question = class & possible;
        // Within a word no token begins: `task_ghp_…` is a name that somebody made up.
        possible = if class & JOINS == 0 {
            asked
        } else {
            asked & !BEGINS
        };
        let answer = match question {
            0 => continue,
            SIGN => settings::assigned(value, at),
            DASH => private_key_block(&value[at..]).then_some(DropReason::PrivateKey),
            _ => tokens::begins(value, at),
        };
        if answer.is_some() {
            return answer;
        }
    }
    None
}

/// A byte that makes a word of what stands on its two sides.
const JOINS: u8 = 1;
/// A byte that may give a value to a key.
const SIGN: u8 = 2;
/// The byte that a PEM block begins with.
const DASH: u8 = 4;
/// A byte that a token begins with.
const BEGINS: u8 = 8;

/// What each byte may be. Only a letter or digit begins a token, so a byte asks one question at most.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        let joins = byte.is_ascii_alphanumeric() || byte == b'_';
        let begins = byte.is_ascii_alphanumeric() && tokens::may_begin(byte);
        classes[byte as usize] = match byte {
            b'=' | b':' => SIGN,
            b'-' => DASH,
            _ => (if joins { JOINS } else { 0 }) | (if begins { BEGINS } else { 0 }),
        };
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// Tells whether a PEM block begins here that is not known to be public. Certificates and public keys pass.
fn private_key_block(bytes: &[u8]) -> bool {
    const LONGEST_LABEL: usize = 64;
    const PUBLIC: &[&[u8]] = &[b"CERTIFICATE", b"PUBLIC", b"PARAMETERS", b"CRL", b"SIGNATURE"];
    let Some(label) = bytes.strip_prefix(b"-----BEGIN") else {
        return false;
    };
    let label = &label[..label.len().min(LONGEST_LABEL)];
    let end = label
        .windows(5)
        .position(|dashes| dashes == b"-----")
        .unwrap_or(label.len());
    !PUBLIC
        .iter()
        .any(|word| label[..end].windows(word.len()).any(|part| part == *word))
}

/// Tells whether a value is what follows `Authorization:`, alone.
fn authorization_value(value: &[u8]) -> bool {
    const SHORTEST: usize = 8;
    let value = value.trim_ascii();
    let Some(space) = value
        .iter()
        .take("bearer".len() + 1)
        .position(|&byte| byte == b' ')
    else {
        return false;
    };
    let rest = value[space..].trim_ascii_start();
    let is_one_word = rest.len() >= SHORTEST && rest.iter().all(u8::is_ascii_graphic);
    match &value[..space] {
        scheme if scheme.eq_ignore_ascii_case(b"bearer") => is_one_word,
        // `Basic stuff` is prose; what the scheme sends is a user, a colon and a password in base64.
        scheme if scheme.eq_ignore_ascii_case(b"basic") => {
            rest.iter().all(u8::is_ascii_graphic) && hides_colon(rest)
        }
        _ => false,
    }
}

/// Tells whether base64 text decodes to something with a colon.
fn hides_colon(text: &[u8]) -> bool {
    let text = text
        .strip_suffix(b"==")
        .or_else(|| text.strip_suffix(b"="))
        .unwrap_or(text);
    let (mut bits, mut held, mut found) = (0_u32, 0, false);
    for &byte in text {
        let sextet = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        bits = (bits << 6 | u32::from(sextet)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            found |= (bits >> held) & 0xff == u32::from(b':');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_are_found_and_public_halves_pass() {
        for label in [
            "PRIVATE KEY",
            "RSA PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
            "AGE ENCRYPTED FILE",
        ] {
            let block = format!("x\n-----BEGIN {label}-----\nMIIE\n-----END {label}-----\n");
            assert_eq!(
                credential(block.as_bytes()),
                Some(DropReason::PrivateKey),
                "{label}"
            );
        }
        for label in [
            "CERTIFICATE",
            "PUBLIC KEY",
            "PGP PUBLIC KEY BLOCK",
            "X509 CRL",
            "DH PARAMETERS",
        ] {
            let block = format!("-----BEGIN {label}-----\nMIIE\n-----END {label}-----\n");
            assert_eq!(credential(block.as_bytes()), None, "{label}");
        }
        let both =
            b"-----BEGIN CERTIFICATE-----\nMI\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nMI";
        assert_eq!(credential(both), Some(DropReason::PrivateKey));
        assert_eq!(credential(b"-----BEGIN"), Some(DropReason::PrivateKey));
    }

    #[test]
    fn authorization_values_are_found_and_prose_passes() {
        for value in [
            "Bearer abcdefgh",
            "bearer  0123456789",
            "Basic YWxpY2U6cHc=",
            " Basic Ojp4eA",
        ] {
            assert_eq!(
                credential(value.as_bytes()),
                Some(DropReason::Authorization),
                "{value}"
            );
        }
        for value in [
            "Basic Instinct",
            "Bearer of bad news",
            "Basic",
            "bearer",
            "Basic training camp",
        ] {
            assert_eq!(credential(value.as_bytes()), None, "{value}");
        }
    }
}
