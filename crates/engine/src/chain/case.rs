//! What an interceptor is asked about.

use crate::caller::Caller;
use crate::exchange::Exchange;
use bytes::Bytes;
use signalbox_wire::Envelope;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Which way a message goes.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// A client's request, before it goes to a backend.
    Request,
    /// A backend's answer, before it goes to the client.
    Response,
    /// A client's notification.
    FromClient,
    /// A backend's notification.
    FromBackend,
    /// A backend asks the client something, before the client is asked.
    ServerAsks,
    /// What the client answers to that, before the backend gets it.
    ClientAnswers,
    /// A request that the gateway answers itself: `initialize`, `server/discover`, `logging/setLevel`,
    /// `subscriptions/listen`.
    ToGateway,
    /// The gateway's answer to such a request, before it goes to the client.
    FromGateway,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Request,
        Self::Response,
        Self::FromClient,
        Self::FromBackend,
        Self::ServerAsks,
        Self::ClientAnswers,
        Self::ToGateway,
        Self::FromGateway,
    ];

    /// True where messages of this phase go to the client, so that the last interceptor is asked first.
    #[must_use]
    pub fn is_inward(self) -> bool {
        matches!(self, Self::Response | Self::FromBackend | Self::ServerAsks | Self::FromGateway)
    }

    /// The word for it in rules.
    #[must_use]
    pub fn rule_word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::FromClient | Self::FromBackend => "notification",
            Self::ServerAsks => "question",
            Self::ClientAnswers => "answer",
            Self::ToGateway => "gateway_request",
            Self::FromGateway => "gateway_response",
        }
    }

    /// The word for it in decisions.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::FromClient => "notification from client",
            Self::FromBackend => "notification from backend",
            Self::ServerAsks => "question",
            Self::ClientAnswers => "answer",
            Self::ToGateway => "gateway request",
            Self::FromGateway => "gateway response",
        }
    }
}

/// A message, and all that may be known of it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Which way it goes.
    pub phase: Phase,
    /// The message, as the interceptors before made it.
    pub message: &'a Envelope,
    /// The exchange it belongs to. A notification may belong to none.
    pub exchange: Option<&'a Exchange>,
    /// Who sent the request that it belongs to, or opened the session.
    pub caller: &'a Caller,
    /// The id of the session, where the client has one.
    pub session: Option<&'a str>,
    /// When the session began; a request without a session began just now.
    pub session_started: Instant,
    /// The revision the client speaks.
    pub revision: Option<&'a str>,
    /// The backend it goes to or comes from, where that is known.
    pub backend: Option<&'a str>,
    /// The tool that is called, as its backend defines it.
    pub definition: Option<&'a Bytes>,
    /// How often the call was sent to its backend, this time included: more than once where it surely had not arrived.
    pub attempt: u32,
    /// Which round of its call it belongs to; the first is 1.
    pub round: u32,
    /// False for what comes in the middle of a call, and for notifications. A pause of such a message is over at once; a
    /// question to a person or a web address about it refuses it.
    pub can_wait: bool,
    /// True for the result of a call that comes by the task which the call made. The exchange is then that of the call, as far
    /// as it is remembered: one that is forgotten has no subject.
    pub by_task: bool,
    /// The time now.
    pub now: Instant,
    /// The same by the wall clock, in milliseconds since 1970.
    pub unix_ms: u64,
}

/// Something an interceptor must know before it decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HoldQuestion {
    /// Nothing: the message is to go on after this time.
    Pause(Duration),
    /// What a person says about the message.
    Person {
        /// Why it is held, for the person.
        reason: Arc<str>,
        /// How long it waits at most.
        within: Duration,
    },
    /// What a web address says about the message.
    Webhook {
        /// The address.
        url: Arc<str>,
        /// The JSON to send.
        body: Bytes,
        /// How long it may take.
        within: Duration,
    },
}

/// What came of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HoldAnswer {
    /// The pause is over, or the person lets the message go as it is.
    GoOn {
        /// Who said so; nobody for a pause.
        by: Option<String>,
    },
    /// The message is to go on as this one, whole.
    Edited {
        /// Who said so.
        by: Option<String>,
        /// The message.
        message: Bytes,
    },
    /// A request is to be answered with this result, an answer to be replaced by it.
    Result {
        /// Who said so.
        by: Option<String>,
        /// The result.
        result: Bytes,
    },
    /// The message is refused.
    Refused {
        /// Who said so.
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// Nobody answered in time.
    Expired,
    /// What the web address answered, with its status.
    Webhook {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Bytes,
    },
    /// It could not be asked.
    Failed(String),
}

/// What an interceptor is told when it is asked again about a message that it held.
#[derive(Clone, Copy, Debug)]
pub struct Resumed<'a> {
    /// Where it stood, as it said in [`super::Hold::cursor`].
    pub cursor: u32,
    /// What came of its question.
    pub answer: &'a HoldAnswer,
}
