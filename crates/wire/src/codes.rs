//! Error codes of JSON-RPC and MCP, and the gateway's own codes for its faults.

/// The bytes are not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not an acceptable message.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist or is not available.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params are invalid.
pub const INVALID_PARAMS: i64 = -32602;
/// Internal error of the receiver.
pub const INTERNAL_ERROR: i64 = -32603;

/// Old revisions: a server error without its own code. `data.reason` names the error.
pub const LEGACY_SERVER_ERROR: i64 = -32000;
/// Old revisions: the caller is not authenticated.
pub const LEGACY_UNAUTHENTICATED: i64 = -32001;
/// Old revisions: the caller lacks permission.
pub const LEGACY_DENIED: i64 = -32003;
/// Gateway code on old revisions: a rate limit is used up.
pub const LEGACY_LIMITED: i64 = -32004;
/// Gateway code on old revisions: the tool, the backend or the caller is switched off or in quarantine.
pub const LEGACY_KILLED: i64 = -32005;
/// Old revisions: a request before initialisation.
pub const NOT_INITIALIZED: i64 = -32002;
/// Old revisions: the resource does not exist. Since 2026-07-28 this is [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// Old revisions: the backend failed repeatedly, and its circuit breaker is open.
pub const LEGACY_BREAKER_OPEN: i64 = -32007;
/// 2025-11-25: the client must visit a URL first. No longer used by later revisions.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// 2026-07-28: a header is missing or disagrees with the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// 2026-07-28: the request needs a capability that the client did not declare.
pub const MISSING_CAPABILITY: i64 = -32021;
/// 2026-07-28: the revision is not supported.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Gateway code on 2026-07-28: the caller is not authenticated.
pub const UNAUTHENTICATED: i64 = 4010;
/// Gateway code on 2026-07-28: the caller lacks permission.
pub const DENIED: i64 = 4030;
/// Gateway code on 2026-07-28: a held request got no decision in time.
pub const HOLD_EXPIRED: i64 = 4080;
/// Gateway code on 2026-07-28: the tool is quarantined.
pub const QUARANTINED: i64 = 4230;
/// Gateway code on 2026-07-28: a limit is used up.
pub const LIMITED: i64 = 4290;
/// Gateway code on 2026-07-28: the kill switch is on.
pub const KILLED: i64 = 4510;
/// Gateway code on 2026-07-28: the backend died.
pub const BACKEND_DIED: i64 = 5020;
/// Gateway code on 2026-07-28: the backend's circuit breaker is open.
pub const BREAKER_OPEN: i64 = 5030;
/// Gateway code on 2026-07-28: the backend timed out.
pub const TIMED_OUT: i64 = 5040;

/// Returns `true` for a code in the range that JSON-RPC reserves. The gateway must not define its own codes there.
#[must_use]
pub const fn is_reserved(code: i64) -> bool {
    code >= -32768 && code <= -32000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_codes_are_outside_the_reserved_range() {
        let own = [
            UNAUTHENTICATED,
            DENIED,
            HOLD_EXPIRED,
            QUARANTINED,
            LIMITED,
            KILLED,
            BACKEND_DIED,
            BREAKER_OPEN,
            TIMED_OUT,
        ];
        assert!(own.iter().all(|&code| !is_reserved(code)));
        assert!(is_reserved(PARSE_ERROR) && is_reserved(HEADER_MISMATCH));
    }
}
