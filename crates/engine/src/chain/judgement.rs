//! What an interceptor says.

use super::case::HoldQuestion;
use super::rulings::Rulings;
use crate::fault::Fault;
use bytes::Bytes;
use signalbox_wire::Envelope;
use std::sync::Arc;

/// What an interceptor decides about a message.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Go on.
    Pass,
    /// Go on with this message instead. Its id is that of the message it replaces.
    Modify(Envelope),
    /// Answer with this result: a request is not brought to the backend, an answer is replaced. A notification goes on.
    Reply(Bytes),
    /// Answer with this JSON-RPC error object. A notification is dropped.
    Error(Bytes),
    /// Refuse. A notification is dropped.
    Refuse(Fault),
    /// Wait for an answer to a question. A notification does not wait: it goes on.
    Hold(Hold),
}

/// A message that waits.
#[derive(Clone, Debug)]
pub struct Hold {
    /// What is asked.
    pub question: HoldQuestion,
    /// Where the interceptor stands; it is told when it is asked again.
    pub cursor: u32,
    /// What it made of the message so far, where that is not what it was handed.
    pub message: Option<Envelope>,
}

/// What is to be done besides.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Send a copy elsewhere. Its answer is recorded, never returned.
    Fork {
        /// The backend.
        backend: Arc<str>,
        /// The request, whole.
        message: Envelope,
    },
    /// Say something in the log.
    Log {
        /// How loud.
        level: crate::log_level::LogLevel,
        /// What.
        text: String,
    },
    /// Count something.
    Count {
        /// The names of the counters.
        names: Arc<[Arc<str>]>,
    },
    /// Tell a web address, without waiting for what it says.
    Notify {
        /// The address.
        url: Arc<str>,
        /// The JSON to send.
        body: Bytes,
        /// How long it may take.
        within: std::time::Duration,
    },
}

/// One decision, and what it rests on: enough to judge again without the message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ruling {
    /// The rule, where it was one.
    pub rule: Option<Arc<str>>,
    /// What was decided: `pass`, `modify`, `reply`, `error`, `refuse`, `hold`, `fork`, …
    pub verdict: &'static str,
    /// More about it, for a person.
    pub detail: String,
    /// Each condition that was looked at, in the words of the rule, and whether it held.
    pub conditions: Arc<[(Arc<str>, bool)]>,
    /// Each outside input (`webhook`, `limiter`, `random`, `clock`, `person`, …) and what that was.
    pub inputs: Vec<(&'static str, String)>,
}

impl Ruling {
    /// A decision that rests on nothing but the message.
    #[must_use]
    pub fn of(verdict: &'static str, detail: String) -> Self {
        Self { verdict, detail, ..Self::default() }
    }
}

/// All that an interceptor says about a message.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// What is to become of it.
    pub verdict: Verdict,
    /// What was decided on the way.
    pub rulings: Rulings,
    /// What is to be done besides.
    pub effects: Vec<Effect>,
}

impl Judgement {
    /// The message goes on, and nothing is worth telling.
    #[must_use]
    pub fn pass() -> Self {
        Verdict::Pass.into()
    }
}

impl From<Verdict> for Judgement {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, rulings: Rulings::None, effects: vec![] }
    }
}
