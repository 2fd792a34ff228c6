//! What is known of a backend while the gateway runs.

use crate::peer::{Peer, Queued};
use signalbox_engine::back::Wish;
use signalbox_engine::{CapSet, Fault, Principal, SessionKey};
use signalbox_wire::Era;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Which eras a backend speaks, as far as that is known.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Support {
    /// By `initialize`.
    pub legacy: Option<bool>,
    /// Stateless.
    pub modern: Option<bool>,
}

impl Support {
    /// True once anything is known.
    #[must_use]
    pub fn known(self) -> bool {
        self.legacy == Some(true) || self.modern == Some(true)
    }

    /// The era to speak for a client of this era: its own if the backend may have it.
    #[must_use]
    pub fn target(self, client: Era) -> Era {
        match client {
            Era::Legacy if self.legacy == Some(false) => Era::Modern,
            Era::Modern if self.modern == Some(false) => Era::Legacy,
            own => own,
        }
    }

    /// Takes over what a finished handshake showed.
    pub fn learn(&mut self, wish: Wish, era: Era) {
        match era {
            Era::Legacy => {
                self.legacy = Some(true);
                if wish == Wish::Auto {
                    self.modern = Some(false);
                }
            }
            Era::Modern => self.modern = Some(true),
        }
    }
}

/// The gateway's own connection.
#[derive(Default)]
pub enum Home {
    /// Not tried yet, or the first handshake is under way.
    #[default]
    Starting,
    /// Ready.
    Up(Arc<Peer>),
    /// Was ready and is being opened again.
    Restarting,
    /// The last attempt failed; there will be another.
    Down(Fault),
}

impl Home {
    /// The state as people read it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up(_) => "up",
            Self::Restarting => "restarting",
            Self::Down(_) => "down",
        }
    }
}

/// The changing part of a backend.
#[derive(Default)]
pub(crate) struct Inner {
    pub support: Support,
    pub home: Home,
    pub home_peer: Option<Arc<Peer>>,
    pub shared: HashMap<(Principal, Era), Arc<Peer>>,
    pub owned: HashMap<SessionKey, Arc<Peer>>,
    pub waiting: VecDeque<Queued>,
    pub failed_views: HashSet<CapSet>,
    pub refreshing: HashSet<(u64, &'static str)>,
    pub strays: BTreeMap<&'static str, u64>,
    pub restarts: u64,
    pub up_since: Option<Instant>,
    pub last_error: Option<String>,
    pub stopping: bool,
}

impl Inner {
    pub fn is_home(&self, peer: &Arc<Peer>) -> bool {
        self.home_peer.as_ref().is_some_and(|home| Arc::ptr_eq(home, peer))
    }

    /// Every connection, each once.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        let mut peers: Vec<Arc<Peer>> = self.shared.values().chain(self.owned.values()).cloned().collect();
        peers.extend(self.home_peer.clone());
        peers.sort_by_key(|peer| peer.id);
        peers.dedup_by_key(|peer| peer.id);
        peers
    }

    /// The connections that may carry calls of this session.
    pub fn serving(&self, session: SessionKey) -> Vec<Arc<Peer>> {
        self.owned.get(&session).into_iter().chain(self.shared.values()).cloned().collect()
    }
}
