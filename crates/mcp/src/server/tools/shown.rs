//! Facts of the rooms below as tools show them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use dsh_jobs::{JobInfo, JobStatus};
use dsh_shell::render::{Style, clip_lines, fold};
use dsh_subprocess::{Snapshot, SpillState};

use super::structured;

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn job(info: &JobInfo) -> structured::Job {
    let elapsed = match info.ended {
        Some(ended) => ended.saturating_duration_since(info.started),
        None => info.started.elapsed(),
    };
    structured::Job {
        id: info.id.to_string(),
        kind: info.kind.clone(),
        label: info.label.clone(),
        status: match info.status {
            JobStatus::Running => structured::Status::Running,
            JobStatus::Stopping => structured::Status::Stopping,
            JobStatus::Completed => structured::Status::Completed,
            JobStatus::Killed => structured::Status::Killed,
            JobStatus::Failed => structured::Status::Failed,
        },
        detail: info.detail.clone(),
        elapsed_ms: millis(elapsed),
        reported: info.reported,
    }
}

/// Says how far a job is, in one line.
pub(super) fn job_line(info: &JobInfo) -> String {
    match &info.detail {
        Some(detail) => format!("[job {}: {}, {}]", info.id, info.status, one_line(detail)),
        None => format!("[job {}: {}]", info.id, info.status),
    }
}

pub(super) fn member(member: &dsh_subprocess::Member) -> structured::Member {
    structured::Member {
        pid: member.pid,
        command: member.command.clone(),
    }
}

/// Returns where a stream's file is.
pub(super) fn path(spill: &SpillState) -> Option<String> {
    match spill {
        SpillState::Available(spilled) => Some(spilled.location.to_string()),
        _ => None,
    }
}

/// Shows what is kept of a stream as a terminal does, and says between its beginning and its end how much is missing.
pub(super) fn stream_text(snapshot: &Snapshot) -> String {
    let text = snapshot.text();
    let style = Style::default();
    let shown = |text: &str| clip_lines(&fold(text), &style).text.into_owned();
    if snapshot.dropped() == 0 {
        return shown(&text.tail);
    }
    let mut whole = shown(&text.head);
    end_line(&mut whole);
    let _ = writeln!(whole, "[... {} bytes left out ...]", text.dropped);
    whole.push_str(&shown(&text.tail));
    whole
}

pub(super) fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Folds a text, and makes one line of what is left.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    match fold(text) {
        folded if folded.contains('\n') => folded.trim_end().replace('\n', " ").into(),
        folded => folded,
    }
}

/// The most characters of a foreign name that an error repeats.
const QUOTED_CHARACTERS: usize = 60;

/// Quotes a foreign name in an error: on one line, and in part.
pub(in crate::server) fn quoted(name: &str) -> String {
    format!("`{}`", clip(&one_line(name), QUOTED_CHARACTERS))
}

/// Shortens a text to a number of characters, and says so.
pub(super) fn clip(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
