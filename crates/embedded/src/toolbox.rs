//! Interface of an in-process server.

use super::progress::Progress;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::pin::Pin;

/// Description of a server, which is constant while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerDescription {
    /// Name shown to programs.
    pub name: &'static str,
    /// Name shown to people.
    pub title: &'static str,
    pub version: &'static str,
    /// Instructions for models that use the tools.
    pub instructions: &'static str,
}

/// Running call. Dropping it aborts the call.
pub type RunningCall = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Tools of one connection.
pub trait Toolbox: Send + 'static {
    /// Returns the description of the server.
    fn about(&self) -> ServerDescription;

    /// Returns the definitions of all tools in list order. Members unknown to a revision are removed for it.
    fn tools(&self) -> Vec<Value>;

    /// Starts a call. Returns `None` if the tool does not exist.
    fn call(&mut self, tool: &str, arguments: Map<String, Value>, progress: Progress) -> Option<RunningCall>;
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Text for the model.
    pub text: String,
    /// Structured content, sent in revisions that support it.
    pub structured: Option<Value>,
    /// Members for the `_meta` of the result.
    pub meta: Map<String, Value>,
    pub ending: CallOutcome,
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    Done,
    Failed,
    /// The arguments do not match the schema. Reported as a protocol error with this data before 2025-11-25, and as a
    /// failed call since.
    BadArguments(Value),
}

impl Answer {
    /// Creates a successful answer with text only.
    #[must_use]
    pub fn text(text: String) -> Self {
        Self { text, structured: None, meta: Map::new(), ending: CallOutcome::Done }
    }
}

/// Returns the annotations of a read-only tool without external effects.
#[must_use]
pub fn read_only(title: &str) -> Value {
    json!({
        "title": title,
        "readOnlyHint": true,
        "destructiveHint": false,
        "idempotentHint": true,
        "openWorldHint": false,
    })
}
