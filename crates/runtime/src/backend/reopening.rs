//! Connections that nobody calls on, but on which somebody wants to hear of changes: they are opened again when they are
//! lost. The home connection has its supervisor.

use super::Backend;
use super::follows::AGAIN;
use super::routes::{Caller, Pick};
use super::supervisor::BACKOFF_MAX;
use crate::peer::{Peer, Use};
use crate::session::Session;
use signalbox_engine::{Principal, SessionKey};
use signalbox_wire::Era;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How long a backend that has taken the place of another has for its handshake before such connections are tried.
const SOON: Duration = Duration::from_millis(500);

/// Who hears of changes on a connection.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Seat {
    /// The sessions of a principal that share it.
    Shared(Principal),
    /// The session that it belongs to.
    Own(SessionKey),
}

/// For whom a connection is missing.
struct Missing {
    session: Arc<Session>,
    era: Era,
}

impl Backend {
    /// A connection was lost: it is opened again if somebody listens, later where it could not even be opened.
    pub(super) fn reopen_later(self: &Arc<Self>, peer: &Peer) {
        let after = if peer.profile().is_some() { AGAIN } else { BACKOFF_MAX };
        match &peer.use_of {
            Use::Session(session) => self.reopen(Seat::Own(session.key), after),
            Use::Shared => self.reopen(Seat::Shared(peer.principal.clone()), after),
            Use::Pool => {}
        }
    }

    /// Opens the connection of a principal that listens, as soon as that can be done.
    pub(super) fn keep_open(self: &Arc<Self>, principal: Principal) {
        self.reopen(Seat::Shared(principal), AGAIN);
    }

    /// Opens every connection on which somebody wants to hear of changes: a predecessor had them.
    pub(super) fn reopen_all(self: &Arc<Self>) {
        let (principals, watching): (HashSet<Principal>, HashSet<SessionKey>) = {
            let inner = self.lock();
            let watchers = || inner.watches.values().flatten();
            let principals = watchers().map(|(_, principal)| principal.clone());
            let followers = inner.follows.values().map(|follow| follow.session.principal.clone());
            (principals.chain(followers).collect(), watchers().map(|(key, _)| *key).collect())
        };
        for principal in principals {
            self.reopen(Seat::Shared(principal), SOON);
        }
        for key in watching {
            self.reopen(Seat::Own(key), SOON);
        }
    }

    fn reopen(self: &Arc<Self>, seat: Seat, after: Duration) {
        if self.missing(&seat).is_empty() || !self.lock().reopening.insert(seat.clone()) {
            return;
        }
        let backend = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut after = after;
            loop {
                tokio::time::sleep(after).await;
                let Some(backend) = backend.upgrade() else { return };
                if backend.try_reopen(&seat) {
                    return;
                }
                after = AGAIN;
            }
        });
    }

    /// True where there is no more to do. A connection that is lost again comes back here by itself.
    fn try_reopen(self: &Arc<Self>, seat: &Seat) -> bool {
        let missing = self.missing(seat);
        let mut inner = self.lock();
        let mut done = true;
        for one in missing {
            let client = one.session.client().filter(|_| one.era == Era::Legacy);
            let caller =
                Caller { session: &one.session, client: client.as_deref(), era: one.era, asks: client.is_some() };
            done &= matches!(self.pick(&mut inner, caller), Pick::Peer(..));
        }
        done |= inner.stopping;
        if done {
            inner.reopening.remove(seat);
        }
        done
    }

    /// The connections that are not there although somebody listens: at most one for clients of each era.
    fn missing(&self, seat: &Seat) -> Vec<Missing> {
        let (mut missing, keys) = {
            let inner = self.lock();
            let there = |principal: &Principal, era: Era| {
                inner.shared.contains_key(&(principal.clone(), inner.support.target(era)))
            };
            match seat {
                Seat::Own(key) => {
                    let watches = inner.watches.values().any(|sessions| sessions.contains_key(key));
                    // Whoever has set a log level waits for log messages.
                    let hears = watches || inner.levels.contains_key(key);
                    let lost = hears && !inner.owned.contains_key(key);
                    (Vec::new(), Vec::from_iter(lost.then_some((*key, Era::Legacy))))
                }
                Seat::Shared(principal) => {
                    let follows = inner.follows_of(principal).next();
                    let follows = follows.filter(|_| !there(principal, Era::Modern));
                    let follows = follows.map(|one| Missing { session: Arc::clone(&one.session), era: Era::Modern });
                    // A backend of the new era tells what old sessions follow on the connection of the new ones.
                    let era = inner.support.target(Era::Legacy);
                    let watchers = inner.watches.values().flatten().filter(|(_, of)| *of == principal);
                    let watchers = watchers.filter(|(key, _)| !inner.owned.contains_key(key));
                    let watcher = watchers.map(|(key, _)| (*key, era)).next().filter(|_| !there(principal, era));
                    (Vec::from_iter(follows), Vec::from_iter(watcher))
                }
            }
        };
        if let Some(gateway) = self.gateway() {
            let known = keys.into_iter().filter_map(|(key, era)| Some((gateway.sessions.by_key(key)?, era)));
            missing.extend(known.map(|(session, era)| Missing { session, era }));
        }
        missing
    }
}
