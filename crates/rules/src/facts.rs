//! What a rule may know of a message, and how it looks into one.

use crate::candidate::Beginning;
use crate::limits;
use crate::pointer::{Pointer, follow};
use signalbox_engine::catalog::Style;
use signalbox_engine::chain::{Case, Phase};
use signalbox_engine::keys::{ExchangeId, SessionKey};
use signalbox_engine::standing::SubjectToken;
use signalbox_engine::subject_names::{SubjectNames, style_of};
use signalbox_wire::completion_ref::{self, Referenced};
use signalbox_wire::{Envelope, Span, json, method};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// The part of a message that a pointer starts in.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Root {
    /// The params; with an answer, those of its request.
    Params,
    /// The result.
    Result,
    /// The error object.
    Error,
}

impl Root {
    /// The member of the message.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

/// What is known besides the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFacts<'a> {
    pub phase: Phase,
    /// Which round of its call the message belongs to.
    pub round: u32,
    /// The method of the request that an answer belongs to.
    pub asked: Option<&'a str>,
    /// The tool, prompt or URI that the client asked for.
    pub subject: Option<&'a str>,
    /// What its backend calls that, where it is known.
    pub own_name: Option<&'a str>,
    /// True for a completion about a resource.
    pub completes_resource: bool,
    pub backend: Option<&'a str>,
    pub principal: &'a str,
    /// The caller's token, where a backend is reached with what it is exchanged for.
    pub token: Option<&'a SubjectToken>,
    pub session: Option<&'a str>,
    pub session_age: Duration,
    pub revision: Option<&'a str>,
    pub exchange: Option<(SessionKey, ExchangeId)>,
    pub now: Instant,
    pub unix_ms: u64,
    /// The request that an answer belongs to, where a rule needs it.
    pub request: Option<&'a Envelope>,
    /// True for a result that comes by a task, long after its request.
    pub by_task: bool,
    /// What the record of the message does not show; nothing for a message that is there.
    pub hidden: Option<&'a Hidden<'a>>,
}

/// How a record writes the id of a session.
const HASHED: &str = "hmac:";

/// Tells which values of a message are not what was sent, because they were taken out of its record.
pub type Hides<'a> = &'a dyn Fn(Option<&[u8]>) -> bool;

/// Notes whether a rule looked at such a value.
pub(crate) struct Hidden<'a> {
    hides: Option<Hides<'a>>,
    seen: Cell<bool>,
}

impl<'a> Hidden<'a> {
    pub fn new(hides: Option<Hides<'a>>) -> Self {
        Self { hides, seen: Cell::new(false) }
    }

    fn looked_at(&self, value: Option<&[u8]>) {
        if self.hides.is_some_and(|hides| hides(value)) {
            self.seen.set(true);
        }
    }

    /// True if a rule looked at a value that is not what was sent.
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
        // Of a call that is forgotten nothing is known but what its result says.
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
            token: case.caller.subject_token(),
            session: case.session,
            session_age: case.now.saturating_duration_since(case.session_started),
            revision: case.revision,
            exchange: exchange.map(|exchange| (exchange.session, exchange.id)),
            now: case.now,
            unix_ms: case.unix_ms,
            request: None,
            by_task: case.by_task,
            hidden: None,
        }
    }

    /// True if the tool of a task's call is not known any more.
    pub fn lacks_subject(&self) -> bool {
        self.by_task && self.subject.is_none()
    }

    /// True if the request of a task's call is not known any more.
    pub fn lacks_request(&self) -> bool {
        self.by_task && self.request.is_none()
    }

    /// The method: of a message that has none, that of the request it answers.
    pub fn method(&self, message: &'a Envelope) -> Option<&'a str> {
        message.method().or(self.asked)
    }
}

/// Where a value was found when it was first looked for.
#[derive(Copy, Clone)]
enum Looked {
    NotYet,
    Nowhere,
    At(Span, Option<Beginning>),
}

/// One message as the rules see it. Whatever is looked up is looked up once.
pub(crate) struct MessageView<'a> {
    pub facts: &'a MessageFacts<'a>,
    pub message: &'a Envelope,
    memo: RefCell<SmallVec<[Looked; 8]>>,
    subject: std::cell::OnceCell<Option<Cow<'a, str>>>,
    names: std::cell::OnceCell<Option<SubjectNames<'a>>>,
    /// How many bytes were read so far.
    work: Cell<usize>,
    /// True if a condition was asked about what is not known any more.
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

    /// Notes that this many bytes were read.
    pub fn worked(&self, bytes: usize) {
        self.work.set(self.work.get().saturating_add(bytes));
    }

    pub fn work(&self) -> usize {
        self.work.get()
    }

    /// Notes that a condition had to be guessed.
    pub fn guess(&self) {
        self.guessed.set(true);
    }

    /// True if a condition was guessed since this was last asked.
    pub fn take_guess(&self) -> bool {
        self.guessed.take()
    }

    pub fn tired(&self) -> bool {
        self.work.get() > limits::WORK
    }

    /// The tool, prompt or URI: of a request as the message has it, of anything else as the client asked.
    pub fn subject(&self) -> Option<&str> {
        let find = || match self.facts.phase {
            Phase::Request => subject_of(self.message).or(self.facts.subject.map(Cow::Borrowed)),
            _ => self.facts.subject.map(Cow::Borrowed),
        };
        let subject = self.subject.get_or_init(find).as_deref();
        self.shown(subject.map(str::as_bytes));
        subject
    }

    /// All names of the subject. A rule before may have changed it: then only the message tells what it is.
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

    fn style(&self) -> Style {
        let name = self.method().unwrap_or_default();
        let referenced = || reference_of(self.message).map(|(kind, _)| kind == Referenced::Resource);
        let resource = match name == method::COMPLETION_COMPLETE && self.facts.phase == Phase::Request {
            true => referenced().unwrap_or(self.facts.completes_resource),
            false => self.facts.completes_resource,
        };
        if resource { Style::Uri } else { style_of(name) }
    }

    /// A value of the message. `slot` is the place where this very pointer is remembered.
    pub fn value(&self, root: Root, pointer: &Pointer, slot: usize, slots: usize) -> Option<&'a [u8]> {
        let message = self.holder(root)?;
        let mut memo = self.memo.borrow_mut();
        if memo.is_empty() {
            memo.resize(slots, Looked::NotYet);
        }
        let looked = memo.get(slot).copied().unwrap_or(Looked::NotYet);
        let found = match looked {
            Looked::At(span, _) => Some(span),
            Looked::Nowhere => None,
            Looked::NotYet => {
                let found = self.look(message, root, pointer);
                if let Some(place) = memo.get_mut(slot) {
                    let told = |span: Span| Looked::At(span, Beginning::of_token(span.of(message.bytes())));
                    *place = found.map_or(Looked::Nowhere, told);
                }
                found
            }
        };
        self.shown(found.map(|span| span.of(message.bytes())))
    }

    /// The id of the session. It is a credential, so a record has a hash in its place.
    pub fn session(&self) -> Option<&'a str> {
        if let Some(hidden) = self.facts.hidden {
            hidden.seen.set(hidden.seen() || self.facts.session.is_some_and(|id| id.starts_with(HASHED)));
        }
        self.facts.session
    }

    /// Passes a value on, and notes it where the record of the message hides some.
    fn shown<'v>(&self, value: Option<&'v [u8]>) -> Option<&'v [u8]> {
        if let Some(hidden) = self.facts.hidden {
            hidden.looked_at(value);
        }
        value
    }

    /// The beginning of a text that was looked at before, where it can be told.
    pub fn beginning(&self, slot: usize) -> Option<Beginning> {
        match self.memo.borrow().get(slot) {
            Some(Looked::At(_, beginning)) => *beginning,
            _ => None,
        }
    }

    /// A value that is looked for where it is needed, without being remembered.
    pub fn seek(&self, root: Root, pointer: &Pointer) -> Option<&'a [u8]> {
        let message = self.holder(root)?;
        self.shown(self.look(message, root, pointer).map(|span| span.of(message.bytes())))
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
        // Stepping over values is several times quicker than reading them.
        self.worked(whole.len() / 8);
        let [first, rest @ ..] = pointer.segments() else { return Some(whole) };
        // The members of the params and the result are known from the reading of the message.
        let is_object = message.bytes().get(whole.start as usize) == Some(&b'{');
        let start = match root {
            Root::Params if is_object => message.param(first)?,
            Root::Result if is_object => message.result_member(first)?,
            _ => return pointer.find(message.bytes(), whole),
        };
        follow(rest, message.bytes(), start)
    }

    /// The code of an error.
    pub fn error_code(&self) -> Option<i64> {
        let error = self.message.error()?;
        std::str::from_utf8(json::member(error, "code")?.of(error)).ok()?.parse().ok()
    }

    /// The text of an error.
    pub fn error_text(&self) -> Option<Cow<'a, str>> {
        let error = self.message.error()?;
        json::string(self.shown(json::member(error, "message").map(|span| span.of(error)))?)
    }
}

/// What a request is about, by its method.
pub(crate) fn subject_of(message: &Envelope) -> Option<Cow<'_, str>> {
    let text = |span: Span| json::string(span.of(message.bytes()));
    match message.method()? {
        "tools/call" | "prompts/get" => text(message.param("name")?),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => text(message.param("uri")?),
        method::COMPLETION_COMPLETE => text(reference_of(message)?.1),
        _ => None,
    }
}

/// What a completion is about, and the span of its name.
fn reference_of(message: &Envelope) -> Option<(Referenced, Span)> {
    let outer = message.param("ref")?;
    let (kind, span) = completion_ref::read(outer.of(message.bytes())).ok()?;
    Some((kind, span.shift(outer.start)))
}
