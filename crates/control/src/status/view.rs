//! State of a process as the client parses it.
//!
//! Every field may be missing, because the process may be of another version. Unknown fields go to `rest` and are shown
//! under their names, so that no reported information is hidden.

use super::AuditStatus;
use super::trouble::{AddressView, BreakerView, HealthView};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// State of a process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProcessView {
    /// `serve`, `stdio`, `wrap` or `proxy`.
    pub command: String,
    pub pid: u64,
    pub version: String,
    /// Address at which clients connect.
    pub url: Option<String>,
    /// Server that bytes are forwarded to, for `wrap` and `proxy`.
    pub target: Option<String>,
    /// Path of the configuration file.
    pub config: Option<String>,
    /// Configuration in force, and the outcome of reloads.
    pub reload: Option<ReloadView>,
    /// Data folder. Not shown, because the client knows it.
    pub data_dir: Option<String>,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Number of open sessions.
    pub sessions: u64,
    /// Number of sessions opened since the start.
    pub sessions_opened: u64,
    /// Number of client connections.
    pub connections: i64,
    /// Number of open event streams.
    pub streams: u64,
    /// Number of requests in flight.
    pub in_flight: i64,
    /// Number of calls that wait for their clients.
    pub parked: u64,
    /// Number of dropped messages by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Number of requests refused before they were read, by limit.
    pub refused: BTreeMap<String, u64>,
    /// Number of messages refused because of their signature, by reason.
    pub refused_signatures: BTreeMap<String, u64>,
    /// Size of the parked calls in bytes. Not shown.
    pub parked_bytes: u64,
    /// Bytes of large messages that are held.
    pub message_bytes: u64,
    /// Maximum of `message_bytes`. 0 if it is not reported.
    pub message_budget: u64,
    /// Interceptors in order of execution.
    pub interceptors: Vec<String>,
    /// Certificates of the listener, if TLS is enabled.
    pub tls: Option<TlsView>,
    /// Operator's labels, by backend.
    pub labels: BTreeMap<String, LabelsView>,
    pub backends: Vec<BackendView>,
    /// Names that several backends have in common.
    pub collisions: Vec<String>,
    /// Names in the configuration that match nothing.
    pub warnings: Vec<String>,
    /// Number of messages that wait for a person.
    pub held: u64,
    /// Number of active grants.
    pub grants: u64,
    /// Break-glass grants that are active.
    pub break_glass: Vec<BrokenGlassView>,
    /// Number of rules in force.
    pub rules: u64,
    /// State of the recording, if enabled.
    pub recording: Option<RecordingView>,
    /// State of the audit log, if enabled.
    pub audit: Option<AuditStatus>,
    /// Comparison of calls with a recorded tape, if enabled.
    pub baseline: Option<BaselineView>,
    /// Traffic figures in total and by backend.
    pub traffic: TrafficView,
    /// Limits and their usage.
    pub limits: Vec<LimitView>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// State of the configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReloadView {
    /// Generation of the configuration, 1 at the start.
    pub generation: u64,
    /// Time at which it was loaded.
    pub loaded_at: String,
    /// Reason why the last reload was refused, or the keys that need a restart.
    pub last_error: Option<String>,
    /// True if everything but those keys is in force.
    pub partly: bool,
    /// Time of the last refused reload.
    pub last_error_at: Option<String>,
}

/// A break-glass grant: its holder may use everything that is not switched off.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BrokenGlassView {
    /// Principal that holds the grant.
    pub to: String,
    /// Expiry as a date.
    pub until: String,
    /// Person who set the grant.
    pub by: String,
    /// Reason for the grant.
    pub because: String,
}

/// State of the recording.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RecordingView {
    /// Id of the tape.
    pub tape: String,
    /// Number of entries so far.
    pub entries: u64,
    /// Number of missing facts.
    pub gaps: u64,
    /// Number of facts that wait to be written.
    pub queue: u64,
    /// Number of facts omitted by sampling and filters.
    pub sampled_out: u64,
    /// State of the anchoring of signed heads, if enabled.
    pub anchors: Option<AnchorView>,
    /// Reason why writing fails at present.
    pub failing: Option<String>,
    /// Reason of the store's last failure.
    pub last_error: Option<String>,
}

/// State of the delivery of signed heads to anchors.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AnchorView {
    /// Number of heads that an anchor has accepted.
    pub kept: u64,
    /// Number of heads that were given up.
    pub dropped: u64,
    /// Reason why an anchor accepts none at present.
    pub last_error: Option<String>,
}

/// Comparison of calls with a recorded tape.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BaselineView {
    /// Id of the recorded tape.
    pub tape: String,
    /// Number of calls answered as recorded.
    pub same: u64,
    /// Number of calls answered differently.
    pub differs: u64,
    /// Number of calls that are not on the tape.
    pub unknown: u64,
    /// Number of calls that were not compared.
    pub dropped: u64,
}

/// TLS of a listener.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TlsView {
    /// Certificates that are presented to clients.
    pub certificates: Vec<CertificateView>,
    /// Mode of client authentication by certificates.
    pub client_auth: String,
    /// Reason why changed files are not in use.
    pub last_error: Option<String>,
}

/// Certificate file, with the names and dates that it holds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CertificateView {
    /// Path of the file.
    pub file: String,
    /// Expiry as a date.
    pub not_after: String,
    /// Warning for the operator.
    pub warning: Option<String>,
}

/// Operator's labels of a backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LabelsView {
    /// Category of its tools.
    pub category: Option<String>,
    /// Trust level of its tools.
    pub trust_level: Option<String>,
}

/// State of a backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BackendView {
    pub name: String,
    /// Transport, such as `stdio` or `http`.
    pub transport: Option<String>,
    /// `starting`, `up`, `restarting`, `asleep`, `down` or `failed`.
    pub state: String,
    /// Protocol revision negotiated with the server.
    pub revision: Option<String>,
    /// Eras that the backend speaks.
    pub eras: Vec<String>,
    /// Clients that reach the backend through the bridge.
    pub bridged_clients: Option<String>,
    /// Features that the bridge carries.
    pub bridged: Vec<String>,
    /// Features that the bridge cannot carry.
    pub lost: Vec<String>,
    /// Name that the server reports. Shown by `doctor`.
    pub server: Option<String>,
    /// Number of tools, prompts and resources.
    pub lists: BTreeMap<String, u64>,
    pub connections: Option<u64>,
    /// Process ids of its children. Not shown.
    pub pids: Vec<u64>,
    /// Number of requests in flight.
    pub in_flight: Option<u64>,
    /// Number of queued calls.
    pub waiting: Option<u64>,
    /// Number of restarts since the start.
    pub restarts: Option<u64>,
    /// Number of messages to and from it that were dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Number of unmatched messages by kind.
    pub strays: BTreeMap<String, u64>,
    /// Last line on its standard output that is not a message.
    pub stray_line: Option<String>,
    /// State of its circuit breaker.
    pub breaker: Option<BreakerView>,
    /// Health according to pings.
    pub health: Option<HealthView>,
    /// Maximum number of queued calls.
    pub max_queue: Option<u64>,
    /// Number of calls refused because of a full queue.
    pub queue_refused: u64,
    /// Number of retried requests.
    pub retries: u64,
    /// State of each address, if there are several.
    pub addresses: Vec<AddressView>,
    /// Version that the server reports. Shown by `doctor`.
    pub server_version: Option<String>,
    /// Text of the last error.
    pub last_error: Option<String>,
    /// Last lines on its standard error, if it has ended.
    pub last_words: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Traffic figures in total and by backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TrafficView {
    /// Figures of all requests.
    pub total: FiguresView,
    /// Figures by backend name.
    pub backends: BTreeMap<String, FiguresView>,
}

/// Figures since the start, and of the last minute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct FiguresView {
    /// Number of finished requests.
    pub calls: u64,
    /// Number of failed requests.
    pub errors: u64,
    /// Median duration in milliseconds.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the duration.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the duration.
    pub p99_ms: Option<f64>,
    /// Requests per second between the last two samples.
    pub per_second_now: Option<f64>,
    /// Requests per second in the last minute. Set only within `recent`.
    pub per_second: Option<f64>,
    /// Figures of the last minute.
    pub recent: Option<Box<FiguresView>>,
}

impl FiguresView {
    /// Returns the requests per second between the last two samples, or else in the last minute.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.per_second_now.or_else(|| self.recent.as_ref()?.per_second)
    }

    /// Returns a quantile of the last minute, or, in parentheses, of the time since the start if the last minute has
    /// none.
    #[must_use]
    pub fn quantile(&self, which: fn(&Self) -> Option<f64>) -> Option<String> {
        let recent = self.recent.as_deref().and_then(which);
        recent.map(duration).or_else(|| which(self).map(|ms| format!("({})", duration(ms))))
    }
}

/// Formats milliseconds for display, with two or three digits.
fn duration(ms: f64) -> String {
    match ms {
        ..1.0 => format!("{ms:.2}ms"),
        ..10.0 => format!("{ms:.1}ms"),
        ..1_000.0 => format!("{ms:.0}ms"),
        ..60_000.0 => format!("{:.1}s", ms / 1_000.0),
        _ => format!("{:.1}min", ms / 60_000.0),
    }
}

/// A limit and its usage.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LimitView {
    /// Name of the limited resource.
    pub what: String,
    pub used: u64,
    pub bound: u64,
    /// Configuration key or system setting that changes the bound.
    pub set_by: String,
}

impl LimitView {
    /// Returns true from four fifths on. A bound of 1 or 2 is almost always nearly reached, so it never counts as near.
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
