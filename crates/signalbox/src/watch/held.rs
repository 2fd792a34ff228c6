//! Held messages, as the view shows them.

use super::text::{self, word};
use serde_json::Value;

/// Maximum length of a held message shown, in bytes.
const MAX_SHOWN: usize = 64 * 1024;

/// A message that waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldEntry {
    /// Id of the held message.
    pub id: u64,
    /// Phase: a request or an answer.
    pub phase: String,
    /// Method of the message.
    pub method: String,
    /// Tool, prompt or URI.
    pub subject: Option<String>,
    /// Principal of the caller.
    pub who: String,
    /// Reason that it is held.
    pub reason: String,
    /// Time left, in milliseconds.
    pub left_ms: u64,
    /// Unchanged text of the message.
    pub message: String,
    /// Session and exchange of the message.
    pub key: (u64, u64),
}

impl HeldEntry {
    /// Parses the JSON of a held message.
    pub fn read(value: &Value) -> Option<Self> {
        let some = |key: &str| word(value, key).unwrap_or_default();
        Some(Self {
            id: value["id"].as_u64()?,
            phase: some("phase"),
            method: some("method"),
            subject: word(value, "subject"),
            who: some("principal"),
            reason: some("reason"),
            left_ms: value["left_ms"].as_u64().unwrap_or(0),
            message: value["text"]
                .as_str()
                .unwrap_or("too long to be shown here; see `signalbox hold edit`")
                .to_owned(),
            key: (value["session"].as_u64()?, value["exchange"].as_u64()?),
        })
    }

    /// Returns the subject, or the method if there is none.
    pub fn about(&self) -> &str {
        self.subject.as_deref().unwrap_or(&self.method)
    }

    /// Returns the message, split into lines.
    pub fn lines(&self) -> Vec<String> {
        text::lines(&self.message, MAX_SHOWN)
    }
}
