//! The state of a process, as it tells it on its control socket and as `signalbox status` shows it.
//!
//! The telling side is this file, [`traffic`], [`transparent`] and [`limits`]; the showing side is [`view`],
//! [`columns`], [`trouble`] and [`show`].

mod audited;
pub mod columns;
mod limits;
pub mod rates;
pub mod show;
pub mod traffic;
mod transparent;
pub mod trouble;
pub mod view;

pub use audited::{AuditStatus, SinkStatus};
use limits::{Bounds, ShownLimit};
use serde::Serialize;
use signalbox_assembly::grants::SetGrant;
use signalbox_assembly::name_check;
use signalbox_assembly::recording::{AnchorStats, Recording};
use signalbox_assembly::reload::{Reloader, Report};
use signalbox_config::{BackendConfig, Config, TrustLevel};
use signalbox_replay::{Baseline, BaselineStats};
use signalbox_runtime::status::Status;
use signalbox_tape::recorder::RecorderStats;
use signalbox_transport::tls::{FrontTls, TlsStatus};
use signalbox_wire::timestamp;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use traffic::{Recent, Traffic};
pub use transparent::{Passage, PassageOverview};

/// What a process is, besides its gateway.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// `serve` or `stdio`.
    pub command: &'static str,
    /// Where clients connect, if they do.
    pub url: Option<String>,
    /// The configuration file, if there is one.
    pub config: Option<PathBuf>,
    /// Where state is kept.
    pub data_dir: PathBuf,
    /// Which configuration is in force, and what became of reloads.
    pub reload: Report,
    /// What the configuration says about each backend, by its name.
    pub labels: BTreeMap<String, Labels>,
    #[serde(skip)]
    bounds: Bounds,
}

/// How the operator has labelled a backend.
#[derive(Clone, Debug, Serialize)]
pub struct Labels {
    /// What kind of tools it has.
    pub category: Option<String>,
    /// How far its tools are trusted.
    pub trust_level: TrustLevel,
}

impl Process {
    /// A process that runs this command with this configuration.
    #[must_use]
    pub fn new(command: &'static str, url: Option<String>, config: &Config, reload: Report) -> Self {
        let label = |backend: &BackendConfig| {
            let labels = Labels { category: backend.category.clone(), trust_level: backend.trust_level };
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
struct Whole<'a> {
    #[serde(flatten)]
    process: &'a Process,
    #[serde(flatten)]
    status: Status,
    traffic: Traffic,
    limits: Vec<ShownLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsStatus>,
    /// Names that several backends have.
    collisions: Vec<String>,
    /// Names in the configuration that nothing has.
    warnings: Vec<String>,
    /// Messages that wait for a person.
    held: usize,
    /// How many grants count that end by themselves.
    grants: usize,
    /// For whom the glass is broken, and until when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    break_glass: Vec<BrokenGlass>,
    /// How many rules are in force.
    rules: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<TapeStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<AuditStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<BaselineStatus>,
}

/// Somebody may use everything but what is switched off.
#[derive(Serialize)]
struct BrokenGlass {
    to: String,
    until: String,
    by: String,
    because: String,
}

impl BrokenGlass {
    fn of(grant: &SetGrant) -> Self {
        let until = timestamp::rfc3339_millis(grant.until);
        Self { to: grant.to.clone(), until, by: grant.by.clone(), because: grant.because.clone() }
    }
}

/// What became of the calls that are compared with a recorded tape.
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

/// How recording goes.
#[derive(Serialize)]
struct TapeStatus {
    tape: String,
    entries: u64,
    gaps: u64,
    queue: u64,
    sampled_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    anchors: Option<AnchorStatus>,
    /// Why nothing can be written now.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

/// How signed heads of the tape reach the places that keep them.
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

/// Which process speaks on a control socket.
pub struct ProcessInfo {
    /// The command that it runs.
    pub command: &'static str,
    /// Where clients connect.
    pub url: Option<String>,
    /// The TLS of its front, if it speaks that.
    pub tls: Option<Arc<FrontTls>>,
}

/// What a process tells about itself.
pub struct Overview {
    reloader: Arc<Reloader>,
    place: ProcessInfo,
    recent: Arc<Recent>,
}

impl Overview {
    /// Of this process. Needs a runtime, on which the traffic of the last minute is followed.
    #[must_use]
    pub fn new(reloader: &Arc<Reloader>, place: ProcessInfo) -> Self {
        Self { reloader: Arc::clone(reloader), recent: Recent::follow(reloader.metrics()), place }
    }

    /// The command that it runs.
    #[must_use]
    pub fn command(&self) -> &'static str {
        self.place.command
    }

    /// Everything, as JSON.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn json(&self) -> serde_json::Result<String> {
        let (reloader, place) = (&self.reloader, &self.place);
        let process = Process::new(place.command, place.url.clone(), &reloader.current(), reloader.report());
        reloader.gateway().settle();
        let status = reloader.gateway().status();
        let grants = reloader.app().govern.grants.counting().0;
        let catalog = Arc::clone(&reloader.gateway().catalog.snapshot());
        let whole = Whole {
            process: &process,
            limits: process.bounds.used(&status),
            status,
            traffic: self.recent.traffic(),
            tls: place.tls.as_ref().map(|tls| tls.status()),
            collisions: name_check::collisions(&catalog),
            warnings: name_check::unknown_names(&reloader.current(), &catalog),
            held: reloader.gateway().holds.list().len(),
            grants: grants.len(),
            break_glass: grants.iter().filter(|grant| grant.break_glass).map(BrokenGlass::of).collect(),
            rules: reloader.app().rules.set().len(),
            recording: reloader.app().recording.as_deref().map(TapeStatus::of),
            audit: reloader.app().audit.as_ref().map(|audit| AuditStatus::of(audit.stats())),
            baseline: reloader.app().baseline.as_deref().map(BaselineStatus::of),
        };
        serde_json::to_string(&whole)
    }
}
