//! The three tools behind one door.

use std::time::Duration;

use serde_json::{Map, Value};
use signalbox_embedded::Progress;

use super::countdown;
use super::directory::{DirectoryList, LIMITS, Risk};
use super::echo;
use super::fault::ToolFault;
use super::root::Root;

/// A tool that can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// Shows what a folder holds.
    DirectoryList,
    /// Gives its text back.
    Echo,
    /// Takes its time.
    Countdown,
}

impl Tool {
    /// The tool with this name; `ls` is the listing's other name.
    pub(super) fn named(name: &str) -> Option<Tool> {
        match name {
            "directory_list" | "ls" => Some(Tool::DirectoryList),
            "echo" => Some(Tool::Echo),
            "countdown" => Some(Tool::Countdown),
            _ => None,
        }
    }
}

/// What a tool has to say when all went well.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// For a model.
    pub(super) text: String,
    /// For a program.
    pub(super) structured: Option<Value>,
    /// Directories that a walk had to leave out.
    pub(super) skipped: u32,
}

impl Answer {
    /// Just a text.
    pub(super) fn text(text: String) -> Answer {
        Answer { text, structured: None, skipped: 0 }
    }

    /// A value, and the same value as text for clients that know no structured content.
    pub(super) fn structured(value: Value) -> Answer {
        Answer { text: value.to_string(), structured: Some(value), skipped: 0 }
    }

    /// The same answer with a count of what was left out.
    pub(super) fn with_skipped(self, skipped: u32) -> Answer {
        Answer { skipped, ..self }
    }
}

/// How a call ended, and what is worth knowing about it either way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// The answer, or why there is none.
    pub(super) answer: Result<Answer, ToolFault>,
    /// The path that was asked for, if the tool takes one.
    pub(super) requested_path: Option<String>,
    /// How risky the call was, if that was assessed.
    pub(super) risk: Option<Risk>,
}

/// The tools with what they keep.
#[derive(Debug)]
pub(super) struct Toolbox {
    directory: DirectoryList,
}

impl Toolbox {
    /// Tools that see nothing but `root`.
    pub(super) fn new(root: Root) -> Toolbox {
        Toolbox { directory: DirectoryList::new(root) }
    }

    /// Runs one call; `admitted` is what the rate limit said.
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
