//! One request from arrival to outcome, and the call that leaves for a backend because of it.

use crate::caller::Caller;
use crate::keys::{ExchangeId, SessionKey, StreamId};
use crate::log_level::LogLevel;
use crate::profile::ClientProfile;
use crate::read_cache::Generation;
use crate::subject_names::SubjectNames;
use crate::trace::{Trace, TraceSent};
use bytes::Bytes;
use signalbox_wire::header_params::ParamHeader;
use signalbox_wire::{Edits, Envelope, Era, RawId, Span, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// A method name, borrowed where MCP knows it.
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
    /// The exchange of the first round of the call that it goes on with, else itself.
    pub operation: ExchangeId,
    /// Which round of that call it is; the first is 1.
    pub round: u32,
    /// How often it was sent to its backend, this time included.
    pub attempt: u32,
    /// True where somebody was asked about it, and let it go on.
    pub consulted: bool,
    /// True where its answer asks the client for more.
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
    /// The least level of log messages it wants to hear of; in the new era each request says so.
    pub log_level: Option<LogLevel>,
    /// The method as the client asked it.
    pub method: MethodName,
    /// The exposed name or URI the request is about.
    pub subject: Option<Box<str>>,
    /// What its backend calls that.
    pub own_name: Option<Box<str>>,
    /// The backend it was routed to.
    pub backend: Option<Arc<str>>,
    /// The client's progress token, raw.
    pub progress_token: Option<RawId>,
    /// The URI pair (the backend's, ours) to write back into the answer.
    pub renamed_uri: Option<(Box<str>, Box<str>)>,
    /// The URI of a plain read, as the backend knows it, and what was known of its changes: its result may be kept.
    pub read: Option<(Box<str>, Generation)>,
    /// How far it is, as the client was told last.
    pub progress: f64,
    /// True where the client asked for a task of the 2025-11-25 kind.
    pub wants_task: bool,
    /// When it arrived.
    pub started: Instant,
    /// Bytes of the request.
    pub bytes_in: usize,
    /// The trace it belongs to, where somebody follows it.
    pub trace: Option<Box<Trace>>,
}

impl Exchange {
    /// All names of what it is about.
    #[must_use]
    pub fn subject_names(&self) -> Option<SubjectNames<'_>> {
        let own = self.own_name.as_deref().or(self.subject.as_deref())?;
        Some(SubjectNames::new(&self.method, own.into(), self.backend.as_deref()))
    }
}

/// A request on its way to a backend: the client's bytes and the edits gathered so far, applied once at the very end.
#[derive(Clone, Debug)]
pub struct Call {
    /// The client's message, untouched.
    pub envelope: Envelope,
    /// What has to be written differently for the backend.
    pub edits: Edits,
    /// What the client said about itself.
    pub client: Arc<ClientProfile>,
    /// The method.
    pub method: MethodName,
    /// The name or URI under which the backend knows the subject, for `Mcp-Name`.
    pub name: Option<Box<str>>,
    /// Where the progress token's value stands in the message.
    pub progress: Option<Span>,
    /// Arguments that must be mirrored into headers toward a 2026-07-28 backend.
    pub param_headers: Option<Arc<[ParamHeader]>>,
    /// The era of the client's request.
    pub era: Era,
    /// The least level of log messages its caller wants to hear of.
    pub log_level: Option<LogLevel>,
    /// What a second round of a call brings along.
    pub round: Option<RoundSpans>,
    /// What the backend is told of the trace it belongs to, where somebody follows it.
    pub trace: Option<Arc<TraceSent>>,
    /// How often it was tried again, since it had surely not reached the backend.
    pub tries: u32,
}

impl Call {
    /// A call that sends a copy of this request, whose answer nobody waits for. None where it has no method.
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
            client,
            envelope: message,
        })
    }

    /// What the client answers to the questions of an earlier round, as the interceptors let it pass.
    #[must_use]
    pub fn responses(&self) -> Bytes {
        let sent = self.edits.apply(self.envelope.bytes());
        let span = json::path(&sent, &["params", "inputResponses"]);
        span.map_or_else(|| Bytes::from_static(b"{}"), |span| sent.slice(span.range()))
    }
}

/// Where the answers and the state of a further round stand in a request of the new era.
#[derive(Copy, Clone, Default, Debug)]
pub struct RoundSpans {
    /// `params.inputResponses`.
    pub responses: Option<Span>,
    /// `params.requestState`.
    pub state: Option<Span>,
}
