//! Reopens lost connections that carry subscriptions, which no call would reopen. The home connection is reopened by
//! its supervisor.

use super::Backend;
use super::connection_request::{ConnectionRequest, Pick};
use super::connections::ConnectionRole;
use super::follows::AGAIN;
use super::subscriptions::Follow;
use super::supervisor::BACKOFF_MAX;
use crate::peer::Peer;
use crate::session::Session;
use signalbox_engine::{BackendUser, SessionKey};
use signalbox_wire::Era;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Time that a successor has for its own handshake before the connections of its predecessor's subscribers are opened.
const SOON: Duration = Duration::from_millis(500);

/// A subscriber without a connection.
struct UnconnectedSubscriber {
    session: Arc<Session>,
    user: BackendUser,
    era: Era,
}

impl Backend {
    /// Reopens a lost connection that has subscribers, after a longer delay if its handshake failed.
    pub(super) fn reopen_later(self: &Arc<Self>, peer: &Peer) {
        let after = if peer.profile().is_some() { AGAIN } else { BACKOFF_MAX };
        match &peer.role {
            ConnectionRole::Owned(_) | ConnectionRole::Shared(_) => self.reopen(peer.role.clone(), after),
            // Another home connection has taken its place already.
            ConnectionRole::Home => self.reopen(ConnectionRole::Shared(peer.user.clone()), after),
            ConnectionRole::Pooled(_) => {}
        }
    }

    /// Opens the shared connection of a subscribed user, and retries until it is open.
    pub(super) fn keep_open(self: &Arc<Self>, user: BackendUser) {
        self.reopen(ConnectionRole::Shared(user), AGAIN);
    }

    /// Opens every connection that the subscriptions of a predecessor need.
    pub(super) fn reopen_all(self: &Arc<Self>) {
        let (users, watching): (HashSet<BackendUser>, HashSet<SessionKey>) = {
            let state = self.lock();
            let watchers = state.subscriptions.watchers().map(|(_, user)| user.clone());
            let followers = state.subscriptions.follows().map(|follow| follow.user.clone());
            (watchers.chain(followers).collect(), state.subscriptions.watchers().map(|(key, _)| key).collect())
        };
        for user in users {
            self.reopen(ConnectionRole::Shared(user), SOON);
        }
        for key in watching {
            self.reopen(ConnectionRole::Owned(key), SOON);
        }
    }

    fn reopen(self: &Arc<Self>, role: ConnectionRole, after: Duration) {
        if self.missing(&role).is_empty() || !self.lock().subscriptions.begin_reopening(&role) {
            return;
        }
        let backend = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut after = after;
            loop {
                tokio::time::sleep(after).await;
                let Some(backend) = backend.upgrade() else { return };
                if backend.try_reopen(&role) {
                    return;
                }
                after = AGAIN;
            }
        });
    }

    /// Returns true if nothing is left to do. A connection that is lost later starts over with `reopen_later`.
    fn try_reopen(self: &Arc<Self>, role: &ConnectionRole) -> bool {
        let missing = self.missing(role);
        let mut state = self.lock();
        let mut done = true;
        for one in missing {
            let client = one.session.client().filter(|_| one.era == Era::Legacy);
            let caller = ConnectionRequest {
                session: &one.session,
                user: &one.user,
                client: client.as_deref(),
                era: one.era,
                asks: client.is_some(),
            };
            done &= matches!(self.pick(&mut state, caller), Pick::Peer(..));
        }
        done |= state.stopping;
        if done {
            state.subscriptions.end_reopening(role);
        }
        done
    }

    /// Returns the subscribers without a connection: at most one of each era, since others share its connection.
    fn missing(&self, role: &ConnectionRole) -> Vec<UnconnectedSubscriber> {
        let (mut missing, keys) = {
            let state = self.lock();
            let there =
                |user: &BackendUser, era: Era| state.connections.shared(user, state.support.target(era)).is_some();
            match role {
                ConnectionRole::Home | ConnectionRole::Pooled(_) => (Vec::new(), Vec::new()),
                ConnectionRole::Owned(key) => {
                    // A session that has set a log level expects log messages.
                    let level = state.subscriptions.level_of(*key);
                    let hears = state.subscriptions.has_watches(*key) || level.is_some();
                    let lost = hears && !state.connections.owns(*key);
                    (Vec::new(), Vec::from_iter(lost.then_some((*key, Era::Legacy))))
                }
                ConnectionRole::Shared(user) => {
                    let follows = state.subscriptions.follows_of(user).next();
                    let follows = follows.filter(|_| !there(user, Era::Modern));
                    let missing = |one: &Follow| UnconnectedSubscriber {
                        session: Arc::clone(&one.session),
                        user: user.clone(),
                        era: Era::Modern,
                    };
                    let follows = follows.map(missing);
                    // A modern backend serves legacy sessions on the connection of the modern era.
                    let era = state.support.target(Era::Legacy);
                    let watchers = state.subscriptions.watchers().filter(|(_, of)| *of == user);
                    let mut watchers = watchers.filter(|(key, _)| !state.connections.owns(*key));
                    let watcher = watchers.next().map(|(key, _)| (key, era)).filter(|_| !there(user, era));
                    (Vec::from_iter(follows), Vec::from_iter(watcher))
                }
            }
        };
        if let Some(gateway) = self.gateway() {
            let known = keys.into_iter().filter_map(|(key, era)| Some((gateway.sessions.by_key(key)?, era)));
            missing.extend(known.map(|(session, era)| UnconnectedSubscriber {
                user: self.user(&session),
                session,
                era,
            }));
        }
        missing
    }
}
