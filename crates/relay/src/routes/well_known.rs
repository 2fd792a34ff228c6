//! `GET /.well-known/codap-mcp.json`: a machine-readable description of the relay.

use crate::relay::Relay;
use crate::settings::MigrationPhase;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use signalbox_transport::router::{HttpRoute, Mount, RouteAccess, RoutedAnswer};
use std::sync::Arc;

/// Path of the description.
pub const PATH: &str = "/.well-known/codap-mcp.json";

/// Returns the route that serves the description.
pub fn route(relay: &Arc<Relay>) -> HttpRoute {
    let relay = Arc::clone(relay);
    HttpRoute::new(Method::GET, PATH, Mount::Listener, move |_| {
        let text = descriptor(&relay).to_string();
        async move { Ok(RoutedAnswer::json(StatusCode::OK, text)) }
    })
    .access(RouteAccess::Open)
}

fn descriptor(relay: &Relay) -> Value {
    let (base, phase) = (relay.base(), relay.settings.phase);
    let mut all = json!({
        "name": "codap-mcp-server",
        "version": "1.0.0",
        "protocolVersion": "2024-11-05",
        "supportedProtocolVersions": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
        "mcpEndpoint": format!("{base}/api/mcp"),
        "phase": phase.word(),
        "features": phase.features(),
        "documentation": format!("{base}/relay/migrate"),
        "workerLibrary": format!("{base}/relay/worker.js"),
    });
    if phase != MigrationPhase::McpOnly {
        all["sessionEndpoint"] = format!("{base}/api/sessions").into();
        all["manifestEndpoint"] = format!("{base}/api/metadata").into();
        all["requestEndpoint"] = format!("{base}/api/request").into();
        all["responseEndpoint"] = format!("{base}/api/response").into();
        all["eventStreamEndpoint"] = format!("{base}/api/stream").into();
        all["schemas"] = json!({
            "request": {
                "type": "object",
                "properties": {
                    "sessionCode": {"type": "string", "pattern": "^[A-Z0-9]{8}$"},
                    "tool": {"type": "string"},
                    "arguments": {"type": "object"},
                    "id": {"type": "string"},
                },
                "required": ["sessionCode", "tool"],
            },
            "response": {
                "type": "object",
                "properties": {
                    "sessionCode": {"type": "string", "pattern": "^[A-Z0-9]{8}$"},
                    "requestId": {"type": "string"},
                    "result": {},
                    "error": {},
                },
                "required": ["sessionCode", "requestId"],
            },
        });
    }
    all
}
