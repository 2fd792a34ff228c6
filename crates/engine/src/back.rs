//! The back machine: the gateway's side of one connection to a backend, a child process or an HTTP session.
//!
//! It opens the connection in the right era, gives every request its own id and progress token, translates requests and
//! answers between revisions ([`crate::bridge`]), and finds the request that each message belongs to. It is generic
//! over the origin `O` of a request, which it carries without inspecting it.
//!
//! ```text
//! Opening ─┬─ Wish::Auto, Wish::Modern ─► Probing ──── server/discover succeeds ────┐
//!          │                               │ Auto: refused, or silent for too long  ▼
//!          └─ Wish::Legacy ────────────────┴─► Initializing ── initialize ok ────► Ready
//!
//! any of them ── the connection is lost, or there is no revision that both speak ──► Dead
//! ```
//!
//! A slow server may answer the probe after `initialize` was sent; that answer still settles the era (see `handshake`).
//! [`BackMachine::reopen`] returns to `Initializing` after the backend lost the session; calls in flight stay in
//! flight.
//!
//! Invariants:
//!
//! - Ids on the connection are assigned here, so ids of two clients cannot collide. The [`Correlator`] matches each
//!   answer to one request; orphans, duplicates and late answers become [`BackCommand::Stray`] and reach no client.
//! - Every call ends: with its answer, by cancellation, by a transport failure, with the connection, or by its
//!   time-out, which progress and open questions to the client extend ([`BackMachine::tick`]).
//! - All edits of a call are applied at once when it leaves. Every other byte is the client's.
//! - A call of an old client at a new backend is stored unmodified, because the backend may request it again with more
//!   input.
//! - A server may request only `ping` and questions to the client; one of the new era only `ping`. The machine refuses
//!   everything else.
//!
//! The machine must never send by itself: it returns an [`Outbound`] or pushes [`BackCommand::Transmit`], and its
//! driver writes that to the link. It must not retry either: only the driver knows if anything reached the backend.

mod cancelling;
mod handshake;
mod outbound;
mod own_requests;
mod questions;

pub use handshake::{ClientOffer, Wish};
pub use outbound::{Account, BackCommand, BackendMessage, Draft, Outbound, ToBackend, probe};

use crate::bridge::{self, BackendFeatures, CallProgress, RevisionPair};
use crate::correlation::{Correlator, PendingRequest, StrayAnswer, Strays};
use crate::exchange::{Call, MethodName};
use crate::fact::Outcome;
use crate::fault::{Fault, FaultKind};
use crate::front::AuthorizedCall;
use crate::operation_metrics::{OperationTimer, error_type};
use crate::profile::{ClientProfile, ServerProfile};
use crate::question_origin::{self, UnaskableQuestion};
use bytes::Bytes;
use handshake::{ConnectionState, Handshake, HandshakeRequest};
use questions::Questions;
use signalbox_wire::id::Digits;
use signalbox_wire::{Edits, Envelope, Era, Kind, RawId, Revision, builder, header_params, json, meta, method};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum length of a method quoted in a refusal.
const MAX_NAME: usize = 200;

/// Purpose of a request on the connection.
#[derive(Clone, Debug)]
enum Purpose<O> {
    Handshake(HandshakeRequest),
    Call {
        origin: O,
        method: MethodName,
        client: Revision,
        /// The unmodified call, stored if the backend may ask for more input.
        repeatable: Option<AuthorizedCall>,
        /// Profile of the client, stored if an old backend may create a task for the call.
        task_client: Option<Arc<ClientProfile>>,
        /// Task whose result the request waits for, in place of the call that created the task.
        task: Option<Box<str>>,
        /// The unmodified call, stored if its caller may have to sign in first.
        sign_in_call: Option<AuthorizedCall>,
    },
}

/// State machine of one backend connection. See the [module documentation](self).
#[derive(Debug)]
pub struct BackMachine<O> {
    backend: Arc<str>,
    wish: Wish,
    offer: ClientOffer,
    mirror_headers: bool,
    phase: ConnectionState,
    handshake: Handshake,
    profile: Option<Arc<ServerProfile>>,
    offered: BackendFeatures,
    calls: Correlator<Purpose<O>>,
    questions: Questions,
    keeps_calls: bool,
    /// Timer for the backend's response times.
    timed: OperationTimer,
}

impl<O: Clone> BackMachine<O> {
    /// Creates a machine for a connection that is about to open. `mirror_headers` is true if the link can carry
    /// headers.
    #[must_use]
    pub fn new(backend: Arc<str>, wish: Wish, offer: ClientOffer, mirror_headers: bool) -> Self {
        Self {
            backend,
            wish,
            offer,
            mirror_headers,
            phase: ConnectionState::Opening,
            handshake: Handshake::default(),
            profile: None,
            offered: BackendFeatures::default(),
            calls: Correlator::default(),
            questions: Questions::default(),
            keeps_calls: false,
            timed: OperationTimer::default(),
        }
    }

    /// Makes the machine return calls that were not sent because their caller has to sign in first.
    #[must_use]
    pub fn keeping_calls(self, keeps_calls: bool) -> Self {
        Self { keeps_calls, ..self }
    }

    /// Measures the backend's response times with this timer.
    #[must_use]
    pub fn timed(self, timed: OperationTimer) -> Self {
        Self { timed, ..self }
    }

    /// Numbers the requests from `first` on.
    #[must_use]
    pub fn numbered_from(self, first: u64) -> Self {
        Self { calls: Correlator::starting_at(first), ..self }
    }

    /// Returns the profile that the backend declared, once the connection is ready.
    #[must_use]
    pub fn profile(&self) -> Option<&Arc<ServerProfile>> {
        self.profile.as_ref()
    }

    /// Returns true once calls may be sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, ConnectionState::Ready)
    }

    /// Returns the number of requests that wait for an answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// Returns the counts of messages that matched no request.
    #[must_use]
    pub fn strays(&self) -> Strays {
        self.calls.strays()
    }

    /// Sends a client's call.
    ///
    /// # Errors
    /// Returns a fault if the call cannot be translated to this backend's revision.
    pub fn call(
        &mut self,
        origin: O,
        call: AuthorizedCall,
        timeout: Duration,
        now: Instant,
    ) -> Result<Outbound, Fault> {
        let profile = self.profile.clone().ok_or_else(|| self.not_ready())?;
        let sign_in_call = self.keeps_calls.then(|| call.clone());
        let mut authorized = call;
        let call = authorized.fitting();
        let up = call.era == Era::Legacy && profile.era() == Era::Modern && bridge::may_ask(&call.method);
        let before = up.then(|| call.edits.clone());
        bridge::request(call, profile.revision, self.offered, &self.offer.info)?;
        let client = call.client.revision;
        let tool = call.era == Era::Modern && profile.era() == Era::Legacy && call.method == method::TOOLS_CALL;
        let task_client = tool.then(|| Arc::clone(&call.client));
        let purpose = Purpose::Call {
            origin,
            method: call.method.clone(),
            client,
            repeatable: None,
            task_client,
            task: None,
            sign_in_call,
        };
        let id = self.calls.open(purpose, now, timeout);
        if let Some(told) = &call.trace {
            told.record_sent(call, id, profile.revision, now);
        }
        let digits = itoa(id);
        for span in call.envelope.id_span().into_iter().chain(call.progress) {
            call.edits.replace(span, digits.as_ref());
        }
        let modern = profile.era() == Era::Modern && self.mirror_headers;
        let params = match (call.envelope.params(), &call.param_headers) {
            (Some(params), Some(marked)) if modern => {
                let arguments = json::member(params, "arguments").map_or(&b"{}"[..], |span| span.of(params));
                header_params::param_values(marked, arguments)
            }
            _ => Vec::new(),
        };
        let bytes = match call.edits.apply_all(call.envelope.bytes()) {
            Ok(bytes) => bytes,
            Err(overlap) => {
                self.calls.give_up(id);
                return Err(Fault::new(FaultKind::Internal, format!("the call cannot be rewritten: {overlap}")));
            }
        };
        let draft = Draft {
            bytes,
            key: Some(id),
            revision: Some(profile.revision),
            name: call.name.as_ref().filter(|_| modern).cloned(),
            method: call.method.clone(),
            params,
        };
        if let (Some(before), Some(pending)) = (before, self.calls.get_mut(id))
            && let Purpose::Call { repeatable, .. } = &mut pending.origin
        {
            call.edits = before;
            *repeatable = Some(authorized);
        }
        Ok(draft.depart())
    }

    /// Suspends the time-out of a request until then, because the backend waits for its client.
    pub fn hold(&mut self, key: u64, until: Instant) {
        self.calls.hold(key, until);
    }

    /// Resumes a suspended time-out.
    pub fn release(&mut self, key: u64, now: Instant) {
        self.calls.release(key, now);
    }

    /// Prepares a message that gets no answer, for the revision agreed with the backend.
    #[must_use]
    pub fn tell(&self, draft: Draft) -> Outbound {
        let revision = self.profile.as_ref().map(|profile| profile.revision);
        Draft { revision, ..draft }.depart()
    }

    /// Refuses a question of the backend.
    #[must_use]
    pub fn refuse(&self, id: &RawId, fault: &Fault) -> Outbound {
        self.tell(Draft::refusal(id, fault))
    }

    /// Handles a message of the backend. `about` is the request on whose stream it came.
    pub fn received(
        &mut self,
        message: Envelope,
        about: Option<u64>,
        status: Option<u16>,
        now: Instant,
        out: &mut Vec<BackCommand<O>>,
    ) {
        match message.kind() {
            Kind::Response | Kind::Error => self.answered(message, about, status, now, out),
            Kind::Notification => self.notified(message, about, now, out),
            Kind::Request => self.question_received(message, about, now, out),
        }
    }

    fn answered(
        &mut self,
        message: Envelope,
        about: Option<u64>,
        status: Option<u16>,
        now: Instant,
        out: &mut Vec<BackCommand<O>>,
    ) {
        let named = message.id_token().is_some_and(|token| token != b"null");
        let id = match (named, about) {
            // An error that could not read our id still answers the request on whose stream it came.
            (false, Some(key)) if message.kind() == Kind::Error => Some(key),
            (true, about) => message.id_number().filter(|id| about.is_none_or(|key| key == *id)),
            (false, _) => None,
        };
        let pending = match self.calls.close(id) {
            Ok(pending) => pending,
            Err(unmatched) => {
                let why = match unmatched {
                    StrayAnswer::Duplicate => "duplicate",
                    StrayAnswer::Late => "late",
                    StrayAnswer::Orphan => "orphan",
                };
                return out.push(BackCommand::Stray { what: "answer", why, message });
            }
        };
        match pending.origin {
            Purpose::Handshake(word) => {
                out.push(BackCommand::Own(message.clone()));
                self.handshake_answered(word, &message, now, out);
            }
            Purpose::Call { origin, method, client, repeatable, task_client, .. } => {
                self.timed.took(&method, error_type(Outcome::of(&message)), pending.sent_at, now);
                let backend = self.profile.as_ref().map_or(client, |profile| profile.revision);
                let (mut edits, mut rewritten) = (Edits::new(), Vec::new());
                let fitted =
                    bridge::answer(&method, RevisionPair { client, backend }, &message, &mut edits, &mut rewritten);
                if let (Ok(CallProgress::Whole), Some(profile)) = (&fitted, &self.profile)
                    && client.era() == Era::Modern
                    && backend.era() == Era::Legacy
                    && profile.info.starts_with(b"{")
                {
                    bridge::sign(&message, &mut edits, &profile.info);
                }
                if !rewritten.is_empty() {
                    out.push(BackCommand::Rewritten(rewritten));
                }
                if let (Ok(CallProgress::Task), Some(client)) = (&fitted, task_client) {
                    return out.push(BackCommand::TaskMade { to: origin, message, edits, status, client });
                }
                out.push(match (fitted, repeatable) {
                    (Ok(reach @ CallProgress::Whole), Some(call))
                        if message.kind() == Kind::Response && wants_task(&call) =>
                    {
                        BackCommand::Unfinished { to: origin, message, reach, call }
                    }
                    (Ok(CallProgress::Whole), _) => BackCommand::Answer { to: origin, message, edits, status },
                    (Ok(reach), Some(call)) => BackCommand::Unfinished { to: origin, message, reach, call },
                    (Ok(_), None) => {
                        let fault = bridge::not_bridged("a result that is not complete", client, backend);
                        BackCommand::Fail { to: origin, fault, message: Some(message) }
                    }
                    (Err(fault), _) => BackCommand::Fail { to: origin, fault, message: Some(message) },
                });
            }
        }
    }

    fn notified(&mut self, message: Envelope, about: Option<u64>, now: Instant, out: &mut Vec<BackCommand<O>>) {
        let name = message.method().unwrap_or_default();
        let params = message.params().unwrap_or_default();
        let number = |path: &[&str]| {
            let span = json::path(params, path)?;
            RawId::from_token(Bytes::copy_from_slice(span.of(params))).as_u64()
        };
        let about = match name {
            method::PROGRESS => number(&["progressToken"]),
            _ => number(&["_meta", meta::SUBSCRIPTION_ID]).or(about),
        };
        if name == method::CANCELLED {
            self.question_cancelled(params, now);
        }
        if let Some(key) = about {
            self.calls.touch(key, now);
        }
        let to = about.and_then(|key| self.origin(key)).cloned();
        if name == method::PROGRESS && to.is_none() {
            return out.push(BackCommand::Stray { what: "progress", why: "stray_progress", message });
        }
        out.push(BackCommand::Notify { about: to, message });
    }

    fn question_received(
        &mut self,
        message: Envelope,
        about: Option<u64>,
        now: Instant,
        out: &mut Vec<BackCommand<O>>,
    ) {
        let Some(id) = message.id() else { return };
        if message.method() == Some(method::PING) {
            let pong = builder::response(&id, b"{}");
            out.push(BackCommand::Own(message));
            return out.push(BackCommand::Transmit(self.tell(Draft::word(method::PING, pong))));
        }
        let modern = self.profile.as_ref().is_some_and(|profile| profile.era() == Era::Modern);
        if modern {
            let no = Fault::new(FaultKind::MethodNotFound, "a server of this revision sends no requests");
            out.push(BackCommand::Own(message));
            return out.push(BackCommand::Transmit(self.refuse(&id, &no)));
        }
        if let Some(name) = message.method().filter(|name| !question_origin::is_question(name)) {
            let no = UnaskableQuestion::Method(name.chars().take(MAX_NAME).collect()).refusal();
            out.push(BackCommand::Stray { what: "question", why: "not_a_question", message });
            return out.push(BackCommand::Transmit(self.refuse(&id, &no)));
        }
        self.question_opened(&message, about, now);
        let about = about.and_then(|key| self.origin(key)).cloned();
        out.push(BackCommand::Ask { about, message });
    }

    /// Handles a transport failure of a request.
    pub fn failed(&mut self, key: u64, fault: Fault, now: Instant, out: &mut Vec<BackCommand<O>>) {
        let given_up = self.calls.give_up(key);
        if let Some(PendingRequest { origin: Purpose::Call { method, .. }, sent_at, .. }) = &given_up {
            self.timed.took(method, fault.reason(), *sent_at, now);
        }
        match given_up.map(|pending| pending.origin) {
            Some(Purpose::Handshake(word)) => self.handshake_refused(word, &fault, now, out),
            Some(Purpose::Call { origin, sign_in_call: Some(call), .. }) if fault.kind == FaultKind::SignInNeeded => {
                out.push(BackCommand::SignIn { to: origin, fault, call });
            }
            Some(Purpose::Call { origin, .. }) => out.push(BackCommand::Fail { to: origin, fault, message: None }),
            None => {}
        }
    }

    /// Fails every call, because the connection is lost.
    pub fn lost(&mut self, why: &str, now: Instant, out: &mut Vec<BackCommand<O>>) {
        self.phase = ConnectionState::Dead;
        for (_, pending) in self.calls.drain() {
            if let Purpose::Call { origin, method, .. } = pending.origin {
                self.timed.took(&method, "backend_died", pending.sent_at, now);
                out.push(BackCommand::Fail { to: origin, fault: self.died_fault(why), message: None });
            }
        }
    }

    /// Fails the requests whose time-out has passed.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<BackCommand<O>>) {
        self.initialize_silent(now, out);
        for (key, pending) in self.calls.expire(now) {
            match pending.origin {
                Purpose::Handshake(word) => {
                    let text = format!("backend `{}` did not answer the handshake in time", self.backend);
                    self.handshake_refused(word, &Fault::new(FaultKind::TimedOut, text), now, out);
                }
                Purpose::Call { origin, method, .. } => {
                    self.timed.took(&method, "timed_out", pending.sent_at, now);
                    let text =
                        format!("backend `{}` did not answer within {} s", self.backend, pending.timeout.as_secs_f32());
                    let fault = Fault::new(FaultKind::TimedOut, text).with_str("backend", &self.backend);
                    out.push(BackCommand::Fail { to: origin, fault, message: None });
                    if let Some(note) = self.cancellation(key, Some(b"\"timed out\"")) {
                        out.push(BackCommand::Transmit(note));
                    }
                    out.push(BackCommand::Abort(key));
                }
            }
        }
    }

    /// Returns true if no time-out is running.
    #[must_use]
    pub fn waits_for_nothing(&self) -> bool {
        self.calls.is_empty()
    }

    /// Drops a request that could not be handed to the link.
    pub fn unsent(&mut self, key: Option<u64>) {
        if let Some(key) = key {
            self.calls.give_up(key);
        }
    }

    /// Returns true while this request waits for its answer.
    #[must_use]
    pub fn is_pending(&self, key: u64) -> bool {
        self.calls.get(key).is_some()
    }

    /// Returns the origin of this request.
    #[must_use]
    pub fn origin(&self, key: u64) -> Option<&O> {
        match &self.calls.get(key)?.origin {
            Purpose::Call { origin, .. } => Some(origin),
            Purpose::Handshake(_) => None,
        }
    }

    /// Returns the origins of all requests in flight.
    pub fn waiting(&self) -> impl Iterator<Item = &O> {
        self.calls.iter().filter_map(|(_, pending)| match &pending.origin {
            Purpose::Call { origin, .. } => Some(origin),
            Purpose::Handshake(_) => None,
        })
    }

    fn died_fault(&self, why: &str) -> Fault {
        let text = format!("backend `{}` ended while it worked on this call: {why}", self.backend);
        Fault::new(FaultKind::BackendDied, text).with_str("backend", &self.backend)
    }

    fn not_ready(&self) -> Fault {
        let text = format!("backend `{}` is not connected", self.backend);
        Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.backend)
    }
}

/// Returns true if the client of a call to a backend of the new era has asked for a task.
fn wants_task(call: &Call) -> bool {
    call.client.revision.tasks_core() && call.envelope.params().and_then(bridge::tasks::wish).is_some()
}

fn itoa(number: u64) -> impl AsRef<[u8]> {
    Digits::of(number)
}

#[cfg(test)]
mod tests;
