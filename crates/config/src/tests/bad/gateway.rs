//! Tables of the gateway itself: `gateway` and `mcp.protocol`.

use super::assert_refused;

#[test]
fn gateway_tables_with_a_mistake_are_refused() {
    assert_refused(GATEWAY);
}

const GATEWAY: &[(&str, &str)] = &[
    (
        "[mcp.protocol.transport]\nprot = 1\n",
        "signalbox.toml:2:1: mcp.protocol.transport.prot: unknown key; did you mean `port`?",
    ),
    (
        "[gateway]\nx.y = 1\n",
        "signalbox.toml:2:1: gateway.x: unknown key; expected one of `instructions`, `first_list_wait`, `drain`, `call_timeout`, `park_timeout`, `max_connections`, `max_streams`, `max_in_flight`, `max_message`, `memory`, `allowed_origins`, `allowed_hosts`, `demo_root`, `watch_config`, `data_dir`, `otel`, `metrics`, `log_level`, `rule_files` or `rule_seed`",
    ),
    ("[mcp.protocol]\nversion = '2.0'\n", "signalbox.toml:2:11: mcp.protocol.version: expected `1.0.0`, found `2.0`"),
    (
        "[mcp.protocol.transport]\ntype = 'udp'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.type: expected `http`, `websocket` or `tcp`, found `udp`",
    ),
    (
        "[mcp.protocol.transport]\nhost = '0.0.0.0'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.host: listening beyond loopback needs authentication: `require_authentication`, or TLS with a `ca_file` and `client_auth = \"required\"`; otherwise use 127.0.0.1, ::1 or localhost",
    ),
    (
        "[mcp.protocol.transport]\nhost = 'box.example'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.host: expected an address like `127.0.0.1`, or `localhost`, found `box.example`",
    ),
    (
        "[mcp.protocol.transport]\nport = 70000\n",
        "signalbox.toml:2:8: mcp.protocol.transport.port: expected a whole number from 0 to 65535, found `70000`",
    ),
    (
        "[mcp.protocol.transport]\nport = -1\n",
        "signalbox.toml:2:8: mcp.protocol.transport.port: expected a whole number from 0 to 65535, found `-1`",
    ),
    (
        "[mcp.protocol.transport]\nport = '8080'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.port: expected a whole number from 0 to 65535, found a string",
    ),
    (
        "[mcp.protocol.transport]\nport = 80.0\n",
        "signalbox.toml:2:8: mcp.protocol.transport.port: expected a whole number from 0 to 65535, found a decimal number",
    ),
    (
        "[mcp.protocol.transport]\nport = 99999999999999999999999999999999999999999999\n",
        "signalbox.toml:2:8: mcp.protocol.transport.port: expected a whole number from 0 to 65535, found `170141183460469231731687303715884105727`",
    ),
    (
        "[mcp.protocol.transport]\npath = 'mcp'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.path: expected a path like `/mcp`, found `mcp`",
    ),
    (
        "[mcp.protocol.transport]\npath = '/mcp?x'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.path: expected a path like `/mcp`, found `/mcp?x`",
    ),
    (
        "[mcp.protocol.transport]\npath = '/sse'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.path: expected a path other than `/healthz`, `/readyz`, `/metrics`, `/anchors`, `/sse` and `/messages`, and not below `/api/`, `/auth/`, `/approve/`, `/relay/` or `/.well-known/`, found `/sse`",
    ),
    (
        "[mcp.protocol.transport]\npath = '/messages'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.path: expected a path other than `/healthz`, `/readyz`, `/metrics`, `/anchors`, `/sse` and `/messages`, and not below `/api/`, `/auth/`, `/approve/`, `/relay/` or `/.well-known/`, found `/messages`",
    ),
    (
        "[mcp.protocol.transport]\npath = '/healthz'\n",
        "signalbox.toml:2:8: mcp.protocol.transport.path: expected a path other than `/healthz`, `/readyz`, `/metrics`, `/anchors`, `/sse` and `/messages`, and not below `/api/`, `/auth/`, `/approve/`, `/relay/` or `/.well-known/`, found `/healthz`",
    ),
    (
        "[mcp.protocol.transport.tls]\nenabled = false\ncert_file = 1\n",
        "signalbox.toml:3:13: mcp.protocol.transport.tls.cert_file: expected a string, found a whole number",
    ),
    (
        "[mcp.protocol.security]\nsession_timeout = -1\n",
        "signalbox.toml:2:19: mcp.protocol.security.session_timeout: expected a time such as \"30s\", from 0.001 to 2592000 seconds, found `-1`",
    ),
    (
        "[mcp.protocol.security]\nmax_concurrent_sessions = 0\n",
        "signalbox.toml:2:27: mcp.protocol.security.max_concurrent_sessions: expected a whole number from 1 to 1000000, found `0`",
    ),
    (
        "[mcp.protocol.security]\nerror_detail = 'some'\n",
        "signalbox.toml:2:16: mcp.protocol.security.error_detail: expected `by_trust` or `full`, found `some`",
    ),
    (
        "[mcp.protocol.rate_limits]\nuser_requests_per_second = -1\n",
        "signalbox.toml:2:28: mcp.protocol.rate_limits.user_requests_per_second: expected a whole number from 0 to 1000000000, found `-1`",
    ),
    (
        "[mcp.protocol.performance]\nexecution_time_warning = 0\n",
        "signalbox.toml:2:26: mcp.protocol.performance.execution_time_warning: expected a time such as \"30s\", from 0.001 to 86400 seconds, found `0`",
    ),
    (
        "[mcp.protocol.audit]\nretention_days = 0\n",
        "signalbox.toml:2:18: mcp.protocol.audit.retention_days: expected a whole number from 1 to 36500, found `0`",
    ),
    (
        "[mcp.protocol.audit]\nretention_days = '90d'\n",
        "signalbox.toml:2:18: mcp.protocol.audit.retention_days: expected a whole number from 1 to 36500, found a string",
    ),
    (
        "[mcp.protocol.audit]\nspool_max = 1000\n",
        "signalbox.toml:2:13: mcp.protocol.audit.spool_max: expected a whole number from 65536 to 1099511627776, found `1000`",
    ),
    (
        "[mcp.protocol.audit]\nenabled = true\n[mcp.protocol.audit.sinks]\nfile_sink = false\n",
        "signalbox.toml:2:1: mcp.protocol.audit.enabled: needs a sink: see `mcp.protocol.audit.sinks`",
    ),
    (
        "[mcp.protocol.audit]\nrequired = [\"disk\"]\n",
        "signalbox.toml:2:13: mcp.protocol.audit.required[0]: expected `file`, `database`, `remote` or `syslog`, found `disk`",
    ),
    (
        "[mcp.protocol.audit]\nrequired = [\"remote\"]\n",
        "signalbox.toml:2:13: mcp.protocol.audit.required[0]: expected a sink that is used, found `remote`",
    ),
    (
        "[mcp.protocol.audit.sinks]\nremote_sink = true\n",
        "signalbox.toml:2:1: mcp.protocol.audit.sinks.remote_sink: needs `remote_endpoint`",
    ),
    (
        "[mcp.protocol.audit.sinks]\ndatabase_sink = true\n",
        "signalbox.toml:2:1: mcp.protocol.audit.sinks.database_sink: needs `database_url`",
    ),
    (
        "[mcp.protocol.audit.sinks]\ndatabase_url = \"mysql://a:b@c\"\n",
        "signalbox.toml:2:16: mcp.protocol.audit.sinks.database_url: expected an address like `postgresql://user@host/database`, or `sqlite:PATH`",
    ),
    (
        "[mcp.protocol.audit.sinks]\nsyslog = \"log\"\n",
        "signalbox.toml:2:10: mcp.protocol.audit.sinks.syslog: expected `udp://host:514`, `tcp://host:514` or `unix:///dev/log`, found `log`",
    ),
    (
        "[mcp.protocol.audit.sinks]\nremote_endpoint = \"ftp://a\"\n",
        "signalbox.toml:2:19: mcp.protocol.audit.sinks.remote_endpoint: expected an address like `https://audit.example.com/api/events`, found `ftp://a`",
    ),
    (
        "[gateway]\nmax_message = 10\n",
        "signalbox.toml:2:15: gateway.max_message: expected a whole number from 1024 to 1073741824, found `10`",
    ),
    (
        "[gateway]\nfirst_list_wait = 0.0\n",
        "signalbox.toml:2:19: gateway.first_list_wait: expected a time such as \"30s\", from 0.001 to 3600 seconds, found `0`",
    ),
    (
        "[gateway]\nallowed_origins = ['*']\n",
        "signalbox.toml:2:20: gateway.allowed_origins[0]: expected an origin like `https://app.example:8443`, found `*`",
    ),
    (
        "[gateway]\nallowed_origins = ['https://a.example/']\n",
        "signalbox.toml:2:20: gateway.allowed_origins[0]: expected an origin like `https://app.example:8443`, found `https://a.example/`",
    ),
    (
        "[gateway]\nallowed_hosts = ['http://a']\n",
        "signalbox.toml:2:18: gateway.allowed_hosts[0]: expected a host like `box.example` or `box.example:8080`, found `http://a`",
    ),
    (
        "[gateway]\nlog_level = 'loud'\n",
        "signalbox.toml:2:13: gateway.log_level: expected `error`, `warn`, `info`, `debug` or `trace`, found `loud`",
    ),
    (
        "[gateway]\ndemo_root = ''\n",
        "signalbox.toml:2:13: gateway.demo_root: expected the path of a folder, found an empty string",
    ),
];
