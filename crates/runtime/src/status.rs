//! Snapshot of the gateway for `signalbox status` and `/metrics`.

use crate::backend::{Backend, BreakerStatus, HealthStatus, Home};
use crate::gateway::Gateway;
use crate::link::AddressStatus;
use serde::Serialize;
use signalbox_engine::bridge::TASKS;
use signalbox_engine::bridge::report::{BackendReach, report};
use signalbox_engine::catalog::ListKind;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// State of the gateway.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub pid: u32,
    pub version: &'static str,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Number of open sessions.
    pub sessions: usize,
    /// Number of sessions opened since the start.
    pub sessions_opened: u64,
    /// Number of requests in flight.
    pub in_flight: i64,
    /// Number of client connections.
    pub connections: i64,
    /// Number of open event streams.
    pub streams: usize,
    /// Number of calls that wait for input from their clients.
    pub parked: usize,
    /// Number of Tokio tasks in this process.
    pub tasks: usize,
    /// Number of dropped messages by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Number of requests refused before they were read, by limit.
    pub refused: BTreeMap<&'static str, u64>,
    /// Number of messages refused because of a missing or bad signature, by reason.
    pub refused_signatures: BTreeMap<&'static str, u64>,
    /// Number of messages, by address, that were too large to check the signature on which their caller's identity
    /// depends.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown_callers: BTreeMap<String, u64>,
    /// Size in bytes of calls that wait for input from their clients.
    pub parked_bytes: usize,
    /// Number of message bytes that are held and charged.
    pub message_bytes: usize,
    /// Maximum number of message bytes that may be held.
    pub message_budget: usize,
    pub interceptors: Vec<&'static str>,
    /// Number of backends that a reload removed or replaced, and that still finish their calls.
    pub retiring: usize,
    /// Backends in configured order.
    pub backends: Vec<BackendStatus>,
}

/// State of a backend.
#[derive(Clone, Debug, Serialize)]
pub struct BackendStatus {
    pub name: String,
    /// Transport, such as `stdio` or `http`.
    pub transport: &'static str,
    /// `starting`, `up`, `restarting`, `asleep`, `down` or `failed`.
    pub state: &'static str,
    /// Revision negotiated with the server.
    pub revision: Option<&'static str>,
    /// Eras that the backend speaks: `old`, `new`.
    pub eras: Vec<&'static str>,
    /// Clients that reach the backend through the bridge between revisions. `None` if it speaks both eras.
    pub bridged_clients: Option<&'static str>,
    /// Features that the bridge carries for them.
    pub bridged: Vec<&'static str>,
    /// Features that the bridge cannot carry.
    pub lost: Vec<&'static str>,
    /// Name that the server reports.
    pub server: Option<String>,
    /// Version that the server reports.
    pub server_version: Option<String>,
    /// Number of entries in each list.
    pub lists: BTreeMap<&'static str, usize>,
    /// Number of open connections.
    pub connections: usize,
    /// Process ids of its children.
    pub pids: Vec<u32>,
    /// Number of requests in flight.
    pub in_flight: usize,
    /// Number of calls that wait for the backend to start, or for a connection to it.
    pub waiting: usize,
    /// Maximum number of calls in `waiting`.
    pub max_queue: usize,
    /// Number of calls refused because of a full queue.
    pub queue_refused: u64,
    /// Number of retries of calls that had certainly not been processed.
    pub retries: u64,
    /// Health according to pings. `None` if the backend is not pinged.
    pub health: Option<HealthStatus>,
    /// Status of each address, if there are several.
    pub addresses: Vec<AddressStatus>,
    pub restarts: u64,
    /// Number of unmatched messages by kind.
    pub strays: BTreeMap<&'static str, u64>,
    /// State of the circuit breaker. `None` without one.
    pub breaker: Option<BreakerStatus>,
    /// Last line on its standard output that is not a message.
    pub stray_line: Option<String>,
    /// Number of messages to and from it that were dropped or refused, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    pub last_error: Option<String>,
    /// Last lines on the standard error of an ended child, until the backend is up again.
    pub last_words: Vec<String>,
}

impl Gateway {
    /// Returns the current state.
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

    /// Returns true while at least one backend serves and is well, or will serve when it is used.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let waits = |backend: &Backend| backend.is_asleep() || backend.awaits_caller();
        let serves = |backend: &Backend| waits(backend) || backend.is_up() && backend.is_well();
        !self.is_draining() && self.backends().iter().any(|backend| serves(backend))
    }
}

impl Backend {
    /// Returns true while the home connection is ready.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.state().home, Home::Up(_))
    }

    /// Returns the process ids behind its connections.
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
                report(BackendReach {
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
            last_words: state.condition.stderr_tail().to_vec(),
        }
    }
}
