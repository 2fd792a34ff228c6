//! The second stage for our own files: from what the file says to a [`Config`] that cannot be wrong.

use http::uri::{Authority, PathAndQuery, Uri};
use signalbox_transport::http_front::{POST_PATH, STREAM_PATH};

use crate::api::routes;

use super::backend::{self, bad, folder};
use super::error::{ConfigError, Problem, Warning};
use super::listen::{self, Listen, Transport};
use super::otel;
use super::read::{Table, Text};
use super::record;
use super::rules;
use super::{Gateway, LogLevel, Settings, tls};

/// Paths that the gateway answers itself.
const OWN_PATHS: [&str; 5] = [routes::HEALTH, routes::READY, routes::METRICS, STREAM_PATH, POST_PATH];

/// Check a whole file.
pub(super) fn check(root: &Table<'_>, warnings: &mut Vec<Warning>) -> Result<Settings, ConfigError> {
    root.check_keys()?;
    let protocol = root.table("mcp")?.table("protocol")?;
    protocol.choice("version")?;
    let gateway = gateway(&root.table("gateway")?, &protocol.table("security")?)?;
    let backends = root.table("backends")?;
    let mut checked = Vec::with_capacity(backends.entries.len());
    for entry in backends.entries {
        let table = backends.inside(entry)?;
        checked.push(backend::check(&entry.key, &table, gateway.call_timeout, warnings)?);
    }
    let own = root.table("gateway")?;
    Ok(Settings {
        listen: listen(&protocol.table("transport")?)?,
        gateway,
        record: record::check(&root.table("record")?)?,
        rules: rules::check(root)?,
        backends: checked,
        data_dir: folder(&own, "data_dir")?,
        log_level: own.choice("log_level")?.parse().unwrap_or(LogLevel::Info),
    })
}

fn listen(table: &Table<'_>) -> Result<Listen, ConfigError> {
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
    if OWN_PATHS.contains(&path.value.as_str()) {
        return Err(bad(table, &path, "a path other than `/healthz`, `/readyz`, `/metrics`, `/sse` and `/messages`"));
    }
    let tls = tls::listen(&table.table("tls")?)?;
    let listen = Listen { transport, host: address, port: table.count("port")?, path: path.value, tls };
    if !listen.may_be_reached() {
        return Err(table.document.error(&host.path, host.at, Problem::BeyondLoopback));
    }
    Ok(listen)
}

/// A string whose key has a default.
fn required<'a>(table: &Table<'a>, key: &str) -> Result<Text<'a>, ConfigError> {
    let expected = Problem::BadHiddenValue("a string");
    table.text(key)?.ok_or_else(|| table.key_error(key, expected))
}

fn gateway(table: &Table<'_>, security: &Table<'_>) -> Result<Gateway, ConfigError> {
    Ok(Gateway {
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
        allowed_origins: checked(table, "allowed_origins", is_origin, "an origin like `https://app.example:8443`")?,
        allowed_hosts: checked(table, "allowed_hosts", is_host, "a host like `box.example` or `box.example:8080`")?,
        demo_root: folder(table, "demo_root")?.unwrap_or_else(|| ".".into()),
        watch_config: table.flag("watch_config")?,
        otel: otel::check(&table.table("otel")?)?,
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

/// A scheme and a host, as a browser's `Origin` header has them: nothing after the host, not even a slash.
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
