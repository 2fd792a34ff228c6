//! What `signalbox status` and `/metrics` show, gathered at one moment.

use crate::backend::{Backend, BreakerStatus, HealthStatus, Home};
use crate::gateway::Gateway;
use serde::Serialize;
use signalbox_engine::bridge::TASKS;
use signalbox_engine::bridge::report::{Reached, report};
use signalbox_engine::catalog::ListKind;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The state of the gateway.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Process id.
    pub pid: u32,
    /// Program version.
    pub version: &'static str,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Sessions open now.
    pub sessions: usize,
    /// Sessions ever opened.
    pub sessions_opened: u64,
    /// Requests in flight.
    pub in_flight: i64,
    /// Front connections.
    pub connections: i64,
    /// Event streams open now.
    pub streams: usize,
    /// Calls that wait for input of their clients.
    pub parked: usize,
    /// Tasks that run in this process.
    pub tasks: usize,
    /// How many messages were dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// How much was refused before it became a request, by limit.
    pub refused: BTreeMap<&'static str, u64>,
    /// How many messages were refused for their signature, or for want of one, by reason.
    pub refused_signatures: BTreeMap<&'static str, u64>,
    /// How many messages were too large for callers whom only a signature could prove, by address.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown_callers: BTreeMap<String, u64>,
    /// Bytes of calls that wait for input of their clients.
    pub parked_bytes: usize,
    /// Bytes of messages that are held and charged.
    pub message_bytes: usize,
    /// Most bytes of messages that may be held.
    pub message_budget: usize,
    /// The interceptors, in order.
    pub interceptors: Vec<&'static str>,
    /// Backends that a reload has removed or replaced, and that still finish their calls.
    pub retiring: usize,
    /// The backends, in configured order.
    pub backends: Vec<BackendStatus>,
}

/// The state of a backend.
#[derive(Clone, Debug, Serialize)]
pub struct BackendStatus {
    /// Its name.
    pub name: String,
    /// `stdio`, `http`, …
    pub transport: &'static str,
    /// `starting`, `up`, `restarting`, `asleep`, `down` or `failed`.
    pub state: &'static str,
    /// The revision agreed with it.
    pub revision: Option<&'static str>,
    /// Which eras it speaks: `old`, `new`.
    pub eras: Vec<&'static str>,
    /// Which clients reach it over the bridge between revisions; `None` if it speaks both eras.
    pub bridged_clients: Option<&'static str>,
    /// What the bridge carries for them.
    pub bridged: Vec<&'static str>,
    /// What it cannot carry.
    pub lost: Vec<&'static str>,
    /// The name that it gives itself.
    pub server: Option<String>,
    /// The version it gives itself.
    pub server_version: Option<String>,
    /// How many tools, prompts, resources and templates it lists.
    pub lists: BTreeMap<&'static str, usize>,
    /// Connections open now.
    pub connections: usize,
    /// Their process ids.
    pub pids: Vec<u32>,
    /// Requests in flight on them.
    pub in_flight: usize,
    /// Calls that wait for it to start, or for a connection to it.
    pub waiting: usize,
    /// Most of these.
    pub max_queue: usize,
    /// Calls that were refused because the queue was full.
    pub queue_refused: u64,
    /// How often a call was sent again that had certainly not been processed.
    pub retries: u64,
    /// What pings have shown; `None` if it is not pinged.
    pub health: Option<HealthStatus>,
    /// Its addresses, if it has several.
    pub addresses: Vec<AddressStatus>,
    /// How often it was restarted.
    pub restarts: u64,
    /// Its messages that fitted nothing, by kind.
    pub strays: BTreeMap<&'static str, u64>,
    /// The state of its breaker; `None` if it has none.
    pub breaker: Option<BreakerStatus>,
    /// The last line on its standard output that is not a message.
    pub stray_line: Option<String>,
    /// How many messages to and from it were dropped or refused, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// The last lines on the standard error of a child that has ended, until it is up again.
    pub last_words: Vec<String>,
}

/// The state of one address of a backend.
#[derive(Clone, Debug, Serialize)]
pub struct AddressStatus {
    /// Host and port.
    pub address: String,
    /// How often it is chosen, compared to the others.
    pub weight: u32,
    /// `closed`, or `open` or `half open` if it is avoided because it fails.
    pub breaker: &'static str,
    /// Requests or connections under way there.
    pub busy: usize,
    /// Requests or connections that it got.
    pub sent: u64,
    /// Those of them that failed.
    pub failed: u64,
}

impl Gateway {
    /// The state at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: crate::clock::now().saturating_duration_since(self.started).as_secs(),
            sessions: self.sessions.len(),
            sessions_opened: self.counters.sessions_opened.load(Ordering::Relaxed),
            in_flight: self.counters.in_flight.load(Ordering::Relaxed),
            connections: self.counters.connections.load(Ordering::Relaxed),
            streams: self.counters.event_streams.load(Ordering::Relaxed),
            parked: self.parks.len(),
            tasks: self.runtimes.tasks(),
            dropped: self.counters.all_dropped(),
            refused: self.counters.all_refused(),
            refused_signatures: self.counters.refused_signatures(),
            unknown_callers: self.counters.unknown_callers(),
            parked_bytes: self.parks.bytes(),
            message_bytes: self.budget.used(),
            message_budget: self.budget.total(),
            interceptors: self.chain.names(),
            retiring: self.backends().retiring().len(),
            backends: self.backends().iter().map(|backend| backend.status(self)).collect(),
        }
    }

    /// True while at least one backend serves and is well, or will when it is used.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let waits = |backend: &Backend| backend.is_asleep() || backend.awaits_caller();
        let serves = |backend: &Backend| waits(backend) || backend.is_up() && backend.is_well();
        !self.is_draining() && self.backends().iter().any(|backend| serves(backend))
    }
}

impl Backend {
    /// True while the home connection is ready.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.state().home, Home::Up(_))
    }

    /// The processes behind its connections.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.state().connections.all().iter().filter_map(|peer| peer.pid()).collect()
    }

    fn status(&self, gateway: &Gateway) -> BackendStatus {
        let catalog = gateway.catalog.snapshot();
        let entry = catalog.backends().iter().find(|entry| entry.name == self.name);
        let view = entry.and_then(|entry| {
            let bare = entry.views.iter().find(|(key, _)| key.caps.is_bare());
            bare.or_else(|| entry.views.iter().next()).map(|(_, view)| view.clone())
        });
        let peers = self.state().connections.all();
        let queued = peers.iter().map(|peer| peer.queued()).sum::<usize>();
        let health = self.health();
        let state = self.state();
        let revision = match &state.home {
            Home::Up(peer) => peer.profile().map(|profile| profile.revision.as_str()),
            _ => None,
        };
        let report = match (&state.home, &view) {
            (Home::Up(peer), Some(view)) => peer.profile().map(|profile| {
                report(Reached {
                    revision: profile.revision,
                    one_era: state.support.legacy == Some(false) || state.support.modern == Some(false),
                    streams: self.connector.carries_headers(),
                    tasks: view.profile.has(&["tasks"]) || view.profile.has(&["extensions", TASKS]),
                })
            }),
            _ => None,
        }
        .unwrap_or_default();
        let mut eras = Vec::new();
        if state.support.legacy == Some(true) {
            eras.push("old");
        }
        if state.support.modern == Some(true) {
            eras.push("new");
        }
        BackendStatus {
            name: self.name.to_string(),
            transport: self.connector.kind(),
            state: state.home.as_str(),
            revision,
            eras,
            bridged_clients: Some(report.clients).filter(|clients| !clients.is_empty()),
            bridged: report.carried,
            lost: report.lost,
            server: view.as_ref().and_then(|view| view.profile.name()),
            server_version: view.as_ref().and_then(|view| view.profile.version()),
            lists: view
                .iter()
                .flat_map(|view| ListKind::ALL.map(|kind| (kind.member(), view.list(kind).len())))
                .collect(),
            connections: peers.len(),
            pids: peers.iter().filter_map(|peer| peer.pid()).collect(),
            in_flight: peers.iter().map(|peer| peer.in_flight()).sum::<usize>().saturating_sub(queued),
            waiting: state.waiting.len() + queued,
            max_queue: self.spec().failing.max_queue,
            queue_refused: self.queue_refused(),
            retries: self.retries(),
            health,
            addresses: self.connector.addresses(),
            restarts: state.condition.restarts(),
            strays: state.condition.strays().clone(),
            breaker: self.guard.status(),
            stray_line: state.condition.stray_line().map(str::to_owned),
            dropped: self.connector.dropped(),
            last_error: state.condition.last_error().map(str::to_owned),
            last_words: state.condition.last_words().to_vec(),
        }
    }
}
