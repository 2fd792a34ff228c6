//! Dispatches calls to the three tools.

use std::time::Duration;

use serde_json::{Map, Value};
use signalbox_embedded::Progress;

use super::countdown;
use super::directory::{DirectoryList, LIMITS, Risk};
use super::echo;
use super::fault::ToolFault;
use super::root::Root;

/// Tool of the demo backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    DirectoryList,
    Echo,
    Countdown,
}

impl Tool {
    /// Finds a tool by name. `ls` is an alias of the listing.
    pub(super) fn named(name: &str) -> Option<Tool> {
        match name {
            "directory_list" | "ls" => Some(Tool::DirectoryList),
            "echo" => Some(Tool::Echo),
            "countdown" => Some(Tool::Countdown),
            _ => None,
        }
    }
}

/// Successful result of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// Text for the model.
    pub(super) text: String,
    /// Structured content for programs.
    pub(super) structured: Option<Value>,
    /// Number of directories that a walk skipped.
    pub(super) skipped: u32,
}

impl Answer {
    /// Creates an answer with text only.
    pub(super) fn text(text: String) -> Answer {
        Answer { text, structured: None, skipped: 0 }
    }

    /// Creates an answer with structured content, and the same value as text for older clients.
    pub(super) fn structured(value: Value) -> Answer {
        Answer { text: value.to_string(), structured: Some(value), skipped: 0 }
    }

    /// Sets the number of skipped directories.
    pub(super) fn with_skipped(self, skipped: u32) -> Answer {
        Answer { skipped, ..self }
    }
}

/// Result of a call with its context.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// Answer or error of the tool.
    pub(super) answer: Result<Answer, ToolFault>,
    /// Requested path, if the tool takes one.
    pub(super) requested_path: Option<String>,
    /// Risk of the call, if it was assessed.
    pub(super) risk: Option<Risk>,
}

/// Tools with their state.
#[derive(Debug)]
pub(super) struct Toolbox {
    directory: DirectoryList,
}

impl Toolbox {
    /// Creates tools that can only see `root`.
    pub(super) fn new(root: Root) -> Toolbox {
        Toolbox { directory: DirectoryList::new(root) }
    }

    /// Runs a call. `admitted` is the decision of the rate limit.
    pub(super) async fn call(
        &self,
        tool: Tool,
        arguments: &Map<String, Value>,
        progress: &Progress,
        admitted: Result<(), Duration>,
    ) -> Outcome {
        let plain = |answer| Outcome { answer, requested_path: None, risk: None };
        match tool {
            Tool::Echo => plain(echo::run(arguments)),
            Tool::Countdown => plain(countdown::run(arguments, progress).await),
            Tool::DirectoryList => Outcome {
                answer: match admitted {
                    Ok(()) => self.directory.run(arguments, LIMITS).await,
                    Err(wait) => Err(ToolFault::RateLimitExceeded(wait)),
                },
                requested_path: arguments.get("path").and_then(Value::as_str).map(str::to_owned),
                risk: self.directory.risk(arguments),
            },
        }
    }
}
