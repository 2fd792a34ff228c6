//! State that all parts of the relay share.

use crate::buckets::Buckets;
use crate::code::Code;
use crate::counters::RelayCounters;
use crate::random::{self, NoRandomness};
use crate::refusal::LegacyRefusal;
use crate::session::{NewSession, SessionRecord, mcp_mark};
use crate::settings::{RelaySettings, millis};
use crate::shares::Shares;
use crate::store::{CreateOutcome, RelayStore, RelayStoreError};
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

/// Name of the backend.
pub const BACKEND: &str = "relay";
/// Transport name of callers that arrive through the relay.
pub const TRANSPORT: &str = "relay";
/// Owner of the tool list shared by all MCP sessions whose page has no tools of its own; [`CODES`] is the one for
/// clients without sessions.
const SESSIONS: &str = "relay:sessions";
const CODES: &str = "relay:codes";
/// Interval of heartbeats on a silent stream.
pub const HEARTBEAT: Duration = Duration::from_secs(25);
/// Minimum interval between log messages about a failing store, in milliseconds.
const FAILURE_LOG_INTERVAL_MS: u64 = 10_000;
/// Interval at which expired sessions are removed.
const SWEEP: Duration = Duration::from_secs(1);
/// Maximum number of attempts to generate an unused code.
const TRIES: usize = 5;
/// Maximum number of codes in transit from the front end to a link.
const MAX_TICKETS: usize = 10_000;
/// Maximum number of issued codes to remember.
const MAX_ISSUED: usize = 100_000;

/// Target of a connection: the page that its calls go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageTarget {
    /// The page that an MCP session is bound to at the moment.
    Session(Arc<str>),
    /// The page with this code.
    Code(Code),
    /// No page: a stateless client that has named none.
    Nowhere,
}

/// A page of a session.
pub type PageKey = (Code, Box<str>);

/// Target that is registered under its mark.
#[derive(Clone, Debug)]
struct TargetEntry {
    target: PageTarget,
    /// True if its page has tools of its own.
    own: bool,
}

/// Code that an MCP client gave, on its way from the front end to a link.
#[derive(Clone, Debug)]
pub struct GivenCode {
    /// Code as it was given.
    pub code: Box<str>,
    /// Address that gave it, as a key of rate limits.
    pub address: Box<str>,
}

/// The relay of a gateway.
pub struct Relay {
    /// Configuration of the relay.
    pub settings: RelaySettings,
    /// State shared between gateways.
    pub store: Arc<dyn RelayStore>,
    /// Memory shares that messages are charged to.
    pub shares: Shares,
    pub tools: ToolSet,
    pub counts: RelayCounters,
    /// Roles of event streams: worker or client.
    pub roles: StreamRoles,
    /// Rate of new sessions per address.
    pub session_rate: Buckets,
    /// Rate of legacy calls per address and code.
    pub request_rate: Buckets,
    /// Rate of MCP messages per address.
    pub mcp_rate: Buckets,
    wrong_rate: Buckets,
    targets: Mutex<HashMap<Box<str>, TargetEntry>>,
    tickets: Mutex<HashMap<Box<str>, GivenCode>>,
    gateway: OnceLock<Weak<Gateway>>,
    address: OnceLock<String>,
    /// Start time, in milliseconds since 1970.
    pub started: u64,
    /// Time of the last log message about a failing store, in milliseconds since 1970.
    last_failure_log: AtomicU64,
    warned: Mutex<HashSet<&'static str>>,
    /// Requests delivered to each polling page, so that each is delivered once.
    pub polled: Mutex<HashMap<PageKey, HashSet<Box<str>>>>,
    /// Codes issued by this gateway, to distinguish expired codes from ones that never existed.
    issued: Mutex<HashSet<Code>>,
    /// Current stream of each page at this gateway. A new one replaces it.
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
    /// Ends all calls that wait for a page, and all later ones. No page can answer a gateway that shuts down.
    pub fn end_calls(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until [`Relay::end_calls`] is called.
    pub(crate) async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // `self` holds the sender, so this cannot fail.
        let _ = closing.wait_for(|closing| *closing).await;
    }

    /// Creates a relay with these settings and this store.
    #[must_use]
    pub fn new(settings: RelaySettings, store: Arc<dyn RelayStore>) -> Arc<Self> {
        let limits = &settings.limits;
        Arc::new(Self {
            tools: ToolSet::new(settings.tools),
            counts: RelayCounters::default(),
            shares: Shares::default(),
            roles: StreamRoles::default(),
            session_rate: Buckets::per_minute(limits.sessions_per_minute),
            request_rate: Buckets::per_minute(limits.requests_per_minute),
            mcp_rate: Buckets::per_minute(limits.mcp_requests_per_minute),
            wrong_rate: Buckets::per_minute(limits.wrong_codes_per_minute),
            targets: Mutex::default(),
            tickets: Mutex::default(),
            gateway: OnceLock::new(),
            address: OnceLock::new(),
            started: unix_millis(),
            last_failure_log: AtomicU64::new(0),
            warned: Mutex::default(),
            polled: Mutex::default(),
            issued: Mutex::default(),
            streams: Mutex::default(),
            closing: watch::Sender::new(false),
            store,
            settings,
        })
    }

    /// Attaches the gateway that calls go through.
    pub fn attach(&self, gateway: &Arc<Gateway>) {
        self.shares.attach(&gateway.budget);
        let _ = self.gateway.set(Arc::downgrade(gateway));
    }

    /// Starts the removal of expired sessions. `address` is used where no public address is configured. Requires a
    /// runtime.
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

    /// Returns the base URL for pages and clients.
    #[must_use]
    pub fn base(&self) -> &str {
        match self.settings.public_url.as_str() {
            "" => self.address.get().map_or("", String::as_str),
            configured => configured,
        }
    }

    /// Returns the gateway that calls go through.
    #[must_use]
    pub fn gateway(&self) -> Option<Arc<Gateway>> {
        self.gateway.get()?.upgrade()
    }

    /// Returns the time at which a previous account with this principal's name was removed, in milliseconds since 1970;
    /// 0 for none.
    pub(crate) fn account_gone(&self, principal: &Principal) -> u64 {
        self.gateway().map_or(0, |gateway| gateway.presence.account_gone(principal))
    }

    /// Creates a session, for this MCP session or for a new one.
    ///
    /// # Errors
    /// If there are too many sessions, or the store is unreachable.
    pub async fn create(&self, mcp_id: Option<&str>) -> Result<NewSession, LegacyRefusal> {
        for _ in 0..TRIES {
            let at = unix_millis();
            let new = SessionRecord::make(mcp_id, at, self.settings.ttl_ms())
                .map_err(|NoRandomness| LegacyRefusal::Internal)?;
            let created = self.store.create(new.record.clone(), self.settings.limits.max_sessions, at).await;
            match created.map_err(|error| self.failed(&error))? {
                CreateOutcome::Both => {
                    RelayCounters::add(&self.counts.sessions);
                    self.note_issued(&new.record.code);
                    return Ok(new);
                }
                CreateOutcome::Taken => {}
                CreateOutcome::Full => return Err(LegacyRefusal::Full),
            }
        }
        Err(LegacyRefusal::Internal)
    }

    /// Finds the session of a code and extends its life. Wrong codes are counted under each of `sources`, the address
    /// of the caller among them: after too many of one, even a correct code is refused for a while.
    ///
    /// # Errors
    /// If there is no such session, or there were too many wrong codes.
    pub async fn find(&self, code: &Code, sources: &[&str]) -> Result<SessionRecord, LegacyRefusal> {
        let now = Instant::now();
        if sources.iter().any(|source| self.wrong_rate.is_empty(source, now)) {
            RelayCounters::add(&self.counts.rate_limited);
            return Err(LegacyRefusal::RateLimited { what: "wrong session codes", wait: Duration::from_secs(60) });
        }
        let at = unix_millis();
        let found = match self.store.by_code(code, at).await {
            Err(error @ RelayStoreError::Unreadable(_)) => {
                self.failed(&error);
                return Err(LegacyRefusal::SessionValidationFailed);
            }
            found => found.map_err(|error| self.failed(&error))?,
        };
        let Some(mut record) = found else {
            if self.issued.lock().unpoisoned().contains(code) {
                return Err(LegacyRefusal::SessionExpired);
            }
            self.guessed(sources);
            return Err(LegacyRefusal::SessionNotFound);
        };
        self.touch(&mut record).await?;
        Ok(record)
    }

    /// Returns true on the first call for a family of clients.
    #[must_use]
    pub fn warn_once(&self, client: &'static str) -> bool {
        self.warned.lock().unpoisoned().insert(client)
    }

    fn note_issued(&self, code: &Code) {
        let mut issued = self.issued.lock().unpoisoned();
        if issued.len() >= MAX_ISSUED {
            issued.clear();
        }
        issued.insert(code.clone());
    }

    /// Counts a wrong code under each of these sources.
    pub fn guessed(&self, sources: &[&str]) {
        RelayCounters::add(&self.counts.wrong_codes);
        for source in sources {
            let _ = self.wrong_rate.take(source, Instant::now());
        }
    }

    /// Extends the life of a session.
    ///
    /// # Errors
    /// If the session has ended, or the store is unreachable.
    pub async fn touch(&self, record: &mut SessionRecord) -> Result<(), LegacyRefusal> {
        let at = unix_millis();
        let until = at.saturating_add(self.settings.ttl_ms());
        // Skip the write for most messages: an eighth of the lifetime makes no difference.
        if record.until.saturating_add(self.settings.ttl_ms() / 8) >= until {
            return Ok(());
        }
        record.until = until;
        match self.store.touch(&record.code, until, at).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(LegacyRefusal::SessionExpired),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Maps a failure of the store to a refusal that reveals nothing. The log has the details.
    pub fn failed(&self, error: &RelayStoreError) -> LegacyRefusal {
        let now = unix_millis();
        let last = self.last_failure_log.load(Ordering::Relaxed);
        if now.saturating_sub(last) >= FAILURE_LOG_INTERVAL_MS
            && self.last_failure_log.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            tracing::warn!(%error, "the relay's store fails; this is told every 10 s at most");
        }
        LegacyRefusal::Internal
    }

    /// Refuses and counts a message that exceeds the memory budget.
    pub fn no_room(&self, refused: OverBudget) -> LegacyRefusal {
        if let Some(gateway) = self.gateway() {
            gateway.counters.refused(Limit::Memory);
        }
        LegacyRefusal::NoRoom(refused)
    }

    /// Registers the target of an MCP session.
    #[must_use]
    pub fn session_target(&self, caller: &Caller, mcp_id: &str, bound: &SessionRecord) -> Principal {
        let own = bound.tools.is_some();
        self.target(caller, format!("s-{}", mcp_mark(mcp_id)), own, || PageTarget::Session(mcp_id.into()))
    }

    /// Registers the target of a session code.
    #[must_use]
    pub fn code_target(&self, caller: &Caller, record: &SessionRecord) -> Principal {
        let own = record.tools.is_some();
        self.target(caller, format!("c-{}", record.mark), own, || PageTarget::Code(record.code.clone()))
    }

    /// Returns the principal of a client that has named no page.
    #[must_use]
    pub fn nowhere(&self, caller: &Caller) -> Principal {
        Principal::named(&format!("{}/{TRANSPORT}", caller.principal()))
    }

    fn target(&self, caller: &Caller, mark: String, own: bool, target: impl FnOnce() -> PageTarget) -> Principal {
        let principal = Principal::named(&format!("{}/{TRANSPORT}:{mark}", caller.principal()));
        let mut targets = self.targets.lock().unpoisoned();
        if let Some(known) = targets.get_mut(mark.as_str()) {
            known.own = own;
        } else {
            // A target that is still in use is registered again at its next message.
            if targets.len() >= 4 * self.settings.limits.max_sessions {
                targets.clear();
            }
            targets.insert(mark.into(), TargetEntry { target: target(), own });
        }
        principal
    }

    /// Returns the target that a connection for this principal serves.
    #[must_use]
    pub fn target_of(&self, principal: &Principal) -> PageTarget {
        self.known(principal).map_or(PageTarget::Nowhere, |known| known.target)
    }

    fn known(&self, principal: &Principal) -> Option<TargetEntry> {
        let mark = mark_in(principal.as_str())?;
        self.targets.lock().unpoisoned().get(mark).cloned()
    }

    /// Records whether the page of a target has tools of its own.
    pub fn note_tools(&self, principal: &str, record: &SessionRecord) {
        let Some(mark) = mark_in(principal) else { return };
        if let Some(known) = self.targets.lock().unpoisoned().get_mut(mark) {
            known.own = record.tools.is_some();
        }
    }

    /// Returns the session that a target is bound to at the moment.
    ///
    /// # Errors
    /// If the store is unreachable.
    pub async fn bound(&self, target: &PageTarget) -> Result<Option<SessionRecord>, RelayStoreError> {
        match target {
            PageTarget::Session(id) => self.store.by_mcp(id, unix_millis()).await,
            PageTarget::Code(code) => self.store.by_code(code, unix_millis()).await,
            PageTarget::Nowhere => Ok(None),
        }
    }

    /// Stores a code that this address gave for a link under a random name. The name is safe to record.
    #[must_use]
    pub fn ticket(&self, code: &str, address: &str) -> String {
        let Ok(name) = random::request_id() else { return String::new() };
        let mut tickets = self.tickets.lock().unpoisoned();
        if tickets.len() >= MAX_TICKETS {
            tickets.clear();
        }
        tickets.insert(name.as_str().into(), GivenCode { code: code.into(), address: address.into() });
        name
    }

    /// Takes the code that a ticket stands for.
    #[must_use]
    pub fn redeem(&self, ticket: &str) -> Option<GivenCode> {
        self.tickets.lock().unpoisoned().remove(ticket)
    }

    /// Registers a page's new stream and ends its previous one. The receiver fires when the new one is replaced in
    /// turn.
    pub fn replace_stream(&self, code: &Code, holder: &str) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut streams = self.streams.lock().unpoisoned();
        if streams.len() >= 2 * self.settings.limits.max_sessions {
            streams.retain(|_, stream| !stream.is_closed());
        }
        streams.insert((code.clone(), holder.into()), sender);
        receiver
    }

    /// Unregisters a page's stream after it has ended.
    pub fn forget_stream(&self, code: &Code, holder: &str) {
        let mut streams = self.streams.lock().unpoisoned();
        let key = (code.clone(), Box::from(holder));
        if streams.get(&key).is_some_and(oneshot::Sender::is_closed) {
            streams.remove(&key);
        }
    }

    /// Returns the heartbeat interval of a stream, short enough to keep its session alive.
    #[must_use]
    pub fn heartbeat(&self) -> Duration {
        HEARTBEAT.min(self.settings.ttl / 3).max(Duration::from_millis(200))
    }

    /// Returns the duration of a lead that is not renewed.
    #[must_use]
    pub fn lease_ms(&self) -> u64 {
        millis(self.heartbeat()).saturating_mul(3)
    }
}

/// Targets whose page has no tools of its own share one tool list.
impl ListOwners for Relay {
    fn owner(&self, principal: &Principal) -> Option<Principal> {
        if [SESSIONS, CODES].contains(&principal.as_str()) {
            return None;
        }
        match self.known(principal) {
            Some(TargetEntry { own: true, .. }) => None,
            Some(TargetEntry { target: PageTarget::Session(_), .. }) => Some(Principal::named(SESSIONS)),
            _ => Some(Principal::named(CODES)),
        }
    }
}

/// Extracts the mark of a target from the name of a principal.
fn mark_in(principal: &str) -> Option<&str> {
    principal.rsplit_once("/relay:").map(|(_, mark)| mark)
}

/// Returns the page's own tools.
#[must_use]
pub fn own_tools(record: &SessionRecord) -> Vec<Value> {
    record.tools.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
