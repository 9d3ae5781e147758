//! The JSON object of a run. `docs/run.schema.json` documents it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dsh_subprocess::{Holder, Member, Outcome, SignalName, Snapshot, SpillState, Usage, whole_characters};
use serde::Serialize;

use crate::failure::Failure;
use crate::report::{Cause, Report, StreamReport};

#[derive(Serialize)]
pub(crate) struct RunObject<'a> {
    argv: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argv_base64: Option<Vec<String>>,
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd_base64: Option<String>,
    pid: Option<u32>,
    outcome: OutcomeObject<'a>,
    cause: &'static str,
    error: Option<ErrorObject<'a>>,
    stdout: StreamObject,
    stderr: StreamObject,
    ownership: Option<String>,
    weaknesses: &'a [String],
    ended: Vec<MemberObject<'a>>,
    survivors: Vec<MemberObject<'a>>,
    holders: Vec<HolderObject<'a>>,
    duration_ms: u64,
    usage: UsageObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording_stopped: Option<&'a str>,
    exit_status: u8,
}

#[derive(Serialize)]
pub(crate) struct OutcomeObject<'a> {
    exit_code: Option<u32>,
    signal: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct ErrorObject<'a> {
    kind: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
pub(crate) struct StreamObject {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_base64: Option<String>,
    head: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    head_base64: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_utf8: bool,
    total_bytes: u64,
    dropped_bytes: u64,
    truncated: bool,
    spill_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill_path_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spill_withdrawn: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct MemberObject<'a> {
    pid: Option<u32>,
    command: &'a str,
    uncertain: bool,
}

#[derive(Serialize)]
struct HolderObject<'a> {
    #[serde(flatten)]
    member: MemberObject<'a>,
    stream: String,
}

#[derive(Serialize)]
pub(crate) struct UsageObject {
    user_ms: Option<u64>,
    system_ms: Option<u64>,
    max_rss_kib: Option<u64>,
}

impl<'a> RunObject<'a> {
    /// Describes a run. `keep_spill` says whether a spilled stream outlives it.
    pub(crate) fn new(report: &'a Report, keep_spill: bool) -> Self {
        let argv: Vec<_> = report
            .subject
            .argv
            .iter()
            .map(|word| Text::new(word.as_bytes()))
            .collect();
        let cwd = report.subject.cwd.as_ref().map(|path| Text::new(path.as_bytes()));
        Self {
            argv_base64: argv.iter().any(|word| word.base64.is_some()).then(|| {
                report
                    .subject
                    .argv
                    .iter()
                    .map(|word| STANDARD.encode(word.as_bytes()))
                    .collect()
            }),
            argv: argv.into_iter().map(|word| word.lossy).collect(),
            cwd_base64: cwd.as_ref().and_then(|path| path.base64.clone()),
            cwd: cwd.map(|path| path.lossy),
            pid: report.pid,
            outcome: OutcomeObject::new(report.outcome.as_ref()),
            cause: match report.cause {
                Cause::Exited => "exited",
                Cause::Signaled => "signaled",
                Cause::TimedOut => "timed_out",
                Cause::Aborted => "aborted",
                Cause::SpawnFailed => "spawn_failed",
            },
            error: report.failure.as_ref().map(ErrorObject::new),
            stdout: StreamObject::new(&report.stdout, keep_spill),
            stderr: match &report.stderr {
                Some(stderr) => StreamObject::new(stderr, keep_spill),
                None => StreamObject::new(&StreamReport::default(), keep_spill),
            },
            ownership: report
                .ownership
                .as_ref()
                .map(|ownership| ownership.mechanism.to_string()),
            weaknesses: report
                .ownership
                .as_ref()
                .map_or(&[], |ownership| &ownership.weaknesses),
            ended: report.ended.iter().map(MemberObject::new).collect(),
            survivors: report.survivors.iter().map(MemberObject::new).collect(),
            holders: report.holders.iter().map(HolderObject::new).collect(),
            duration_ms: milliseconds(report.duration),
            usage: UsageObject::new(&report.usage),
            recording_stopped: report.recording_stopped.as_deref(),
            exit_status: report.status,
        }
    }
}

impl<'a> OutcomeObject<'a> {
    pub(crate) fn new(outcome: Option<&'a Outcome>) -> Self {
        Self {
            exit_code: outcome.and_then(Outcome::code),
            signal: outcome.and_then(Outcome::signal).map(SignalName::as_str),
        }
    }
}

impl<'a> ErrorObject<'a> {
    pub(crate) fn new(failure: &'a Failure) -> Self {
        Self {
            kind: &failure.kind,
            message: &failure.message,
        }
    }
}

impl UsageObject {
    pub(crate) fn new(usage: &Usage) -> Self {
        Self {
            user_ms: usage.user.map(milliseconds),
            system_ms: usage.system.map(milliseconds),
            max_rss_kib: usage.peak_memory_bytes.map(|bytes| bytes / 1024),
        }
    }
}

/// Counts a time as JSON does.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl StreamObject {
    /// Describes a stream. `keep_spill` says whether its file outlives the command.
    pub(crate) fn new(stream: &StreamReport, keep_spill: bool) -> Self {
        let (head, tail) = stream.retained.as_ref().map(shown).unwrap_or_default();
        let shown_bytes = (head.len() + tail.len()) as u64;
        let (head, text) = (Text::new(&head), Text::new(&tail));
        let spill = match &stream.spill {
            SpillState::Available(spilled) if keep_spill => Some(Text::new(spilled.location.as_bytes())),
            _ => None,
        };
        let dropped_bytes = stream.total - shown_bytes;
        Self {
            not_utf8: head.base64.is_some() || text.base64.is_some(),
            text: text.lossy,
            text_base64: text.base64,
            head: head.lossy,
            head_base64: head.base64,
            total_bytes: stream.total,
            dropped_bytes,
            truncated: dropped_bytes > 0,
            spill_path_base64: spill.as_ref().and_then(|path| path.base64.clone()),
            spill_path: spill.map(|path| path.lossy),
            spill_withdrawn: match &stream.spill {
                SpillState::Withdrawn(why) if keep_spill => Some(why.clone()),
                _ => None,
            },
        }
    }
}

/// Returns the bytes that are shown of head and tail: all that are retained, but for the parts of a character that is
/// cut in two by what is missing between them.
fn shown(retained: &Snapshot) -> (Bytes, Bytes) {
    let head = whole_characters(&retained.head, true, false);
    if retained.dropped() > 0 {
        let tail = whole_characters(&retained.tail, false, retained.sealed);
        return (retained.head.slice(head), retained.tail.slice(tail));
    }
    // Nothing is missing: a character across the border goes to the tail, whole.
    let tail = [&retained.head[head.end..], &retained.tail[..]].concat();
    (retained.head.slice(head), tail.into())
}

impl<'a> MemberObject<'a> {
    pub(crate) fn new(member: &'a Member) -> Self {
        Self {
            pid: member.pid,
            command: &member.command,
            uncertain: member.uncertain,
        }
    }
}

impl<'a> HolderObject<'a> {
    fn new(holder: &'a Holder) -> Self {
        Self {
            member: MemberObject::new(&holder.member),
            stream: holder.stream.to_string(),
        }
    }
}

/// Bytes as JSON can hold them: text, and beside it the bytes themselves where text cannot say them.
pub(crate) struct Text {
    pub(crate) lossy: String,
    pub(crate) base64: Option<String>,
}

impl Text {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self {
                lossy: text.to_owned(),
                base64: None,
            },
            Err(_) => Self {
                lossy: String::from_utf8_lossy(bytes).into_owned(),
                base64: Some(STANDARD.encode(bytes)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use dsh_subprocess::{Collect, Collector};

    use super::*;

    fn collected(max_bytes: usize, head_bytes: usize, bytes: &[u8]) -> StreamObject {
        let (mut collector, reader) = Collector::new(
            &Collect {
                max_bytes,
                head_bytes,
                spill: None,
            },
            None,
        );
        collector.push(bytes);
        collector.seal();
        let retained = reader.snapshot();
        let report = StreamReport {
            total: retained.total,
            retained: Some(retained),
            ..StreamReport::default()
        };
        StreamObject::new(&report, false)
    }

    #[test]
    fn a_short_stream_is_all_text_and_nothing_is_dropped() {
        let stream = collected(16, 4, b"0123456789");
        assert_eq!((&stream.head[..], &stream.text[..]), ("", "0123456789"));
        assert_eq!(
            (stream.total_bytes, stream.dropped_bytes, stream.truncated),
            (10, 0, false)
        );
        assert!(!stream.not_utf8 && stream.text_base64.is_none());
    }

    #[test]
    fn head_and_tail_and_the_dropped_bytes_add_up() {
        let stream = collected(3, 4, b"0123456789");
        assert_eq!((&stream.head[..], &stream.text[..]), ("0123", "789"));
        assert_eq!(
            (stream.total_bytes, stream.dropped_bytes, stream.truncated),
            (10, 3, true)
        );
    }

    #[test]
    fn a_character_cut_at_the_gap_is_left_out_and_counted() {
        // The euro sign has three bytes; each border cuts one.
        let stream = collected(5, 5, "ab€------€yz€".as_bytes());
        assert_eq!((&stream.head[..], &stream.text[..]), ("ab€", "yz€"));
        let stream = collected(6, 4, "ab€------€yz€".as_bytes());
        assert_eq!((&stream.head[..], &stream.text[..]), ("ab", "yz€"));
        assert!(!stream.not_utf8);
        assert_eq!(stream.dropped_bytes, stream.total_bytes - 2 - 5);
    }

    #[test]
    fn a_character_across_an_unbroken_border_is_whole() {
        let stream = collected(4, 3, "ab€cd".as_bytes());
        assert_eq!((&stream.head[..], &stream.text[..]), ("ab", "€cd"));
        assert_eq!(
            (stream.dropped_bytes, stream.truncated, stream.not_utf8),
            (0, false, false)
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_flagged_and_given_whole() {
        let stream = collected(16, 0, b"a\xff\0z");
        assert_eq!(stream.text, "a\u{fffd}\0z");
        assert!(stream.not_utf8);
        assert_eq!(
            STANDARD
                .decode(stream.text_base64.expect("it is there"))
                .expect("it is base64"),
            b"a\xff\0z"
        );
        assert!(stream.head_base64.is_none());
    }
}
