//! Many calls that wait at once, over real sockets (S-58).
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::json;
use signalbox_testkit::fixture::{Options, http};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use std::net::{Ipv4Addr, SocketAddr};

/// Sessions, and calls in each of them.
const SESSIONS: u64 = 4;
const CALLS: u64 = 500;
/// How long every call takes, so that all of them are pending together.
const SLEEP_MS: u64 = 4_000;

/// Proves S-58.
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_calls_wait_over_sockets_and_each_gets_its_own_answer() {
    allow_many_files();
    let behind = http::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Options::default()).await.unwrap();
    let gateway = GatewayProcess::serve(&format!("[backends.a]\nurl = \"{}\"\n", behind.url())).await.unwrap();
    gateway.ready().await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..SESSIONS {
        let session = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
        for id in 0..CALLS {
            let session = session.clone();
            calls.spawn(async move {
                let params = json!({"name": "slow", "arguments": {"ms": SLEEP_MS}});
                (id, session.request(id, "tools/call", params).await)
            });
        }
    }
    let mut most = 0;
    let mut answered = 0;
    let mut looking = tokio::time::interval(std::time::Duration::from_millis(100));
    while answered < SESSIONS * CALLS {
        tokio::select! {
            Some(call) = calls.join_next() => {
                let (id, answer) = call.unwrap();
                let answer = answer.unwrap();
                assert_eq!(answer["id"], id);
                assert!(answer["result"].is_object(), "{answer}");
                answered += 1;
            }
            _ = looking.tick() => {
                let text = HttpClient::new(gateway.address()).get("/metrics").await.unwrap().body;
                most = most.max(in_flight(&String::from_utf8_lossy(&text)));
            }
        }
    }
    assert!(most >= SESSIONS * CALLS * 9 / 10, "only {most} calls were pending together");
}

/// Client, fixture and their sockets live in this process, beyond the soft limit that many systems start with.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// The number of requests in flight that the gateway reports.
fn in_flight(metrics: &str) -> u64 {
    let line = metrics.lines().find(|line| line.starts_with("signalbox_requests_in_flight "));
    line.and_then(|line| line.rsplit(' ').next()).and_then(|text| text.parse().ok()).unwrap_or(0)
}
