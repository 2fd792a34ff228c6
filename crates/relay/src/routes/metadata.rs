//! `GET /api/metadata`: the tool manifest.

use super::legacy_request::{RouteRefusal, address, caller, code_outside, header, proved, session};
use crate::refusal::{LegacyRefusal, VERSION, name_versions};
use crate::relay::{BACKEND, Relay, own_tools};
use crate::when::iso;
use http::StatusCode;
use serde_json::{Value, json};
use signalbox_engine::Caller;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{RoutedAnswer, RoutedRequest};
use std::sync::Arc;

/// Lists the tools that this caller may see.
pub async fn list(relay: Arc<Relay>, asked: RoutedRequest) -> Result<RoutedAnswer, RouteRefusal> {
    proved(&relay, &asked)?;
    if let Some(wanted) = header(&asked.headers, "accept-version").filter(|wanted| !is_served(wanted)) {
        return Err(RouteRefusal::of(LegacyRefusal::VersionNotAcceptable(wanted.chars().take(50).collect())));
    }
    let record = session(&relay, code_outside(&asked), &address(&asked)).await?;
    let mut tools = relay.tools.manifest(&own_tools(&record));
    let caller = caller(&asked);
    tools.retain(|tool| is_seen(&relay, &caller, tool));
    let body = json!({
        "version": VERSION,
        "toolCount": tools.len(),
        "tools": tools,
        "source": if record.tools.is_some() { "page" } else { "static" },
        "apiVersion": VERSION,
        "supportedVersions": {"api": [VERSION], "toolManifest": [VERSION]},
        "sessionCode": record.code.expose(),
        "generatedAt": iso(unix_millis()),
        "expiresAt": iso(record.until),
    });
    let mut answer = RoutedAnswer::json(StatusCode::OK, body.to_string());
    name_versions(&mut answer.headers);
    Ok(answer)
}

/// Returns true if the caller may see the tool over MCP.
fn is_seen(relay: &Relay, caller: &Caller, tool: &Value) -> bool {
    let Some(gateway) = relay.gateway() else { return true };
    let Some(visibility) = gateway.visibility() else { return true };
    let definition = json!({
        "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"],
    })
    .to_string();
    let name = tool["name"].as_str().unwrap_or_default();
    let entry = EntryRef { kind: ListKind::Tools, backend: BACKEND, name, definition: Some(definition.as_bytes()) };
    visibility.lists(caller, &entry)
}

/// Returns true for a version requirement that the served version satisfies: `1`, `1.0`, `1.0.0`, `1.x`, `^1.0`,
/// `~1.0.0`, `v1`, `*`.
fn is_served(wanted: &str) -> bool {
    let wanted = wanted.trim().trim_start_matches(['v', '^', '~', '=', ' ']);
    let mut parts = wanted.split('.');
    let any = |part: &str| matches!(part, "*" | "x" | "X");
    match parts.next() {
        Some(major) if any(major) => true,
        Some("1") => parts.by_ref().take(2).all(|part| part == "0" || any(part)) && parts.next().is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CO-4.
    #[test]
    fn versions_are_negotiated_by_header() {
        assert!(["1", "1.0", "1.0.0", "1.x", "^1.0.0", "~1.0", "v1.0.0", "*"].into_iter().all(is_served));
        assert!(!["2.0.0", "1.1", "0.9", "", "1.0.0.0", "one"].into_iter().any(is_served));
    }
}
