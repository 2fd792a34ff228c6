//! What all parts of the relay share.

use crate::buckets::Buckets;
use crate::code::Code;
use crate::counts::Counts;
use crate::random::{self, NoRandomness};
use crate::refusal::Refusal;
use crate::session::{NewSession, SessionRecord, mcp_mark};
use crate::settings::{RelaySettings, millis};
use crate::shares::Shares;
use crate::store::{Created, RelayStore, StoreError};
use crate::stream_roles::StreamRoles;
use crate::tools::ToolSet;
use serde_json::Value;
use signalbox_engine::budget::OverBudget;
use signalbox_engine::catalog::ListOwners;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Caller, Limit, Principal};
use signalbox_runtime::Gateway;
use signalbox_runtime::clock::unix_millis;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// The name of the backend.
pub const BACKEND: &str = "relay";
/// The word for how callers come who come by the relay.
pub const TRANSPORT: &str = "relay";
/// Whom the lists belong to that all MCP sessions without a page's own tools are shown, and all clients without sessions.
const SESSIONS: &str = "relay:sessions";
const CODES: &str = "relay:codes";
/// How often a silent stream says that it is there.
pub const HEARTBEAT: Duration = Duration::from_secs(25);
/// How often it is told that the store fails, in milliseconds.
const TELL_FAILURES_MS: u64 = 10_000;
/// How often sessions are looked through for those whose time is over.
const SWEEP: Duration = Duration::from_secs(1);
/// How often a code is tried to be made that nobody has.
const TRIES: usize = 5;
/// Codes on their way from a front to a link.
const MAX_TICKETS: usize = 10_000;
/// Codes that are remembered as given out.
const MAX_MADE: usize = 100_000;

/// Whose calls come by a connection: which page they are for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Room {
    /// The page that an MCP session is bound to at this moment.
    Session(Arc<str>),
    /// The page of this code.
    Code(Code),
    /// None: a client of the new revision that has named no page.
    Nowhere,
}

/// A page of a session.
pub type PageKey = (Code, Box<str>);

/// What is known of a room.
#[derive(Clone, Debug)]
struct Known {
    room: Room,
    /// True if its page has tools of its own.
    own: bool,
}

/// The relay of one gateway.
pub struct Relay {
    /// How it is set up.
    pub settings: RelaySettings,
    /// What gateways agree on.
    pub store: Arc<dyn RelayStore>,
    /// Whom messages are charged to.
    pub shares: Shares,
    /// CODAP's tools.
    pub tools: ToolSet,
    /// What it counts.
    pub counts: Counts,
    /// Which streams are workers' and which are clients'.
    pub roles: StreamRoles,
    /// New sessions per address.
    pub session_rate: Buckets,
    /// Legacy calls per address and code.
    pub request_rate: Buckets,
    /// MCP messages per address.
    pub mcp_rate: Buckets,
    wrong_rate: Buckets,
    rooms: Mutex<HashMap<Box<str>, Known>>,
    tickets: Mutex<HashMap<Box<str>, Box<str>>>,
    gateway: OnceLock<Weak<Gateway>>,
    address: OnceLock<String>,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    /// When it was last told that the store fails, in milliseconds since 1970.
    failure_told: AtomicU64,
    warned: Mutex<HashSet<&'static str>>,
    /// What pollers were given, so that they are given it once.
    pub polled: Mutex<HashMap<PageKey, HashSet<Box<str>>>>,
    /// Codes that this gateway has given out, to tell those that are over from those that never were.
    made: Mutex<HashSet<Code>>,
    /// The stream that each page has open at this gateway: an older one of the same page ends.
    streams: Mutex<HashMap<PageKey, oneshot::Sender<()>>>,
    /// Turns true when the gateway shuts down.
    closing: watch::Sender<bool>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Relay {
    /// Ends every call that waits for a page, and those to come. No page can answer a gateway that shuts down.
    pub fn end_calls(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until calls are to end.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender is in `self`, so that it cannot be gone.
        let _ = closing.wait_for(|closing| *closing).await;
    }

    /// A relay with these settings and this store.
    #[must_use]
    pub fn new(settings: RelaySettings, store: Arc<dyn RelayStore>) -> Arc<Self> {
        let limits = &settings.limits;
        Arc::new(Self {
            tools: ToolSet::new(settings.tools),
            counts: Counts::default(),
            shares: Shares::default(),
            roles: StreamRoles::default(),
            session_rate: Buckets::per_minute(limits.sessions_per_minute),
            request_rate: Buckets::per_minute(limits.requests_per_minute),
            mcp_rate: Buckets::per_minute(limits.mcp_requests_per_minute),
            wrong_rate: Buckets::per_minute(limits.wrong_codes_per_minute),
            rooms: Mutex::default(),
            tickets: Mutex::default(),
            gateway: OnceLock::new(),
            address: OnceLock::new(),
            started: unix_millis(),
            failure_told: AtomicU64::new(0),
            warned: Mutex::default(),
            polled: Mutex::default(),
            made: Mutex::default(),
            streams: Mutex::default(),
            closing: watch::Sender::new(false),
            store,
            settings,
        })
    }

    /// Calls go through this gateway.
    pub fn attach(&self, gateway: &Arc<Gateway>) {
        self.shares.attach(&gateway.budget);
        let _ = self.gateway.set(Arc::downgrade(gateway));
    }

    /// From now on sessions end when their time is over. Where no address is configured, this one is told. Needs a runtime.
    pub fn start(self: &Arc<Self>, address: &str) {
        let _ = self.address.set(address.to_owned());
        let relay = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(SWEEP);
            tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tick.tick().await;
                let Some(relay) = relay.upgrade() else { return };
                if relay.store.sweep(unix_millis()).await.is_err() {
                    tracing::debug!("the relay's store cannot be swept");
                }
            }
        });
    }

    /// Where pages and clients reach it.
    #[must_use]
    pub fn base(&self) -> &str {
        match self.settings.public_url.as_str() {
            "" => self.address.get().map_or("", String::as_str),
            configured => configured,
        }
    }

    /// The gateway that calls go through.
    #[must_use]
    pub fn gateway(&self) -> Option<Arc<Gateway>> {
        self.gateway.get()?.upgrade()
    }

    /// The time at which the former account of this principal's name was removed, in milliseconds since
    /// 1970; 0 for none.
    pub(crate) fn account_gone(&self, principal: &Principal) -> u64 {
        self.gateway().map_or(0, |gateway| gateway.presence.account_gone(principal))
    }

    /// Makes a session, for this MCP session or one that nobody has opened.
    ///
    /// # Errors
    /// If there are too many, or the store cannot be reached.
    pub async fn create(&self, mcp_id: Option<&str>) -> Result<NewSession, Refusal> {
        for _ in 0..TRIES {
            let at = unix_millis();
            let new =
                SessionRecord::make(mcp_id, at, self.settings.ttl_ms()).map_err(|NoRandomness| Refusal::Internal)?;
            let created = self.store.create(new.record.clone(), self.settings.limits.max_sessions, at).await;
            match created.map_err(|error| self.failed(&error))? {
                Created::Both => {
                    Counts::add(&self.counts.sessions);
                    self.note_made(&new.record.code);
                    return Ok(new);
                }
                Created::Taken => {}
                Created::Full => return Err(Refusal::Full),
            }
        }
        Err(Refusal::Internal)
    }

    /// The session of a code that somebody at this address (or whatever `who` stands for) gave. Using it lets it go on. Whoever
    /// gives too many wrong ones has to wait, with a right one too.
    ///
    /// # Errors
    /// If there is none, or the guesses were too many.
    pub async fn find(&self, code: &Code, who: &str) -> Result<SessionRecord, Refusal> {
        if self.wrong_rate.is_empty(who, Instant::now()) {
            Counts::add(&self.counts.rate_limited);
            return Err(Refusal::RateLimited { what: "wrong session codes", wait: Duration::from_secs(60) });
        }
        let at = unix_millis();
        let found = match self.store.by_code(code, at).await {
            Err(error @ StoreError::Unreadable(_)) => {
                self.failed(&error);
                return Err(Refusal::SessionValidationFailed);
            }
            found => found.map_err(|error| self.failed(&error))?,
        };
        let Some(mut record) = found else {
            if self.made.lock().unpoisoned().contains(code) {
                return Err(Refusal::SessionExpired);
            }
            self.guessed(who);
            return Err(Refusal::SessionNotFound);
        };
        self.touch(&mut record).await?;
        Ok(record)
    }

    /// True the first time that it is asked about a family of clients.
    #[must_use]
    pub fn warn_once(&self, client: &'static str) -> bool {
        self.warned.lock().unpoisoned().insert(client)
    }

    fn note_made(&self, code: &Code) {
        let mut made = self.made.lock().unpoisoned();
        if made.len() >= MAX_MADE {
            made.clear();
        }
        made.insert(code.clone());
    }

    /// Counts a wrong code.
    pub fn guessed(&self, who: &str) {
        Counts::add(&self.counts.wrong_codes);
        let _ = self.wrong_rate.take(who, Instant::now());
    }

    /// Lets a session go on.
    ///
    /// # Errors
    /// If it is over, or the store cannot be reached.
    pub async fn touch(&self, record: &mut SessionRecord) -> Result<(), Refusal> {
        let at = unix_millis();
        let until = at.saturating_add(self.settings.ttl_ms());
        // Not for every message: an eighth of the time makes no difference to anybody.
        if record.until.saturating_add(self.settings.ttl_ms() / 8) >= until {
            return Ok(());
        }
        record.until = until;
        match self.store.touch(&record.code, until, at).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::SessionExpired),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// What is told of a store that fails: nothing that would help an attacker. The log says more.
    pub fn failed(&self, error: &StoreError) -> Refusal {
        let now = unix_millis();
        let last = self.failure_told.load(Ordering::Relaxed);
        if now.saturating_sub(last) >= TELL_FAILURES_MS
            && self.failure_told.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            tracing::warn!(%error, "the relay's store fails; this is told every 10 s at most");
        }
        Refusal::Internal
    }

    /// Refuses and counts what there is no room for.
    pub fn no_room(&self, refused: OverBudget) -> Refusal {
        if let Some(gateway) = self.gateway() {
            gateway.counters.refused(Limit::Memory);
        }
        Refusal::NoRoom(refused)
    }

    /// The room of an MCP session.
    #[must_use]
    pub fn session_room(&self, caller: &Caller, mcp_id: &str, bound: &SessionRecord) -> Principal {
        let own = bound.tools.is_some();
        self.room(caller, format!("s-{}", mcp_mark(mcp_id)), own, || Room::Session(mcp_id.into()))
    }

    /// The room of a session's code.
    #[must_use]
    pub fn code_room(&self, caller: &Caller, record: &SessionRecord) -> Principal {
        let own = record.tools.is_some();
        self.room(caller, format!("c-{}", record.mark), own, || Room::Code(record.code.clone()))
    }

    /// The room of a client that has named no page.
    #[must_use]
    pub fn nowhere(&self, caller: &Caller) -> Principal {
        Principal::named(&format!("{}/{TRANSPORT}", caller.principal()))
    }

    fn room(&self, caller: &Caller, mark: String, own: bool, room: impl FnOnce() -> Room) -> Principal {
        let principal = Principal::named(&format!("{}/{TRANSPORT}:{mark}", caller.principal()));
        let mut rooms = self.rooms.lock().unpoisoned();
        if let Some(known) = rooms.get_mut(mark.as_str()) {
            known.own = own;
        } else {
            // Whoever comes again is noted again.
            if rooms.len() >= 4 * self.settings.limits.max_sessions {
                rooms.clear();
            }
            rooms.insert(mark.into(), Known { room: room(), own });
        }
        principal
    }

    /// The room that a connection for this principal is for.
    #[must_use]
    pub fn room_of(&self, principal: &Principal) -> Room {
        self.known(principal).map_or(Room::Nowhere, |known| known.room)
    }

    fn known(&self, principal: &Principal) -> Option<Known> {
        let mark = mark_in(principal.as_str())?;
        self.rooms.lock().unpoisoned().get(mark).cloned()
    }

    /// Notes whether the page of a room has tools of its own.
    pub fn note_tools(&self, principal: &str, record: &SessionRecord) {
        let Some(mark) = mark_in(principal) else { return };
        if let Some(known) = self.rooms.lock().unpoisoned().get_mut(mark) {
            known.own = record.tools.is_some();
        }
    }

    /// The session that a room is bound to at this moment.
    ///
    /// # Errors
    /// If the store cannot be reached.
    pub async fn bound(&self, room: &Room) -> Result<Option<SessionRecord>, StoreError> {
        match room {
            Room::Session(id) => self.store.by_mcp(id, unix_millis()).await,
            Room::Code(code) => self.store.by_code(code, unix_millis()).await,
            Room::Nowhere => Ok(None),
        }
    }

    /// Something secret on its way to a link, by another name. Everybody may see that.
    #[must_use]
    pub fn ticket(&self, text: &str) -> String {
        let Ok(name) = random::request_id() else { return String::new() };
        let mut tickets = self.tickets.lock().unpoisoned();
        if tickets.len() >= MAX_TICKETS {
            tickets.clear();
        }
        tickets.insert(name.as_str().into(), text.into());
        name
    }

    /// What a ticket stands for, once.
    #[must_use]
    pub fn redeem(&self, ticket: &str) -> Option<Box<str>> {
        self.tickets.lock().unpoisoned().remove(ticket)
    }

    /// A page has opened another stream: the one it had ends. The receiver ends when that happens to the new one.
    pub fn replace_stream(&self, code: &Code, holder: &str) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut streams = self.streams.lock().unpoisoned();
        if streams.len() >= 2 * self.settings.limits.max_sessions {
            streams.retain(|_, stream| !stream.is_closed());
        }
        streams.insert((code.clone(), holder.into()), sender);
        receiver
    }

    /// A page's stream has ended.
    pub fn forget_stream(&self, code: &Code, holder: &str) {
        let mut streams = self.streams.lock().unpoisoned();
        let key = (code.clone(), Box::from(holder));
        if streams.get(&key).is_some_and(oneshot::Sender::is_closed) {
            streams.remove(&key);
        }
    }

    /// How often a stream says that it is there; often enough that its session goes on.
    #[must_use]
    pub fn heartbeat(&self) -> Duration {
        HEARTBEAT.min(self.settings.ttl / 3).max(Duration::from_millis(200))
    }

    /// How long a lead holds that is not renewed.
    #[must_use]
    pub fn lease_ms(&self) -> u64 {
        millis(self.heartbeat()).saturating_mul(3)
    }
}

/// Rooms whose page has no tools of its own are all shown the same.
impl ListOwners for Relay {
    fn owner(&self, principal: &Principal) -> Option<Principal> {
        if [SESSIONS, CODES].contains(&principal.as_str()) {
            return None;
        }
        match self.known(principal) {
            Some(Known { own: true, .. }) => None,
            Some(Known { room: Room::Session(_), .. }) => Some(Principal::named(SESSIONS)),
            _ => Some(Principal::named(CODES)),
        }
    }
}

/// What stands for a room in the name of a principal.
fn mark_in(principal: &str) -> Option<&str> {
    principal.rsplit_once("/relay:").map(|(_, mark)| mark)
}

/// The page's own tools.
#[must_use]
pub fn own_tools(record: &SessionRecord) -> Vec<Value> {
    record.tools.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
