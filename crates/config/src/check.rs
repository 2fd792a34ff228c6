//! Second stage for our own files: turns the parsed file into a checked [`Config`].

use super::backend;
use super::error::{ConfigError, Problem, Warning};
use super::faults::Faults;
use super::listen::{self, ANCHORS, HEALTH, ListenConfig, METRICS, READY, Transport};
use super::read::{Table, Text};
use super::values::{bad, folder};
use super::{
    GatewayConfig, LogVerbosity, Settings, audit, auth, guard, otel, outbound, performance, permissions, rate_limits,
    record, relay, rules, seal, tls, tool_labels,
};
use http::uri::{Authority, PathAndQuery, Uri};
use signalbox_oauth_client::oauth_client_state::CALLBACK;
use signalbox_transport::http_front::{POST_PATH, STREAM_PATH};
use std::time::Duration;

/// Paths that the gateway answers itself.
const OWN_PATHS: [&str; 7] = [HEALTH, READY, METRICS, ANCHORS, STREAM_PATH, POST_PATH, CALLBACK];

/// Prefixes of further paths that it answers itself.
const OWN_FOLDERS: [&str; 5] = ["/api/", "/.well-known/", "/auth/", "/approve/", "/relay/"];

/// Checks a whole file and reports all of its errors.
pub(super) fn check(root: &Table<'_>, warnings: &mut Vec<Warning>) -> Result<Settings, ConfigError> {
    let mut faults = Faults::default();
    faults.take(root.check_keys());
    let settings = sections(root, warnings, &mut faults);
    faults.none()?;
    settings.ok_or_else(|| root.error(Problem::BadHiddenValue("a configuration")))
}

/// Reads every section. Returns `None` if one of them cannot be used.
fn sections(root: &Table<'_>, warnings: &mut Vec<Warning>, faults: &mut Faults) -> Option<Settings> {
    let whole = |key: &str| root.table(key);
    let protocol = faults.take(whole("mcp").and_then(|mcp| mcp.table("protocol")))?;
    faults.take(protocol.choice("version"));
    let own = faults.take(whole("gateway"))?;
    let knobs = match faults.within(&["gateway"]) || faults.within(&["mcp"]) {
        true => None,
        false => faults.take(protocol.table("security").and_then(|security| gateway(&own, &security))),
    };
    let call_timeout = knobs.as_ref().map_or(Duration::ZERO, |knobs| knobs.call_timeout);
    let backends = faults.take(whole("backends"))?;
    let mut checked = Vec::with_capacity(backends.entries.len());
    for entry in backends.entries.iter() {
        if !faults.within(&["backends", &entry.key]) {
            let backend = backends.inside(entry);
            let backend = backend.and_then(|table| backend::check(&entry.key, &table, call_timeout, warnings));
            checked.extend(faults.take(backend));
        }
    }
    let section = |name: &str| !faults.within(&[name]);
    let (mcp, recorded, ruled) = (section("mcp"), section("record"), section("rules") && section("gateway"));
    let (sealed, proved) = (section("seal"), section("mcp") && section("auth"));
    let (relayed, guarded, metered) = (section("relay"), section("guard"), section("mcp") && section("gateway"));
    let security = faults.take(protocol.table("security"))?;
    let prove = |table: Table<'_>| auth::check(&table, &security, warnings);
    let auth = proved.then(|| faults.take(whole("auth").and_then(prove))).flatten();
    let required = auth.as_ref().is_some_and(|auth| auth.required);
    let transport = || protocol.table("transport").and_then(|table| self::listen(&table, required));
    let listen = mcp.then(|| faults.take(transport())).flatten();
    let record = recorded.then(|| faults.take(whole("record").and_then(|table| record::check(&table)))).flatten();
    let seal = sealed.then(|| faults.take(whole("seal").and_then(|table| seal::check(&table)))).flatten();
    let outbound = proved.then(|| {
        faults.take(whole("auth").and_then(|auth| auth.table("outbound")).and_then(|table| outbound::check(&table)))
    });
    let bounded = mcp && !faults.within(&["limits"]);
    let limits = || rate_limits::check(&protocol.table("rate_limits")?, &whole("limits")?);
    let rate_limits = bounded.then(|| faults.take(limits())).flatten();
    let tool_labels = whole("tools").and_then(|table| tool_labels::check(&table));
    let tool_labels = if faults.within(&["tools"]) { None } else { faults.take(tool_labels) };
    let permitted =
        [&["permissions"][..], &["roles"], &["kill_switch"], &["constraints"]].iter().all(|path| !faults.within(path));
    let permissions = permitted.then(|| faults.take(permissions::check(root))).flatten();
    let performance = metered.then(|| faults.take(performance::check(&protocol, &own))).flatten();
    let audit = mcp.then(|| faults.take(protocol.table("audit").and_then(|table| audit::check(&table)))).flatten();
    let relay = relayed.then(|| faults.take(whole("relay").and_then(|table| relay::check(&table)))).flatten();
    if relay.as_ref().is_some_and(Option::is_some) {
        faults.take(relay::check_name(root, checked.iter().map(|backend: &super::BackendConfig| &backend.name)));
    }
    let guard = guarded.then(|| faults.take(guard::check_section(root, tool_labels.as_deref(), &checked))).flatten();
    let rules = ruled.then(|| faults.take(rules::check(root))).flatten();
    let data_dir = faults.take(folder(&own, "data_dir"));
    let log_level = faults.take(own.choice("log_level"))?.parse().unwrap_or(LogVerbosity::Info);
    Some(Settings {
        listen: listen?,
        gateway: knobs?,
        record: record?,
        seal: seal?,
        auth: auth?,
        rate_limits: rate_limits?,
        tool_labels: tool_labels?,
        permissions: permissions?,
        performance: performance?,
        audit: audit?,
        relay: relay?,
        guard: guard?,
        rules: rules?,
        backends: checked,
        outbound: outbound.flatten()?,
        data_dir: data_dir?,
        log_level,
    })
}

fn listen(table: &Table<'_>, authentication: bool) -> Result<ListenConfig, ConfigError> {
    let transport = match table.choice("type")?.as_str() {
        "websocket" => Transport::WebSocket,
        "tcp" => Transport::Tcp,
        _ => Transport::Http,
    };
    let host = required(table, "host")?;
    let path = required(table, "path")?;
    let Some(address) = listen::address(&host.value) else {
        return Err(bad(table, &host, "an address like `127.0.0.1`, or `localhost`"));
    };
    let parsed = path.value.parse::<PathAndQuery>();
    let plain = parsed.is_ok_and(|parsed| parsed.path() == path.value && path.value.starts_with('/'));
    if !plain {
        return Err(bad(table, &path, "a path like `/mcp`"));
    }
    let own =
        OWN_PATHS.contains(&path.value.as_str()) || OWN_FOLDERS.iter().any(|folder| path.value.starts_with(folder));
    if own {
        let expected = "a path other than `/healthz`, `/readyz`, `/metrics`, `/anchors`, `/sse` and `/messages`, and not below `/api/`, `/auth/`, `/approve/`, `/relay/` or `/.well-known/`";
        return Err(bad(table, &path, expected));
    }
    let tls = tls::listen(&table.table("tls")?, authentication)?;
    let listen = ListenConfig { transport, host: address, port: table.count("port")?, path: path.value, tls };
    if !listen.may_be_reached(authentication) {
        return Err(table.document.error(&host.path, host.at, Problem::BeyondLoopback));
    }
    Ok(listen)
}

/// Returns the string of a key that has a default.
fn required<'a>(table: &Table<'a>, key: &str) -> Result<Text<'a>, ConfigError> {
    let expected = Problem::BadHiddenValue("a string");
    table.text(key)?.ok_or_else(|| table.key_error(key, expected))
}

fn gateway(table: &Table<'_>, security: &Table<'_>) -> Result<GatewayConfig, ConfigError> {
    Ok(GatewayConfig {
        first_list_wait: table.duration("first_list_wait")?,
        instructions: table.text("instructions")?.map_or_else(String::new, |text| text.value),
        drain: table.duration("drain")?,
        call_timeout: table.duration("call_timeout")?,
        session_timeout: security.duration("session_timeout")?,
        max_sessions: security.count("max_concurrent_sessions")?,
        max_connections: table.count("max_connections")?,
        max_streams: table.count("max_streams")?,
        park_timeout: table.duration("park_timeout")?,
        max_in_flight: table.count("max_in_flight")?,
        max_message: table.count("max_message")?,
        memory: table.count("memory")?,
        allowed_origins: checked(table, "allowed_origins", is_origin, "an origin like `https://app.example:8443`")?,
        allowed_hosts: checked(table, "allowed_hosts", is_host, "a host like `box.example` or `box.example:8080`")?,
        demo_root: folder(table, "demo_root")?.unwrap_or_else(|| ".".into()),
        watch_config: table.flag("watch_config")?,
        rule_seed: table.seed("rule_seed")?,
        otel: otel::check(&table.table("otel")?)?,
        otel_metrics: otel::check_metrics(&table.table("otel")?)?,
    })
}

fn checked(
    table: &Table<'_>,
    key: &str,
    is_good: fn(&str) -> bool,
    expected: &str,
) -> Result<Vec<String>, ConfigError> {
    let mut values = Vec::new();
    for text in table.texts(key)? {
        if !is_good(&text.value) {
            return Err(bad(table, &text, expected));
        }
        // Browsers send both in lower case.
        values.push(text.value.to_ascii_lowercase());
    }
    Ok(values)
}

/// Returns `true` for a scheme and a host as in a browser's `Origin` header: nothing follows the host, not even a
/// slash.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    !scheme.is_empty() && is_host(host) && text.parse::<Uri>().is_ok()
}

fn is_host(text: &str) -> bool {
    let plain = !text.contains(['@', '*', '/']);
    plain
        && text.parse::<Authority>().is_ok_and(|authority| {
            let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
            !authority.host().is_empty() && (port.is_empty() || authority.port_u16().is_some())
        })
}
