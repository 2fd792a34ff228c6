//! A call of a page's tool, and what came of it, as they are kept until both sides are done.

use crate::json_text::JsonText;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A call that a worker is to carry out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolRequest {
    /// 128 random bits: whoever answers has been sent it.
    pub id: Box<str>,
    /// The tool.
    pub tool: Box<str>,
    /// Its arguments, an object.
    pub arguments: JsonText,
    /// When it was made, in milliseconds since 1970.
    pub at: u64,
    /// When nobody waits for its answer any more, in milliseconds since 1970.
    pub deadline: u64,
    /// True if it may be carried out twice.
    pub idempotent: bool,
    /// The journal of the worker that it was sent to first; empty for a worker without one. `None` while it was sent to nobody.
    pub sent_to: Option<Box<str>>,
}

impl ToolRequest {
    /// What is to be done with it when a worker with this journal becomes the one that is asked.
    #[must_use]
    pub fn delivery(&self, journal: &str) -> Delivery {
        match &self.sent_to {
            None => Delivery::First,
            Some(first) if !journal.is_empty() && **first == *journal => Delivery::Again,
            Some(_) if self.idempotent => Delivery::Again,
            Some(_) => Delivery::Unknown,
        }
    }
}

/// How a request goes to a worker.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// For the first time.
    First,
    /// Once more: the worker's journal knows it, or it does no harm.
    Again,
    /// Not at all: another worker had it, and nobody knows how far that got.
    Unknown,
}

/// What a worker says of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAnswer {
    /// The result, any JSON.
    Result(JsonText),
    /// Why there is none.
    Error(WorkerError),
}

/// Why a worker has no result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerError {
    /// One of the kinds that workers know, as a word.
    pub kind: Box<str>,
    /// In words.
    pub message: Box<str>,
    /// More about it, any JSON.
    pub details: Option<Box<RawValue>>,
}

impl WorkerError {
    /// Nobody knows whether the call was carried out.
    #[must_use]
    pub fn outcome_unknown() -> Self {
        let message =
            "outcome unknown: the page was lost while it worked on this call, which may have been carried out";
        Self { kind: "outcome_unknown".into(), message: message.into(), details: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_journal_that_knows_a_request_or_one_that_does_no_harm_gets_it_twice() {
        let arguments = JsonText::empty_object();
        let request = |sent_to: Option<&str>, idempotent| ToolRequest {
            id: "1".into(),
            tool: "t".into(),
            arguments: arguments.clone(),
            at: 0,
            deadline: 1,
            idempotent,
            sent_to: sent_to.map(Into::into),
        };
        assert_eq!(request(None, false).delivery("a"), Delivery::First);
        assert_eq!(request(Some("a"), false).delivery("a"), Delivery::Again);
        assert_eq!(request(Some("a"), false).delivery("b"), Delivery::Unknown);
        assert_eq!(request(Some("a"), true).delivery("b"), Delivery::Again);
        assert_eq!(request(Some(""), false).delivery(""), Delivery::Unknown, "no journal is nobody's journal");
        assert_eq!(request(Some(""), true).delivery(""), Delivery::Again);
    }
}
