//! Runtime state of a backend: everything behind its lock.

use super::Backend;
use super::condition::Condition;
use super::connections::{ConnectionRole, Connections};
use super::list_knowledge::ListKnowledge;
use super::subscriptions::{Follow, Subscriptions};
use crate::peer::{Peer, QueuedCall};
use signalbox_engine::back::Wish;
use signalbox_engine::{BackendUser, Fault};
use signalbox_wire::Era;
use std::collections::VecDeque;
use std::sync::Arc;

/// Eras that a backend speaks. `None` means not known yet.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct EraSupport {
    /// Legacy era, opened by `initialize`.
    pub legacy: Option<bool>,
    /// Modern era, which has no sessions.
    pub modern: Option<bool>,
}

impl EraSupport {
    /// Returns true once one era is known to work.
    #[must_use]
    pub fn known(self) -> bool {
        self.legacy == Some(true) || self.modern == Some(true)
    }

    /// Returns the era to speak for a client of this era: its own, unless the backend is known not to speak it.
    #[must_use]
    pub fn target(self, client: Era) -> Era {
        match client {
            Era::Legacy if self.legacy == Some(false) => Era::Modern,
            Era::Modern if self.modern == Some(false) => Era::Legacy,
            own => own,
        }
    }

    /// Learns from a completed handshake. The home connection tries the modern era first, unless the configuration
    /// forbids it or the server dies of it. If it ends up in the legacy era, the modern era is not available.
    pub fn learn(&mut self, home: bool, configured: Wish, era: Era) {
        match era {
            Era::Legacy => {
                self.legacy = Some(true);
                if home {
                    self.modern = Some(false);
                }
            }
            Era::Modern => {
                self.modern = Some(true);
                if configured == Wish::Modern {
                    self.legacy = Some(false);
                }
            }
        }
    }

    /// Returns true if the backend is known not to speak the era of this wish, so that the other one is tried.
    #[must_use]
    pub fn lacks(self, wish: Wish) -> bool {
        match wish {
            Wish::Legacy => self.legacy == Some(false),
            Wish::Modern => self.modern == Some(false),
            Wish::Auto => false,
        }
    }

    /// Learns that the backend refused an era while it speaks the other one.
    pub fn refused(&mut self, wish: Wish) {
        match wish {
            Wish::Legacy if self.modern == Some(true) => self.legacy = Some(false),
            Wish::Modern if self.legacy == Some(true) => self.modern = Some(false),
            _ => {}
        }
    }
}

/// State of the gateway's own connection, which is the state of the backend.
#[derive(Default)]
pub enum Home {
    /// Not tried yet, or the first handshake is in progress.
    #[default]
    Starting,
    Up(Arc<Peer>),
    /// Was ready and is being reopened.
    Restarting,
    /// The process is stopped until the next use.
    Asleep,
    /// The gateway has no credential of its own; the next caller's credential opens the connection.
    AwaitsCaller,
    /// The last attempt failed. There will be another.
    Down(Fault),
    /// Failed too often. There is no other attempt until one is requested.
    Failed(Fault),
}

impl Home {
    /// Returns the reason why no connection can be opened, if that is so.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Down(fault) | Self::Failed(fault) => Some(fault),
            Self::Starting | Self::Up(_) | Self::Restarting | Self::Asleep | Self::AwaitsCaller => None,
        }
    }

    /// Returns the name of the state for display.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up(_) => "up",
            Self::Restarting => "restarting",
            Self::Asleep => "asleep",
            Self::AwaitsCaller => "waiting",
            Self::Down(_) => "down",
            Self::Failed(_) => "failed",
        }
    }
}

/// Mutable part of a backend. Each field maintains its own invariants; the methods here combine several fields.
#[derive(Default)]
pub(crate) struct BackendState {
    pub support: EraSupport,
    pub home: Home,
    /// User on whose behalf the home connection is opened, if that is not the gateway itself.
    pub home_for: Option<BackendUser>,
    pub connections: Connections,
    /// Calls that wait for a connection.
    pub waiting: VecDeque<QueuedCall>,
    pub lists: ListKnowledge,
    pub subscriptions: Subscriptions,
    pub condition: Condition,
    pub stopping: bool,
    /// Set once the backend accepts no further call. The inner value is its successor, if there is one.
    pub retired: Option<Option<Arc<Backend>>>,
}

impl BackendState {
    /// Creates the state of a backend that is not started yet.
    pub fn new(condition: Condition) -> Self {
        Self { condition, ..Self::default() }
    }

    /// Returns true if calls are queued, or if there are subscriptions.
    pub fn is_wanted(&self) -> bool {
        !self.waiting.is_empty() || self.subscriptions.any()
    }

    /// Returns true if a connection was only used to read its lists.
    pub fn has_only_listed(&self, peer: &Peer) -> bool {
        let listed = || peer.view_key().is_some_and(|key| self.lists.was_read(&key));
        !peer.was_called() && !self.lists.is_reading(peer.id) && listed()
    }

    /// Returns true if the backend must not be started again.
    pub fn is_ending(&self) -> bool {
        self.stopping || self.retired.is_some()
    }

    /// Returns true if the wait before the next attempt must end early. Consumes a request for an immediate attempt.
    pub fn is_cut_short(&mut self) -> bool {
        self.condition.take_retry_now() || self.is_ending()
    }

    /// Returns true if this connection to a legacy backend carries the subscriptions of a listen request.
    pub fn carries(&self, peer: &Peer, follow: &Follow) -> bool {
        let fits = match &peer.role {
            ConnectionRole::Owned(_) => false,
            ConnectionRole::Home | ConnectionRole::Shared(_) => self.support.target(Era::Modern) == Era::Legacy,
            ConnectionRole::Pooled(_) => follow.caps == peer.caps,
        };
        fits && follow.user == peer.user
    }

    /// Returns true if this connection to a legacy backend has a subscriber of the resource.
    pub fn wants(&self, peer: &Peer, uri: &str) -> bool {
        match &peer.role {
            ConnectionRole::Owned(owner) => self.subscriptions.is_watched_by(uri, *owner),
            ConnectionRole::Home | ConnectionRole::Shared(_) => self.shared_wants(&peer.user, uri),
            ConnectionRole::Pooled(_) => {
                let mut follows = self.subscriptions.follows_of(&peer.user);
                follows.any(|one| self.carries(peer, one) && one.names(uri))
            }
        }
    }

    /// Returns true if a session of the user follows this resource on the user's shared connection to a legacy backend.
    pub fn shared_wants(&self, user: &BackendUser, uri: &str) -> bool {
        let mut watchers = self.subscriptions.watchers_of(uri);
        watchers.any(|(key, of)| of == user && !self.connections.owns(key))
            || self.support.target(Era::Modern) == Era::Legacy
                && self.subscriptions.follows_of(user).any(|one| one.names(uri))
    }

    /// Returns true if another connection with the same capabilities is about to read the lists. If each principal has
    /// its own lists, it must be a connection of the same user.
    pub fn others_reading(&self, but: &Peer, per_user: bool) -> bool {
        let all = self.connections.all();
        let same = |peer: &Peer| peer.caps == but.caps && (!per_user || peer.user == but.user);
        let mut others = all.iter().filter(|peer| peer.id != but.id && same(peer) && !peer.is_lost());
        others.any(|peer| self.lists.is_reading(peer.id) || !peer.is_ready())
    }
}
