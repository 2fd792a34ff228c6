//! What happened, for whoever wants to know: metrics, traces, tapes.

use crate::chain::{Ruling, Rulings};
use crate::exchange::MethodName;
use crate::keys::{ExchangeId, SessionKey};
use crate::principal::Principal;
use crate::profile::ClientProfile;
use crate::trace::{Carrier, Trace};
use bytes::Bytes;
use signalbox_wire::{Envelope, Era};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The four points at which a message of an exchange is seen.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Point {
    /// As the client sent it.
    ClientIn,
    /// As the backend gets it.
    BackendOut,
    /// As the backend answered it.
    BackendIn,
    /// As the client gets it.
    ClientOut,
}

/// How an exchange ended.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// A result.
    Ok,
    /// A tool result that says of itself that it is an error.
    ToolError,
    /// A JSON-RPC error of the backend.
    BackendError,
    /// A fault, by its reason.
    Fault(&'static str),
    /// The client cancelled it, or went away in the new era.
    Cancelled,
}

impl Outcome {
    /// A short word for metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "success",
            Self::ToolError => "tool_error",
            Self::BackendError => "error",
            Self::Fault(reason) => reason,
            Self::Cancelled => "cancelled",
        }
    }
}

/// A fact. It always names the principal.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A message passed a point.
    Message {
        /// When.
        at: Instant,
        /// Whose session.
        session: SessionKey,
        /// On whose behalf.
        principal: Principal,
        /// The exchange, where it belongs to one.
        exchange: Option<ExchangeId>,
        /// Where it was seen.
        point: Point,
        /// The backend it goes to or comes from, where it does.
        backend: Option<Arc<str>>,
        /// The message.
        bytes: Bytes,
    },
    /// Something was decided about a message.
    Decision(Arc<Decision>),
    /// A session began, or its client has introduced itself.
    Session(Arc<SessionFact>),
    /// A session ended.
    SessionEnded {
        /// When.
        at: Instant,
        /// Which.
        session: SessionKey,
        /// Whose.
        principal: Principal,
    },
    /// An exchange is over.
    Finished(Arc<Finished>),
}

/// All that was decided about a message at one time.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When.
    pub at: Instant,
    /// Whose session.
    pub session: SessionKey,
    /// On whose behalf.
    pub principal: Principal,
    /// The exchange, where it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// `request`, `response`, …: see [`crate::chain::Phase::word`].
    pub phase: &'static str,
    /// What was decided and from what, in order, with the interceptor or the part of the gateway that did. Never empty.
    pub rulings: Vec<(&'static str, Rulings)>,
}

impl Decision {
    /// Each ruling, with who decided it.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &Arc<Ruling>)> {
        self.rulings.iter().flat_map(|(by, rulings)| rulings.iter().map(|ruling| (*by, ruling)))
    }
}

/// What is known of a session.
#[derive(Clone, Debug)]
pub struct SessionFact {
    /// When.
    pub at: Instant,
    /// Which.
    pub session: SessionKey,
    /// Whose.
    pub principal: Principal,
    /// The id that the client was given, where it was.
    pub external: Option<Arc<str>>,
    /// How the client came.
    pub transport: &'static str,
    /// What the client said about itself, where it has.
    pub client: Option<Arc<ClientProfile>>,
}

/// The end of an exchange.
#[derive(Clone, Debug)]
pub struct Finished {
    /// When.
    pub at: Instant,
    /// Whose session.
    pub session: SessionKey,
    /// On whose behalf.
    pub principal: Principal,
    /// The exchange.
    pub exchange: ExchangeId,
    /// Its era.
    pub era: Era,
    /// The method.
    pub method: MethodName,
    /// The exposed tool, prompt or URI.
    pub subject: Option<Box<str>>,
    /// The backend.
    pub backend: Option<Arc<str>>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
    /// Bytes of the request.
    pub bytes_in: usize,
    /// Bytes of the answer.
    pub bytes_out: usize,
    /// The trace it belongs to, where somebody follows it.
    pub trace: Option<Box<Trace>>,
}

/// A subscriber to facts.
pub trait FactSink: Send + Sync {
    /// True where message facts are wanted too; they are not even made otherwise.
    fn wants_messages(&self) -> bool {
        false
    }
    /// True where [`FactSink::begin`] is to be asked about every request.
    fn traces(&self) -> bool {
        false
    }
    /// The trace that a request belongs to, which its [`Finished`] brings back. Of several who trace, the first is asked.
    fn begin(&self, _message: &Envelope, _carrier: Carrier<'_>) -> Option<Box<Trace>> {
        None
    }
    /// True where an answer may leave only after it was written down: see [`FactSink::written`].
    fn is_durable(&self) -> bool {
        false
    }
    /// Comes to its end once everything it was told so far is written down, or cannot be: then it says false.
    fn written(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(std::future::ready(true))
    }
    /// Takes a fact. Must not block.
    fn fact(&self, fact: &Fact);
    /// Takes facts that came of one event, in order. Must not block.
    fn facts(&self, facts: &[Fact]) {
        facts.iter().for_each(|fact| self.fact(fact));
    }
}
