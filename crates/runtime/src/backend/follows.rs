//! Resources and tasks that clients' listen requests follow on a backend.
//!
//! A modern backend gets one listen request for each client's. A legacy backend gets `resources/subscribe` on the
//! shared connection of the principal and on the pooled ones that its calls may use; it reports on tasks without a
//! subscription.

use super::Backend;
use super::subscriptions::{Follow, FollowTargets};
use crate::bridged_call_driver::Waiter;
use crate::origin::{Origin, OwnAnswer};
use crate::peer::Peer;
use crate::session::Session;
use signalbox_engine::{BackendUser, ExchangeId};
use signalbox_wire::{Envelope, Era, json, method};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Maximum number of `resources/subscribe` requests in flight on one connection.
const SIDE_BY_SIDE: usize = 64;
/// Timeout of the gateway's own requests.
const OWN_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum lifetime of a listen request.
const LISTEN_FOR: Duration = Duration::from_secs(24 * 3600);
/// Delay before a listen request that ended is sent again.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

impl Backend {
    /// Follows resources and tasks for a client's listen request, now and after every reconnection. The receiver gets
    /// what the backend refuses to follow, once that is known.
    pub(crate) fn follow(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        wanted: FollowTargets,
    ) -> oneshot::Receiver<FollowTargets> {
        let (sender, receiver) = oneshot::channel();
        let caps = session.caps_of(exchange);
        let user = self.user_of(session, exchange);
        let uris = wanted.uris.clone();
        let (target, pooled) = {
            let mut state = match self.lock_or_successor() {
                Ok(state) => state,
                Err(successor) => return successor.follow(session, exchange, wanted),
            };
            let pooled = state.connections.pooled_for(&user, &caps);
            let target = state.support.target(Era::Modern);
            let (session, acknowledged) = (Arc::clone(session), Some(sender));
            let mut follow =
                Follow { session, exchange, user: user.clone(), wanted, caps, acknowledged, carrier: None };
            let only_tasks = target == Era::Legacy && uris.is_empty();
            if !state.subscriptions.can_follow() {
                state.condition.count_stray("follow_refused");
                follow.settle(&|_| true, &|_| true);
                return receiver;
            }
            if only_tasks {
                follow.settle(&|_| false, &|_| false);
            }
            state.subscriptions.follow(follow);
            if only_tasks {
                return receiver;
            }
            (target, pooled)
        };
        let shared = self.shared_peer(session, &user, target);
        if shared.is_none() {
            self.keep_open(user);
        }
        // A connection that is not ready yet gets its subscriptions once it is (`restore`).
        let shared = shared.filter(|peer| peer.is_ready());
        let waiter = (Arc::clone(session), exchange);
        match (target, shared) {
            (Era::Modern, Some(peer)) => self.send_follow(&peer, &waiter),
            (Era::Modern, None) => {}
            (Era::Legacy, shared) => {
                let waiters = shared.iter().map(|_| waiter.clone()).collect();
                let peers = shared.into_iter().chain(pooled.into_iter().filter(|peer| peer.is_ready()));
                self.subscribe(peers.collect(), uris, waiters);
            }
        }
        receiver
    }

    /// Subscribes to resources on connections to a legacy backend, and reports to the waiters what the shared
    /// connection refused.
    ///
    /// The first requests are sent before this returns, because the next call on the connection may change the
    /// resource.
    pub(super) fn subscribe(self: &Arc<Self>, peers: Vec<Arc<Peer>>, uris: Vec<String>, waiters: Vec<Waiter>) {
        if uris.is_empty() && waiters.is_empty() {
            return;
        }
        let (first, rest) = uris.split_at(uris.len().min(SIDE_BY_SIDE));
        let asked: Vec<_> = peers.into_iter().map(|peer| (self.send_subscriptions(&peer, first), peer)).collect();
        let (backend, rest) = (Arc::clone(self), rest.to_vec());
        tokio::spawn(async move {
            let mut refused = BTreeSet::new();
            for (first, peer) in asked {
                let mut no = backend.await_subscriptions(&peer, first).await;
                for more in rest.chunks(SIDE_BY_SIDE) {
                    let asked = backend.send_subscriptions(&peer, more);
                    no.extend(backend.await_subscriptions(&peer, asked).await);
                }
                if peer.role.is_shared() {
                    refused.extend(no);
                }
            }
            for waiter in waiters {
                backend.follow_settled(&waiter, &|uri| refused.contains(uri), &|_| false);
            }
        });
    }

    /// Sends `resources/subscribe` for those of these resources that still have a subscriber.
    fn send_subscriptions(&self, peer: &Peer, uris: &[String]) -> Vec<(String, oneshot::Receiver<OwnAnswer>)> {
        let state = self.lock();
        let wanted = uris.iter().filter(|uri| state.wants(peer, uri));
        wanted.map(|uri| (uri.clone(), peer.ask(method::RESOURCES_SUBSCRIBE, &uri_param(uri), OWN_TIMEOUT))).collect()
    }

    /// Waits for the answers and returns the resources that the backend refuses. Unsubscribes from those without a
    /// subscriber: an earlier `resources/unsubscribe` may have overtaken the subscription.
    async fn await_subscriptions(
        &self,
        peer: &Peer,
        asked: Vec<(String, oneshot::Receiver<OwnAnswer>)>,
    ) -> Vec<String> {
        let mut refused = Vec::new();
        for (uri, answer) in asked {
            match answer.await {
                Ok(Ok(message)) if message.error().is_some() => refused.push(uri),
                _ => self.unsubscribe(peer, &[uri]),
            }
        }
        refused
    }

    /// Unsubscribes from those of these resources that have no subscriber on this connection to a legacy backend.
    pub(super) fn unsubscribe(&self, peer: &Peer, uris: &[String]) {
        // Sent under the lock, so that a later subscription is also sent later.
        let state = self.lock();
        for uri in uris.iter().filter(|uri| !state.wants(peer, uri)) {
            let _ = peer.own(Origin::Discard, method::RESOURCES_UNSUBSCRIBE, &uri_param(uri), OWN_TIMEOUT);
        }
    }

    /// Handles the acknowledgement of a listen request: the backend refuses to follow what it does not name.
    pub(crate) fn follow_acknowledged(&self, waiter: &Waiter, message: &Envelope) {
        let params = message.params().unwrap_or_default();
        let filter = json::member(params, "notifications").map(|span| span.of(params)).unwrap_or_default();
        let named = |key: &str| -> BTreeSet<_> {
            let list = json::member(filter, key).map_or(&[][..], |span| span.of(filter));
            json::elements(list).filter_map(|span| json::string(span.of(list))).collect()
        };
        let (uris, tasks) = (named("resourceSubscriptions"), named("taskIds"));
        self.follow_settled(waiter, &|uri| !uris.contains(uri), &|task| !tasks.contains(task));
    }

    /// Reports to a listen request what the backend refuses to follow.
    fn follow_settled(&self, waiter: &Waiter, refused: &dyn Fn(&str) -> bool, refused_task: &dyn Fn(&str) -> bool) {
        if let Some(follow) = self.lock().subscriptions.follow_mut(waiter) {
            follow.settle(refused, refused_task);
        }
    }

    /// Returns the listen requests of a user that name this task of a legacy backend.
    pub(crate) fn task_followers(&self, task: &str, user: &BackendUser) -> Vec<Waiter> {
        let state = self.lock();
        let follows = state.subscriptions.follows_of(user).filter(|one| one.names_task(task));
        follows.map(Follow::waiter).collect()
    }

    /// Returns the listen requests of a user that follow this resource. Empty for a modern backend, which answers them
    /// itself.
    pub(crate) fn followers(&self, uri: &str, user: &BackendUser) -> Vec<Waiter> {
        let state = self.lock();
        if state.support.target(Era::Modern) == Era::Modern {
            return Vec::new();
        }
        let follows = state.subscriptions.follows_of(user).filter(|one| one.names(uri));
        follows.map(Follow::waiter).collect()
    }

    /// Removes a listen request, and unsubscribes at a legacy backend from what has no other subscriber.
    pub(crate) fn unfollow(&self, session: &Arc<Session>, exchange: ExchangeId) {
        let (gone, peers) = {
            let mut state = self.lock();
            let Some(gone) = state.subscriptions.unfollow(session.key, exchange) else { return };
            let mut peers = state.connections.pooled_for(&gone.user, &gone.caps);
            peers.extend(state.connections.shared(&gone.user, Era::Legacy).cloned());
            peers.retain(|peer| peer.is_ready());
            (gone, peers)
        };
        self.cancel(session, exchange, None);
        if self.target(Era::Modern) == Era::Legacy {
            for peer in &peers {
                self.unsubscribe(peer, &gone.wanted.uris);
            }
        }
    }

    /// Sends the listen requests of the connection's user on a new connection.
    pub(super) fn resend_follows(self: &Arc<Self>, peer: &Arc<Peer>) {
        let mine: Vec<Waiter> = {
            let state = self.lock();
            let follows = state.subscriptions.follows_of(&peer.user);
            follows.map(Follow::waiter).collect()
        };
        for waiter in mine {
            self.send_follow(peer, &waiter);
        }
    }

    /// Sends a listen request, unless this connection carries it already or its client has left.
    fn send_follow(self: &Arc<Self>, peer: &Arc<Peer>, waiter: &Waiter) {
        let mut state = self.lock();
        let Some(follow) = state.subscriptions.follow_mut(waiter) else { return };
        if follow.carrier == Some(peer.id) || follow.wanted.is_empty() {
            return;
        }
        let params = follow.wanted.filter();
        let origin = Origin::Listen(Arc::clone(&waiter.0), waiter.1);
        match peer.own(origin, method::SUBSCRIPTIONS_LISTEN, &params, LISTEN_FOR) {
            Ok(()) => follow.carrier = Some(peer.id),
            Err(fault) => {
                drop(state);
                tracing::debug!(peer = %peer.id, %fault, "resources cannot be followed yet");
                self.follow_later(peer, waiter);
            }
        }
    }

    /// Resends a listen request that a modern backend has ended or refused. The client does not notice.
    pub(crate) fn follow_ended(self: &Arc<Self>, peer: &Arc<Peer>, waiter: &Waiter, refused: bool) {
        {
            let mut state = self.lock();
            let Some(follow) = state.subscriptions.follow_mut(waiter).filter(|one| one.carrier == Some(peer.id)) else {
                return;
            };
            follow.carrier = None;
        }
        if refused {
            self.follow_settled(waiter, &|_| true, &|_| true);
        }
        self.follow_later(peer, waiter);
    }

    /// Resends a listen request after a delay, unless the connection is lost: the next connection gets it when it is
    /// ready.
    fn follow_later(self: &Arc<Self>, peer: &Arc<Peer>, waiter: &Waiter) {
        let (backend, peer, waiter) = (Arc::downgrade(self), Arc::downgrade(peer), waiter.clone());
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN).await;
            let Some((backend, peer)) = backend.upgrade().zip(peer.upgrade()) else { return };
            if peer.is_ready() && !peer.is_lost() {
                backend.send_follow(&peer, &waiter);
            }
        });
    }
}

fn uri_param(uri: &str) -> String {
    format!("\"uri\":{}", json::quote(uri))
}
