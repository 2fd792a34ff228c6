//! Bad files, each with the exact message it gives.

use super::message;

#[test]
fn bad_toml() {
    for (text, expected) in TOML {
        assert_eq!(message("signalbox.toml", text), *expected, "{text}");
    }
}

const TOML: &[(&str, &str)] = &[
    (
        "[record]\npostgres = 'postgres://ann:s3cret@db/t?sslmode=always'\n",
        "signalbox.toml:2:12: record.postgres: cannot be used: sslmode is one of `disable`, `prefer`, `require`, `verify-ca` and `verify-full`",
    ),
    (
        "[record]\npostgres = 'postgres://ann:s3cret@db/t?sslmode=verify-full'\n",
        "signalbox.toml:2:12: record.postgres: cannot be used: sslmode=verify-ca and sslmode=verify-full need sslrootcert, a file with the authorities that sign servers' certificates",
    ),
    (
        "[backends.ask]\nbuiltin = 'tape'\n",
        "signalbox.toml:2:11: backends.ask.builtin: expected `tapes`, the only server that can be built in, found `tape`",
    ),
    (
        "[backends.ask]\nbuiltin = 'tapes'\ncommand = 'a'\n",
        "signalbox.toml:2:1: backends.ask.builtin: cannot be combined with `command`; remove one",
    ),
    (
        "[backends.ask]\nbuiltin = 'tapes'\nurl = 'http://h/'\n",
        "signalbox.toml:2:1: backends.ask.builtin: cannot be combined with `url`; remove one",
    ),
    (
        "[backends.ask]\nbuiltin = 'tapes'\ntape = 'x.tape'\n",
        "signalbox.toml:2:1: backends.ask.builtin: cannot be combined with `tape`; remove one",
    ),
    (
        "[backends.ask]\nbuiltin = 'tapes'\nargs = ['x']\n",
        "signalbox.toml:3:1: backends.ask.args: applies only with `command`; remove it",
    ),
    (
        "[backends.files]\ncommand = 'a'\n  comand = 'b'\n",
        "signalbox.toml:3:3: backends.files.comand: unknown key; did you mean `command`?",
    ),
    ("[backend.files]\ncommand = 'a'\n", "signalbox.toml:1:2: backend: unknown key; did you mean `backends`?"),
    (
        "colour = 1\n",
        "signalbox.toml:1:1: colour: unknown key; expected one of `mcp`, `gateway`, `backends`, `rules`, `tools`, `permissions`, `roles`, `kill_switch`, `constraints`, `limits`, `record`, `relay`, `seal`, `auth` or `guard`",
    ),
    (
        "[mcp.protocol.transport]\nprot = 1\n",
        "signalbox.toml:2:1: mcp.protocol.transport.prot: unknown key; did you mean `port`?",
    ),
    (
        "[gateway]\nx.y = 1\n",
        "signalbox.toml:2:1: gateway.x: unknown key; expected one of `instructions`, `first_list_wait`, `drain`, `call_timeout`, `park_timeout`, `max_connections`, `max_streams`, `max_in_flight`, `max_message`, `memory`, `allowed_origins`, `allowed_hosts`, `demo_root`, `watch_config`, `data_dir`, `otel`, `metrics`, `log_level`, `rule_files` or `rule_seed`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ntools = { incldue = ['a'] }\n",
        "signalbox.toml:3:11: backends.a.tools.incldue: unknown key; did you mean `include`?",
    ),
    ("[backends.a]\ncommand = 3\n", "signalbox.toml:2:11: backends.a.command: expected a string, found a whole number"),
    (
        "[backends.a]\ncommand = ['npx', '-y']\n",
        "signalbox.toml:2:11: backends.a.command: expected a program as a string, with its arguments in `args`, found a list",
    ),
    (
        "[backends.a]\ncommand = 'x'\nargs = '-y'\n",
        "signalbox.toml:3:8: backends.a.args: expected a list of strings, found a string",
    ),
    (
        "[backends.a]\ncommand = 'x'\nargs = ['-y', 2]\n",
        "signalbox.toml:3:15: backends.a.args[1]: expected a string, found a whole number",
    ),
    (
        "[backends.a]\ncommand = 'x'\nenv = ['A=1']\n",
        "signalbox.toml:3:7: backends.a.env: expected a table of strings, found a list",
    ),
    (
        "[backends.a.env]\nTOKEN = 12345\n[backends.a]\ncommand = 'x'\n",
        "signalbox.toml:2:9: backends.a.env.TOKEN: expected a string, found a whole number",
    ),
    (
        "[backends.a]\ncommand = 'x'\ndisabled = 'yes'\n",
        "signalbox.toml:3:12: backends.a.disabled: expected `true` or `false`, found a string",
    ),
    // SO-9: the bounds of a tape.
    (
        "[record]\nmax_tape_size = 0\n",
        "signalbox.toml:2:17: record.max_tape_size: expected a whole number from 65536 to 1099511627776, found `0`",
    ),
    (
        "[record]\nmax_tape_size = 65535\n",
        "signalbox.toml:2:17: record.max_tape_size: expected a whole number from 65536 to 1099511627776, found `65535`",
    ),
    (
        "[record]\nmax_tape_size = '100 MB'\n",
        "signalbox.toml:2:17: record.max_tape_size: expected a whole number from 65536 to 1099511627776, found a string",
    ),
    (
        "[record]\nmax_tape_age = 0\n",
        "signalbox.toml:2:16: record.max_tape_age: expected a time such as \"30s\", from 0.001 to 2592000 seconds, found `0`",
    ),
    (
        "[record]\nmax_tape_age = '59s'\n",
        "signalbox.toml:2:1: record.max_tape_age: expected a time of at least \"1m\", found `59s`",
    ),
    (
        "[record]\nbaseline = 'x.tape'\nbaseline_ignore = ['/result/at', 'id']\n",
        "signalbox.toml:3:34: record.baseline_ignore[1]: expected a path such as `/result/content/*/text`, found `id`",
    ),
    (
        "[record]\nbaseline_ignore = ['/result/at']\n",
        "signalbox.toml:2:1: record.baseline_ignore: applies only with `baseline`; remove it",
    ),
    (
        "[record]\nbaseline = 'x.tape'\nbaseline_tolerance = 2\n",
        "signalbox.toml:3:22: record.baseline_tolerance: expected a number from 0 to 1, found `2`",
    ),
    ("[[backends]]\nname = 'a'\n", "signalbox.toml:1:1: backends: expected a table, found a list"),
    ("backends = 1979-05-27\n", "signalbox.toml:1:12: backends: expected a table, found a date or time"),
    ("[backends]\na = 'npx'\n", "signalbox.toml:2:5: backends.a: expected a table, found a string"),
    (
        "[backends.a]\ncommand = 'x'\nurl = 'http://localhost/'\n",
        "signalbox.toml:1:11: backends.a: has both `command` and `url`; keep `command` for a local server or `url` for a remote one",
    ),
    (
        "\n[backends.a]\ncategory = 'x'\n",
        "signalbox.toml:2:11: backends.a: has neither `command` nor `url`; add `command` for a local server or `url` for a remote one",
    ),
    (
        "[backends.a]\ncommand = ''\n",
        "signalbox.toml:2:11: backends.a.command: expected a program to start, found an empty string",
    ),
    (
        "[backends.a]\ncommand = \"x\\u0000\"\n",
        "signalbox.toml:2:11: backends.a.command: expected a string without NUL characters",
    ),
    (
        "[backends.a__b]\ncommand = 'x'\n",
        "signalbox.toml:1:11: backends.a__b: bad backend name; use 1 to 32 of `A-Z a-z 0-9 _ . -`, with a letter or digit, without `__`, and not ending in `_`",
    ),
    (
        "[backends.'a+b']\ncommand = 'x'\n",
        r#"signalbox.toml:1:11: backends."a+b": bad backend name; use 1 to 32 of `A-Z a-z 0-9 _ . -`, with a letter or digit, without `__`, and not ending in `_`"#,
    ),
    (
        "[backends.'..']\ncommand = 'x'\n",
        r#"signalbox.toml:1:11: backends."..": bad backend name; use 1 to 32 of `A-Z a-z 0-9 _ . -`, with a letter or digit, without `__`, and not ending in `_`"#,
    ),
    (
        "[backends.a_]\ncommand = 'x'\n",
        "signalbox.toml:1:11: backends.a_: bad backend name; use 1 to 32 of `A-Z a-z 0-9 _ . -`, with a letter or digit, without `__`, and not ending in `_`",
    ),
    (
        "[backends.abcdefghijklmnopqrstuvwxyz0123456]\ncommand = 'x'\n",
        "signalbox.toml:1:11: backends.abcdefghijklmnopqrstuvwxyz0123456: bad backend name; use 1 to 32 of `A-Z a-z 0-9 _ . -`, with a letter or digit, without `__`, and not ending in `_`",
    ),
    (
        "[backends.'']\ncommand = 'x'\n",
        r#"signalbox.toml:1:11: backends."": bad backend name; use 1 to 32 of `A-Z a-z 0-9 _ . -`, with a letter or digit, without `__`, and not ending in `_`"#,
    ),
    (
        "[backends.a]\ncommand = 'x'\nheaders = { a = 'b' }\n",
        "signalbox.toml:3:1: backends.a.headers: applies only with `url`; remove it",
    ),
    (
        "[backends.a]\nurl = 'http://h/'\nargs = []\n",
        "signalbox.toml:3:1: backends.a.args: applies only with `command`; remove it",
    ),
    (
        "[backends.a]\nurl = 'http://h/'\nmax_children = 2\n",
        "signalbox.toml:3:1: backends.a.max_children: applies only with `command`; remove it",
    ),
    (
        "[backends.a]\nurl = 'ws://h/mcp'\nheaders = { Sec-WebSocket-Key = 'x' }\n",
        "signalbox.toml:3:13: backends.a.headers.Sec-WebSocket-Key: the gateway sets this header itself; remove it",
    ),
    (
        "[backends.a]\nurl = 'ftp://h/mcp'\n",
        "signalbox.toml:2:7: backends.a.url: expected an address like `http://host:port/mcp` or `ws://host:port/mcp`",
    ),
    (
        "[backends.a]\nurl = 'localhost:80'\n",
        "signalbox.toml:2:7: backends.a.url: expected an address like `http://host:port/mcp` or `ws://host:port/mcp`",
    ),
    (
        "[backends.a]\nurl = '/mcp'\n",
        "signalbox.toml:2:7: backends.a.url: expected an address like `http://host:port/mcp` or `ws://host:port/mcp`",
    ),
    (
        "[backends.a]\nurl = 'http://'\n",
        "signalbox.toml:2:7: backends.a.url: expected an address like `http://host:port/mcp` or `ws://host:port/mcp`",
    ),
    (
        "[backends.a]\nurl = 'http://h:99999/'\n",
        "signalbox.toml:2:7: backends.a.url: expected an address like `http://host:port/mcp` or `ws://host:port/mcp`",
    ),
    (
        "[backends.a]\nurl = 'http://h:/'\n",
        "signalbox.toml:2:7: backends.a.url: expected an address like `http://host:port/mcp` or `ws://host:port/mcp`",
    ),
    (
        "[backends.a]\nurl = 'http://h/#x'\n",
        "signalbox.toml:2:7: backends.a.url: expected an address like `http://host:port/mcp` or `ws://host:port/mcp`",
    ),
    (
        "[backends.a]\nurl = 'http://ann:s3cret@h/'\n",
        "signalbox.toml:2:7: backends.a.url: expected an address without user name and password; put them into an `authorization` header",
    ),
    (
        "[backends.a]\nurl = 'http://h/'\nheaders = { Host = 'x' }\n",
        "signalbox.toml:3:13: backends.a.headers.Host: the gateway sets this header itself; remove it",
    ),
    (
        "[backends.a]\nurl = 'http://h/'\nheaders = { Mcp-Session-Id = 'x' }\n",
        "signalbox.toml:3:13: backends.a.headers.Mcp-Session-Id: the gateway sets this header itself; remove it",
    ),
    (
        "[backends.a]\nurl = 'http://h/'\nheaders = { transfer-encoding = 'x' }\n",
        "signalbox.toml:3:13: backends.a.headers.transfer-encoding: the gateway sets this header itself; remove it",
    ),
    (
        "[backends.a]\nurl = 'http://h/'\nheaders = { 'a b' = 'x' }\n",
        r#"signalbox.toml:3:13: backends.a.headers."a b": expected a header name of letters, digits and `-`, found `a b`"#,
    ),
    (
        "[backends.a]\nurl = 'http://h/'\nheaders = { x = '${LINES}' }\n",
        "signalbox.toml:3:17: backends.a.headers.x: expected a header value of visible ASCII characters on one line",
    ),
    (
        "[backends.a]\nurl = 'http://h/'\nheaders = { x-a = '1', X-A = '2' }\n",
        "signalbox.toml:3:24: backends.a.headers.X-A: duplicate key; keep one of them",
    ),
    (
        "[backends.a]\ncommand = '${NOPE}/x'\n",
        "signalbox.toml:2:11: backends.a.command: the environment variable `NOPE` is not set; set it, or write `${NOPE:-default}`",
    ),
    (
        "[backends.a]\ncommand = 'x'\nargs = ['a', '${NOPE}']\n",
        "signalbox.toml:3:14: backends.a.args[1]: the environment variable `NOPE` is not set; set it, or write `${NOPE:-default}`",
    ),
    (
        "[backends.a]\ncommand = 'x'\nenv = { A = '${NO PE}' }\n",
        "signalbox.toml:3:13: backends.a.env.A: expected `${NAME}` with letters, digits and `_`; in signalbox.toml `$${` is a literal `${`",
    ),
    (
        "[backends.a]\ncommand = 'x'\nenv = { A = '${input:key}' }\n",
        "signalbox.toml:3:13: backends.a.env.A: `${input:key}` can only be filled in by the client this file was written for; use an environment variable, `${NAME}`",
    ),
    (
        "[backends.a]\ncommand = 'x'\nenv = { 'A=B' = '1' }\n",
        r#"signalbox.toml:3:9: backends.a.env."A=B": expected the name of an environment variable, found `A=B`"#,
    ),
    (
        "[backends.a]\ncommand = 'x'\nenv_pass = ['']\n",
        "signalbox.toml:3:13: backends.a.env_pass[0]: expected the name of an environment variable, found an empty string",
    ),
    (
        "[backends.a]\ncommand = 'x'\ncwd = '~/x'\n",
        "signalbox.toml:3:7: backends.a.cwd: expected a path with `${HOME}` for `~`, found `~/x`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ntrust_level = 'full'\n",
        "signalbox.toml:3:15: backends.a.trust_level: expected `system`, `verified`, `community` or `untrusted`, found `full`",
    ),
    (
        "[backends.a]\ncommand = 'x'\nera = '${TOKEN}'\n",
        "signalbox.toml:3:7: backends.a.era: expected `auto`, `old` or `new`, found `${TOKEN}`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ntimeout = 0\n",
        "signalbox.toml:3:11: backends.a.timeout: expected a time such as \"30s\", from 0.001 to 86400 seconds, found `0`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ntimeout = nan\n",
        "signalbox.toml:3:11: backends.a.timeout: expected a time such as \"30s\", from 0.001 to 86400 seconds, found `NaN`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ntimeout = 'soon'\n",
        "signalbox.toml:3:11: backends.a.timeout: expected a time such as \"30s\", from 0.001 to 86400 seconds, found `soon`",
    ),
    (
        "[backends.a]\ncommand = 'x'\nstart_timeout = 1e9\n",
        "signalbox.toml:3:17: backends.a.start_timeout: expected a time such as \"30s\", from 0.001 to 3600 seconds, found `1000000000`",
    ),
    (
        "[backends.a]\ncommand = 'x'\nmax_children = 0\n",
        "signalbox.toml:3:16: backends.a.max_children: expected a whole number from 1 to 1024, found `0`",
    ),
    (
        "[backends.a]\ncommand = 'x'\nbreaker = { failure_percent = 101 }\n",
        "signalbox.toml:3:31: backends.a.breaker.failure_percent: expected a whole number from 1 to 100, found `101`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ntools = { include = [] }\n",
        "signalbox.toml:3:11: backends.a.tools.include: expected at least one pattern; to offer no tools, exclude `*`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ntools = { exclude = ['a', ''] }\n",
        "signalbox.toml:3:27: backends.a.tools.exclude[1]: expected a pattern like `read_*`, found an empty string",
    ),
    (
        "[backends.a]\ncommand = 'x'\ncategory = ''\n",
        "signalbox.toml:3:12: backends.a.category: expected a word of 1 to 64 bytes, found an empty string",
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
        "[backends.a]\nurl = 'http://h/'\ntransport = 'pigeon'\n",
        "signalbox.toml:3:13: backends.a.transport: expected `auto`, `http` or `sse`, found `pigeon`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ntransport = 'sse'\n",
        "signalbox.toml:3:1: backends.a.transport: applies only with `url`; remove it",
    ),
    (
        "[backends.a]\nurl = 'http://h/'\ntransport = 'sse'\nera = 'new'\n",
        "signalbox.toml:4:7: backends.a.era: expected `auto` or `old`, as HTTP+SSE belongs to the old era, found `new`",
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
        "[tools.'files/']\nversion = '1'\n",
        "signalbox.toml:1:8: tools.\"files/\": expected a pattern `BACKEND` or `BACKEND/NAME`, with `*` and `?`",
    ),
    (
        "[tools.files]\ntrust_level = 'full'\n",
        "signalbox.toml:2:15: tools.files.trust_level: expected `system`, `verified`, `community` or `untrusted`, found `full`",
    ),
    (
        "[tools.files]\npermissions = ['read']\n",
        "signalbox.toml:2:16: tools.files.permissions[0]: expected a permission like `read:filesystem`, found `read`",
    ),
    (
        "[tools.files]\ncategories = ['']\n",
        "signalbox.toml:2:15: tools.files.categories[0]: expected a word of 1 to 64 bytes, found an empty string",
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
    ("a = \n", r#"signalbox.toml:1:5: not valid TOML: expected a value; strings need quotes, like "text""#),
    ("[backends.a\ncommand = 1\n", "signalbox.toml:1:12: not valid TOML: unclosed table, expected `]`"),
    ("[backends.a]\ncommand = \"x\n", r#"signalbox.toml:2:13: not valid TOML: invalid basic string, expected `"`"#),
    (
        "[backends.a]\ncommand = npx\n",
        r#"signalbox.toml:2:11: not valid TOML: expected a value; strings need quotes, like "text""#,
    ),
    (
        "[backends.a]\ncommand = 'x'\nargs = ['a'\ncommand = 'y'\n",
        "signalbox.toml:4:1: not valid TOML: missing comma between array elements, expected `,`",
    ),
    (
        "[backends.a]\ncommand = 'x'\ncommand = 'y'\n",
        "signalbox.toml:3:1: backends.a.command: duplicate key; keep one of them",
    ),
    (
        "[backends.a]\ncommand = 'x'\n[backends.a]\nurl = 'http://h/'\n",
        "signalbox.toml:3:11: backends.a: duplicate key; keep one of them",
    ),
    (
        "[backends.a]\ncommand = 'x'\n[backends.a.env]\nA = '1'\nA = '2'\n",
        "signalbox.toml:5:1: backends.a.env.A: duplicate key; keep one of them",
    ),
    (
        "\"\\u001b[31m\" = 1\n",
        "signalbox.toml:1:1: \"\\u{1b}[31m\": unknown key; expected one of `mcp`, `gateway`, `backends`, `rules`, `tools`, `permissions`, `roles`, `kill_switch`, `constraints`, `limits`, `record`, `relay`, `seal`, `auth` or `guard`",
    ),
];
