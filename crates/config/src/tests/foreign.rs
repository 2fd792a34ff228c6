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
    let BackendTarget::Command { args, env, cwd, .. } = &backends[0].target else {
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
            "claude.json:9:7: mcpServers.\"my files\".timeout: not taken over: clients count it in seconds or in milliseconds; set `timeout` of the backend, in seconds",
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
    let BackendTarget::Command { program, args, .. } = &loaded.config.backends[0].target else {
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
            BackendTarget::Url { transport, .. } => transport,
            _ => panic!("{:?}", backends[0]),
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
    assert!(matches!(local.config.backends[0].target, BackendTarget::Command { .. }));
}

/// The texts of the warnings of an import, without their places.
fn notes(file: &str, text: &str) -> (String, Vec<String>) {
    let imported = import(text, Path::new(file), &env).expect("a good file");
    (imported.toml, imported.warnings.iter().map(|warning| warning.note.to_string()).collect())
}

#[test]
fn an_import_makes_variables_of_what_vs_code_asks_for() {
    let text = r#"{"inputs": [{"id": "github-token"}], "servers": {
      "gh": {"type": "stdio", "command": "gh", "args": ["--org", "${input:org}"], "env": {"T": "x${input:github-token}"}},
      "here": {"command": "x", "cwd": "${workspaceFolder}"},
      "folder": {"command": "x", "args": ["${file:x}"]}
    }}"#;
    let (toml, notes) = notes("mcp.json", text);
    assert!(toml.contains(r#"args = ["--org", "${ORG}"]"#) && toml.contains(r#"T = "x${GITHUB_TOKEN}""#), "{toml}");
    let expected = [
        "ignored 1 other top-level keys: `inputs`",
        "the client asks for `${input:org}`; here it is the environment variable `ORG`",
        "the client asks for `${input:github-token}`; here it is the environment variable `GITHUB_TOKEN`",
        "the environment variable `ORG` is not set now; set it before starting Signalbox",
        "the environment variable `workspaceFolder` is not set now; set it before starting Signalbox",
        "left out: `${file:x}` can only be filled in by the client this file was written for; use an environment variable, `${NAME}`",
    ];
    assert_eq!(notes, expected);
    assert!(!toml.contains("backends.folder"), "{toml}");
}

#[test]
fn an_import_reads_the_files_of_windsurf_zed_and_codex() {
    let windsurf = r#"{"mcpServers": {"a": {"serverUrl": "https://example.com/mcp", "headers": {"X-A": "1"}}}}"#;
    let (toml, told) = notes("mcp_config.json", windsurf);
    assert!(toml.contains("[backends.a]\nurl = \"https://example.com/mcp\"\n") && told.is_empty(), "{toml} {told:?}");
    let zed = r#"{"theme": "x", "context_servers": {
      "new": {"source": "custom", "command": "npx", "args": ["-y", "s"], "env": {}},
      "old": {"command": {"path": "py", "args": ["s.py"], "env": {"A": "1"}}, "settings": {}},
      "extension": {"source": "extension", "settings": {}}
    }}"#;
    let (toml, told) = notes("settings.json", zed);
    assert!(
        toml.contains("[backends.old]\ncommand = \"py\"\nargs = [\"s.py\"]\n\n[backends.old.env]\nA = \"1\"\n"),
        "{toml}"
    );
    assert!(toml.contains("[backends.new]") && told.iter().any(|one| one.starts_with("left out: ")), "{told:?}");
    let codex = "model = 'x'\n[mcp_servers.docs]\nurl = 'https://example.com/mcp'\nbearer_token_env_var = 'DOCS'\n\
                 http_headers = { X-A = '1' }\ntool_timeout_sec = 30\ndisabled_tools = ['drop']\n\
                 [mcp_servers.local]\ncommand = 'npx'\nstartup_timeout_sec = 2.5\nenv_vars = ['KEY']\nenabled = false\n";
    let (toml, told) = notes("config.toml", codex);
    let docs = "[backends.docs]\nurl = \"https://example.com/mcp\"\ntimeout = 30\n\n\
                [backends.docs.headers]\nAuthorization = \"Bearer ${DOCS}\"\nX-A = \"1\"\n\n\
                [backends.docs.tools]\nexclude = [\"drop\"]\n";
    assert!(toml.contains(docs), "{toml}");
    assert!(toml.contains("start_timeout = 2.5\nenv_pass = [\"KEY\"]\ndisabled = true\n"), "{toml}");
    assert!(told.iter().any(|one| one.contains("`DOCS` is not set now")), "{told:?}");
}

#[test]
fn an_import_leaves_out_the_gateway_itself() {
    let text = r#"{"mcpServers": {
      "own": {"command": "signalbox", "args": ["stdio", "-c", "/home/me/signalbox.toml"]},
      "web": {"type": "http", "url": "http://127.0.0.1:8080/mcp"},
      "tape": {"command": "signalbox", "args": ["talk.tape"]}
    }}"#;
    let (toml, told) = notes("mcp.json", text);
    assert_eq!(told, ["left out: it leads back to Signalbox itself"; 2]);
    assert!(toml.contains("[backends.tape]") && !toml.contains("[backends.own]"), "{toml}");
    let only = r#"{"mcpServers": {"own": {"command": "signalbox"}}}"#;
    assert!(import(only, Path::new("mcp.json"), &env).is_err());
}
