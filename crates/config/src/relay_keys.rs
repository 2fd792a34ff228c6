//! Configuration keys of the relay.

use crate::key_parts::{count, key, limit_of, one_of, seconds};
use crate::keys::{ConfigKey, KeyKind};

const MIB: u64 = 1024 * 1024;
const DAY: f64 = 24.0 * 3600.0;

/// Every key of `relay`, in the order of the reference.
pub(crate) const RELAY_KEYS: &[ConfigKey] = &[
    key(
        "relay.enabled",
        KeyKind::Flag(false),
        "Let web pages offer tools, at `/api/mcp` and by the legacy routes below `/api/`; see docs/relay.md.",
    ),
    key(
        "relay.phase",
        one_of(&["dual", "deprecated", "mcp-only"], "dual"),
        "Phase of the legacy routes: served like MCP, served with headers that announce their end, or not served (410).",
    ),
    key(
        "relay.ttl",
        seconds(600.0, DAY),
        "Lifetime of an unused session: its code, and the MCP sessions that are bound to it.",
    ),
    key(
        "relay.public_url",
        KeyKind::Text(""),
        "Address at which pages and clients reach this gateway: `relayBaseUrl`, links to join. By default the listener's own address.",
    ),
    key(
        "relay.origins",
        KeyKind::Texts,
        "Origins of pages elsewhere that may use the relay, like `https://codap.concord.org`; they may also show `/relay/codap/` in a frame.",
    ),
    key(
        "relay.store",
        KeyKind::Text("memory"),
        "Store of sessions: `memory`, which ends with the process, or a Redis that several gateways share, like `redis://cache.example:6379/0` or `rediss://…` with TLS.",
    ),
    key(
        "relay.tools",
        one_of(&["document", "later", "both", "none"], "document"),
        "Tools of CODAP that are listed: the 33 of the document, the 34 later ones, all, or none. All can be called, unless it is `none`.",
    ),
    key(
        "relay.anonymous",
        KeyKind::Flag(false),
        "With `require_authentication`: admit agents that have a session code and no other credential.",
    ),
    key(
        "relay.sunset",
        KeyKind::Text(""),
        "The day on which the legacy routes end, like `2027-06-30`, for the header `Sunset`.",
    ),
    limit_of(
        "relay.limits.sessions_per_minute",
        30,
        "Maximum number of sessions that an address may open per minute; 0 means no limit.",
    ),
    limit_of("relay.limits.requests_per_minute", 60, "Maximum number of legacy calls per address, session and minute."),
    limit_of(
        "relay.limits.mcp_requests_per_minute",
        200,
        "Maximum number of messages that an address may send to `/api/mcp` per minute.",
    ),
    limit_of(
        "relay.limits.wrong_codes_per_minute",
        10,
        "Maximum number of wrong session codes that an address may give per minute.",
    ),
    key("relay.limits.max_sessions", count(10_000, 1, 1_000_000), "Maximum number of open sessions."),
    key("relay.limits.queue", count(100, 1, 10_000), "Maximum number of calls of a session that wait for its page."),
    key("relay.limits.body", count(8 * MIB, 1024, 1024 * MIB), "Maximum size of a body of a legacy route, in bytes."),
    key("relay.limits.request_timeout", seconds(30.0, 3600.0), "Time limit for a page to answer a call."),
    key(
        "relay.limits.request_ttl",
        seconds(30.0, 3600.0),
        "Time for which a call of the older API and its answer are kept for its page.",
    ),
];
