//! What is known of a backend while the gateway runs.

use super::Backend;
use super::followed::Followed;
use super::reopening::Seat;
use crate::bridged_call_driver::Waiter;
use crate::peer::{Peer, Queued, Use};
use crate::session::Session;
use bytes::Bytes;
use signalbox_engine::back::Wish;
use signalbox_engine::catalog::ViewKey;
use signalbox_engine::health::Health;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{CapSet, ExchangeId, Fault, PeerId, Principal, SessionKey};
use signalbox_wire::{Envelope, Era};
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

    /// True where it is known that the backend does not speak the era of this wish, so that the other one is tried.
    #[must_use]
    pub fn lacks(self, wish: Wish) -> bool {
        match wish {
            Wish::Legacy => self.legacy == Some(false),
            Wish::Modern => self.modern == Some(false),
            Wish::Auto => false,
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
    /// Its process was stopped, or not started yet; somebody's use of it starts it.
    Asleep,
    /// The last attempt failed; there will be another.
    Down(Fault),
    /// It failed too often; there will be no other attempt until that is asked for.
    Failed(Fault),
}

impl Home {
    /// Why nothing can be opened, where that is so.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Down(fault) | Self::Failed(fault) => Some(fault),
            Self::Starting | Self::Up(_) | Self::Restarting | Self::Asleep => None,
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
            Self::Down(_) => "down",
            Self::Failed(_) => "failed",
        }
    }
}

/// Whose calls may share a pooled connection. Servers remember what they asked a client (its roots, for one), so that clients
/// which call themselves by another name have their own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PoolKey {
    pub principal: Principal,
    pub caps: CapSet,
    pub info: Option<Bytes>,
}

/// The listen request of a client: its session and its exchange.
pub(crate) type FollowKey = (SessionKey, ExchangeId);

/// What a client's `subscriptions/listen` follows on this backend.
pub(crate) struct Follow {
    pub session: Arc<Session>,
    pub exchange: ExchangeId,
    pub wanted: Followed,
    /// The capabilities of the client.
    pub caps: CapSet,
    /// Told once which of them the backend does not follow.
    pub acknowledged: Option<oneshot::Sender<Followed>>,
    /// The connection of the new era on which the listen request is open.
    pub carrier: Option<PeerId>,
}

impl Follow {
    /// True where this resource is among them.
    pub fn names(&self, uri: &str) -> bool {
        self.wanted.uris.iter().any(|own| own == uri)
    }

    /// True where this task is among them.
    pub fn names_task(&self, task: &str) -> bool {
        self.wanted.tasks.iter().any(|own| own == task)
    }

    /// It is known what the backend follows: whoever waits for that is told what it does not. A client that was told
    /// otherwise already may still hear of all of it.
    pub fn settle(&mut self, refused: &dyn Fn(&str) -> bool, refused_task: &dyn Fn(&str) -> bool) {
        let Some(sender) = self.acknowledged.take() else { return };
        if let Err(no) = sender.send(self.wanted.without(refused, refused_task)) {
            self.wanted.uris.extend(no.uris);
            self.wanted.tasks.extend(no.tasks);
        }
    }
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
    pub owned: KeyMap<SessionKey, Arc<Peer>>,
    /// Connections of the old era for clients of the new one that can be asked.
    pub pooled: HashMap<PoolKey, Vec<Arc<Peer>>>,
    pub waiting: VecDeque<Queued>,
    pub failed_views: HashSet<CapSet>,
    /// The views read since the home connection was opened; what was known before may be out of date.
    pub read_views: HashSet<ViewKey>,
    /// Until when lists are good that the backend never tells changes of.
    pub good_until: HashMap<ViewKey, Instant>,
    /// Connections whose lists are being read for the first time.
    pub reading: HashSet<PeerId>,
    /// Which sessions follow which resources by `resources/subscribe`.
    pub watches: HashMap<Box<str>, HashMap<SessionKey, Principal>>,
    /// The log level each session wants.
    pub levels: HashMap<SessionKey, LogLevel>,
    /// Changes of resources that will be told in a moment, as they were told last.
    pub changes_to_tell: HashMap<(Principal, Box<str>), Envelope>,
    /// Whose connections are about to be opened again.
    pub reopening: HashSet<Seat>,
    /// The resources that listen requests of clients follow.
    pub follows: BTreeMap<FollowKey, Follow>,
    /// The backend died of the question which era it speaks: it gets the old greeting at once.
    pub greet_old: bool,
    pub refreshing: HashSet<(u64, &'static str)>,
    /// How often everybody was told that a list changed, by its kind.
    pub lists_told: [u64; 4],
    pub strays: BTreeMap<&'static str, u64>,
    /// The last line that a child wrote where only messages belong, made fit to be shown.
    pub stray_line: Option<String>,
    /// What a child that has ended wrote to its standard error last.
    pub last_words: Vec<String>,
    pub restarts: u64,
    pub up_since: Option<Instant>,
    pub last_error: Option<String>,
    pub stopping: bool,
    /// Set once it takes no further call: the backend that has taken its place, if there is one.
    pub retired: Option<Option<Arc<Backend>>>,
    /// What pings tell; none where it is not pinged.
    pub health: Option<Health>,
    /// It has answered a ping at least once.
    pub answers_pings: bool,
    pub pings_failed: u64,
    /// Since when it gets few calls at a time, after a restart.
    pub ramp: Option<Instant>,
    /// The next attempt is made without waiting, though the backend may have failed for good.
    pub hurry: bool,
}

impl Inner {
    /// True where calls wait for it, or somebody follows something on its home connection.
    pub fn is_wanted(&self) -> bool {
        !self.waiting.is_empty() || !self.follows.is_empty() || !self.watches.is_empty()
    }

    /// True where a connection has told its lists, and was not called since it was opened.
    pub fn has_only_listed(&self, peer: &Peer) -> bool {
        let listed = || peer.view_key().is_some_and(|key| self.read_views.contains(&key));
        !peer.was_called() && !self.reading.contains(&peer.id) && listed()
    }

    /// True where a session follows a resource here.
    pub fn watches_of(&self, session: SessionKey) -> bool {
        self.watches.values().any(|sessions| sessions.contains_key(&session))
    }

    /// Gives no further call to this connection.
    pub fn forget_peer(&mut self, peer: &Arc<Peer>) {
        self.owned.retain(|_, one| !Arc::ptr_eq(one, peer));
        self.shared.retain(|_, one| !Arc::ptr_eq(one, peer));
        self.pooled.retain(|_, pool| {
            pool.retain(|one| !Arc::ptr_eq(one, peer));
            !pool.is_empty()
        });
    }

    /// True where it is not to be started again.
    pub fn is_ending(&self) -> bool {
        self.stopping || self.retired.is_some()
    }

    /// True where the wait before the next attempt is over early.
    pub fn is_cut_short(&mut self) -> bool {
        std::mem::take(&mut self.hurry) || self.is_ending()
    }

    /// Notes that lists for this capability set cannot be had for now.
    pub fn failed(&mut self, caps: CapSet) {
        if self.failed_views.len() >= MAX_FAILED {
            self.failed_views.clear();
        }
        self.failed_views.insert(caps);
    }

    /// What a listen request follows here.
    pub fn follow_of(&mut self, (session, exchange): &Waiter) -> Option<&mut Follow> {
        self.follows.get_mut(&(session.key, *exchange))
    }

    /// What the listen requests of a principal follow here.
    pub fn follows_of(&self, principal: &Principal) -> impl Iterator<Item = &Follow> {
        self.follows.values().filter(move |one| one.session.principal == *principal)
    }

    /// True where this connection to an old backend tells what a listen request follows.
    pub fn carries(&self, peer: &Peer, follow: &Follow) -> bool {
        let fits = match &peer.use_of {
            Use::Session(_) => false,
            Use::Shared => self.support.target(Era::Modern) == Era::Legacy,
            Use::Pool => follow.caps == peer.caps,
        };
        fits && follow.session.principal == peer.principal
    }

    /// True where somebody follows this resource on this connection to an old backend.
    pub fn wants(&self, peer: &Peer, uri: &str) -> bool {
        match &peer.use_of {
            Use::Session(owner) => self.watches.get(uri).is_some_and(|sessions| sessions.contains_key(&owner.key)),
            Use::Shared => self.shared_wants(&peer.principal, uri),
            Use::Pool => self.follows_of(&peer.principal).any(|one| self.carries(peer, one) && one.names(uri)),
        }
    }

    /// True where somebody follows this resource on the connection to an old backend that a principal shares.
    pub fn shared_wants(&self, principal: &Principal, uri: &str) -> bool {
        let mut watchers = self.watches.get(uri).into_iter().flatten();
        watchers.any(|(key, of)| of == principal && !self.owned.contains_key(key))
            || self.support.target(Era::Modern) == Era::Legacy && self.follows_of(principal).any(|one| one.names(uri))
    }

    /// True where the principal has another connection on which an old backend may tell what this one tells.
    pub fn has_other(&self, peer: &Peer) -> bool {
        let pooled = self.pooled.iter().filter(|(key, _)| key.principal == peer.principal);
        let mut others =
            pooled.flat_map(|(_, pool)| pool).chain(self.shared.get(&(peer.principal.clone(), Era::Legacy)));
        others.any(|other| other.id != peer.id)
    }

    pub fn is_home(&self, peer: &Arc<Peer>) -> bool {
        self.home_peer.as_ref().is_some_and(|home| Arc::ptr_eq(home, peer))
    }

    /// True where another connection with these capabilities is about to bring the lists.
    pub fn others_reading(&self, caps: &CapSet, but: Option<PeerId>) -> bool {
        let others = self.peers().into_iter().filter(|peer| Some(peer.id) != but && peer.caps == *caps);
        others.into_iter().any(|peer| !peer.is_lost() && (self.reading.contains(&peer.id) || !peer.is_ready()))
    }

    /// The pooled connections that calls of a client with these capabilities may run on.
    pub fn pooled_for(&self, principal: &Principal, caps: &CapSet) -> Vec<Arc<Peer>> {
        let fits = |peer: &&Arc<Peer>| peer.principal == *principal && peer.caps == *caps;
        self.pooled.values().flatten().filter(fits).cloned().collect()
    }

    /// How many connections are pooled.
    pub fn pooled_count(&self) -> usize {
        self.pooled.values().map(Vec::len).sum()
    }

    /// Every connection, each once.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        self.peers_that(|_| true)
    }

    /// Those on which something may have become late. Sessions that do nothing must cost nothing, so the others are not even
    /// gathered.
    pub fn waiting_peers(&self) -> Vec<Arc<Peer>> {
        self.peers_that(|peer| !peer.is_quiet())
    }

    fn peers_that(&self, wanted: impl Fn(&Peer) -> bool) -> Vec<Arc<Peer>> {
        let all = self.shared.values().chain(self.owned.values()).chain(self.pooled.values().flatten());
        let mut peers: Vec<Arc<Peer>> =
            all.chain(&self.home_peer).filter(|peer| wanted(peer)).map(Arc::clone).collect();
        peers.sort_by_key(|peer| peer.id);
        peers.dedup_by_key(|peer| peer.id);
        peers
    }

    /// The connections that may carry calls of this session: no more than its principal can have.
    pub fn serving(&self, session: &Session) -> Vec<Arc<Peer>> {
        let principal = &session.principal;
        let owned = self.owned.get(&session.key).into_iter();
        let shared =
            [Era::Legacy, Era::Modern].into_iter().filter_map(|era| self.shared.get(&(principal.clone(), era)));
        let pooled = self.pooled.iter().filter(|(key, _)| key.principal == *principal).flat_map(|(_, pool)| pool);
        owned.chain(shared).chain(pooled).cloned().collect()
    }
}
