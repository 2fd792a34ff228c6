//! Implements `signalbox import sentinel.toml`: writes the configuration of a Sentinel gateway as our own (NO-15).

use crate::import::{ImportOutcome, key, quoted};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Days for which Sentinel keeps its audit log (NO-18).
const RETENTION_DAYS: u32 = 30;

/// Reason why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: not the configuration of a Sentinel gateway: {error}")]
pub struct SentinelError {
    /// Name of the file.
    pub file: String,
    /// Message of the parser or of the conversion.
    pub error: String,
}

/// Configuration file of Sentinel. Unknown keys are errors, because their settings would be lost silently.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sentinel {
    gateway: GatewayTable,
    auth: Option<AuthTable>,
    postgres: Option<PostgresTable>,
    backends: Vec<BackendTable>,
    rbac: RbacTable,
    rate_limits: RateTable,
    kill_switch: SwitchTable,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GatewayTable {
    listen: String,
    log_level: String,
    audit_enabled: bool,
    health_listen: Option<String>,
}

impl Default for GatewayTable {
    fn default() -> Self {
        Self { listen: "127.0.0.1:9200".into(), log_level: "info".into(), audit_enabled: true, health_listen: None }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AuthTable {
    jwt_secret_env: String,
    jwt_issuer: String,
    jwt_audience: String,
}

impl Default for AuthTable {
    fn default() -> Self {
        let (issuer, audience) = ("sentinel-gateway", "sentinel-api");
        Self { jwt_secret_env: "JWT_SECRET".into(), jwt_issuer: issuer.into(), jwt_audience: audience.into() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PostgresTable {
    url_env: String,
    #[serde(default)]
    #[allow(dead_code, reason = "the key is known; connections are counted by the store itself")]
    max_connections: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackendTable {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    url: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    timeout_secs: Option<u32>,
    retries: Option<u32>,
    restart_on_exit: Option<bool>,
    max_restarts: Option<u32>,
    health_interval_secs: Option<u32>,
    circuit_breaker_threshold: Option<u32>,
    circuit_breaker_recovery_secs: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RbacTable {
    roles: BTreeMap<String, RoleTable>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RoleTable {
    permissions: Vec<String>,
    denied_tools: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RateTable {
    default_rpm: u64,
    per_tool: BTreeMap<String, u64>,
}

impl Default for RateTable {
    fn default() -> Self {
        Self { default_rpm: 1000, per_tool: BTreeMap::new() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SwitchTable {
    disabled_tools: Vec<String>,
    disabled_backends: Vec<String>,
}

/// Returns `true` if a text looks like a Sentinel configuration: it has backends in a list, which ours never has.
#[must_use]
pub fn is_sentinel(text: &str) -> bool {
    text.parse::<toml::Table>()
        .is_ok_and(|table| table.get("backends").is_some_and(toml::Value::is_array) || table.contains_key("rbac"))
}

/// Converts such a file into our TOML.
///
/// # Errors
/// Returns the first setting that cannot be converted.
pub fn import(text: &str, file: &Path) -> Result<ImportOutcome, SentinelError> {
    let fail = |error: String| SentinelError { file: file.display().to_string(), error };
    let sentinel: Sentinel = toml::from_str(text).map_err(|error| fail(error.message().to_owned()))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut out = format!("# Imported by `signalbox import` from {name:?}, the configuration of a Sentinel gateway.\n");
    gateway(&mut out, &sentinel);
    for backend in &sentinel.backends {
        self::backend(&mut out, backend).map_err(|error| fail(error.to_owned()))?;
    }
    roles(&mut out, &sentinel.rbac);
    limits(&mut out, &sentinel.rate_limits);
    let SwitchTable { disabled_tools, disabled_backends } = &sentinel.kill_switch;
    if !disabled_tools.is_empty() || !disabled_backends.is_empty() {
        let _ = write!(
            out,
            "\n[kill_switch]\ntools = {}\nbackends = {}\n",
            tools(disabled_tools),
            texts(disabled_backends)
        );
    }
    Ok(ImportOutcome { toml: out, warnings: Vec::new() })
}

fn gateway(out: &mut String, sentinel: &Sentinel) {
    let GatewayTable { listen, log_level, audit_enabled, health_listen } = &sentinel.gateway;
    let (host, port) = listen.rsplit_once(':').unwrap_or((listen, "9200"));
    if let Some(health) = health_listen {
        let _ = writeln!(
            out,
            "# Health and metrics are served on the same port: /healthz, /readyz, /metrics (there: {health:?})."
        );
    }
    let _ = write!(out, "\n[mcp.protocol.transport]\nhost = {}\nport = {port}\n", quoted(host));
    let _ = write!(out, "\n[gateway]\nlog_level = {}\n", quoted(log_level));
    if let Some(auth) = &sentinel.auth {
        let _ = write!(
            out,
            "\n[mcp.protocol.security]\nrequire_authentication = true\n\n[auth.jwt.sentinel]\nissuer = {}\naudience = [{}]\nsecret_env = {}\nrole_claims = [\"role\"]\nrequire_id = true\n",
            quoted(&auth.jwt_issuer),
            quoted(&auth.jwt_audience),
            quoted(&auth.jwt_secret_env)
        );
    }
    let _ = write!(out, "\n[mcp.protocol.audit]\nenabled = {audit_enabled}\nretention_days = {RETENTION_DAYS}\n");
    if let Some(postgres) = sentinel.postgres.as_ref().filter(|_| *audit_enabled) {
        let url = quoted(&format!("${{{}}}", postgres.url_env));
        let _ = write!(out, "\n[mcp.protocol.audit.sinks]\ndatabase_sink = true\ndatabase_url = {url}\n");
    }
}

fn backend(out: &mut String, backend: &BackendTable) -> Result<(), &'static str> {
    let table = format!("backends.{}", key(&backend.name));
    let _ = write!(out, "\n[{table}]\n");
    match backend.kind.as_str() {
        "http" => {
            let url = backend.url.as_deref().ok_or("a backend of type `http` needs a `url`")?;
            let _ = writeln!(out, "url = {}", quoted(url));
        }
        "stdio" => {
            let command = backend.command.as_deref().ok_or("a backend of type `stdio` needs a `command`")?;
            let _ = write!(out, "command = {}\nargs = {}\n", quoted(command), texts(&backend.args));
        }
        _ => return Err("the type of a backend is `http` or `stdio`"),
    }
    let _ = writeln!(out, "timeout = {}", backend.timeout_secs.unwrap_or(60));
    let _ = writeln!(out, "retries = {}", backend.retries.unwrap_or(3).min(10));
    if backend.kind == "stdio" {
        if backend.restart_on_exit == Some(false) {
            out.push_str("restart = false\n");
        } else {
            let _ = writeln!(out, "max_restarts = {}", backend.max_restarts.unwrap_or(5));
        }
        if !backend.env.is_empty() {
            let _ = write!(out, "\n[{table}.env]\n");
            for (name, value) in &backend.env {
                let _ = writeln!(out, "{} = {}", key(name), quoted(value));
            }
        }
    }
    let _ = write!(out, "\n[{table}.ping]\ninterval = {}\n", backend.health_interval_secs.unwrap_or(300));
    let failures = backend.circuit_breaker_threshold.unwrap_or(5);
    let recovery = backend.circuit_breaker_recovery_secs.unwrap_or(30);
    let _ = write!(out, "\n[{table}.breaker]\nfailures = {failures}\nrecovery = {recovery}\n");
    Ok(())
}

fn roles(out: &mut String, rbac: &RbacTable) {
    for (name, role) in &rbac.roles {
        let _ = write!(out, "\n[roles.{}]\npermissions = {}\n", key(name), texts(&role.permissions));
        if !role.denied_tools.is_empty() {
            let _ = writeln!(out, "deny = {}", tools(&role.denied_tools));
        }
    }
    if !rbac.roles.is_empty() {
        // Sentinel answers -32003 for a tool that a role may not use.
        out.push_str("\n[permissions]\nreveal = true\n");
    }
}

fn limits(out: &mut String, rates: &RateTable) {
    let _ = write!(out, "\n[mcp.protocol.rate_limits]\nuser_tool_requests_per_minute = {}\n", rates.default_rpm);
    for (tool, rpm) in &rates.per_tool {
        let _ = write!(out, "\n[limits.{}]\ncalls_per_minute = {rpm}\n", key(&format!("*/{tool}")));
    }
}

/// Formats patterns for tools by name, at any backend.
fn tools(names: &[String]) -> String {
    texts(&names.iter().map(|name| format!("*/{name}")).collect::<Vec<_>>())
}

fn texts(values: &[String]) -> String {
    format!("[{}]", values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};

    const FILE: &str = r#"
[gateway]
listen = "127.0.0.1:9200"
log_level = "debug"
audit_enabled = false
health_listen = "127.0.0.1:9201"
[auth]
jwt_secret_env = "SECRET"
[postgres]
url_env = "DATABASE_URL"
max_connections = 10
[[backends]]
name = "files"
type = "stdio"
command = "files-server"
args = ["--root", "/data"]
env = { MODE = "safe" }
max_restarts = 7
[[backends]]
name = "crm"
type = "http"
url = "http://127.0.0.1:3000/mcp"
timeout_secs = 20
circuit_breaker_threshold = 3
[rbac.roles.admin]
permissions = ["*"]
[rbac.roles.viewer]
permissions = ["tools.read"]
denied_tools = ["drop_table"]
[rate_limits]
default_rpm = 100
per_tool = { search = 10, list = 5000 }
[kill_switch]
disabled_tools = ["drop_table"]
disabled_backends = ["crm"]
"#;

    /// Roles, limits, the kill switch and the audit of 30 days come along, and the result loads.
    /// Proves NO-8 and NO-15.
    #[test]
    fn the_file_of_a_sentinel_gateway_is_imported() {
        assert!(is_sentinel(FILE) && !is_sentinel("[backends.a]\ncommand = 'x'\n"));
        let toml = import(FILE, Path::new("sentinel.toml")).unwrap().toml;
        let env = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "SECRET" => Some("a secret that is long enough for HS256".to_owned()),
            _ => None,
        };
        let loaded = Config::parse(Path::new("/x/signalbox.toml"), &toml, &env, &Overrides::default());
        let config = loaded.unwrap_or_else(|error| panic!("{error}\n{toml}")).config;
        assert_eq!((config.listen.port, config.auth.required, config.backends.len()), (9200, true, 2));
        assert_eq!(config.auth.issuers[0].issuer, "sentinel-gateway");
        assert_eq!(config.rate_limits.user_tool.per_minute, Some(100));
        assert_eq!(config.permissions.roles[1].1.deny, ["*/drop_table"]);
        assert_eq!(config.permissions.kill_switch.backends, ["crm"]);
        let rates = config.rate_limits.tools.iter().map(|one| (one.pattern.as_str(), one.calls_per_minute));
        assert_eq!(rates.collect::<Vec<_>>(), [("*/list", Some(5000)), ("*/search", Some(10))], "NO-8");
        assert_eq!(config.rules.set.len(), 0);
        assert_eq!(config.backends[0].failing.max_restarts, Some(7));
        assert!(toml.contains("retention_days = 30"));
    }

    /// There it is never started again, and here neither.
    /// Proves NO-15.
    #[test]
    fn a_backend_that_is_not_to_be_started_again_is_not() {
        let file =
            "[[backends]]\nname = 'a'\ntype = 'stdio'\ncommand = 'x'\nrestart_on_exit = false\nmax_restarts = 3\n";
        let toml = import(file, Path::new("sentinel.toml")).unwrap().toml;
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let loaded = Config::parse(Path::new("/x/signalbox.toml"), &toml, &env, &Overrides::default()).unwrap();
        assert_eq!(loaded.config.backends[0].failing.max_restarts, Some(0));
    }

    #[test]
    fn what_is_not_known_is_not_lost_in_silence() {
        for (text, told) in [
            ("[gateway]\nlisten_on = 'x'\n", "listen_on"),
            ("[[backends]]\nname = 'a'\ntype = 'http'\n", "needs a `url`"),
            ("[[backends]]\nname = 'a'\ntype = 'ftp'\n", "`http` or `stdio`"),
        ] {
            let error = import(text, Path::new("sentinel.toml")).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("sentinel.toml"), "{error}");
        }
    }
}
