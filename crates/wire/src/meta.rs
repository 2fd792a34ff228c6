//! Reserved keys of `_meta`.

/// Name of the `_meta` member.
pub const META: &str = "_meta";
/// Token for reporting the progress of a request.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// Revision of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Client that sends a request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Capabilities of the client that sends a request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Lowest severity of log messages that the client wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Subscription that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Server that sends a result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// 2025-11-25: task that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Extension: backend that sends a request to the client.
pub const BACKEND: &str = "io.signalbox/backend";

/// Extension: gateway that opens a connection, so that it recognizes a connection to itself.
pub const INSTANCE: &str = "io.signalbox/instance";

/// W3C trace context: parent span.
pub const TRACEPARENT: &str = "traceparent";
/// W3C trace context: vendor data.
pub const TRACESTATE: &str = "tracestate";
/// W3C baggage of the request.
pub const BAGGAGE: &str = "baggage";

/// Returns `true` if the key's prefix is reserved for the protocol: its second label is `modelcontextprotocol` or
/// `mcp`.
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
