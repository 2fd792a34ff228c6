//! Overrides for recorded answers.

use crate::recorded_call::{RecordedCall, RecordedMessage};
use bytes::Bytes;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Replacement answers by call number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EditedAnswers(HashMap<u64, Bytes>);

/// Reasons why a file of answers is rejected.
#[derive(Debug, thiserror::Error)]
pub enum EditedAnswersError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The file exceeds the size limit.
    #[error("{}: a file of answers may have {MAX_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    /// The file is not an object of answers.
    #[error("{}: expected an object such as {{\"7\": {{\"result\": {{…}}}}}}: {why}", path.display())]
    NotAnswers { path: PathBuf, why: String },
}

impl EditedAnswers {
    /// Reads a file: an object with call numbers as keys, and values with a `result` or an `error` member.
    ///
    /// # Errors
    /// If the file cannot be read or has a different shape.
    pub fn read(path: &Path) -> Result<Self, EditedAnswersError> {
        let io = |error| EditedAnswersError::Io { path: path.to_owned(), error };
        let mut text = Vec::new();
        File::open(path).map_err(io)?.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(EditedAnswersError::TooLarge(path.to_owned()));
        }
        let wrong = |why: String| EditedAnswersError::NotAnswers { path: path.to_owned(), why };
        let told: HashMap<String, Value> = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        let mut answers = Self::default();
        for (number, answer) in told {
            let number = number.parse().map_err(|_| wrong(format!("`{number}` is not the number of a call")))?;
            if answer.get("result").is_some() == answer.get("error").is_some() {
                return Err(wrong(format!("call {number} needs either a `result` or an `error`")));
            }
            answers.insert(number, &answer);
        }
        Ok(answers)
    }

    /// Sets the answer of a call. Only the `result` or `error` member of the message counts.
    pub fn insert(&mut self, call: u64, answer: &Value) {
        let member = if answer.get("error").is_some() { "error" } else { "result" };
        let value = answer.get(member).cloned().unwrap_or_default();
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 0, member: value});
        self.0.insert(call, message.to_string().into());
    }

    /// Replaces the answer of a call if the set has one for it.
    pub(crate) fn apply(&self, call: &mut RecordedCall) {
        if let Some(bytes) = self.0.get(&call.number) {
            let at = call.answer.as_ref().map_or(call.began, |answer| answer.at);
            call.answer = Some(RecordedMessage { at, bytes: Some(bytes.clone()), redacted: false });
        }
    }
}
