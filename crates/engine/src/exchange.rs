//! A client's request from arrival to outcome, and the call that leaves for a backend because of it.

use crate::caller::Caller;
use crate::catalog::Style;
use crate::dialect;
use crate::front::CompletedTemplate;
use crate::keys::{ExchangeId, SessionKey, StreamId};
use crate::log_level::LogLevel;
use crate::profile::ClientProfile;
use crate::read_cache::Generation;
use crate::subject_names::{SubjectNames, style_of};
use crate::trace::{Trace, TraceSent};
use bytes::Bytes;
use signalbox_wire::header_params::ParamHeader;
use signalbox_wire::{Edits, Envelope, Era, RawId, Span, json, method};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// A method name, borrowed if MCP defines it.
pub type MethodName = Cow<'static, str>;

/// The state of one client request while it is in flight.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its number within the session.
    pub id: ExchangeId,
    /// The session it belongs to.
    pub session: SessionKey,
    /// Who sent it, and on whose behalf it runs.
    pub caller: Caller,
    /// The exchange of the call's first round, which may be this one.
    pub operation: ExchangeId,
    /// The round of that call; the first is 1.
    pub round: u32,
    /// How often it was sent to its backend, this time included.
    pub attempt: u32,
    /// True if a hold on it was answered and it was let through.
    pub consulted: bool,
    /// True if its answer asks the client for more.
    pub asks: bool,
    /// The id as the client wrote it.
    pub client_id: RawId,
    /// Where the answer goes.
    pub stream: StreamId,
    /// False once nobody reads that stream.
    pub stream_open: bool,
    /// The era of the request.
    pub era: Era,
    /// What the client said about itself with this request (new era) or when its session began.
    pub client: Option<Arc<ClientProfile>>,
    /// The least level of log messages it wants; in the new era each request says so.
    pub log_level: Option<LogLevel>,
    /// The method as the client asked it.
    pub method: MethodName,
    /// The exposed name or URI the request is about.
    pub subject: Option<Box<str>>,
    /// The name or URI in the client's request, if interceptors made a request for another entry of it.
    pub asked_name: Option<Box<str>>,
    /// The backend's own name for it.
    pub own_name: Option<Box<str>>,
    /// True for a completion about a resource, whose subject is a URI.
    pub completes_resource: bool,
    /// The template that it completes a variable of, if the caller may not use every URI.
    pub completed_template: Option<Box<CompletedTemplate>>,
    /// The backend it was routed to.
    pub backend: Option<Arc<str>>,
    /// The client's progress token, raw.
    pub progress_token: Option<RawId>,
    /// The URI pair (the backend's, ours) to write back into the answer.
    pub renamed_uri: Option<(Box<str>, Box<str>)>,
    /// The backend's URI of a plain read and its generation, if the result may be cached.
    pub read: Option<(Box<str>, Generation)>,
    /// The progress that the client was told last while the call was held, in seconds.
    pub held_progress: u64,
    /// True if the client asked for a task of the 2025-11-25 kind.
    pub wants_task: bool,
    /// When it arrived.
    pub started: Instant,
    /// Bytes of the request.
    pub bytes_in: usize,
    /// The trace it belongs to, if it is traced.
    pub trace: Option<Box<Trace>>,
    /// What it asked for, if it was refused before a route was found.
    pub unreached: Option<Box<Unreached>>,
}

/// Subject of a request that was refused before a route was found. Kept apart from [`Exchange::subject`], which names
/// an entry that exists: metrics and tallies are kept by that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreached {
    /// The name or URI, at most [`Unreached::MAX_NAME`] characters of it.
    pub name: Box<str>,
    /// Why there is no route.
    pub absence: Absence,
}

impl Unreached {
    /// Maximum number of characters kept of a name.
    pub const MAX_NAME: usize = 500;
}

/// Why a request has no route. The caller is not told which.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Absence {
    /// The request was refused before its route was looked up.
    NotSought,
    /// No backend has the entry, and nothing limits what the caller may use.
    Unknown,
    /// No backend has the entry, and permissions limit what the caller may use.
    UnknownToLimited,
    /// A backend has the entry, and the caller must not know of it.
    Hidden,
    /// The same, and a switch has turned the entry or the caller off.
    SwitchedOff,
}

impl Exchange {
    /// All names of its subject.
    #[must_use]
    pub fn subject_names(&self) -> Option<SubjectNames<'_>> {
        let own = self.own_name.as_deref().or(self.subject.as_deref())?;
        Some(SubjectNames::new(self.style(), own.into(), self.backend.as_deref()))
    }

    /// True if neither MCP nor the governed dialect has its method, so that its backend alone knows what it does.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        is_foreign(&self.method)
    }

    /// How its subject is named.
    #[must_use]
    pub fn style(&self) -> Style {
        if self.completes_resource { Style::Uri } else { style_of(&self.method) }
    }
}

/// True if neither MCP nor the governed dialect has this method. A message of such a method is judged like a call of a tool of
/// that name.
pub(crate) fn is_foreign(name: &str) -> bool {
    method::direction(name).is_none() && !dialect::is_own(name)
}

/// A request on its way to a backend: the client's bytes and the edits gathered so far, applied once at the very end.
#[derive(Clone, Debug)]
pub struct Call {
    /// The client's message, untouched.
    pub envelope: Envelope,
    /// The changes for the backend.
    pub edits: Edits,
    /// What the client said about itself.
    pub client: Arc<ClientProfile>,
    /// The method.
    pub method: MethodName,
    /// The name or URI under which the backend knows the subject, for `Mcp-Name`.
    pub name: Option<Box<str>>,
    /// The span of the progress token's value.
    pub progress: Option<Span>,
    /// Arguments that must be mirrored into headers toward a 2026-07-28 backend.
    pub param_headers: Option<Arc<[ParamHeader]>>,
    /// The era of the client's request.
    pub era: Era,
    /// The least level of log messages its caller wants.
    pub log_level: Option<LogLevel>,
    /// The answers and the state that a further round carries.
    pub round: Option<RoundSpans>,
    /// The trace context for the backend, if it is traced.
    pub trace: Option<Arc<TraceSent>>,
    /// How often it was retried, because it certainly had not reached the backend.
    pub tries: u32,
    /// True once its client has agreed to sign in at the backend: the call then waits for the end of the sign-in.
    pub awaits_sign_in: bool,
}

impl Call {
    /// A call with a copy of this request, whose answer nobody waits for. `None` if it has no method.
    #[must_use]
    pub fn copy_of(message: Envelope, client: Arc<ClientProfile>) -> Option<Self> {
        let name = message.method()?;
        let method: MethodName = message.known_method().map_or_else(|| name.to_owned().into(), Cow::Borrowed);
        let subject = message.param("name").or_else(|| message.param("uri"));
        let name = subject.and_then(|span| json::string(span.of(message.bytes()))).map(|name| name.into_owned().into());
        let era = client.revision.era();
        Some(Self {
            edits: Edits::new(),
            method,
            name,
            progress: message.param_meta("progressToken"),
            param_headers: None,
            era,
            log_level: None,
            round: None,
            trace: None,
            tries: 0,
            awaits_sign_in: false,
            client,
            envelope: message,
        })
    }

    /// The client's answers to the questions of an earlier round, as the interceptors passed them.
    #[must_use]
    pub fn responses(&self) -> Bytes {
        let sent = self.edits.apply(self.envelope.bytes());
        let span = json::path(&sent, &["params", "inputResponses"]);
        span.map_or_else(|| Bytes::from_static(b"{}"), |span| sent.slice(span.range()))
    }
}

/// Spans of the answers and the state in a further round of the new era.
#[derive(Copy, Clone, Default, Debug)]
pub struct RoundSpans {
    /// `params.inputResponses`.
    pub responses: Option<Span>,
    /// `params.requestState`.
    pub state: Option<Span>,
}
