//! The tools: what they take, what they do, what they answer.

mod answer;
mod arguments;
mod bash;
mod call;
mod job_kill;
mod job_list;
mod job_output;
mod process_info;
mod progress;
mod shown;
mod structured;

use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::{Value, json};

use self::answer::{Answer, Refusal};
use self::arguments::Arguments;
pub(super) use self::call::Call;
pub(super) use self::shown::quoted;

/// The name of each tool is written once.
const BASH: &str = "bash";
const JOB_OUTPUT: &str = "job_output";
const JOB_KILL: &str = "job_kill";
const JOB_LIST: &str = "job_list";
const PROCESS_INFO: &str = "process_info";

/// Calls a tool. `None` where there is none of that name.
pub(super) async fn call(
    call: Call<'_>,
    name: &str,
    arguments: Option<JsonObject>,
) -> Option<CallToolResult> {
    let arguments = Arguments::new(arguments);
    let answer: Result<Answer, Refusal> = match name {
        BASH => bash::call(call, arguments).await,
        JOB_OUTPUT => job_output::call(call, arguments).await,
        JOB_KILL => job_kill::call(call, arguments).await,
        JOB_LIST => job_list::call(call, arguments),
        PROCESS_INFO => process_info::call(call, arguments).await,
        _ => return None,
    };
    Some(match answer {
        Ok(answer) => answer.into(),
        Err(refusal) => refusal.into(),
    })
}

/// Describes the tools.
pub(super) fn list() -> Vec<Tool> {
    vec![
        bash::tool(),
        job_output::tool(),
        job_kill::tool(),
        job_list::tool(),
        process_info::tool(),
    ]
}

/// Describes one tool. Its input is an object with these fields and no others.
fn tool<Output: JsonSchema>(
    name: &'static str,
    description: &'static str,
    properties: &Value,
    required: &[&str],
    annotations: ToolAnnotations,
) -> Tool {
    let input = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let Value::Object(input) = input else {
        unreachable!("it was written as an object");
    };
    Tool::new(name, description, input)
        .with_raw_output_schema(structured::schema_of::<Output>().into())
        .with_annotations(annotations)
}
