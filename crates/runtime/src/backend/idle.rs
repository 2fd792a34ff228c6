//! Closes unused connections, so that a client that came once does not hold a process forever.

use super::Backend;
use super::connection_request::Capacity;
use super::connections::{Candidates, ConnectionRole};
use super::spec::{Lifetime, StartPolicy};
use super::state::BackendState;
use crate::gateway::Gateway;
use crate::peer::Peer;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Idle time after which the shared connection of a principal is closed.
pub const SHARED_IDLE: Duration = Duration::from_secs(300);
/// Idle time after which a pooled connection is closed.
const POOLED_IDLE: Duration = Duration::from_secs(120);

impl Backend {
    /// Closes the connections that have been unused long enough and that no subscription or task needs.
    pub(super) fn close_idle(self: &Arc<Self>, now: Instant) {
        let Some(gateway) = self.gateway() else { return };
        let unused: Vec<Arc<Peer>> = {
            let state = self.lock();
            let all = self.closable(&state);
            all.filter(|peer| self.is_expired(&state, &gateway, peer, now)).cloned().collect()
        };
        for peer in unused {
            if !self.stays_for_its_user(&gateway, &peer) && self.take_out_of_use(&gateway, &peer, now) {
                self.report_closing(&gateway, &peer);
                peer.close();
                self.changed.notify_one();
                self.retry_waiting();
            }
        }
    }

    /// Returns the connections that may be closed when unused. Those of sessions are skipped unless processes have a
    /// lifetime.
    fn closable<'a>(&self, state: &'a BackendState) -> impl Iterator<Item = &'a Arc<Peer>> {
        state.connections.in_use(self.lifetime() != Lifetime::default())
    }

    /// Returns the lifetime of this backend's processes; the default for a backend without processes.
    pub(super) fn lifetime(&self) -> Lifetime {
        if self.connector.is_process() { self.spec().lifetime } else { Lifetime::default() }
    }

    /// Returns the idle time after which a connection is closed. `None` if it stays open.
    fn patience(&self, state: &BackendState, gateway: &Gateway, peer: &Arc<Peer>) -> Option<Duration> {
        let lifetime = self.lifetime();
        if lifetime.start == StartPolicy::FirstUse && state.has_only_listed(peer) {
            return Some(Duration::ZERO);
        }
        match &peer.role {
            ConnectionRole::Home | ConnectionRole::Owned(_) => lifetime.idle_stop,
            ConnectionRole::Shared(user) if *user.principal() == gateway.principal => lifetime.idle_stop,
            ConnectionRole::Shared(_) => lifetime.idle_stop.or(Some(SHARED_IDLE)),
            ConnectionRole::Pooled(_) => Some(lifetime.idle_stop.map_or(POOLED_IDLE, |stop| stop.min(POOLED_IDLE))),
        }
    }

    /// Returns true if a connection has been unused for long enough to be closed.
    fn is_expired(&self, state: &BackendState, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let Some(patience) = self.patience(state, gateway, peer) else { return false };
        peer.unused_since(now) >= patience && self.is_free(state, gateway, peer, now)
    }

    /// Returns true if no subscription, call or task needs this connection.
    fn is_free(&self, state: &BackendState, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let in_use = match &peer.role {
            ConnectionRole::Owned(owner) => state.subscriptions.has_watches(*owner),
            ConnectionRole::Home | ConnectionRole::Shared(_) => state.subscriptions.any_of(&peer.user),
            // The shared connection reports the same changes.
            ConnectionRole::Pooled(_) => peer.is_in_exclusive_use(),
        };
        let needed = state.connections.is_home(peer) && !self.may_sleep(state, gateway, peer);
        !in_use && !needed && !gateway.tasks.holds(peer.id) && !peer.has_tasks(now)
    }

    /// Returns true if a connection stays open because its user has a session and idle processes are not stopped.
    fn stays_for_its_user(&self, gateway: &Gateway, peer: &Peer) -> bool {
        let stays =
            peer.role.is_shared() && *peer.user.principal() != gateway.principal && self.lifetime().idle_stop.is_none();
        stays && gateway.sessions.all().iter().any(|session| session.is_user(&peer.user))
    }

    /// Removes an expired connection, so that it gets no further call. Returns false if it is in use again.
    fn take_out_of_use(&self, gateway: &Gateway, peer: &Arc<Peer>, now: Instant) -> bool {
        let mut state = self.lock();
        let done = self.is_expired(&state, gateway, peer, now) && peer.give_way();
        if done {
            state.connections.remove(peer);
            if state.connections.is_home(peer) {
                self.fall_asleep(&mut state);
            }
        }
        done
    }

    /// Closes an idle connection in favour of another, as chosen by [`Connections::give_way`].
    ///
    /// [`Connections::give_way`]: super::connections::Connections::give_way
    pub(super) fn make_room(self: &Arc<Self>, state: &mut BackendState, among: Candidates<'_>) -> Capacity {
        let among = match among {
            // Only the number of processes is limited, so only a process has to make room.
            Candidates::OwnedThenPooled if !self.connector.is_process() => Candidates::Pooled,
            among => among,
        };
        let subscriptions = &state.subscriptions;
        let watches =
            |peer: &Peer| matches!(peer.role, ConnectionRole::Owned(owner) if subscriptions.has_watches(owner));
        let gone = state.connections.give_way(among, |peer| watches(peer) || self.works_on_task(peer));
        let Some(peer) = gone else { return Capacity::Exhausted };
        if peer.owner().is_some() {
            tracing::info!(
                backend = %self.name, peer = %peer.id,
                "stopping the process of a session whose client is away to make room for another; it starts again when the \
                 client comes back"
            );
            tokio::spawn(async move { peer.close() });
            return Capacity::Available;
        }
        let backend = Arc::clone(self);
        tokio::spawn(async move {
            peer.close();
            backend.retry_waiting();
        });
        Capacity::AfterClose
    }

    /// Returns true if the backend works on a task behind this connection, which would end with it.
    pub(super) fn works_on_task(&self, peer: &Peer) -> bool {
        peer.has_tasks(crate::clock::now()) || self.gateway().is_some_and(|gateway| gateway.tasks.holds(peer.id))
    }
}
