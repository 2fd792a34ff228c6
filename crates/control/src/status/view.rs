//! The state of a process as the asking side reads it.
//!
//! Everything may be missing, since the process may be of another version. What has no field of its own here lands in
//! `rest` and is shown under its name, so that nothing a process tells is hidden.

use super::AuditStatus;
use super::trouble::{AddressView, BreakerView, HealthView};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProcessView {
    /// `serve`, `stdio`, `wrap` or `proxy`.
    pub command: String,
    /// Its number.
    pub pid: u64,
    /// Its version.
    pub version: String,
    /// Where clients connect.
    pub url: Option<String>,
    /// The server that it passes bytes on to, where it does only that.
    pub target: Option<String>,
    /// Its configuration file.
    pub config: Option<String>,
    /// Which configuration is in force, and what became of reloads.
    pub reload: Option<ReloadView>,
    /// Where it keeps state; known to whoever asks, so it is not shown.
    pub data_dir: Option<String>,
    /// Seconds since its start.
    pub uptime_seconds: u64,
    /// Sessions open now.
    pub sessions: u64,
    /// Sessions ever opened.
    pub sessions_opened: u64,
    /// Connections of clients.
    pub connections: i64,
    /// Event streams open now.
    pub streams: u64,
    /// Requests in flight.
    pub in_flight: i64,
    /// Calls that wait for their clients.
    pub parked: u64,
    /// What was dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// What was refused before it became a request, by limit.
    pub refused: BTreeMap<String, u64>,
    /// What was refused for its signature, by reason.
    pub refused_signatures: BTreeMap<String, u64>,
    /// Bytes of the parked calls; of use to programs only.
    pub parked_bytes: u64,
    /// Bytes of the large messages that are held.
    pub message_bytes: u64,
    /// How many there may be; 0 where it is not told.
    pub message_budget: u64,
    /// The interceptors, in order.
    pub interceptors: Vec<String>,
    /// The certificates that clients are shown, if it speaks TLS.
    pub tls: Option<TlsView>,
    /// How the operator has labelled each backend.
    pub labels: BTreeMap<String, LabelsView>,
    /// The backends.
    pub backends: Vec<BackendView>,
    /// Names that several backends have.
    pub collisions: Vec<String>,
    /// Names in the configuration that nothing has.
    pub warnings: Vec<String>,
    /// Messages that wait for a person.
    pub held: u64,
    /// How many grants count that end by themselves.
    pub grants: u64,
    /// For whom the glass is broken.
    pub break_glass: Vec<BrokenGlassView>,
    /// How many rules are in force.
    pub rules: u64,
    /// How recording goes, where it does.
    pub recording: Option<RecordingView>,
    /// How the audit log goes, where there is one.
    pub audit: Option<AuditStatus>,
    /// How calls compare with a recorded tape, where they are compared.
    pub baseline: Option<BaselineView>,
    /// What passes.
    pub traffic: TrafficView,
    /// The bounds.
    pub limits: Vec<LimitView>,
    /// What this version does not know.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// The configuration in force.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReloadView {
    /// Its number, 1 at the start.
    pub generation: u64,
    /// When it was loaded.
    pub loaded_at: String,
    /// The reason why the last reload was refused, or the keys that need a restart.
    pub last_error: Option<String>,
    /// True if all but those keys is in force.
    pub partly: bool,
    /// When that was.
    pub last_error_at: Option<String>,
}

/// Somebody may use everything but what is switched off.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BrokenGlassView {
    /// Who.
    pub to: String,
    /// Until when, as a date.
    pub until: String,
    /// Who allowed it.
    pub by: String,
    /// Why.
    pub because: String,
}

/// How recording goes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RecordingView {
    /// The tape.
    pub tape: String,
    /// Its entries so far.
    pub entries: u64,
    /// Facts that are missing.
    pub gaps: u64,
    /// Facts that wait to be written.
    pub queue: u64,
    /// Facts that sampling and filters left out.
    pub sampled_out: u64,
    /// How signed heads are anchored, where they are.
    pub anchors: Option<AnchorView>,
    /// Why nothing can be written now.
    pub failing: Option<String>,
    /// Why the store could not write, the last time it could not.
    pub last_error: Option<String>,
}

/// How signed heads of the tape reach the places that keep them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AnchorView {
    /// Heads that a place has taken.
    pub kept: u64,
    /// Heads that none will take.
    pub dropped: u64,
    /// Why a place takes none now.
    pub last_error: Option<String>,
}

/// How calls compare with a recorded tape.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BaselineView {
    /// The recorded tape.
    pub tape: String,
    /// Calls that were answered as recorded.
    pub same: u64,
    /// Calls that were answered otherwise.
    pub differs: u64,
    /// Calls that are not on it.
    pub unknown: u64,
    /// Calls that were not compared.
    pub dropped: u64,
}

/// The TLS of a front.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TlsView {
    /// What clients are shown.
    pub certificates: Vec<CertificateView>,
    /// Whether clients show certificates.
    pub client_auth: String,
    /// Why changed files are not in use.
    pub last_error: Option<String>,
}

/// A certificate.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CertificateView {
    /// Its file.
    pub file: String,
    /// Until when it is good.
    pub not_after: String,
    /// What its owner should know.
    pub warning: Option<String>,
}

/// The labels of a backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LabelsView {
    /// What kind of tools it has.
    pub category: Option<String>,
    /// How far its tools are trusted.
    pub trust_level: Option<String>,
}

/// A backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BackendView {
    /// Its name.
    pub name: String,
    /// `stdio`, `http`, …
    pub transport: Option<String>,
    /// `starting`, `up`, `restarting`, `asleep`, `down` or `failed`.
    pub state: String,
    /// The revision agreed with it.
    pub revision: Option<String>,
    /// Which eras it speaks.
    pub eras: Vec<String>,
    /// Which clients reach it over the bridge.
    pub bridged_clients: Option<String>,
    /// What the bridge carries.
    pub bridged: Vec<String>,
    /// What it cannot carry.
    pub lost: Vec<String>,
    /// What it calls itself; shown by `doctor`.
    pub server: Option<String>,
    /// How many tools, prompts, resources it lists.
    pub lists: BTreeMap<String, u64>,
    /// Connections to it.
    pub connections: Option<u64>,
    /// Their process numbers; of use to programs only.
    pub pids: Vec<u64>,
    /// Requests it works on.
    pub in_flight: Option<u64>,
    /// Calls that wait for it.
    pub waiting: Option<u64>,
    /// How often it was restarted.
    pub restarts: Option<u64>,
    /// What was dropped on the way to it and from it, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Messages of it that fitted nothing, by kind.
    pub strays: BTreeMap<String, u64>,
    /// The last line on its standard output that is not a message.
    pub stray_line: Option<String>,
    /// Whether calls are kept from it because it fails.
    pub breaker: Option<BreakerView>,
    /// What pings tell of it.
    pub health: Option<HealthView>,
    /// Most calls that may wait for it.
    pub max_queue: Option<u64>,
    /// Calls refused since so many waited.
    pub queue_refused: u64,
    /// How often something was sent again.
    pub retries: u64,
    /// Its addresses, where it has several.
    pub addresses: Vec<AddressView>,
    /// The version it gives itself; shown by `doctor`.
    pub server_version: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// What it wrote to its standard error last, where it has ended.
    pub last_words: Vec<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// What passes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TrafficView {
    /// Everything.
    pub total: FiguresView,
    /// By backend.
    pub backends: BTreeMap<String, FiguresView>,
}

/// Figures since the start, and of the last minute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct FiguresView {
    /// Ended requests.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// Half of them took no longer.
    pub p50_ms: Option<f64>,
    /// 95 of 100 took no longer.
    pub p95_ms: Option<f64>,
    /// 99 of 100 took no longer.
    pub p99_ms: Option<f64>,
    /// Requests per second between the last two looks.
    pub per_second_now: Option<f64>,
    /// Requests per second in the last minute; only in what `recent` holds.
    pub per_second: Option<f64>,
    /// The last minute.
    pub recent: Option<Box<FiguresView>>,
}

impl FiguresView {
    /// Requests per second: between two looks where there were two, else in the last minute.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.per_second_now.or_else(|| self.recent.as_ref()?.per_second)
    }

    /// A quantile of the last minute, or of all the time if nothing ended in it; that one stands in parentheses.
    #[must_use]
    pub fn quantile(&self, which: fn(&Self) -> Option<f64>) -> Option<String> {
        let recent = self.recent.as_deref().and_then(which);
        recent.map(duration).or_else(|| which(self).map(|ms| format!("({})", duration(ms))))
    }
}

/// Milliseconds for people, with two or three digits.
fn duration(ms: f64) -> String {
    match ms {
        ..1.0 => format!("{ms:.2}ms"),
        ..10.0 => format!("{ms:.1}ms"),
        ..1_000.0 => format!("{ms:.0}ms"),
        ..60_000.0 => format!("{:.1}s", ms / 1_000.0),
        _ => format!("{:.1}min", ms / 60_000.0),
    }
}

/// A bound.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LimitView {
    /// What is bounded.
    pub what: String,
    /// How much of it there is.
    pub used: u64,
    /// How much there may be.
    pub bound: u64,
    /// What moves the bound.
    pub set_by: String,
}

impl LimitView {
    /// True from four fifths on. A bound of one or two is for ever near, and says nothing.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.bound > 2 && self.used * 5 >= self.bound * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_or_three_digits() {
        let shown = [0.004, 0.42, 3.12, 42.4, 999.0, 1_234.0, 90_000.0].map(duration);
        assert_eq!(shown, ["0.00ms", "0.42ms", "3.1ms", "42ms", "999ms", "1.2s", "1.5min"]);
    }

    #[test]
    fn times_before_the_last_minute_stand_in_parentheses() {
        let recent = |p50_ms| Some(Box::new(FiguresView { p50_ms, ..FiguresView::default() }));
        let quiet = FiguresView { p50_ms: Some(7.0), recent: recent(None), ..FiguresView::default() };
        assert_eq!(quiet.quantile(|one| one.p50_ms).as_deref(), Some("(7.0ms)"));
        let busy = FiguresView { recent: recent(Some(9.0)), ..quiet };
        assert_eq!(busy.quantile(|one| one.p50_ms).as_deref(), Some("9.0ms"));
        assert_eq!(FiguresView::default().quantile(|one| one.p50_ms), None);
    }

    #[test]
    fn a_limit_is_near_from_four_fifths_on() {
        let near = |used, bound| LimitView { used, bound, ..LimitView::default() }.is_near();
        assert!(near(80, 100) && near(100, 100) && !near(79, 100) && !near(1, 1));
    }
}
