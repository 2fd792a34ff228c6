//! Formats the state of one process for display: properties, traffic, backends.

use super::columns::{Row, per_second, table};
use super::trouble;
use super::view::{BackendView, BaselineView, ProcessView, RecordingView, ReloadView, TlsView};
use crate::table::harmless;
use crate::terminal::{OutputStyle, Tone};
use serde_json::Value;
use std::collections::BTreeMap;

/// Formats the whole state.
#[must_use]
pub fn show(process: &ProcessView, style: OutputStyle) -> String {
    let mut text = format!("{} (pid {}, version {})", process.command, process.pid, process.version);
    if let Some(url) = &process.url {
        text.push_str(&format!(" at {url}"));
    }
    let mut text = format!("{}, up {}\n", harmless(&text), duration(process.uptime_seconds));
    for (label, words) in lines(process) {
        text.push_str(&format!("  {label:<9} {}\n", harmless(&words)));
    }
    for limit in process.limits.iter().filter(|limit| limit.is_near()) {
        let words = format!("{} of {} {} (set by {})", limit.used, limit.bound, limit.what, limit.set_by);
        text.push_str(&format!("  {:<9} {}\n", "limit", style.paint(Tone::Odd, &harmless(&words))));
    }
    if !process.backends.is_empty() {
        text.push('\n');
        text.push_str(&backends(process, style));
    }
    text
}

/// Returns the labelled lines about the process as a whole.
fn lines(process: &ProcessView) -> Vec<(&str, String)> {
    let mut lines = match &process.target {
        Some(target) => vec![("passes to", target.clone())],
        None => governed(process),
    };
    lines.push(("requests", requests(process)));
    if process.message_bytes > 0 {
        let mib = |bytes: u64| bytes.div_ceil(1024 * 1024);
        let (held, most) = (mib(process.message_bytes), mib(process.message_budget));
        lines.push(("messages", format!("{held} of {most} MiB held, `gateway.memory`")));
    }
    lines.extend(process.tls.iter().flat_map(secured));
    for (label, kinds) in
        [("dropped", &process.dropped), ("refused", &process.refused), ("bad seals", &process.refused_signatures)]
    {
        lines.extend(Some((label, counts(kinds))).filter(|(_, words)| !words.is_empty()));
    }
    if !process.interceptors.is_empty() {
        let held = if process.held > 0 { format!(", held: {}", process.held) } else { String::new() };
        lines.push(("chain", format!("{}, rules: {}{held}", process.interceptors.join(", "), process.rules)));
    }
    if process.grants > 0 {
        lines.push(("grants", format!("{} that end by themselves, `signalbox grant list`", process.grants)));
    }
    for glass in &process.break_glass {
        let words =
            format!("`{}` may use everything until {}, by {}: {}", glass.to, glass.until, glass.by, glass.because);
        lines.push(("ALARM", words));
    }
    if let Some(recording) = &process.recording {
        lines.push(("recording", recorded(recording)));
    }
    if let Some(audit) = &process.audit {
        lines.push(("audit", audit.line()));
    }
    if let Some(baseline) = &process.baseline {
        lines.push(("baseline", compared(baseline)));
    }
    lines.extend(process.collisions.iter().chain(&process.warnings).map(|warning| ("warning", warning.clone())));
    lines.extend(process.rest.iter().filter_map(|(name, value)| Some((name.as_str(), words(value)?))));
    lines
}

/// Returns the lines that only a gateway has: its configuration and its clients.
fn governed(process: &ProcessView) -> Vec<(&str, String)> {
    let mut config = process.config.clone().unwrap_or_else(|| "none, using defaults".to_owned());
    if let Some(reload) = &process.reload {
        config.push_str(&format!(", generation {}, loaded {}", reload.generation, reload.loaded_at));
    }
    let clients = format!(
        "sessions: {}, connections: {}, event streams: {}, in flight: {}, parked: {}, sessions ever opened: {}",
        process.sessions,
        process.connections,
        process.streams,
        process.in_flight,
        process.parked,
        process.sessions_opened
    );
    let mut lines = vec![("config", config), ("clients", clients)];
    if let Some((when, why)) = process.reload.as_ref().and_then(refused) {
        let partly = process.reload.as_ref().is_some_and(|reload| reload.partly);
        let what = if partly { "in part" } else { "refused" };
        let kept = if partly { "runs an older configuration" } else { "kept this configuration" };
        lines.insert(1, ("reload", format!("{what} {when}, {kept}: {why}")));
    }
    lines
}

fn requests(process: &ProcessView) -> String {
    let total = &process.traffic.total;
    let mut requests = format!("{}, errors: {}", total.calls, total.errors);
    if let Some(rate) = total.rate() {
        requests.push_str(&format!(", {}", per_second(rate)));
    }
    let quantiles = [
        ("p50", total.quantile(|one| one.p50_ms)),
        ("p95", total.quantile(|one| one.p95_ms)),
        ("p99", total.quantile(|one| one.p99_ms)),
    ];
    for (name, value) in quantiles {
        requests.extend(value.map(|value| format!(", {name} {value}")));
    }
    requests
}

fn recorded(recording: &RecordingView) -> String {
    let mut text = format!("tape {}, entries: {}", recording.tape, recording.entries);
    for (count, what) in
        [(recording.queue, "waiting"), (recording.gaps, "missing"), (recording.sampled_out, "left out")]
    {
        if count > 0 {
            text.push_str(&format!(", {what}: {count}"));
        }
    }
    if let Some(anchors) = &recording.anchors {
        text.push_str(&format!(", heads anchored: {}", anchors.kept));
        if anchors.dropped > 0 {
            text.push_str(&format!(", not anchored: {}", anchors.dropped));
        }
        if let Some(error) = &anchors.last_error {
            text.push_str(&format!(", NOT ANCHORED NOW: {error}"));
        }
    }
    match (&recording.failing, &recording.last_error) {
        (Some(why), _) => text.insert_str(0, &format!("NOTHING CAN BE RECORDED: {why}; ")),
        (None, Some(error)) => text.push_str(&format!(", last error: {error}")),
        (None, None) => {}
    }
    text
}

fn compared(baseline: &BaselineView) -> String {
    let BaselineView { tape, same, differs, unknown, dropped } = baseline;
    let mut text = format!("tape {tape}, same: {same}, differs: {differs}, unknown: {unknown}");
    if *dropped > 0 {
        text.push_str(&format!(", not compared: {dropped}"));
    }
    text
}

fn refused(reload: &ReloadView) -> Option<(&str, &str)> {
    Some((reload.last_error_at.as_deref().unwrap_or("-"), reload.last_error.as_deref()?))
}

/// Returns the certificates of the listener, and the reason why changed ones are not in use.
fn secured(tls: &TlsView) -> Vec<(&str, String)> {
    let mut lines = Vec::new();
    for one in &tls.certificates {
        let words = format!("{}, good until {}, client certificates: {}", one.file, one.not_after, tls.client_auth);
        lines.push(("tls", words));
        lines.extend(one.warning.iter().map(|warning| ("tls", format!("warning: {warning}"))));
    }
    lines.extend(tls.last_error.iter().map(|error| ("tls", format!("changed files are not in use: {error}"))));
    lines
}

fn backends(process: &ProcessView, style: OutputStyle) -> String {
    let rows: Vec<Row<'_>> = process
        .backends
        .iter()
        .map(|backend| Row {
            backend,
            figures: process.traffic.backends.get(&backend.name),
            labels: process.labels.get(&backend.name),
        })
        .collect();
    let mut text = table(&rows, style);
    if text.contains("s)") {
        text.push_str("(times in parentheses are since the start: nothing ended in the last minute)\n");
    }
    for backend in &process.backends {
        let details = details(backend);
        if !details.is_empty() {
            text.push_str(&format!("\n{}\n", harmless(&backend.name)));
        }
        for (label, words) in details {
            let label = format!("{label:<11}");
            let label = if label.starts_with("error") { style.paint(Tone::Bad, &label) } else { label };
            text.push_str(&format!("  {label} {}\n", harmless(&words)));
        }
    }
    text.push_str(&bridges(&process.backends));
    text
}

/// Describes the backends that speak one era only. Backends with the same restrictions share an entry.
fn bridges(backends: &[BackendView]) -> String {
    let mut groups: Vec<(&BackendView, Vec<&str>)> = Vec::new();
    for backend in backends.iter().filter(|backend| backend.bridged_clients.is_some()) {
        let alike = |other: &BackendView| {
            (&other.bridged_clients, &other.eras, &other.bridged, &other.lost)
                == (&backend.bridged_clients, &backend.eras, &backend.bridged, &backend.lost)
        };
        match groups.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, names)) => names.push(&backend.name),
            None => groups.push((backend, vec![&backend.name])),
        }
    }
    let mut text = String::new();
    for (backend, names) in groups {
        let era = if backend.eras.first().is_some_and(|era| era == "new") { "new" } else { "old" };
        let clients = backend.bridged_clients.as_deref().unwrap_or_default();
        let mut lines = vec![
            ("bridge", format!("{} (the {era} era only); clients of {clients} are bridged", names.join(", "))),
            ("carried", backend.bridged.join(", ")),
        ];
        lines.extend(backend.lost.iter().map(|what| ("lost", what.clone())));
        text.push('\n');
        for (label, words) in lines {
            text.push_str(&format!("  {label:<11} {}\n", harmless(&words)));
        }
    }
    text
}

/// Returns the details of a backend that have no column. Unknown fields become lines here.
fn details(backend: &BackendView) -> Vec<(String, String)> {
    let mut details = Vec::new();
    let mut add = |label: &str, words: Option<String>| details.extend(words.map(|words| (label.to_owned(), words)));
    let asleep = backend.state == "asleep";
    add("process", asleep.then(|| "stopped, starts at its next use; its lists are those last known".to_owned()));
    let waiting = backend.state == "waiting";
    add("connection", waiting.then(|| "callers have credentials of their own; the next one's opens it".to_owned()));
    add("error", backend.last_error.clone());
    backend.last_words.iter().for_each(|line| add("stderr", Some(line.clone())));
    add("dropped", Some(counts(&backend.dropped)).filter(|counts| !counts.is_empty()));
    add("strays", Some(counts(&backend.strays)).filter(|counts| !counts.is_empty()));
    add("stray line", backend.stray_line.clone());
    trouble::lines(backend).into_iter().for_each(|(label, words)| add(label, Some(words)));
    for (name, value) in &backend.rest {
        add(&name.replace('_', " "), words(value));
    }
    details
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(what, count)| format!("{what}: {count}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Formats a value for display. Returns `None` if it is empty.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Array(all) if all.is_empty() => None,
        Value::Object(all) if all.is_empty() => None,
        other => Some(other.to_string()),
    }
}

/// Formats seconds for display.
fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(status: Value, style: OutputStyle) -> String {
        show(&serde_json::from_value(status).unwrap(), style)
    }

    const PLAIN: OutputStyle = OutputStyle { width: None, colour: false };

    fn status() -> Value {
        json!({
            "command": "serve", "url": "http://127.0.0.1:1/mcp", "pid": 7, "version": "0.1.0", "uptime_seconds": 4000,
            "config": "signalbox.toml", "data_dir": "/d", "further": 3,
            "reload": {"generation": 3, "loaded_at": "T1", "reloads": 2, "refused": 1, "last_error": "line 3: no", "last_error_at": "T2"},
            "message_bytes": 1_500_000, "message_budget": 134_217_728,
            "sessions": 2, "in_flight": 0, "labels": {"a": {"category": "files", "trust_level": "verified"}},
            "dropped": {"progress": 4}, "refused": {"head_size": 2, "head_time": 0},
            "limits": [{"what": "sessions", "used": 90, "bound": 100, "set_by": "KEY"},
                       {"what": "connections", "used": 1, "bound": 100, "set_by": "KEY"}],
            "traffic": {
                "total": {"calls": 10, "errors": 1, "p50_ms": 1.5, "recent": {"per_second": 0.5, "p50_ms": 2.5}},
                "backends": {"a": {"calls": 9, "errors": 1, "p99_ms": 3.0, "recent": {"per_second": 12.0}}},
            },
            "backends": [
                {"name": "a", "transport": "stdio", "state": "up", "revision": "2025-11-25", "eras": ["old"],
                 "lists": {"tools": 3}, "restarts": 0, "in_flight": 1, "last_error": null,
                 "bridged_clients": "2026-07-28", "bridged": ["sessions", "tasks"], "lost": ["this: for a reason"]},
                {"name": "b", "transport": "http", "state": "down", "revision": null, "lists": {}, "restarts": 2,
                 "in_flight": 0, "last_error": "it \u{1b}[1m ended", "breaker": {"state": "open", "retry_in_ms": 1200, "refused": 3}, "strays": {"not_json": 2},
                 "stray_line": "hello"},
            ],
        })
    }

    #[test]
    fn a_process_is_a_few_lines_and_a_table() {
        assert_eq!(
            check(status(), PLAIN),
            "serve (pid 7, version 0.1.0) at http://127.0.0.1:1/mcp, up 1 h 6 min\n  \
             config    signalbox.toml, generation 3, loaded T1\n  \
             reload    refused T2, kept this configuration: line 3: no\n  \
             clients   sessions: 2, connections: 0, event streams: 0, in flight: 0, parked: 0, sessions ever opened: 0\n  \
             requests  10, errors: 1, 0.5/s, p50 2.5ms\n  \
             messages  2 of 128 MiB held, `gateway.memory`\n  \
             dropped   progress: 4\n  \
             refused   head_size: 2\n  \
             further   3\n  \
             limit     90 of 100 sessions (set by KEY)\n\
             \n\
             BACKEND  CATEGORY  TRUST     TRANSPORT  STATE  REVISION    ERA  TOOLS  RESTARTS  IN FLIGHT  CALLS  RATE  ERRORS  P99\n\
             a        files     verified  stdio      up     2025-11-25  old  3      0         1          9      12/s  1       (3.0ms)\n\
             b        -         -         http       down   -           -    -      2         0          -      -     -       -\n\
             (times in parentheses are since the start: nothing ended in the last minute)\n\
             \n\
             b\n  \
             error       it \\u{1b}[1m ended\n  \
             strays      not_json: 2\n  \
             stray line  hello\n  \
             breaker     open: the backend keeps failing, tried again in 2 s; calls refused: 3\n\
             \n  \
             bridge      a (the old era only); clients of 2026-07-28 are bridged\n  \
             carried     sessions, tasks\n  \
             lost        this: for a reason\n"
        );
    }

    /// Ten servers of the old era were 112 lines.
    #[test]
    fn backends_of_the_same_era_share_their_lines() {
        let backend = |number: u32| {
            json!({"name": format!("b{number}"), "state": "up", "eras": ["old"], "lists": {"tools": 1},
                   "bridged_clients": "2026-07-28", "bridged": ["sessions"], "lost": ["one", "two"]})
        };
        let backends: Vec<Value> = (0..10).map(backend).collect();
        let shown = check(json!({"command": "serve", "backends": backends}), PLAIN);
        assert!(shown.lines().count() < 25, "{shown}");
        assert!(shown.contains("b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 (the old era only)"), "{shown}");
    }

    #[test]
    fn what_is_wrong_with_certificates_is_shown() {
        let certificate =
            json!({"file": "/a\u{1b}.pem", "not_after": "2026-11-20 00:00:00 UTC", "warning": "renew it"});
        let tls = json!({"certificates": [certificate], "client_auth": "none", "last_error": "b.pem is not PEM"});
        let shown = check(json!({"command": "serve", "tls": tls}), PLAIN);
        let wanted = "  tls       /a\\u{1b}.pem, good until 2026-11-20 00:00:00 UTC, client certificates: none\n  \
                      tls       warning: renew it\n  \
                      tls       changed files are not in use: b.pem is not PEM\n";
        assert!(shown.contains(wanted), "{shown}");
    }

    #[test]
    fn calls_that_are_not_as_recorded_are_counted() {
        let baseline = json!({"tape": "a\u{1b}", "same": 7, "differs": 2, "unknown": 1, "dropped": 0});
        let shown = check(json!({"command": "serve", "baseline": baseline}), PLAIN);
        assert!(shown.contains("  baseline  tape a\\u{1b}, same: 7, differs: 2, unknown: 1\n"), "{shown}");
        let shown = check(json!({"command": "serve", "baseline": {"tape": "a", "dropped": 3}}), PLAIN);
        assert!(shown.contains("unknown: 0, not compared: 3\n"), "{shown}");
    }

    #[test]
    fn a_backend_that_is_asleep_is_not_in_trouble() {
        let backends = json!([{"name": "a", "state": "asleep", "lists": {"tools": 2}}]);
        let shown = check(json!({"command": "serve", "pid": 1, "backends": backends}), PLAIN);
        let wanted =
            "a        asleep  2\n\na\n  process     stopped, starts at its next use; its lists are those last known\n";
        assert!(shown.ends_with(wanted), "{shown}");
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        assert!(!check(status(), PLAIN).contains('\u{1b}'));
        let coloured = check(status(), OutputStyle { colour: true, ..PLAIN });
        assert!(
            coloured.contains("\u{1b}[32mup\u{1b}[0m") && coloured.contains("\u{1b}[31mdown\u{1b}[0m"),
            "{coloured}"
        );
    }

    #[test]
    fn a_process_of_another_version_is_shown_as_far_as_it_tells() {
        let shown = check(json!({"command": "serve", "pid": 1, "backends": [{"name": "a", "state": "up"}]}), PLAIN);
        assert!(shown.ends_with("BACKEND  STATE\na        up\n"), "{shown}");
    }
}
