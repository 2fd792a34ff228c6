//! Whole files, good and bad, with what loading makes of them.

mod bad;
mod bad_json;
mod failing;
mod foreign;
mod layers;
mod tls;
#[cfg(feature = "otel")]
mod traces;

use super::*;
use foreign::{CLAUDE, IMPORTED};
use signalbox_engine::standing::TrustLevel;
use signalbox_runtime::{Lifetime, StartPolicy};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn env(name: &str) -> Option<String> {
    let value = match name {
        "HOME" => "/home/ann",
        "TOKEN" => "s3cret",
        "LINES" => "a\r\nb: c",
        _ => return None,
    };
    Some(value.to_owned())
}

fn load(file: &str, text: &str) -> Result<CheckedConfig, ConfigError> {
    Config::parse(Path::new(file), text, &env, &Overrides::default())
}

fn good(text: &str) -> Config {
    let loaded = load("signalbox.toml", text).expect("a good file");
    assert_eq!(loaded.warnings, []);
    loaded.config
}

fn message(file: &str, text: &str) -> String {
    match load(file, text) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn warnings(file: &str, text: &str) -> Vec<String> {
    let loaded = load(file, text).expect("a good file");
    loaded.warnings.iter().map(ToString::to_string).collect()
}

const FULL: &str = r#"
[mcp.protocol]
version = "1.0.0"

[mcp.protocol.transport]
type = "http"
host = "localhost"
port = 0
path = "/tools/mcp"

[mcp.protocol.transport.tls]
enabled = false
cert_file = "/etc/cert"
key_file = "/etc/key"
ca_file = "/etc/ca"

[mcp.protocol.security]
require_authentication = false
session_timeout = 1800
max_concurrent_sessions = 100

[mcp.protocol.audit]
enabled = false

[gateway]
first_list_wait = 1.5
drain = 2
call_timeout = 90
max_connections = 10
max_streams = 3
park_timeout = 20
max_in_flight = 4
max_message = 4096
memory = 2000000
allowed_origins = ["https://App.example", "vscode-webview://abc", "http://[::1]:80"]
allowed_hosts = ["Box.example:8080", "box"]
demo_root = "demo"
watch_config = false
data_dir = "${HOME}/data"
log_level = "debug"

[backends.zeta]
command = "npx"
args = ["-y", "server", "--token=${TOKEN}", "$$5"]
env = { API_KEY = "${TOKEN}", MODE = "${MODE:-fast}" }
env_pass = ["SSH_AUTH_SOCK"]
cwd = "work"
tools = { include = ["read_*"], exclude = ["*_all"] }
category = "files"
trust_level = "verified"
timeout = 0.5
start_timeout = 5
max_children = 2
era = "old"

[backends."a.b-1"]
url = "http://localhost:9000/mcp?key=${TOKEN}"
headers = { Authorization = "Bearer ${TOKEN}" }
era = "new"

[backends.off]
url = "https://example.com/mcp"
disabled = true
"#;

/// A tape has bounds where it is given some.
/// Proves SO-9.
#[test]
fn a_tape_has_the_bounds_of_the_file_and_none_without() {
    assert!(good("").record.tape_bounds.is_unbounded());
    let bounds = good("[record]\nmax_tape_size = 104857600\nmax_tape_age = '1h'\n").record.tape_bounds;
    assert_eq!((bounds.max_bytes, bounds.max_age), (Some(100 << 20), Some(Duration::from_secs(3_600))));
}

#[test]
fn a_full_file() {
    let config = load("/etc/box/signalbox.toml", FULL).expect("a good file").config;
    let listen = ListenConfig {
        transport: Transport::Http,
        host: "127.0.0.1".parse().expect("an address"),
        port: 0,
        path: "/tools/mcp".to_owned(),
        tls: None,
    };
    assert_eq!(config.listen, listen);
    let gateway = GatewayConfig {
        first_list_wait: Duration::from_millis(1500),
        instructions: String::new(),
        drain: Duration::from_secs(2),
        call_timeout: Duration::from_secs(90),
        session_timeout: Duration::from_secs(1800),
        max_sessions: 100,
        max_connections: 10,
        max_streams: 3,
        park_timeout: Duration::from_secs(20),
        max_in_flight: 4,
        max_message: 4096,
        memory: 2_000_000,
        allowed_origins: vec![
            "https://app.example".to_owned(),
            "vscode-webview://abc".to_owned(),
            "http://[::1]:80".to_owned(),
        ],
        allowed_hosts: vec!["box.example:8080".to_owned(), "box".to_owned()],
        demo_root: PathBuf::from("/etc/box/demo"),
        watch_config: false,
        rule_seed: None,
        otel: None,
        otel_metrics: None,
    };
    assert_eq!(config.gateway, gateway);
    assert_eq!(config.data_dir, Path::new("/home/ann/data"));
    assert_eq!(config.log_level, LogVerbosity::Debug);
    assert_eq!(config.source.as_deref(), Some(Path::new("/etc/box/signalbox.toml")));
    let names: Vec<&str> = config.backends.iter().map(|backend| backend.name.as_str()).collect();
    assert_eq!(names, ["zeta", "a.b-1", "off"]);
}

#[test]
fn a_command_backend() {
    let backend = load("/etc/box/signalbox.toml", FULL).expect("a good file").config.backends.remove(0);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let expected = BackendConfig {
        name: "zeta".to_owned(),
        target: BackendTarget::Command {
            program: "npx".to_owned(),
            args: texts(&["-y", "server", "--token=s3cret", "$5"]),
            env: vec![("API_KEY".to_owned(), Secret::new("s3cret")), ("MODE".to_owned(), Secret::new("fast"))],
            env_pass: texts(&["SSH_AUTH_SOCK"]),
            cwd: Some(PathBuf::from("/etc/box/work")),
        },
        tools: ToolFilter { include: texts(&["read_*"]), exclude: texts(&["*_all"]) },
        callers: Vec::new(),
        category: Some("files".to_owned()),
        trust_level: TrustLevel::Verified,
        disabled: false,
        seal: false,
        timeout: Duration::from_millis(500),
        start_timeout: Duration::from_secs(5),
        max_children: 2,
        addresses: Addresses::default(),
        failing: signalbox_runtime::FailureRules::default(),
        lifetime: signalbox_runtime::Lifetime::default(),
        questions: signalbox_runtime::QuestionTime::default(),
        era: EraSetting::Old,
        tape: None,
    };
    assert_eq!(backend, expected);
}

#[test]
fn a_remote_backend() {
    let backends = good(FULL).backends;
    let BackendTarget::Url { url, headers, .. } = &backends[1].target else {
        panic!("{:?}", backends[1]);
    };
    assert_eq!(url.to_string(), "http://localhost:9000/mcp?key=s3cret");
    assert_eq!(headers["authorization"], "Bearer s3cret");
    assert_eq!(backends[1].timeout, Duration::from_secs(90));
    assert_eq!(backends[1].era, EraSetting::New);
    assert!(backends[2].disabled);
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let shown = format!("{:?}", good(FULL));
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("API_KEY") && shown.contains("authorization"), "{shown}");
}

/// Proves SO-17.
#[test]
fn defaults() {
    let config = Config::load(&ConfigLocation::Defaults, &env, &Overrides::default()).expect("defaults").config;
    assert_eq!(config, Config { source: None, ..good("") });
    assert_eq!((config.listen.host.to_string().as_str(), config.listen.port), ("127.0.0.1", 8080));
    assert_eq!(config.listen.path, "/mcp");
    let gateway = GatewayConfig {
        first_list_wait: Duration::from_secs(30),
        instructions: String::new(),
        drain: Duration::from_secs(10),
        call_timeout: Duration::from_secs(60),
        session_timeout: Duration::from_secs(3600),
        max_sessions: 10_000,
        max_connections: 10_000,
        max_streams: 64,
        park_timeout: Duration::from_secs(300),
        max_in_flight: 1024,
        max_message: 16 * 1024 * 1024,
        memory: 128 * 1024 * 1024,
        allowed_origins: Vec::new(),
        allowed_hosts: Vec::new(),
        demo_root: PathBuf::from("."),
        watch_config: true,
        rule_seed: None,
        otel: None,
        otel_metrics: None,
    };
    assert_eq!(config.gateway, gateway);
    assert_eq!(config.data_dir, Path::new("/home/ann/.local/state/signalbox"));
    assert_eq!(config.log_level, LogVerbosity::Info);
    let backend = good("[backends.a]\ncommand = 'x'\n").backends.remove(0);
    assert_eq!(backend.timeout, Duration::from_secs(60));
    assert_eq!(backend.start_timeout, Duration::from_secs(30));
    assert_eq!((backend.max_children, backend.era), (8, EraSetting::Auto));
    assert_eq!((backend.trust_level, backend.category), (TrustLevel::Community, None));
}

#[test]
fn rules_have_a_seed_only_where_one_is_given() {
    let seed = |text: &str| good(&format!("[gateway]\n{text}\n")).gateway.rule_seed;
    assert_eq!(
        (seed(""), seed("rule_seed = 0"), seed("rule_seed = 9223372036854775807")),
        (None, Some(0), Some(keys::MOST_SEED))
    );
    for bad in ["-1", "9223372036854775808"] {
        let error = load("signalbox.toml", &format!("[gateway]\nrule_seed = {bad}\n")).expect_err("out of range");
        assert!(error.to_string().contains(&format!("from 0 to {}, found `{bad}`", keys::MOST_SEED)), "{error}");
    }
}

/// Whatever the reference lists is read: each key is accepted, or refused for what it is, but never unknown.
#[test]
fn every_key_of_the_reference_is_known_to_the_parser() {
    for key in keys::KEYS {
        let path = key.path.replace(keys::NAME, "x");
        let list = key.path.rsplit_once('.').filter(|(list, _)| {
            keys::KEYS.iter().any(|other| other.path == *list && other.kind == keys::KeyKind::Tables)
        });
        let text = match list {
            Some((list, name)) => format!("[[{list}]]\n{name} = 1979-05-27\n"),
            None => format!("{path} = 1979-05-27\n"),
        };
        let error = load("signalbox.toml", &text).expect_err("a date is never right");
        let known =
            matches!(*error.problem, Problem::WrongType { .. } | Problem::NotBuilt { .. } | Problem::OtherBuild { .. });
        assert!(known, "{error}");
        assert!(error.to_string().contains(&path), "{error}");
    }
}

/// Proves G-32.
#[test]
fn every_transport_of_the_governed_configuration_is_taken() {
    for (word, transport) in [("http", Transport::Http), ("websocket", Transport::WebSocket), ("tcp", Transport::Tcp)] {
        let text = format!(
            "[mcp.protocol]\nversion = '1.0.0'\n[mcp.protocol.transport]\ntype = '{word}'\nhost = 'localhost'\nport = 8080\npath = '/mcp'\n"
        );
        let listen = good(&text).listen;
        assert_eq!((listen.transport, listen.port, listen.path.as_str()), (transport, 8080, "/mcp"));
    }
}

#[test]
fn a_websocket_backend() {
    let text = "[backends.a]\nurl = 'ws://localhost:9000/mcp'\nheaders = { Authorization = 'x' }\n\
                [backends.b]\nurl = 'wss://h/mcp'\ndisabled = true\n";
    let backends = good(text).backends;
    let BackendTarget::Url { url, headers, .. } = &backends[0].target else { panic!("{:?}", backends[0]) };
    assert_eq!((url.scheme_str(), headers.len(), backends[1].disabled), (Some("ws"), 1, true));
}

/// Errors cannot be told by trust while callers are not told apart.
/// Proves G-24.
#[test]
fn errors_by_trust_without_authentication_are_warned_of() {
    let security = |required: bool| {
        format!("[mcp.protocol.security]\nrequire_authentication = {required}\ntool_error_detail = 'by_trust'\n")
    };
    let warned = warnings("signalbox.toml", &security(false));
    assert!(warned.iter().any(|one| one.contains("tool_error_detail") && one.contains("has no effect")), "{warned:?}");
    assert_eq!(warnings("signalbox.toml", &security(true)), Vec::<String>::new());
}

#[test]
fn a_command_line_in_command_is_warned_of() {
    assert_eq!(
        warnings("signalbox.toml", "[backends.a]\ncommand = 'npx -y x'\n"),
        [
            "signalbox.toml:2:11: backends.a.command: holds spaces and there are no `args`; if it is a command line, move the arguments to `args`"
        ]
    );
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert_eq!(good("\u{feff}[gateway]\ndrain = 3\n").gateway.drain, Duration::from_secs(3));
    assert!(load("x", "\u{feff}{\"mcpServers\": {}}").is_ok());
}

/// Cut anywhere, a file gives an answer or an error, and the error does not show what a variable holds.
#[test]
fn no_cut_panics_or_leaks() {
    for (file, text) in [("a.toml", FULL), ("a.json", CLAUDE), ("a.toml", IMPORTED)] {
        for (cut, _) in text.char_indices().step_by(3) {
            for part in [&text[..cut], &text[cut..]] {
                let message = message(file, part);
                assert!(!message.contains("s3cret"), "{message}");
                assert!(message.lines().all(|line| line == "no error" || line.starts_with(file)), "{message}");
            }
        }
    }
}

#[test]
fn a_time_has_a_unit_or_is_one_of_seconds() {
    for (spelled, millis) in [("'30s'", 30_000), ("'500ms'", 500), ("'2m'", 120_000), ("30", 30_000), ("'1.5'", 1_500)]
    {
        let text = format!("[gateway]\ndrain = {spelled}\n[backends.a]\ncommand = 'x'\ntimeout = {spelled}\n");
        let config = load("a.toml", &text).expect(spelled).config;
        let expected = std::time::Duration::from_millis(millis);
        assert_eq!((config.gateway.drain, config.backends[0].timeout), (expected, expected), "{spelled}");
    }
    let long = load("a.toml", "[gateway]\ndrain = '2h'\n").expect_err("too long");
    assert!(long.to_string().contains("from 0.001 to 3600 seconds, found `7200`"), "{long}");
}

#[test]
fn a_process_runs_from_the_start_unless_it_is_said_otherwise() {
    let of = |more: &str| good(&format!("[backends.a]\ncommand = 'x'\n{more}")).backends.remove(0).lifetime;
    assert_eq!(of(""), Lifetime { start: StartPolicy::Eager, idle_stop: None });
    assert_eq!(of("start = 'first_use'\n"), Lifetime { start: StartPolicy::FirstUse, idle_stop: None });
    let ten = Some(Duration::from_secs(600));
    assert_eq!(of("start = 'eager'\nidle_stop = '10m'\n"), Lifetime { start: StartPolicy::Eager, idle_stop: ten });
}

#[test]
fn a_remote_server_is_neither_started_nor_stopped() {
    for (key, value) in [("start", "'first_use'"), ("start", "'eager'"), ("idle_stop", "'10m'")] {
        let text = format!("[backends.a]\nurl = 'http://h/'\n{key} = {value}\n");
        let error = load("signalbox.toml", &text).unwrap_err().to_string();
        assert_eq!(error, format!("signalbox.toml:3:1: backends.a.{key}: applies only with `command`; remove it"));
    }
    let error = load("signalbox.toml", "[backends.a]\ncommand = 'x'\nidle_stop = 0\n").unwrap_err().to_string();
    assert!(error.contains("backends.a.idle_stop: expected a time such as \"30s\""), "{error}");
}

#[test]
fn a_built_in_backend() {
    let backend = good("[backends.ask]\nbuiltin = 'tapes'\ncallers = ['cert:*']\n").backends.remove(0);
    assert_eq!((backend.target, backend.tape), (BackendTarget::Builtin(Builtin::Tapes), None));
}
