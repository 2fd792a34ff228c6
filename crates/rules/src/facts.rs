//! Facts about a message that rules can use, and lookups in the message.

use crate::candidate::Beginning;
use crate::limits;
use crate::pointer::{Pointer, follow};
use signalbox_engine::Caller;
use signalbox_engine::catalog::NameStyle;
use signalbox_engine::catalog::{Audience, Visibility};
use signalbox_engine::chain::{Case, Phase};
use signalbox_engine::keys::{ExchangeId, SessionKey};
use signalbox_engine::message_redactor::{MessageRedactor, RedactedMessage};
use signalbox_engine::standing::SubjectToken;
use signalbox_engine::subject_names::{SubjectNames, style_of};
use signalbox_wire::completion_ref::{self, ReferenceKind};
use signalbox_wire::{Envelope, Span, json, method};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// Part of a message in which a pointer starts.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Root {
    /// Params of a request. For an answer, those of its request.
    Params,
    Result,
    Error,
}

impl Root {
    /// Returns the member's name in the message.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

/// Facts about a message beyond its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFacts<'a> {
    pub phase: Phase,
    /// Round of its call.
    pub round: u32,
    /// Method of the request that an answer belongs to.
    pub asked: Option<&'a str>,
    /// Tool, prompt or URI as the client named it.
    pub subject: Option<&'a str>,
    /// Backend's own name for the subject, if known.
    pub own_name: Option<&'a str>,
    /// Set for a completion request about a resource.
    pub completes_resource: bool,
    pub backend: Option<&'a str>,
    pub principal: &'a str,
    /// Page that the caller acts for, if it is not only itself.
    pub page: Option<&'a str>,
    /// Caller's token, if the backend is called with one exchanged for it.
    pub token: Option<&'a SubjectToken>,
    pub session: Option<&'a str>,
    pub session_age: Duration,
    pub revision: Option<&'a str>,
    pub exchange: Option<(SessionKey, ExchangeId)>,
    /// The exchange of the first round of the call that the message belongs to.
    pub call: Option<ExchangeId>,
    pub now: Instant,
    pub unix_ms: u64,
    /// Request of an answer, if a rule needs it.
    pub request: Option<&'a Envelope>,
    /// Set for a task's result, which arrives long after its request.
    pub by_task: bool,
    /// Redaction of a recorded message, or `None` for a live one.
    pub hidden: Option<&'a Hidden<'a>>,
    /// Redactor for texts that quote the message and are logged or recorded.
    pub redactor: Option<&'a dyn MessageRedactor>,
    /// Audience of the caller, or `None` if all callers see the same entries.
    pub audience: Option<AudienceLookup<'a>>,
}

/// Finds the audience that a caller belongs to.
#[derive(Clone, Copy)]
pub(crate) struct AudienceLookup<'a> {
    pub visibility: &'a dyn Visibility,
    pub caller: &'a Caller,
}

impl AudienceLookup<'_> {
    pub fn audience(&self) -> Audience {
        self.visibility.audience(self.caller)
    }
}

impl std::fmt::Debug for AudienceLookup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AudienceLookup").field("caller", self.caller.principal()).finish_non_exhaustive()
    }
}

/// Prefix of a session id in a recording, which stores a hash.
const HASHED: &str = "hmac:";

/// Returns `true` if a recorded value may differ from the original because of redaction.
pub type Hides<'a> = &'a dyn Fn(Option<&[u8]>) -> bool;

/// Tracks if a rule read a redacted value.
pub(crate) struct Hidden<'a> {
    hides: Option<Hides<'a>>,
    seen: Cell<bool>,
}

impl<'a> Hidden<'a> {
    pub fn new(hides: Option<Hides<'a>>) -> Self {
        Self { hides, seen: Cell::new(false) }
    }

    fn check_value(&self, value: Option<&[u8]>) {
        if self.hides.is_some_and(|hides| hides(value)) {
            self.seen.set(true);
        }
    }

    /// Returns `true` if a rule read a value that may differ from the original.
    pub fn seen(&self) -> bool {
        self.seen.get()
    }
}

impl std::fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hidden").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<'a> MessageFacts<'a> {
    pub fn of(case: &Case<'a>) -> Self {
        // An evicted call is known only by its result.
        let exchange = case.exchange.filter(|exchange| !case.by_task || exchange.subject.is_some());
        Self {
            phase: case.phase,
            round: case.round,
            asked: case.exchange.map(|exchange| exchange.method.as_ref()),
            subject: case.exchange.and_then(|exchange| exchange.subject.as_deref()),
            own_name: case.exchange.and_then(|exchange| exchange.own_name.as_deref()),
            completes_resource: case.exchange.is_some_and(|exchange| exchange.completes_resource),
            backend: case.backend,
            principal: case.caller.principal().as_str(),
            page: (case.acts_for != case.caller.principal()).then(|| case.acts_for.as_str()),
            token: case.caller.subject_token(),
            session: case.session,
            session_age: case.now.saturating_duration_since(case.session_started),
            revision: case.revision,
            exchange: exchange.map(|exchange| (exchange.session, exchange.id)),
            call: exchange.map(|exchange| exchange.operation),
            now: case.now,
            unix_ms: case.unix_ms,
            request: None,
            by_task: case.by_task,
            hidden: None,
            redactor: None,
            audience: None,
        }
    }

    /// Returns `true` if the tool of a task's call is no longer known.
    pub fn lacks_subject(&self) -> bool {
        self.by_task && self.subject.is_none()
    }

    /// Returns `true` if the request of a task's call is no longer known.
    pub fn lacks_request(&self) -> bool {
        self.by_task && self.request.is_none()
    }

    /// Returns the message's method. For an answer, that of its request.
    pub fn method(&self, message: &'a Envelope) -> Option<&'a str> {
        message.method().or(self.asked)
    }
}

/// Cached location of a value.
#[derive(Copy, Clone)]
enum CachedLookup {
    NotYet,
    Nowhere,
    At(Span, Option<Beginning>),
}

/// Parts of a message that texts which are logged or recorded may quote.
pub(crate) enum Quotable {
    /// All values of the original messages.
    All,
    /// The values that are left in these copies.
    Redacted {
        message: Envelope,
        request: Option<Envelope>,
    },
    Nothing,
}

/// Message as seen by the rules. Caches every lookup.
pub(crate) struct MessageView<'a> {
    pub facts: &'a MessageFacts<'a>,
    pub message: &'a Envelope,
    memo: RefCell<SmallVec<[CachedLookup; 8]>>,
    subject: std::cell::OnceCell<Option<Cow<'a, str>>>,
    names: std::cell::OnceCell<Option<SubjectNames<'a>>>,
    /// Number of bytes read so far.
    work: Cell<usize>,
    /// Set if a condition needed information that is no longer known.
    guessed: Cell<bool>,
}

impl<'a> MessageView<'a> {
    pub fn new(facts: &'a MessageFacts<'a>, message: &'a Envelope, work: usize) -> Self {
        let (subject, names) = Default::default();
        Self {
            facts,
            message,
            memo: RefCell::default(),
            subject,
            names,
            work: Cell::new(work),
            guessed: Cell::new(false),
        }
    }

    pub fn method(&self) -> Option<&'a str> {
        self.facts.method(self.message)
    }

    /// Returns what texts that are logged or recorded may quote.
    pub fn quotable(&self) -> Quotable {
        let Some(redactor) = self.facts.redactor else { return Quotable::All };
        let redacted = |message: &Envelope, method| match redactor.redact(message.bytes(), method) {
            RedactedMessage::Same => Some((message.clone(), false)),
            RedactedMessage::Changed(bytes) => Envelope::parse(bytes).ok().map(|message| (message, true)),
            RedactedMessage::Withheld => None,
        };
        let request = self.facts.request.map(|request| redacted(request, request.method()));
        match (redacted(self.message, self.method()), request) {
            (None, _) | (_, Some(None)) => Quotable::Nothing,
            (Some((_, false)), None | Some(Some((_, false)))) => Quotable::All,
            (Some((message, _)), request) => {
                Quotable::Redacted { message, request: request.flatten().map(|(request, _)| request) }
            }
        }
    }

    /// Adds to the number of bytes read.
    pub fn add_work(&self, bytes: usize) {
        self.work.set(self.work.get().saturating_add(bytes));
    }

    pub fn work(&self) -> usize {
        self.work.get()
    }

    /// Records that a condition had to be guessed.
    pub fn guess(&self) {
        self.guessed.set(true);
    }

    /// Returns and clears the mark for a guessed condition.
    pub fn take_guess(&self) -> bool {
        self.guessed.take()
    }

    pub fn exceeds_work_limit(&self) -> bool {
        self.work.get() > limits::WORK
    }

    /// Returns the tool, prompt or URI: from the message for a request, otherwise as the client named it.
    pub fn subject(&self) -> Option<&str> {
        let find = || match self.facts.phase {
            Phase::Request => subject_of(self.message).or(self.facts.subject.map(Cow::Borrowed)),
            _ => self.facts.subject.map(Cow::Borrowed),
        };
        let subject = self.subject.get_or_init(find).as_deref();
        self.track_redaction(subject.map(str::as_bytes));
        subject
    }

    /// Returns all names of the subject. If an earlier rule changed it, only the message tells its name.
    pub fn names(&self) -> Option<&SubjectNames<'a>> {
        let find = || {
            let (subject, facts) = (self.subject()?, self.facts);
            let style = self.style();
            if let Some(own) = facts.own_name.filter(|_| facts.subject == Some(subject)) {
                return Some(SubjectNames::new(style, own.into(), facts.backend));
            }
            let spelled = SubjectNames::divided(style, subject);
            Some(spelled.unwrap_or_else(|| SubjectNames::new(style, subject.to_owned().into(), facts.backend)))
        };
        self.names.get_or_init(find).as_ref()
    }

    fn style(&self) -> NameStyle {
        let name = self.method().unwrap_or_default();
        let referenced = || reference_of(self.message).map(|(kind, _)| kind == ReferenceKind::Resource);
        let resource = match name == method::COMPLETION_COMPLETE && self.facts.phase == Phase::Request {
            true => referenced().unwrap_or(self.facts.completes_resource),
            false => self.facts.completes_resource,
        };
        if resource { NameStyle::Uri } else { style_of(name) }
    }

    /// Returns a value of the message. `slot` is the cache slot of this pointer.
    pub fn value(&self, root: Root, pointer: &Pointer, slot: usize, slots: usize) -> Option<&'a [u8]> {
        let message = self.holder(root)?;
        let mut memo = self.memo.borrow_mut();
        if memo.is_empty() {
            memo.resize(slots, CachedLookup::NotYet);
        }
        let looked = memo.get(slot).copied().unwrap_or(CachedLookup::NotYet);
        let found = match looked {
            CachedLookup::At(span, _) => Some(span),
            CachedLookup::Nowhere => None,
            CachedLookup::NotYet => {
                let found = self.look(message, root, pointer);
                if let Some(place) = memo.get_mut(slot) {
                    let told = |span: Span| CachedLookup::At(span, Beginning::of_token(span.of(message.bytes())));
                    *place = found.map_or(CachedLookup::Nowhere, told);
                }
                found
            }
        };
        self.track_redaction(found.map(|span| span.of(message.bytes())))
    }

    /// Returns the session's id. It is a credential, so recordings store a hash.
    pub fn session(&self) -> Option<&'a str> {
        if let Some(hidden) = self.facts.hidden {
            hidden.seen.set(hidden.seen() || self.facts.session.is_some_and(|id| id.starts_with(HASHED)));
        }
        self.facts.session
    }

    /// Passes a value through and tracks if it is redacted.
    fn track_redaction<'v>(&self, value: Option<&'v [u8]>) -> Option<&'v [u8]> {
        if let Some(hidden) = self.facts.hidden {
            hidden.check_value(value);
        }
        value
    }

    /// Returns the cached start of a text, if known.
    pub fn beginning(&self, slot: usize) -> Option<Beginning> {
        match self.memo.borrow().get(slot) {
            Some(CachedLookup::At(_, beginning)) => *beginning,
            _ => None,
        }
    }

    /// Looks up a value without caching its location.
    pub fn seek(&self, root: Root, pointer: &Pointer) -> Option<&'a [u8]> {
        let message = self.holder(root)?;
        self.track_redaction(self.look(message, root, pointer).map(|span| span.of(message.bytes())))
    }

    fn holder(&self, root: Root) -> Option<&'a Envelope> {
        match (root, self.facts.phase) {
            (Root::Params, Phase::Response | Phase::ClientAnswers | Phase::FromGateway) => self.facts.request,
            _ => Some(self.message),
        }
    }

    fn look(&self, message: &Envelope, root: Root, pointer: &Pointer) -> Option<Span> {
        let whole = match root {
            Root::Params => message.params_span(),
            Root::Result => message.result_span(),
            Root::Error => message.error_span(),
        }?;
        // Skipping over values is several times faster than reading them.
        self.add_work(whole.len() / 8);
        let [first, rest @ ..] = pointer.segments() else { return Some(whole) };
        // The parser has already located the members of the params and the result.
        let is_object = message.bytes().get(whole.start as usize) == Some(&b'{');
        let start = match root {
            Root::Params if is_object => message.param(first)?,
            Root::Result if is_object => message.result_member(first)?,
            _ => return pointer.find(message.bytes(), whole),
        };
        follow(rest, message.bytes(), start)
    }

    /// Returns the code of an error.
    pub fn error_code(&self) -> Option<i64> {
        let error = self.message.error()?;
        std::str::from_utf8(json::member(error, "code")?.of(error)).ok()?.parse().ok()
    }

    /// Returns the message of an error.
    pub fn error_text(&self) -> Option<Cow<'a, str>> {
        let error = self.message.error()?;
        json::string(self.track_redaction(json::member(error, "message").map(|span| span.of(error)))?)
    }
}

/// Returns the subject of a request, depending on its method.
pub(crate) fn subject_of(message: &Envelope) -> Option<Cow<'_, str>> {
    let text = |span: Span| json::string(span.of(message.bytes()));
    match message.method()? {
        "tools/call" | "prompts/get" => text(message.param("name")?),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => text(message.param("uri")?),
        method::COMPLETION_COMPLETE => text(reference_of(message)?.1),
        _ => None,
    }
}

/// Returns the kind of reference in a completion request, and the span of its name.
fn reference_of(message: &Envelope) -> Option<(ReferenceKind, Span)> {
    let outer = message.param("ref")?;
    let (kind, span) = completion_ref::read(outer.of(message.bytes())).ok()?;
    Some((kind, span.shift(outer.start)))
}
