//! `/metrics`: all counters in the Prometheus text format.
//!
//! Every label comes from a closed set: methods of MCP, configured backends, tools that they list, outcomes and reasons
//! of this program.

mod calls;
mod page;
mod visible_names;

use page::{Family, Page, seconds_of};
use signalbox_assembly::assemble::App;
use signalbox_assembly::grants::SetGrants;
use signalbox_assembly::process_memory::resident;
use signalbox_assembly::recording::AnchorStats;
use signalbox_audit::AuditStats;
use signalbox_engine::histogram::BOUNDS_US;
use signalbox_engine::metrics::{Series, SeriesKey};
use signalbox_replay::BaselineStats;
use signalbox_rules::Overflows;
use signalbox_runtime::AddressStatus;
use signalbox_runtime::Gateway;
use signalbox_runtime::status::{BackendStatus, Status};
use signalbox_tape::recorder::RecorderStats;
use signalbox_transport::http_back::BACKEND_PLACES;
use std::sync::atomic::{AtomicU64, Ordering};
pub use visible_names::VisibleNames;

/// Content type of the page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders the current page for a reader that may know these names.
#[must_use]
pub fn render(app: &App, names: VisibleNames) -> String {
    app.gateway.settle();
    let mut page = Page::new(names);
    let status = app.gateway.status();
    process(&mut page, &app.gateway, &status);
    backends(&mut page, &status.backends);
    memory(&mut page, &status.backends);
    requests(&mut page, &app.metrics.read());
    calls::tools(&mut page, app, &status.backends);
    calls::operations(&mut page, app);
    rules(&mut page, &app.gateway, app.rules.overflows());
    granted(&mut page, &app.govern.grants.counting());
    if let Some(recording) = &app.recording {
        tape(&mut page, &recording.stats());
        if let Some(stats) = recording.anchored() {
            anchored(&mut page, &stats);
        }
    }
    if let Some(audit) = &app.audit {
        audited(&mut page, &audit.stats());
    }
    if let Some(baseline) = &app.baseline {
        compared(&mut page, baseline.stats());
    }
    page.into_text()
}

/// Adds the metrics of the audit log.
fn audited(page: &mut Page, stats: &AuditStats) {
    page.family("signalbox_audit_lost_total", "counter", "What could not be written to the audit log.")
        .sample(&[], stats.lost);
    let mut waiting = page.family("signalbox_audit_waiting", "gauge", "Records that wait for a sink of the audit log.");
    for sink in &stats.sinks {
        waiting.sample(&[("sink", &sink.name)], stats.written.saturating_sub(sink.acked));
    }
    let mut failed = page.family("signalbox_audit_failures_total", "counter", "Tries of a sink that failed.");
    for sink in &stats.sinks {
        failed.sample(&[("sink", &sink.name)], sink.failed);
    }
    let mut skipped =
        page.family("signalbox_audit_skipped_total", "counter", "Records in whose place a sink got a signed gap.");
    for sink in &stats.sinks {
        skipped.sample(&[("sink", &sink.name)], sink.skipped);
    }
}

/// Adds the metrics of grants.
fn granted(page: &mut Page, grants: &SetGrants) {
    let glass = grants.0.iter().filter(|grant| grant.break_glass).count();
    page.family("signalbox_grants", "gauge", "Grants that count and end by themselves.")
        .sample(&[], grants.0.len() as u64);
    page.family("signalbox_break_glass", "gauge", "Callers who may use everything but what is switched off.")
        .sample(&[], glass as u64);
}

/// Adds the counters of rules, and the outcomes of held messages.
fn rules(page: &mut Page, gateway: &Gateway, beyond: Overflows) {
    let mut counted =
        page.family("signalbox_rule_counts_total", "counter", "What rules counted, by the name they gave.");
    for (name, count) in gateway.counters.all_counted() {
        counted.sample(&[("name", &name)], count);
    }
    let mut overflows =
        page.family("signalbox_rules_overflows_total", "counter", "What rules dropped at a limit, by kind.");
    overflows.sample(&[("of", "limiter_keys")], beyond.limiter_keys);
    overflows.sample(&[("of", "cache_entries")], beyond.cache_entries);
    overflows.sample(&[("of", "remembered")], beyond.remembered);
    page.family("signalbox_held_messages", "gauge", "Messages that wait for a person.")
        .sample(&[], gateway.holds.list().len() as u64);
    let mut settled = page.family("signalbox_holds_total", "counter", "Held messages that were settled, by how.");
    for (how, count) in gateway.holds.settled() {
        settled.sample(&[("how", how)], count);
    }
    page.family("signalbox_webhooks_failed_total", "counter", "Webhook calls that failed.")
        .sample(&[], gateway.webhooks.failed());
}

fn tape(page: &mut Page, stats: &RecorderStats) {
    page.family("signalbox_tape_entries_total", "counter", "Entries written to the tape.").sample(&[], stats.entries);
    page.family("signalbox_tape_bytes_total", "counter", "Bytes of messages written to the tape.")
        .sample(&[], stats.bytes);
    let mut gaps = page.family("signalbox_tape_gaps_total", "counter", "Facts missing from the tape, by reason.");
    for (reason, count) in stats.gaps {
        gaps.sample(&[("reason", reason.word())], count);
    }
    page.family("signalbox_tape_sampled_out_total", "counter", "Facts that sampling and filters left out.")
        .sample(&[], stats.sampled_out);
    page.family("signalbox_tape_orphans_total", "counter", "Exchanges whose end was not seen.")
        .sample(&[], stats.orphans);
    page.family("signalbox_tape_store_errors_total", "counter", "How often the store could not write.")
        .sample(&[], stats.store_errors);
    // Facts wait in memory while the store fails, and count as gaps only once they are lost.
    page.family("signalbox_tape_failing", "gauge", "1 while the tape cannot be written, otherwise 0.")
        .sample(&[], u64::from(stats.failing.is_some()));
    page.family("signalbox_tape_queue", "gauge", "Facts that wait to be written.").sample(&[], stats.queue_depth);
    page.family("signalbox_tape_unindexed", "gauge", "Entries of the tape that the index for text search lacks.")
        .sample(&[], stats.unindexed);
}

fn anchored(page: &mut Page, stats: &AnchorStats) {
    let mut heads = page.family(
        "signalbox_anchors_total",
        "counter",
        "Signed heads of the tape that were anchored, by what became of it.",
    );
    for (outcome, count) in [("kept", stats.kept), ("failed", stats.failed), ("dropped", stats.dropped)] {
        heads.sample(&[("outcome", outcome)], count);
    }
}

fn compared(page: &mut Page, stats: BaselineStats) {
    let mut calls = page.family("signalbox_baseline_calls_total", "counter", "Calls held against `record.baseline`.");
    for (verdict, count) in stats.each() {
        calls.sample(&[("verdict", verdict)], count);
    }
}

fn process(page: &mut Page, gateway: &Gateway, status: &Status) {
    let counters = &gateway.counters;
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    page.family("signalbox_info", "gauge", "The program that runs.").sample(&[("version", status.version)], 1);
    page.family("signalbox_uptime_seconds", "gauge", "Time since the start.").sample(&[], status.uptime_seconds);
    page.family("signalbox_requests_in_flight", "gauge", "Requests of clients that wait for an answer.")
        .sample(&[], status.in_flight.max(0).unsigned_abs());
    page.family("signalbox_parked_calls", "gauge", "Calls that wait for input from their clients.")
        .sample(&[], status.parked as u64);
    page.family("signalbox_parked_bytes", "gauge", "Bytes of calls that wait for input from their clients.")
        .sample(&[], status.parked_bytes as u64);
    page.family("signalbox_message_bytes", "gauge", "Bytes of the large messages that are held, of `gateway.memory`.")
        .sample(&[], status.message_bytes as u64);
    page.family("signalbox_message_budget_bytes", "gauge", "The most bytes of large messages that may be held.")
        .sample(&[], status.message_budget as u64);
    page.family("signalbox_tasks", "gauge", "Tasks that run in this process.").sample(&[], status.tasks as u64);
    page.family("signalbox_sessions", "gauge", "Sessions open now.").sample(&[], status.sessions as u64);
    page.family("signalbox_sessions_opened_total", "counter", "Sessions ever opened.")
        .sample(&[], status.sessions_opened);
    page.family("signalbox_sessions_refused_total", "counter", "Sessions refused because the limit was reached.")
        .sample(&[], read(&counters.sessions_refused));
    page.family("signalbox_event_streams", "gauge", "Event streams open now.").sample(&[], status.streams as u64);
    page.family("signalbox_connections", "gauge", "Connections of clients open now.")
        .sample(&[], status.connections.max(0).unsigned_abs());
    page.family("signalbox_connections_refused_total", "counter", "Connections refused because the limit was reached.")
        .sample(&[], read(&counters.connections_refused));
    let refused = "Calls that got no connection to an HTTP backend because their caller or all callers had too many.";
    page.family("signalbox_backend_connections_refused_total", "counter", refused)
        .sample(&[], BACKEND_PLACES.refused());
    page.family("signalbox_malformed_total", "counter", "Messages from clients that could not be read.")
        .sample(&[], read(&counters.malformed));
    page.family("signalbox_config_generation", "gauge", "The number of the current configuration, 1 at the start.")
        .sample(&[], read(&counters.config_generation));
    page.family(
        "signalbox_config_outdated",
        "gauge",
        "1 while an older configuration runs: the last reload was refused, or keys in it need a restart.",
    )
    .sample(&[], u64::from(counters.config_outdated.load(Ordering::Relaxed)));
    let mut reloads = page.family("signalbox_config_reloads_total", "counter", "Reloads of the configuration.");
    reloads.sample(&[("outcome", "ok")], read(&counters.reloads));
    reloads.sample(&[("outcome", "refused")], read(&counters.reloads_refused));
    page.family("signalbox_tls_handshakes", "gauge", "TLS handshakes of clients under way.")
        .sample(&[], counters.handshakes.load(Ordering::Relaxed).max(0).unsigned_abs());
    page.family("signalbox_tls_handshakes_total", "counter", "TLS handshakes of clients that succeeded.")
        .sample(&[], read(&counters.handshakes_done));
    let mut failed =
        page.family("signalbox_tls_handshakes_failed_total", "counter", "TLS handshakes that failed, by reason.");
    for (reason, count) in &counters.failed_handshakes() {
        failed.sample(&[("reason", reason)], *count);
    }
    page.family("signalbox_signatures_verified_total", "counter", "Signatures of requests that were verified.")
        .sample(&[], read(&counters.signatures_verified));
    let mut unsigned = page.family(
        "signalbox_signatures_refused_total",
        "counter",
        "Requests refused for their signature, or for want of one, by reason.",
    );
    for (reason, count) in &status.refused_signatures {
        unsigned.sample(&[("reason", reason)], *count);
    }
    let mut refused = page.family("signalbox_refused_total", "counter", "What was refused at a limit, by limit.");
    for (limit, count) in &status.refused {
        refused.sample(&[("limit", limit)], *count);
    }
    let mut dropped = page.family("signalbox_dropped_total", "counter", "Messages that were dropped, by reason.");
    for (reason, count) in &status.dropped {
        dropped.sample(&[("reason", reason)], *count);
    }
}

fn backends(page: &mut Page, backends: &[BackendStatus]) {
    let mut gauge = |name: &str, kind: &'static str, help: &str, value: fn(&BackendStatus) -> u64| {
        let mut family = page.family(name, kind, help);
        for backend in backends {
            family.sample(&[("backend", &backend.name)], value(backend));
        }
    };
    gauge("signalbox_backend_up", "gauge", "1 while the backend serves.", |one| u64::from(one.state == "up"));
    let asleep = "1 while it is opened at its next use: its process is stopped, or it waits for its first caller.";
    gauge("signalbox_backend_asleep", "gauge", asleep, |one| {
        u64::from(one.state == "asleep" || one.state == "waiting")
    });
    gauge("signalbox_backend_connections", "gauge", "Connections to the backend.", |one| one.connections as u64);
    gauge("signalbox_backend_in_flight", "gauge", "Requests the backend works on.", |one| one.in_flight as u64);
    gauge("signalbox_backend_waiting", "gauge", "Calls that wait for it to start.", |one| one.waiting as u64);
    gauge("signalbox_backend_restarts_total", "counter", "How often it was restarted.", |one| one.restarts);
    gauge(
        "signalbox_backend_breaker_open",
        "gauge",
        "1 while calls are kept from the backend because it fails.",
        |one| u64::from(one.breaker.as_ref().is_some_and(|breaker| breaker.state != "closed")),
    );
    let callers = "Callers whose calls are kept from the backend because their own ones fail.";
    gauge("signalbox_backend_breaker_callers", "gauge", callers, |one| {
        one.breaker.as_ref().map_or(0, |breaker| breaker.callers as u64)
    });
    gauge("signalbox_backend_breaker_opened_total", "counter", "How often its breaker has opened.", |one| {
        one.breaker.as_ref().map_or(0, |breaker| breaker.opened)
    });
    gauge("signalbox_backend_breaker_refused_total", "counter", "Calls that its breaker refused.", |one| {
        one.breaker.as_ref().map_or(0, |breaker| breaker.refused)
    });
    gauge("signalbox_backend_well", "gauge", "0 while pings to the backend stay unanswered.", |one| {
        u64::from(one.health.as_ref().is_none_or(|health| health.state != "unwell"))
    });
    gauge("signalbox_backend_pings_failed_total", "counter", "Pings that the backend did not answer.", |one| {
        one.health.as_ref().map_or(0, |health| health.failed)
    });
    gauge("signalbox_backend_failed", "gauge", "1 while it is not restarted because it failed too often.", |one| {
        u64::from(one.state == "failed")
    });
    gauge("signalbox_backend_queue_refused_total", "counter", "Calls refused since too many waited.", |one| {
        one.queue_refused
    });
    gauge("signalbox_backend_retries_total", "counter", "Retried requests that certainly were not processed.", |one| {
        one.retries
    });
    addresses(page, backends);
    let mut dropped = page.family(
        "signalbox_backend_dropped_total",
        "counter",
        "What was dropped or refused on the way to the backend and from it, by reason.",
    );
    for backend in backends {
        for (reason, count) in &backend.dropped {
            dropped.sample(&[("backend", &backend.name), ("reason", reason)], *count);
        }
    }
    let mut strays = page.family(
        "signalbox_backend_strays_total",
        "counter",
        "Messages from the backend that matched nothing, by kind.",
    );
    for backend in backends {
        for (kind, count) in &backend.strays {
            strays.sample(&[("backend", &backend.name), ("kind", kind)], *count);
        }
    }
}

/// Adds the memory of backends' processes, which is read only when the page is requested.
fn memory(page: &mut Page, backends: &[BackendStatus]) {
    let mut family = page.family(
        "signalbox_backend_memory_bytes",
        "gauge",
        "Resident memory of the backend's processes and of all that they have started.",
    );
    for backend in backends {
        if let Some(bytes) = resident(&backend.pids) {
            family.sample(&[("backend", &backend.name)], bytes);
        }
    }
}

fn addresses(page: &mut Page, backends: &[BackendStatus]) {
    let mut each = |name: &str, kind: &'static str, help: &str, value: fn(&AddressStatus) -> u64| {
        let mut family = page.family(name, kind, help);
        for (backend, one) in
            backends.iter().flat_map(|backend| backend.addresses.iter().map(move |one| (backend, one)))
        {
            family.sample(&[("backend", &backend.name), ("address", &one.address)], value(one));
        }
    };
    each("signalbox_address_well", "gauge", "0 while the address is skipped because it fails.", |one| {
        u64::from(one.breaker == "closed")
    });
    each("signalbox_address_busy", "gauge", "Requests or connections under way at the address.", |one| one.busy as u64);
    each("signalbox_address_sent_total", "counter", "Requests or connections sent to it.", |one| one.sent);
    each("signalbox_address_failed_total", "counter", "Requests or connections that failed there.", |one| one.failed);
}

fn requests(page: &mut Page, all: &[(SeriesKey, Series)]) {
    let mut total = page.family("signalbox_requests_total", "counter", "Ended requests, by how they ended.");
    for ((method, backend), series) in all {
        for (outcome, count) in &series.outcomes {
            total.sample(&[("method", method), ("backend", backend), ("outcome", outcome)], *count);
        }
    }
    let mut bytes = page.family("signalbox_request_bytes_total", "counter", "Bytes of requests, as clients sent them.");
    for ((method, backend), series) in all {
        bytes.sample(&[("method", method), ("backend", backend)], series.bytes_in);
    }
    let mut bytes = page.family("signalbox_response_bytes_total", "counter", "Bytes of answers, as clients got them.");
    for ((method, backend), series) in all {
        bytes.sample(&[("method", method), ("backend", backend)], series.bytes_out);
    }
    let mut seconds =
        page.family("signalbox_request_duration_seconds", "histogram", "Time from a request to its answer.");
    for ((method, backend), series) in all {
        let bucket = |below: u64, bound: &str, family: &mut Family<'_>| {
            family.part("_bucket", &[("method", method), ("backend", backend), ("le", bound)], &below.to_string());
        };
        for bound in BOUNDS_US {
            bucket(series.took.below(bound), &seconds_of(bound), &mut seconds);
        }
        let count = series.took.count();
        bucket(count, "+Inf", &mut seconds);
        let labels = [("method", *method), ("backend", backend)];
        seconds.part("_sum", &labels, &seconds_of(series.total_us));
        seconds.part("_count", &labels, &count.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::histogram::Histogram;
    use std::time::Duration;

    #[test]
    fn microseconds_become_seconds() {
        for (us, seconds) in [(0, "0"), (100, "0.0001"), (2_500, "0.0025"), (1_000_000, "1"), (61_500_000, "61.5")] {
            assert_eq!(seconds_of(us), seconds);
        }
    }

    #[test]
    fn a_histogram_is_cumulative() {
        let took = Histogram::default();
        for us in [100, 300, 511] {
            took.add(Duration::from_micros(us));
        }
        let took = took.read();
        let series = Series { outcomes: vec![("success", 3)], took, total_us: 911, ..Series::default() };
        let mut page = Page::default();
        requests(&mut page, &[(("tools/call", "a\"b".into()), series)]);
        let text = page.into_text();
        for line in [
            r#"signalbox_requests_total{method="tools/call",backend="a\"b",outcome="success"} 3"#,
            r#"signalbox_request_duration_seconds_bucket{method="tools/call",backend="a\"b",le="0.000128"} 1"#,
            r#"signalbox_request_duration_seconds_bucket{method="tools/call",backend="a\"b",le="0.000256"} 1"#,
            r#"signalbox_request_duration_seconds_bucket{method="tools/call",backend="a\"b",le="0.000512"} 3"#,
            r#"signalbox_request_duration_seconds_bucket{method="tools/call",backend="a\"b",le="+Inf"} 3"#,
            r#"signalbox_request_duration_seconds_sum{method="tools/call",backend="a\"b"} 0.000911"#,
            r#"signalbox_request_duration_seconds_count{method="tools/call",backend="a\"b"} 3"#,
            "# TYPE signalbox_request_duration_seconds histogram",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }
}
