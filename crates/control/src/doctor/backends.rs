//! Starts backends with the gateway's own connectors, and reports the outcome.

use super::finding::Finding;
use crate::status::redact_output;
use signalbox_assembly::assemble::{App, AssembleError, StateFiles, assemble};
use signalbox_config::{BackendConfig, Config};
use signalbox_engine::Principal;
use signalbox_oauth_client::page_host::PageHost;
use signalbox_runtime::Lifetime;
use signalbox_runtime::status::BackendStatus;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Polling interval of the states.
const POLL: Duration = Duration::from_millis(20);
/// Maximum wait for lists once a backend is up.
const LIST_WAIT: Duration = Duration::from_secs(15);
/// Time beyond `start_timeout`, because the era probe comes first.
const GRACE: Duration = Duration::from_secs(10);

/// Outcome of starting a backend.
pub(super) struct BackendProbe {
    pub status: BackendStatus,
    /// Time from the start until the backend was up.
    pub took: Option<Duration>,
}

impl BackendProbe {
    /// Returns true if the backend serves.
    pub(super) fn is_up(&self) -> bool {
        self.status.state == "up"
    }
}

/// Starts all backends at once, waits until each is up or has failed, and stops them again.
pub(super) async fn probe_all(config: &Config) -> Result<Vec<BackendProbe>, AssembleError> {
    // Without saved lists, because those of another process may be out of date.
    let mut config = config.clone();
    for backend in &mut config.backends {
        // Keep it running, even if its process would run only while it is used.
        backend.lifetime = Lifetime::default();
    }
    let config = &config;
    let app = assemble(config, Principal::local("doctor"), StateFiles::default(), None, PageHost::Person)?;
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
            let outcome = |mut status: BackendStatus| {
                redact_output(&mut status);
                BackendProbe { took: up.get(&status.name).copied(), status }
            };
            return backends.into_iter().map(outcome).collect();
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Returns the finding for a backend that serves.
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

/// Returns the finding for a backend that only callers with a credential of their own can open.
pub(super) fn waiting(check: &str) -> Finding {
    Finding::ok(check, "its callers have credentials of their own, so that the first one's call opens it".to_owned())
}

/// Returns the finding for a backend that does not serve, from its error and its standard error.
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
    let words: Vec<&str> = status.last_words.iter().map(String::as_str).collect();
    let advice = advice(&status.name, status.transport, error.as_deref().unwrap_or_default(), &words);
    Finding::problem(&check(&status.name), found, advice)
}

/// Returns the advice for a backend that failed with this error and these last lines on its standard error.
pub(super) fn advice(name: &str, transport: &str, error: &str, last_words: &[&str]) -> String {
    let has = |parts: &[&str]| parts.iter().any(|part| error.contains(part));
    let all = last_words.join("\n");
    let said = |parts: &[&str]| parts.iter().any(|part| all.contains(part) || error.contains(part));
    if has(&["wants authentication", "HTTP 401", "HTTP 403", "sign in", "signs in"]) {
        return format!(
            "sign in with `signalbox login {name}` (with `auth = {{ type = \"oauth\" }}` in `[backends.{name}]`), or correct \
             its credential under `headers`"
        );
    }
    if said(&[
        "is not in this registry",
        "could not be found or you do not have permission",
        "was not found in the package registry",
    ]) {
        return "correct the name of the package in `args`, or its registry".to_owned();
    }
    let advice = match transport {
        "stdio" if has(&["No such file", "cannot be started", "not found"]) => {
            "install the program, or give its full path as `command`"
        }
        "stdio" if has(&["exited with code", "was killed by", "has ended"]) => {
            "run its command by hand to see what it wants; often a variable, an argument or a package is missing \
             (variables are passed on only by `env` and `env_pass`)"
        }
        "stdio" if has(&["in time", "within"]) => {
            "raise its `start_timeout` if it starts slowly; otherwise check that it speaks MCP over standard input and output"
        }
        "stdio" => "check that the program is an MCP server that speaks over standard input and output",
        _ if has(&["certificate", "TLS", "tls"]) => {
            "check the certificate of the server; `tls = { ca_file = … }` trusts one of your own"
        }
        _ if has(&["resolve", "lookup", "Name or service"]) => "correct the host in `url`, or this machine's DNS",
        _ if has(&["refused", "cannot be reached", "unreachable"]) => {
            "start the server, or correct host and port in `url`"
        }
        _ if has(&["in time", "within", "timed out"]) => {
            "check that the server runs and that no firewall lies between; raise `start_timeout` if it is slow"
        }
        _ if has(&["HTTP 404", "HTTP 405"]) => "correct the path in `url`; often it is `/mcp` or `/sse`",
        _ if has(&["HTTP 5"]) => "check the server's own log",
        _ => "check that an MCP server answers at `url`, and what is spoken there (`transport`)",
    };
    advice.to_owned()
}

/// Returns a finding if the server writes lines that are not messages.
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

/// Returns the name of a backend's checks.
pub(super) fn check(name: &str) -> String {
    format!("backend {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "stop the gateway and run doctor again" helps with none of these.
    #[test]
    fn each_kind_of_failure_has_its_advice() {
        let told = |transport: &str, error: &str| advice("a", transport, error, &[]);
        for (transport, error, part) in [
            ("http", "backend `a` wants authentication (HTTP 401)", "signalbox login a"),
            (
                "http",
                "backend `a` cannot be reached at 127.0.0.1:1: Connection refused (os error 111)",
                "start the server",
            ),
            ("http", "backend `a` cannot be reached: failed to lookup address information", "DNS"),
            ("http", "invalid peer certificate: UnknownIssuer", "ca_file"),
            ("http", "backend `a` answered HTTP 404", "path in `url`"),
            ("http", "backend `a` answered HTTP 502", "server's own log"),
            (
                "stdio",
                "the child exited with code 1: npm error 404  'x@*' is not in this registry.",
                "name of the package",
            ),
            ("stdio", "the child exited with code 1: Error: no token", "run its command by hand"),
            ("stdio", "backend `a` was not ready in time", "start_timeout"),
            ("stdio", "No such file or directory (os error 2)", "install the program"),
        ] {
            assert!(told(transport, error).contains(part), "{error}: {}", told(transport, error));
        }
        assert!(
            advice("a", "stdio", "exited with code 1", &["npm error 404  'x@*' is not in this registry."])
                .contains("package")
        );
    }
}
