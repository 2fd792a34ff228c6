//! Both eras, requests side by side, progress and cancellation.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Dialogue, Folder};
use crate::DemoServer;
use signalbox_embedded::revision::{META_CAPABILITIES, META_SERVER, META_VERSION};

const OLD: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[tokio::test]
async fn an_old_session_from_beginning_to_end() {
    let folder = Folder::new();
    for revision in OLD {
        let mut peer = Dialogue::start(folder.path());
        let params =
            json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let hello = peer.ask("initialize", params).await;
        assert_eq!(hello["result"]["protocolVersion"], revision);
        assert_eq!(hello["result"]["capabilities"], json!({"tools": {}}));
        assert_eq!(hello["result"]["serverInfo"]["name"], "signalbox-demo");
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(peer.ask("ping", json!({})).await["result"], json!({}));
        let list = peer.ask("tools/list", json!({})).await;
        assert!(list["result"].get("ttlMs").is_none() && list["result"].get("resultType").is_none());
        let echo = peer.call("echo", json!({"text": "hi"})).await;
        let expected = json!({"content": [{"type": "text", "text": "hi"}], "isError": false});
        assert_eq!(echo["result"], expected);
        peer.end().await;
    }
}

#[tokio::test]
async fn initialize_with_an_unknown_or_stateless_revision_gets_the_last_with_sessions() {
    let folder = Folder::new();
    for asked in ["2026-07-28", "2099-01-01", "nonsense"] {
        let mut peer = Dialogue::start(folder.path());
        let hello = peer.ask("initialize", json!({"protocolVersion": asked})).await;
        assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
    }
    let mut peer = Dialogue::start(folder.path());
    assert_eq!(peer.ask("initialize", json!({})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_stateless_client_needs_no_session() {
    let folder = Folder::new();
    let mut peer = Dialogue::start(folder.path());
    let found = peer.ask_stateless("server/discover", json!({})).await["result"].take();
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["capabilities"], json!({"tools": {}}));
    let list = peer.ask_stateless("tools/list", json!({})).await["result"].take();
    let echo = peer.call_stateless("echo", json!({"text": "hi"})).await["result"].take();
    let failed = peer.call_stateless("directory_list", json!({"path": "/etc"})).await["result"].take();
    for result in [&found, &list, &echo, &failed] {
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(result["_meta"][META_SERVER]["name"], "signalbox-demo", "{result}");
    }
    for cached in [&found, &list] {
        assert_eq!(cached["ttlMs"], 3_600_000);
        assert_eq!(cached["cacheScope"], "public");
    }
    assert!(echo.get("ttlMs").is_none());
    for removed in ["ping", "logging/setLevel", "resources/subscribe", "subscriptions/listen"] {
        let answer = peer.ask_stateless(removed, json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{removed}");
    }
}

#[tokio::test]
async fn a_stateless_request_without_its_keys_is_refused() {
    let folder = Folder::new();
    let mut peer = Dialogue::start(folder.path());
    for method in ["server/discover", "tools/list", "tools/call"] {
        assert_eq!(peer.ask(method, json!({})).await["error"]["code"], -32602, "{method}");
        let half = json!({"_meta": {META_VERSION: "2026-07-28"}});
        assert_eq!(peer.ask(method, half).await["error"]["code"], -32602, "{method}");
        let half = json!({"_meta": {META_CAPABILITIES: {}}});
        assert_eq!(peer.ask(method, half).await["error"]["code"], -32602, "{method}");
    }
    let future = json!({"_meta": {META_VERSION: "2099-01-01", META_CAPABILITIES: {}}});
    let refused = peer.ask("server/discover", future).await;
    assert_eq!(refused["error"]["code"], -32022);
    let data = json!({"supported": ["2026-07-28"], "requested": "2099-01-01"});
    assert_eq!(refused["error"]["data"], data);
}

#[tokio::test]
async fn both_eras_share_one_connection() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-03-26").await;
    let new = peer.call_stateless("echo", json!({"text": "new"})).await;
    assert_eq!(new["result"]["resultType"], "complete");
    let old = peer.call("echo", json!({"text": "old"})).await;
    assert!(old["result"].get("resultType").is_none());
    assert_eq!(peer.ask("server/discover", json!({})).await["error"]["code"], -32601);
}

#[tokio::test]
async fn tools_carry_only_the_fields_of_their_revision() {
    let folder = Folder::new();
    let expected: [(&str, &[&str]); 4] = [
        ("2024-11-05", &["name", "description", "inputSchema"]),
        ("2025-03-26", &["name", "description", "inputSchema", "annotations"]),
        ("2025-06-18", &["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"]),
        ("2025-11-25", &["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"]),
    ];
    for (revision, fields) in expected {
        let mut peer = Dialogue::session(folder.path(), revision).await;
        let list = peer.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().expect("a list").clone();
        let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["countdown", "directory_list", "echo"]);
        let listing = tools[1].as_object().expect("an object");
        let found: Vec<&str> = listing.keys().map(String::as_str).collect();
        assert_eq!(found, fields, "{revision}");
    }
}

#[tokio::test]
async fn unknown_methods_tools_and_cursors_are_errors() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-11-25").await;
    for method in ["prompts/list", "resources/list", "tools/invoke", "logging/setLevel", "", "TOOLS/LIST"] {
        assert_eq!(peer.ask(method, json!({})).await["error"]["code"], -32601, "{method}");
    }
    for params in [
        json!({}),
        json!({"name": 7}),
        json!({"name": "rm"}),
        json!({"name": "echo", "arguments": []}),
        json!({"name": "echo", "arguments": null}),
        json!({"name": "echo", "arguments": {"text": "x"}, "_meta": {"progressToken": {}}}),
    ] {
        let answer = peer.ask("tools/call", params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{params}");
    }
    assert_eq!(peer.ask("tools/list", json!({"cursor": ""})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn notifications_and_answers_are_never_answered() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-11-25").await;
    for message in [
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#,
        r#"{"jsonrpc":"2.0","method":"no/such/notification"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
    ] {
        peer.send_raw(message).await;
    }
    assert_eq!(peer.ask("ping", json!({})).await["result"], json!({}));
    peer.silence(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_without_an_id() {
    let folder = Folder::new();
    let mut peer = Dialogue::start(folder.path());
    for (text, code) in
        [("{", -32700), ("[]", -32600), ("7", -32600), (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600)]
    {
        peer.send_raw(text).await;
        let answer = peer.next().await;
        assert_eq!(answer["error"]["code"], code, "{text}");
        assert!(answer.get("id").is_none());
    }
    let deep = "[".repeat(100_000);
    peer.send_raw(&deep).await;
    assert_eq!(peer.next().await["error"]["code"], -32700);
}

#[tokio::test]
async fn countdown_reports_progress_under_the_callers_own_token() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-11-25").await;
    for token in [json!("a"), json!(7), json!("7"), json!(0), json!(-3), json!("")] {
        let params = json!({
            "name": "countdown",
            "arguments": {"from": 3, "interval_ms": 10},
            "_meta": {"progressToken": token},
        });
        peer.send(json!({"jsonrpc": "2.0", "id": token, "method": "tools/call", "params": params})).await;
        for done in 1..=3 {
            let report = peer.next().await;
            assert_eq!(report["method"], "notifications/progress");
            assert_eq!(report["params"]["progressToken"], token);
            assert_eq!(report["params"]["progress"], done);
            assert_eq!(report["params"]["total"], 3);
            assert!(report["params"]["message"].is_string());
        }
        let end = peer.next().await;
        assert_eq!(end["id"], token, "the id keeps its type too");
        assert_eq!(end["result"]["isError"], false);
    }
}

#[tokio::test]
async fn countdown_without_a_token_is_silent_and_the_first_revision_gets_no_progress_text() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2024-11-05").await;
    let quiet = peer.call("countdown", json!({"from": 2, "interval_ms": 10})).await;
    assert_eq!(quiet["result"]["isError"], false);
    let params = json!({
        "name": "countdown",
        "arguments": {"from": 1, "interval_ms": 10},
        "_meta": {"progressToken": 1},
    });
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
    assert_eq!(peer.next().await["params"], json!({"progressToken": 1, "progress": 1, "total": 1}));
}

fn countdown(id: Value, from: u32, interval_ms: u32) -> Value {
    let params = json!({"name": "countdown", "arguments": {"from": from, "interval_ms": interval_ms}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[tokio::test]
async fn requests_run_side_by_side() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-11-25").await;
    let started = Instant::now();
    for id in 100..110 {
        peer.send(countdown(json!(id), 1, 300)).await;
    }
    assert_eq!(peer.ask("ping", json!({})).await["result"], json!({}));
    let echo = peer.call("echo", json!({"text": "first"})).await;
    assert_eq!(echo["result"]["content"][0]["text"], "first");
    for _ in 0..10 {
        assert_eq!(peer.next().await["result"]["isError"], false);
    }
    assert!(started.elapsed() < Duration::from_millis(2000), "ten after each other would take three seconds");
}

#[tokio::test]
async fn cancelling_stops_the_countdown_that_was_meant_and_no_other() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-11-25").await;
    peer.send(countdown(json!(1000), 20, 2000)).await;
    peer.send(countdown(json!("1000"), 1, 200)).await;
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1000}})).await;
    let other = peer.next().await;
    assert_eq!(other["id"], "1000");
    peer.silence(Duration::from_millis(100)).await;
    peer.send(countdown(json!(1000), 1, 10)).await;
    assert_eq!(peer.next().await["id"], 1000, "the id is free again");
}

#[tokio::test]
async fn a_cancelled_countdown_also_stops_reporting() {
    let folder = Folder::new();
    let mut peer = Dialogue::start(folder.path());
    let meta = json!({META_VERSION: "2026-07-28", META_CAPABILITIES: {}, "progressToken": "t"});
    let arguments = json!({"from": 20, "interval_ms": 50});
    let params = json!({"name": "countdown", "arguments": arguments, "_meta": meta});
    peer.send(json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params})).await;
    assert_eq!(peer.next().await["params"]["progress"], 1);
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}})).await;
    // Whatever was on its way is heard before the answer to a later request.
    peer.send(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
    while peer.next().await["id"] != 2 {}
    peer.silence(Duration::from_millis(300)).await;
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_too_many_calls_are_too() {
    let folder = Folder::new();
    let mut peer = Dialogue::session(folder.path(), "2025-11-25").await;
    peer.send(countdown(json!(500), 20, 2000)).await;
    peer.send(countdown(json!(500), 1, 10)).await;
    assert_eq!(peer.next().await["error"]["code"], -32600);
    for id in 501..=564 {
        peer.send(countdown(json!(id), 20, 2000)).await;
    }
    let refused = peer.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(564), &json!(4290)));
    assert_eq!(refused["error"]["data"]["reason"], "too_many_running");
    peer.end().await;
}

#[tokio::test]
async fn when_the_input_ends_running_calls_are_still_answered() {
    let folder = Folder::new();
    let peer = Dialogue::session(folder.path(), "2025-11-25").await;
    peer.send(countdown(json!(9), 2, 50)).await;
    let Dialogue { to, mut from, server, .. } = peer;
    drop(to);
    let last = from.recv().await.expect("an answer");
    assert!(String::from_utf8_lossy(&last).contains("\"id\":9"));
    server.await.expect("the server ends");
    assert_eq!(from.recv().await, None);
}

#[tokio::test]
async fn bad_arguments_are_results_since_2025_11_25_and_errors_before() {
    let folder = Folder::new();
    for revision in OLD {
        for (tool, arguments) in [
            ("echo", json!({})),
            ("countdown", json!({"from": 99})),
            ("directory_list", json!({"path": ".", "limit": 0})),
        ] {
            let mut peer = Dialogue::session(folder.path(), revision).await;
            let answer = peer.call(tool, arguments).await;
            if revision < "2025-11-25" {
                assert_eq!(answer["error"]["code"], -32602, "{answer}");
                assert_eq!(answer["error"]["data"]["reason"], "invalid_arguments");
            } else {
                assert_eq!(answer["result"]["isError"], true, "{answer}");
            }
        }
    }
    let mut peer = Dialogue::start(folder.path());
    let answer = peer.call_stateless("echo", json!({"txt": "x"})).await;
    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("`txt` is not an argument; echo takes text"), "{text}");
}

#[test]
fn a_root_that_is_not_there_is_an_error_that_names_it() {
    let folder = Folder::new();
    let missing = folder.path().join("missing");
    let error = DemoServer::new(missing.clone()).expect_err("it is missing");
    assert!(error.to_string().contains(&missing.display().to_string()));
}
