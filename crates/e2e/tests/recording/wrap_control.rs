//! `signalbox wrap` and `signalbox proxy` as `status`, `watch` and `hold` see them.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{eventually, web_fixture};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(60);

fn signalbox(data: &Path, words: &[&str]) -> Command {
    let mut signalbox = Command::new(built("signalbox").unwrap());
    signalbox.arg("--data-dir").arg(data).args(words);
    signalbox
}

/// What a command prints, and what it complains of.
async fn asked(data: &Path, words: &[&str]) -> (bool, String, String) {
    let output = signalbox(data, words).output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// The state of the only process that runs, once it is so.
async fn status(data: &Path, so: impl Fn(&Value) -> bool) -> Value {
    let look = async || {
        let (_, told, _) = asked(data, &["status", "--json"]).await;
        let all: Value = serde_json::from_str(&told).ok()?;
        all.get(0).filter(|one| so(one)).cloned()
    };
    eventually("the process tells its state", look).await.unwrap()
}

/// Holding is refused with the reason, and everything that asks all processes gets an answer.
async fn holds_nothing_and_says_why(data: &Path, command: &str) {
    let (ok, _, why) = asked(data, &["hold", "next"]).await;
    assert!(
        !ok && why.contains(&format!("`{command}` passes every byte on as it comes and can hold nothing")),
        "{why}"
    );
    assert!(why.contains("--rules"), "{why}");
    let (ok, _, why) = asked(data, &["hold", "release", "1"]).await;
    assert!(!ok && why.contains("can hold nothing"), "{why}");
    for (words, told) in [
        (&["hold", "list"][..], "Nothing is held."),
        (&["hold", "clear"], "0 breakpoints cleared"),
        (&["sessions", "list"], "No session is open."),
        (&["reload"], "it has no configuration to reload"),
        (&["tape", "list"], "running"),
    ] {
        let (ok, said, why) = asked(data, words).await;
        assert!(ok && said.contains(told), "{words:?}: {said}{why}");
    }
}

fn call(id: u32) -> String {
    let params = json!({"name": "greet", "arguments": {"name": "Ada"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_server_is_seen_by_status_and_watch_and_hold_says_that_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let server = built("fixture-server").unwrap();
    let mut wrap =
        Spawned::start(signalbox(data, &["wrap", "--", server.to_str().unwrap(), "--stdio", "--era", "old"])).unwrap();
    let told = status(data, |_| true).await;
    assert_eq!((&told["command"], told["pid"].as_u64()), (&json!("wrap"), wrap.pid().map(u64::from)), "{told}");
    assert!(told["target"].as_str().unwrap().ends_with("--stdio --era old"), "{told}");
    let watch = Spawned::start(signalbox(data, &["watch", "--json"])).unwrap();
    let watching = async || watch.lines().iter().any(|line| line.contains(r#""watching""#)).then_some(());
    eventually("somebody watches", watching).await.unwrap();

    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    wrap.write_line(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string())
        .await
        .unwrap();
    wrap.wait_line("{\"jsonrpc\":\"2.0\",\"id\":0,", PATIENCE).await.unwrap();
    wrap.write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.unwrap();
    wrap.write_line(&call(1)).await.unwrap();
    wrap.wait_line("{\"jsonrpc\":\"2.0\",\"id\":1,", PATIENCE).await.unwrap();

    let told = status(data, |told| told["traffic"]["total"]["calls"] == 2).await;
    assert!(told["recording"]["tape"].is_string(), "{told}");
    let (_, shown, _) = asked(data, &["status"]).await;
    assert!(shown.contains("passes to") && shown.contains("requests  2, errors: 0"), "{shown}");
    let finished = async || {
        let lines = watch.lines();
        lines.iter().any(|line| line.contains(r#""type":"finished""#) && line.contains("greet")).then_some(())
    };
    eventually("the call is watched", finished).await.unwrap();
    holds_nothing_and_says_why(data, "wrap").await;
    wrap.close_input();
    assert!(wrap.wait(PATIENCE).await.unwrap().success());
    let left: Vec<_> = std::fs::read_dir(data.join("run")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxied_server_is_seen_by_status_and_a_gateway_beside_it_is_still_the_one_that_holds() {
    let (_web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let (here, url) = (free_address().unwrap(), format!("http://{address}/mcp"));
    let _proxy = Spawned::start(signalbox(data, &["proxy", "--listen", &here.to_string(), &url])).unwrap();
    let told = status(data, |_| true).await;
    assert_eq!((&told["command"], &told["target"]), (&json!("proxy"), &json!(url)), "{told}");
    assert_eq!(told["url"], json!(format!("http://{here}/mcp")));
    let client = HttpClient::new(here).initialize("2025-06-18", json!({})).await.unwrap();
    client.request(1, "tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}})).await.unwrap();
    status(data, |told| told["traffic"]["total"]["calls"] == 2).await;
    holds_nothing_and_says_why(data, "proxy").await;

    let there = free_address().unwrap().to_string();
    let _gateway = Spawned::start(signalbox(data, &["serve", "--listen", &there])).unwrap();
    let both = async || {
        let (_, told, _) = asked(data, &["status", "--json"]).await;
        serde_json::from_str::<Value>(&told).ok()?.as_array().filter(|all| all.len() == 2).map(|_| ())
    };
    eventually("both run", both).await.unwrap();
    let (ok, said, why) = asked(data, &["hold", "next"]).await;
    assert!(ok && said.contains("breakpoint 1"), "{said}{why}");
    let (ok, said, why) = asked(data, &["tools", "list"]).await;
    assert!(ok && said.contains("echo"), "{said}{why}");
}
