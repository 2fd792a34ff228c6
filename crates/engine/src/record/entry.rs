use super::around::{BackendOffer, ClientEntry, Gap, LostEntry, RefusedEntry, RulesEntry, SessionInfo};
use super::message::MessageEntry;
use std::borrow::Cow;
use std::sync::Arc;

/// Event at its place in the order of its tape.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Sequence number: starts at 1 and grows by one, gaps included.
    pub seq: u64,
    /// Time in nanoseconds since 1970, on a clock that does not go backwards within a tape.
    pub at: u64,
    /// Session, by its number in the process; `None` for a request without a session.
    pub session: Option<u64>,
    /// Exchange, by its number in the process.
    pub exchange: Option<u64>,
    /// Principal of the caller.
    pub principal: Arc<str>,
    /// Event that is recorded.
    pub content: Content,
    /// Hash in the chain of the tape, as written by `signalbox_seal::EntrySeal`; `None` if the tape is not sealed.
    pub seal: Option<Box<[u8]>>,
}

impl Entry {
    /// Creates an entry without a session or an exchange.
    #[must_use]
    pub fn new(seq: u64, at: u64, principal: Arc<str>, content: Content) -> Self {
        Self { seq, at, session: None, exchange: None, principal, content, seal: None }
    }
}

/// Content of an entry.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// A session began, or more became known about it; a later entry replaces the earlier one.
    Session(SessionInfo),
    /// The session of the entry ended.
    SessionEnded,
    /// A message passed a point.
    Message(MessageEntry),
    /// Decisions about a message at one time, in order.
    Decisions(Vec<Arc<DecisionEntry>>),
    /// An exchange ended, with its outcome.
    Finished(FinishedEntry),
    /// Facts are missing here.
    Gap(Gap),
    /// A caller without a session appeared for the first time.
    Client(ClientEntry),
    /// A backend's offer became known, or changed.
    Backend(Box<BackendOffer>),
    /// Other rules took effect.
    Rules(RulesEntry),
    /// A recorded message did not arrive after all.
    Lost(LostEntry),
    /// A request was refused before it became an exchange.
    Refused(RefusedEntry),
}

/// Decision about a message with its grounds: enough to repeat it without the message.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct DecisionEntry {
    /// Interceptor, or part of the gateway (`route`, `breaker`, `timeout`), that decided.
    pub by: Cow<'static, str>,
    /// Rule that decided, if it was one.
    pub rule: Option<Arc<str>>,
    /// `request`, `response` or `notification`.
    pub phase: Cow<'static, str>,
    /// The verdict as a word: `pass`, `modify`, `reply`, `refuse`, `delay`, `hold`, `released`, `fork`, `log`, …
    pub verdict: Cow<'static, str>,
    /// Detail for a person.
    pub detail: String,
    /// Each condition that was evaluated, in the words of the rule, and its result.
    pub conditions: Arc<[(Arc<str>, bool)]>,
    /// Each outside input (`webhook`, `limiter`, `random`, `clock`, `human`, …) with its value.
    pub inputs: Vec<(Cow<'static, str>, String)>,
    /// True if anything was redacted.
    pub redacted: bool,
}

/// Value of [`DecisionEntry::by`] in notes about calls that are on two tapes.
const RECORDER: &str = "recorder";
// Verdicts of such notes, and the input that names the other tape.
const CONTINUES: &str = "continues";
const RESUMED: &str = "resumed";
const TAPE: &str = "tape";

impl DecisionEntry {
    /// Creates a note at the end of a tape about a call that continues on the tape with this id.
    #[must_use]
    pub fn continues_on(tape: &str) -> Self {
        Self::of_recorder(CONTINUES, tape, format!("the rest of this call is on tape {tape}"))
    }

    /// Creates a note before the first entry of a call that began on the tape with this id.
    #[must_use]
    pub fn begun_on(tape: &str) -> Self {
        Self::of_recorder(RESUMED, tape, format!("this call began on tape {tape}"))
    }

    fn of_recorder(verdict: &'static str, tape: &str, detail: String) -> Self {
        let inputs = vec![(Cow::Borrowed(TAPE), tape.to_owned())];
        Self { by: RECORDER.into(), phase: TAPE.into(), verdict: verdict.into(), detail, inputs, ..Self::default() }
    }

    /// Returns true if this is a note of the recorder and no decision.
    #[must_use]
    pub fn is_note(&self) -> bool {
        self.by == RECORDER && self.phase == TAPE
    }

    /// Returns the id of the tape with the rest of the call, if this is a note about that.
    #[must_use]
    pub fn tape_of_rest(&self) -> Option<&str> {
        self.other_tape(CONTINUES)
    }

    /// Returns the id of the tape with the beginning of the call, if this is a note about that.
    #[must_use]
    pub fn tape_of_beginning(&self) -> Option<&str> {
        self.other_tape(RESUMED)
    }

    fn other_tape(&self, verdict: &str) -> Option<&str> {
        let is_it = self.is_note() && self.verdict == verdict;
        self.inputs.first().filter(|_| is_it).map(|(_, tape)| tape.as_str())
    }
}

/// End of an exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct FinishedEntry {
    /// Method of the request.
    pub method: Arc<str>,
    /// The client's name or URI for the subject.
    pub subject: Option<Arc<str>>,
    /// Backend that the exchange was routed to.
    pub backend: Option<Arc<str>>,
    /// Outcome, as returned by [`crate::fact::Outcome::label`].
    pub outcome: Cow<'static, str>,
    /// Duration of the exchange, in nanoseconds.
    pub took: u64,
    /// Size of the request in bytes.
    pub bytes_in: u64,
    /// Size of the answer in bytes.
    pub bytes_out: u64,
    /// Exchange of the operation's first round, if that is another one.
    pub operation: Option<u64>,
    /// Round of its operation, starting at 1.
    pub round: u32,
    /// Number of the caller's [`ClientEntry`], if there is no session.
    pub client: Option<u64>,
    /// True if anything was redacted.
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
