//! The configuration of the specified sample, with other paths: it starts a gateway, and its keys do what they say.
//! Keys of which nothing is said here have tests of their own: `session_timeout` and `max_concurrent_sessions` in
//! `gateway_sessions` and `gateway_many`, `authentication_timeout` in `gateway_auth`, limits per minute in
//! `gateway_limits`, sinks beside this file.

use super::postgres_server::PostgresServer;
use super::{config, database_url, greet, records, search, session};
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::openssl::{Authority, Trust};
use signalbox_testkit::scene::{call, child, eventually, signalbox, text};

const SAMPLE: &str = r#"
[mcp.protocol]
# Protocol version
version = "1.0.0"

# Transport settings
[mcp.protocol.transport]
# Transport type (websocket, http, tcp)
type = "websocket"

# Connection settings
host = "localhost"
port = 8080
path = "/mcp"

# TLS settings
[mcp.protocol.transport.tls]
enabled = true
cert_file = "CERT"
key_file = "KEY"
ca_file = "CA"

# Security settings
[mcp.protocol.security]
# Authentication requirements
require_authentication = true
authentication_timeout = 30

# Session management
session_timeout = 3600
max_concurrent_sessions = 100

# Rate limiting
[mcp.protocol.rate_limits]
# Global rate limits
global_requests_per_second = 1000
global_requests_per_minute = 60000

# Per-user rate limits
user_requests_per_second = 10
user_requests_per_minute = 600

# Per-tool rate limits
tool_requests_per_second = 5
tool_requests_per_minute = 300

# Audit settings
[mcp.protocol.audit]
# Enable audit logging
enabled = true

# Audit event types to log
log_tool_invocations = true
log_security_events = true
log_performance_events = true
log_protocol_errors = true

# Audit retention
retention_days = 90

# Audit sinks
[mcp.protocol.audit.sinks]
# File sink
file_sink = true
file_path = "logs/mcp-audit.log"

# Database sink
database_sink = true
database_url = "DATABASE"

# Remote sink
remote_sink = false
remote_endpoint = "https://audit.example.com/api/events"
"#;

/// The answers to calls that are made at once.
async fn together(client: &HttpClient, count: u64) -> Vec<Value> {
    let calls = (0..count).map(|id| {
        let client = client.clone();
        tokio::spawn(async move { greet(&client, id, "Ada").await })
    });
    let mut answers = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        answers.push(call.await.unwrap());
    }
    answers
}

/// Proves G-31, G-32, G-33, G-34, G-35, G-36, G-37, G-38, G-39, G-40 and G-41.
#[tokio::test(flavor = "multi_thread")]
async fn the_sample_of_the_governed_configuration_governs_a_gateway() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let start = || PostgresServer::start().map(|server| (server.database(), server));
    let Some((database, _server)) = tokio::task::spawn_blocking(start).await.unwrap() else { return };
    let url = database_url(&database);
    let issued = authority.local("server").await.unwrap();
    let file = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let sample = SAMPLE
        .replace("\"CERT\"", &json!(file(&issued.cert)).to_string())
        .replace("\"KEY\"", &json!(file(&issued.key)).to_string())
        .replace("\"CA\"", &json!(file(&authority.ca())).to_string())
        .replace("DATABASE", &url);
    let sample = sample + &child("one", ServedEra::Old, "").unwrap();
    let gateway = GatewayProcess::serve(&sample).await.unwrap();
    let nobody = HttpClient::new(gateway.address()).secured(&Trust::in_authority(&authority).unwrap());
    assert_eq!(nobody.post(&call(1, "greet", &json!({})).to_string()).await.unwrap().status, 401);

    let key = signalbox(&gateway.data_dir(), &["keys", "new", "ada"]).await.unwrap().trim().to_owned();
    let known = nobody.clone().with("authorization", &format!("Bearer {key}"));
    let begin = async || known.clone().initialize(super::VERSION, json!({})).await.ok();
    let ada = eventually("the key is known", begin).await.unwrap();
    let hello = async || text(&greet(&ada, 1, "Ada").await).filter(|said| said == "Hello, Ada!");
    eventually("the tool is there", hello).await.unwrap();

    let answers = together(&ada, 40).await;
    let refused = answers.iter().find(|answer| answer["error"]["data"]["reason"] == "rate_limited");
    assert!(refused.is_some(), "40 calls at once are more than 5 of a tool or 10 of a user in a second: {answers:?}");
    let rows = search(&gateway, &["--database", "--status", "rate_limited"], 1).await;
    assert!(!rows.is_empty());

    let folder = gateway.terminate().await.unwrap();
    let written = records(&folder.path().join("logs/mcp-audit.log"));
    let of = |kind: &str| written.iter().filter(|record| record["event_type"] == kind).count();
    assert!(of("tool_invocation") >= 3 && of("security_violation") >= 1, "{written:#?}");
    assert!(written.iter().any(|record| record["user_context"]["principal"] == "key:ada"));
}

/// Each limit per second by itself.
/// Proves G-35, G-36 and G-37.
#[tokio::test(flavor = "multi_thread")]
async fn each_limit_per_second_refuses_by_itself() {
    for (key, limit) in [
        ("global_requests_per_second", "global"),
        ("user_requests_per_second", "user"),
        ("tool_requests_per_second", "tool"),
        ("user_tool_requests_per_second", "user_and_tool"),
    ] {
        let backend = child("one", ServedEra::Old, "").unwrap();
        let text = format!("[mcp.protocol.rate_limits]\n{key} = 1\n{backend}");
        let gateway = GatewayProcess::serve(&text).await.unwrap();
        let client = session(&gateway).await;
        let answers = together(&client, 30).await;
        let limits: Vec<&Value> = answers.iter().map(|answer| &answer["error"]["data"]["limit"]).collect();
        assert!(limits.iter().any(|one| **one == limit), "{key}: {answers:?}");
        assert!(limits.iter().all(|one| one.is_null() || **one == limit), "{key}: {answers:?}");
        let told = answers.iter().find(|answer| answer["error"].is_object()).unwrap();
        assert!(told["error"]["message"].as_str().unwrap().contains(" in a second; try again in 1 s"), "{told}");
    }
}

/// Each kind of event is written unless its key is false.
/// Proves G-38.
#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_event_has_its_key() {
    let kinds = [
        ("log_tool_invocations", "tool_invocation"),
        ("log_security_events", "security_violation"),
        ("log_performance_events", "performance"),
        ("log_protocol_errors", "protocol_error"),
    ];
    for off in std::iter::once(None).chain(kinds.map(|(key, _)| Some(key))) {
        let switch = off.map(|key| format!("{key} = false\n")).unwrap_or_default();
        let text = config(&format!("slow_call = \"10ms\"\n{switch}"), "");
        let gateway = GatewayProcess::serve(&text).await.unwrap();
        let client = session(&gateway).await;
        let slow = client.post(&call(1, "slow", &json!({"ms": 60})).to_string()).await.unwrap().message().unwrap();
        assert!(slow["result"].is_object(), "{slow}");
        greet(&client, 2, "forbidden").await;
        client.post("{\"jsonrpc\":\"2.0\",\"id\":3,").await.unwrap();
        let folder = gateway.terminate().await.unwrap();
        let written = records(&super::log_of(folder.path()));
        for (key, kind) in kinds {
            let is_there = written.iter().any(|record| record["event_type"] == kind);
            assert_eq!(is_there, off != Some(key), "{kind} with {off:?} off: {written:#?}");
        }
    }
}
