//! Tables of backends.

use super::assert_refused;

#[test]
fn backends_with_a_mistake_are_refused() {
    assert_refused(BACKENDS);
}

const BACKENDS: &[(&str, &str)] = &[
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
];
