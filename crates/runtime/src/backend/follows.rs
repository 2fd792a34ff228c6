//! What sessions want to hear of a backend beyond the answers to their calls: resources, log levels, listen requests.
//!
//! It is kept here and not with a connection, so that a connection that is opened later, or again, is told of it.

use super::Backend;
use super::state::Follow;
use crate::berthed::Waiter;
use crate::origin::Origin;
use crate::peer::{Peer, Use};
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{CapSet, Event, ExchangeId, Fault, FaultKind, PeerId, Principal, ServerProfile, SessionKey};
use signalbox_wire::{Era, json, method};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Most resources that are followed on one backend.
pub const MAX_WATCHES: usize = 10_000;
/// Most listen requests that follow resources of one backend.
pub const MAX_FOLLOWS: usize = 10_000;
/// Within this time the same change told by another connection is the same change.
const SAME_CHANGE: Duration = Duration::from_millis(50);
/// How long a request of our own may take.
const OWN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a listen request may stay open.
const LISTEN_FOR: Duration = Duration::from_secs(24 * 3600);

impl Backend {
    /// Notes what a session follows. True where the backend has to be told.
    ///
    /// # Errors
    /// A fault if too much is followed already.
    pub(crate) fn watch(&self, session: &Session, uri: &str, on: bool) -> Result<bool, Fault> {
        let mut inner = self.lock();
        if on {
            if inner.watches.len() >= MAX_WATCHES && !inner.watches.contains_key(uri) {
                let text = format!("{MAX_WATCHES} resources of backend `{}` are followed already", self.name);
                return Err(Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name));
            }
            inner.watches.entry(uri.into()).or_default().insert(session.key);
            return Ok(true);
        }
        let alone = match inner.watches.get_mut(uri) {
            Some(sessions) => {
                sessions.remove(&session.key);
                sessions.is_empty()
            }
            None => true,
        };
        if alone {
            inner.watches.remove(uri);
        }
        // On a shared connection the others still want to hear of it.
        Ok(alone || inner.owned.contains_key(&session.key))
    }

    /// The sessions of a principal that share a connection and follow this resource.
    pub(crate) fn watchers(&self, uri: &str, principal: &Principal) -> Vec<Arc<Session>> {
        let keys: Vec<SessionKey> = {
            let inner = self.lock();
            let all = inner.watches.get(uri).into_iter().flatten();
            all.filter(|key| !inner.owned.contains_key(key)).copied().collect()
        };
        self.sessions(&keys, principal)
    }

    /// The sessions of a principal that share a connection and have set a log level.
    pub(crate) fn log_readers(&self, principal: &Principal) -> Vec<Arc<Session>> {
        let keys: Vec<SessionKey> = {
            let inner = self.lock();
            inner.levels.keys().filter(|key| !inner.owned.contains_key(key)).copied().collect()
        };
        self.sessions(&keys, principal)
    }

    fn sessions(&self, keys: &[SessionKey], principal: &Principal) -> Vec<Arc<Session>> {
        let Some(gateway) = self.gateway() else { return Vec::new() };
        let known = keys.iter().filter_map(|key| gateway.sessions.by_key(*key));
        known.filter(|session| session.principal == *principal).collect()
    }

    /// Notes which log level a session wants, and tells the connection it uses.
    pub(crate) fn set_level(&self, session: &Session, level: LogLevel) {
        let peer = {
            let mut inner = self.lock();
            inner.levels.insert(session.key, level);
            let owned = inner.owned.get(&session.key);
            owned.or_else(|| inner.shared.get(&(session.principal.clone(), Era::Legacy))).cloned()
        };
        if let Some(peer) = peer {
            self.apply_level(&peer);
        }
    }

    /// Tells a connection the lowest level that anyone on it wants.
    fn apply_level(&self, peer: &Peer) {
        if matches!(peer.use_of, Use::Pool) {
            return;
        }
        let wanted = match peer.owner() {
            Some(owner) => self.lock().levels.get(&owner.key).copied(),
            None => {
                let readers = self.log_readers(&peer.principal);
                let inner = self.lock();
                readers.iter().filter_map(|session| inner.levels.get(&session.key)).min().copied()
            }
        };
        if let Some(level) = wanted {
            peer.send_level(level);
        }
    }

    /// Tells a connection that has just become ready what its sessions want to hear.
    pub(super) fn restore(self: &Arc<Self>, peer: &Arc<Peer>, profile: &ServerProfile) {
        if matches!(peer.use_of, Use::Pool) {
            return self.follow_on_pooled(peer);
        }
        if profile.era() == Era::Modern {
            self.follow_again(peer);
            let watched = self.watched(&peer.principal);
            if self.target(Era::Legacy) == Era::Modern && !watched.is_empty() {
                peer.watch_exactly(&watched, None);
            }
            return;
        }
        self.apply_level(peer);
        let watched: Vec<(Box<str>, Vec<SessionKey>)> = {
            let inner = self.lock();
            inner.watches.iter().map(|(uri, keys)| (uri.clone(), keys.iter().copied().collect())).collect()
        };
        let here = |keys: &[SessionKey]| match peer.owner() {
            Some(owner) => keys.contains(&owner.key),
            None => self.sessions(keys, &peer.principal).iter().any(|session| self.owned(session.key).is_none()),
        };
        let mut uris: BTreeSet<String> =
            watched.iter().filter(|(_, keys)| here(keys)).map(|(uri, _)| uri.to_string()).collect();
        if peer.owner().is_none() && self.target(Era::Modern) == Era::Legacy {
            let inner = self.lock();
            let follows = inner.follows.iter().filter(|one| one.session.principal == peer.principal);
            uris.extend(follows.flat_map(|one| one.uris.iter().cloned()));
        }
        for uri in uris {
            let _ = peer.own(Origin::Nobody, method::RESOURCES_SUBSCRIBE, &uri_param(&uri), OWN_TIMEOUT);
        }
    }

    /// What the sessions of a principal follow by `resources/subscribe`.
    pub(crate) fn watched(&self, principal: &Principal) -> Vec<String> {
        let watches: Vec<(Box<str>, Vec<SessionKey>)> = {
            let inner = self.lock();
            inner.watches.iter().map(|(uri, keys)| (uri.clone(), keys.iter().copied().collect())).collect()
        };
        let mut uris: Vec<String> = watches
            .into_iter()
            .filter(|(_, keys)| !self.sessions(keys, principal).is_empty())
            .map(|(uri, _)| uri.into())
            .collect();
        uris.sort();
        uris
    }

    /// Brings what an old session follows to a backend of the new era, whose listen request names all of it.
    pub(crate) fn watch_by_listening(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId) {
        match self.shared_peer(session, Era::Modern) {
            Some(peer) => {
                let waiter = (Arc::clone(session), exchange);
                peer.watch_exactly(&self.watched(&session.principal), Some(waiter));
            }
            None => {
                let text = format!("backend `{}` is not connected", self.name);
                let fault = Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name);
                session.handle(Event::Failed { exchange, fault });
            }
        }
    }

    /// Follows resources for a client's listen request, now and after every reconnection. The receiver is told once the
    /// backend does so.
    pub(crate) fn follow(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        uris: &[&str],
    ) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let uris: Vec<String> = uris.iter().map(|uri| (*uri).to_owned()).collect();
        let (target, caps) = (self.target(Era::Modern), session.caps_of(exchange));
        let follow = Follow {
            session: Arc::clone(session),
            exchange,
            uris: uris.clone(),
            caps: caps.clone(),
            acknowledged: Some(sender),
        };
        {
            let mut inner = self.lock();
            if inner.follows.len() < MAX_FOLLOWS {
                inner.follows.push(follow);
            }
        }
        let peer = self.shared_peer(session, target).filter(|peer| peer.is_ready());
        match (target, peer) {
            (_, None) => {}
            (Era::Modern, Some(peer)) => send_follow(&peer, session, exchange, &uris),
            (Era::Legacy, Some(peer)) => {
                let (backend, session) = (Arc::clone(self), Arc::clone(session));
                let mut peers = self.pooled_for(&session.principal, &caps);
                peers.push(peer);
                tokio::spawn(async move {
                    for peer in &peers {
                        for uri in &uris {
                            let _ = peer.ask(method::RESOURCES_SUBSCRIBE, &uri_param(uri), OWN_TIMEOUT).await;
                        }
                    }
                    backend.follow_acknowledged(&session, exchange);
                });
            }
        }
        receiver
    }

    /// The pooled connections that calls of this session's client may run on. What a call changes there is told there.
    fn pooled_for(&self, principal: &Principal, caps: &CapSet) -> Vec<Arc<Peer>> {
        let inner = self.lock();
        let pool = inner.pooled.get(&(principal.clone(), caps.clone()));
        pool.into_iter().flatten().filter(|peer| peer.is_ready()).cloned().collect()
    }

    /// Follows on a new pooled connection what its clients follow.
    fn follow_on_pooled(&self, peer: &Arc<Peer>) {
        let uris: BTreeSet<String> = {
            let inner = self.lock();
            let mine = |one: &&Follow| one.session.principal == peer.principal && one.caps == peer.caps;
            inner.follows.iter().filter(mine).flat_map(|one| one.uris.iter().cloned()).collect()
        };
        for uri in uris {
            let _ = peer.own(Origin::Nobody, method::RESOURCES_SUBSCRIBE, &uri_param(&uri), OWN_TIMEOUT);
        }
    }

    /// True where another connection has just told of this change: a backend of several processes tells it several times.
    pub(crate) fn told_before(&self, peer: PeerId, uri: &str, now: Instant) -> bool {
        let mut inner = self.lock();
        inner.told.retain(|_, (_, when)| now.saturating_duration_since(*when) < SAME_CHANGE);
        match inner.told.get(uri) {
            Some((other, _)) if *other != peer => true,
            _ => {
                if inner.told.len() < MAX_WATCHES {
                    inner.told.insert(uri.into(), (peer, now));
                }
                false
            }
        }
    }

    /// The backend follows what a listen request names.
    pub(crate) fn follow_acknowledged(&self, session: &Arc<Session>, exchange: ExchangeId) {
        let mut inner = self.lock();
        let mine = |one: &&mut Follow| one.exchange == exchange && Arc::ptr_eq(&one.session, session);
        if let Some(sender) = inner.follows.iter_mut().find(mine).and_then(|follow| follow.acknowledged.take()) {
            let _ = sender.send(());
        }
    }

    /// The listen requests of a principal that follow this resource.
    pub(crate) fn followers(&self, uri: &str, principal: &Principal) -> Vec<Waiter> {
        let inner = self.lock();
        let follows = inner.follows.iter().filter(|one| one.session.principal == *principal);
        follows
            .filter(|one| one.uris.iter().any(|own| own == uri))
            .map(|one| (Arc::clone(&one.session), one.exchange))
            .collect()
    }

    /// Forgets a listen request. An old backend is told to stop telling what nobody follows any more.
    pub(crate) fn unfollow(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId) {
        let (over, caps): (Vec<String>, CapSet) = {
            let mut inner = self.lock();
            let mine = |one: &Follow| one.exchange == exchange && Arc::ptr_eq(&one.session, session);
            let Some(at) = inner.follows.iter().position(mine) else { return };
            let gone = inner.follows.swap_remove(at);
            let still = |uri: &String| {
                inner.watches.contains_key(&**uri) || inner.follows.iter().any(|one| one.uris.contains(uri))
            };
            (gone.uris.into_iter().filter(|uri| !still(uri)).collect(), gone.caps)
        };
        self.cancel(session, exchange, None);
        if over.is_empty() || self.target(Era::Modern) == Era::Modern {
            return;
        }
        let mut peers = self.pooled_for(&session.principal, &caps);
        peers.extend(self.lock().shared.get(&(session.principal.clone(), Era::Legacy)).cloned());
        for (peer, uri) in peers.iter().flat_map(|peer| over.iter().map(move |uri| (peer, uri))) {
            let _ = peer.own(Origin::Nobody, method::RESOURCES_UNSUBSCRIBE, &uri_param(uri), OWN_TIMEOUT);
        }
    }

    fn follow_again(&self, peer: &Arc<Peer>) {
        let inner = self.lock();
        for follow in inner.follows.iter().filter(|one| one.session.principal == peer.principal) {
            send_follow(peer, &follow.session, follow.exchange, &follow.uris);
        }
    }

    /// Forgets everything a session wanted to hear.
    pub(super) fn forget(&self, session: SessionKey) {
        let mut inner = self.lock();
        inner.levels.remove(&session);
        inner.follows.retain(|one| one.session.key != session);
        inner.watches.retain(|_, sessions| {
            sessions.remove(&session);
            !sessions.is_empty()
        });
    }
}

fn send_follow(peer: &Peer, session: &Arc<Session>, exchange: ExchangeId, uris: &[String]) {
    let list: Vec<String> = uris.iter().map(|uri| json::quote(uri)).collect();
    let params = format!("\"notifications\":{{\"resourceSubscriptions\":[{}]}}", list.join(","));
    let origin = Origin::Listen(Arc::clone(session), exchange);
    if let Err(fault) = peer.own(origin, method::SUBSCRIPTIONS_LISTEN, &params, LISTEN_FOR) {
        tracing::debug!(peer = %peer.id, %fault, "resources cannot be followed yet");
    }
}

fn uri_param(uri: &str) -> String {
    format!("\"uri\":{}", json::quote(uri))
}
