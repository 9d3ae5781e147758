//! The JSON object of a command text. `docs/sh.schema.json` documents it.

use std::time::Duration;

use dsh_shell::Cause;
use serde::Serialize;

use super::report::ShReport;
use crate::json::{ErrorObject, MemberObject, OutcomeObject, StreamObject, Text, UsageObject, milliseconds};

#[derive(Serialize)]
pub(crate) struct ShObject<'a> {
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_base64: Option<String>,
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd_base64: Option<String>,
    pid: Option<u32>,
    outcome: OutcomeObject<'a>,
    cause: Option<&'static str>,
    error: Option<ErrorObject<'a>>,
    timeout_ms: Option<u64>,
    duration_ms: u64,
    stdout: StreamObject,
    stderr: Option<StreamObject>,
    left_behind: Option<LeftBehindObject<'a>>,
    ownership: Option<String>,
    weaknesses: &'a [String],
    usage: UsageObject,
    rendered: Option<&'a str>,
    exit_status: u8,
}

#[derive(Serialize)]
struct LeftBehindObject<'a> {
    members: Vec<MemberObject<'a>>,
    fate: &'static str,
    survivors: Vec<MemberObject<'a>>,
}

impl<'a> ShObject<'a> {
    /// Describes a command. `keep_spill` says whether a spilled stream outlives it.
    pub(crate) fn new(report: &'a ShReport, keep_spill: bool) -> Self {
        let text = |bytes: &[u8]| Text::new(bytes);
        let command = report.subject.command.as_ref().map(|word| text(word.as_bytes()));
        let cwd = report.subject.cwd.as_ref().map(|path| text(path.as_bytes()));
        Self {
            command_base64: command.as_ref().and_then(|text| text.base64.clone()),
            command: command.map(|text| text.lossy),
            cwd_base64: cwd.as_ref().and_then(|text| text.base64.clone()),
            cwd: cwd.map(|text| text.lossy),
            pid: report.pid,
            outcome: OutcomeObject::new(report.outcome.as_ref()),
            cause: report.cause.map(|cause| match cause {
                Cause::Ended => "ended",
                Cause::TimedOut => "timed_out",
                Cause::Aborted => "aborted",
            }),
            error: report.failure.as_ref().map(ErrorObject::new),
            timeout_ms: report.timeout.map(milliseconds),
            duration_ms: milliseconds(report.duration.unwrap_or(Duration::ZERO)),
            stdout: StreamObject::new(&report.stdout, keep_spill),
            stderr: report
                .stderr
                .as_ref()
                .map(|stream| StreamObject::new(stream, keep_spill)),
            left_behind: report.left_behind.as_ref().map(|remains| LeftBehindObject {
                members: remains.members.iter().map(MemberObject::new).collect(),
                fate: if remains.survivors.is_empty() {
                    "ended"
                } else {
                    "survives"
                },
                survivors: remains.survivors.iter().map(MemberObject::new).collect(),
            }),
            ownership: report
                .ownership
                .as_ref()
                .map(|ownership| ownership.mechanism.to_string()),
            weaknesses: report
                .ownership
                .as_ref()
                .map_or(&[], |ownership| &ownership.weaknesses),
            usage: UsageObject::new(&report.usage),
            rendered: report.rendered.as_deref(),
            exit_status: report.status,
        }
    }
}
