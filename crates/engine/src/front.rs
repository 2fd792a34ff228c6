//! The front machine: everything the gateway does for one client.
//!
//! A client is a session of the old era, a pipe, or a single request of the new era ([`Mode`]). The machine consumes an
//! [`Event`] and appends the resulting [`Command`]s, which the runtime carries out. A pipe may mix both eras, so the
//! era of a request is determined before anything else.
//!
//! A session of the old era moves through its [`Lifecycle`], which decides which requests are admitted. It can be
//! closed in any state:
//!
//! ```text
//! Created ── initialize ──► Initializing ── notifications/initialized ──► Operational ──► Closed
//!    ▲                           │
//!    └─ refused by interceptors ─┘
//! ```
//!
//! Each admitted request becomes an [`Exchange`], which is in exactly one stage (`exchanges::Stage`) until it ends:
//!
//! ```text
//!                        ┌── AwaitingLists   the catalog lacks lists it needs;   back when they are known
//! Received ─► InFlight ◄─┼── Held            an interceptor asked a question;    back when it is answered
//!                │       ├── AwaitingInput   the backend wants input;            back when the client answered
//!                │       └── PollingTask     the backend made a task of it;      back when the task is over
//!                │            Listening      a `subscriptions/listen`;           stays until it is cancelled
//!                ▼
//!         finish (an answer or a fault) or cancel (nothing), from any stage
//! ```
//!
//! Invariants:
//!
//! - A request gets at most one answer. Only `finish` and `cancel` end an exchange, and both remove it together with
//!   its stage. A backend's answer that arrives later is dropped as `late_answer`.
//! - The client receives only what `FrontMachine::send` sends: messages judged by the interceptors, and the gateway's
//!   own.
//! - Exchanges ([`Context::max_in_flight`]), questions of backends ([`MAX_ASKED`]), subscriptions to renamed resources
//!   ([`MAX_FOLLOWED`]) and tasks ([`MAX_TASKS`]) are limited per session.
//! - A lost stream cancels the requests of the new era on it. Calls of the old era continue without it.
//!
//! The machine must never wait, read a clock or talk to a backend. The time and its view of the program come with the
//! [`Context`], and a call leaves as [`Command::Forward`].

mod answers;
mod completed_template;
mod consent;
mod context;
mod dialect;
mod effects;
mod ending;
mod endpoint_face;
mod exchanges;
mod facts;
mod holding;
mod initialize;
mod input_requests;
mod inward;
mod judging;
mod listen;
mod modern;
mod operations;
mod outward;
mod params;
mod polling;
mod questions;
mod requests;
mod resource_uris;
mod rounds;
mod sending;
mod sign_in;
mod subjects;
mod task_ownership;
mod task_registry;
mod task_requests;
mod task_results;
mod unreached;
mod withdrawn;

pub use completed_template::CompletedTemplate;
pub use context::Context;
pub use endpoint_face::EndpointFace;
pub use initialize::Lifecycle;
pub use judging::{AuthorizedCall, AuthorizedFollow};
pub use listen::NeededLists;
pub use modern::supported_versions;
pub use sending::ToClient;
pub use unreached::carries_content;

use crate::backend_user::BackendUser;
use crate::caller::{Caller, Principal};
use crate::capset::CapSet;
use crate::catalog::Selector;
use crate::chain::Effect;
use crate::command::Command;
use crate::event::Event;
use crate::exchange::{Exchange, MethodName};
use crate::fact::Point;
use crate::fault::{Fault, FaultKind};
use crate::keys::{ExchangeId, KeyMap, SessionKey, StreamId, TextMap};
use crate::limit::Limit;
use crate::log_level::LogLevel;
use crate::profile::ClientProfile;
use exchanges::Exchanges;
use questions::PendingQuestion;
use signalbox_wire::{Envelope, Era, RawId};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use task_registry::TaskRegistry;

/// Kind of client connection. It decides the era of the messages.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A pipe. Each message determines its own era.
    Pipe,
    /// An HTTP session of the old era.
    Session,
    /// A single HTTP request of the new era.
    Stateless,
}

/// Maximum number of pending questions from backends per client.
pub const MAX_ASKED: usize = 256;
/// Maximum number of renamed resources that a session may subscribe to.
pub const MAX_FOLLOWED: usize = 1024;
/// Maximum number of task ids remembered per session.
pub const MAX_TASKS: usize = 1024;

/// State machine that serves one client. See the [module documentation](self).
#[derive(Debug)]
pub struct FrontMachine {
    session: SessionKey,
    caller: Caller,
    principal: Principal,
    mode: Mode,
    state: Lifecycle,
    client: Option<Arc<ClientProfile>>,
    log_level: Option<LogLevel>,
    general: Option<StreamId>,
    answers_only: HashSet<StreamId>,
    exchanges: Exchanges,
    by_client_id: TextMap<RawId, ExchangeId>,
    pending_questions: KeyMap<u64, PendingQuestion>,
    task_registry: TaskRegistry,
    /// Subscriptions to renamed resources: (backend, the backend's URI) to the exposed URI.
    followed: HashMap<(Arc<str>, Box<str>), Box<str>>,
    next_question: u64,
    /// Copies to send to other backends once the request they belong to leaves the interceptors.
    copies: KeyMap<ExchangeId, Vec<Effect>>,
    /// Sign-in addresses in the last warning to the client, as a JSON array.
    last_sign_in_warning: String,
    /// True once the client speaks the governed dialect.
    governed: bool,
    /// True if the client initialized with an earlier process, whose tasks are unknown to this one.
    restored: bool,
}

impl FrontMachine {
    /// Creates a machine for a new session.
    #[must_use]
    pub fn new(session: SessionKey, caller: Caller, mode: Mode) -> Self {
        Self {
            session,
            principal: caller.principal().clone(),
            caller,
            mode,
            state: Lifecycle::Created,
            client: None,
            log_level: None,
            general: None,
            answers_only: HashSet::new(),
            exchanges: Exchanges::default(),
            by_client_id: TextMap::default(),
            pending_questions: KeyMap::default(),
            task_registry: TaskRegistry::default(),
            followed: HashMap::new(),
            next_question: 1,
            copies: KeyMap::default(),
            last_sign_in_warning: String::new(),
            governed: false,
            restored: false,
        }
    }

    /// Resumes a session of the old era that was initialized with an earlier process.
    pub fn restore(&mut self, client: Arc<ClientProfile>, log_level: Option<LogLevel>) {
        self.client = Some(client);
        self.log_level = log_level;
        self.restored = true;
        self.state = Lifecycle::Operational;
    }

    /// Handles an event and appends the resulting commands.
    pub fn handle(&mut self, event: Event, ctx: &Context<'_>, out: &mut Vec<Command>) {
        match event {
            Event::Received { stream, message } => self.received(stream, message, ctx, out),
            Event::GeneralStream { stream } => self.general = Some(stream),
            Event::AnswersOnly { stream } => drop(self.answers_only.insert(stream)),
            Event::Gone { stream } => self.stream_lost(stream, ctx, out),
            Event::Retried { exchange } => {
                if let Some(exchange) = self.exchanges.get_mut(&exchange) {
                    exchange.attempt += 1;
                }
            }
            Event::Answered { exchange, message, edits, status } => {
                self.answered(exchange, &message, edits, status, ctx, out);
            }
            Event::Kept { exchange, source, message, edits } => {
                self.answer_locally(exchange, source, &message, edits, ctx, out);
            }
            Event::Unfinished { exchange, message, reach, call, backend } => {
                self.unfinished(exchange, &message, reach, call, backend, ctx, out);
            }
            Event::Reply { exchange, result, park } => self.show_signed(exchange, &result, park, ctx, out),
            Event::Wake { exchange, round } => self.timer_fired(exchange, round, ctx, out),
            Event::Consulted { exchange, answer } => self.resume_held(exchange, &answer, ctx, out),
            Event::StillHeld { exchange, text } => self.report_hold(exchange, &text, ctx, out),
            Event::Failed { exchange, fault } => self.poll_failed(exchange, &fault, ctx, out),
            Event::SignIn { exchange, fault, call } => self.sign_in(exchange, &fault, call, ctx, out),
            Event::Asked { backend, peer, message, about } => {
                self.backend_asked(&backend, peer, &message, about, ctx, out);
            }
            Event::Unreadable { stream, id, era, fault } => self.unreadable(stream, id.as_ref(), era, &fault, ctx, out),
            Event::Notified { backend, peer, message, about } => {
                self.notified(&backend, peer, &message, about, ctx, out);
            }
            Event::PeerGone { peer } => self.pending_questions.retain(|_, question| !question.is_of(peer)),
            Event::Unfollowed { exchange, backend, uris, tasks } => {
                self.unfollowed(exchange, &backend, uris, tasks);
            }
            Event::Listening { exchange } => self.listening(exchange, ctx, out),
            Event::ListsReady { exchange } => self.resume(exchange, ctx, out),
            Event::ListsChanged { changed } => self.lists_changed(changed, ctx, out),
            Event::Close => self.close(ctx, out),
        }
    }

    /// Returns the key of the session in this process.
    #[must_use]
    pub fn session(&self) -> SessionKey {
        self.session
    }

    /// Returns the caller that opened the session.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the lifecycle state of a session of the old era.
    #[must_use]
    pub fn state(&self) -> Lifecycle {
        self.state
    }

    /// Returns the client's declared profile, once it has initialized.
    #[must_use]
    pub fn client(&self) -> Option<&Arc<ClientProfile>> {
        self.client.as_ref()
    }

    /// Returns the level set by `logging/setLevel`.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// Returns the number of client requests that wait for an answer. Listen requests do not count: they end with their
    /// stream, and a shutdown need not wait for them.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.exchanges.awaiting_answer()
    }

    /// Returns an exchange in flight.
    #[must_use]
    pub fn exchange(&self, id: ExchangeId) -> Option<&Exchange> {
        self.exchanges.get(&id)
    }

    /// Returns the exchanges in flight, oldest first.
    #[must_use]
    pub fn exchanges(&self) -> Vec<&Exchange> {
        let mut all: Vec<&Exchange> = self.exchanges.values().collect();
        all.sort_unstable_by_key(|exchange| exchange.id);
        all
    }

    /// Returns true if this session or one of its listen requests sees lists that depend on these capabilities.
    #[must_use]
    pub fn sees(&self, caps: &CapSet) -> bool {
        let declares = |client: &Arc<ClientProfile>| client.caps() == caps;
        let listening = self.exchanges.stages().filter(|(_, stage)| stage.is_listening());
        self.client.iter().chain(listening.filter_map(|(exchange, _)| exchange.client.as_ref())).any(declares)
    }

    /// Selects the lists shown to the sender of this request.
    #[must_use]
    pub fn selector(&self, id: ExchangeId) -> Selector {
        let exchange = self.exchanges.get(&id);
        let client = exchange.and_then(|exchange| exchange.client.as_ref()).or(self.client.as_ref());
        let caps = client.map_or_else(CapSet::bare, |client| client.caps().clone());
        let caller = exchange.map_or(&self.caller, |exchange| &exchange.caller);
        let whose = Some(BackendUser::of(self.principal.clone(), caller));
        Selector { era: exchange.map_or(Era::Legacy, |exchange| exchange.era), caps, whose }
    }

    fn received(&mut self, stream: StreamId, message: Envelope, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(name) = message.method() else {
            return self.client_answered(&message, ctx, out);
        };
        if message.id_span().is_none() {
            return self.client_notified(&message, ctx, out);
        }
        if self.speaks_dialect(&message, ctx) {
            return self.dialect_request(stream, &message, ctx, out);
        }
        let era = self.era_of(&message);
        let id = message.id().unwrap_or_else(RawId::null);
        if let Err(fault) = self.admit(era, name, &id, ctx) {
            if fault.kind == FaultKind::Overloaded {
                out.push(Command::Refused(Limit::InFlight));
            }
            self.record_client_message(None, message.bytes(), Some(fault.reason()), ctx, out);
            self.record_refusal_without_exchange(&message, fault.reason(), &fault.message, ctx, out);
            return self.send_fault(stream, Some(&id), era, &fault, ctx, out);
        }
        let exchange = self.open(stream, id, era, name, &message, ctx, out);
        if let Some(fault) = ctx.refusal {
            self.note_refused_subject(exchange, &message);
            return self.fail(exchange, fault, ctx, out);
        }
        match era {
            Era::Legacy => self.legacy_request(exchange, message, ctx, out),
            Era::Modern => self.modern_request(exchange, message, ctx, out),
        }
    }

    /// Returns the era of a message. On a pipe, a message that names a version of the new era belongs to it; elsewhere
    /// the transport decides.
    fn era_of(&self, message: &Envelope) -> Era {
        match self.mode {
            Mode::Stateless => Era::Modern,
            Mode::Session => Era::Legacy,
            Mode::Pipe if modern::describes_itself(message) => Era::Modern,
            Mode::Pipe => Era::Legacy,
        }
    }

    fn admit(&self, era: Era, name: &str, id: &RawId, ctx: &Context<'_>) -> Result<(), Fault> {
        if era == Era::Legacy {
            self.state.admit(name)?;
        }
        if self.exchanges.len() >= ctx.max_in_flight {
            let text = format!("this session has {} requests in flight, which is the limit", ctx.max_in_flight);
            return Err(Fault::new(FaultKind::Overloaded, text));
        }
        if self.by_client_id.contains_key(id) {
            let text = format!("a request with id {id} is already in flight");
            return Err(Fault::new(FaultKind::DuplicateId, text));
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a request, each needed once")]
    fn open(
        &mut self,
        stream: StreamId,
        client_id: RawId,
        era: Era,
        name: &str,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> ExchangeId {
        let id = ctx.numbers.exchange();
        let method: MethodName = message.known_method().map_or_else(|| name.to_owned().into(), Cow::Borrowed);
        // A stateless machine has only one request, so its id need not be unique.
        if self.mode != Mode::Stateless {
            self.by_client_id.insert(client_id.clone(), id);
        }
        let exchange = Exchange {
            id,
            session: self.session,
            caller: ctx.caller.unwrap_or(&self.caller).clone(),
            operation: id,
            round: 1,
            attempt: 1,
            consulted: false,
            asks: false,
            client_id,
            stream,
            stream_open: true,
            era,
            client: self.client.clone().filter(|_| era == Era::Legacy),
            log_level: None,
            method,
            subject: None,
            asked_name: None,
            own_name: None,
            completes_resource: false,
            completed_template: None,
            backend: None,
            progress_token: None,
            renamed_uri: None,
            read: None,
            held_progress: 0,
            wants_task: false,
            started: ctx.now,
            bytes_in: message.bytes().len(),
            trace: ctx.trace.and_then(|begin| begin(message)),
            unreached: None,
        };
        self.exchanges.insert(exchange);
        // Only now, because the fact takes the caller from the exchange, and it may differ from that of the session.
        self.message_fact(Some(id), Point::ClientIn, message.bytes(), ctx, out);
        id
    }
}

#[cfg(test)]
mod tests;
