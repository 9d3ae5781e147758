//! The structured side of results: what the published output schemas say, field by field.
//!
//! The comments on the fields are in the schemas, so they speak to the model that reads them.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde::Serialize;
use serde_json::Value;

/// What `bash` answers.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(extend("type" = "object"))]
pub(super) enum Bash {
    /// The command was waited for.
    Foreground(Box<Foreground>),
    /// The command goes on as a job.
    Background(Background),
}

/// A command that is over.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct Foreground {
    /// The shell's exit code; null where a signal ended it or its status is not known.
    pub(super) exit_code: Option<u32>,
    /// The signal that ended the shell.
    pub(super) signal: Option<String>,
    /// Why it ended: by itself, because its time was up, or because the call was cancelled.
    pub(super) cause: Cause,
    /// The timeout that applied: the one asked for or the default, and never more than the server allows.
    pub(super) timeout_ms: u64,
    /// How long it took.
    pub(super) duration_ms: u64,
    /// The shell's process id.
    pub(super) pid: Option<u32>,
    pub(super) stdout: Stream,
    /// Null where error output went into stdout.
    pub(super) stderr: Option<Stream>,
    /// What outlived the shell; null where nothing did.
    pub(super) left_behind: Option<LeftBehind>,
}

#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    Ended,
    TimedOut,
    Aborted,
}

/// What a command printed on one stream.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct Stream {
    /// The output as a terminal shows it, without escape sequences; shortened in the middle where bytes are omitted, and in
    /// the middle of a line that is too long.
    pub(super) text: String,
    /// Bytes of the stream.
    pub(super) total_bytes: u64,
    /// Bytes that are missing in the middle of the text, not counting those of lines that are too long.
    pub(super) omitted_bytes: u64,
    /// The resource with the whole stream, where the text is shortened.
    pub(super) uri: Option<String>,
    /// The file with the whole stream, where there is one.
    pub(super) path: Option<String>,
}

/// Processes that outlived a command.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct LeftBehind {
    pub(super) members: Vec<Member>,
    /// They were ended, could not be ended, or go on as a job.
    pub(super) fate: Fate,
    /// The job that they go on as.
    pub(super) job_id: Option<String>,
    /// Why no job was made of them, where one should have been.
    pub(super) refused: Option<String>,
}

#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    Ended,
    Survives,
    Job,
}

/// A process.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct Member {
    pub(super) pid: Option<u32>,
    pub(super) command: String,
}

/// A command that goes on as a job.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct Background {
    /// What to call the job in `job_output` and `job_kill`.
    pub(super) job_id: String,
    /// The shell's process id.
    pub(super) pid: Option<u32>,
}

/// A job.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) label: String,
    pub(super) status: Status,
    /// How it ended, as in `exit code: 0`.
    pub(super) detail: Option<String>,
    /// How long it has run, or ran.
    pub(super) elapsed_ms: u64,
    /// Whether its end was told.
    pub(super) reported: bool,
}

#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Running,
    Stopping,
    Completed,
    Killed,
    Failed,
}

/// What `job_output` answers.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct JobOutput {
    pub(super) job: Job,
    pub(super) stdout: Option<Delta>,
    pub(super) stderr: Option<Delta>,
    /// The final output of a job that has no streams.
    pub(super) output: Option<String>,
}

/// What is new of a stream since the last call.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct Delta {
    /// The new output as it is; texts of successive calls, put together, are the stream.
    pub(super) text: String,
    /// Where in the stream the text begins, in bytes.
    pub(super) offset: u64,
    /// Where the next one will.
    pub(super) next_offset: u64,
    /// Bytes before the text that left memory before they were read.
    pub(super) lost_bytes: u64,
    /// Bytes of the stream so far.
    pub(super) total_bytes: u64,
    /// The resource to page through the stream.
    pub(super) uri: String,
    /// The file with the stream from its beginning, where there is one.
    pub(super) path: Option<String>,
}

/// What `job_kill` answers.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct JobKill {
    pub(super) job_id: String,
    /// It has ended, is still ending, or had ended before.
    pub(super) result: KillResult,
    pub(super) job: Job,
}

#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum KillResult {
    Stopped,
    Stopping,
    AlreadyFinished,
}

/// What `job_list` answers.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct JobList {
    /// In the order in which they were started.
    pub(super) jobs: Vec<Job>,
}

/// What `process_info` answers.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(untagged)]
#[schemars(extend("type" = "object"))]
pub(super) enum ProcessInfo {
    /// Of a job.
    Job(Box<TreeInfo>),
    /// Of everything.
    World(WorldInfo),
}

/// The process tree of a job.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct TreeInfo {
    pub(super) job: Job,
    /// The process id of the shell that the job began with, which may have ended.
    pub(super) pid: Option<u32>,
    /// What keeps the tree together.
    pub(super) mechanism: String,
    /// What that does not guarantee.
    pub(super) weaknesses: Vec<String>,
    /// Its live processes.
    pub(super) members: Vec<Member>,
    pub(super) usage: Usage,
    /// Processes that hold its output open after its end.
    pub(super) holders: Vec<Member>,
    /// Processes of it that could not be ended, or got away.
    pub(super) survivors: Vec<Member>,
}

/// What a tree used; null where that is not known.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct Usage {
    pub(super) user_ms: Option<u64>,
    pub(super) system_ms: Option<u64>,
    pub(super) peak_memory_bytes: Option<u64>,
}

/// Where commands run, and within which limits.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct WorldInfo {
    /// What keeps process trees together.
    pub(super) mechanism: String,
    /// Whether they end when this server is killed.
    pub(super) ends_trees_on_host_death: bool,
    /// Whether output that is too long for memory goes to a file.
    pub(super) spill: bool,
    /// Where commands run that name no workdir.
    pub(super) workdir: String,
    /// The shell and its options.
    pub(super) shell: Vec<String>,
    pub(super) default_timeout_ms: u64,
    pub(super) max_timeout_ms: u64,
    /// Bytes of each stream that are kept in memory.
    pub(super) max_output_bytes: u64,
    /// This session's jobs that run.
    pub(super) live_jobs: u64,
}

/// Makes the schema of an answer: one object without references and without the formats that only some validators know.
pub(super) fn schema_of<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(|schema: &mut schemars::Schema| {
        schema.remove("format");
    })
    .transform(&mut schema);
    schema.remove("title");
    match schema.to_value() {
        Value::Object(schema) => schema,
        other => unreachable!("an answer is an object, and its schema not {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_describes_an_object_without_references() {
        let schemas = [
            schema_of::<Bash>(),
            schema_of::<JobOutput>(),
            schema_of::<JobKill>(),
            schema_of::<JobList>(),
            schema_of::<ProcessInfo>(),
        ];
        for schema in schemas {
            assert_eq!(schema.get("type"), Some(&Value::from("object")), "{schema:?}");
            let text = Value::Object(schema).to_string();
            for word in ["$ref", "$defs", "\"format\"", "$schema"] {
                assert!(!text.contains(word), "{word} in {text}");
            }
        }
    }
}
