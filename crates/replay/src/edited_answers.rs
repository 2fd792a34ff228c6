//! Answers that take the place of recorded ones.

use crate::recorded_call::{RecordedCall, Said};
use bytes::Bytes;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Largest file that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Answers by the number of their call.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EditedAnswers(HashMap<u64, Bytes>);

/// Why a file of answers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EditedAnswersError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is larger than any answer.
    #[error("{}: a file of answers may have {MAX_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    /// It is not an object of answers.
    #[error("{}: expected an object such as {{\"7\": {{\"result\": {{…}}}}}}: {why}", path.display())]
    NotAnswers {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl EditedAnswers {
    /// Reads a file: an object whose members are numbers of calls, and whose values have a `result` or an `error`.
    ///
    /// # Errors
    /// If it cannot be read or is something else.
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

    /// Has this message, of which only `result` or `error` counts, answer a call.
    pub fn insert(&mut self, call: u64, answer: &Value) {
        let member = if answer.get("error").is_some() { "error" } else { "result" };
        let value = answer.get(member).cloned().unwrap_or_default();
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 0, member: value});
        self.0.insert(call, message.to_string().into());
    }

    /// Changes the answer of a call, if there is another one for it.
    pub(crate) fn apply(&self, call: &mut RecordedCall) {
        if let Some(bytes) = self.0.get(&call.number) {
            let at = call.answer.as_ref().map_or(call.began, |answer| answer.at);
            call.answer = Some(Said { at, bytes: Some(bytes.clone()), redacted: false });
        }
    }
}
