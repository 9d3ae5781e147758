//! How what a runtime has on disk is named: after its process, with a random part that nobody can guess.

use std::ffi::OsStr;

/// Digits of the random part.
const RANDOM: usize = 12;

/// Tells whether a name is one that a runtime of this process gives its directory or its control group.
pub(super) fn is_of(pid: u32, name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix("dsh-subprocess-"))
        .is_some_and(|rest| owner(rest) == Some(pid))
}

/// Names the record of a runtime of this process.
pub(super) fn record(pid: u32, random: [u8; RANDOM / 2]) -> String {
    format!(
        "{pid}-{}.record",
        random.map(|byte| format!("{byte:02x}")).concat()
    )
}

/// Returns the process whose record a file is, by its name.
pub(super) fn recorded(name: &OsStr) -> Option<u32> {
    owner(name.to_str()?.strip_suffix(".record")?)
}

/// Reads `PID-RANDOM`.
fn owner(text: &str) -> Option<u32> {
    let (pid, random) = text.split_once('-')?;
    let digits = |text: &str, digit: fn(u8) -> bool| !text.is_empty() && text.bytes().all(digit);
    let lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if random.len() == RANDOM && digits(random, lower_hex) && digits(pid, |byte| byte.is_ascii_digit()) {
        pid.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_same_process_are_its_own() {
        let name = |text: &str| is_of(42, OsStr::new(text));
        assert!(name("dsh-subprocess-42-0123456789ab"));
        for other in [
            "dsh-subprocess-43-0123456789ab",
            "dsh-subprocess-042x-0123456789ab",
            "dsh-subprocess-+42-0123456789ab",
            "dsh-subprocess-42-0123456789AB",
            "dsh-subprocess-42-0123456789a",
            "dsh-subprocess-42-0123456789abc",
            "dsh-subprocess-42-../../../etc",
            "dsh-subprocess-42",
            "42-0123456789ab",
            "",
        ] {
            assert!(!name(other), "{other}");
        }
    }

    #[test]
    fn a_record_is_named_after_its_owner() {
        let name = record(42, [0, 1, 2, 0xab, 0xcd, 0xef]);
        assert_eq!(name, "42-000102abcdef.record");
        assert_eq!(recorded(OsStr::new(&name)), Some(42));
        assert_eq!(recorded(OsStr::new("42-000102abcdef.record~")), None);
    }
}
