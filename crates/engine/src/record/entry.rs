use super::around::{BackendSeen, ClientEntry, Gap, LostEntry, RefusedEntry, RulesEntry, SessionInfo};
use super::message::MessageEntry;
use std::borrow::Cow;
use std::sync::Arc;

/// One thing that happened, at its place in the order of its tape.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its sequence number: starts at 1 and grows by one, gaps included.
    pub seq: u64,
    /// When, in nanoseconds since 1970, on a clock that does not go backwards within a tape.
    pub at: u64,
    /// The session, by its number in the process; none for a request that belongs to no session.
    pub session: Option<u64>,
    /// The exchange, by its number in the process.
    pub exchange: Option<u64>,
    /// The caller.
    pub principal: Arc<str>,
    /// What happened.
    pub content: Content,
    /// Its hash in the chain of the tape, as `signalbox_seal::EntrySeal` writes it; none if the tape is not sealed.
    pub seal: Option<Box<[u8]>>,
}

impl Entry {
    /// An entry of no session and no exchange.
    #[must_use]
    pub fn new(seq: u64, at: u64, principal: Arc<str>, content: Content) -> Self {
        Self { seq, at, session: None, exchange: None, principal, content, seal: None }
    }
}

/// The content of an entry.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// A session began, or more became known about it; a later entry replaces the earlier one.
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
    /// The first appearance of a caller without a session.
    Client(ClientEntry),
    /// A backend's offer became known, or changed.
    Backend(Box<BackendSeen>),
    /// The rules changed.
    Rules(RulesEntry),
    /// A recorded message did not arrive after all.
    Lost(LostEntry),
    /// Something was refused before it became an exchange.
    Refused(RefusedEntry),
}

/// A decision about a message, by whom and on what grounds: enough to repeat it without the message.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct DecisionEntry {
    /// The interceptor, or the part of the gateway (`route`, `breaker`, `timeout`).
    pub by: Cow<'static, str>,
    /// The rule, if it was one.
    pub rule: Option<Arc<str>>,
    /// `request`, `response` or `notification`.
    pub phase: Cow<'static, str>,
    /// What was decided: `pass`, `modify`, `reply`, `refuse`, `delay`, `hold`, `released`, `fork`, `log`, …
    pub verdict: Cow<'static, str>,
    /// More about it, for a person.
    pub detail: String,
    /// Each condition that was looked at, in the words of the rule, and whether it held.
    pub conditions: Arc<[(Arc<str>, bool)]>,
    /// Each outside input it used (`webhook`, `limiter`, `random`, `clock`, `human`, …) and what that was.
    pub inputs: Vec<(Cow<'static, str>, String)>,
    /// True if something was redacted.
    pub redacted: bool,
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
    /// The exchange of its operation's first round, if that is another one.
    pub operation: Option<u64>,
    /// Which round of its operation it is; the first is 1.
    pub round: u32,
    /// The number of its caller's [`ClientEntry`], if there is no session.
    pub client: Option<u64>,
    /// True if something was redacted.
    pub redacted: bool,
}

impl Default for FinishedEntry {
    fn default() -> Self {
        Self {
            method: Arc::default(),
            subject: None,
            backend: None,
            outcome: Cow::Borrowed(""),
            took: 0,
            bytes_in: 0,
            bytes_out: 0,
            operation: None,
            round: 1,
            client: None,
            redacted: false,
        }
    }
}
