//! Stores the latest messages of a controlled run for display.

use serde_json::{Value, json};
use std::collections::VecDeque;

/// Maximum number of calls, and of injected requests, whose messages are stored.
const MAX_TRANSCRIPTS: usize = 64;
/// Maximum size of a stored message in bytes.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// Request sent for a call, with its answer.
#[derive(Clone, PartialEq, Debug)]
pub struct CallTranscript {
    pub index: usize,
    pub request: Value,
    /// Answer, or `None` after a timeout.
    pub answer: Option<Value>,
}

/// Request that the user sent in addition to the calls of the tape.
#[derive(Clone, PartialEq, Debug)]
pub struct Injection {
    pub id: u64,
    pub request: Value,
    /// Set once the exchange is over.
    pub over: bool,
    /// Answer, or `None` while pending or after a timeout.
    pub answer: Option<Value>,
}

#[derive(Debug, Default)]
pub(super) struct Transcripts {
    calls: VecDeque<CallTranscript>,
    injected: VecDeque<Injection>,
    last_id: u64,
}

impl Transcripts {
    pub(super) fn of(&self, index: usize) -> Option<&CallTranscript> {
        self.calls.iter().find(|heard| heard.index == index)
    }

    pub(super) fn injected(&self) -> impl DoubleEndedIterator<Item = &Injection> {
        self.injected.iter()
    }

    pub(super) fn keep(&mut self, heard: CallTranscript) {
        self.calls.retain(|old| old.index != heard.index);
        if self.calls.len() >= MAX_TRANSCRIPTS {
            self.calls.pop_front();
        }
        self.calls.push_back(heard);
    }

    pub(super) fn inject(&mut self, request: &Value) -> u64 {
        self.last_id += 1;
        // Twice the queue limit, so that a queued request is never dropped.
        if self.injected.len() >= 2 * MAX_TRANSCRIPTS {
            self.injected.pop_front();
        }
        self.injected.push_back(Injection {
            id: self.last_id,
            request: for_display(request),
            over: false,
            answer: None,
        });
        self.last_id
    }

    pub(super) fn answered(&mut self, id: u64, answer: Option<&Value>) {
        if let Some(injected) = self.injected.iter_mut().find(|injected| injected.id == id) {
            injected.over = true;
            injected.answer = answer.map(for_display);
        }
    }
}

/// Returns the message, or a note with its length if it is too long to store.
pub(super) fn for_display(message: &Value) -> Value {
    let length = message.to_string().len();
    if length > MAX_MESSAGE_BYTES {
        json!(format!("a message of {length} bytes, too long to keep"))
    } else {
        message.clone()
    }
}
