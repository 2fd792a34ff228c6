//! A backend that fails again and again is left alone, and called again when it is well.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::frail_server::{FrailServer, Mood, Speaks};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{backend_status, child, eventually, remote, signalbox, text};
use tokio::process::Command;

const BREAKER: &str = "era = \"old\"\nbreaker = { failures = 4, recovery = 2, successes = 2 }\n";

async fn run(client: &HttpClient) -> Value {
    client.request(1, "tools/call", json!({"name": "run", "arguments": {}})).await.unwrap()
}

async fn metric(gateway: &GatewayProcess, line: &str) -> bool {
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    String::from_utf8_lossy(&page.body).lines().any(|one| one == line)
}

async fn text_status(gateway: &GatewayProcess) -> String {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["status", "--data-dir"]).arg(gateway.data_dir()).current_dir(gateway.data_dir());
    String::from_utf8(command.output().await.unwrap().stdout).unwrap()
}

/// Proves SO-15 and NO-10.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_answers_500_is_left_alone_until_it_is_well() {
    let server = FrailServer::start("frail", Speaks::Old).await.unwrap();
    let gateway = GatewayProcess::serve(&remote("frail", &server.address().to_string(), BREAKER)).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    assert_eq!(text(&run(&client).await).as_deref(), Some("frail 1"));

    server.calls(Mood::Status(500));
    for _ in 0..4 {
        let fault = run(&client).await;
        assert_eq!(fault["error"]["data"]["reason"], "backend_garbage", "{fault}");
        assert!(fault["error"]["message"].as_str().unwrap().contains("HTTP 500"), "{fault}");
    }
    let sent = server.heard("tools/call").len();
    let refused = run(&client).await;
    assert_eq!(refused["error"]["code"], -32007, "{refused}");
    assert_eq!(refused["error"]["data"]["reason"], "breaker_open", "{refused}");
    assert_eq!(refused["error"]["data"]["backend"], "frail", "{refused}");
    assert!(refused["error"]["data"]["retryAfterMs"].as_u64().unwrap() <= 2_000, "{refused}");
    assert_eq!(server.heard("tools/call").len(), sent, "what is refused is not sent");
    let status = backend_status(&gateway.data_dir(), "frail").await.unwrap();
    assert_eq!(status["breaker"]["opened"], 1, "{status}");
    assert_eq!(status["breaker"]["refused"], 1, "{status}");
    assert!(metric(&gateway, r#"signalbox_backend_breaker_opened_total{backend="frail"} 1"#).await);
    assert!(metric(&gateway, r#"signalbox_backend_breaker_open{backend="frail"} 1"#).await);
    assert!(text_status(&gateway).await.contains("open: the backend keeps failing"));

    server.calls(Mood::Well);
    eventually("the backend is tried again", async || text(&run(&client).await)).await.unwrap();
    let status = backend_status(&gateway.data_dir(), "frail").await.unwrap();
    assert_eq!(status["breaker"]["state"], "half open", "{status}");
    assert!(text(&run(&client).await).is_some());
    let status = backend_status(&gateway.data_dir(), "frail").await.unwrap();
    assert_eq!(status["breaker"]["state"], "closed", "{status}");
    assert!(metric(&gateway, r#"signalbox_backend_breaker_open{backend="frail"} 0"#).await);
    assert!(!text_status(&gateway).await.contains("breaker"));
}

/// Proves NO-10.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_new_era_gets_a_code_outside_of_the_range_that_is_not_its_own() {
    let server = FrailServer::start("frail", Speaks::New).await.unwrap();
    let more = "era = \"new\"\nbreaker = { failures = 2 }\n";
    let gateway = GatewayProcess::serve(&remote("frail", &server.address().to_string(), more)).await.unwrap();
    let client = HttpClient::new(gateway.address());
    let run = async || client.modern(1, "tools/call", json!({"name": "run", "arguments": {}})).await.unwrap();
    assert_eq!(text(&run().await.message().unwrap()).as_deref(), Some("frail 1"));
    for mood in [Mood::CutAfter, Mood::CutInBody] {
        server.calls(mood);
        let fault = run().await.message().unwrap();
        assert_eq!(fault["error"]["data"]["reason"], "backend_died", "{fault}");
    }
    let refused = run().await.message().unwrap();
    assert_eq!(refused["error"]["code"], 5030, "{refused}");
    assert_eq!(refused["error"]["data"]["reason"], "breaker_open", "{refused}");
    assert_eq!(server.runs(), 3, "no call ran twice");
}

/// One client whose requests are too large for a server must not take it from all the others.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_a_backend_refuses_say_nothing_about_the_backend() {
    let server = FrailServer::start("frail", Speaks::Old).await.unwrap();
    let gateway = GatewayProcess::serve(&remote("frail", &server.address().to_string(), BREAKER)).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    for status in [400, 403, 413, 422] {
        server.calls(Mood::Status(status));
        for _ in 0..5 {
            let fault = run(&client).await;
            assert_eq!(fault["error"]["data"]["reason"], "backend_garbage", "{fault}");
        }
    }
    let status = backend_status(&gateway.data_dir(), "frail").await.unwrap();
    assert_eq!(status["breaker"]["opened"], 0, "{status}");
    for status in [429, 404, 503, 500] {
        server.calls(Mood::Status(status));
        let fault = run(&client).await;
        assert_eq!(fault["error"]["data"]["reason"], "backend_garbage", "{fault}");
    }
    assert_eq!(run(&client).await["error"]["data"]["reason"], "breaker_open");
}

/// A caller with an API key of its own.
async fn caller(gateway: &GatewayProcess, name: &str) -> HttpClient {
    let key = signalbox(&gateway.data_dir(), &["keys", "new", name]).await.unwrap();
    let bearer = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()));
    let open = async || bearer.initialize("2025-06-18", json!({})).await.ok();
    eventually("the key is known", open).await.unwrap()
}

/// One caller whose calls an HTTP backend fails is refused alone.
#[tokio::test(flavor = "multi_thread")]
async fn failures_of_one_caller_do_not_take_a_backend_from_others() {
    let server = FrailServer::start("frail", Speaks::Old).await.unwrap();
    let security = "[mcp.protocol.security]\nrequire_authentication = true\n";
    let config = format!("{security}{}", remote("frail", &server.address().to_string(), "era = \"old\"\n"));
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, vic) = (caller(&gateway, "user:ada").await, caller(&gateway, "user:vic").await);
    let mut refused = 0;
    for mood in [404, 429, 500, 503].map(Mood::Status).into_iter().chain([Mood::CutAfter, Mood::CutInHead]) {
        for _ in 0..3 {
            server.calls(mood);
            refused += u32::from(run(&ada).await["error"]["data"]["reason"] == "breaker_open");
            server.calls(Mood::Well);
            let served = run(&vic).await;
            assert!(text(&served).is_some(), "after {mood:?}: {served}");
        }
    }
    assert!(refused > 0, "the caller whose calls fail is refused");
    let status = backend_status(&gateway.data_dir(), "frail").await.unwrap();
    assert_eq!(status["breaker"]["state"], "closed", "{status}");
    assert_eq!(status["breaker"]["callers"], 1, "{status}");
    assert!(text_status(&gateway).await.contains("open for 1 callers"), "{status}");
}

/// Answers that are too large, calls that take too long and a tool that ends the process are the failures of their
/// caller.
#[tokio::test(flavor = "multi_thread")]
async fn large_and_slow_answers_of_one_caller_do_not_take_a_child_from_others() {
    let settings = "[mcp.protocol.security]\nrequire_authentication = true\n\
                    [gateway]\ncall_timeout = 1\nmax_message = 65536\n";
    let config = format!("{settings}{}", child("one", ServedEra::Old, "").unwrap());
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, vic) = (caller(&gateway, "user:ada").await, caller(&gateway, "user:vic").await);
    let call = async |client: &HttpClient, tool: &str, arguments: Value| {
        client.request(1, "tools/call", json!({"name": tool, "arguments": arguments})).await.unwrap()
    };
    let mut reasons = Vec::new();
    for (tool, arguments) in [("big", json!({"bytes": 200_000})), ("slow", json!({"ms": 20_000})), ("crash", json!({}))]
    {
        for _ in 0..6 {
            reasons.push(call(&ada, tool, arguments.clone()).await["error"]["data"]["reason"].clone());
            let served = call(&vic, "greet", json!({"name": "Vic"})).await;
            assert!(text(&served).is_some(), "after {tool}: {served}");
        }
    }
    assert_eq!(&reasons[..6], vec![json!("backend_garbage"); 6], "an answer that is too large is an answer");
    assert!(reasons.contains(&json!("breaker_open")), "{reasons:?}");
}
