//! Connections of one backend, by role: which of them carries a call, and which is closed in favour of another.
//!
//! A [`Connections`] is a plain value behind the backend lock. It never opens or closes a connection and never waits:
//! the backend does that with the connections returned from here. Invariants:
//!
//! - A connection is registered under its own role only. The home connection, once ready, is also the shared connection
//!   of the gateway's principal.
//! - There is at most one home connection, one per session and user, and one shared connection per user and era. Users
//!   of one principal differ only where its tokens are exchanged.
//! - A removed connection carries no further call. The home connection still counts as home afterwards, until another
//!   one replaces it or the backend falls asleep.
//! - No pool is empty.

use crate::peer::Peer;
use crate::session::Session;
use bytes::Bytes;
use signalbox_engine::back::Wish;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::{BackendUser, CapSet, SessionKey};
use signalbox_wire::Era;
use std::collections::HashMap;
use std::sync::Arc;

/// Purpose of a connection, which decides whose calls it carries.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ConnectionRole {
    /// The gateway's own connection. Also carries calls that share a connection of the gateway's principal.
    Home,
    /// Carries the calls of all sessions of a user that need no connection of their own.
    Shared(BackendUser),
    /// Carries the calls of one session.
    Owned(SessionKey),
    /// Carries modern calls to a legacy backend that may ask their client something.
    Pooled(PoolKey),
}

impl ConnectionRole {
    /// Returns true for a connection that several sessions use without further conditions.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Home | Self::Shared(_))
    }
}

/// Key of a pool: calls with equal keys may share a connection. Servers remember what they asked a client (its roots,
/// for example), so clients with different `info` get separate connections.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PoolKey {
    pub user: BackendUser,
    pub caps: CapSet,
    pub info: Option<Bytes>,
}

/// Connections that may be closed in favour of another.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Candidates<'a> {
    /// Connections of sessions whose client is away, then pooled ones.
    OwnedThenPooled,
    Pooled,
    /// Pooled connections of this user.
    PooledOf(&'a BackendUser),
    /// Connections of sessions of this principal whose client is away, then its pooled ones.
    Of(&'a BackendUser),
}

#[derive(Default)]
pub(crate) struct Connections {
    home: Option<Arc<Peer>>,
    shared: HashMap<(BackendUser, Era), Arc<Peer>>,
    owned: KeyMap<SessionKey, Vec<Arc<Peer>>>,
    pooled: HashMap<PoolKey, Vec<Arc<Peer>>>,
}

impl Connections {
    /// Registers a connection that is about to be opened.
    pub fn insert(&mut self, peer: Arc<Peer>) {
        match peer.role.clone() {
            ConnectionRole::Home => self.home = Some(peer),
            ConnectionRole::Shared(user) => {
                let era = if peer.wish == Wish::Modern { Era::Modern } else { Era::Legacy };
                self.shared.insert((user, era), peer);
            }
            ConnectionRole::Owned(session) => {
                let own = self.owned.entry(session).or_default();
                own.retain(|one| one.user != peer.user);
                own.push(peer);
            }
            ConnectionRole::Pooled(key) => self.pooled.entry(key).or_default().push(peer),
        }
    }

    /// Removes a connection, so that it gets no further call.
    pub fn remove(&mut self, peer: &Peer) {
        let is_it = |one: &Arc<Peer>| one.id == peer.id;
        match &peer.role {
            ConnectionRole::Home | ConnectionRole::Shared(_) => {
                for era in [Era::Legacy, Era::Modern] {
                    let key = (peer.user.clone(), era);
                    if self.shared.get(&key).is_some_and(is_it) {
                        self.shared.remove(&key);
                    }
                }
            }
            ConnectionRole::Owned(session) => {
                let Some(own) = self.owned.get_mut(session) else { return };
                own.retain(|one| !is_it(one));
                if own.is_empty() {
                    self.owned.remove(session);
                }
            }
            ConnectionRole::Pooled(key) => {
                let Some(pool) = self.pooled.get_mut(key) else { return };
                pool.retain(|one| !is_it(one));
                if pool.is_empty() {
                    self.pooled.remove(key);
                }
            }
        }
    }

    /// Returns the gateway's own connection. It may be lost already, until another replaces it.
    pub fn home(&self) -> Option<&Arc<Peer>> {
        self.home.as_ref()
    }

    /// Returns true if this is the gateway's own connection.
    pub fn is_home(&self, peer: &Peer) -> bool {
        self.home.as_ref().is_some_and(|home| home.id == peer.id)
    }

    /// Makes the ready home connection the shared connection of its principal. Returns the one that it replaces, which
    /// the caller must close.
    pub fn share_home(&mut self, era: Era) -> Option<Arc<Peer>> {
        let home = self.home.clone()?;
        let replaced = self.shared.insert((home.user.clone(), era), Arc::clone(&home));
        replaced.filter(|old| old.id != home.id)
    }

    /// Removes and returns the home connection.
    pub fn drop_home(&mut self) -> Option<Arc<Peer>> {
        let home = self.home.take()?;
        self.remove(&home);
        Some(home)
    }

    /// Returns the connection of this era that the sessions of a user share.
    pub fn shared(&self, user: &BackendUser, era: Era) -> Option<&Arc<Peer>> {
        self.shared.get(&(user.clone(), era))
    }

    /// Returns the connection of this session alone, for its requests as this user.
    pub fn owned(&self, session: SessionKey, user: &BackendUser) -> Option<&Arc<Peer>> {
        self.owned.get(&session)?.iter().find(|peer| peer.user == *user)
    }

    /// Returns the connections of this session alone.
    pub fn all_owned(&self, session: SessionKey) -> &[Arc<Peer>] {
        self.owned.get(&session).map_or(&[], Vec::as_slice)
    }

    /// Returns true if this session has a connection of its own.
    pub fn owns(&self, session: SessionKey) -> bool {
        self.owned.contains_key(&session)
    }

    /// Removes and returns the connections of this session alone.
    pub fn remove_owned(&mut self, session: SessionKey) -> Vec<Arc<Peer>> {
        self.owned.remove(&session).unwrap_or_default()
    }

    /// Returns the pooled connections with this key.
    pub fn pool(&self, key: &PoolKey) -> &[Arc<Peer>] {
        self.pooled.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the pooled connections of a user.
    pub fn pooled_of(&self, user: &BackendUser) -> impl Iterator<Item = &Arc<Peer>> {
        self.pooled.iter().filter(move |(key, _)| key.user == *user).flat_map(|(_, pool)| pool)
    }

    /// Returns the pooled connections for clients with these capabilities.
    pub fn pooled_for(&self, user: &BackendUser, caps: &CapSet) -> Vec<Arc<Peer>> {
        self.pooled_of(user).filter(|peer| peer.caps == *caps).cloned().collect()
    }

    /// Returns the number of pooled connections.
    pub fn pooled_count(&self) -> usize {
        self.pooled.values().map(Vec::len).sum()
    }

    /// Returns true if the user has another connection on which a legacy backend may send the same notifications.
    pub fn has_other(&self, peer: &Peer) -> bool {
        let mut others = self.pooled_of(&peer.user).chain(self.shared(&peer.user, Era::Legacy));
        others.any(|other| other.id != peer.id)
    }

    /// Returns the connections that may carry calls of this session as this user, at most the number that a user may
    /// have.
    pub fn serving(&self, session: &Session, user: &BackendUser) -> Vec<Arc<Peer>> {
        let shared = [Era::Legacy, Era::Modern].into_iter().filter_map(|era| self.shared(user, era));
        let owned = self.owned.get(&session.key).into_iter().flatten();
        owned.chain(shared).chain(self.pooled_of(user)).cloned().collect()
    }

    /// Returns the connections that carry calls. Those of sessions are included if `owned` is true.
    pub fn in_use(&self, owned: bool) -> impl Iterator<Item = &Arc<Peer>> {
        let owned = self.owned.values().flatten().filter(move |_| owned);
        self.shared.values().chain(self.pooled.values().flatten()).chain(owned)
    }

    /// Returns every connection once, oldest first.
    pub fn all(&self) -> Vec<Arc<Peer>> {
        self.all_that(|_| true)
    }

    /// Returns the connections on which something may be overdue. Idle sessions must cost nothing, so quiet connections
    /// are not even collected.
    pub fn not_quiet(&self) -> Vec<Arc<Peer>> {
        self.all_that(|peer| !peer.is_quiet())
    }

    /// Returns the connections of users for which `holds` is true.
    pub fn of_users(&self, holds: impl Fn(&BackendUser) -> bool) -> Vec<Arc<Peer>> {
        self.all_that(|peer| holds(&peer.user))
    }

    fn all_that(&self, wanted: impl Fn(&Peer) -> bool) -> Vec<Arc<Peer>> {
        let all = self.in_use(true).chain(&self.home);
        let mut peers: Vec<Arc<Peer>> = all.filter(|peer| wanted(peer)).map(Arc::clone).collect();
        peers.sort_by_key(|peer| peer.id);
        peers.dedup_by_key(|peer| peer.id);
        peers
    }

    /// Removes and returns the idle connection that is closed in favour of another. Returns `None` if every candidate
    /// is in use or `needed`. This is the only place that makes this choice.
    ///
    /// The first choice is the connection of a session whose client is away, longest first; it is reopened when the
    /// client returns. The second choice is a pooled connection without calls.
    pub fn give_way(&mut self, among: Candidates<'_>, needed: impl Fn(&Peer) -> bool) -> Option<Arc<Peer>> {
        let gives_way = self.owned_giving_way(among, &needed).or_else(|| {
            let fits = |peer: &&Arc<Peer>| match among {
                Candidates::PooledOf(user) => peer.user == *user,
                Candidates::Of(user) => peer.user.principal() == user.principal(),
                Candidates::OwnedThenPooled | Candidates::Pooled => true,
            };
            let idle = |peer: &&Arc<Peer>| !peer.is_in_exclusive_use() && peer.in_flight() == 0 && !needed(peer);
            let mut pooled = self.pooled.values().flatten().filter(fits).filter(idle);
            pooled.find(|peer| peer.give_way()).cloned()
        })?;
        self.remove(&gives_way);
        Some(gives_way)
    }

    fn owned_giving_way(&self, among: Candidates<'_>, needed: impl Fn(&Peer) -> bool) -> Option<Arc<Peer>> {
        let fits = |peer: &Peer| match among {
            Candidates::OwnedThenPooled => true,
            Candidates::Of(user) => peer.user.principal() == user.principal(),
            Candidates::Pooled | Candidates::PooledOf(_) => false,
        };
        let seen = |peer: &'_ Arc<Peer>| Some((peer.owner()?.last_seen(), Arc::clone(peer)));
        let mut owned: Vec<_> = self.owned.values().flatten().filter(|peer| fits(peer)).filter_map(seen).collect();
        owned.sort_unstable_by_key(|(seen, _)| *seen);
        owned.into_iter().map(|(_, peer)| peer).find(|peer| !needed(peer) && peer.give_way_if_client_is_away())
    }

    /// Returns the number of connections owned by sessions, and the number of pools.
    #[cfg(feature = "testing")]
    pub fn counts(&self) -> (usize, usize) {
        (self.owned.values().map(Vec::len).sum(), self.pooled.len())
    }
}

#[cfg(test)]
mod tests;
