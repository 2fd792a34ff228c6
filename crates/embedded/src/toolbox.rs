//! What a server inside the process offers.

use super::progress::Progress;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::pin::Pin;

/// Who answers, in words that do not change while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its name for programs.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What a model should know before it uses the tools.
    pub instructions: &'static str,
}

/// A call that runs. Dropping it stops it.
pub type Calling = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The tools of one connection.
pub trait Toolbox: Send + 'static {
    /// Who answers.
    fn about(&self) -> About;

    /// The definitions of all tools, in the order of the list. Members that a revision lacks are left out for it.
    fn tools(&self) -> Vec<Value>;

    /// Begins a call; none if there is no tool of this name.
    fn call(&mut self, tool: &str, arguments: Map<String, Value>, progress: Progress) -> Option<Calling>;
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// For a model.
    pub text: String,
    /// For a program; shown to revisions that know structured content.
    pub structured: Option<Value>,
    /// More about it, for the `_meta` of the result.
    pub meta: Map<String, Value>,
    /// How it ended.
    pub ending: Ending,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It did what was asked.
    Done,
    /// It could not.
    Failed,
    /// Its arguments do not fit the schema: an error of the protocol with this data before 2025-11-25, and a failure since.
    BadArguments(Value),
}

impl Answer {
    /// Just a text.
    #[must_use]
    pub fn text(text: String) -> Self {
        Self { text, structured: None, meta: Map::new(), ending: Ending::Done }
    }
}

/// The annotations of a tool that changes nothing and reaches nothing outside.
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
