//! Facts: what happened, for metrics, traces and tapes.

use crate::caller::Caller;
use crate::chain::{Ruling, Rulings};
use crate::exchange::{MethodName, Unreached};
use crate::keys::{ExchangeId, SessionKey};
use crate::profile::ClientProfile;
use crate::trace::{Carrier, Trace};
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, Kind};
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The four points at which a message is recorded.
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

impl Point {
    /// All of them, in the order of a call.
    pub const ALL: [Self; 4] = [Self::ClientIn, Self::BackendOut, Self::BackendIn, Self::ClientOut];

    /// Its name in output, tapes and exports.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::ClientIn => "client to gateway",
            Self::BackendOut => "gateway to backend",
            Self::BackendIn => "backend to gateway",
            Self::ClientOut => "gateway to client",
        }
    }

    /// The point of this name. Names of earlier versions are read too.
    #[must_use]
    pub fn parse(words: &str) -> Option<Self> {
        let earlier = ["client_in", "backend_out", "backend_in", "client_out"];
        Self::ALL.into_iter().zip(earlier).find(|(one, old)| one.words() == words || *old == words).map(|(one, _)| one)
    }
}

/// How an exchange ended.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// A result.
    Ok,
    /// A tool result with `isError`.
    ToolError,
    /// A JSON-RPC error of the backend.
    BackendError,
    /// A fault, by its reason.
    Fault(&'static str),
    /// The client cancelled it, or disconnected in the new era.
    Cancelled,
}

impl Outcome {
    /// How an exchange with this answer ended.
    #[must_use]
    pub fn of(answer: &Envelope) -> Self {
        if answer.kind() == Kind::Error {
            return Self::BackendError;
        }
        match answer.result_member("isError").map(|span| span.of(answer.bytes())) {
            Some(b"true") => Self::ToolError,
            _ => Self::Ok,
        }
    }

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

/// A fact. It always names its caller.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A message passed a point.
    Message(MessageFact),
    /// A message that was recorded as passed was lost after all.
    Lost(Arc<Lost>),
    /// Something was decided about a message.
    Decision(Arc<Decision>),
    /// A session began, or its client introduced itself.
    Session(Arc<SessionFact>),
    /// A session ended.
    SessionEnded {
        /// When.
        at: Instant,
        /// The session.
        session: SessionKey,
        /// The caller.
        caller: Caller,
    },
    /// An exchange is over.
    Finished(Arc<Finished>),
    /// Something was refused before it became an exchange.
    Refused(Arc<RefusedFact>),
}

impl Fact {
    /// When it happened.
    #[must_use]
    pub fn at(&self) -> Instant {
        match self {
            Self::Message(fact) => fact.at,
            Self::Lost(fact) => fact.at,
            Self::Decision(fact) => fact.at,
            Self::Session(fact) => fact.at,
            Self::SessionEnded { at, .. } => *at,
            Self::Finished(fact) => fact.at,
            Self::Refused(fact) => fact.at,
        }
    }

    /// Its session; [`SessionKey::GATEWAY`] if it belongs to none.
    #[must_use]
    pub fn session(&self) -> SessionKey {
        match self {
            Self::Message(fact) => fact.session,
            Self::Lost(fact) => fact.session,
            Self::Decision(fact) => fact.session,
            Self::Session(fact) => fact.session,
            Self::SessionEnded { session, .. } => *session,
            Self::Finished(fact) => fact.session,
            Self::Refused(fact) => fact.session,
        }
    }

    /// Its exchange, if it belongs to one.
    #[must_use]
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Message(fact) => fact.exchange,
            Self::Lost(fact) => fact.exchange,
            Self::Decision(fact) => fact.exchange,
            Self::Finished(fact) => Some(fact.exchange),
            Self::Session(_) | Self::SessionEnded { .. } | Self::Refused(_) => None,
        }
    }
}

/// A message that passed a point.
#[derive(Clone, Debug)]
pub struct MessageFact {
    /// When.
    pub at: Instant,
    /// The session; [`SessionKey::GATEWAY`] if it belongs to none.
    pub session: SessionKey,
    /// The caller.
    pub caller: Caller,
    /// The exchange, if it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// Where it was seen.
    pub point: Point,
    /// The backend it goes to or comes from, if any.
    pub backend: Option<Arc<str>>,
    /// The message.
    pub bytes: Bytes,
    /// Its number among the messages of this process, for later facts to refer to; 0 if none will.
    pub number: u64,
    /// True for the gateway's own traffic: handshakes, lists, pings.
    pub own: bool,
    /// The number of the message that this one repeats.
    pub again: Option<NonZeroU64>,
    /// Why it did not reach its receiver or was useless to it, if so.
    pub lost: Option<&'static str>,
    /// The transport's data about it, if recorded: the id of its event, the heads of its HTTP request and response.
    pub carried: Option<Arc<Carried>>,
}

impl MessageFact {
    /// A message of no exchange and no backend, with nothing else known.
    #[must_use]
    pub fn new(at: Instant, session: SessionKey, caller: Caller, point: Point, bytes: Bytes) -> Self {
        let (exchange, backend, number, own, again, lost) = (None, None, 0, false, None, None);
        Self { at, session, caller, exchange, point, backend, bytes, number, own, again, lost, carried: None }
    }
}

/// The transport's data about a message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Carried {
    /// The id of the SSE event that held it.
    pub event_id: Option<Box<str>>,
    /// The head of its HTTP request or response, without credentials.
    pub http: Option<HttpHead>,
}

/// The head of an HTTP request or answer.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HttpHead {
    /// The method of the request.
    pub method: Option<String>,
    /// Path and query of the request.
    pub url: Option<String>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The headers, in their order. Credentials are replaced.
    pub headers: Vec<(String, String)>,
    /// True if something was redacted.
    pub redacted: bool,
}

/// A message that was lost after it was recorded as passed.
#[derive(Clone, Debug)]
pub struct Lost {
    /// When.
    pub at: Instant,
    /// The session.
    pub session: SessionKey,
    /// The caller.
    pub caller: Caller,
    /// The exchange, if it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// Where it was seen.
    pub point: Point,
    /// The message's [`MessageFact::number`].
    pub number: u64,
    /// Why.
    pub reason: &'static str,
}

/// Something that was refused before it became an exchange: a head, a body, a credential, a session id; or a part of
/// an exchange that goes on without it.
#[derive(Clone, Debug)]
pub struct RefusedFact {
    /// When.
    pub at: Instant,
    /// The caller, as far as known.
    pub caller: Caller,
    /// The session, if one was found.
    pub session: SessionKey,
    /// The HTTP status of the answer, if there was one.
    pub status: Option<u16>,
    /// The reason, a word of the closed list of faults.
    pub reason: &'static str,
    /// The reason in words, never containing a credential.
    pub detail: String,
    /// The exchange, if it was a part of one.
    pub exchange: Option<ExchangeId>,
    /// What it asked for, if known; see [`Finished::unreached`].
    pub unreached: Option<Box<Unreached>>,
}

/// All decisions about a message at one time.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When.
    pub at: Instant,
    /// The session.
    pub session: SessionKey,
    /// The caller.
    pub caller: Caller,
    /// The exchange, if it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// `request`, `response`, …: see [`crate::chain::Phase::word`].
    pub phase: &'static str,
    /// The decisions and their grounds, in order, each with the interceptor or part of the gateway that took it.
    /// Never empty.
    pub rulings: Vec<(&'static str, Rulings)>,
}

impl Decision {
    /// Each ruling, with who decided it.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &Arc<Ruling>)> {
        self.rulings.iter().flat_map(|(by, rulings)| rulings.iter().map(|ruling| (*by, ruling)))
    }
}

/// What is known about a session.
#[derive(Clone, Debug)]
pub struct SessionFact {
    /// When.
    pub at: Instant,
    /// The session.
    pub session: SessionKey,
    /// The caller.
    pub caller: Caller,
    /// The session id that the client was given, if any.
    pub external: Option<Arc<str>>,
    /// The transport.
    pub transport: &'static str,
    /// What the client said about itself, if it did.
    pub client: Option<Arc<ClientProfile>>,
}

/// The end of an exchange.
#[derive(Clone, Debug)]
pub struct Finished {
    /// When.
    pub at: Instant,
    /// The session.
    pub session: SessionKey,
    /// The caller.
    pub caller: Caller,
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
    /// What the client said about itself, with this request or when its session began.
    pub client: Option<Arc<ClientProfile>>,
    /// The operation it belongs to: the exchange of its first round, which may be itself.
    pub operation: ExchangeId,
    /// The round of that operation; the first is 1.
    pub round: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
    /// Bytes of the request.
    pub bytes_in: usize,
    /// Bytes of the answer.
    pub bytes_out: usize,
    /// The trace it belongs to, if it is traced.
    pub trace: Option<Box<Trace>>,
    /// What it asked for, if it was refused before a route was found. For the audit log: a tape is read by callers too,
    /// who must not learn whether an entry is hidden or unknown.
    pub unreached: Option<Box<Unreached>>,
}

/// A subscriber to facts.
pub trait FactSink: Send + Sync {
    /// True if message facts are wanted too; otherwise they are not made.
    fn wants_messages(&self) -> bool {
        false
    }
    /// True if [`FactSink::begin`] must be called for every request.
    fn traces(&self) -> bool {
        false
    }
    /// The trace of a request, which its [`Finished`] returns. Of several subscribers that trace, the first is asked.
    fn begin(&self, _message: &Envelope, _carrier: Carrier<'_>) -> Option<Box<Trace>> {
        None
    }
    /// True if an answer may leave only after it was recorded; see [`FactSink::written`].
    fn is_durable(&self) -> bool {
        false
    }
    /// Resolves once all facts so far are recorded, or with false if they cannot be.
    fn written(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(std::future::ready(true))
    }
    /// Resolves when there is room for the facts of a message of this size, or the wait is over. `None` while there is
    /// room. Fronts and links await it before they take a message from outside; links do not know its size yet.
    fn room(&self, _bytes: usize) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }
    /// Waits for room on a thread that may block because it only delivers facts.
    fn wait_for_room(&self) {}
    /// Takes a fact. Must not block.
    fn fact(&self, fact: &Fact);
    /// Takes the facts of one event, in order. Must not block.
    fn facts(&self, facts: &[Fact]) {
        facts.iter().for_each(|fact| self.fact(fact));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_earlier_versions_are_still_read() {
        for (point, earlier) in Point::ALL.into_iter().zip(["client_in", "backend_out", "backend_in", "client_out"]) {
            assert_eq!((Point::parse(point.words()), Point::parse(earlier)), (Some(point), Some(point)));
        }
        assert_eq!(Point::parse("client"), None);
    }
}
