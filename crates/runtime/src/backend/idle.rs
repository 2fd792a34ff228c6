//! Connections that nobody uses any more are ended, so that whoever came once does not hold a process for ever.

use super::Backend;
use super::state::Inner;
use crate::gateway::Gateway;
use crate::lifetime::{Lifetime, Start};
use crate::peer::{Peer, Use};
use signalbox_engine::SessionKey;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the connection that a principal's calls share may be unused before it is ended.
pub const SHARED_IDLE: Duration = Duration::from_secs(300);
/// How long a pooled connection may be unused.
const POOLED_IDLE: Duration = Duration::from_secs(120);

impl Backend {
    /// Ends what nobody has used for long enough and nothing is followed or worked on behind.
    pub(super) fn let_idle_go(self: &Arc<Self>, now: Instant) {
        let Some(gateway) = self.gateway() else { return };
        let unused: Vec<Arc<Peer>> = {
            let inner = self.lock();
            let all = self.mortal(&inner);
            all.filter(|peer| self.is_over(&inner, &gateway, peer, now)).cloned().collect()
        };
        for peer in unused {
            if !self.stays_for_its_principal(&gateway, &peer) && self.put_away(&gateway, &peer, now) {
                self.tell_put_away(&gateway, &peer);
                peer.close();
                self.changed.notify_one();
                self.retry_waiting();
            }
        }
    }

    /// The connections that may end for want of use. Those of sessions are not even looked at where they stay with them.
    fn mortal<'a>(&self, inner: &'a Inner) -> impl Iterator<Item = &'a Arc<Peer>> {
        let all = self.lifetime() != Lifetime::default();
        let owned = inner.owned.values().filter(move |_| all);
        inner.shared.values().chain(inner.pooled.values().flatten()).chain(owned)
    }

    /// From when to when processes of this backend run.
    pub(super) fn lifetime(&self) -> Lifetime {
        if self.connector.is_process() { self.spec().lifetime } else { Lifetime::default() }
    }

    /// How long a connection may be unused; none where it stays.
    fn patience(&self, inner: &Inner, gateway: &Gateway, peer: &Arc<Peer>) -> Option<Duration> {
        let lifetime = self.lifetime();
        if lifetime.start == Start::FirstUse && inner.has_only_listed(peer) {
            return Some(Duration::ZERO);
        }
        match &peer.use_of {
            Use::Shared if peer.principal == gateway.principal => lifetime.idle_stop,
            Use::Shared => lifetime.idle_stop.or(Some(SHARED_IDLE)),
            Use::Pool => Some(lifetime.idle_stop.map_or(POOLED_IDLE, |stop| stop.min(POOLED_IDLE))),
            Use::Session(_) => lifetime.idle_stop,
        }
    }

    /// True where a connection was unused for so long that it may end.
    fn is_over(&self, inner: &Inner, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let Some(patience) = self.patience(inner, gateway, peer) else { return false };
        peer.unused_since(now) >= patience && self.is_free(inner, gateway, peer, now)
    }

    /// True where nobody follows anything or is about to call on this connection, and no task is worked on behind it.
    fn is_free(&self, inner: &Inner, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let in_use = match &peer.use_of {
            Use::Session(owner) => inner.watches_of(owner.key),
            Use::Shared => {
                inner.follows_of(&peer.principal).next().is_some()
                    || inner.watches.values().flatten().any(|(_, of)| *of == peer.principal)
            }
            // The shared connection tells the same.
            Use::Pool => peer.is_in_exclusive_use(),
        };
        let needed = inner.is_home(peer) && !self.may_sleep(inner, gateway, peer);
        !in_use && !needed && !gateway.tasks.holds(peer.id) && !peer.has_tasks(now)
    }

    /// A principal that is connected keeps its connection, unless processes are to be stopped.
    fn stays_for_its_principal(&self, gateway: &Gateway, peer: &Peer) -> bool {
        let stays = matches!(peer.use_of, Use::Shared)
            && peer.principal != gateway.principal
            && self.lifetime().idle_stop.is_none();
        stays && gateway.sessions.all().iter().any(|session| session.principal == peer.principal)
    }

    /// Takes a connection out of use, unless somebody uses it after all. No call is given to it any more.
    fn put_away(&self, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let mut inner = self.lock();
        let done = self.is_over(&inner, gateway, peer, now) && peer.give_way();
        if done {
            inner.forget_peer(peer);
            if inner.is_home(peer) {
                self.fall_asleep(&mut inner);
            }
        }
        done
    }

    /// Has the child of a session whose client is away give up its place to another, the longest unused first. It is started
    /// again when the client comes back. False where there is none.
    pub(super) fn displace(&self, inner: &mut Inner) -> bool {
        if !self.connector.is_process() {
            return false;
        }
        let mut away: Vec<(Instant, SessionKey)> = inner
            .owned
            .iter()
            .filter(|(key, peer)| !inner.watches_of(**key) && !self.works_on_task(peer))
            .filter_map(|(key, peer)| peer.owner().map(|session| (session.last_seen(), *key)))
            .collect();
        away.sort_unstable_by_key(|(seen, _)| *seen);
        let found = away.iter().find(|(_, key)| inner.owned.get(key).is_some_and(|peer| peer.displace()));
        let Some(peer) = found.and_then(|(_, key)| inner.owned.remove(key)) else { return false };
        tracing::info!(
            backend = %self.name, peer = %peer.id,
            "a process of a session without a connection makes room for another; it is started again when the client comes back"
        );
        tokio::spawn(async move { peer.close() });
        true
    }

    /// True where a task is worked on behind this connection, which ends with it.
    pub(super) fn works_on_task(&self, peer: &Peer) -> bool {
        peer.has_tasks(crate::clock::now()) || self.gateway().is_some_and(|gateway| gateway.tasks.holds(peer.id))
    }
}
