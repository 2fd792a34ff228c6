use super::case::HoldQuestion;
use crate::fault::Fault;
use bytes::Bytes;
use signalbox_wire::Envelope;
use std::ops::Deref;
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
    /// Wait for the answer to a question. Messages that cannot wait are refused or continue; see
    /// [`super::Case::can_wait`].
    Hold(Hold),
}

/// A message that an interceptor holds.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The question.
    pub question: HoldQuestion,
    /// The interceptor's position, which it gets back when it is asked again.
    pub cursor: u32,
    /// The message as the interceptor changed it so far, if it did.
    pub message: Option<Envelope>,
}

/// Side effects.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Send a copy to another backend. Its answer is recorded, never returned.
    Fork {
        /// The backend.
        backend: Arc<str>,
        /// The request, whole.
        message: Envelope,
    },
    /// Write a line to the log.
    Log {
        /// The level.
        level: crate::log_level::LogLevel,
        /// What.
        text: String,
    },
    /// Count something.
    Count {
        /// The names of the counters.
        names: Arc<[Arc<str>]>,
    },
    /// Notify a webhook without waiting for its response.
    Notify {
        /// The address.
        url: Arc<str>,
        /// The JSON to send.
        body: Bytes,
        /// The time limit.
        within: std::time::Duration,
    },
}

/// One decision with its grounds: enough to repeat it without the message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ruling {
    /// The rule, if it was one.
    pub rule: Option<Arc<str>>,
    /// What was decided: `pass`, `modify`, `reply`, `error`, `refuse`, `hold`, `fork`, …
    pub verdict: &'static str,
    /// More about it, for a person.
    pub detail: String,
    /// `detail` holds values of the message, which not all who may read of decisions may see.
    pub quotes: bool,
    /// Each condition that was looked at, in the words of the rule, and whether it held.
    pub conditions: Arc<[(Arc<str>, bool)]>,
    /// Each outside input (`webhook`, `limiter`, `random`, `clock`, `person`, …) and what that was.
    pub inputs: Vec<(&'static str, String)>,
}

impl Ruling {
    /// A decision based on nothing but the message.
    #[must_use]
    pub fn of(verdict: &'static str, detail: String) -> Self {
        Self { verdict, detail, ..Self::default() }
    }
}

/// Rulings in their order. Most messages of one kind are decided alike and share one ruling.
#[derive(Clone, Default, Debug)]
pub enum Rulings {
    /// Nothing to record.
    #[default]
    None,
    /// A single one.
    One(Arc<Ruling>),
    /// Several.
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

/// Everything an interceptor decided about a message.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The decisions that led to it, for the record.
    pub rulings: Rulings,
    /// Side effects.
    pub effects: Vec<Effect>,
}

impl Judgement {
    /// The message passes, and there is nothing to record.
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
