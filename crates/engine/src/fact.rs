//! What happened, for whoever wants to know: metrics, traces, tapes.

use crate::caller::Caller;
use crate::carried::Carried;
use crate::chain::{Ruling, Rulings};
use crate::exchange::MethodName;
use crate::keys::{ExchangeId, SessionKey};
use crate::profile::ClientProfile;
use crate::trace::{Carrier, Trace};
use bytes::Bytes;
use signalbox_wire::{Envelope, Era};
use std::num::NonZeroU64;
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

impl Point {
    /// All of them, in the order of a call.
    pub const ALL: [Self; 4] = [Self::ClientIn, Self::BackendOut, Self::BackendIn, Self::ClientOut];

    /// The words for it, wherever it is named: in what is shown, told and exported.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::ClientIn => "client to gateway",
            Self::BackendOut => "gateway to backend",
            Self::BackendIn => "backend to gateway",
            Self::ClientOut => "gateway to client",
        }
    }

    /// The point of these words. Those of earlier versions are read too.
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

/// A fact. It always names the caller.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A message passed a point.
    Message(MessageFact),
    /// A message that was said to have passed was lost after all.
    Lost(Arc<Lost>),
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
        caller: Caller,
    },
    /// An exchange is over.
    Finished(Arc<Finished>),
    /// Something was refused before there was an exchange.
    Refused(Arc<RefusedFact>),
}

/// A message that passed a point.
#[derive(Clone, Debug)]
pub struct MessageFact {
    /// When.
    pub at: Instant,
    /// Whose session; [`SessionKey::GATEWAY`] for what belongs to none.
    pub session: SessionKey,
    /// On whose behalf.
    pub caller: Caller,
    /// The exchange, where it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// Where it was seen.
    pub point: Point,
    /// The backend it goes to or comes from, where it does.
    pub backend: Option<Arc<str>>,
    /// The message.
    pub bytes: Bytes,
    /// Its number among the messages of this process, by which a later fact may speak of it; 0 where none will.
    pub number: u64,
    /// True for what the gateway says and hears on its own account: handshakes, lists, pings.
    pub own: bool,
    /// The number of the message that this is the repeated sending of.
    pub again: Option<NonZeroU64>,
    /// Why it did not reach whoever it was for, or is of no use to them, where that is so.
    pub lost: Option<&'static str>,
    /// What it came in, where somebody looked: the id of its event, the heads of its HTTP request and answer.
    pub carried: Option<Arc<Carried>>,
}

impl MessageFact {
    /// A message that belongs to no exchange and no backend, and of which nothing more is known.
    #[must_use]
    pub fn new(at: Instant, session: SessionKey, caller: Caller, point: Point, bytes: Bytes) -> Self {
        let (exchange, backend, number, own, again, lost) = (None, None, 0, false, None, None);
        Self { at, session, caller, exchange, point, backend, bytes, number, own, again, lost, carried: None }
    }
}

/// A message that was lost after it was said to have passed.
#[derive(Clone, Debug)]
pub struct Lost {
    /// When.
    pub at: Instant,
    /// Whose session.
    pub session: SessionKey,
    /// On whose behalf.
    pub caller: Caller,
    /// The exchange, where it belongs to one.
    pub exchange: Option<ExchangeId>,
    /// Where it was seen.
    pub point: Point,
    /// The number of the message, as [`MessageFact::number`] has it.
    pub number: u64,
    /// Why.
    pub reason: &'static str,
}

/// What was refused before there was an exchange: a head, a body, a credential, a session id.
#[derive(Clone, Debug)]
pub struct RefusedFact {
    /// When.
    pub at: Instant,
    /// Who called, as far as that was known.
    pub caller: Caller,
    /// The session, where one was found.
    pub session: SessionKey,
    /// The HTTP status it was answered with, where it was.
    pub status: Option<u16>,
    /// Why, in a word of the closed list of faults.
    pub reason: &'static str,
    /// Why, for a person; never with a credential in it.
    pub detail: String,
}

/// All that was decided about a message at one time.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When.
    pub at: Instant,
    /// Whose session.
    pub session: SessionKey,
    /// On whose behalf.
    pub caller: Caller,
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
    pub caller: Caller,
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
    /// What the client claimed to be, with this request or when its session began.
    pub client: Option<Arc<ClientProfile>>,
    /// The operation it is a part of: the exchange of its first round, which may be itself.
    pub operation: ExchangeId,
    /// Which round of that operation it is; the first is 1.
    pub round: u32,
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
    /// Comes to its end when there is room for more facts, or waiting for it is over. None while there is room. Whoever
    /// takes messages from outside awaits it before the next one.
    fn room(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }
    /// The same for a thread that may block because it does nothing but bring facts.
    fn wait_for_room(&self) {}
    /// Takes a fact. Must not block.
    fn fact(&self, fact: &Fact);
    /// Takes facts that came of one event, in order. Must not block.
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
