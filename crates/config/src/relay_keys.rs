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
        "How the legacy routes are served: like MCP; with headers that announce their end; or not at all (410).",
    ),
    key(
        "relay.ttl",
        seconds(600.0, DAY),
        "How long an unused session lives: its code, and the MCP sessions that are bound to it.",
    ),
    key(
        "relay.public_url",
        KeyKind::Text(""),
        "Where pages and clients reach this gateway: `relayBaseUrl`, links to join. By default the listener's own address.",
    ),
    key(
        "relay.origins",
        KeyKind::Texts,
        "Origins of pages elsewhere that may use the relay, like `https://codap.concord.org`; they may also show `/relay/codap/` in a frame.",
    ),
    key(
        "relay.store",
        KeyKind::Text("memory"),
        "Where sessions are kept: `memory`, which ends with the process, or a Redis that several gateways share, like `redis://cache.example:6379/0` or `rediss://…` with TLS.",
    ),
    key(
        "relay.tools",
        one_of(&["document", "later", "both", "none"], "document"),
        "Which tools of CODAP are listed: the 33 of the document, the 34 later ones, all, or none. All can be called, unless it is `none`.",
    ),
    key(
        "relay.anonymous",
        KeyKind::Flag(false),
        "With `require_authentication`: let agents in who have a session code and no other proof of who they are.",
    ),
    key(
        "relay.sunset",
        KeyKind::Text(""),
        "The day on which the legacy routes end, like `2027-06-30`, for the header `Sunset`.",
    ),
    limit_of(
        "relay.limits.sessions_per_minute",
        30,
        "How many sessions an address may open in a minute; 0 is any number.",
    ),
    limit_of(
        "relay.limits.requests_per_minute",
        60,
        "How many legacy calls an address may make in a session and minute.",
    ),
    limit_of(
        "relay.limits.mcp_requests_per_minute",
        200,
        "How many messages an address may send to `/api/mcp` in a minute.",
    ),
    limit_of(
        "relay.limits.wrong_codes_per_minute",
        10,
        "How many wrong session codes an address may give in a minute.",
    ),
    key("relay.limits.max_sessions", count(10_000, 1, 1_000_000), "How many sessions may be open."),
    key("relay.limits.queue", count(100, 1, 10_000), "How many calls of a session may wait for its page."),
    key("relay.limits.body", count(8 * MIB, 1024, 1024 * MIB), "The largest body of a legacy route, in bytes."),
    key("relay.limits.request_timeout", seconds(30.0, 3600.0), "How long a page may take for a call."),
    key(
        "relay.limits.request_ttl",
        seconds(30.0, 3600.0),
        "How long a call of the older API is kept for its page, its answer included.",
    ),
];
