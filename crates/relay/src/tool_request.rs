//! Call of a page's tool and its answer, as stored until both sides are done.

use crate::json_text::JsonText;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Call for a worker to execute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolRequest {
    /// Request id of 128 random bits: only a worker that was sent the request knows it.
    pub id: Box<str>,
    pub tool: Box<str>,
    /// Arguments, a JSON object.
    pub arguments: JsonText,
    /// Creation time, in milliseconds since 1970.
    pub at: u64,
    /// Time at which the caller stops waiting, in milliseconds since 1970.
    pub deadline: u64,
    /// True if the call may be executed twice.
    pub idempotent: bool,
    /// Journal of the worker that it was first sent to; empty for a worker without one. `None` until it is sent.
    pub sent_to: Option<Box<str>>,
}

impl ToolRequest {
    /// Decides about delivery to a worker with this journal that has become active.
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

/// Kind of delivery to a worker.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// The request has not been sent before.
    First,
    /// Redelivery: the worker's journal knows the request, or repeating it does no harm.
    Again,
    /// No delivery: another worker had it, and its progress is unknown.
    Unknown,
}

/// Answer of a worker to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAnswer {
    /// The result, any JSON.
    Result(JsonText),
    Error(WorkerError),
}

/// Error of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerError {
    /// Kind of error, one of those that workers know.
    pub kind: Box<str>,
    pub message: Box<str>,
    /// More about the error, any JSON.
    pub details: Option<Box<RawValue>>,
}

impl WorkerError {
    /// Creates the error for a call that may or may not have been executed.
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
