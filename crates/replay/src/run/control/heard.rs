//! The last messages of a controlled run, for people to read.

use serde_json::{Value, json};
use std::collections::VecDeque;

/// Of how many calls, and of how many injected requests, the messages are kept.
const MOST_KEPT: usize = 64;
/// The longest message that is kept.
const MAX_KEPT: usize = 1024 * 1024;

/// What was sent for a call, and what came back.
#[derive(Clone, PartialEq, Debug)]
pub struct Heard {
    /// The call.
    pub index: usize,
    /// The request as it was sent.
    pub request: Value,
    /// The answer; none if there was none in time.
    pub answer: Option<Value>,
}

/// A request that somebody had sent besides the calls of the tape.
#[derive(Clone, PartialEq, Debug)]
pub struct Injected {
    /// Its number.
    pub id: u64,
    /// The request.
    pub request: Value,
    /// True once it is over.
    pub over: bool,
    /// The answer; none if there is none.
    pub answer: Option<Value>,
}

#[derive(Debug, Default)]
pub(super) struct Hearing {
    calls: VecDeque<Heard>,
    injected: VecDeque<Injected>,
    last_id: u64,
}

impl Hearing {
    pub(super) fn of(&self, index: usize) -> Option<&Heard> {
        self.calls.iter().find(|heard| heard.index == index)
    }

    pub(super) fn injected(&self) -> impl DoubleEndedIterator<Item = &Injected> {
        self.injected.iter()
    }

    pub(super) fn keep(&mut self, heard: Heard) {
        self.calls.retain(|old| old.index != heard.index);
        if self.calls.len() >= MOST_KEPT {
            self.calls.pop_front();
        }
        self.calls.push_back(heard);
    }

    pub(super) fn inject(&mut self, request: &Value) -> u64 {
        self.last_id += 1;
        // Twice as many as can wait, so that one that waits is never dropped.
        if self.injected.len() >= 2 * MOST_KEPT {
            self.injected.pop_front();
        }
        self.injected.push_back(Injected { id: self.last_id, request: kept(request), over: false, answer: None });
        self.last_id
    }

    pub(super) fn answered(&mut self, id: u64, answer: Option<&Value>) {
        if let Some(injected) = self.injected.iter_mut().find(|injected| injected.id == id) {
            injected.over = true;
            injected.answer = answer.map(kept);
        }
    }
}

/// The message, or its length where it is too long.
pub(super) fn kept(message: &Value) -> Value {
    let length = message.to_string().len();
    if length > MAX_KEPT { json!(format!("a message of {length} bytes, too long to keep")) } else { message.clone() }
}
