//! Backends of whose messages only the outline is recorded.
//!
//! The answers of tools over tapes are on a tape already. If they were recorded as well, asking about a tape would make
//! it grow by its own content, and searches would find their own results. The recorder omits the bodies of all messages
//! to and from such a backend and of the messages to its callers. It keeps the request as the client sent it, every
//! outline (method, tool, length) and the end of the call.
//! tool, length) and the end of the call stay.

use signalbox_engine::fact::MessageFact;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of messages without a body that are remembered, so that a repetition has none either.
const MAX_NUMBERS: usize = 4_096;

#[derive(Default, Debug)]
pub(crate) struct Withheld {
    backends: Vec<Arc<str>>,
    /// Messages to clients that were recorded without their body and may be sent again, oldest first.
    numbers: VecDeque<u64>,
}

impl Withheld {
    /// Replaces the list of backends.
    pub(crate) fn set(&mut self, backends: Vec<Arc<str>>) {
        self.backends = backends;
    }

    /// Returns true if all bodies are recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.backends.is_empty() && self.numbers.is_empty()
    }

    /// Returns true if a message goes to or comes from such a backend.
    pub(crate) fn concerns(&self, fact: &MessageFact) -> bool {
        !self.backends.is_empty() && fact.backend.as_ref().is_some_and(|name| self.backends.contains(name))
    }

    /// Returns true if a message repeats one that was recorded without its body.
    pub(crate) fn repeats(&self, fact: &MessageFact) -> bool {
        !self.numbers.is_empty() && fact.again.is_some_and(|first| self.numbers.contains(&first.get()))
    }

    /// Remembers a message that is recorded without its body.
    pub(crate) fn note(&mut self, fact: &MessageFact) {
        if fact.number == 0 {
            return;
        }
        if self.numbers.len() >= MAX_NUMBERS {
            self.numbers.pop_front();
        }
        self.numbers.push_back(fact.number);
    }
}
