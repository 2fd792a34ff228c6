//! Defines every configuration key once: its path, type, bounds, default and meaning.

use crate::audit_keys::AUDIT_KEYS;
use crate::auth_keys::AUTH_KEYS;
use crate::backend_auth_keys::{BACKEND_AUTH_KEYS, OUTBOUND_KEYS};
use crate::guard_keys::GUARD_KEYS;
use crate::key_parts::{
    CLIENT_AUTH, LOG_LEVELS, TLS_VERSIONS, TRANSPORTS, TRUST_LEVELS, count, key, limit, one_of, otel, seconds,
};
use crate::keys::{ConfigKey, KeyKind};
use crate::permission_keys::PERMISSION_KEYS;
use crate::record_keys::RECORD_KEYS;
use crate::relay_keys::RELAY_KEYS;
use crate::seal_keys::SEAL_KEYS;
use signalbox_engine::balance::Balance;

/// Version of the governed dialect's configuration.
pub const PROTOCOL_VERSION: &str = "1.0.0";

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;
const MIB: u64 = 1024 * 1024;

/// Every key, in the order of the reference.
pub const KEYS: &[ConfigKey] = &ALL;

/// Number of keys that other files define.
const ELSEWHERE: usize = AUDIT_KEYS.len()
    + PERMISSION_KEYS.len()
    + BACKEND_AUTH_KEYS.len()
    + RECORD_KEYS.len()
    + RELAY_KEYS.len()
    + SEAL_KEYS.len()
    + AUTH_KEYS.len()
    + GUARD_KEYS.len()
    + OUTBOUND_KEYS.len();

static ALL: [ConfigKey; OWN.len() + ELSEWHERE] = {
    let mut all = [OWN[0]; OWN.len() + ELSEWHERE];
    let (own, rest) = all.split_at_mut(OWN.len());
    let (audit, rest) = rest.split_at_mut(AUDIT_KEYS.len());
    let (permissions, rest) = rest.split_at_mut(PERMISSION_KEYS.len());
    let (backend_auth, rest) = rest.split_at_mut(BACKEND_AUTH_KEYS.len());
    let (record, rest) = rest.split_at_mut(RECORD_KEYS.len());
    let (relay, rest) = rest.split_at_mut(RELAY_KEYS.len());
    let (seal, rest) = rest.split_at_mut(SEAL_KEYS.len());
    let (auth, rest) = rest.split_at_mut(AUTH_KEYS.len());
    let (guard, outbound) = rest.split_at_mut(GUARD_KEYS.len());
    own.copy_from_slice(OWN);
    audit.copy_from_slice(AUDIT_KEYS);
    permissions.copy_from_slice(PERMISSION_KEYS);
    backend_auth.copy_from_slice(BACKEND_AUTH_KEYS);
    record.copy_from_slice(RECORD_KEYS);
    relay.copy_from_slice(RELAY_KEYS);
    seal.copy_from_slice(SEAL_KEYS);
    auth.copy_from_slice(AUTH_KEYS);
    guard.copy_from_slice(GUARD_KEYS);
    outbound.copy_from_slice(OUTBOUND_KEYS);
    all
};

/// Keys that this file defines: all but those of the tables that have a file of their own.
const OWN: &[ConfigKey] = &[
    key("mcp.protocol.version", one_of(&[PROTOCOL_VERSION], PROTOCOL_VERSION), "The version of these settings."),
    key(
        "mcp.protocol.transport.type",
        one_of(TRANSPORTS, "http"),
        "Transport for clients. `http` and `websocket` are one listener: Streamable HTTP and the WebSocket upgrade, both on `path`. `tcp` is one message per line on a bare socket, without `path`, `/healthz`, `/readyz` and `/metrics`.",
    ),
    key(
        "mcp.protocol.transport.host",
        KeyKind::Text("127.0.0.1"),
        "The loopback address to listen on: `127.0.0.1`, `::1` or `localhost`. Any other needs `require_authentication`, or TLS with `client_auth = \"required\"`, and `gateway.allowed_hosts`.",
    ),
    key("mcp.protocol.transport.port", count(8080, 0, 65_535), "The port to listen on; 0 takes any free one."),
    key(
        "mcp.protocol.transport.path",
        KeyKind::Text("/mcp"),
        "The path that MCP is served under; not `/healthz`, `/readyz`, `/metrics`, `/anchors`, `/sse` or `/messages`, and not below `/api/`, `/auth/`, `/approve/`, `/relay/` or `/.well-known/`.",
    ),
    key(
        "mcp.protocol.transport.tls.enabled",
        KeyKind::Flag(false),
        "Serve over TLS: `https://` and `wss://`, or lines inside TLS with `type = \"tcp\"`. Changed files are loaded automatically.",
    ),
    key(
        "mcp.protocol.transport.tls.cert_file",
        KeyKind::Text(""),
        "The server's certificate, PEM, followed by its intermediate certificates.",
    ),
    key("mcp.protocol.transport.tls.key_file", KeyKind::Text(""), "Its private key, PEM, without a passphrase."),
    key(
        "mcp.protocol.transport.tls.ca_file",
        KeyKind::Text(""),
        "The authorities that sign clients' certificates, PEM. A client that shows one is known by it.",
    ),
    key(
        "mcp.protocol.transport.tls.client_auth",
        one_of(CLIENT_AUTH, "required"),
        "Certificates of clients, if `ca_file` is set; without that file none is requested. With `require_authentication` the default is `optional`, so that other proofs are accepted too.",
    ),
    key("mcp.protocol.transport.tls.min_version", one_of(TLS_VERSIONS, "1.2"), "The oldest version of TLS spoken."),
    key(
        "mcp.protocol.transport.tls.self_signed",
        KeyKind::Flag(false),
        "Instead of `cert_file`: a certificate for this machine, made at the first start and kept in the data folder.",
    ),
    key(
        "mcp.protocol.transport.tls.certificates.NAME.cert_file",
        KeyKind::Text(""),
        "One more certificate, for clients that ask for one of its names (SNI).",
    ),
    key("mcp.protocol.transport.tls.certificates.NAME.key_file", KeyKind::Text(""), "Its private key."),
    key("mcp.protocol.transport.tls.handshake_timeout", seconds(10.0, 600.0), "Time limit for a TLS handshake."),
    key(
        "mcp.protocol.transport.tls.max_handshakes",
        count(1024, 1, 1_000_000),
        "Maximum number of TLS handshakes under way; others wait, and are closed after `handshake_timeout`.",
    ),
    key(
        "mcp.protocol.security.require_authentication",
        KeyKind::Flag(false),
        "Refuse callers that do not authenticate; see docs/authentication.md.",
    ),
    key(
        "mcp.protocol.security.authentication_timeout",
        seconds(30.0, HOUR),
        "Time limit for the first message of a client on TCP or WebSocket, which authenticates it.",
    ),
    key("mcp.protocol.security.session_timeout", seconds(3600.0, 30.0 * DAY), "Time after which an idle session ends."),
    key(
        "mcp.protocol.security.max_concurrent_sessions",
        count(10_000, 1, 1_000_000),
        "Maximum number of open sessions. A caller that opens one more loses its longest idle session if that was idle for a minute; otherwise the new one is refused.",
    ),
    key(
        "mcp.protocol.security.error_detail",
        one_of(&["by_trust", "full"], "by_trust"),
        "Detail of the gateway's own errors, if callers must authenticate: by the caller's trust, or all of it. See docs/dialect.md.",
    ),
    key(
        "mcp.protocol.security.tool_error_detail",
        one_of(&["full", "by_trust"], "full"),
        "Detail of the errors of tools, if callers must authenticate: all of it, or by the caller's trust.",
    ),
    limit(
        "mcp.protocol.rate_limits.global_requests_per_second",
        "Maximum number of requests per second of all callers together; see docs/rate-limits.md. 0 means no limit.",
    ),
    limit("mcp.protocol.rate_limits.global_requests_per_minute", "The same limit per minute."),
    limit(
        "mcp.protocol.rate_limits.user_requests_per_second",
        "Maximum number of requests per second of each caller. 0 means no limit.",
    ),
    limit("mcp.protocol.rate_limits.user_requests_per_minute", "The same limit per minute."),
    limit(
        "mcp.protocol.rate_limits.tool_requests_per_second",
        "Maximum number of calls per second of each tool, by all callers together. 0 means no limit.",
    ),
    limit("mcp.protocol.rate_limits.tool_requests_per_minute", "The same limit per minute."),
    limit(
        "mcp.protocol.rate_limits.user_tool_requests_per_second",
        "Maximum number of calls per second of each caller at each tool. 0 means no limit.",
    ),
    limit("mcp.protocol.rate_limits.user_tool_requests_per_minute", "The same limit per minute."),
    key(
        "mcp.protocol.performance.execution_time_warning",
        KeyKind::Seconds { default: None, max: DAY },
        "Count a call of a tool that takes longer in `mcp_performance_warnings_total`; see docs/metrics.md.",
    ),
    key(
        "mcp.protocol.performance.memory_usage_warning",
        count(0, 0, 1024 * 1024 * MIB),
        "Count a call in `mcp_performance_warnings_total` after which the server's processes hold more bytes than this. 0 means no limit.",
    ),
    key(
        "gateway.instructions",
        KeyKind::Text(""),
        "Instructions for models about the gateway as a whole, placed before those of its backends.",
    ),
    key(
        "gateway.first_list_wait",
        seconds(30.0, HOUR),
        "Time that the first list waits for backends whose list is not known from an earlier run.",
    ),
    key("gateway.drain", seconds(10.0, HOUR), "Time that calls in flight have to finish when the gateway stops."),
    key("gateway.call_timeout", seconds(60.0, DAY), "Time limit for a call; a backend's `timeout` overrides it."),
    key(
        "gateway.park_timeout",
        seconds(300.0, DAY),
        "Time that a call waits for the client to answer a question of its backend.",
    ),
    key("gateway.max_connections", count(10_000, 1, 1_000_000), "Maximum number of open connections."),
    key("gateway.max_streams", count(64, 1, 10_000), "Maximum number of event streams that one session may hold open."),
    key("gateway.max_in_flight", count(1024, 1, 1_000_000), "Maximum number of unanswered requests per session."),
    key("gateway.max_message", count(16 * MIB, 1024, 1024 * MIB), "Maximum size of a message, in bytes."),
    key(
        "gateway.memory",
        count(128 * MIB, MIB, 1024 * 1024 * MIB),
        "Maximum number of bytes of messages that the process holds at a time; at least four times `gateway.max_message`.",
    ),
    key(
        "gateway.allowed_origins",
        KeyKind::Texts,
        "Origins of web pages accepted besides the gateway's own: `https://app.example`.",
    ),
    key(
        "gateway.allowed_hosts",
        KeyKind::Texts,
        "`Host` headers accepted besides those of loopback: `box.example:8080`.",
    ),
    key(
        "gateway.demo_root",
        KeyKind::Text("."),
        "The folder the demo tools may read, which exist only while no backend is configured.",
    ),
    key(
        "gateway.watch_config",
        KeyKind::Flag(true),
        "Load a changed configuration file automatically; `signalbox reload` and SIGHUP always do.",
    ),
    key("gateway.data_dir", KeyKind::Text(""), "Folder for state; by default `signalbox` in the user's state folder."),
    otel("gateway.otel.enabled", KeyKind::Flag(false), "Export OpenTelemetry traces."),
    otel(
        "gateway.otel.endpoint",
        KeyKind::Text(""),
        "Address that spans are posted to, by OTLP over HTTP: `http://host:port`, to which `/v1/traces` is added, or an address with a path. By default the value of `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`, else `http://localhost:4318`.",
    ),
    otel(
        "gateway.otel.sample_ratio",
        KeyKind::Fraction(1.0),
        "Share of the traces beginning here that are recorded; a trace that a client began follows the client's choice.",
    ),
    otel(
        "gateway.otel.metrics",
        KeyKind::Flag(false),
        "Export metrics by OTLP; see docs/metrics.md. Traces are not needed for that.",
    ),
    otel(
        "gateway.otel.metrics_endpoint",
        KeyKind::Text(""),
        "Address that metrics are posted to, like `endpoint`, with `/v1/metrics`. By default the collector of `endpoint`, else the value of `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`, else `http://localhost:4318`.",
    ),
    otel("gateway.otel.metrics_interval", seconds(60.0, 3600.0), "Interval at which metrics are exported."),
    otel("gateway.otel.service_name", KeyKind::Text("signalbox"), "Name of the gateway in traces and metrics."),
    otel("gateway.otel.headers", KeyKind::TextTable, "Headers sent to the collector with every request."),
    key(
        "gateway.metrics.sentinel_names",
        KeyKind::Flag(false),
        "Show calls in `/metrics` under the names of Sentinel too: `sentinel_requests_total` and others.",
    ),
    key("gateway.log_level", one_of(LOG_LEVELS, "info"), "Verbosity of the log on stderr."),
    key("backends.NAME.command", KeyKind::Text(""), "The program of a local server; alone, without arguments."),
    key("backends.NAME.args", KeyKind::Texts, "Its arguments."),
    key("backends.NAME.env", KeyKind::TextTable, "Variables set for it."),
    key(
        "backends.NAME.env_pass",
        KeyKind::Texts,
        "Variables passed on to it from our own environment, besides PATH HOME USER LANG NODE_PATH NVM_DIR NVM_BIN TMPDIR TERM.",
    ),
    key(
        "backends.NAME.cwd",
        KeyKind::Text(""),
        "Its working folder; a relative one is taken from the configuration file's.",
    ),
    key(
        "backends.NAME.max_children",
        count(8, 1, 1024),
        "Maximum number of copies that run for sessions that cannot share one.",
    ),
    key(
        "backends.NAME.url",
        KeyKind::Text(""),
        "The address of a remote server, instead of `command`: `http://host:port/mcp`, or `ws://host:port/mcp` for WebSocket; `https://` and `wss://` for TLS.",
    ),
    key(
        "backends.NAME.urls",
        KeyKind::Addresses,
        "Several addresses of the same server, besides or instead of `url`. In the new era each request goes to any of them; in the old era a session stays at its address. With several, HTTP+SSE must be set with `transport`.",
    ),
    key(
        "backends.NAME.balance",
        one_of(Balance::WORDS, "round_robin"),
        "Rule that picks one of its `urls`: in turn, in turn by weight, the one with the fewest requests in flight, at random, or the first that is well. A failing one is skipped for `breaker.recovery`.",
    ),
    key(
        "backends.NAME.headers",
        KeyKind::TextTable,
        "Headers sent to it with every request, or with the handshake of a WebSocket.",
    ),
    key(
        "backends.NAME.transport",
        one_of(&["auto", "http", "sse"], "auto"),
        "Transport spoken at its `url`: Streamable HTTP or the older HTTP+SSE; `auto` detects it.",
    ),
    key(
        "backends.NAME.tls.ca_file",
        KeyKind::Text(""),
        "The authorities that sign its certificate, PEM; by default those the system trusts.",
    ),
    key("backends.NAME.tls.cert_file", KeyKind::Text(""), "Our own certificate, PEM, for a server that asks for one."),
    key("backends.NAME.tls.key_file", KeyKind::Text(""), "Its private key, PEM, without a passphrase."),
    key(
        "backends.NAME.tls.server_name",
        KeyKind::Text(""),
        "The name that its certificate must be for; by default the host of its `url`.",
    ),
    key("backends.NAME.tls.min_version", one_of(TLS_VERSIONS, "1.2"), "The oldest version of TLS spoken to it."),
    key(
        "backends.NAME.builtin",
        KeyKind::Text(""),
        "A server that is part of Signalbox, in place of `command`, `url` and `tape`. `tapes` has tools that answer each caller about its own recorded calls.",
    ),
    key(
        "backends.NAME.tape",
        KeyKind::Text(""),
        "A tape that answers as this server: a file, or the name of a recorded tape. Alone, or beside `command` or `url` with `play.live`.",
    ),
    key(
        "backends.NAME.play.backend",
        KeyKind::Text(""),
        "The backend on the tape whose own answers are played; by default what clients saw of all of them.",
    ),
    key("backends.NAME.play.session", count(0, 0, u64::MAX), "The only session that is played; 0 plays all."),
    key("backends.NAME.play.until", count(0, 0, u64::MAX), "The last call that is played, by its number; 0 plays all."),
    key(
        "backends.NAME.play.answers",
        KeyKind::Text(""),
        "A JSON file of answers that take the place of recorded ones, by the number of their call: `{\"7\": {\"result\": {…}}}`.",
    ),
    key(
        "backends.NAME.play.repeat",
        one_of(&["refuse", "last", "cycle"], "refuse"),
        "Behaviour after the last recorded answer to a call: an error, that answer again, or all of them from the first.",
    ),
    key(
        "backends.NAME.play.speed",
        KeyKind::Text("max"),
        "`max` has no pauses; a number keeps them, this many times as fast.",
    ),
    key(
        "backends.NAME.play.ignore",
        KeyKind::Texts,
        "Paths in requests that do not tell calls apart, such as `/params/arguments/timestamp`; `*` is any one member, `**` any number of them.",
    ),
    key(
        "backends.NAME.play.live",
        one_of(&["none", "new", "all"], "none"),
        "Calls that go to the `command` or `url` beside the tape: none, those that are not on the tape, or all.",
    ),
    key(
        "backends.NAME.tools.include",
        KeyKind::Texts,
        "Only tools that match one of these patterns (`*` and `?`) are offered.",
    ),
    key("backends.NAME.tools.exclude", KeyKind::Texts, "Tools that match one of these patterns are not offered."),
    key(
        "backends.NAME.callers",
        KeyKind::Texts,
        "Only callers whose principal matches one of these patterns see and reach it; by default all callers.",
    ),
    key("backends.NAME.category", KeyKind::Text(""), "Category of its tools, for listings."),
    key("backends.NAME.trust_level", one_of(TRUST_LEVELS, "community"), "Trust level of its tools."),
    key(
        "backends.NAME.seal",
        KeyKind::Flag(false),
        "The backend is another gateway: sign what is sent to it, and the names that are changed on the way.",
    ),
    key("backends.NAME.disabled", KeyKind::Flag(false), "Keep the settings, but do not start or offer it."),
    key(
        "backends.NAME.timeout",
        KeyKind::Seconds { default: None, max: DAY },
        "Time limit for one call; by default `gateway.call_timeout`.",
    ),
    key("backends.NAME.start_timeout", seconds(30.0, HOUR), "Time limit for its start and its handshake."),
    key(
        "backends.NAME.start",
        one_of(&["eager", "first_use"], "eager"),
        "When its process starts: with the gateway, or at the first call. Its lists are then known from the last run; a server whose lists are unknown is started once to read them.",
    ),
    key(
        "backends.NAME.idle_stop",
        KeyKind::Seconds { default: None, max: DAY },
        "Stop a process that has not been used for this long, but never one with a call, a subscription or a task; the next use starts it again. What it kept in memory for its sessions is lost. By default it keeps running.",
    ),
    key(
        "backends.NAME.breaker.enabled",
        KeyKind::Flag(true),
        "Stop calling the backend for a while when it keeps failing.",
    ),
    key(
        "backends.NAME.breaker.failures",
        count(5, 1, 1_000),
        "This many failures in a row open its breaker: calls are refused.",
    ),
    key(
        "backends.NAME.breaker.failure_percent",
        count(50, 1, 100),
        "This percentage of failed calls opens it too, counted from the first failure in `window`.",
    ),
    key(
        "backends.NAME.breaker.min_calls",
        count(10, 1, 100_000),
        "Minimum number of calls for `failure_percent` to apply.",
    ),
    key(
        "backends.NAME.breaker.window",
        seconds(60.0, DAY),
        "Time over which calls are counted together, starting with a failure.",
    ),
    key(
        "backends.NAME.breaker.recovery",
        seconds(30.0, DAY),
        "Time for which calls are refused before one passes as a trial.",
    ),
    key("backends.NAME.breaker.successes", count(3, 1, 1_000), "This many trials in a row must succeed to close it."),
    key("backends.NAME.ping.enabled", KeyKind::Flag(true), "Ping the backend at intervals."),
    key("backends.NAME.ping.interval", seconds(300.0, DAY), "Interval between two pings."),
    key("backends.NAME.ping.doubt_interval", seconds(30.0, DAY), "Interval at the start and after an unanswered ping."),
    key("backends.NAME.ping.timeout", seconds(5.0, HOUR), "Time limit for the answer to a ping."),
    key(
        "backends.NAME.ping.failures",
        count(3, 1, 1_000),
        "This many unanswered pings make it unwell: its connection is reopened, its process restarted.",
    ),
    key("backends.NAME.ping.successes", count(2, 1, 1_000), "This many answers make it well again."),
    key(
        "backends.NAME.retries",
        count(2, 0, 10),
        "Number of retries of a request that was certainly not processed, because no connection could be made. No other request is sent twice.",
    ),
    key(
        "backends.NAME.max_queue",
        count(1024, 1, 100_000),
        "Maximum number of calls that wait for it to start; more are refused.",
    ),
    key(
        "backends.NAME.slow_start",
        seconds(3.0, HOUR),
        "Time after a restart during which it gets few calls at a time.",
    ),
    key(
        "backends.NAME.restart",
        KeyKind::Flag(true),
        "Start its process again when it ends. If false, the backend then counts as failed until a reload.",
    ),
    key(
        "backends.NAME.max_restarts",
        count(5, 0, 1_000_000),
        "Number of restarts of its process before it counts as failed and waits for a reload; 0 never gives up. After a minute of running the count starts over.",
    ),
    key(
        "backends.NAME.questions",
        one_of(&["during_calls", "anytime"], "during_calls"),
        "When it may ask a client for sampling and elicitation: while a call or a task of that client runs there, or `anytime`. Servers of 2026-07-28 can only ask in answer to a call. Roots may be asked for at any time. See docs/messages.md.",
    ),
    key("backends.NAME.era", one_of(&["auto", "old", "new"], "auto"), "Era of MCP that it speaks; `auto` asks it."),
    key(
        "gateway.rule_files",
        KeyKind::Texts,
        "Rule files, in addition to the `[[rules]]` of this file; relative to it. Changed files are loaded automatically.",
    ),
    key(
        "gateway.rule_seed",
        KeyKind::Seed,
        "Seed of the rules' random numbers: with the same seed, the same calls meet the same faults. Without one, every start uses its own.",
    ),
    key("rules", KeyKind::Rules, "Rules: see docs/rules.md."),
    key(
        "tools.NAME.categories",
        KeyKind::Texts,
        "Categories of these tools, besides the `category` of their backend. The name of the table is a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`; all patterns that match a tool apply. See docs/dialect.md.",
    ),
    key(
        "tools.NAME.trust_level",
        KeyKind::Text(""),
        "Trust level of these tools: `system`, `verified`, `community` or `untrusted`; the lowest of several. By default that of their backend.",
    ),
    key(
        "tools.NAME.permissions",
        KeyKind::Texts,
        "Permissions that a caller needs to call them, such as `read:filesystem`.",
    ),
    key("tools.NAME.version", KeyKind::Text(""), "Their version; of several the last in the file."),
];
