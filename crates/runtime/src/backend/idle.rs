//! Connections that nobody uses any more are ended, so that whoever came once does not hold a process for ever.

use super::Backend;
use super::connections::{Candidates, Role};
use super::spec::{Lifetime, Start};
use super::state::BackendState;
use crate::gateway::Gateway;
use crate::peer::Peer;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the connection that a principal's calls share may be unused before it is ended.
pub const SHARED_IDLE: Duration = Duration::from_secs(300);
/// How long a pooled connection may be unused.
const POOLED_IDLE: Duration = Duration::from_secs(120);

/// Whether a further connection may be opened.
pub(super) enum Room {
    /// At once.
    Free,
    /// As soon as another one has ended; the calls that wait are tried again then.
    Soon,
    /// Every connection is in use.
    Taken,
}

impl Backend {
    /// Ends what nobody has used for long enough and nothing is followed or worked on behind.
    pub(super) fn let_idle_go(self: &Arc<Self>, now: Instant) {
        let Some(gateway) = self.gateway() else { return };
        let unused: Vec<Arc<Peer>> = {
            let state = self.lock();
            let all = self.mortal(&state);
            all.filter(|peer| self.is_over(&state, &gateway, peer, now)).cloned().collect()
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
    fn mortal<'a>(&self, state: &'a BackendState) -> impl Iterator<Item = &'a Arc<Peer>> {
        state.connections.in_use(self.lifetime() != Lifetime::default())
    }

    /// From when to when processes of this backend run.
    pub(super) fn lifetime(&self) -> Lifetime {
        if self.connector.is_process() { self.spec().lifetime } else { Lifetime::default() }
    }

    /// How long a connection may be unused; none where it stays.
    fn patience(&self, state: &BackendState, gateway: &Gateway, peer: &Arc<Peer>) -> Option<Duration> {
        let lifetime = self.lifetime();
        if lifetime.start == Start::FirstUse && state.has_only_listed(peer) {
            return Some(Duration::ZERO);
        }
        match &peer.role {
            Role::Home | Role::Owned(_) => lifetime.idle_stop,
            Role::Shared(principal) if *principal == gateway.principal => lifetime.idle_stop,
            Role::Shared(_) => lifetime.idle_stop.or(Some(SHARED_IDLE)),
            Role::Pooled(_) => Some(lifetime.idle_stop.map_or(POOLED_IDLE, |stop| stop.min(POOLED_IDLE))),
        }
    }

    /// True where a connection was unused for so long that it may end.
    fn is_over(&self, state: &BackendState, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let Some(patience) = self.patience(state, gateway, peer) else { return false };
        peer.unused_since(now) >= patience && self.is_free(state, gateway, peer, now)
    }

    /// True where nobody follows anything or is about to call on this connection, and no task is worked on behind it.
    fn is_free(&self, state: &BackendState, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let in_use = match &peer.role {
            Role::Owned(owner) => state.subscriptions.has_watches(*owner),
            Role::Home | Role::Shared(_) => state.subscriptions.any_of(&peer.principal),
            // The shared connection tells the same.
            Role::Pooled(_) => peer.is_in_exclusive_use(),
        };
        let needed = state.connections.is_home(peer) && !self.may_sleep(state, gateway, peer);
        !in_use && !needed && !gateway.tasks.holds(peer.id) && !peer.has_tasks(now)
    }

    /// A principal that is connected keeps its connection, unless processes are to be stopped.
    fn stays_for_its_principal(&self, gateway: &Gateway, peer: &Peer) -> bool {
        let stays = peer.role.is_shared() && peer.principal != gateway.principal && self.lifetime().idle_stop.is_none();
        stays && gateway.sessions.all().iter().any(|session| session.principal == peer.principal)
    }

    /// Takes a connection out of use, unless somebody uses it after all. No call is given to it any more.
    fn put_away(&self, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let mut state = self.lock();
        let done = self.is_over(&state, gateway, peer, now) && peer.give_way();
        if done {
            state.connections.remove(peer);
            if state.connections.is_home(peer) {
                self.fall_asleep(&mut state);
            }
        }
        done
    }

    /// Ends an idle connection to make room for another. Which one goes is decided by [`Connections::give_way`].
    ///
    /// [`Connections::give_way`]: super::connections::Connections::give_way
    pub(super) fn make_room(self: &Arc<Self>, state: &mut BackendState, among: Candidates<'_>) -> Room {
        let among = match among {
            // Only a process takes up room that a session of another client may need.
            Candidates::OwnedThenPooled if !self.connector.is_process() => Candidates::Pooled,
            among => among,
        };
        let subscriptions = &state.subscriptions;
        let watches = |peer: &Peer| matches!(peer.role, Role::Owned(owner) if subscriptions.has_watches(owner));
        let gone = state.connections.give_way(among, |peer| watches(peer) || self.works_on_task(peer));
        let Some(peer) = gone else { return Room::Taken };
        if peer.owner().is_some() {
            tracing::info!(
                backend = %self.name, peer = %peer.id,
                "stopping the process of a session whose client is away to make room for another; it starts again when the \
                 client comes back"
            );
            tokio::spawn(async move { peer.close() });
            return Room::Free;
        }
        let backend = Arc::clone(self);
        tokio::spawn(async move {
            peer.close();
            backend.retry_waiting();
        });
        Room::Soon
    }

    /// True where a task is worked on behind this connection, which ends with it.
    pub(super) fn works_on_task(&self, peer: &Peer) -> bool {
        peer.has_tasks(crate::clock::now()) || self.gateway().is_some_and(|gateway| gateway.tasks.holds(peer.id))
    }
}
