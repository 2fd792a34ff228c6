//! What is sent again, and what never is: a call runs once or not at all, wherever its backend fails.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::frail_server::{FrailServer, Mood, Speaks};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{backend_status, remote, text};
use std::time::Duration;

async fn serve(server: &FrailServer, more: &str) -> GatewayProcess {
    let more = format!("{more}\nbreaker.enabled = false\ntimeout = 2\n");
    GatewayProcess::serve(&remote("frail", &server.address().to_string(), &more)).await.unwrap()
}

async fn session(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap()
}

async fn run(client: &HttpClient, speaks: Speaks) -> Value {
    let params = json!({"name": "run", "arguments": {}});
    match speaks {
        Speaks::Old => client.request(1, "tools/call", params).await.unwrap(),
        Speaks::New => client.modern(1, "tools/call", params).await.unwrap().message().unwrap(),
    }
}

/// Proves NO-3.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_never_runs_twice_wherever_its_backend_fails() {
    for (speaks, era) in [(Speaks::Old, "era = \"old\""), (Speaks::New, "era = \"new\"")] {
        let server = FrailServer::start("frail", speaks).await.unwrap();
        let gateway = serve(&server, era).await;
        let client = match speaks {
            Speaks::Old => session(&gateway).await,
            Speaks::New => HttpClient::new(gateway.address()),
        };
        assert!(text(&run(&client, speaks).await).is_some());
        for (mood, ran) in [
            (Mood::CutBefore, 0),
            (Mood::CutAfter, 1),
            (Mood::CutInHead, 1),
            (Mood::CutInBody, 1),
            (Mood::Status(500), 0),
            (Mood::Status(503), 0),
            (Mood::Silent, 0),
        ] {
            let (runs, heard) = (server.runs(), server.heard("tools/call").len());
            server.calls(mood);
            let fault = run(&client, speaks).await;
            assert!(fault["error"].is_object(), "{mood:?}: {fault}");
            server.calls(Mood::Well);
            assert_eq!(server.runs() - runs, ran, "{mood:?}");
            assert_eq!(server.heard("tools/call").len() - heard, 1, "{mood:?}: it was sent once");
            // The connections that the backend has closed meanwhile do no harm to the next call.
            assert!(text(&run(&client, speaks).await).is_some(), "after {mood:?}");
        }
        assert_eq!(backend_status(&gateway.data_dir(), "frail").await.unwrap()["retries"], 0);
    }
}

/// Proves NO-3.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_took_is_sent_as_soon_as_somebody_does() {
    let mut server = FrailServer::start("frail", Speaks::New).await.unwrap();
    let gateway = serve(&server, "era = \"new\"\nretries = 8").await;
    let client = HttpClient::new(gateway.address());
    assert!(text(&run(&client, Speaks::New).await).is_some());
    server.go_away().await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { run(&client, Speaks::New).await }
    });
    tokio::time::sleep(Duration::from_millis(250)).await;
    server.come_back().await.unwrap();
    assert_eq!(text(&waiting.await.unwrap()).as_deref(), Some("frail 2"));
    assert_eq!(server.runs(), 2);
    let retries = backend_status(&gateway.data_dir(), "frail").await.unwrap()["retries"].as_u64().unwrap();
    assert!((1..=8).contains(&retries), "{retries}");
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let line = format!("signalbox_backend_retries_total{{backend=\"frail\"}} {retries}");
    assert!(String::from_utf8_lossy(&page.body).lines().any(|one| one == line));
}

/// Never beyond the deadline of the call.
/// Proves NO-3.
#[tokio::test(flavor = "multi_thread")]
async fn retries_end_with_the_time_of_the_call() {
    let mut server = FrailServer::start("frail", Speaks::New).await.unwrap();
    let gateway = serve(&server, "era = \"new\"\nretries = 10").await;
    let client = HttpClient::new(gateway.address());
    assert!(text(&run(&client, Speaks::New).await).is_some());
    server.go_away().await;
    let fault = run(&client, Speaks::New).await;
    assert_eq!(fault["error"]["data"]["reason"], "timed_out", "{fault}");
    server.come_back().await.unwrap();
    // The eleventh try would come after a minute and more; had one been left, the next call would be the third.
    assert_eq!(text(&run(&client, Speaks::New).await).as_deref(), Some("frail 2"));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(server.runs(), 2);
}

// A restarted server has forgotten every session: that is not noticed, and nothing runs twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_between_calls_is_not_noticed() {
    let mut server = FrailServer::start("frail", Speaks::Old).await.unwrap();
    let gateway = serve(&server, "era = \"old\"").await;
    let client = session(&gateway).await;
    for round in 1..=5 {
        assert_eq!(text(&run(&client, Speaks::Old).await).unwrap(), format!("frail {round}"));
        server.go_away().await;
        server.come_back().await.unwrap();
    }
    assert_eq!(server.runs(), 5);
}
