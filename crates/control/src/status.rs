//! State of a process, as reported on its control socket and as shown by `signalbox status`.
//!
//! The reporting side is this file, [`traffic`], [`transparent`] and [`limits`]; the client side is [`view`],
//! [`columns`], [`trouble`] and [`show`].

mod audited;
pub mod columns;
mod limits;
pub mod rate_sampler;
pub mod show;
pub mod traffic;
mod transparent;
pub mod trouble;
pub mod view;

pub use audited::{AuditStatus, SinkStatus};
use limits::{Bounds, ShownLimit};
use serde::Serialize;
use signalbox_assembly::grants::SetGrant;
use signalbox_assembly::recording::{AnchorStats, Recording};
use signalbox_assembly::reload::{ReloadReport, Reloader};
use signalbox_assembly::{logging, name_check};
use signalbox_config::{BackendConfig, Config};
use signalbox_engine::standing::TrustLevel;
use signalbox_replay::{Baseline, BaselineStats};
use signalbox_runtime::status::{BackendStatus, Status};
use signalbox_tape::recorder::RecorderStats;
use signalbox_transport::tls::{FrontTls, TlsStatus};
use signalbox_wire::timestamp;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use traffic::{Traffic, TrafficSampler};
pub use transparent::{Passage, PassageOverview};

/// Properties of a process besides those of its gateway.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Command that the process runs: `serve` or `stdio`.
    pub command: &'static str,
    /// Address at which clients connect, if the process listens.
    pub url: Option<String>,
    /// Path of the configuration file, if there is one.
    pub config: Option<PathBuf>,
    pub data_dir: PathBuf,
    /// Configuration in force, and the outcome of reloads.
    pub reload: ReloadReport,
    /// Labels from the configuration, by backend name.
    pub labels: BTreeMap<String, OperatorLabels>,
    #[serde(skip)]
    bounds: Bounds,
}

/// Operator's labels of a backend.
#[derive(Clone, Debug, Serialize)]
pub struct OperatorLabels {
    /// Category of its tools.
    pub category: Option<String>,
    /// Trust level of its tools.
    pub trust_level: TrustLevel,
}

impl Process {
    /// Creates the properties of a process that runs `command` with this configuration.
    #[must_use]
    pub fn new(command: &'static str, url: Option<String>, config: &Config, reload: ReloadReport) -> Self {
        let label = |backend: &BackendConfig| {
            let labels = OperatorLabels { category: backend.category.clone(), trust_level: backend.trust_level };
            (backend.name.clone(), labels)
        };
        Self {
            command,
            url,
            config: config.source.clone(),
            data_dir: config.data_dir.clone(),
            reload,
            labels: config.backends.iter().filter(|backend| !backend.disabled).map(label).collect(),
            bounds: Bounds::of(config),
        }
    }
}

#[derive(Serialize)]
struct StatusReport<'a> {
    #[serde(flatten)]
    process: &'a Process,
    #[serde(flatten)]
    status: Status,
    traffic: Traffic,
    limits: Vec<ShownLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsStatus>,
    /// Names that several backends have in common.
    collisions: Vec<String>,
    /// Names in the configuration that match nothing.
    warnings: Vec<String>,
    /// Number of messages that wait for a person.
    held: usize,
    /// Number of active grants.
    grants: usize,
    /// Break-glass grants that are active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    break_glass: Vec<BreakGlass>,
    /// Number of rules in force.
    rules: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<TapeStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<AuditStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<BaselineStatus>,
}

/// Redacts the lines of a backend's child process as the log does.
pub(crate) fn redact_output(backend: &mut BackendStatus) {
    // An error may quote them.
    let lines = backend.last_words.iter_mut().chain(&mut backend.stray_line).chain(&mut backend.last_error);
    for line in lines {
        *line = logging::redacted(line);
    }
}

/// A break-glass grant: its holder may use everything that is not switched off.
#[derive(Serialize)]
struct BreakGlass {
    to: String,
    until: String,
    by: String,
    because: String,
}

impl BreakGlass {
    fn of(grant: &SetGrant) -> Self {
        let until = timestamp::rfc3339_millis(grant.until);
        Self { to: grant.to.clone(), until, by: grant.by.clone(), because: grant.because.clone() }
    }
}

/// Outcomes of the comparison of calls with a recorded tape.
#[derive(Serialize)]
struct BaselineStatus {
    tape: String,
    same: u64,
    differs: u64,
    unknown: u64,
    dropped: u64,
}

impl BaselineStatus {
    fn of(baseline: &Baseline) -> Self {
        let BaselineStats { same, differs, unknown, dropped } = baseline.stats();
        Self { tape: baseline.tape().to_owned(), same, differs, unknown, dropped }
    }
}

/// State of the recording.
#[derive(Serialize)]
struct TapeStatus {
    tape: String,
    entries: u64,
    gaps: u64,
    queue: u64,
    sampled_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    anchors: Option<AnchorStatus>,
    /// Reason why writing fails at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

/// State of the delivery of signed heads to anchors.
#[derive(Serialize)]
struct AnchorStatus {
    kept: u64,
    failed: u64,
    dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

impl AnchorStatus {
    fn of(stats: AnchorStats) -> Self {
        let AnchorStats { kept, failed, dropped, last_error } = stats;
        Self { kept, failed, dropped, last_error }
    }
}

impl TapeStatus {
    fn of(recording: &Recording) -> Self {
        let mut status = Self::new(recording.tape().id.clone(), recording.stats());
        status.anchors = recording.anchored().map(AnchorStatus::of);
        status.last_error = status.last_error.or_else(|| recording.prune_error().map(|error| error.to_string()));
        status
    }

    fn new(tape: String, stats: RecorderStats) -> Self {
        Self {
            tape,
            entries: stats.entries,
            gaps: stats.gaps.iter().map(|(_, facts)| facts).sum(),
            queue: stats.queue_depth,
            sampled_out: stats.sampled_out,
            anchors: None,
            failing: stats.failing,
            last_error: stats.last_error,
        }
    }
}

/// Identity of a process on a control socket.
pub struct ProcessInfo {
    /// Command that the process runs.
    pub command: &'static str,
    /// Address at which clients connect.
    pub url: Option<String>,
    /// TLS of its listener, if enabled.
    pub tls: Option<Arc<FrontTls>>,
}

/// Reporter of the state of a process.
pub struct StatusReporter {
    reloader: Arc<Reloader>,
    place: ProcessInfo,
    recent: Arc<TrafficSampler>,
}

impl StatusReporter {
    /// Creates the reporter of this process. Needs a Tokio runtime, on which it samples the traffic of the last minute.
    #[must_use]
    pub fn new(reloader: &Arc<Reloader>, place: ProcessInfo) -> Self {
        Self { reloader: Arc::clone(reloader), recent: TrafficSampler::follow(reloader.metrics()), place }
    }

    /// Returns the command that the process runs.
    #[must_use]
    pub fn command(&self) -> &'static str {
        self.place.command
    }

    /// Returns the whole state as JSON.
    ///
    /// # Errors
    /// If serialisation fails.
    pub fn json(&self) -> serde_json::Result<String> {
        let (reloader, place) = (&self.reloader, &self.place);
        let process = Process::new(place.command, place.url.clone(), &reloader.current(), reloader.report());
        reloader.gateway().settle();
        let mut status = reloader.gateway().status();
        status.backends.iter_mut().for_each(redact_output);
        let grants = reloader.app().govern.grants.counting().0;
        let catalog = Arc::clone(&reloader.gateway().catalog.snapshot());
        let whole = StatusReport {
            process: &process,
            limits: process.bounds.used(&status),
            status,
            traffic: self.recent.traffic(),
            tls: place.tls.as_ref().map(|tls| tls.status()),
            collisions: name_check::collisions(&catalog),
            warnings: name_check::unknown_names(&reloader.current(), &catalog),
            held: reloader.gateway().holds.list().len(),
            grants: grants.len(),
            break_glass: grants.iter().filter(|grant| grant.break_glass).map(BreakGlass::of).collect(),
            rules: reloader.app().rules.set().len(),
            recording: reloader.app().recording.as_deref().map(TapeStatus::of),
            audit: reloader.app().audit.as_ref().map(|audit| AuditStatus::of(audit.stats())),
            baseline: reloader.app().baseline.as_deref().map(BaselineStatus::of),
        };
        serde_json::to_string(&whole)
    }
}
