//! What is known of a backend while the gateway runs.

use crate::peer::{Peer, Queued};
use crate::session::Session;
use signalbox_engine::back::Wish;
use signalbox_engine::catalog::ViewKey;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{CapSet, ExchangeId, Fault, PeerId, Principal, SessionKey};
use signalbox_wire::Era;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

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

    /// Takes over what a finished handshake showed. The home connection tries the new era first, unless it is told not
    /// to or the backend dies of it: where it ends in the old one, the new one is not to be had.
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

    /// Takes over that the backend refused an era although it is there.
    pub fn refused(&mut self, wish: Wish) {
        match wish {
            Wish::Legacy if self.modern == Some(true) => self.legacy = Some(false),
            Wish::Modern if self.legacy == Some(true) => self.modern = Some(false),
            _ => {}
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

/// What a client's `subscriptions/listen` follows on this backend.
pub(crate) struct Follow {
    pub session: Arc<Session>,
    pub exchange: ExchangeId,
    pub uris: Vec<String>,
    /// The capabilities of the client.
    pub caps: CapSet,
    /// Told once when the backend follows them.
    pub acknowledged: Option<oneshot::Sender<()>>,
}

/// Most failed views that are remembered.
const MAX_FAILED: usize = 64;

/// The changing part of a backend.
#[derive(Default)]
pub(crate) struct Inner {
    pub support: Support,
    pub home: Home,
    pub home_peer: Option<Arc<Peer>>,
    pub shared: HashMap<(Principal, Era), Arc<Peer>>,
    pub owned: HashMap<SessionKey, Arc<Peer>>,
    /// Connections of the old era for clients of the new one that can be asked.
    pub pooled: HashMap<(Principal, CapSet), Vec<Arc<Peer>>>,
    pub waiting: VecDeque<Queued>,
    pub failed_views: HashSet<CapSet>,
    /// The views read since the home connection was opened; what was known before may be out of date.
    pub read_views: HashSet<ViewKey>,
    /// Until when lists are good that the backend never tells changes of.
    pub good_until: HashMap<ViewKey, Instant>,
    /// Connections whose lists are being read for the first time.
    pub reading: HashSet<PeerId>,
    /// Which sessions follow which resources by `resources/subscribe`.
    pub watches: HashMap<Box<str>, HashSet<SessionKey>>,
    /// The log level each session wants.
    pub levels: HashMap<SessionKey, LogLevel>,
    /// Which connection told last of a change of a resource that listen requests follow.
    pub told: HashMap<Box<str>, (PeerId, Instant)>,
    /// The resources that listen requests of clients follow.
    pub follows: Vec<Follow>,
    /// The backend died of the question which era it speaks: it gets the old greeting at once.
    pub greet_old: bool,
    pub refreshing: HashSet<(u64, &'static str)>,
    pub strays: BTreeMap<&'static str, u64>,
    pub restarts: u64,
    pub up_since: Option<Instant>,
    pub last_error: Option<String>,
    pub stopping: bool,
}

impl Inner {
    /// Notes that lists for this capability set cannot be had for now.
    pub fn failed(&mut self, caps: CapSet) {
        if self.failed_views.len() >= MAX_FAILED {
            self.failed_views.clear();
        }
        self.failed_views.insert(caps);
    }

    pub fn is_home(&self, peer: &Arc<Peer>) -> bool {
        self.home_peer.as_ref().is_some_and(|home| Arc::ptr_eq(home, peer))
    }

    /// True where another connection with these capabilities is about to bring the lists.
    pub fn others_reading(&self, caps: &CapSet, but: Option<PeerId>) -> bool {
        let others = self.peers().into_iter().filter(|peer| Some(peer.id) != but && peer.caps == *caps);
        others.into_iter().any(|peer| !peer.is_lost() && (self.reading.contains(&peer.id) || !peer.is_ready()))
    }

    /// Every connection, each once.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        let mut peers: Vec<Arc<Peer>> =
            self.shared.values().chain(self.owned.values()).chain(self.pooled.values().flatten()).cloned().collect();
        peers.extend(self.home_peer.clone());
        peers.sort_by_key(|peer| peer.id);
        peers.dedup_by_key(|peer| peer.id);
        peers
    }

    /// The connections that may carry calls of this session.
    pub fn serving(&self, session: SessionKey) -> Vec<Arc<Peer>> {
        let owned = self.owned.get(&session).into_iter();
        owned.chain(self.shared.values()).chain(self.pooled.values().flatten()).cloned().collect()
    }
}
