//! Times and sizes, as a person writes and reads them.

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::time::Duration;

use dsh_subprocess::MAX_GRACE;

/// The most that is retained of one end of a stream: the window is memory of this process.
const MAX_RETAINED: u64 = 1 << 30;

/// The longest time that can be written: a year. Anything above it is a slip of the pen.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 3600);

/// Reads a time that may not be zero.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("it must be more than zero; without the option there is no limit".to_owned()),
        duration => Ok(duration),
    }
}

/// Reads a grace, in the bounds the seam sets.
pub(crate) fn parse_grace(text: &str) -> Result<Duration, String> {
    match parse_drain(text)? {
        Duration::ZERO => Err("it must be more than zero".to_owned()),
        duration => Ok(duration),
    }
}

/// Reads a drain, in the bounds the seam sets.
pub(crate) fn parse_drain(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    if duration > MAX_GRACE {
        return Err(format!("it must be at most {}ms", MAX_GRACE.as_millis()));
    }
    Ok(duration)
}

/// Reads the size of a retained window.
pub(crate) fn parse_retained(text: &str) -> Result<usize, String> {
    let size = parse_size(text)?;
    if size > MAX_RETAINED {
        return Err("it must be at most 1G: it is kept in memory".to_owned());
    }
    usize::try_from(size).map_err(|_| "it does not fit into this machine's memory".to_owned())
}

/// Reads the size of a window in which something must be seen.
pub(crate) fn parse_window(text: &str) -> Result<usize, String> {
    match parse_retained(text)? {
        0 => Err("it must be more than zero".to_owned()),
        size => Ok(size),
    }
}

/// Reads the largest size of a file.
pub(crate) fn parse_spill_cap(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(parse_size(text)?)
        .ok_or_else(|| "it must be more than zero; without the option there is no file".to_owned())
}

/// Reads `500ms`, `1s`, `1.5s`, `2m` or `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (whole, fraction) = number
        .split_once('.')
        .map_or((number, None), |(whole, part)| (whole, Some(part)));
    if whole.is_empty() || fraction.is_some_and(|part| part.is_empty() || part.contains('.')) {
        return Err("it is no time; write it as in 500ms, 1.5s, 2m or 1h".to_owned());
    }
    let unit: u128 = match unit {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3600 * 1_000_000_000,
        "" => return Err(format!("a bare number has no unit; write {text}s or {text}ms")),
        _ => return Err("its unit is none of ms, s, m and h".to_owned()),
    };
    let too_long = || "it is longer than a year".to_owned();
    let mut nanoseconds = u128::from(whole.parse::<u64>().map_err(|_| too_long())?) * unit;
    let mut place = unit;
    for digit in fraction.unwrap_or_default().bytes() {
        place /= 10;
        nanoseconds += u128::from(digit - b'0') * place;
    }
    u64::try_from(nanoseconds)
        .map(Duration::from_nanos)
        .ok()
        .filter(|&duration| duration <= MAX_DURATION)
        .ok_or_else(too_long)
}

/// Reads `4096`, `64K`, `1M` or `2G`: powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err("it is no size; write it as in 4096, 64K, 1M or 2G".to_owned());
    }
    let shift = match unit {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => return Err("its unit is none of K, M and G".to_owned()),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "it is larger than any file".to_owned())
}

/// Writes a time the way it is said: `12 ms`, `1.25 s`, `2 m 5 s`.
pub(crate) fn spoken(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{seconds}.{:02} s", duration.subsec_millis() / 10),
        60..3600 => format!("{} m {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} m", seconds / 3600, seconds / 60 % 60),
    }
}

/// Makes one line of any text: control characters are written as escapes, so that no input can forge a line, and a
/// text longer than `limit` characters ends in an ellipsis.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == limit {
            line.push('…');
            break;
        }
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
            // A String takes every write.
            let _ = write!(line, "{}", character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit_and_may_have_a_fraction() {
        let read = |text| parse_duration(text).ok().map(|duration| duration.as_nanos());
        assert_eq!(read("500ms"), Some(500_000_000));
        assert_eq!(read("1s"), Some(1_000_000_000));
        assert_eq!(read("1.5s"), Some(1_500_000_000));
        assert_eq!(read("0.25m"), Some(15_000_000_000));
        assert_eq!(read("2m"), Some(120_000_000_000));
        assert_eq!(read("1h"), Some(3_600_000_000_000));
        assert_eq!(read("0ms"), Some(0));
        for wrong in [
            "", "5", "1.5", "s", "1.s", ".5s", "1.2.3s", "-1s", "+1s", "1 s", "1sec", "1S", "1d", "٣s",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_with_what_to_write_instead() {
        assert_eq!(
            parse_duration("30").unwrap_err(),
            "a bare number has no unit; write 30s or 30ms"
        );
    }

    #[test]
    fn a_duration_is_bounded_and_never_wraps() {
        for long in ["8761h", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(
                parse_duration(long).unwrap_err(),
                "it is longer than a year",
                "{long}"
            );
        }
        assert!(parse_duration("8760h").is_ok());
        assert!(parse_grace("2147483647ms").is_ok());
        assert!(parse_grace("2147483648ms").is_err());
    }

    #[test]
    fn zero_is_a_drain_but_neither_a_grace_nor_a_timeout() {
        assert_eq!(parse_drain("0s"), Ok(Duration::ZERO));
        assert!(parse_grace("0s").is_err());
        assert!(parse_timeout("0s").is_err());
        // A tenth of a nanosecond is no time either.
        assert!(parse_timeout("0.0000001ms").is_err());
    }

    #[test]
    fn a_size_is_bytes_or_a_power_of_1024() {
        assert_eq!(parse_size("0"), Ok(0));
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("64K"), Ok(65_536));
        assert_eq!(parse_size("1m"), Ok(1 << 20));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        for wrong in [
            "",
            "K",
            "1.5K",
            "-1",
            "1KB",
            "1T",
            "17179869184G",
            "18446744073709551616",
        ] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert!(parse_retained("1G").is_ok());
        assert!(parse_retained("1025M").is_err());
        assert!(parse_spill_cap("0").is_err());
    }

    #[test]
    fn a_time_is_said_with_three_digits_or_so() {
        let said = |milliseconds| spoken(Duration::from_millis(milliseconds));
        assert_eq!(said(0), "0 ms");
        assert_eq!(said(999), "999 ms");
        assert_eq!(said(1_259), "1.25 s");
        assert_eq!(said(125_000), "2 m 5 s");
        assert_eq!(said(7_260_000), "2 h 1 m");
    }

    #[test]
    fn a_line_stays_one_line_whatever_is_in_it() {
        assert_eq!(
            one_line("a\nb\u{1b}[31m\u{2028}", 80),
            "a\\nb\\u{1b}[31m\\u{2028}"
        );
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(one_line("abc", 3), "abc");
    }
}
