//! What a tool says.

use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde::Serialize;

use super::arguments::ArgumentError;

/// A tool's answer: text for the model, and the same in structure.
pub(super) struct Answer {
    text: String,
    links: Vec<Resource>,
    structured: serde_json::Value,
}

/// Why a tool did nothing, or failed. The text is for the model: it names the input and the cause.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) String);

impl Answer {
    pub(super) fn new(text: String, structured: &impl Serialize) -> Self {
        let structured = serde_json::to_value(structured)
            .expect("answers are structs of texts, numbers and lists of them");
        Self {
            text,
            links: Vec::new(),
            structured,
        }
    }

    /// Adds references to what is too long to be said.
    pub(super) fn with_links(mut self, links: Vec<Resource>) -> Self {
        self.links = links;
        self
    }
}

impl From<Answer> for CallToolResult {
    fn from(answer: Answer) -> Self {
        let mut content = vec![ContentBlock::text(answer.text)];
        content.extend(answer.links.into_iter().map(ContentBlock::resource_link));
        let mut result = Self::success(content);
        result.structured_content = Some(answer.structured);
        result
    }
}

impl From<Refusal> for CallToolResult {
    fn from(refusal: Refusal) -> Self {
        Self::error(vec![ContentBlock::text(refusal.0)])
    }
}

impl From<ArgumentError> for Refusal {
    fn from(error: ArgumentError) -> Self {
        Self(error.to_string())
    }
}
