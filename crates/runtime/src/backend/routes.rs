//! Routing: finds the connection that carries a call, or opens it. `docs/internals.md` has the table of shared
//! connections.

use super::Backend;
use super::connection_request::{ConnectionRequest, Pick};
use super::pool;
use super::state::{BackendState, Home};
use crate::backend::ExclusiveUse;
use crate::peer::{Peer, QueuedCall};
use crate::session::Session;
use signalbox_engine::back::{ClientOffer, Wish};
use signalbox_engine::catalog::Selector;
use signalbox_engine::{AuthorizedCall, BackendUser, CapSet, ClientProfile, ExchangeId, Fault, FaultKind};
use signalbox_wire::{Era, Revision};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit for a probe for the modern era before `initialize` is tried.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of connections tried for one call.
const TRIES: usize = 3;

/// Kind of connection that a caller uses.
enum ConnectionKind {
    Own,
    Pool,
    Shared,
}

impl Backend {
    /// Routes a call to a connection that can carry it. Without one, opens a connection or queues the call.
    pub(crate) fn dispatch(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId, call: AuthorizedCall) {
        let timeout = self.timeout_of(&call);
        self.route(session, exchange, call, || crate::clock::now() + timeout);
    }

    pub(super) fn dispatch_until(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: AuthorizedCall,
        deadline: Instant,
    ) {
        self.route(session, exchange, call, || deadline);
    }

    /// Routes a call. Evaluates `deadline` only if the call has to be queued.
    fn route(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: AuthorizedCall,
        deadline: impl Fn() -> Instant,
    ) {
        // At a legacy backend, a further round belongs to a call that is parked here, and a task request to the
        // connection that created the task.
        let about_task = call.era == Era::Modern && call.method.starts_with("tasks/");
        if (call.round.is_some() || about_task)
            && let Some(gateway) = self.gateway()
            && (self.meets_old(call.era) || gateway.waits_at_predecessor(session, &call))
        {
            return match about_task {
                true => gateway.task_request(session, exchange, &call),
                false => gateway.continue_call(self, session, exchange, call),
            };
        }
        let (mut call, user) = (call, self.user_of(session, exchange));
        // A lost connection is not found a second time, so a few tries reach a live one if there is any.
        for _ in 0..TRIES {
            let mut state = self.lock();
            if let Some(successor) = state.retired.clone() {
                drop(state);
                let (session, deadline) = (Arc::clone(session), deadline());
                return self
                    .hand_over(successor, QueuedCall { session, exchange, call, deadline, exclusive_use: None });
            }
            let picked = if self.is_throttled(&state) {
                Pick::Wait
            } else {
                self.pick(&mut state, ConnectionRequest::of_call(session, &user, &call))
            };
            let fault = match picked {
                Pick::Peer(peer, exclusive_use) => {
                    drop(state);
                    match self.send(&peer, session, exchange, call, exclusive_use) {
                        Some(back) => call = back,
                        None => return,
                    }
                    continue;
                }
                Pick::Wait if state.waiting.len() < self.spec().failing.max_queue => {
                    let (session, deadline) = (Arc::clone(session), deadline());
                    return state.waiting.push_back(QueuedCall {
                        session,
                        exchange,
                        call,
                        deadline,
                        exclusive_use: None,
                    });
                }
                Pick::Wait => self.queue_full(),
                Pick::Refuse(fault) => fault,
            };
            drop(state);
            return self.refuse_or_await_sign_in(session, exchange, fault, call);
        }
        let text = format!("backend `{}` loses its connections as soon as they are opened", self.name);
        let fault = Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name);
        self.refuse(session, exchange, fault);
    }

    /// Sends a call on a connection and returns it if the connection is lost. A modern call that wants log messages
    /// waits until the legacy backend has set the level.
    fn send(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: AuthorizedCall,
        exclusive_use: Option<ExclusiveUse>,
    ) -> Option<AuthorizedCall> {
        let timeout = self.timeout_of(&call);
        let level = call.log_level.filter(|_| call.era == Era::Modern && peer.wish != Wish::Modern);
        let deaf = level.filter(|level| peer.is_legacy() && !peer.hears(*level));
        let Some(level) = deaf else { return peer.call(session, exchange, call, timeout, exclusive_use) };
        let (backend, peer, session) = (Arc::clone(self), Arc::clone(peer), Arc::clone(session));
        tokio::spawn(async move {
            peer.lower_level(level).await;
            if !session.waits_for(exchange) {
                return;
            }
            if let Some(call) = peer.call(&session, exchange, call, timeout, exclusive_use) {
                backend.dispatch(&session, exchange, call);
            }
        });
        None
    }

    /// Sends a request without awaiting its answer, on the connection that its user shares, if that is open.
    pub(crate) fn send_and_discard(&self, session: &Session, call: AuthorizedCall) {
        let user = self.user(session);
        let shared = {
            let state = self.lock();
            state.connections.shared(&user, state.support.target(call.era)).cloned()
        };
        if let Some(peer) = shared {
            peer.send_and_discard(call, self.spec().timeout);
        }
    }

    /// Sends a copy of a request on the connection that its user shares, or on the home connection. Returns false if
    /// neither is ready. A sleeping backend is started and gets the copy once it is up.
    pub(crate) fn fork(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: Option<ExchangeId>,
        call: AuthorizedCall,
    ) -> bool {
        let Some(exchange) = exchange else { return false };
        if !self.is_asleep() {
            return self.fork_now(session, exchange, call);
        }
        let user = self.user_of(session, exchange);
        self.wake(&mut self.lock(), Some(&user));
        let (backend, session) = (Arc::clone(self), Arc::clone(session));
        tokio::spawn(async move {
            let _ = tokio::time::timeout(backend.spec().timeout, backend.attempted()).await;
            if !backend.fork_now(&session, exchange, call) {
                session.gateway.counters.dropped("fork");
            }
        });
        true
    }

    fn fork_now(&self, session: &Arc<Session>, exchange: ExchangeId, call: AuthorizedCall) -> bool {
        let user = self.user_of(session, exchange);
        let peer = {
            let state = self.lock();
            let shared = state.connections.shared(&user, state.support.target(call.era));
            // With per-principal credentials, the home connection may carry those of another principal.
            shared.or_else(|| state.connections.home().filter(|_| !self.is_per_user())).cloned()
        };
        peer.is_some_and(|peer| peer.fork(session, exchange, call, self.spec().timeout))
    }

    /// Opens the connection that reads the lists for this kind of client, if it is missing.
    pub(crate) fn prepare(
        self: &Arc<Self>,
        session: &Arc<Session>,
        client: Option<&ClientProfile>,
        selector: &Selector,
    ) {
        let (user, era) = (selector.whose.as_ref().map(|whose| self.known_as(whose)), selector.era);
        let user = user.unwrap_or_else(|| self.user(session));
        let caller = ConnectionRequest { session, user: &user, client, era, asks: true };
        let picked = {
            let mut state = self.lock();
            let target = state.support.target(era);
            let caps = if target == Era::Legacy { caller.caps() } else { CapSet::bare() };
            let whose = self.lists_of(&user);
            if !state.support.known() {
                // Start only where the caller's own credential opens the connection: lists start no process.
                if whose.is_some() {
                    self.wake(&mut state, Some(&user));
                }
                return;
            }
            // One connection reads the lists for all sessions that wait for them.
            if self.is_coming(&state, target, &caps, whose.as_ref()) {
                return;
            }
            self.pick(&mut state, caller)
        };
        // A ready connection has read its lists once. It reads them again if they are stale or were evicted.
        if let Pick::Peer(peer, _) = picked
            && let Some(profile) = peer.profile().filter(|_| peer.is_ready())
        {
            self.refresh(&peer, &profile, false);
        }
    }

    /// Returns the connection that the sessions of this user share, opening it if necessary. Returns `None` and wakes
    /// the backend if it is not known to speak this era.
    pub(crate) fn shared_peer(
        self: &Arc<Self>,
        session: &Arc<Session>,
        user: &BackendUser,
        target: Era,
    ) -> Option<Arc<Peer>> {
        let mut state = self.lock();
        let speaks = match target {
            Era::Legacy => state.support.legacy,
            Era::Modern => state.support.modern,
        };
        if speaks != Some(true) {
            self.wake(&mut state, Some(user));
            return None;
        }
        match self.pick(&mut state, ConnectionRequest { session, user, client: None, era: Era::Modern, asks: false }) {
            Pick::Peer(peer, _) => Some(peer),
            Pick::Wait | Pick::Refuse(_) => None,
        }
    }

    pub(super) fn pick(self: &Arc<Self>, state: &mut BackendState, caller: ConnectionRequest<'_>) -> Pick {
        let ConnectionRequest { session, user, .. } = caller;
        if state.stopping {
            return Pick::Refuse(Fault::new(FaultKind::Draining, "the gateway is shutting down"));
        }
        if state.retired.is_some() {
            return Pick::Refuse(self.removed());
        }
        if session.is_ended() {
            return Pick::Refuse(Fault::new(FaultKind::SessionClosed, "the session has ended"));
        }
        if self.lacks_token(Some(user)) {
            return Pick::Refuse(self.no_token());
        }
        if !state.support.known() {
            self.wake(state, Some(user));
            return self.down(state).map_or(Pick::Wait, Pick::Refuse);
        }
        let target = state.support.target(caller.era);
        let kind = self.connection_kind(caller, target);
        match kind {
            ConnectionKind::Own => {
                if let Some(peer) = state.connections.owned(session.key, user) {
                    return Pick::Peer(Arc::clone(peer), None);
                }
            }
            ConnectionKind::Pool => return self.pick_pooled(state, caller),
            ConnectionKind::Shared => {
                if let Some(peer) = state.connections.shared(user, target) {
                    return Pick::Peer(Arc::clone(peer), None);
                }
                // The token of one caller decides nothing for another, so no caller waits for another's connection.
                if !self.is_per_caller() {
                    self.wake(state, Some(user));
                    if matches!(state.home, Home::Starting | Home::Restarting) {
                        return Pick::Wait;
                    }
                }
            }
        }
        if let Some(fault) = self.down(state) {
            return Pick::Refuse(fault);
        }
        if let Some(picked) = self.make_room_for(state, user) {
            return picked;
        }
        let wish = match target {
            Era::Legacy => Wish::Legacy,
            Era::Modern => Wish::Modern,
        };
        let mut offer = self.offer();
        if let (ConnectionKind::Own, Some(client)) = (&kind, caller.client) {
            offer.revision = client.revision;
            offer.capabilities = client.capabilities.clone();
            if let Some(info) = client.info.as_deref().and_then(|info| std::str::from_utf8(info).ok()) {
                offer.info = Arc::from(info);
            }
        }
        self.limit_tokens(state, user);
        let peer = match kind {
            ConnectionKind::Own => Peer::owned(self, session, user.clone(), wish, offer),
            ConnectionKind::Pool | ConnectionKind::Shared => Peer::shared(self, user.clone(), wish, offer),
        };
        state.connections.insert(Arc::clone(&peer));
        tokio::spawn(Arc::clone(&peer).open());
        Pick::Peer(peer, None)
    }

    /// Chooses the kind of connection. A legacy HTTP backend keeps state per session, and a question on a legacy pipe
    /// does not name the call that it belongs to.
    fn connection_kind(&self, caller: ConnectionRequest<'_>, target: Era) -> ConnectionKind {
        let askable = || caller.client.is_some_and(|client| client.caps().may_be_asked());
        let declares = || caller.client.is_some_and(|client| !client.caps().is_bare());
        let streams = self.connector.carries_headers();
        match (caller.era, target) {
            (Era::Legacy, Era::Legacy) if streams || askable() => ConnectionKind::Own,
            (Era::Legacy, Era::Legacy) if declares() => ConnectionKind::Pool,
            (Era::Modern, Era::Legacy) if (streams || caller.asks) && declares() => ConnectionKind::Pool,
            _ => ConnectionKind::Shared,
        }
    }

    /// Returns the fault for calls at a backend that is down.
    pub(super) fn down(&self, state: &BackendState) -> Option<Fault> {
        let fault = state.home.fault()?;
        if fault.kind == FaultKind::SignInNeeded {
            return Some(fault.clone());
        }
        let text = format!("backend `{}` is down: {}", self.name, fault.message);
        Some(Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name))
    }

    pub(super) fn no_room(&self, state: &BackendState) -> Option<Fault> {
        if !self.is_full(state) {
            return None;
        }
        let text = format!(
            "backend `{}` already runs {} processes, its `max_children`; a session that declares sampling, elicitation or \
             roots needs one of its own",
            self.name,
            self.spec().max_children
        );
        Some(Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name))
    }

    /// Returns true if no further connection may be opened.
    pub(super) fn is_full(&self, state: &BackendState) -> bool {
        self.connector.is_process() && state.connections.all().len() >= self.spec().max_children
            || state.connections.pooled_count() >= pool::MAX_POOLED
    }

    /// Returns what the gateway declares about itself to a backend.
    pub(super) fn offer(&self) -> ClientOffer {
        let gateway = self.gateway();
        let settings = gateway.as_ref().map(|gateway| gateway.settings());
        let info = settings.as_ref().map_or_else(String::new, |settings| settings.server_info.clone());
        let (start_timeout, timeout) = (self.spec().start_timeout, self.spec().timeout);
        ClientOffer {
            revision: Revision::LATEST_LEGACY,
            capabilities: bytes::Bytes::from_static(b"{}"),
            info: Arc::from(info),
            instance: gateway.map_or_else(|| Arc::from(""), |gateway| Arc::clone(&gateway.instance)),
            start_timeout,
            probe_timeout: PROBE_TIMEOUT.min(start_timeout),
            question_timeout: settings.map_or(timeout, |settings| settings.park_timeout),
        }
    }

    /// Returns the selector of the view that this kind of client gets. A modern backend shows every client the same
    /// lists.
    pub(crate) fn effective(&self, selector: &Selector) -> Selector {
        let era = self.lock().support.target(selector.era);
        let caps = if era == Era::Legacy { selector.caps.clone() } else { CapSet::bare() };
        let whose = selector.whose.as_ref().map(|whose| self.lists_of(whose).unwrap_or_else(|| self.known_as(whose)));
        Selector { era, caps, whose }
    }

    /// Returns true if clients of this era are known to be served in the legacy era here.
    fn meets_old(&self, era: Era) -> bool {
        let state = self.lock();
        state.support.known() && state.support.target(era) == Era::Legacy
    }

    /// Returns true if a connection of this era and capability set, and of this user if each user has its own lists, is
    /// being opened or reads its lists.
    fn is_coming(&self, state: &BackendState, era: Era, caps: &CapSet, whose: Option<&BackendUser>) -> bool {
        let fits = |peer: &Arc<Peer>| match (peer.view_key(), peer.wish) {
            (Some(key), _) => key.era == era && state.lists.is_reading(peer.id),
            (None, Wish::Auto) => true,
            (None, Wish::Legacy) => era == Era::Legacy,
            (None, Wish::Modern) => era == Era::Modern,
        };
        let same = |peer: &Peer| peer.caps == *caps && (whose.is_none() || self.lists_of(&peer.user).as_ref() == whose);
        state.connections.all().iter().any(|peer| same(peer) && !peer.is_lost() && fits(peer))
    }

    /// Returns the era in which the backend serves clients of `era`.
    pub(crate) fn target(&self, era: Era) -> Era {
        self.lock().support.target(era)
    }
}
