//! What sessions want to hear of a backend beyond the answers to their calls: resources, log levels, listen requests.
//!
//! It is kept here and not with a connection, so that a connection that is opened later, or again, is told of it.

use super::Backend;
use super::state::Follow;
use crate::origin::Origin;
use crate::peer::Peer;
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{ExchangeId, Fault, FaultKind, Principal, ServerProfile, SessionKey};
use signalbox_wire::{Era, json, method};
use std::sync::Arc;
use std::time::Duration;

/// Most resources that are followed on one backend.
pub const MAX_WATCHES: usize = 10_000;
/// Most listen requests that follow resources of one backend.
pub const MAX_FOLLOWS: usize = 10_000;
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
        let wanted = match &peer.owner {
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
        if profile.era() == Era::Modern {
            return self.follow_again(peer);
        }
        self.apply_level(peer);
        let watched: Vec<(Box<str>, Vec<SessionKey>)> = {
            let inner = self.lock();
            inner.watches.iter().map(|(uri, keys)| (uri.clone(), keys.iter().copied().collect())).collect()
        };
        let here = |keys: &[SessionKey]| match &peer.owner {
            Some(owner) => keys.contains(&owner.key),
            None => self.sessions(keys, &peer.principal).iter().any(|session| self.owned(session.key).is_none()),
        };
        for (uri, _) in watched.iter().filter(|(_, keys)| here(keys)) {
            let params = format!("\"uri\":{}", json::quote(uri));
            let _ = peer.own(Origin::Nobody, method::RESOURCES_SUBSCRIBE, &params, OWN_TIMEOUT);
        }
    }

    /// Follows resources of a backend of the new era for a client's listen request, now and after every reconnection.
    pub(crate) fn follow(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId, uris: &[&str]) {
        let follow =
            Follow { session: Arc::clone(session), exchange, uris: uris.iter().map(|uri| (*uri).to_owned()).collect() };
        if let Some(peer) = self.modern_peer(session).filter(|peer| peer.is_ready()) {
            send_follow(&peer, &follow);
        }
        let mut inner = self.lock();
        if inner.follows.len() < MAX_FOLLOWS {
            inner.follows.push(follow);
        }
    }

    /// Forgets a listen request.
    pub(crate) fn unfollow(&self, session: &Arc<Session>, exchange: ExchangeId) {
        let mine = |one: &Follow| one.exchange == exchange && Arc::ptr_eq(&one.session, session);
        self.lock().follows.retain(|one| !mine(one));
        self.cancel(session, exchange, None);
    }

    fn follow_again(&self, peer: &Arc<Peer>) {
        let inner = self.lock();
        for follow in inner.follows.iter().filter(|one| one.session.principal == peer.principal) {
            send_follow(peer, follow);
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

fn send_follow(peer: &Peer, follow: &Follow) {
    let list: Vec<String> = follow.uris.iter().map(|uri| json::quote(uri)).collect();
    let params = format!("\"notifications\":{{\"resourceSubscriptions\":[{}]}}", list.join(","));
    let origin = Origin::Listen(Arc::clone(&follow.session), follow.exchange);
    if let Err(fault) = peer.own(origin, method::SUBSCRIPTIONS_LISTEN, &params, LISTEN_FOR) {
        tracing::debug!(peer = %peer.id, %fault, "resources cannot be followed yet");
    }
}
