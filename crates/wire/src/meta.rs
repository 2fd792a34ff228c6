//! Reserved keys of `_meta`.

/// The member itself.
pub const META: &str = "_meta";
/// The token under which progress of a request is reported.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The revision a request speaks.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who sends a request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the sender of a request can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least severe log message the sender of a request wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The subscription a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Who sends a result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// 2025-11-25: the task a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Ours: the backend that asks a question.
pub const BACKEND: &str = "io.signalbox/backend";

/// Ours: the gateway that opens a connection, so that it recognises itself.
pub const INSTANCE: &str = "io.signalbox/instance";

/// W3C trace context: the parent span.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace context: vendor data.
pub const TRACESTATE: &str = "tracestate";
/// W3C baggage.
pub const BAGGAGE: &str = "baggage";

/// Whether the key's prefix is reserved for the protocol: its second label is `modelcontextprotocol` or `mcp`.
#[must_use]
pub fn is_reserved(key: &str) -> bool {
    let Some((prefix, _)) = key.rsplit_once('/') else {
        return false;
    };
    matches!(prefix.split('.').nth(1), Some("modelcontextprotocol" | "mcp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_prefixes() {
        for key in [PROTOCOL_VERSION, SERVER_INFO, "dev.mcp/x", "io.modelcontextprotocol.api/y"] {
            assert!(is_reserved(key), "{key}");
        }
        for key in [PROGRESS_TOKEN, TRACEPARENT, "com.example/x", "com.example.mcp/x", "mcp/x"] {
            assert!(!is_reserved(key), "{key}");
        }
    }
}
