//! One backend at several addresses.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::json;
use signalbox_testkit::events::EventStream;
use signalbox_testkit::frail_server::{FrailServer, Mood, Speaks};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{backend_status, eventually, text};
use std::collections::BTreeSet;
use std::time::Duration;

async fn servers(speaks: Speaks) -> Vec<FrailServer> {
    let mut servers = Vec::new();
    for name in ["one", "two", "three"] {
        servers.push(FrailServer::start(name, speaks).await.unwrap());
    }
    servers
}

async fn serve(servers: &[FrailServer], more: &str) -> GatewayProcess {
    let urls: Vec<String> = servers.iter().map(|server| format!("http://{}/mcp", server.address())).collect();
    let config = format!("[backends.many]\nurls = {}\n{more}\n", json!(urls));
    GatewayProcess::serve(&config).await.unwrap()
}

async fn modern(gateway: &GatewayProcess) -> Option<String> {
    let params = json!({"name": "run", "arguments": {}});
    text(&HttpClient::new(gateway.address()).modern(1, "tools/call", params).await.unwrap().message().unwrap())
}

fn runs(servers: &[FrailServer]) -> Vec<u64> {
    servers.iter().map(FrailServer::runs).collect()
}

/// Proves SO-15.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_the_new_era_are_spread_and_survive_a_lost_address() {
    let mut servers = servers(Speaks::New).await;
    let gateway = serve(&servers, "era = \"new\"\nbreaker.recovery = 1").await;
    for _ in 0..30 {
        assert!(modern(&gateway).await.is_some());
    }
    assert!(runs(&servers).iter().all(|runs| (8..=12).contains(runs)), "{:?}", runs(&servers));
    servers[1].go_away().await;
    for _ in 0..30 {
        assert!(modern(&gateway).await.is_some(), "an address that is gone is nobody's concern");
    }
    assert_eq!(runs(&servers).iter().sum::<u64>(), 60, "each call ran once");
    let status = backend_status(&gateway.data_dir(), "many").await.unwrap();
    assert_eq!(status["addresses"].as_array().unwrap().len(), 3, "{status}");
    assert!(status["addresses"][1]["failed"].as_u64().unwrap() >= 1, "{status}");
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    assert!(String::from_utf8_lossy(&page.body).contains("signalbox_address_sent_total{backend=\"many\",address="));

    servers[1].come_back().await.unwrap();
    let before = servers[1].runs();
    let look = async || {
        modern(&gateway).await;
        (servers[1].runs() > before).then_some(())
    };
    eventually("the address is used again", look).await.unwrap();
}

/// Proves SO-15.
#[tokio::test(flavor = "multi_thread")]
async fn weights_and_the_first_that_is_well() {
    let mut servers = servers(Speaks::New).await;
    let weighted = servers.iter().zip([4, 1, 1]);
    let urls: Vec<String> = weighted
        .map(|(server, weight)| format!("{{ url = \"http://{}/mcp\", weight = {weight} }}", server.address()))
        .collect();
    let config = format!("[backends.many]\nera = \"new\"\nbalance = \"weighted\"\nurls = [{}]\n", urls.join(", "));
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    for _ in 0..60 {
        assert!(modern(&gateway).await.is_some());
    }
    let ran = runs(&servers);
    assert!(ran[0] >= 36 && ran[1] >= 8 && ran[2] >= 8, "{ran:?}");
    drop(gateway);

    let gateway = serve(&servers, "era = \"new\"\nbalance = \"healthy_first\"").await;
    assert!(modern(&gateway).await.unwrap().starts_with("one "));
    servers[0].go_away().await;
    for _ in 0..5 {
        assert!(modern(&gateway).await.unwrap().starts_with("two "));
    }
}

/// Sticky sessions.
/// Proves SO-15.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_old_era_stays_where_it_was_opened() {
    let servers = servers(Speaks::Old).await;
    let gateway = serve(&servers, "era = \"old\"").await;
    let mut places = BTreeSet::new();
    for _ in 0..6 {
        let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
        let mut names = BTreeSet::new();
        for _ in 0..5 {
            let answer = client.request(1, "tools/call", json!({"name": "run", "arguments": {}})).await.unwrap();
            names.insert(text(&answer).unwrap().split(' ').next().unwrap().to_owned());
        }
        assert_eq!(names.len(), 1, "{names:?}");
        places.extend(names);
    }
    assert!(places.len() > 1, "sessions are spread: {places:?}");
}

/// A session whose address is lost is opened again at another one, with what it follows and its log level, and its
/// client does nothing for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_moves_to_another_address_with_all_that_it_wants_to_hear() {
    let mut servers = servers(Speaks::Old).await;
    let gateway = serve(&servers, "era = \"old\"\nbalance = \"healthy_first\"").await;
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let mut general = EventStream::general(&client).await.unwrap();
    client.request(2, "resources/subscribe", json!({"uri": "x://y"})).await.unwrap();
    client.request(3, "logging/setLevel", json!({"level": "error"})).await.unwrap();
    let answer = client.request(1, "tools/call", json!({"name": "run", "arguments": {}})).await.unwrap();
    assert_eq!(text(&answer).as_deref(), Some("one 1"));
    servers[0].go_away().await;
    let answer = client.request(1, "tools/call", json!({"name": "run", "arguments": {}})).await.unwrap();
    assert_eq!(text(&answer).as_deref(), Some("two 1"), "{answer}");
    let told = async || {
        let level = servers[1].heard("logging/setLevel").iter().any(|heard| heard.params["level"] == "error");
        let follows = servers[1].heard("resources/subscribe").iter().any(|heard| heard.params["uri"] == "x://y");
        (level && follows).then_some(())
    };
    eventually("the new address knows what is wanted", told).await.unwrap();
    let look = async || (!servers[1].heard("GET").is_empty()).then_some(());
    eventually("a stream at the new address", look).await.unwrap();
    servers[1].tell("notifications/resources/updated", &json!({"uri": "x://y"}));
    assert_eq!(general.notification("notifications/resources/updated").await.unwrap()["params"]["uri"], "x://y");
}

/// The same though the client calls nothing: the loss of the stream is enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_moves_to_another_address_though_nobody_calls() {
    let mut servers = servers(Speaks::Old).await;
    let gateway = serve(&servers, "era = \"old\"\nbalance = \"healthy_first\"").await;
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let mut general = EventStream::general(&client).await.unwrap();
    client.request(2, "resources/subscribe", json!({"uri": "x://y"})).await.unwrap();
    let look = async || (!servers[0].heard("GET").is_empty()).then_some(());
    eventually("a stream at the first address", look).await.unwrap();
    servers[0].go_away().await;
    let look = async || (!servers[1].heard("resources/subscribe").is_empty()).then_some(());
    eventually("the session is opened at the second address", look).await.unwrap();
    let told = async || {
        servers[1].tell("notifications/resources/updated", &json!({"uri": "x://y"}));
        let heard = general.notification("notifications/resources/updated");
        tokio::time::timeout(Duration::from_millis(500), heard).await.ok()
    };
    eventually("a change is heard of", told).await.unwrap().unwrap();
}

/// Pipes too; the backends are gateways with the demo tools.
/// Proves SO-15.
#[tokio::test(flavor = "multi_thread")]
async fn websocket_connections_go_to_an_address_that_takes_them() {
    let one = GatewayProcess::serve("").await.unwrap();
    let two = GatewayProcess::serve("").await.unwrap();
    let urls: Vec<String> = [&one, &two].map(|behind| format!("ws://{}/mcp", behind.address())).to_vec();
    let config = format!("[backends.many]\nurls = {}\nera = \"old\"\nbalance = \"healthy_first\"\n", json!(urls));
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let echo = async || {
        let params = json!({"name": "echo", "arguments": {"text": "hello"}});
        client.request(1, "tools/call", params).await.ok().filter(|answer| answer["result"].is_object())
    };
    eventually("an answer", &echo).await.unwrap();
    let status = backend_status(&gateway.data_dir(), "many").await.unwrap();
    assert_eq!((&status["transport"], &status["addresses"][0]["busy"]), (&json!("websocket"), &json!(1)), "{status}");
    one.stop().await.unwrap();
    eventually("an answer from the other", &echo).await.unwrap();
    let status = backend_status(&gateway.data_dir(), "many").await.unwrap();
    assert_eq!((&status["state"], &status["addresses"][1]["busy"]), (&json!("up"), &json!(1)), "{status}");
}

/// What one address may have run is not given to another.
/// Proves NO-3.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_one_address_ran_is_not_run_by_another() {
    let servers = servers(Speaks::New).await;
    let gateway = serve(&servers, "era = \"new\"\nbreaker.enabled = false").await;
    assert!(modern(&gateway).await.is_some());
    for mood in [Mood::CutBefore, Mood::CutAfter, Mood::CutInHead, Mood::CutInBody, Mood::Status(503)] {
        for server in &servers {
            server.calls(mood);
        }
        let heard = |servers: &[FrailServer]| servers.iter().map(|one| one.heard("tools/call").len()).sum::<usize>();
        let before = heard(&servers);
        assert!(modern(&gateway).await.is_none());
        assert_eq!(heard(&servers) - before, 1, "{mood:?}");
    }
}
