use super::consent::Consent;
use super::work::Work;
use crate::caller::{Caller, Principal};
use crate::exchange::Exchange;
use bytes::Bytes;
use signalbox_wire::Envelope;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kind of a judged message, and its direction.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// A client's request, before it goes to a backend.
    Request,
    /// A backend's answer, before it goes to the client.
    Response,
    /// A client's notification, before it goes to the backends.
    FromClient,
    /// A backend's notification, before it goes to the client.
    FromBackend,
    /// A backend's question, before the client is asked.
    ServerAsks,
    /// The client's answer to a question, before the backend gets it.
    ClientAnswers,
    /// A request that the gateway answers itself: `initialize`, `server/discover`, `logging/setLevel`,
    /// `subscriptions/listen`.
    ToGateway,
    /// The gateway's answer to such a request, before it goes to the client.
    FromGateway,
}

impl Phase {
    /// All phases, in declaration order.
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

    /// Returns true if messages of this phase go to the client, so that the last interceptor runs first.
    #[must_use]
    pub fn is_inward(self) -> bool {
        matches!(self, Self::Response | Self::FromBackend | Self::ServerAsks | Self::FromGateway)
    }

    /// Returns the word for this phase in rules.
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

    /// Returns the word for this phase in decisions.
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

/// A message to judge, with its context.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Phase in which the message is judged.
    pub phase: Phase,
    /// The message, as the earlier interceptors left it.
    pub message: &'a Envelope,
    /// Exchange of the message. A notification may belong to none.
    pub exchange: Option<&'a Exchange>,
    /// Sender of the request that the message belongs to, or else the opener of the session.
    pub caller: &'a Caller,
    /// Principal that backends serve: the caller's own, or that of the page which the session or request names.
    pub acts_for: &'a Principal,
    /// Id of the session, if the client has one.
    pub session: Option<&'a str>,
    /// Start of the session. A request without a session began just now.
    pub session_started: Instant,
    /// Revision that the client speaks.
    pub revision: Option<&'a str>,
    /// Backend that the message goes to or comes from, if known.
    pub backend: Option<&'a str>,
    /// Definition of the called tool, as its backend sent it.
    pub definition: Option<&'a Bytes>,
    /// Number of times the call was sent to its backend, including this one. It exceeds 1 only if the earlier attempts
    /// certainly did not arrive.
    pub attempt: u32,
    /// Round of the call, starting at 1.
    pub round: u32,
    /// False for notifications and for messages in the middle of a call. A pause of such a message ends at once; a hold
    /// for a person or a webhook refuses it.
    pub can_wait: bool,
    /// True for a call's result that arrives through the task the call created. The exchange is then that of the call,
    /// as far as it is remembered; a forgotten one has no subject.
    pub by_task: bool,
    /// The backend's name of the tool whose call made the task that the request is about, if that call is remembered.
    pub task_tool: Option<&'a str>,
    /// Time of the event.
    pub now: Instant,
    /// Wall-clock time, in milliseconds since 1970.
    pub unix_ms: u64,
}

/// Input that an interceptor needs before it can decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HoldQuestion {
    /// No input: the message continues after this delay.
    Pause(Duration),
    /// The end of work that takes long. The message continues afterwards.
    Work(Work),
    /// A person's decision about the message.
    Person {
        /// Reason shown to the person.
        reason: Arc<str>,
        /// Time limit for the decision.
        within: Duration,
    },
    /// The consent that a call needs.
    Consent(Arc<Consent>),
    /// A webhook's decision about the message.
    Webhook {
        /// Address of the webhook.
        url: Arc<str>,
        /// JSON body to send.
        body: Bytes,
        /// Time limit for the response.
        within: Duration,
    },
}

/// The answer to a [`HoldQuestion`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HoldAnswer {
    /// The pause is over, or the person released the message unchanged.
    GoOn {
        /// Person who decided; `None` for a pause.
        by: Option<String>,
    },
    /// The message continues in this edited form.
    Edited {
        /// Person who decided, if known.
        by: Option<String>,
        /// The edited message, not yet checked.
        message: Bytes,
    },
    /// The request is answered with this result, or the result replaces the answer.
    Result {
        /// Person who decided, if known.
        by: Option<String>,
        /// JSON of the result.
        result: Bytes,
    },
    /// The message is refused.
    Refused {
        /// Person who decided; `None` if the gateway refused.
        by: Option<String>,
        /// Reason for the refusal.
        reason: String,
    },
    /// The time limit passed without an answer.
    Expired,
    /// The webhook responded, with any status.
    Webhook {
        /// HTTP status of the response.
        status: u16,
        /// Body of the response.
        body: Bytes,
    },
    /// The question could not be asked.
    Failed(String),
    /// The gateway had no room to ask the question in time. The message is refused: a caller must not get around a
    /// decision by flooding the gateway with questions.
    Overloaded(String),
}

/// Input for an interceptor that resumes with a message it held.
#[derive(Clone, Copy, Debug)]
pub struct HoldResponse<'a> {
    /// Position of the interceptor, as it returned it in [`super::Hold::cursor`].
    pub cursor: u32,
    /// The answer to its question.
    pub answer: &'a HoldAnswer,
}
