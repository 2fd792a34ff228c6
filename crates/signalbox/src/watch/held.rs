//! A held message, as the view shows it.

use super::text::{self, word};
use serde_json::Value;

/// The most that is shown of a held message.
const MAX_SHOWN: usize = 64 * 1024;

/// A message that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub id: u64,
    /// What is held: a request or an answer.
    pub phase: String,
    /// The method.
    pub method: String,
    /// The tool, prompt or URI.
    pub subject: Option<String>,
    /// On whose behalf.
    pub who: String,
    /// Why.
    pub reason: String,
    /// How long it may still wait, in milliseconds.
    pub left_ms: u64,
    /// The message, as it came.
    pub message: String,
    /// Where it belongs to.
    pub key: (u64, u64),
}

impl Held {
    /// Reads what the process tells of it.
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

    /// What it is about, in a word.
    pub fn about(&self) -> &str {
        self.subject.as_deref().unwrap_or(&self.method)
    }

    /// Its message as lines.
    pub fn lines(&self) -> Vec<String> {
        text::lines(&self.message, MAX_SHOWN)
    }
}
