//! The state of a process, as it tells it on its control socket and as `signalbox status` shows it.

use crate::assemble::App;
use crate::config::{BackendConfig, Config, TrustLevel};
use crate::control::{self, Route};
use crate::table;
use serde::Serialize;
use serde_json::{Value, json};
use signalbox_runtime::Gateway;
use signalbox_runtime::status::Status;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

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
    /// What the configuration says about each backend, by its name.
    pub labels: BTreeMap<String, Labels>,
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
    pub fn new(command: &'static str, url: Option<String>, config: &Config) -> Self {
        let label = |backend: &BackendConfig| {
            let labels = Labels { category: backend.category.clone(), trust_level: backend.trust_level };
            (backend.name.clone(), labels)
        };
        Self {
            command,
            url,
            config: config.source.clone(),
            data_dir: config.data_dir.clone(),
            labels: config.backends.iter().filter(|backend| !backend.disabled).map(label).collect(),
        }
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    process: &'a Process,
    #[serde(flatten)]
    status: Status,
}

/// The routes of the control socket.
#[must_use]
pub fn route(app: &App, process: Process) -> Route {
    let gateway: Arc<Gateway> = Arc::clone(&app.gateway);
    Arc::new(move |path| match path {
        control::STATUS => serde_json::to_string(&Whole { process: &process, status: gateway.status() }).ok(),
        control::VERSION => Some(json!({"name": "signalbox", "version": env!("CARGO_PKG_VERSION")}).to_string()),
        _ => None,
    })
}

const HEADINGS: [&str; 13] = [
    "BACKEND",
    "CATEGORY",
    "TRUST",
    "TRANSPORT",
    "STATE",
    "REVISION",
    "ERA",
    "TOOLS",
    "PROMPTS",
    "RESOURCES",
    "RESTARTS",
    "IN FLIGHT",
    "LAST ERROR",
];

/// One process for people: a line about it and a table of its backends.
#[must_use]
pub fn show(status: &Value) -> String {
    let word = |key: &str| table::harmless(status[key].as_str().unwrap_or("-"));
    let mut text = format!("{} (pid {}, version {})", word("command"), status["pid"], word("version"));
    // Writing to a string cannot fail.
    if status["url"].is_string() {
        let _ = write!(text, " at {}", word("url"));
    }
    let _ = writeln!(
        text,
        ", up {}, sessions: {}, in flight: {}",
        duration(status["uptime_seconds"].as_u64().unwrap_or(0)),
        status["sessions"],
        status["in_flight"]
    );
    let backends = status["backends"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = backends.iter().map(|backend| row(backend, &status["labels"])).collect();
    text.push_str(&table::render(&HEADINGS, &rows));
    for backend in backends.iter().filter(|backend| backend["bridged_clients"].is_string()) {
        bridged(&mut text, backend);
    }
    for backend in backends {
        failing(&mut text, backend);
    }
    text
}

/// What a backend that fails is put through.
fn failing(text: &mut String, backend: &Value) {
    let name = table::harmless(backend["name"].as_str().unwrap_or("-"));
    let breaker = &backend["breaker"];
    let again = breaker["retry_in_ms"].as_u64().map(|millis| format!("tried again in {} s", millis.div_ceil(1000)));
    let again = again.unwrap_or_else(|| "tried by single calls".to_owned());
    if matches!(breaker["state"].as_str(), Some("open" | "half open")) {
        let refused = &breaker["refused"];
        let _ =
            writeln!(text, "\n{name} fails again and again: its breaker is open, {again}; calls refused: {refused}");
    }
}

/// What the bridge between revisions does for a backend, and what it cannot do.
fn bridged(text: &mut String, backend: &Value) {
    let word = |value: &Value| table::harmless(value.as_str().unwrap_or("-"));
    let list = |key: &str| -> Vec<String> { backend[key].as_array().into_iter().flatten().map(word).collect() };
    let era = if backend["eras"][0] == "new" { "new" } else { "old" };
    let _ = writeln!(
        text,
        "\n{} speaks the {era} era only; clients of {} reach it over the bridge",
        word(&backend["name"]),
        word(&backend["bridged_clients"])
    );
    let _ = writeln!(text, "  carried  {}", list("bridged").join(", "));
    for what in list("lost") {
        let _ = writeln!(text, "  lost     {what}");
    }
}

fn row(backend: &Value, labels: &Value) -> Vec<String> {
    let cell = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let lists = &backend["lists"];
    let labels = &labels[backend["name"].as_str().unwrap_or_default()];
    let eras: Vec<&str> = backend["eras"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let era = match &eras[..] {
        [] => Value::Null,
        eras => json!(eras.join(" and ")),
    };
    [
        &backend["name"],
        &labels["category"],
        &labels["trust_level"],
        &backend["transport"],
        &backend["state"],
        &backend["revision"],
        &era,
        &lists["tools"],
        &lists["prompts"],
        &lists["resources"],
        &backend["restarts"],
        &backend["in_flight"],
        &backend["last_error"],
    ]
    .map(cell)
    .to_vec()
}

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

    #[test]
    fn a_process_is_a_line_and_a_table() {
        let status = json!({
            "command": "serve", "url": "http://127.0.0.1:1/mcp", "pid": 7, "version": "0.1.0", "uptime_seconds": 4000,
            "sessions": 2, "in_flight": 0, "labels": {"a": {"category": "files", "trust_level": "verified"}},
            "backends": [
                {"name": "a", "transport": "stdio", "state": "up", "revision": "2025-11-25", "eras": ["old"], "lists": {"tools": 3},
                 "restarts": 0, "in_flight": 1, "last_error": null, "bridged_clients": "2026-07-28",
                 "bridged": ["sessions", "tasks"], "lost": ["this: for a reason"]},
                {"name": "b", "transport": "http", "state": "down", "revision": null, "lists": {}, "restarts": 2,
                 "in_flight": 0, "last_error": "it \u{1b}[1m ended",
                 "breaker": {"state": "open", "retry_in_ms": 1200, "refused": 3}},
            ],
        });
        assert_eq!(
            show(&status),
            "serve (pid 7, version 0.1.0) at http://127.0.0.1:1/mcp, up 1 h 6 min, sessions: 2, in flight: 0\n\
             BACKEND  CATEGORY  TRUST     TRANSPORT  STATE  REVISION    ERA  TOOLS  PROMPTS  RESOURCES  RESTARTS  IN FLIGHT  LAST ERROR\n\
             a        files     verified  stdio      up     2025-11-25  old  3      -        -          0         1          -\n\
             b        -         -         http       down   -           -    -      -        -          2         0          it \\u{1b}[1m ended\n\
             \n\
             a speaks the old era only; clients of 2026-07-28 reach it over the bridge\n  \
             carried  sessions, tasks\n  lost     this: for a reason\n\
             \n\
             b fails again and again: its breaker is open, tried again in 2 s; calls refused: 3\n"
        );
    }
}
