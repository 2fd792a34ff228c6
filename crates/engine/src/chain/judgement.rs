use super::case::HoldQuestion;
use crate::fault::Fault;
use bytes::Bytes;
use signalbox_wire::Envelope;
use std::ops::Deref;
use std::sync::Arc;

/// An interceptor's decision about a message.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Let the message continue.
    Pass,
    /// Replace the message by this one, which has the same id.
    Modify(Envelope),
    /// Answer with this result: a request does not reach the backend, an answer is replaced. A notification continues.
    Reply(Bytes),
    /// Answer with this JSON-RPC error object. A notification is dropped.
    Error(Bytes),
    /// Refuse with this fault. A notification is dropped.
    Refuse(Fault),
    /// Wait for the answer to a question. Messages that cannot wait are refused or continue; see
    /// [`super::Case::can_wait`].
    Hold(Hold),
}

/// Hold of a message by an interceptor.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Question to be answered before the message continues.
    pub question: HoldQuestion,
    /// The interceptor's position, which it gets back when it resumes.
    pub cursor: u32,
    /// The message with the interceptor's changes so far, if any.
    pub message: Option<Envelope>,
}

/// Side effect of an interceptor.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Send a copy to another backend. Its answer is recorded, never returned.
    Fork {
        /// Backend that receives the copy.
        backend: Arc<str>,
        /// The request to copy, complete with its id.
        message: Envelope,
    },
    /// Write a line to the log.
    Log {
        /// Log level of the line.
        level: crate::log_level::LogLevel,
        /// Text of the line.
        text: String,
    },
    /// Increment counters of the rules.
    Count {
        /// Names of the counters.
        names: Arc<[Arc<str>]>,
    },
    /// Notify a webhook without waiting for its response.
    Notify {
        /// Address of the webhook.
        url: Arc<str>,
        /// JSON body to send.
        body: Bytes,
        /// Time limit for the delivery.
        within: std::time::Duration,
    },
}

/// One decision with its grounds: enough to repeat it without the message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ruling {
    /// Rule that decided, if it was one.
    pub rule: Option<Arc<str>>,
    /// The verdict as a word: `pass`, `modify`, `reply`, `error`, `refuse`, `hold`, `fork`, …
    pub verdict: &'static str,
    /// Detail for a person.
    pub detail: String,
    /// True if `detail` quotes values of the message, which not every reader of decisions may see.
    pub quotes: bool,
    /// Each condition that was evaluated, in the words of the rule, and its result.
    pub conditions: Arc<[(Arc<str>, bool)]>,
    /// Each outside input (`webhook`, `limiter`, `random`, `clock`, `person`, …) with its value.
    pub inputs: Vec<(&'static str, String)>,
}

impl Ruling {
    /// Creates a ruling based on nothing but the message.
    #[must_use]
    pub fn of(verdict: &'static str, detail: String) -> Self {
        Self { verdict, detail, ..Self::default() }
    }
}

/// Rulings in order. Most messages of one kind are decided alike and share one ruling.
#[derive(Clone, Default, Debug)]
pub enum Rulings {
    /// No rulings: there is nothing to record.
    #[default]
    None,
    /// A single, shareable ruling.
    One(Arc<Ruling>),
    /// Several rulings in order.
    Many(Arc<[Arc<Ruling>]>),
}

impl Deref for Rulings {
    type Target = [Arc<Ruling>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::None => &[],
            Self::One(ruling) => std::slice::from_ref(ruling),
            Self::Many(rulings) => rulings,
        }
    }
}

impl From<Ruling> for Rulings {
    fn from(ruling: Ruling) -> Self {
        Self::One(Arc::new(ruling))
    }
}

impl From<Vec<Arc<Ruling>>> for Rulings {
    fn from(mut rulings: Vec<Arc<Ruling>>) -> Self {
        match rulings.len() {
            0 => Self::None,
            1 => rulings.pop().map_or(Self::None, Self::One),
            _ => Self::Many(rulings.into()),
        }
    }
}

/// Complete decision of an interceptor about a message.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Verdict on the message.
    pub verdict: Verdict,
    /// Decisions that led to the verdict, for the record.
    pub rulings: Rulings,
    /// Side effects to carry out.
    pub effects: Vec<Effect>,
}

impl Judgement {
    /// Returns a judgement that passes the message and records nothing.
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
