//! One line of a tape.

use crate::fact::Point;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

/// One thing that happened, at its place in the order of its tape.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its place: starts at 1 and grows by one, gaps included.
    pub seq: u64,
    /// When, in nanoseconds since 1970, on a clock that does not go backwards within a tape.
    pub at: u64,
    /// The session, by its number in the tape; none for a request that belongs to no session.
    pub session: Option<u64>,
    /// The exchange, by its number in the tape.
    pub exchange: Option<u64>,
    /// On whose behalf.
    pub principal: Arc<str>,
    /// What happened.
    pub content: Content,
}

/// What an entry tells.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// A session began, or more became known of it; the later entry replaces the earlier one.
    Session(SessionInfo),
    /// A session ended.
    SessionEnded,
    /// A message passed a point.
    Message(MessageEntry),
    /// All that was decided about a message at one time, in order.
    Decisions(Vec<Arc<DecisionEntry>>),
    /// An exchange is over.
    Finished(FinishedEntry),
    /// Something is missing here.
    Gap(Gap),
}

/// What is known of a session.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SessionInfo {
    /// The id that the client was given.
    pub external: Option<String>,
    /// The client's name for itself.
    pub client: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
    /// The revision spoken.
    pub revision: Option<String>,
    /// How the client came: `http`, `stdio`, `websocket`, `sse`, `tcp`.
    pub transport: String,
}

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
    /// The backend, where it came from or goes to one.
    pub backend: Option<Arc<str>>,
    /// The code of an error.
    pub error_code: Option<i64>,
    /// Its length as it passed, which redaction may have changed since.
    pub length: u64,
    /// What is kept of it.
    pub body: Body,
}

/// What is kept of a message.
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

/// What was decided about a message, by whom and from what: enough to judge it again without the message.
#[derive(Clone, PartialEq, Debug)]
pub struct DecisionEntry {
    /// The interceptor, or the part of the gateway (`route`, `breaker`, `timeout`).
    pub by: Cow<'static, str>,
    /// The rule, where it was one.
    pub rule: Option<Arc<str>>,
    /// `request`, `response` or `notification`.
    pub phase: Cow<'static, str>,
    /// What was decided: `pass`, `modify`, `reply`, `refuse`, `delay`, `hold`, `released`, `fork`, …
    pub verdict: Cow<'static, str>,
    /// More about it, for a person.
    pub detail: String,
    /// Each condition that was looked at, in the words of the rule, and whether it held.
    pub conditions: Arc<[(Arc<str>, bool)]>,
    /// Each outside input it used (`webhook`, `limiter`, `random`, `clock`, `human`, …) and what that was.
    pub inputs: Vec<(Cow<'static, str>, String)>,
}

/// The end of an exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct FinishedEntry {
    /// The method.
    pub method: Arc<str>,
    /// The tool, prompt or URI, as the client knows it.
    pub subject: Option<Arc<str>>,
    /// The backend.
    pub backend: Option<Arc<str>>,
    /// How it ended, as [`crate::fact::Outcome::label`] says.
    pub outcome: Cow<'static, str>,
    /// How long it took, in nanoseconds.
    pub took: u64,
    /// Bytes of the request.
    pub bytes_in: u64,
    /// Bytes of the answer.
    pub bytes_out: u64,
}

/// What is missing, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// How many facts.
    pub facts: u64,
    /// Why: `queue_full`, `disk`, `sampled`, …
    pub reason: String,
}
