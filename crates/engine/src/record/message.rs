use crate::fact::Carried;
use crate::fact::Point;
use bytes::Bytes;
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

/// What kind of message it is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// Wants an answer.
    Request,
    /// Wants none.
    Notification,
    /// A result.
    Result,
    /// An error.
    Error,
    /// Not a single JSON-RPC message: a batch of a transparent proxy, or no JSON at all.
    Raw,
}

impl MessageKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Request, Self::Notification, Self::Result, Self::Error, Self::Raw];

    /// The word for it in listings and stored forms.
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

    /// The kind that has this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// A message at one of the four points.
#[derive(Clone, PartialEq, Debug)]
pub struct MessageEntry {
    /// Where it was seen.
    pub point: Point,
    /// What kind it is.
    pub kind: MessageKind,
    /// The method; for an answer, that of its request.
    pub method: Option<Arc<str>>,
    /// The tool, prompt or URI, as the client knows it.
    pub subject: Option<Arc<str>>,
    /// The backend, if it came from or goes to one.
    pub backend: Option<Arc<str>>,
    /// The code of an error.
    pub error_code: Option<i64>,
    /// Its original length, before redaction.
    pub length: u64,
    /// Its stored body.
    pub body: Body,
    /// Its number among the messages of its process, for later entries to refer to; 0 if none does.
    pub number: u64,
    /// True for the gateway's own traffic: handshakes, lists, pings.
    pub own: bool,
    /// The number of the message that this one repeats.
    pub again: Option<NonZeroU64>,
    /// Why it did not reach its receiver or was useless to it, if so.
    pub lost: Option<Cow<'static, str>>,
    /// True if something was redacted.
    pub redacted: bool,
    /// The transport's data about it, if known.
    pub carried: Option<Arc<Carried>>,
}

impl MessageEntry {
    /// A message with nothing else known.
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

/// The stored body of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// All of it.
    Whole(Bytes),
    /// The body of an earlier entry with its middle replaced: `prefix` bytes of it, `middle`, `suffix` bytes of it. An equal
    /// image has an empty middle and a prefix of its whole length.
    Like {
        /// The earlier entry, whose body is whole.
        seq: u64,
        /// How many of its first bytes are kept.
        prefix: u64,
        /// How many of its last bytes are kept.
        suffix: u64,
        /// What stands between.
        middle: Bytes,
    },
    /// Nothing: bodies are not recorded, or this one was too large.
    Left,
}
