//! Finds the connection that carries a call, or opens it. `ARCHITECTURE.md` has the table of who shares what.

use super::Backend;
use super::pool;
use super::state::{BackendState, Home};
use crate::backend::ExclusiveUse;
use crate::peer::{Peer, Queued};
use crate::session::Session;
use signalbox_engine::back::{ClientOffer, Wish};
use signalbox_engine::catalog::Selector;
use signalbox_engine::{Authorized, BackendUser, Call, CapSet, ClientProfile, ExchangeId, Fault, FaultKind, bridge};
use signalbox_wire::{Era, Revision};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a probe for the new era may stay unanswered before `initialize` is tried.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many connections are tried for one call before it is given up.
const TRIES: usize = 3;

pub(super) enum Pick {
    Peer(Arc<Peer>, Option<ExclusiveUse>),
    Wait,
    Refuse(Fault),
}

/// Who wants a connection, and for what.
#[derive(Copy, Clone)]
pub(super) struct ConnectionRequest<'a> {
    pub session: &'a Arc<Session>,
    /// The user that the backend takes the caller for.
    pub user: &'a BackendUser,
    pub client: Option<&'a ClientProfile>,
    pub era: Era,
    /// The backend may ask the client something because of the call.
    pub asks: bool,
}

impl<'a> ConnectionRequest<'a> {
    fn of_call(session: &'a Arc<Session>, user: &'a BackendUser, call: &'a Call) -> Self {
        Self { session, user, client: Some(&call.client), era: call.era, asks: bridge::may_ask(&call.method) }
    }

    pub fn caps(&self) -> CapSet {
        self.client.map_or_else(CapSet::bare, |client| client.caps().clone())
    }
}

/// Which kind of connection a caller uses.
enum Way {
    Own,
    Pool,
    Shared,
}

impl Backend {
    /// Brings a call to a connection that may carry it. If there is none yet, opens one or lets the call wait.
    pub(crate) fn dispatch(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId, call: Authorized) {
        let timeout = self.timeout_of(&call);
        self.route(session, exchange, call, || crate::clock::now() + timeout);
    }

    pub(super) fn dispatch_until(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: Authorized,
        deadline: Instant,
    ) {
        self.route(session, exchange, call, || deadline);
    }

    /// `deadline` is called only if the call has to wait.
    fn route(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: Authorized,
        deadline: impl Fn() -> Instant,
    ) {
        // At an old backend, a further round belongs to a call that is parked here, and a task request to the
        // connection that made the task.
        let about_task = call.era == Era::Modern && call.method.starts_with("tasks/");
        if (call.round.is_some() || about_task)
            && let Some(gateway) = self.gateway()
            && (self.meets_old(call.era) || gateway.waits_at_predecessor(session, &call))
        {
            return match about_task {
                true => gateway.task_request(session, exchange, &call),
                false => gateway.come_back(self, session, exchange, call),
            };
        }
        let (mut call, user) = (call, self.user_of(session, exchange));
        // A connection that is lost is not found a second time, so a few tries reach a live one if there is any.
        for _ in 0..TRIES {
            let mut state = self.lock();
            if let Some(successor) = state.retired.clone() {
                drop(state);
                let (session, deadline) = (Arc::clone(session), deadline());
                return self.hand_over(successor, Queued { session, exchange, call, deadline, exclusive_use: None });
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
                    return state.waiting.push_back(Queued { session, exchange, call, deadline, exclusive_use: None });
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

    /// Hands a call to a connection. A call of the new era that wants log messages waits until the old backend
    /// has set the level.
    fn send(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: Authorized,
        exclusive_use: Option<ExclusiveUse>,
    ) -> Option<Authorized> {
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

    /// Sends a request whose answer is not awaited on the connection that its user shares, if that is open.
    pub(crate) fn errand(&self, session: &Session, call: Authorized) {
        let user = self.user(session);
        let shared = {
            let state = self.lock();
            state.connections.shared(&user, state.support.target(call.era)).cloned()
        };
        if let Some(peer) = shared {
            peer.errand(call, self.spec().timeout);
        }
    }

    /// Sends a copy of a request on the connection that its user shares, or on the home connection. False if neither is
    /// ready. A backend that is asleep is started and gets the copy once it is up.
    pub(crate) fn fork(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: Option<ExchangeId>,
        call: Authorized,
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

    fn fork_now(&self, session: &Arc<Session>, exchange: ExchangeId, call: Authorized) -> bool {
        let user = self.user_of(session, exchange);
        let peer = {
            let state = self.lock();
            let shared = state.connections.shared(&user, state.support.target(call.era));
            // Where principals have credentials of their own, the home connection has that of another.
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
                // Only where the caller's own credential opens the connection: lists start no process.
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
        // A connection that is ready has read its lists once; it reads them again if they are stale or forgotten.
        if let Pick::Peer(peer, _) = picked
            && let Some(profile) = peer.profile().filter(|_| peer.is_ready())
        {
            self.refresh(&peer, &profile, false);
        }
    }

    /// The connection that the sessions of this user share, opened if necessary. `None` if the backend is not known to
    /// speak this era; it is started if it is asleep.
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
        let way = self.way(caller, target);
        match way {
            Way::Own => {
                if let Some(peer) = state.connections.owned(session.key, user) {
                    return Pick::Peer(Arc::clone(peer), None);
                }
            }
            Way::Pool => return self.pick_pooled(state, caller),
            Way::Shared => {
                if let Some(peer) = state.connections.shared(user, target) {
                    return Pick::Peer(Arc::clone(peer), None);
                }
                // The token of one caller decides nothing for another, so that none waits for the other's connection.
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
        if let (Way::Own, Some(client)) = (&way, caller.client) {
            offer.revision = client.revision;
            offer.capabilities = client.capabilities.clone();
            if let Some(info) = client.info.as_deref().and_then(|info| std::str::from_utf8(info).ok()) {
                offer.info = Arc::from(info);
            }
        }
        self.limit_tokens(state, user);
        let peer = match way {
            Way::Own => Peer::owned(self, session, user.clone(), wish, offer),
            Way::Pool | Way::Shared => Peer::shared(self, user.clone(), wish, offer),
        };
        state.connections.insert(Arc::clone(&peer));
        tokio::spawn(Arc::clone(&peer).open());
        Pick::Peer(peer, None)
    }

    /// An old HTTP backend keeps state per session, and a question on an old pipe does not say which call it is about.
    fn way(&self, caller: ConnectionRequest<'_>, target: Era) -> Way {
        let askable = || caller.client.is_some_and(|client| client.caps().may_be_asked());
        let declares = || caller.client.is_some_and(|client| !client.caps().is_bare());
        let streams = self.connector.carries_headers();
        match (caller.era, target) {
            (Era::Legacy, Era::Legacy) if streams || askable() => Way::Own,
            (Era::Legacy, Era::Legacy) if declares() => Way::Pool,
            (Era::Modern, Era::Legacy) if (streams || caller.asks) && declares() => Way::Pool,
            _ => Way::Shared,
        }
    }

    /// Why nothing can be opened on a backend that is down.
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

    /// True if no further process may be started.
    pub(super) fn is_full(&self, state: &BackendState) -> bool {
        self.connector.is_process() && state.connections.all().len() >= self.spec().max_children
            || state.connections.pooled_count() >= pool::MAX_POOLED
    }

    /// What the gateway says about itself to a backend.
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

    /// The view that this kind of client gets. A backend of the new era shows everybody the same lists.
    pub(crate) fn effective(&self, selector: &Selector) -> Selector {
        let era = self.lock().support.target(selector.era);
        let caps = if era == Era::Legacy { selector.caps.clone() } else { CapSet::bare() };
        let whose = selector.whose.as_ref().map(|whose| self.lists_of(whose).unwrap_or_else(|| self.known_as(whose)));
        Selector { era, caps, whose }
    }

    /// True if it is known that clients of this era are served in the old era here.
    fn meets_old(&self, era: Era) -> bool {
        let state = self.lock();
        state.support.known() && state.support.target(era) == Era::Legacy
    }

    /// True if a connection of this era and capability set, and of this user if each has its own lists, is being
    /// opened or reads its lists.
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

    /// The era in which clients of this era are served here.
    pub(crate) fn target(&self, era: Era) -> Era {
        self.lock().support.target(era)
    }
}
