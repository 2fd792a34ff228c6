//! Protocol revisions, and the choice of the revision for a request.

use serde_json::{Value, json};

use super::message::{INVALID_PARAMS, Request, RpcError, UNSUPPORTED_VERSION};

/// `_meta` key for the revision of a stateless request.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key for the client capabilities of a stateless request.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key for the server that answered a stateless request.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// Published revision of the protocol. Later ones compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum McpRevision {
    /// First revision that was published.
    V2024_11_05,
    /// Adds tool annotations and progress messages.
    V2025_03_26,
    /// Adds titles, output schemas and structured content.
    V2025_06_18,
    /// Last revision with sessions. Invalid arguments become tool results.
    V2025_11_25,
    /// First revision without sessions.
    V2026_07_28,
}

impl McpRevision {
    /// Revision offered to a client whose own is unknown or stateless.
    pub const LAST_WITH_SESSIONS: McpRevision = McpRevision::V2025_11_25;

    /// Revisions served without a session.
    pub const STATELESS: [&'static str; 1] = ["2026-07-28"];

    /// Returns the revision's name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            McpRevision::V2024_11_05 => "2024-11-05",
            McpRevision::V2025_03_26 => "2025-03-26",
            McpRevision::V2025_06_18 => "2025-06-18",
            McpRevision::V2025_11_25 => "2025-11-25",
            McpRevision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Negotiates the revision for `initialize`: the client's own if it is known and has sessions, otherwise the last
    /// one with sessions.
    #[must_use]
    pub fn negotiate(asked: &str) -> McpRevision {
        [McpRevision::V2024_11_05, McpRevision::V2025_03_26, McpRevision::V2025_06_18]
            .into_iter()
            .find(|known| known.name() == asked)
            .unwrap_or(McpRevision::LAST_WITH_SESSIONS)
    }

    /// Returns `true` if requests are stateless.
    #[must_use]
    pub fn is_stateless(self) -> bool {
        self == McpRevision::V2026_07_28
    }
}

/// Returns the revision for answering `request`. `session` is the revision negotiated by `initialize`, if any.
///
/// # Errors
/// If the request names an unsupported revision or lacks required metadata.
pub fn of_request(request: &Request, session: Option<McpRevision>) -> Result<McpRevision, RpcError> {
    let meta = request.meta();
    let version = meta.and_then(|meta| meta.get(META_VERSION));
    let capabilities = meta.and_then(|meta| meta.get(META_CAPABILITIES));
    match (version, capabilities, session) {
        (None, None, Some(revision)) => Ok(revision),
        (None, None, None) if request.method == "ping" => Ok(McpRevision::LAST_WITH_SESSIONS),
        (Some(Value::String(version)), _, _) if !McpRevision::STATELESS.contains(&version.as_str()) => {
            let text = format!("Protocol version {version:?} is not served here.");
            let data = json!({"supported": McpRevision::STATELESS, "requested": version});
            Err(RpcError::new(UNSUPPORTED_VERSION, text).with_data(data))
        }
        (Some(Value::String(_)), Some(Value::Object(_)), _) => Ok(McpRevision::V2026_07_28),
        (Some(Value::String(_)), _, _) => Err(missing(META_CAPABILITIES, "an object")),
        _ => Err(missing(META_VERSION, "a string")),
    }
}

fn missing(key: &str, what: &str) -> RpcError {
    let text = format!(
        "`params._meta[\"{key}\"]` must be {what}. A request outside a session opened by `initialize` needs it."
    );
    RpcError::new(INVALID_PARAMS, text).with_data(json!({"reason": "missing_meta", "key": key}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Incoming, parse};

    fn revision(params: Value, session: Option<McpRevision>) -> Result<McpRevision, i32> {
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string();
        let Incoming::Request(request) = parse(text.as_bytes()) else {
            panic!("{text}");
        };
        of_request(&request, session).map_err(|error| error.code)
    }

    #[test]
    fn initialize_answers_a_known_old_revision_or_the_last_with_sessions() {
        for old in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(McpRevision::negotiate(old).name(), old);
        }
        for other in ["2026-07-28", "2099-01-01", "", "1.0"] {
            assert_eq!(McpRevision::negotiate(other).name(), "2025-11-25");
        }
    }

    #[test]
    fn the_keys_of_a_request_decide_before_the_session_does() {
        let old = Some(McpRevision::V2025_03_26);
        let full = json!({"_meta": {META_VERSION: "2026-07-28", META_CAPABILITIES: {}}});
        assert_eq!(revision(json!({}), old), Ok(McpRevision::V2025_03_26));
        assert_eq!(revision(full.clone(), old), Ok(McpRevision::V2026_07_28));
        assert_eq!(revision(full, None), Ok(McpRevision::V2026_07_28));
    }

    #[test]
    fn missing_and_unsupported_keys_have_their_codes() {
        let check = |meta: Value| revision(json!({"_meta": meta}), None);
        assert_eq!(revision(json!({}), None), Err(INVALID_PARAMS));
        assert_eq!(check(json!({META_VERSION: "2026-07-28"})), Err(INVALID_PARAMS));
        assert_eq!(check(json!({META_CAPABILITIES: {}})), Err(INVALID_PARAMS));
        assert_eq!(check(json!({META_VERSION: 1, META_CAPABILITIES: {}})), Err(INVALID_PARAMS));
        assert_eq!(check(json!({META_VERSION: "2026-07-28", META_CAPABILITIES: []})), Err(INVALID_PARAMS));
        assert_eq!(check(json!({META_VERSION: "2099-01-01"})), Err(UNSUPPORTED_VERSION));
        assert_eq!(check(json!({META_VERSION: "2025-11-25"})), Err(UNSUPPORTED_VERSION));
    }
}
