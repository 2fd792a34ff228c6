use super::consent::Consent;
use crate::caller::Caller;
use crate::exchange::Exchange;
use bytes::Bytes;
use signalbox_wire::Envelope;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind of message an interceptor is asked about, and its direction.
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

    /// True if messages of this phase go to the client, so that the last interceptor is asked first.
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

/// A message, and everything that is known about it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The phase.
    pub phase: Phase,
    /// The message, as the interceptors before made it.
    pub message: &'a Envelope,
    /// The exchange it belongs to. A notification may belong to none.
    pub exchange: Option<&'a Exchange>,
    /// The sender of the request it belongs to, or else the opener of the session.
    pub caller: &'a Caller,
    /// The id of the session, where the client has one.
    pub session: Option<&'a str>,
    /// When the session began; a request without a session began just now.
    pub session_started: Instant,
    /// The revision the client speaks.
    pub revision: Option<&'a str>,
    /// The backend it goes to or comes from, if known.
    pub backend: Option<&'a str>,
    /// The tool that is called, as its backend defines it.
    pub definition: Option<&'a Bytes>,
    /// How often the call was sent to its backend, this time included; more than once only if it certainly had not
    /// arrived.
    pub attempt: u32,
    /// Which round of its call it belongs to; the first is 1.
    pub round: u32,
    /// False for notifications and for messages in the middle of a call. A pause of such a message ends at once; a
    /// hold for a person or a webhook refuses it.
    pub can_wait: bool,
    /// True for a call's result that arrives through the task the call made. The exchange is then that of the call,
    /// as far as it is remembered; a forgotten one has no subject.
    pub by_task: bool,
    /// The time now.
    pub now: Instant,
    /// The wall-clock time, in milliseconds since 1970.
    pub unix_ms: u64,
}

/// What an interceptor must know before it can decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HoldQuestion {
    /// Nothing: the message continues after this time.
    Pause(Duration),
    /// A person's decision about the message.
    Person {
        /// The reason shown to the person.
        reason: Arc<str>,
        /// The longest wait.
        within: Duration,
    },
    /// The consent that a call needs.
    Consent(Arc<Consent>),
    /// A webhook's decision about the message.
    Webhook {
        /// The address.
        url: Arc<str>,
        /// The JSON to send.
        body: Bytes,
        /// The time limit.
        within: Duration,
    },
}

/// The answer to a [`HoldQuestion`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HoldAnswer {
    /// The pause is over, or the person released the message unchanged.
    GoOn {
        /// Who decided; `None` for a pause.
        by: Option<String>,
    },
    /// The message continues as this one.
    Edited {
        /// Who decided.
        by: Option<String>,
        /// The message.
        message: Bytes,
    },
    /// Answer the request with this result, or replace the answer by it.
    Result {
        /// Who decided.
        by: Option<String>,
        /// The result.
        result: Bytes,
    },
    /// The message is refused.
    Refused {
        /// Who decided.
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// Nobody answered in time.
    Expired,
    /// The webhook's response.
    Webhook {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Bytes,
    },
    /// The question could not be asked.
    Failed(String),
    /// The gateway had no room to ask the question in time. The message is refused: a caller must not get around a
    /// decision by having many asked for.
    Overloaded(String),
}

/// What an interceptor is given when it is asked again about a message that it held.
#[derive(Clone, Copy, Debug)]
pub struct Resumed<'a> {
    /// Its position, as it returned it in [`super::Hold::cursor`].
    pub cursor: u32,
    /// The answer to its question.
    pub answer: &'a HoldAnswer,
}
