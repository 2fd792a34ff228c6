//! Error codes of JSON-RPC and of MCP, and those that the gateway has for its own faults.

/// The bytes are not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a message we accept.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist or is not available.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params are wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// Something went wrong inside.
pub const INTERNAL_ERROR: i64 = -32603;

/// Old revisions: an error of the server that has no code of its own; `data.reason` tells which.
pub const LEGACY_SERVER_ERROR: i64 = -32000;
/// Old revisions: the caller did not prove who it is.
pub const LEGACY_UNAUTHENTICATED: i64 = -32001;
/// Old revisions: the caller may not do this.
pub const LEGACY_DENIED: i64 = -32003;
/// Our own, on old revisions: a limit on how often somebody may call is used up.
pub const LEGACY_LIMITED: i64 = -32004;
/// Our own, on old revisions: the tool, the backend or the caller is switched off or in quarantine.
pub const LEGACY_KILLED: i64 = -32005;
/// Old revisions: a request before initialisation.
pub const NOT_INITIALIZED: i64 = -32002;
/// Old revisions: the resource does not exist. Since 2026-07-28 this is [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// Old revisions: the backend has failed again and again and is left alone for a while.
pub const LEGACY_BREAKER_OPEN: i64 = -32007;
/// 2025-11-25: the client must visit a URL first. Retired since.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// 2026-07-28: a header is missing or does not say what the body says.
pub const HEADER_MISMATCH: i64 = -32020;
/// 2026-07-28: the request needs a capability that the client did not declare.
pub const MISSING_CAPABILITY: i64 = -32021;
/// 2026-07-28: the revision is not supported.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Our own, on 2026-07-28: the caller is not authenticated.
pub const UNAUTHENTICATED: i64 = 4010;
/// Our own, on 2026-07-28: the caller may not do this.
pub const DENIED: i64 = 4030;
/// Our own, on 2026-07-28: nobody answered a held request in time.
pub const HOLD_EXPIRED: i64 = 4080;
/// Our own, on 2026-07-28: the tool is quarantined.
pub const QUARANTINED: i64 = 4230;
/// Our own, on 2026-07-28: a limit is used up.
pub const LIMITED: i64 = 4290;
/// Our own, on 2026-07-28: the kill switch is on.
pub const KILLED: i64 = 4510;
/// Our own, on 2026-07-28: the backend died.
pub const BACKEND_DIED: i64 = 5020;
/// Our own, on 2026-07-28: the breaker of the backend is open.
pub const BREAKER_OPEN: i64 = 5030;
/// Our own, on 2026-07-28: the backend did not answer in time.
pub const TIMED_OUT: i64 = 5040;

/// Whether the code lies in the range that JSON-RPC reserves, where we must not make up codes of our own.
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
