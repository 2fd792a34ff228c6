//! Starts backends by the connectors that the gateway uses, and tells how that went.

use super::finding::Finding;
use signalbox_assembly::assemble::{App, AssembleError, assemble};
use signalbox_config::{BackendConfig, Config};
use signalbox_engine::Principal;
use signalbox_oauth::page_host::PageHost;
use signalbox_runtime::Lifetime;
use signalbox_runtime::status::BackendStatus;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often the states are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long lists may take once a backend is up.
const LIST_WAIT: Duration = Duration::from_secs(15);
/// How long a backend may take beyond its own `start_timeout`: the question for its era comes before.
const GRACE: Duration = Duration::from_secs(10);

/// What became of a backend.
pub(super) struct BackendProbe {
    pub status: BackendStatus,
    /// From the start until it was up.
    pub took: Option<Duration>,
}

impl BackendProbe {
    /// True if it serves.
    pub(super) fn is_up(&self) -> bool {
        self.status.state == "up"
    }
}

/// Starts all of them at once, waits until each is up or has failed, and ends them again.
pub(super) async fn try_out(config: &Config) -> Result<Vec<BackendProbe>, AssembleError> {
    // Live lists only: what another process knew at its end says nothing about now.
    let mut config = config.clone();
    for backend in &mut config.backends {
        // It is to be seen running, also where it only runs while it is used.
        backend.lifetime = Lifetime::default();
    }
    let config = &config;
    let app = assemble(config, Principal::local("doctor"), None, None, PageHost::Person)?;
    let started = Instant::now();
    app.gateway.start();
    let outcomes = follow(&app, config, started).await;
    app.shut_down(Duration::ZERO).await;
    Ok(outcomes)
}

async fn follow(app: &App, config: &Config, started: Instant) -> Vec<BackendProbe> {
    let patience = |name: &str| {
        let own = config.backends.iter().find(|backend| backend.name == name);
        own.map_or(GRACE, |backend| backend.start_timeout) + GRACE
    };
    let mut up: BTreeMap<String, Duration> = BTreeMap::new();
    loop {
        let backends = app.gateway.status().backends;
        let now = started.elapsed();
        for backend in backends.iter().filter(|backend| backend.state == "up") {
            up.entry(backend.name.clone()).or_insert(now);
        }
        let settled = backends.iter().all(|backend| match (backend.state, up.get(&backend.name)) {
            ("up", since) => !backend.lists.is_empty() || since.is_some_and(|since| now - *since > LIST_WAIT),
            ("starting", _) => now > patience(&backend.name),
            _ => true,
        });
        if settled {
            let outcome = |status: BackendStatus| BackendProbe { took: up.get(&status.name).copied(), status };
            return backends.into_iter().map(outcome).collect();
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A backend that serves.
pub(super) fn served(outcome: &BackendProbe) -> Finding {
    let status = &outcome.status;
    let mut found = match (&status.server, &status.server_version) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        (Some(name), None) => name.clone(),
        _ => "a server without a name".to_owned(),
    };
    if let Some(took) = outcome.took {
        found.push_str(&format!(" started in {:.2} s", took.as_secs_f64()));
    }
    found.push_str(&format!("; revision {}, {}", status.revision.unwrap_or("-"), status.transport));
    let lists: Vec<String> = status.lists.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    let check = check(&status.name);
    if lists.is_empty() {
        let advice = "check the server's log; clients will not see its tools until it lists them";
        return Finding::warning(&check, format!("{found}; it does not say what it offers"), advice);
    }
    found.push_str(&format!("; {}", lists.join(", ")));
    if status.lists.get("tools") == Some(&0) {
        let advice = "if that is not intended, check `tools.include`, `tools.exclude` and the server's own settings";
        return Finding::warning(&check, format!("{found}; it offers no tools"), advice);
    }
    Finding::ok(&check, found)
}

/// A backend that only callers with a credential of their own can open.
pub(super) fn waiting(check: &str) -> Finding {
    Finding::ok(check, "its callers have credentials of their own, so that the first one's call opens it".to_owned())
}

/// A backend that does not serve, as far as only its end tells.
pub(super) fn failed(outcome: &BackendProbe, config: Option<&BackendConfig>) -> Finding {
    let status = &outcome.status;
    let error = status.last_error.clone();
    let mut found = match (status.state, &error) {
        ("starting", None) => {
            let seconds = config.map_or(0.0, |backend| backend.start_timeout.as_secs_f64());
            format!("it did not finish the handshake within {seconds} s and {} s more", GRACE.as_secs())
        }
        (_, Some(why)) => format!("it does not start: {why}"),
        (state, None) => format!("it does not start: it is {state}"),
    };
    if !status.last_words.is_empty() {
        found.push_str(&format!("; last lines of its standard error: {}", status.last_words.join(" | ")));
    }
    let ended = error.is_some_and(|why| why.contains("exited with code") || why.contains("was killed by"));
    let advice = match (status.transport, ended) {
        ("stdio", true) => {
            "run its command by hand to see what it wants; often a variable, an argument or a package is missing \
             (variables are passed on only by `env` and `env_pass`)"
        }
        ("stdio", false) => "check that the program is an MCP server that speaks over standard input and output",
        _ => "check that an MCP server answers at `url`, and what is spoken there (`transport`)",
    };
    Finding::problem(&check(&status.name), found, advice)
}

/// Lines where only messages belong.
pub(super) fn strays(status: &BackendStatus) -> Option<Finding> {
    let lines = status.strays.get("not_json").copied().unwrap_or(0);
    let odd = status.strays.get("garbage").copied().unwrap_or(0);
    let found = match (&status.stray_line, lines, odd) {
        (Some(line), lines @ 1.., _) => {
            format!("it writes to standard output what is not a message (lines: {lines}), such as: {line}")
        }
        (_, _, odd @ 1..) => format!("it sent {odd} messages that are JSON but not JSON-RPC"),
        _ => return None,
    };
    let advice = "send its logs and greetings to standard error (console.error, logging to sys.stderr, or its log option); standard \
                  output is for JSON-RPC messages only, and other clients may fail here";
    Some(Finding::warning(&check(&status.name), found, advice))
}

/// What a backend is called among the findings.
pub(super) fn check(name: &str) -> String {
    format!("backend {name}")
}
