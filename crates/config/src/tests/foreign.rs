//! Files of other clients, loaded as they are and imported.

use super::*;
use crate::import::import;

pub(super) const CLAUDE: &str = r#"{
  "numStartups": 3,
  "mcpServers": {
    "my files": {
      "command": "npx",
      "args": ["-y", "server-filesystem", "$HOME", "$${TOKEN}"],
      "env": { "API_KEY": "ghp_literal", "PLAIN": "1", "TOKEN": "${TOKEN}" },
      "autoApprove": ["read"],
      "timeout": 60000,
      "cwd": null
    },
    "remote": {
      "type": "streamable-http",
      "url": "http://localhost:9000/mcp",
      "args": [],
      "headers": { "Accept": "*/*", "Authorization": "Bearer abc", "X-Quote": "a \"b\" \\c" }
    },
    "old": { "type": "sse", "url": "http://localhost/sse", "disabled": true },
    "off": { "command": "x", "enabled": false, "disabled": false }
  },
  "projects": { "deep": [1, { "x": null }], "deep ": 1 }
}"#;

#[test]
fn a_claude_file_as_it_is() {
    let loaded = load("claude.json", CLAUDE).expect("a good file");
    let backends = &loaded.config.backends;
    let summary: Vec<(&str, bool)> = backends.iter().map(|backend| (backend.name.as_str(), backend.disabled)).collect();
    assert_eq!(summary, [("my-files", false), ("remote", false), ("old", true), ("off", true)]);
    let Target::Command { args, env, cwd, .. } = &backends[0].target else {
        panic!("{:?}", backends[0]);
    };
    assert_eq!(args, &["-y", "server-filesystem", "$HOME", "$s3cret"]);
    assert_eq!(env[2], ("TOKEN".to_owned(), Secret::new("s3cret")));
    assert_eq!(*cwd, None);
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "claude.json:2:3: ignored 2 other top-level keys: `numStartups`, `projects`",
            "claude.json:4:5: mcpServers.\"my files\": the name cannot be used in tool names; it is called `my-files` here",
            "claude.json:8:7: mcpServers.\"my files\".autoApprove: ignored: Signalbox has no such setting",
            "claude.json:9:7: mcpServers.\"my files\".timeout: ignored: Signalbox has no such setting",
            "claude.json:15:7: mcpServers.remote.args: ignored: applies only with `command`",
            "claude.json:16:20: mcpServers.remote.headers.Accept: ignored: the gateway sets this header itself",
        ]
    );
}

#[test]
fn a_vs_code_file_as_it_is() {
    let text = r#"// servers for this workspace
{
  "servers": {
    /* the local one */
    "local": { "type": "stdio", "command": "${env:TOKEN}", "args": ["a//b",], },
    "web": { "type": "http", "url": "http://localhost/mcp" },
  },
}"#;
    let loaded = load("mcp.json", text).expect("a good file");
    assert_eq!(loaded.warnings, []);
    let Target::Command { program, args, .. } = &loaded.config.backends[0].target else {
        panic!("{:?}", loaded.config.backends[0]);
    };
    assert_eq!((program.as_str(), args.as_slice()), ("s3cret", ["a//b".to_owned()].as_slice()));
    assert_eq!(loaded.config.backends[1].name, "web");
}

#[test]
fn json_is_known_by_its_content_too() {
    assert_eq!(load("config", " {\"mcpServers\": {}}").expect("a good file").config.backends, []);
}

pub(super) const IMPORTED: &str = r#"# Imported by `signalbox import` from "claude.json".
# `${NAME}` is filled in from the environment at start.

# Called "my files" there.
[backends.my-files]
command = "npx"
args = ["-y", "server-filesystem", "$HOME", "$$${TOKEN}"]

[backends.my-files.env]
API_KEY = "ghp_literal"
PLAIN = "1"
TOKEN = "${TOKEN}"

[backends.remote]
url = "http://localhost:9000/mcp"
transport = "http"

[backends.remote.headers]
Authorization = "Bearer abc"
X-Quote = "a \"b\" \\c"

[backends.old]
url = "http://localhost/sse"
transport = "sse"
disabled = true

[backends.off]
command = "x"
disabled = true
"#;

#[test]
fn an_import_loads_to_the_same_backends() {
    let imported = import(CLAUDE, Path::new("/x/claude.json"), &env).expect("a good file");
    assert_eq!(imported.toml, IMPORTED);
    let direct = load("claude.json", CLAUDE).expect("a good file").config;
    assert_eq!(good(&imported.toml).backends, direct.backends);
    let secrets: Vec<String> = imported
        .warnings
        .iter()
        .filter(|warning| matches!(warning.note, Note::PlainSecret(_)))
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        secrets,
        [
            "/x/claude.json:7:27: mcpServers.\"my files\".env.API_KEY: looks like a secret in plain text; put it into the environment and write `${API_KEY}`",
            "/x/claude.json:16:54: mcpServers.remote.headers.Authorization: looks like a secret in plain text; put it into the environment and write `${REMOTE_AUTHORIZATION}`",
        ]
    );
}

#[test]
fn an_import_keeps_addresses_with_tls_and_warns_of_unset_variables() {
    let text = r#"{"mcpServers": {
  "web": { "url": "https://example.com/mcp", "disabled": false },
  "old": { "type": "sse", "url": "https://example.com/sse" },
  "key": { "command": "x\u0001\n", "env": { "A": "${NOPE}" } }
}}"#;
    let imported = import(text, Path::new("mcp.json"), &env).expect("a good file");
    let warnings: Vec<String> = imported.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "mcp.json:4:50: mcpServers.key.env.A: the environment variable `NOPE` is not set now; set it before starting Signalbox",
        ]
    );
    let set = |name: &str| Some(format!("/{name}"));
    let loaded = Config::parse(Path::new("x.toml"), &imported.toml, &set, &Overrides::default());
    let backends = loaded.expect("a good file").config.backends;
    assert!(backends.iter().all(|backend| !backend.disabled));
    assert!(import("{\"mcpServers\": {\"a\": {}}}", Path::new("mcp.json"), &env).is_err());
}

#[test]
fn what_is_spoken_at_an_address_is_configured_or_found_out() {
    let spoken = |file: &str, text: &str| {
        let backends = load(file, text).expect("a good file").config.backends;
        match backends[0].target {
            Target::Url { transport, .. } => transport,
            Target::Command { .. } | Target::Tape => panic!("{:?}", backends[0]),
        }
    };
    let own = |more: &str| spoken("a.toml", &format!("[backends.a]\nurl = 'http://h/x'\n{more}"));
    assert_eq!(own(""), UrlTransport::Auto);
    assert_eq!(own("transport = 'auto'"), UrlTransport::Auto);
    assert_eq!(own("transport = 'http'\nera = 'new'"), UrlTransport::Http);
    assert_eq!(own("transport = 'sse'\nera = 'old'"), UrlTransport::Sse);
    let foreign =
        |kind: &str| spoken("a.json", &format!(r#"{{"mcpServers": {{"a": {{{kind}"url": "http://h/x"}}}}}}"#));
    assert_eq!(foreign(""), UrlTransport::Auto);
    for (kind, expected) in
        [("http", UrlTransport::Http), ("streamable-http", UrlTransport::Http), ("streamableHttp", UrlTransport::Http)]
    {
        assert_eq!(foreign(&format!(r#""type": "{kind}", "#)), expected);
    }
    assert_eq!(foreign(r#""type": "sse", "#), UrlTransport::Sse);
    for kind in ["ws", "websocket"] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"type": "{kind}", "url": "ws://h/x"}}}}}}"#);
        assert_eq!(spoken("a.json", &text), UrlTransport::Auto);
    }
    let both = load("a.toml", "[backends.a]\nurl = 'ws://h/x'\ntransport = 'sse'\n").expect_err("two transports");
    assert!(both.to_string().contains("a `ws://` address says itself"), "{both}");
    let local = load("a.json", r#"{"mcpServers": {"a": {"type": "stdio", "command": "x"}}}"#).expect("a good file");
    assert!(matches!(local.config.backends[0].target, Target::Command { .. }));
}
