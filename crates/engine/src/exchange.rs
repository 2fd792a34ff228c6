//! A client's request from arrival to outcome, and the call that leaves for a backend because of it.

use crate::caller::Caller;
use crate::catalog::NameStyle;
use crate::dialect;
use crate::front::CompletedTemplate;
use crate::keys::{ExchangeId, SessionKey, StreamId};
use crate::log_level::LogLevel;
use crate::profile::ClientProfile;
use crate::read_cache::Generation;
use crate::subject_names::{SubjectNames, style_of};
use crate::trace::{CallTrace, Trace};
use bytes::Bytes;
use signalbox_wire::header_params::ParamHeader;
use signalbox_wire::{Edits, Envelope, Era, RawId, Span, json, method};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// Method name, borrowed if MCP defines it.
pub type MethodName = Cow<'static, str>;

/// State of one client request while it is in flight.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Id of the exchange, unique in the process.
    pub id: ExchangeId,
    /// Session of the exchange.
    pub session: SessionKey,
    /// Sender of the request, on whose behalf it runs.
    pub caller: Caller,
    /// Exchange of the call's first round, which may be this one.
    pub operation: ExchangeId,
    /// Round of that call, starting at 1.
    pub round: u32,
    /// Number of times the request was sent to its backend, including this one.
    pub attempt: u32,
    /// True if the request was held and then let through.
    pub consulted: bool,
    /// True if its answer asks the client for more input.
    pub asks: bool,
    /// Id as the client wrote it.
    pub client_id: RawId,
    /// Stream for the answer.
    pub stream: StreamId,
    /// False once the client has closed that stream.
    pub stream_open: bool,
    /// Era of the request.
    pub era: Era,
    /// Profile declared by the client with this request (new era) or when its session began.
    pub client: Option<Arc<ClientProfile>>,
    /// Minimum level of log messages for the client; in the new era each request names it.
    pub log_level: Option<LogLevel>,
    /// Method as the client wrote it.
    pub method: MethodName,
    /// Exposed name or URI that the request is about.
    pub subject: Option<Box<str>>,
    /// Name or URI in the client's request, if interceptors turned it into a request for another entry.
    pub asked_name: Option<Box<str>>,
    /// The backend's own name for the subject.
    pub own_name: Option<Box<str>>,
    /// True for a completion about a resource, whose subject is a URI.
    pub completes_resource: bool,
    /// Template of which it completes a variable, if the caller may not use every URI.
    pub completed_template: Option<Box<CompletedTemplate>>,
    /// Backend that it was routed to.
    pub backend: Option<Arc<str>>,
    /// The client's progress token, raw.
    pub progress_token: Option<RawId>,
    /// URI pair (the backend's, the exposed one) to write back into the answer.
    pub renamed_uri: Option<(Box<str>, Box<str>)>,
    /// The backend's URI of a plain read and its generation, if the result may be cached.
    pub read: Option<(Box<str>, Generation)>,
    /// Last progress reported to the client while the call was held, in seconds.
    pub held_progress: u64,
    /// True if the client asked for a task of the 2025-11-25 kind.
    pub wants_task: bool,
    /// Time at which the request arrived.
    pub started: Instant,
    /// Size of the request in bytes.
    pub bytes_in: usize,
    /// Trace of the request, if it is traced.
    pub trace: Option<Box<Trace>>,
    /// Subject of the request, if it was refused before a route was found.
    pub unreached: Option<Box<RefusedSubject>>,
}

/// Subject of a request that was refused before a route was found. It is separate from [`Exchange::subject`], which
/// names an existing entry, because metrics and tallies are kept by that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedSubject {
    /// The name or URI, at most [`RefusedSubject::MAX_NAME`] characters of it.
    pub name: Box<str>,
    /// Reason why there is no route.
    pub absence: Absence,
}

impl RefusedSubject {
    /// Maximum number of characters stored of a name.
    pub const MAX_NAME: usize = 500;
}

/// Reason why a request has no route. It is not shown to the caller.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Absence {
    /// The request was refused before its route was looked up.
    NotSought,
    /// No backend has the entry, and the caller has no limits.
    Unknown,
    /// No backend has the entry, and permissions limit the caller.
    UnknownToLimited,
    /// A backend has the entry, and the caller must not know of it.
    Hidden,
    /// A backend has the entry, and a switch has turned the entry or the caller off.
    SwitchedOff,
}

impl Exchange {
    /// Returns all names of its subject.
    #[must_use]
    pub fn subject_names(&self) -> Option<SubjectNames<'_>> {
        let own = self.own_name.as_deref().or(self.subject.as_deref())?;
        Some(SubjectNames::new(self.style(), own.into(), self.backend.as_deref()))
    }

    /// Returns true if neither MCP nor the governed dialect defines its method, so that only its backend knows its
    /// effect.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        is_foreign(&self.method)
    }

    /// Returns the naming style of its subject.
    #[must_use]
    pub fn style(&self) -> NameStyle {
        if self.completes_resource { NameStyle::Uri } else { style_of(&self.method) }
    }
}

/// Returns true if neither MCP nor the governed dialect defines this method. A message with such a method is judged
/// like a call of a tool of that name.
pub(crate) fn is_foreign(name: &str) -> bool {
    method::direction(name).is_none() && !dialect::is_own(name)
}

/// Request on its way to a backend: the client's bytes and the edits gathered so far, which are applied once at the
/// very end.
#[derive(Clone, Debug)]
pub struct Call {
    /// The client's message, unmodified.
    pub envelope: Envelope,
    /// Changes for the backend.
    pub edits: Edits,
    /// Profile that the client declared.
    pub client: Arc<ClientProfile>,
    /// Method of the request.
    pub method: MethodName,
    /// The backend's name or URI for the subject, for `Mcp-Name`.
    pub name: Option<Box<str>>,
    /// Span of the progress token's value.
    pub progress: Option<Span>,
    /// Arguments that must be mirrored into headers toward a 2026-07-28 backend.
    pub param_headers: Option<Arc<[ParamHeader]>>,
    /// Era of the client's request.
    pub era: Era,
    /// Minimum level of log messages for the caller.
    pub log_level: Option<LogLevel>,
    /// Answers and state of a later round.
    pub round: Option<RoundSpans>,
    /// Trace context for the backend, if the call is traced.
    pub trace: Option<Arc<CallTrace>>,
    /// Number of retries because the call certainly had not reached the backend.
    pub tries: u32,
    /// True once the client has agreed to sign in at the backend. The call then waits for the end of the sign-in.
    pub awaits_sign_in: bool,
}

impl Call {
    /// Builds a call with a copy of this request, whose answer is only recorded. `None` if it has no method.
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

    /// Returns the client's answers to the questions of an earlier round, as the interceptors passed them.
    #[must_use]
    pub fn responses(&self) -> Bytes {
        let sent = self.edits.apply(self.envelope.bytes());
        let span = json::path(&sent, &["params", "inputResponses"]);
        span.map_or_else(|| Bytes::from_static(b"{}"), |span| sent.slice(span.range()))
    }
}

/// Spans of the answers and the state in a later round of the new era.
#[derive(Copy, Clone, Default, Debug)]
pub struct RoundSpans {
    /// Span of `params.inputResponses`, if present.
    pub responses: Option<Span>,
    /// Span of `params.requestState`, if present.
    pub state: Option<Span>,
}
