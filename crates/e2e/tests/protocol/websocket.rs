//! WebSocket on the MCP path of a real gateway: each connection is a session of its own, and ends with a reason.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::clients::run;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::{PipeClient, PipeEnd};
use signalbox_testkit::scene::{ask, call, child, eventually, signal, signalbox, status, text, tool_names};
use std::time::Duration;

const VERSION: &str = "2025-06-18";

async fn gateway(more: &str) -> GatewayProcess {
    GatewayProcess::serve(&format!("{more}\n{}", child("one", ServedEra::Old, "").unwrap())).await.unwrap()
}

async fn open(gateway: &GatewayProcess) -> PipeClient {
    PipeClient::websocket(gateway.address(), &[]).await.unwrap()
}

async fn session(gateway: &GatewayProcess) -> PipeClient {
    let mut client = open(gateway).await;
    client.initialize(VERSION, json!({})).await.unwrap();
    client
}

/// Waits until the gateway works on so many requests.
async fn busy(gateway: &GatewayProcess, wanted: u64) {
    let data_dir = gateway.data_dir();
    let look = async || status(&data_dir).await.ok().filter(|status| status["in_flight"] == wanted);
    eventually("requests in flight", look).await.unwrap();
}

fn with_progress(id: u64, ms: u64) -> String {
    let mut message = call(id, "slow", &json!({"ms": ms}));
    message["params"]["_meta"] = json!({"progressToken": "p"});
    message.to_string()
}

/// Proves G-1.
#[tokio::test(flavor = "multi_thread")]
async fn a_dialogue_over_websocket() {
    let gateway = gateway("").await;
    let mut client = open(&gateway).await;
    let hello = client.initialize(VERSION, json!({"elicitation": {}})).await.unwrap();
    assert_eq!(hello["result"]["protocolVersion"], VERSION);
    let list = client.request(1, "tools/list", json!({})).await.unwrap();
    assert!(list["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "ask_name"), "{list}");

    // Progress comes before the answer.
    client.say(&with_progress(2, 400)).await.unwrap();
    assert_eq!(text(&client.answer(2).await.unwrap()).unwrap(), "slept 400 ms");
    let reports: Vec<Value> = client.before.drain(..).collect();
    assert!(!reports.is_empty());
    for report in &reports {
        assert_eq!(
            (&report["method"], &report["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("p"))
        );
    }

    // The server asks the user, and the answer goes back on the same socket, in a binary frame for once.
    client.say(&call(3, "ask_name", &json!({})).to_string()).await.unwrap();
    let question = client.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let reply =
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}});
    client.say_binary(reply.to_string().as_bytes()).await.unwrap();
    assert_eq!(text(&client.answer(3).await.unwrap()).unwrap(), "Ada");

    // A request of the new era describes itself, so it is served on the same socket.
    let modern = client.modern(4, "tools/call", json!({"name": "greet", "arguments": {"name": "Eve"}})).await.unwrap();
    assert!(text(&modern).unwrap().contains("Eve"), "{modern}");
    assert_eq!(modern["result"]["resultType"], "complete", "{modern}");
}

/// Proves G-32.
#[tokio::test(flavor = "multi_thread")]
async fn one_listener_serves_websocket_and_http_whatever_the_type_says() {
    let gateway = gateway("[mcp.protocol.transport]\ntype = \"websocket\"").await;
    let http = HttpClient::new(gateway.address());
    assert_eq!(http.get("/healthz").await.unwrap().status, 200);
    let over_http = http.initialize(VERSION, json!({})).await.unwrap();
    let mut over_ws = session(&gateway).await;
    let list = over_ws.request(1, "tools/list", json!({})).await.unwrap();
    let names: Vec<&str> =
        list["result"]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(tool_names(&over_http).await.unwrap(), names);
    let data_dir = gateway.data_dir();
    let only_ws = async || status(&data_dir).await.ok().filter(|status| status["connections"] == 1);
    let status = eventually("only the WebSocket is connected", only_ws).await.unwrap();
    assert_eq!(status["url"], format!("ws://{}/mcp", gateway.address()));
    assert_eq!(status["sessions"], 2);
}

/// Proves G-1.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_client_of_the_typescript_sdk() {
    let gateway = gateway("").await;
    let url = format!("ws://{}/mcp", gateway.address());
    let arguments = ["ts-sdk1", "--url", &url, "--steps", "tools,call,elicit,progress", "--answer", "Ada"];
    let calls = ["--call", r#"greet={"name":"Bob"}"#, "--call", "ask_name={}", "--call", r#"slow={"ms":400}"#];
    let Some(document) = run(&[&arguments[..], &calls].concat()).await.unwrap() else {
        return println!("SKIP the TypeScript SDK: run script/install-test-deps");
    };
    assert_eq!(document["ok"], true, "{document:#}");
    let answers: Vec<String> =
        document["steps"]["call"].as_array().unwrap().iter().map(|call| call["result"].to_string()).collect();
    assert!(answers[0].contains("Bob") && answers[1].contains("Ada"), "{answers:?}");
    assert_ne!(document["progress"]["received"], 0, "{}", document["progress"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_connect_is_told_so_before_anything_is_opened() {
    let gateway = gateway("").await;
    for (header, value, expected) in [
        ("origin", "https://evil.example", "403 "),
        ("host", "evil.example", "403 "),
        ("sec-websocket-version", "8", "426 "),
        ("sec-websocket-key", "short", "400 "),
    ] {
        let refused = PipeClient::websocket(gateway.address(), &[(header, value)]).await.err().unwrap();
        assert!(refused.to_string().starts_with(expected), "{header}: {refused}");
    }
    assert_eq!(status(&gateway.data_dir()).await.unwrap()["sessions_opened"], 0);
    let own = format!("http://{}", gateway.address());
    let local = PipeClient::websocket(gateway.address(), &[("origin", &own)]).await;
    local.unwrap().initialize(VERSION, json!({})).await.unwrap();
    // Without an upgrade it is the GET it always was.
    assert_eq!(HttpClient::new(gateway.address()).get("/mcp").await.unwrap().status, 400);
}

/// A wrong credential of the upgrade ends the attempt, so that no second one is tried in the first message.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_credential_of_the_upgrade_ends_the_attempt() {
    let gateway = gateway("[mcp.protocol.security]\nrequire_authentication = true\n").await;
    for (header, value) in [("authorization", "Bearer nope"), ("authorization", "nope"), ("x-api-key", "nope")] {
        let refused = PipeClient::websocket(gateway.address(), &[(header, value)]).await.err();
        assert!(refused.is_some_and(|refused| refused.to_string().starts_with("401 ")), "{header}: {value}");
    }
    assert!(PipeClient::websocket(gateway.address(), &[]).await.is_ok(), "the first message may prove it");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_or_connection_too_many_is_refused() {
    let gateway = gateway("[mcp.protocol.security]\nmax_concurrent_sessions = 1").await;
    let first = session(&gateway).await;
    let refused = PipeClient::websocket(gateway.address(), &[]).await.err().unwrap().to_string();
    assert!(refused.starts_with("503 "), "{refused}");
    drop(first);
    let freed = async || PipeClient::websocket(gateway.address(), &[]).await.ok();
    eventually("the place is free again", freed).await.unwrap();

    let gateway = self::gateway("[gateway]\nmax_connections = 1").await;
    let one = async || PipeClient::websocket(gateway.address(), &[]).await.ok();
    let held = eventually("the connection of the first look has ended", one).await.unwrap();
    let refused = PipeClient::websocket(gateway.address(), &[]).await.err().unwrap().to_string();
    assert!(refused.starts_with("503 "), "{refused}");
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_answered_and_the_socket_stays() {
    let gateway = gateway("").await;
    let mut client = session(&gateway).await;
    for (bad, id, code) in [
        ("garbage", json!(null), -32700),
        ("", json!(null), -32700),
        (r#"{"jsonrpc":"2.0","id":7,"#, json!(null), -32700),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, json!(7), -32600),
        (r#"{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":1,"a":2}}"#, json!(8), -32600),
    ] {
        client.say(bad).await.unwrap();
        let refusal = client.next().await.unwrap();
        assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&id, &json!(code)), "{bad}: {refusal}");
    }
    client.say_binary(b"\xff\xfe").await.unwrap();
    assert_eq!(client.next().await.unwrap()["error"]["code"], -32700);
    assert!(client.request(9, "ping", json!({})).await.unwrap()["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_closes_this_socket_with_1009_and_no_other() {
    let gateway = gateway("[gateway]\nmax_message = 4096").await;
    let (mut greedy, mut other) = (session(&gateway).await, session(&gateway).await);
    let just = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_x":"{}"}}}}"#, "x".repeat(4000));
    greedy.say(&just).await.unwrap();
    assert!(greedy.answer(1).await.unwrap()["result"].is_object());
    // Far more than any buffer on the way holds; that nobody reads it to its end is no error here.
    let _ = greedy.say(&"x".repeat(8 * 1024 * 1024)).await;
    let (rest, end) = greedy.end().await.unwrap();
    assert!(matches!(&end, PipeEnd::Closed(1009, reason) if reason.contains("too large")), "{end:?}");
    assert!(rest.is_empty(), "{rest:?}");
    assert!(other.request(2, "ping", json!({})).await.unwrap()["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_ends_its_session_and_its_calls() {
    let gateway = gateway("").await;
    let observer = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let mut client = session(&gateway).await;
    client.say(&with_progress(1, 20_000)).await.unwrap();
    assert_eq!(client.next().await.unwrap()["method"], "notifications/progress");
    drop(client);
    let told = async || ask(&observer, "cancelled_count", json!({})).await.ok().filter(|count| count == "1");
    eventually("the backend is told", told).await.unwrap();
    let data_dir = gateway.data_dir();
    let only_observer = async || status(&data_dir).await.ok().filter(|status| status["sessions"] == 1);
    let status = eventually("the session has ended", only_observer).await.unwrap();
    assert_eq!(status["in_flight"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_not_read_from_and_loses_nothing() {
    const COUNT: u64 = 3_000;
    let gateway = gateway("").await;
    let mut client = session(&gateway).await;
    // Long enough that what waits does not fit into the buffers of the system.
    let filler = "x".repeat(20_000);
    let mut sent = 0;
    let sending = async {
        for id in 1..=COUNT {
            let params = json!({"name": "nobody", "arguments": {"filler": filler}});
            let message = json!({"jsonrpc": "2.0", "id": format!("{id}{filler}"), "method": "ping", "params": params});
            client.say(&message.to_string()).await.unwrap();
            sent = id;
        }
    };
    // The answers carry the ids, so neither side gets rid of its messages.
    assert!(tokio::time::timeout(std::time::Duration::from_secs(2), sending).await.is_err(), "all were taken");
    assert!(sent > 0);
    let mut other = session(&gateway).await;
    assert!(other.request(1, "ping", json!({})).await.unwrap()["result"].is_object());
    for id in 1..=sent {
        let answer = client.next().await.unwrap();
        assert!(answer["id"].as_str().unwrap().starts_with(&format!("{id}x")), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_finishes_calls_and_then_says_1001() {
    let mut gateway = gateway("").await;
    let (mut idle, mut at_work) = (session(&gateway).await, session(&gateway).await);
    at_work.say(&call(1, "slow", &json!({"ms": 1_500})).to_string()).await.unwrap();
    busy(&gateway, 1).await;
    signal(gateway.process.pid().unwrap(), "TERM").await.unwrap();
    let (rest, end) = idle.end().await.unwrap();
    assert!(matches!(&end, PipeEnd::Closed(1001, reason) if reason.contains("shutting down")), "{end:?} {rest:?}");
    // The idle one is gone, so the front has stopped: nothing new is begun, and what was begun is finished.
    let refused = at_work.request(2, "ping", json!({})).await.unwrap();
    assert_eq!(refused["error"]["data"]["reason"], "draining", "{refused}");
    assert_eq!(text(&at_work.answer(1).await.unwrap()).unwrap(), "slept 1500 ms");
    let (_, end) = at_work.end().await.unwrap();
    assert!(matches!(end, PipeEnd::Closed(1001, _)), "{end:?}");
    let status = gateway.process.wait(std::time::Duration::from_secs(20)).await.unwrap();
    assert!(status.success(), "{status}");
}

/// A client without a proof was closed by the first ping, after 15 s.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_the_whole_authentication_timeout_for_its_proof() {
    let security = "[mcp.protocol.security]\nrequire_authentication = true\nauthentication_timeout = 60";
    let gateway = gateway(security).await;
    let key = signalbox(&gateway.data_dir(), &["keys", "new", "late"]).await.unwrap().trim().to_owned();
    let mut client = open(&gateway).await;
    // The client answers pings only while it reads.
    assert!(tokio::time::timeout(Duration::from_secs(18), client.next()).await.is_err(), "nothing is said");
    let proof = json!({"jsonrpc": "2.0", "id": "a", "method": "signalbox/authenticate",
        "params": {"scheme": "bearer", "credential": key}});
    client.say(&proof.to_string()).await.unwrap();
    let hello = client.next().await.unwrap();
    assert_eq!(hello["result"]["subject"], "key:late", "{hello}");
}
