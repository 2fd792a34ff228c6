//! The connections of one backend, by role: which of them carries a call, and which gives way when there is no room.
//!
//! A [`Connections`] is a plain value behind the backend's lock. It never opens or closes a connection and never waits;
//! the backend does that with what it is given here. These hold after every method:
//!
//! - A connection is found under its own role only. The home connection, once it is ready, is also the one that the gateway's
//!   principal shares.
//! - There is one home connection at most, one per session and user, and one shared connection per user and era. Users of
//!   one principal differ only where its tokens are exchanged.
//! - A connection that was removed carries no further call. The home connection is still known as home afterwards, until
//!   another one takes its place or the backend falls asleep.
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

/// What a connection is for, and with that whose calls it carries.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ConnectionRole {
    /// The gateway's own. It also carries the calls that the gateway's principal shares a connection for.
    Home,
    /// Carries the calls of all sessions of a user that need no connection of their own.
    Shared(BackendUser),
    /// Carries the calls of one session.
    Owned(SessionKey),
    /// Carries calls of the new era to an old backend which may ask their client something.
    Pooled(PoolKey),
}

impl ConnectionRole {
    /// True for a connection that several sessions use without further conditions.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Home | Self::Shared(_))
    }
}

/// Whose calls may share a pooled connection. Servers remember what they asked a client (its roots, for example), so
/// clients that give themselves another name get connections of their own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PoolKey {
    pub user: BackendUser,
    pub caps: CapSet,
    pub info: Option<Bytes>,
}

/// Which connections may be asked to give way.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Candidates<'a> {
    /// Those of sessions whose client is away, then the pooled ones.
    OwnedThenPooled,
    /// The pooled ones.
    Pooled,
    /// The pooled ones of this user.
    PooledOf(&'a BackendUser),
    /// Those of sessions of this principal whose client is away, then its pooled ones.
    Of(&'a BackendUser),
}

/// The connections of a backend.
#[derive(Default)]
pub(crate) struct Connections {
    home: Option<Arc<Peer>>,
    shared: HashMap<(BackendUser, Era), Arc<Peer>>,
    owned: KeyMap<SessionKey, Vec<Arc<Peer>>>,
    pooled: HashMap<PoolKey, Vec<Arc<Peer>>>,
}

impl Connections {
    /// Files a connection that is about to be opened under its role.
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

    /// Gives no further call to this connection.
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

    /// The gateway's own connection. It may be lost already, until there is another.
    pub fn home(&self) -> Option<&Arc<Peer>> {
        self.home.as_ref()
    }

    /// True if this is the gateway's own connection.
    pub fn is_home(&self, peer: &Peer) -> bool {
        self.home.as_ref().is_some_and(|home| home.id == peer.id)
    }

    /// Has the home connection, which is ready, carry the calls that its principal shares a connection for. Returns the
    /// connection that did so until now, which is to be closed.
    pub fn share_home(&mut self, era: Era) -> Option<Arc<Peer>> {
        let home = self.home.clone()?;
        let replaced = self.shared.insert((home.user.clone(), era), Arc::clone(&home));
        replaced.filter(|old| old.id != home.id)
    }

    /// Takes the home connection out of use for good. Returns it.
    pub fn drop_home(&mut self) -> Option<Arc<Peer>> {
        let home = self.home.take()?;
        self.remove(&home);
        Some(home)
    }

    /// The connection of this era that the sessions of a user share.
    pub fn shared(&self, user: &BackendUser, era: Era) -> Option<&Arc<Peer>> {
        self.shared.get(&(user.clone(), era))
    }

    /// The connection that belongs to this session alone, for its requests as this user.
    pub fn owned(&self, session: SessionKey, user: &BackendUser) -> Option<&Arc<Peer>> {
        self.owned.get(&session)?.iter().find(|peer| peer.user == *user)
    }

    /// The connections that belong to this session alone.
    pub fn all_owned(&self, session: SessionKey) -> &[Arc<Peer>] {
        self.owned.get(&session).map_or(&[], Vec::as_slice)
    }

    /// True if this session has a connection of its own.
    pub fn owns(&self, session: SessionKey) -> bool {
        self.owned.contains_key(&session)
    }

    /// Takes out the connections that belong to this session alone.
    pub fn remove_owned(&mut self, session: SessionKey) -> Vec<Arc<Peer>> {
        self.owned.remove(&session).unwrap_or_default()
    }

    /// The pooled connections that calls with this key may run on.
    pub fn pool(&self, key: &PoolKey) -> &[Arc<Peer>] {
        self.pooled.get(key).map_or(&[], Vec::as_slice)
    }

    /// The pooled connections of a user.
    pub fn pooled_of(&self, user: &BackendUser) -> impl Iterator<Item = &Arc<Peer>> {
        self.pooled.iter().filter(move |(key, _)| key.user == *user).flat_map(|(_, pool)| pool)
    }

    /// The pooled connections that calls of a client with these capabilities may run on.
    pub fn pooled_for(&self, user: &BackendUser, caps: &CapSet) -> Vec<Arc<Peer>> {
        self.pooled_of(user).filter(|peer| peer.caps == *caps).cloned().collect()
    }

    /// How many connections are pooled.
    pub fn pooled_count(&self) -> usize {
        self.pooled.values().map(Vec::len).sum()
    }

    /// True if the user has another connection on which an old backend may tell what this one tells.
    pub fn has_other(&self, peer: &Peer) -> bool {
        let mut others = self.pooled_of(&peer.user).chain(self.shared(&peer.user, Era::Legacy));
        others.any(|other| other.id != peer.id)
    }

    /// The connections that may carry calls of this session as this user: no more than the user can have.
    pub fn serving(&self, session: &Session, user: &BackendUser) -> Vec<Arc<Peer>> {
        let shared = [Era::Legacy, Era::Modern].into_iter().filter_map(|era| self.shared(user, era));
        let owned = self.owned.get(&session.key).into_iter().flatten();
        owned.chain(shared).chain(self.pooled_of(user)).cloned().collect()
    }

    /// Every connection that carries calls, but without those of sessions unless `owned` says so.
    pub fn in_use(&self, owned: bool) -> impl Iterator<Item = &Arc<Peer>> {
        let owned = self.owned.values().flatten().filter(move |_| owned);
        self.shared.values().chain(self.pooled.values().flatten()).chain(owned)
    }

    /// Every connection, each once, the oldest first.
    pub fn all(&self) -> Vec<Arc<Peer>> {
        self.all_that(|_| true)
    }

    /// Those that something may have become late on. Sessions that do nothing must cost nothing, so the others
    /// are not even gathered.
    pub fn not_quiet(&self) -> Vec<Arc<Peer>> {
        self.all_that(|peer| !peer.is_quiet())
    }

    /// The connections of users for which this holds.
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

    /// Takes the idle connection that has to give way to another out of use and returns it; `None` if every candidate
    /// is in use or `needed`. This is the only place that decides who goes.
    ///
    /// First goes the connection of a session whose client is away, of several the one that was away longest: it is
    /// opened again when the client comes back. Then goes a pooled connection that carries no call.
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

    /// How many sessions have a connection of their own, and how many pools there are.
    #[cfg(feature = "testing")]
    pub fn counts(&self) -> (usize, usize) {
        (self.owned.values().map(Vec::len).sum(), self.pooled.len())
    }
}

#[cfg(test)]
mod tests;
