//! Outputs as resources: what there is, and one page of it at a time.

mod page;
mod uri;

use dsh_jobs::{JobError, JobId};
use dsh_subprocess::{ErrorKind, OutputReader, SpillState, StreamName};
use rmcp::model::{ErrorData, MetaObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

use self::page::Content;
pub(super) use self::uri::OutputUri;
use super::config::MAX_PAGE_BYTES;
use super::session::Session;

const TEXT: &str = "text/plain";
const BYTES: &str = "application/octet-stream";

/// The streams that a job may have.
const STREAMS: [StreamName; 3] = [StreamName::Stdout, StreamName::Stderr, StreamName::Terminal];

/// Lists every stream that a session can read: the truncated ones of commands that were waited for, then the jobs'.
pub(super) fn list(session: &Session) -> Vec<Resource> {
    let runs = session.outputs().list();
    let runs = runs.iter().flat_map(|run| {
        run.streams
            .iter()
            .map(|(stream, reader)| resource(&run.id, *stream, reader, "a command's truncated output"))
    });
    let jobs = session.jobs().list();
    let jobs = jobs.iter().flat_map(|job| {
        STREAMS.into_iter().filter_map(|stream| {
            let reader = session.jobs().reader(&job.id, stream).ok()?;
            (reader.total() > 0).then(|| resource(job.id.as_str(), stream, &reader, &job.label))
        })
    });
    runs.chain(jobs).collect()
}

fn resource(id: &str, stream: StreamName, reader: &OutputReader, description: &str) -> Resource {
    Resource::new(
        OutputUri::whole(id, stream).to_string(),
        format!("{stream} of {id}"),
    )
    .with_description(description)
    .with_mime_type(TEXT)
    .with_size(reader.total())
}

/// Describes how pages are asked for.
pub(super) fn template(page_bytes: usize) -> ResourceTemplate {
    ResourceTemplate::new(uri::TEMPLATE, "output")
        .with_title("A page of a command's output")
        .with_description(format!(
            "`id` is a job's id or the run of a truncated output, `stream` is `stdout` or `stderr`. A page begins at byte \
             `offset` (0) and has at most `length` bytes ({page_bytes}, at most {MAX_PAGE_BYTES}); `_meta.next_offset` is \
             where the next one begins."
        ))
}

/// Reads one page.
pub(super) async fn read(
    session: &Session,
    uri: &str,
    page_bytes: usize,
) -> Result<ReadResourceResult, ErrorData> {
    let asked = OutputUri::parse(uri).map_err(|error| invalid(error.to_string()))?;
    let length = match asked.length {
        None => page_bytes,
        Some(length) => usize::try_from(length)
            .ok()
            .filter(|length| (1..=MAX_PAGE_BYTES).contains(length))
            .ok_or_else(|| {
                invalid(format!(
                    "length is {length}: it must be from 1 to {MAX_PAGE_BYTES}"
                ))
            })?,
    };
    let reader = find(session, &asked)?;
    // Sealed first: what was sealed before the total was read has no more than that.
    let sealed = reader.is_sealed();
    let total = reader.total();
    if asked.offset > total {
        return Err(invalid(format!(
            "offset is {}: the stream has {total} bytes{}",
            asked.offset,
            if sealed { "" } else { " so far" }
        )));
    }
    let bytes = bytes(&reader, &asked, length).await?;
    let ends = sealed && asked.offset + bytes.len() as u64 == total;
    let page = page::page(&bytes, asked.offset, ends);
    let meta = json!({
        "offset": asked.offset,
        "next_offset": page.next_offset,
        "total_bytes": total,
        "complete": sealed && page.next_offset == total,
    });
    let contents = match page.content {
        Content::Text(text) => ResourceContents::text(text, uri).with_mime_type(TEXT),
        Content::Blob(blob) => ResourceContents::blob(blob, uri).with_mime_type(BYTES),
    };
    Ok(ReadResourceResult::new(vec![
        contents.with_meta(meta_object(meta)),
    ]))
}

/// Finds a stream among what belongs to the session.
fn find(session: &Session, asked: &OutputUri) -> Result<OutputReader, ErrorData> {
    if let Some(reader) = session.outputs().find(&asked.id, asked.stream) {
        return Ok(reader);
    }
    let not_found = |why: &str| {
        let uri = asked.to_string();
        ErrorData::resource_not_found(format!("{uri}: {why}"), Some(json!({ "uri": uri })))
    };
    let unknown = "there is no such output, or it was given up for newer ones";
    let id: JobId = asked.id.parse().map_err(|_| not_found(unknown))?;
    session
        .jobs()
        .reader(&id, asked.stream)
        .map_err(|error| match error {
            JobError::UnknownStream { .. } => not_found("the job has no such stream"),
            JobError::OwnerEnded(_) => not_found("this session has ended"),
            _ => not_found(unknown),
        })
}

/// Reads bytes of a stream from wherever they are.
async fn bytes(reader: &OutputReader, asked: &OutputUri, length: usize) -> Result<Vec<u8>, ErrorData> {
    let read = reader.read_some(asked.offset, length);
    if read.gap == 0 {
        return Ok(read.bytes.to_vec());
    }
    let gone = match reader.read_spilled(asked.offset, length).await {
        // What was not spilled yet is in memory still.
        Ok(bytes) if bytes.is_empty() => "the file with it ends before".to_owned(),
        Ok(bytes) => return Ok(bytes.to_vec()),
        Err(error) if error.kind() == ErrorKind::SpillUnavailable => match reader.spill() {
            SpillState::Withdrawn(why) => format!("the file with it is gone: {why}"),
            _ => error.to_string(),
        },
        // Somebody else has removed the file, or cut it short.
        Err(error) => error.to_string(),
    };
    let kept = reader.snapshot();
    if let Some(bytes) = within(&kept.head, asked.offset, length) {
        return Ok(bytes.to_vec());
    }
    let tail = kept.total - kept.tail.len() as u64;
    Err(ErrorData::resource_not_found(
        format!(
            "{asked}: byte {} is not kept: {gone}. In memory are {} bytes from 0 and {} bytes from {tail}",
            asked.offset,
            kept.head.len(),
            kept.tail.len(),
        ),
        Some(json!({
            "uri": asked.to_string(),
            "in_memory": [
                { "offset": 0, "length": kept.head.len() },
                { "offset": tail, "length": kept.tail.len() },
            ],
        })),
    ))
}

/// Returns what a stream's kept beginning has from an offset on. `None` where the byte at the offset is not in it.
fn within(head: &[u8], offset: u64, length: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok().filter(|start| *start < head.len())?;
    Some(&head[start..head.len().min(start + length)])
}

fn meta_object(meta: Value) -> MetaObject {
    match meta {
        Value::Object(meta) => MetaObject(meta),
        other => unreachable!("it was written as an object, and is {other}"),
    }
}

fn invalid(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_beginning_is_read_within_its_bounds() {
        assert_eq!(within(b"0123", 1, 2), Some(&b"12"[..]));
        assert_eq!(within(b"0123", 1, 100), Some(&b"123"[..]));
        assert_eq!(within(b"0123", 4, 2), None);
        assert_eq!(within(b"", 0, 1), None);
        assert_eq!(within(b"0123", u64::MAX, 1), None);
    }
}
