//! What old sessions want to hear of a backend beyond the answers to their calls: resources and log levels.
//!
//! It is kept here and not with a connection, so that a connection that is opened later, or again, is told of it.

use super::Backend;
use crate::peer::{Peer, Use};
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Event, ExchangeId, Fault, FaultKind, Principal, ServerProfile, SessionKey};
use signalbox_wire::Era;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most resources that are followed on one backend.
pub const MAX_WATCHES: usize = 10_000;
/// Most of them that one session follows.
pub const MAX_WATCHES_EACH: usize = 1_000;

impl Backend {
    /// Notes what a session follows. True where the backend has to be told.
    ///
    /// # Errors
    /// A fault if too much is followed already.
    pub(crate) fn watch(&self, session: &Session, uri: &str, on: bool) -> Result<bool, Fault> {
        let mut inner = match self.lock_or_successor() {
            Ok(inner) => inner,
            Err(successor) => return successor.watch(session, uri, on),
        };
        // A session that ends is forgotten behind this lock; what came later would stay for good.
        if session.is_ended() {
            return Err(Fault::new(FaultKind::SessionClosed, "the session has ended"));
        }
        if on {
            if inner.watches.len() >= MAX_WATCHES && !inner.watches.contains_key(uri) {
                let text = format!("{MAX_WATCHES} resources of backend `{}` are followed already", self.name);
                return Err(Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name));
            }
            let own = inner.watches.values().filter(|sessions| sessions.contains_key(&session.key)).count();
            let known = inner.watches.get(uri).is_some_and(|sessions| sessions.contains_key(&session.key));
            if own >= MAX_WATCHES_EACH && !known {
                let text =
                    format!("this session follows {own} resources of backend `{}`, which is the limit", self.name);
                return Err(Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name));
            }
            let principal = session.principal.clone();
            inner.watches.entry(uri.into()).or_default().insert(session.key, principal);
            return Ok(true);
        }
        if let Some(sessions) = inner.watches.get_mut(uri) {
            sessions.remove(&session.key);
            if sessions.is_empty() {
                inner.watches.remove(uri);
            }
        }
        // On a shared connection others may still want to hear of it.
        Ok(inner.owned.contains_key(&session.key) || !inner.shared_wants(&session.principal, uri))
    }

    /// The sessions of a principal that share a connection and follow this resource.
    pub(crate) fn watchers(&self, uri: &str, principal: &Principal) -> Vec<Arc<Session>> {
        let keys: Vec<SessionKey> = {
            let inner = self.lock();
            let all = inner.watches.get(uri).into_iter().flat_map(|sessions| sessions.keys());
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
            let mut inner = match self.lock_or_successor() {
                Ok(inner) => inner,
                Err(successor) => return successor.set_level(session, level),
            };
            if session.is_ended() {
                return;
            }
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
        if profile.era() == Era::Modern {
            self.follow_again(peer);
            return peer.watch_anew(None);
        }
        self.apply_level(peer);
        let (mut uris, mut waiters) = (BTreeSet::new(), Vec::new());
        {
            let inner = self.lock();
            let here = |(key, principal): (&SessionKey, &Principal)| match &peer.use_of {
                Use::Session(owner) => *key == owner.key,
                Use::Shared => *principal == peer.principal && !inner.owned.contains_key(key),
                Use::Pool => false,
            };
            let watched = inner.watches.iter().filter(|(_, sessions)| sessions.iter().any(here));
            uris.extend(watched.map(|(uri, _)| String::from(&**uri)));
            for follow in inner.follows.values().filter(|one| inner.carries(peer, one)) {
                uris.extend(follow.wanted.uris.iter().cloned());
                if matches!(peer.use_of, Use::Shared) {
                    waiters.push((Arc::clone(&follow.session), follow.exchange));
                }
            }
        }
        self.subscribe(vec![Arc::clone(peer)], uris.into_iter().collect(), waiters);
    }

    /// What the sessions of a principal follow by `resources/subscribe`, where the backend hears of that by a listen
    /// request.
    pub(crate) fn watched(&self, principal: &Principal) -> Vec<String> {
        let inner = self.lock();
        if inner.support.target(Era::Legacy) != Era::Modern {
            return Vec::new();
        }
        let mine = inner.watches.iter().filter(|(_, sessions)| sessions.values().any(|one| one == principal));
        let mut uris: Vec<String> = mine.map(|(uri, _)| String::from(&**uri)).collect();
        uris.sort();
        uris
    }

    /// Brings what an old session follows to a backend of the new era, whose listen request names all of it.
    pub(crate) fn watch_by_listening(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId) {
        match (self.shared_peer(session, Era::Modern), self.successor()) {
            (_, Some(successor)) => successor.watch_by_listening(session, exchange),
            (Some(peer), None) => peer.watch_anew(Some((Arc::clone(session), exchange))),
            (None, None) => {
                let (backend, session) = (Arc::clone(self), Arc::clone(session));
                tokio::spawn(async move { backend.watch_once_up(&session, exchange).await });
            }
        }
    }

    /// The same for a backend that may be about to start.
    async fn watch_once_up(self: Arc<Self>, session: &Arc<Session>, exchange: ExchangeId) {
        let _ = tokio::time::timeout(self.spec().timeout, self.attempted()).await;
        if let Some(peer) = self.shared_peer(session, Era::Modern) {
            return peer.watch_anew(Some((Arc::clone(session), exchange)));
        }
        let text = format!("backend `{}` is not connected", self.name);
        let fault = Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name);
        session.handle(Event::Failed { exchange, fault });
    }

    /// Forgets everything a session wanted to hear; the resources that it followed.
    pub(super) fn forget(&self, session: SessionKey) -> Vec<String> {
        let mut inner = self.lock();
        inner.levels.remove(&session);
        inner.follows.retain(|(key, _), _| *key != session);
        let mut unwatched = Vec::new();
        inner.watches.retain(|uri, sessions| {
            if sessions.remove(&session).is_some() {
                unwatched.push(String::from(&**uri));
            }
            !sessions.is_empty()
        });
        unwatched
    }

    /// Has the connection that a principal shares stop telling of those of these resources that nobody follows any more.
    pub(super) fn unwatch(&self, principal: &Principal, uris: &[String]) {
        if uris.is_empty() {
            return;
        }
        let era = self.target(Era::Legacy);
        let shared = self.lock().shared.get(&(principal.clone(), era)).cloned();
        match shared.filter(|peer| peer.is_ready()) {
            Some(peer) if era == Era::Modern => peer.watch_anew(None),
            Some(peer) => self.unsubscribe(&peer, uris),
            None => {}
        }
    }
}
