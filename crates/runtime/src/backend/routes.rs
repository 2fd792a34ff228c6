//! Which connection carries a call.

use super::Backend;
use super::state::{Home, Inner};
use crate::peer::{MAX_QUEUED, Peer, Queued};
use crate::session::Session;
use signalbox_engine::back::{ClientOffer, Wish};
use signalbox_engine::catalog::Selector;
use signalbox_engine::{Call, CapSet, Event, ExchangeId, Fault, FaultKind};
use signalbox_wire::{Era, Revision};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a probe for the new era may stay unanswered before `initialize` is tried.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many connections are tried for one call before it is given up.
const TRIES: usize = 3;

enum Pick {
    Peer(Arc<Peer>),
    Wait,
    Refuse(Fault),
}

impl Backend {
    /// Brings a call to a connection that may carry it; opens one, or lets the call wait, where there is none yet.
    pub(crate) fn dispatch(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId, call: Box<Call>) {
        let timeout = self.spec.timeout;
        let mut call = call;
        // A connection that is found lost is not found again, so a few tries meet a live one if there is any.
        for _ in 0..TRIES {
            let mut inner = self.lock();
            let Pick::Peer(peer) = self.pick(&mut inner, session, call.era) else { break };
            drop(inner);
            match peer.call(session, exchange, call, timeout) {
                Some(back) => call = back,
                None => return,
            }
        }
        let mut inner = self.lock();
        match self.pick(&mut inner, session, call.era) {
            Pick::Peer(_) => {
                drop(inner);
                let text = format!("backend `{}` loses its connections as soon as they are opened", self.name);
                let fault = Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name);
                session.handle(Event::Failed { exchange, fault });
            }
            Pick::Wait if inner.waiting.len() < MAX_QUEUED => {
                let deadline = Instant::now() + timeout;
                inner.waiting.push_back(Queued { session: Arc::clone(session), exchange, call, deadline });
            }
            Pick::Wait => {
                drop(inner);
                let text = format!("{MAX_QUEUED} calls already wait for backend `{}` to start", self.name);
                let fault = Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name);
                session.handle(Event::Failed { exchange, fault });
            }
            Pick::Refuse(fault) => {
                drop(inner);
                session.handle(Event::Failed { exchange, fault });
            }
        }
    }

    /// Opens what a session of this era needs to be shown the right lists.
    pub(crate) fn prepare(self: &Arc<Self>, session: &Arc<Session>, era: Era) {
        let picked = {
            let mut inner = self.lock();
            let target = inner.support.target(era);
            let caps = if target == era { session.selector(era).caps } else { CapSet::bare() };
            // Many sessions may wait for the same lists; one connection reads them for all.
            if !inner.support.known() || coming(&inner, target, &caps) {
                return;
            }
            self.pick(&mut inner, session, era)
        };
        // A connection that is ready has read its lists once; where they are not known any more it reads them again.
        if let Pick::Peer(peer) = picked
            && let Some(profile) = peer.profile().filter(|_| peer.is_ready())
        {
            self.refresh(&peer, &profile, false);
        }
    }

    /// The connection of the new era that a session may use, if it is ready.
    pub(crate) fn modern_peer(self: &Arc<Self>, session: &Arc<Session>) -> Option<Arc<Peer>> {
        let mut inner = self.lock();
        if inner.support.modern != Some(true) {
            return None;
        }
        match self.pick(&mut inner, session, Era::Modern) {
            Pick::Peer(peer) => Some(peer),
            Pick::Wait | Pick::Refuse(_) => None,
        }
    }

    fn pick(self: &Arc<Self>, inner: &mut Inner, session: &Arc<Session>, era: Era) -> Pick {
        if inner.stopping {
            return Pick::Refuse(Fault::new(FaultKind::Draining, "the gateway is shutting down"));
        }
        if session.is_ended() {
            return Pick::Refuse(Fault::new(FaultKind::SessionClosed, "the session has ended"));
        }
        if !inner.support.known() {
            return self.down(inner).map_or(Pick::Wait, Pick::Refuse);
        }
        let target = inner.support.target(era);
        let client = session.client();
        let caps = client.as_ref().map_or_else(CapSet::bare, |client| client.caps.clone());
        // An old-era HTTP backend keeps state per session; an old-era pipe cannot say which call a question is about.
        let own = era == Era::Legacy && target == Era::Legacy && (self.connector.carries_headers() || !caps.is_bare());
        if own {
            if let Some(peer) = inner.owned.get(&session.key) {
                return Pick::Peer(Arc::clone(peer));
            }
        } else if let Some(peer) = inner.shared.get(&(session.principal.clone(), target)) {
            return Pick::Peer(Arc::clone(peer));
        } else if matches!(inner.home, Home::Starting | Home::Restarting) {
            return Pick::Wait;
        }
        if let Some(fault) = self.down(inner).or_else(|| self.no_room(inner)) {
            return Pick::Refuse(fault);
        }
        let wish = match target {
            Era::Legacy => Wish::Legacy,
            Era::Modern => Wish::Modern,
        };
        let mut offer = self.offer();
        if let (true, Some(client)) = (own, &client) {
            offer.revision = client.revision;
            offer.capabilities = client.capabilities.clone();
            if let Some(info) = client.info.as_deref().and_then(|info| std::str::from_utf8(info).ok()) {
                offer.info = Arc::from(info);
            }
        }
        let owner = own.then(|| Arc::clone(session));
        let peer = Peer::new(self, session.principal.clone(), owner, wish, offer);
        if own {
            inner.owned.insert(session.key, Arc::clone(&peer));
        } else {
            inner.shared.insert((session.principal.clone(), target), Arc::clone(&peer));
        }
        tokio::spawn(Arc::clone(&peer).open());
        Pick::Peer(peer)
    }

    /// Why nothing can be opened on a backend that is down.
    fn down(&self, inner: &Inner) -> Option<Fault> {
        let Home::Down(fault) = &inner.home else { return None };
        let text = format!("backend `{}` is down: {}", self.name, fault.message);
        Some(Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name))
    }

    fn no_room(&self, inner: &Inner) -> Option<Fault> {
        if !self.is_full(inner) {
            return None;
        }
        let text = format!(
            "backend `{}` already runs {} processes, its `max_children`; a session that declares sampling, elicitation or \
             roots needs one of its own",
            self.name, self.spec.max_children
        );
        Some(Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name))
    }

    /// True where no further process may be started.
    pub(super) fn is_full(&self, inner: &Inner) -> bool {
        self.connector.is_process() && inner.peers().len() >= self.spec.max_children
    }

    /// What the gateway says about itself to a backend.
    pub(super) fn offer(&self) -> ClientOffer {
        let info = self.gateway().map_or_else(String::new, |gateway| gateway.settings.server_info.clone());
        ClientOffer {
            revision: Revision::LATEST_LEGACY,
            capabilities: bytes::Bytes::from_static(b"{}"),
            info: Arc::from(info),
            start_timeout: self.spec.start_timeout,
            probe_timeout: PROBE_TIMEOUT.min(self.spec.start_timeout),
        }
    }

    /// Under which view this kind of client sees the backend.
    pub(crate) fn effective(&self, selector: &Selector) -> Selector {
        let target = self.lock().support.target(selector.era);
        if target == selector.era {
            return selector.clone();
        }
        Selector { era: target, caps: CapSet::bare() }
    }
}

/// True where a connection of this era and capability set is opening or reads its lists right now.
fn coming(inner: &Inner, era: Era, caps: &CapSet) -> bool {
    let fits = |peer: &Arc<Peer>| match (peer.view_key(), peer.wish) {
        (Some(key), _) => key.era == era && inner.reading.contains(&peer.id),
        (None, Wish::Auto) => true,
        (None, Wish::Legacy) => era == Era::Legacy,
        (None, Wish::Modern) => era == Era::Modern,
    };
    inner.peers().iter().any(|peer| peer.caps == *caps && !peer.is_lost() && fits(peer))
}
