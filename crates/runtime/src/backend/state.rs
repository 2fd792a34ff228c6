//! What is known of a backend while the gateway runs: everything behind its lock.

use super::Backend;
use super::condition::Condition;
use super::connections::{ConnectionRole, Connections};
use super::list_knowledge::ListKnowledge;
use super::subscriptions::{Follow, Subscriptions};
use crate::peer::{Peer, Queued};
use signalbox_engine::back::Wish;
use signalbox_engine::{BackendUser, Fault};
use signalbox_wire::Era;
use std::collections::VecDeque;
use std::sync::Arc;

/// Which eras a backend speaks, as far as that is known.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Support {
    /// The old era, opened by `initialize`.
    pub legacy: Option<bool>,
    /// The new, stateless era.
    pub modern: Option<bool>,
}

impl Support {
    /// True once one era is known to work.
    #[must_use]
    pub fn known(self) -> bool {
        self.legacy == Some(true) || self.modern == Some(true)
    }

    /// The era to speak for a client of this era: its own, unless the backend is known not to speak that.
    #[must_use]
    pub fn target(self, client: Era) -> Era {
        match client {
            Era::Legacy if self.legacy == Some(false) => Era::Modern,
            Era::Modern if self.modern == Some(false) => Era::Legacy,
            own => own,
        }
    }

    /// Learns from a finished handshake. The home connection tries the new era first, unless the configuration forbids
    /// it or the backend dies of it. So if it ends up in the old era, the new one is not available.
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

    /// True if the backend is known not to speak the era of this wish, so that the other one is tried.
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

/// The state of the gateway's own connection, and with that of the backend.
#[derive(Default)]
pub enum Home {
    /// Not tried yet, or the first handshake is under way.
    #[default]
    Starting,
    /// Ready.
    Up(Arc<Peer>),
    /// Was ready and is being opened again.
    Restarting,
    /// Its process does not run; the next use starts it.
    Asleep,
    /// The next caller's credential opens it: the gateway has none of its own.
    AwaitsCaller,
    /// The last attempt failed; there will be another.
    Down(Fault),
    /// It failed too often; there is no other attempt until somebody asks for it.
    Failed(Fault),
}

impl Home {
    /// Why no connection can be opened, if none can.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Down(fault) | Self::Failed(fault) => Some(fault),
            Self::Starting | Self::Up(_) | Self::Restarting | Self::Asleep | Self::AwaitsCaller => None,
        }
    }

    /// The state as people read it.
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

/// The changing part of a backend. Each part holds its own invariants; the methods here answer what
/// takes several of them.
#[derive(Default)]
pub(crate) struct BackendState {
    pub support: Support,
    pub home: Home,
    /// On whose behalf the home connection is opened, if that is not the gateway itself.
    pub home_for: Option<BackendUser>,
    pub connections: Connections,
    /// Calls that wait for a connection.
    pub waiting: VecDeque<Queued>,
    pub lists: ListKnowledge,
    pub subscriptions: Subscriptions,
    pub condition: Condition,
    pub stopping: bool,
    /// Set once it takes no further call: the backend that has taken its place, if there is one.
    pub retired: Option<Option<Arc<Backend>>>,
}

impl BackendState {
    /// The state of a backend that is not started yet.
    pub fn new(condition: Condition) -> Self {
        Self { condition, ..Self::default() }
    }

    /// True if calls wait for it, or somebody follows something on its home connection.
    pub fn is_wanted(&self) -> bool {
        !self.waiting.is_empty() || self.subscriptions.any()
    }

    /// True if a connection was only used to read its lists.
    pub fn has_only_listed(&self, peer: &Peer) -> bool {
        let listed = || peer.view_key().is_some_and(|key| self.lists.was_read(&key));
        !peer.was_called() && !self.lists.is_reading(peer.id) && listed()
    }

    /// True if it is not to be started again.
    pub fn is_ending(&self) -> bool {
        self.stopping || self.retired.is_some()
    }

    /// True if the wait before the next attempt is to end early.
    pub fn is_cut_short(&mut self) -> bool {
        self.condition.take_hurry() || self.is_ending()
    }

    /// True if this connection to an old backend carries the subscriptions of a listen request.
    pub fn carries(&self, peer: &Peer, follow: &Follow) -> bool {
        let fits = match &peer.role {
            ConnectionRole::Owned(_) => false,
            ConnectionRole::Home | ConnectionRole::Shared(_) => self.support.target(Era::Modern) == Era::Legacy,
            ConnectionRole::Pooled(_) => follow.caps == peer.caps,
        };
        fits && follow.user == peer.user
    }

    /// True if somebody follows this resource on this connection to an old backend.
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

    /// True if a session of the user follows this resource on the connection to an old backend that it shares.
    pub fn shared_wants(&self, user: &BackendUser, uri: &str) -> bool {
        let mut watchers = self.subscriptions.watchers_of(uri);
        watchers.any(|(key, of)| of == user && !self.connections.owns(key))
            || self.support.target(Era::Modern) == Era::Legacy
                && self.subscriptions.follows_of(user).any(|one| one.names(uri))
    }

    /// True if another connection with the same capabilities is about to read the lists. If each principal has its own,
    /// it must be the same principal's.
    pub fn others_reading(&self, but: &Peer, per_user: bool) -> bool {
        let all = self.connections.all();
        let same = |peer: &Peer| peer.caps == but.caps && (!per_user || peer.user == but.user);
        let mut others = all.iter().filter(|peer| peer.id != but.id && same(peer) && !peer.is_lost());
        others.any(|peer| self.lists.is_reading(peer.id) || !peer.is_ready())
    }
}
