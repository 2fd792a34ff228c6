//! The tapes are asked by MCP: a client looks at its own recorded calls, and what it is shown is not recorded again.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{ask, child, eventually, signalbox, tool_names};
use std::path::Path;

const TAPES: &str = "[backends.tapes]\nbuiltin = \"tapes\"\n";

/// Asks the tapes in a session of 2025-06-18, which has structured content.
async fn tapes(client: &HttpClient, tool: &str, arguments: Value) -> Value {
    let mut answer = client.request(7, "tools/call", json!({"name": tool, "arguments": arguments})).await.unwrap();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    answer["result"]["structuredContent"].take()
}

/// The recorded calls of the tool, once there are so many.
async fn found(client: &HttpClient, tool: &str, enough: usize) -> Vec<Value> {
    let look = async || {
        let found = tapes(client, "tapes_search", json!({"tool": tool})).await;
        let calls = found["calls"].as_array()?.clone();
        (calls.len() >= enough).then_some(calls)
    };
    eventually("the calls are on the tape", look).await.unwrap()
}

/// Everything that the newest tape holds, as JSON lines.
async fn whole_tape(data_dir: &Path) -> Vec<Value> {
    let file = data_dir.join("all.jsonl");
    signalbox(data_dir, &["tape", "export", "last", "-o", file.to_str().unwrap()]).await.unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_asks_about_its_calls_and_the_answers_are_not_recorded() {
    let config = child("one", ServedEra::Old, "").unwrap() + TAPES;
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let names = tool_names(&client).await.unwrap();
    for name in ["tapes_search", "tapes_show", "tapes_stats", "tapes_diff"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    for name in ["marmalade", "marzipan"] {
        assert_eq!(ask(&client, "greet", json!({"name": name})).await.unwrap(), format!("Hello, {name}!"));
    }
    let calls = found(&client, "greet", 2).await;
    let call = |at: usize| json!({"tape": calls[at]["tape"], "exchange": calls[at]["exchange"]});
    let by_text = tapes(&client, "tapes_search", json!({"text": "marmalade"})).await;
    assert_eq!(by_text["calls"].as_array().unwrap().len(), 1, "questions about it are not found: {by_text}");
    let shown = tapes(&client, "tapes_show", call(0)).await;
    assert!(shown["answer"]["text"].as_str().unwrap().contains("Hello, marzipan!"), "{shown}");
    assert_eq!((&shown["backend"], &shown["outcome"]), (&json!("one"), &json!("success")));
    let stats = tapes(&client, "tapes_stats", json!({"tool": "greet"})).await;
    assert_eq!((&stats["total"]["calls"], &stats["total"]["errors"]), (&json!(2), &json!(0)));
    let diff = tapes(&client, "tapes_diff", json!({"first": call(1), "second": call(0)})).await;
    assert_eq!(diff["request"]["differences"][0]["pointer"], "/params/arguments/name", "{diff}");

    let data_dir = gateway.data_dir();
    let folder = gateway.stop().await.unwrap();
    let lines = whole_tape(&data_dir).await;
    let about = |line: &&Value| line.to_string().contains("tapes_show");
    assert!(lines.iter().filter(about).count() >= 2, "the question and its end are recorded");
    let answers = lines.iter().filter(|line| line.to_string().contains("Hello, marzipan!"));
    let own = answers.clone().filter(|line| line.to_string().contains("explanation")).count();
    assert_eq!(own, 0, "what was shown is not on the tape once more");
    assert!(answers.count() >= 1, "the call itself is");
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_new_era_asks_too_and_a_missing_store_is_said() {
    let config = child("one", ServedEra::Both, "").unwrap() + TAPES + "[record]\nenabled = false\n";
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = HttpClient::new(gateway.address());
    let params = json!({"name": "tapes_stats", "arguments": {}});
    let answer = client.modern(1, "tools/call", params).await.unwrap().message().unwrap();
    assert_eq!((&answer["result"]["isError"], &answer["result"]["resultType"]), (&json!(true), &json!("complete")));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("nothing was recorded yet"), "{text}");
    assert!(!gateway.data_dir().join("tapes.db").exists(), "asking makes no store");
}
