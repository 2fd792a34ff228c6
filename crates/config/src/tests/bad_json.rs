//! Client files that are refused, and what is said of each.

use super::message;

#[test]
fn bad_json() {
    for (text, expected) in JSON {
        assert_eq!(message("mcp.json", text), *expected, "{text}");
    }
}

const JSON: &[(&str, &str)] = &[
    ("{", "mcp.json:1:1: not valid JSON: EOF while parsing an object"),
    ("[]", "mcp.json:1:1: expected an object, found a list"),
    ("", "mcp.json:1:1: not valid JSON: EOF while parsing a value"),
    ("{}", "mcp.json:1:1: expected an object with `mcpServers` or `servers`; is this a client's MCP configuration?"),
    (
        r#"{"mcpservers": {}}"#,
        "mcp.json:1:1: expected an object with `mcpServers` or `servers`; is this a client's MCP configuration?",
    ),
    (r#"{"mcpServers": []}"#, "mcp.json:1:16: mcpServers: expected an object, found a list"),
    (r#"{"mcpServers": {"a": "npx"}}"#, "mcp.json:1:22: mcpServers.a: expected an object, found a string"),
    (
        r#"{"mcpServers": {"a": {}}}"#,
        "mcp.json:1:17: mcpServers.a: has neither `command` nor `url`; add `command` for a local server or `url` for a remote one",
    ),
    (
        r#"{"mcpServers": {"a": {"command": "x", "url": "http://h/"}}}"#,
        "mcp.json:1:17: mcpServers.a: has both `command` and `url`; keep `command` for a local server or `url` for a remote one",
    ),
    (
        r#"{"mcpServers": {"a": {"command": "x", "args": "y"}}}"#,
        "mcp.json:1:47: mcpServers.a.args: expected a list of strings, found a string",
    ),
    (
        r#"{"mcpServers": {"a": {"command": "x", "env": {"PORT": 8080}}}}"#,
        "mcp.json:1:55: mcpServers.a.env.PORT: expected a string, found a whole number",
    ),
    (
        r#"{"servers": {"a": {"type": "carrier-pigeon", "url": "http://h/"}}}"#,
        "mcp.json:1:28: servers.a.type: expected `stdio`, `http`, `streamable-http`, `sse` or `ws`, found `carrier-pigeon`",
    ),
    (
        r#"{"servers": {"a": {"type": "stdio", "url": "http://h/"}}}"#,
        "mcp.json:1:28: servers.a.type: `type` is `stdio`, which needs `command`; correct the type or the target",
    ),
    (
        r#"{"servers": {"a": {"type": "http", "command": "x"}}}"#,
        "mcp.json:1:28: servers.a.type: `type` is `http`, which needs `url`; correct the type or the target",
    ),
    (
        r#"{"servers": {"a": {"type": 1, "command": "x"}}}"#,
        "mcp.json:1:28: servers.a.type: expected `stdio`, `http`, `streamable-http`, `sse` or `ws`, found a whole number",
    ),
    (
        r#"{"servers": {"a": {"command": "x", "enabled": "no"}}}"#,
        "mcp.json:1:47: servers.a.enabled: expected `true` or `false`, found a string",
    ),
    (
        r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "${input:key}"}}}}"#,
        "mcp.json:1:52: mcpServers.a.env.A: `${input:key}` can only be filled in by the client this file was written for; use an environment variable, `${NAME}`",
    ),
    (
        r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "${NOPE}"}}}}"#,
        "mcp.json:1:52: mcpServers.a.env.A: the environment variable `NOPE` is not set; set it, or write `${NOPE:-default}`",
    ),
    (
        r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#,
        "mcp.json:1:40: mcpServers.a: duplicate key; keep one of them",
    ),
];
