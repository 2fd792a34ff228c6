//! Facts: records of events for metrics, traces and tapes.

use crate::caller::Caller;
use crate::chain::{Ruling, Rulings};
use crate::exchange::{MethodName, RefusedSubject};
use crate::keys::{ExchangeId, SessionKey};
use crate::profile::ClientProfile;
use crate::trace::{Carrier, Trace};
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, Kind};
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Points at which a message is recorded.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Point {
    /// The message as the client sent it.
    ClientIn,
    /// The message as the backend gets it.
    BackendOut,
    /// The message as the backend sent it.
    BackendIn,
    /// The message as the client gets it.
    ClientOut,
}

impl Point {
    /// All points, in the order of a call.
    pub const ALL: [Self; 4] = [Self::ClientIn, Self::BackendOut, Self::BackendIn, Self::ClientOut];

    /// Returns the name used in output, tapes and exports.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::ClientIn => "client to gateway",
            Self::BackendOut => "gateway to backend",
            Self::BackendIn => "backend to gateway",
            Self::ClientOut => "gateway to client",
        }
    }

    /// Parses a name. Names of earlier versions are accepted too.
    #[must_use]
    pub fn parse(words: &str) -> Option<Self> {
        let earlier = ["client_in", "backend_out", "backend_in", "client_out"];
        Self::ALL.into_iter().zip(earlier).find(|(one, old)| one.words() == words || *old == words).map(|(one, _)| one)
    }
}

/// End of an exchange.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Ended with a result.
    Ok,
    /// Ended with a tool result with `isError`.
    ToolError,
    /// Ended with a JSON-RPC error of the backend.
    BackendError,
    /// Ended with a fault, given by its reason.
    Fault(&'static str),
    /// The client cancelled it, or disconnected in the new era.
    Cancelled,
}

impl Outcome {
    /// Returns the outcome of an exchange with this answer.
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

    /// Returns a short label for metrics.
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

/// Record of an event. It always names its caller.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A message passed a point.
    Message(MessageFact),
    /// A message that was recorded as passed was lost after all.
    Lost(Arc<LostFact>),
    /// A message was decided about.
    Decision(Arc<Decision>),
    /// A session began, or its client initialized.
    Session(Arc<SessionFact>),
    /// The session of a client ended.
    SessionEnded {
        /// Time of the end.
        at: Instant,
        /// Key of the session that ended.
        session: SessionKey,
        /// Caller that opened the session.
        caller: Caller,
    },
    /// An exchange ended, with its outcome.
    Finished(Arc<FinishedFact>),
    /// A request was refused before it became an exchange.
    Refused(Arc<RefusedFact>),
}

impl Fact {
    /// Returns the time of the fact.
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

    /// Returns its session; [`SessionKey::GATEWAY`] if it belongs to none.
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

    /// Returns its exchange, if it belongs to one.
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

/// Passage of a message through a point.
#[derive(Clone, Debug)]
pub struct MessageFact {
    /// Time at which the message passed.
    pub at: Instant,
    /// Session of the message; [`SessionKey::GATEWAY`] if it belongs to none.
    pub session: SessionKey,
    /// Caller of the message.
    pub caller: Caller,
    /// Exchange of the message, if it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// Point that the message passed.
    pub point: Point,
    /// Backend that the message goes to or comes from, if any.
    pub backend: Option<Arc<str>>,
    /// Bytes of the message.
    pub bytes: Bytes,
    /// Number among the messages of this process, for later facts to refer to; 0 if none will.
    pub number: u64,
    /// True for the gateway's own traffic: handshakes, lists, pings.
    pub own: bool,
    /// Number of the message that this one repeats.
    pub again: Option<NonZeroU64>,
    /// Reason why the message did not reach its receiver or had no effect, if so.
    pub lost: Option<&'static str>,
    /// The transport's data, if recorded: the id of the SSE event, the heads of the HTTP request and response.
    pub carried: Option<Arc<TransportData>>,
}

impl MessageFact {
    /// Creates the fact for a message without an exchange or a backend.
    #[must_use]
    pub fn new(at: Instant, session: SessionKey, caller: Caller, point: Point, bytes: Bytes) -> Self {
        let (exchange, backend, number, own, again, lost) = (None, None, 0, false, None, None);
        Self { at, session, caller, exchange, point, backend, bytes, number, own, again, lost, carried: None }
    }
}

/// The transport's data about a message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TransportData {
    /// Id of the SSE event that carried it.
    pub event_id: Option<Box<str>>,
    /// Head of its HTTP request or response, without credentials.
    pub http: Option<HttpHead>,
}

/// Head of an HTTP request or response.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HttpHead {
    /// Method of the request.
    pub method: Option<String>,
    /// Path and query of the request.
    pub url: Option<String>,
    /// Status of the response.
    pub status: Option<u16>,
    /// Headers in their order. Credentials are replaced.
    pub headers: Vec<(String, String)>,
    /// True if anything was redacted.
    pub redacted: bool,
}

/// Loss of a message after it was recorded as passed.
#[derive(Clone, Debug)]
pub struct LostFact {
    /// Time of the loss.
    pub at: Instant,
    /// Session of the message.
    pub session: SessionKey,
    /// Caller of the message.
    pub caller: Caller,
    /// Exchange of the message, if it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// Point at which the message was recorded.
    pub point: Point,
    /// The [`MessageFact::number`] of the message.
    pub number: u64,
    /// Reason for the loss.
    pub reason: &'static str,
}

/// Refusal of a head, a body, a credential or a session id before it became an exchange, or of a part of an exchange
/// that continues without it.
#[derive(Clone, Debug)]
pub struct RefusedFact {
    /// Time of the refusal.
    pub at: Instant,
    /// Caller, as far as known.
    pub caller: Caller,
    /// Session, if one was found.
    pub session: SessionKey,
    /// HTTP status of the answer, if there was one.
    pub status: Option<u16>,
    /// Reason, a word of the closed list of faults.
    pub reason: &'static str,
    /// Reason as a sentence, never with a credential in it.
    pub detail: String,
    /// Exchange whose part was refused, if any.
    pub exchange: Option<ExchangeId>,
    /// Subject of the request, if known; see [`FinishedFact::unreached`].
    pub unreached: Option<Box<RefusedSubject>>,
    /// The notification of a client that was refused, if it was one.
    pub notification: Option<Box<RefusedNotification>>,
}

/// Notification of a client that no backend gets.
#[derive(Clone, Debug)]
pub struct RefusedNotification {
    /// Method of the notification.
    pub method: MethodName,
    /// Backend that it was for; `*` if the session has several.
    pub backend: Arc<str>,
    /// Decisions of the interceptors about it.
    pub decisions: Vec<Arc<Decision>>,
}

/// All decisions about a message at one time.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Time of the decisions.
    pub at: Instant,
    /// Session of the message.
    pub session: SessionKey,
    /// Caller of the message.
    pub caller: Caller,
    /// Exchange of the message, if it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// `request`, `response`, …: see [`crate::chain::Phase::word`].
    pub phase: &'static str,
    /// Decisions with their grounds, in order, each with the interceptor or part of the gateway that took it. Never
    /// empty.
    pub rulings: Vec<(&'static str, Rulings)>,
}

impl Decision {
    /// Returns each ruling with the interceptor that decided it.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &Arc<Ruling>)> {
        self.rulings.iter().flat_map(|(by, rulings)| rulings.iter().map(|ruling| (*by, ruling)))
    }
}

/// Description of a session.
#[derive(Clone, Debug)]
pub struct SessionFact {
    /// Time of the fact.
    pub at: Instant,
    /// Session that the fact describes.
    pub session: SessionKey,
    /// Caller that opened the session.
    pub caller: Caller,
    /// Session id given to the client, if any.
    pub external: Option<Arc<str>>,
    /// Transport of the session.
    pub transport: &'static str,
    /// Profile that the client declared, if it did.
    pub client: Option<Arc<ClientProfile>>,
}

/// End of an exchange, with its measurements.
#[derive(Clone, Debug)]
pub struct FinishedFact {
    /// Time of the end.
    pub at: Instant,
    /// Session of the exchange.
    pub session: SessionKey,
    /// Caller of the exchange.
    pub caller: Caller,
    /// Exchange that has ended.
    pub exchange: ExchangeId,
    /// Era of the request.
    pub era: Era,
    /// Method of the request.
    pub method: MethodName,
    /// Exposed tool, prompt or URI.
    pub subject: Option<Box<str>>,
    /// Backend that it was routed to.
    pub backend: Option<Arc<str>>,
    /// Profile declared by the client, with this request or when its session began.
    pub client: Option<Arc<ClientProfile>>,
    /// Exchange of the operation's first round, which may be this one.
    pub operation: ExchangeId,
    /// Round of that operation, starting at 1.
    pub round: u32,
    /// Outcome of the exchange.
    pub outcome: Outcome,
    /// Duration of the exchange.
    pub took: Duration,
    /// Size of the request in bytes.
    pub bytes_in: usize,
    /// Size of the answer in bytes.
    pub bytes_out: usize,
    /// Trace of the exchange, if it is traced.
    pub trace: Option<Box<Trace>>,
    /// Subject of a request that was refused before a route was found. Only for the audit log: callers can read tapes,
    /// and must not learn if an entry is hidden or unknown.
    pub unreached: Option<Box<RefusedSubject>>,
}

/// Subscriber to facts, such as the recorder or a metrics table.
pub trait FactSink: Send + Sync {
    /// Returns true if message facts are wanted too; otherwise they are not created.
    fn wants_messages(&self) -> bool {
        false
    }
    /// Returns true if [`FactSink::begin`] must be called for every request.
    fn traces(&self) -> bool {
        false
    }
    /// Starts the trace of a request, which its [`FinishedFact`] returns. If several subscribers trace, only the first
    /// is called.
    fn begin(&self, _message: &Envelope, _carrier: Carrier<'_>) -> Option<Box<Trace>> {
        None
    }
    /// Returns true if an answer may leave only after it was recorded; see [`FactSink::written`].
    fn is_durable(&self) -> bool {
        false
    }
    /// Resolves once all facts so far are recorded, or to false if they cannot be.
    fn written(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(std::future::ready(true))
    }
    /// Resolves when there is room for the facts of a message of this size, or the wait is over. `None` while there is
    /// room. Fronts and links await it before they accept a message from outside; links do not know its size yet.
    fn room(&self, _bytes: usize) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }
    /// Waits for room on a thread that may block because it only delivers facts.
    fn wait_for_room(&self) {}
    /// Accepts a fact. Must not block.
    fn fact(&self, fact: &Fact);
    /// Accepts the facts of one event, in order. Must not block.
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
