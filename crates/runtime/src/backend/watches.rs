//! Resource subscriptions and log levels of legacy sessions: sent to the backend now and again after every
//! reconnection.

use super::Backend;
use super::connections::ConnectionRole;
use super::subscriptions::{MAX_WATCHES, TooManyWatches};
use crate::peer::Peer;
use crate::session::Session;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{BackendUser, Event, ExchangeId, Fault, FaultKind, ServerProfile, SessionKey};
use signalbox_wire::{Envelope, Era};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Time for which a change of a resource is held back, because several connections may report it.
const SAME_CHANGE: Duration = Duration::from_millis(50);

impl Backend {
    /// Adds or removes a watch of a session on a resource. Returns true if the backend has to be told.
    ///
    /// # Errors
    /// If too many resources are watched already, or the session has ended.
    pub(crate) fn watch(&self, session: &Session, uri: &str, on: bool) -> Result<bool, Fault> {
        let user = self.user(session);
        let mut state = match self.lock_or_successor() {
            Ok(state) => state,
            Err(successor) => return successor.watch(session, uri, on),
        };
        // The end of a session removes its watches under this lock; one that is added later would never be removed.
        if session.is_ended() {
            return Err(Fault::new(FaultKind::SessionClosed, "the session has ended"));
        }
        if on {
            let noted = state.subscriptions.watch(session.key, &user, uri);
            return noted.map(|()| true).map_err(|why| self.too_many_watches(why));
        }
        state.subscriptions.unwatch(session.key, uri);
        // Other sessions on a shared connection may still watch the resource.
        Ok(state.connections.owns(session.key) || !state.shared_wants(&user, uri))
    }

    fn too_many_watches(&self, why: TooManyWatches) -> Fault {
        let text = match why {
            TooManyWatches::OfBackend => {
                format!("{MAX_WATCHES} resources of backend `{}` are followed already", self.name)
            }
            TooManyWatches::OfSession(own) => {
                format!("this session follows {own} resources of backend `{}`, which is the limit", self.name)
            }
        };
        Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name)
    }

    /// Returns true if this session follows this resource.
    pub(crate) fn is_followed_by(&self, session: SessionKey, uri: &str) -> bool {
        self.lock().subscriptions.is_followed_by(uri, session)
    }

    /// Returns the sessions of a user that share a connection and watch this resource.
    pub(crate) fn watchers(&self, uri: &str, user: &BackendUser) -> Vec<Arc<Session>> {
        let keys: Vec<SessionKey> = {
            let state = self.lock();
            let watchers = state.subscriptions.watchers_of(uri).map(|(key, _)| key);
            watchers.filter(|key| !state.connections.owns(*key)).collect()
        };
        self.sessions(&keys, user)
    }

    /// Returns the sessions of a user that share a connection and have set a log level.
    pub(crate) fn log_readers(&self, user: &BackendUser) -> Vec<Arc<Session>> {
        let keys: Vec<SessionKey> = {
            let state = self.lock();
            state.subscriptions.log_readers().filter(|key| !state.connections.owns(*key)).collect()
        };
        self.sessions(&keys, user)
    }

    fn sessions(&self, keys: &[SessionKey], user: &BackendUser) -> Vec<Arc<Session>> {
        let Some(gateway) = self.gateway() else { return Vec::new() };
        let known = keys.iter().filter_map(|key| gateway.sessions.by_key(*key));
        known.filter(|session| session.is_user(user)).collect()
    }

    /// Stores the log level of a session and sends it on the session's connections.
    pub(crate) fn set_level(&self, session: &Session, level: LogLevel, may_tell: bool) {
        let peers: Vec<Arc<Peer>> = {
            let mut state = match self.lock_or_successor() {
                Ok(state) => state,
                Err(successor) => return successor.set_level(session, level, may_tell),
            };
            if session.is_ended() {
                return;
            }
            state.subscriptions.set_level(session.key, level);
            let user = self.user(session);
            match state.connections.owned(session.key, &user) {
                Some(owned) => vec![Arc::clone(owned)],
                None => {
                    let shared = state.connections.shared(&user, Era::Legacy);
                    shared.into_iter().chain(state.connections.pooled_of(&user)).cloned().collect()
                }
            }
        };
        for peer in peers.into_iter().filter(|_| may_tell) {
            self.apply_level(&peer);
        }
    }

    /// Sends on a connection the lowest level that its sessions want.
    fn apply_level(&self, peer: &Peer) {
        let wanted = match &peer.role {
            ConnectionRole::Owned(owner) => self.lock().subscriptions.level_of(*owner),
            // Modern calls name the log messages that they want.
            ConnectionRole::Pooled(key) if key.caps.may_be_asked() => None,
            ConnectionRole::Home | ConnectionRole::Shared(_) | ConnectionRole::Pooled(_) => {
                let readers = self.log_readers(&peer.user);
                let state = self.lock();
                readers.iter().filter_map(|session| state.subscriptions.level_of(session.key)).min()
            }
        };
        if let Some(level) = wanted {
            peer.send_level(level);
        }
    }

    /// Restores the subscriptions of the sessions on a connection that has become ready.
    pub(super) fn restore(self: &Arc<Self>, peer: &Arc<Peer>, profile: &ServerProfile) {
        if profile.era() == Era::Modern {
            self.resend_follows(peer);
            return peer.renew_watch(None);
        }
        self.apply_level(peer);
        let (mut uris, mut waiters) = (BTreeSet::new(), Vec::new());
        {
            let state = self.lock();
            uris.extend(state.subscriptions.watched_where(|key, user| match &peer.role {
                ConnectionRole::Owned(owner) => key == *owner,
                ConnectionRole::Home | ConnectionRole::Shared(_) => *user == peer.user && !state.connections.owns(key),
                ConnectionRole::Pooled(_) => false,
            }));
            for follow in state.subscriptions.follows().filter(|one| state.carries(peer, one)) {
                uris.extend(follow.wanted.uris.iter().cloned());
                if peer.role.is_shared() {
                    waiters.push(follow.waiter());
                }
            }
        }
        self.subscribe(vec![Arc::clone(peer)], uris.into_iter().collect(), waiters);
    }

    /// Returns the resources that legacy sessions of a user watch at a modern backend, for its listen request. Empty
    /// for a legacy backend.
    pub(crate) fn watched(&self, user: &BackendUser) -> Vec<String> {
        let state = self.lock();
        if state.support.target(Era::Legacy) != Era::Modern {
            return Vec::new();
        }
        let mut uris: Vec<String> = state.subscriptions.watched_where(|_, of| of == user).collect();
        uris.sort();
        uris
    }

    /// Handles a legacy session's subscription at a modern backend by sending a new listen request for all watched
    /// resources.
    pub(crate) fn watch_by_listening(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId) {
        let user = self.user_of(session, exchange);
        match (self.shared_peer(session, &user, Era::Modern), self.successor()) {
            (_, Some(successor)) => successor.watch_by_listening(session, exchange),
            (Some(peer), None) => peer.renew_watch(Some((Arc::clone(session), exchange))),
            (None, None) => {
                let (backend, session) = (Arc::clone(self), Arc::clone(session));
                tokio::spawn(async move { backend.watch_once_up(&session, exchange).await });
            }
        }
    }

    /// Does the same as [`Self::watch_by_listening`] once a backend that is being started is up.
    async fn watch_once_up(self: Arc<Self>, session: &Arc<Session>, exchange: ExchangeId) {
        let _ = tokio::time::timeout(self.spec().timeout, self.attempted()).await;
        let user = self.user_of(session, exchange);
        if let Some(peer) = self.shared_peer(session, &user, Era::Modern) {
            return peer.renew_watch(Some((Arc::clone(session), exchange)));
        }
        let text = format!("backend `{}` is not connected", self.name);
        let fault = Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name);
        session.handle(Event::Failed { exchange, fault });
    }

    /// Unsubscribes from those of these resources that no session watches any more, on the shared connection of a user.
    pub(super) fn unwatch(&self, user: &BackendUser, uris: &[String]) {
        if uris.is_empty() {
            return;
        }
        let era = self.target(Era::Legacy);
        let shared = self.lock().connections.shared(user, era).cloned();
        match shared.filter(|peer| peer.is_ready()) {
            Some(peer) if era == Era::Modern => peer.renew_watch(None),
            Some(peer) => self.unsubscribe(&peer, uris),
            None => {}
        }
    }

    /// Holds back a change of a resource if other connections of the user may report it too. Returns false if the
    /// caller must forward it at once.
    ///
    /// A backend with several processes reports each change several times. Clients are notified once, after the last
    /// report: forwarding the first and dropping the others would lose a change that happened after a client had read
    /// the resource again.
    pub(crate) fn coalesce_change(self: &Arc<Self>, peer: &Arc<Peer>, uri: &str, message: &Envelope) -> bool {
        if !peer.is_legacy() || peer.owner().is_some() {
            return false;
        }
        let key = (peer.user.clone(), Box::from(uri));
        {
            let mut state = self.lock();
            if state.subscriptions.renew_change(&key, message) {
                return true;
            }
            let alone = !state.connections.has_other(peer);
            if alone || !state.shared_wants(&peer.user, uri) {
                return false;
            }
            if !state.subscriptions.hold_change(key.clone(), message) {
                return false;
            }
        }
        let (backend, peer) = (Arc::clone(self), peer.id);
        tokio::spawn(async move {
            tokio::time::sleep(SAME_CHANGE).await;
            let Some(message) = backend.lock().subscriptions.take_change(&key) else { return };
            let (user, uri) = key;
            let followers = backend.followers(&uri, &user).into_iter().map(|(session, id)| (session, Some(id)));
            let watchers = backend.watchers(&uri, &user).into_iter().map(|session| (session, None));
            for (session, about) in followers.chain(watchers) {
                let name = Arc::clone(&backend.name);
                session.handle(Event::Notified { backend: name, peer, message: message.clone(), about });
            }
        });
        true
    }
}
