//! A gateway whose tapes have a bound: one tape ends and the next begins while clients call, and together they are the
//! whole story.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{ask, child, eventually, signalbox, status};
use std::collections::BTreeSet;
use std::path::Path;
use tokio::process::Command;

const VERSION: &str = "2025-06-18";
const CALLS: usize = 300;

async fn as_json(data_dir: &Path, args: &[&str]) -> Value {
    let text = signalbox(data_dir, &[args, &["--json"]].concat()).await.unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The id of the tape that is being written.
async fn current(data_dir: &Path) -> String {
    status(data_dir).await.unwrap()["recording"]["tape"].as_str().unwrap().to_owned()
}

/// The ids of all tapes, the oldest first.
async fn tapes(data_dir: &Path) -> Vec<String> {
    let listed = as_json(data_dir, &["tape", "list"]).await;
    let ids = listed.as_array().unwrap().iter().map(|tape| tape["id"].as_str().unwrap().to_owned());
    ids.rev().collect()
}

/// The names that were greeted, as the requests on a tape have them.
async fn greeted(data_dir: &Path, tape: &str) -> Vec<String> {
    let lines = signalbox(data_dir, &["tape", "export", tape, "--format", "jsonl", "-o", "-"]).await.unwrap();
    let entries = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let requests = entries.filter(|entry| entry["message"]["point"] == "client to gateway");
    let names = requests.filter_map(|entry| {
        let request: Value = serde_json::from_str(entry["message"]["text"].as_str()?).ok()?;
        Some(request["params"]["arguments"]["name"].as_str()?.to_owned())
    });
    names.collect()
}

/// With `max_tape_size` a process records several tapes. Each is sealed and closed, the sum has every call once, and
/// one of them alone answers as a server and runs as a test.
/// Proves SO-9.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_goes_on_on_the_next_tape_and_no_call_is_missing() {
    let config = child("only", ServedEra::Old, "").unwrap()
        + r#"
[record]
max_tape_size = 65_536

[[rules]]
id = "tell"
when = { tool = "nothing" }
then = [{ log = "x" }]
"#;
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let data_dir = gateway.data_dir();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let first = current(&data_dir).await;
    for call in 0..CALLS {
        let name = format!("caller-{call:03}");
        assert_eq!(ask(&client, "greet", json!({"name": name})).await.unwrap(), format!("Hello, {name}!"));
    }
    let last = current(&data_dir).await;
    assert_ne!(first, last, "the tape went on under another id");
    let kept = gateway.terminate().await.unwrap();
    let ids = tapes(&data_dir).await;
    assert!(ids.len() >= 3 && ids[0] == first && ids.contains(&last), "{ids:?}");
    let mut names = Vec::new();
    for tape in &ids {
        let verified = as_json(&data_dir, &["tape", "verify", tape]).await;
        assert_eq!((&verified["exit_code"], &verified["missing_facts"]), (&json!(0), &json!(0)), "{verified}");
        let shown = as_json(&data_dir, &["tape", "show", tape]).await;
        assert_eq!(shown["unfinished"], json!([]), "{shown}");
        let calls = shown["calls"].as_array().unwrap();
        let greeted = greeted(&data_dir, tape).await;
        assert!(calls.len() >= greeted.len(), "{shown}");
        if !greeted.is_empty() {
            assert_eq!(shown["sessions"].as_array().unwrap().len(), 1, "{shown}");
            assert_eq!(shown["rules"].as_array().unwrap().len(), 1, "{shown}");
        }
        names.extend(greeted);
    }
    let all: BTreeSet<&String> = names.iter().collect();
    assert_eq!((names.len(), all.len()), (CALLS, CALLS), "{names:?}");
    replay(&data_dir, &ids[1]).await;
    drop(kept);
}

/// Serves a tape, and runs its calls against that.
async fn replay(data_dir: &Path, tape: &str) {
    let program = built("signalbox").unwrap();
    let mut command = Command::new(&program);
    command.args(["replay", "run", tape, "--allow-writes", "--data-dir"]).arg(data_dir).arg("--");
    command.arg(&program).args(["replay", "serve", tape, "--stdio", "--data-dir"]).arg(data_dir);
    let output = command.kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the same") && !said.contains("different"), "{said}");
}

/// An old tape ends while nothing happens, and its successor knows what the backends offer.
/// Proves SO-9.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_tape_says_again_what_backends_offer() {
    let config = child("only", ServedEra::Old, "").unwrap() + "\n[record]\nmax_tape_size = 65_536\n";
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let data_dir = gateway.data_dir();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let first = current(&data_dir).await;
    let long = "x".repeat(40_000);
    ask(&client, "greet", json!({"name": long})).await.unwrap();
    let moved = async || Some(current(&data_dir).await).filter(|tape| *tape != first);
    let next = eventually("the next tape has begun", moved).await.unwrap();
    let offered = async || {
        let lines = signalbox(&data_dir, &["tape", "export", &next, "--format", "jsonl", "-o", "-"]).await.unwrap();
        lines.contains("\"backend\":{\"backend\":\"only\"").then_some(())
    };
    eventually("the next tape has the backend", offered).await.unwrap();
    gateway.stop().await.unwrap();
}
