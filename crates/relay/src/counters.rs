//! Metrics of the relay.

use crate::settings::MigrationPhase;
use crate::store::SessionCounts;
use std::sync::atomic::{AtomicU64, Ordering};

/// Families of clients by which uses of legacy routes are counted. The set is closed, so that clients cannot create
/// labels without bound.
pub const CLIENTS: [&str; 8] = ["browser", "curl", "python", "node", "go", "java", "signalbox", "other"];

/// Legacy routes by which uses are counted.
pub const ROUTES: [&str; 6] = ["sessions", "metadata", "request", "response", "stream", "tools"];

/// Counters of a relay.
#[derive(Debug, Default)]
pub struct RelayCounters {
    /// Uses of legacy routes, by route and family of client.
    legacy: [[AtomicU64; CLIENTS.len()]; ROUTES.len()],
    pub sessions: AtomicU64,
    /// Requests delivered to pages, including redeliveries.
    pub delivered: AtomicU64,
    /// Requests delivered to a page again.
    pub redelivered: AtomicU64,
    pub answered: AtomicU64,
    /// Duplicate answers, which are rejected.
    pub duplicate_answers: AtomicU64,
    /// Late, foreign and unknown answers, which are rejected.
    pub unknown_answers: AtomicU64,
    /// Calls whose outcome is unknown.
    pub unknown_outcomes: AtomicU64,
    /// Calls that timed out.
    pub timeouts: AtomicU64,
    /// Wrong codes: malformed ones, and those of no session.
    pub wrong_codes: AtomicU64,
    /// Requests refused by a rate limit.
    pub rate_limited: AtomicU64,
}

impl RelayCounters {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a use of a legacy route by a client of this family.
    pub fn used(&self, route: &str, family: &str) {
        let route = ROUTES.iter().position(|known| *known == route);
        let client = CLIENTS.iter().position(|known| *known == family).unwrap_or(CLIENTS.len() - 1);
        if let Some(route) = route {
            Self::add(&self.legacy[route][client]);
        }
    }

    /// Renders the metrics in the Prometheus text format, with the numbers of sessions.
    #[must_use]
    pub fn page(&self, phase: MigrationPhase, counts: SessionCounts) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        let mut gauge = |name: &str, help: &str, value: usize| {
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
        };
        gauge("signalbox_relay_sessions", "Relay sessions that are open.", counts.sessions);
        gauge("signalbox_relay_workers", "Relay sessions whose page is connected.", counts.connected);
        let mut counter = |name: &str, help: &str, value: &AtomicU64| {
            let value = value.load(Ordering::Relaxed);
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n");
        };
        counter("signalbox_relay_sessions_opened_total", "Relay sessions that were made.", &self.sessions);
        counter("signalbox_relay_delivered_total", "Requests that were sent to pages.", &self.delivered);
        counter("signalbox_relay_redelivered_total", "Requests that were sent to a page again.", &self.redelivered);
        counter("signalbox_relay_answers_total", "Answers of pages that were taken.", &self.answered);
        counter("signalbox_relay_duplicate_answers_total", "Second answers, refused.", &self.duplicate_answers);
        counter("signalbox_relay_unknown_answers_total", "Late and foreign answers, refused.", &self.unknown_answers);
        counter("signalbox_relay_unknown_outcomes_total", "Calls whose outcome is unknown.", &self.unknown_outcomes);
        counter("signalbox_relay_timeouts_total", "Calls that a page did not answer in time.", &self.timeouts);
        counter("signalbox_relay_wrong_codes_total", "Codes that were none.", &self.wrong_codes);
        counter("signalbox_relay_rate_limited_total", "Requests refused by a limit.", &self.rate_limited);
        let name = "signalbox_relay_legacy_requests_total";
        let _ = write!(out, "# HELP {name} Uses of the legacy routes.\n# TYPE {name} counter\n");
        for (route, clients) in ROUTES.iter().zip(&self.legacy) {
            for (client, count) in CLIENTS.iter().zip(clients) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let phase = phase.word();
                    let _ = writeln!(out, "{name}{{client=\"{client}\",phase=\"{phase}\",route=\"{route}\"}} {count}");
                }
            }
        }
        out
    }
}

/// Returns the family of a client by its `User-Agent`.
#[must_use]
pub fn family(user_agent: &str) -> &'static str {
    let agent = user_agent.to_ascii_lowercase();
    let of = |words: &[&str]| words.iter().any(|word| agent.contains(word));
    match () {
        () if of(&["signalbox"]) => "signalbox",
        () if of(&["mozilla", "chrome", "safari", "firefox"]) => "browser",
        () if of(&["curl", "wget", "httpie"]) => "curl",
        () if of(&["python", "aiohttp", "httpx"]) => "python",
        () if of(&["node", "undici", "axios", "deno", "bun"]) => "node",
        () if of(&["go-http"]) => "go",
        () if of(&["java", "okhttp", "kotlin"]) => "java",
        () => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves C-19.
    #[test]
    fn the_use_of_legacy_routes_is_counted_by_a_closed_set_of_clients() {
        let counts = RelayCounters::default();
        counts.used("request", family("curl/8.1"));
        counts.used("request", family("curl/8.2"));
        counts.used("stream", family("Mozilla/5.0 (X11)"));
        counts.used("stream", family("evil\"} 1\n"));
        let page = counts.page(MigrationPhase::Deprecated, SessionCounts { sessions: 2, connected: 1 });
        for line in [
            "signalbox_relay_sessions 2",
            r#"signalbox_relay_legacy_requests_total{client="curl",phase="deprecated",route="request"} 2"#,
            r#"signalbox_relay_legacy_requests_total{client="browser",phase="deprecated",route="stream"} 1"#,
            r#"signalbox_relay_legacy_requests_total{client="other",phase="deprecated",route="stream"} 1"#,
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
        assert!(!page.contains("evil"));
    }
}
