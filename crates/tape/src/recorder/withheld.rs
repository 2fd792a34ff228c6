//! Backends of whose messages only the outline is recorded.
//!
//! What the tools over tapes answer is on a tape already. If their answers were recorded as well, asking about a tape would make it
//! grow by what it shows, and searches would find their own results. What is left out are the bodies of all messages to and
//! from such a backend and of what its callers are sent. A call's request as the client sent it, every outline (method,
//! tool, length) and the end of the call stay.

use signalbox_engine::fact::MessageFact;
use std::collections::VecDeque;
use std::sync::Arc;

/// Of so many messages without their body it is known that they must not come again with it.
const MAX_NUMBERS: usize = 4_096;

#[derive(Default, Debug)]
pub(crate) struct Withheld {
    backends: Vec<Arc<str>>,
    /// Messages to clients that were recorded without their body and may be sent again, the oldest first.
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

    /// Whether a message went to or came from such a backend.
    pub(crate) fn concerns(&self, fact: &MessageFact) -> bool {
        !self.backends.is_empty() && fact.backend.as_ref().is_some_and(|name| self.backends.contains(name))
    }

    /// Whether a message repeats one that was recorded without its body.
    pub(crate) fn repeats(&self, fact: &MessageFact) -> bool {
        !self.numbers.is_empty() && fact.again.is_some_and(|first| self.numbers.contains(&first.get()))
    }

    /// A message is recorded without its body.
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
