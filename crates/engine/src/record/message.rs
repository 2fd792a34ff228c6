use crate::fact::Point;
use crate::fact::TransportData;
use bytes::Bytes;
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Kind of a recorded message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// A request, which is to be answered.
    Request,
    /// A notification, which gets no answer.
    Notification,
    /// An answer with a result.
    Result,
    /// An answer with an error.
    Error,
    /// Not a single JSON-RPC message: a batch of a transparent proxy, or not JSON at all.
    Raw,
}

impl MessageKind {
    /// All kinds, in declaration order.
    pub const ALL: [Self; 5] = [Self::Request, Self::Notification, Self::Result, Self::Error, Self::Raw];

    /// Returns the word used in listings and stored forms.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Result => "result",
            Self::Error => "error",
            Self::Raw => "raw",
        }
    }

    /// Returns the kind with this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// Message at one of the four points.
#[derive(Clone, PartialEq, Debug)]
pub struct MessageEntry {
    /// Point that the message passed.
    pub point: Point,
    /// Kind of the message.
    pub kind: MessageKind,
    /// Method; for an answer, that of its request.
    pub method: Option<Arc<str>>,
    /// The client's name or URI for the subject.
    pub subject: Option<Arc<str>>,
    /// Backend that the message came from or goes to, if any.
    pub backend: Option<Arc<str>>,
    /// Error code, for an error.
    pub error_code: Option<i64>,
    /// Original length, before redaction.
    pub length: u64,
    /// Body as it is stored.
    pub body: Body,
    /// Number among the messages of the process, for later entries to refer to; 0 if none does.
    pub number: u64,
    /// True for the gateway's own traffic: handshakes, lists, pings.
    pub own: bool,
    /// Number of the message that this one repeats.
    pub again: Option<NonZeroU64>,
    /// Reason why the message did not reach its receiver or had no effect, if so.
    pub lost: Option<Cow<'static, str>>,
    /// True if anything was redacted.
    pub redacted: bool,
    /// The transport's data about the message, if known.
    pub carried: Option<Arc<TransportData>>,
}

impl MessageEntry {
    /// Creates a message with all other fields empty.
    #[must_use]
    pub fn new(point: Point, kind: MessageKind, length: u64, body: Body) -> Self {
        Self {
            point,
            kind,
            method: None,
            subject: None,
            backend: None,
            error_code: None,
            length,
            body,
            number: 0,
            own: false,
            again: None,
            lost: None,
            redacted: false,
            carried: None,
        }
    }
}

/// Stored body of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// The complete body, after redaction.
    Whole(Bytes),
    /// The body of an earlier entry with its middle replaced: `prefix` bytes of it, `middle`, `suffix` bytes of it. An
    /// equal body has an empty middle and a prefix of its whole length.
    Like {
        /// The earlier entry, whose body is whole.
        seq: u64,
        /// Number of leading bytes taken from it.
        prefix: u64,
        /// Number of trailing bytes taken from it.
        suffix: u64,
        /// Bytes between the two.
        middle: Bytes,
    },
    /// No body: bodies are not recorded, or this one was too large.
    Left,
}
