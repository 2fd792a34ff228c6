//! The fixture over standard input and output, as the gateway's tests use it.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::time::Duration;

use serde_json::{Value, json};
use signalbox_testkit::process::Spawned;
use tokio::process::Command;

const SOON: Duration = Duration::from_secs(20);

struct Server(Spawned);

impl Server {
    fn start(era: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fixture-server"));
        command.args(["--stdio", "--era", era, "--name", "under-test"]);
        Self(Spawned::start(command).unwrap())
    }

    async fn opened(capabilities: Value) -> Self {
        let mut server = Self::start("old");
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client });
        let result = server.ask(0, "initialize", params).await;
        assert_eq!(result["result"]["serverInfo"]["name"], "under-test");
        server.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        server
    }

    async fn send(&mut self, message: Value) {
        self.0.write_line(&message.to_string()).await.unwrap();
    }

    async fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        self.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)).await
    }

    async fn call(&mut self, id: u32, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask(id, "tools/call", params).await;
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    async fn line(&self, prefix: &str) -> Value {
        serde_json::from_str(&self.0.wait_line(prefix, SOON).await.unwrap()).unwrap()
    }
}

fn stateless(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    params
}

#[tokio::test]
async fn an_old_server_asks_by_request() {
    let mut server = Server::opened(json!({ "elicitation": {} })).await;
    let params = json!({ "name": "ask_name", "arguments": {} });
    server.send(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })).await;
    let question = server.line(r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create""#).await;
    assert_eq!(question["params"]["message"], "What is your name?");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    server.send(json!({ "jsonrpc": "2.0", "id": 0, "result": answer })).await;
    let result = server.line(r#"{"jsonrpc":"2.0","id":7,"#).await;
    assert_eq!(result["result"]["content"][0]["text"], "Ada");
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told() {
    let mut server = Server::opened(json!({})).await;
    let text = server.call(1, "ask_name", json!({})).await;
    assert_eq!(text, "the client does not support elicitation");
}

#[tokio::test]
async fn a_new_server_asks_by_result() {
    let mut server = Server::start("new");
    let params = stateless(json!({ "name": "ask_name", "arguments": {} }));
    let first = server.ask(1, "tools/call", params.clone()).await;
    assert_eq!(first["result"]["resultType"], "input_required");
    assert_eq!(first["result"]["inputRequests"]["name"]["method"], "elicitation/create");
    let mut again = params;
    again["inputResponses"] = json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let second = server.ask(2, "tools/call", again).await;
    assert_eq!(second["result"]["content"][0]["text"], "Ada");
}

#[tokio::test]
async fn each_era_refuses_the_opening_of_the_other() {
    let mut old = Server::start("old");
    let refused = old.ask(1, "server/discover", stateless(json!({}))).await;
    assert_eq!(refused["error"]["code"], -32601);
    let mut new = Server::start("new");
    let refused = new.ask(1, "initialize", json!({})).await;
    assert_eq!(refused["error"]["code"], -32601);
    let found = new.ask(2, "server/discover", stateless(json!({}))).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
}

#[tokio::test]
async fn a_cancelled_call_is_remembered() {
    let mut server = Server::opened(json!({})).await;
    let params = json!({ "name": "slow", "arguments": { "ms": 60_000 }, "_meta": { "progressToken": "p" } });
    server.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    assert_eq!(server.call(2, "cancelled_count", json!({})).await, "0");
    let cancel = json!({ "requestId": 1, "reason": "enough" });
    server.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel })).await;
    for id in 3..200 {
        if server.call(id, "cancelled_count", json!({})).await == "1" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the cancellation did not arrive");
}

#[tokio::test]
async fn slow_reports_its_progress() {
    let mut server = Server::opened(json!({})).await;
    let params = json!({ "name": "slow", "arguments": { "ms": 100 }, "_meta": { "progressToken": "p" } });
    let done = server.ask(1, "tools/call", params).await;
    assert_eq!(done["result"]["content"][0]["text"], "slept 100 ms");
    let seen = server.0.lines();
    let progress = seen.iter().filter(|line| line.contains("notifications/progress"));
    assert_eq!(progress.count(), 10);
}

#[tokio::test]
async fn the_counter_counts_and_big_is_big() {
    let mut server = Server::opened(json!({})).await;
    assert_eq!(server.call(1, "count", json!({})).await, "1");
    assert_eq!(server.call(2, "count", json!({})).await, "2");
    let big = server.call(3, "big", json!({ "bytes": 3_000_000 })).await;
    assert_eq!(big.len(), 3_000_000);
}

#[tokio::test]
async fn log_messages_obey_the_level() {
    let mut server = Server::opened(json!({})).await;
    server.ask(1, "logging/setLevel", json!({ "level": "error" })).await;
    let log = |level: &str| json!({ "level": level, "message": format!("a {level}") });
    assert_eq!(server.call(2, "emit_log", log("info")).await, "held back");
    assert_eq!(server.call(3, "emit_log", log("error")).await, "sent");
    let seen = server.0.lines().join("\n");
    assert!(seen.contains("a error"));
    assert!(!seen.contains("a info"));
}

#[tokio::test]
async fn lists_and_resources_change() {
    let mut server = Server::opened(json!({})).await;
    server.ask(1, "resources/subscribe", json!({ "uri": "test://watched-resource" })).await;
    server.call(2, "touch_resource", json!({})).await;
    server.call(3, "test_trigger_tool_change", json!({})).await;
    server.line(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated""#).await;
    server.line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed""#).await;
    let list = server.ask(4, "tools/list", json!({})).await;
    assert!(list.to_string().contains("extra_tool"));
    assert!(list.to_string().contains(r#""_meta":{"ui":{"resourceUri":"ui://fixture/panel"},"#));
}

#[tokio::test]
async fn a_crash_ends_the_process() {
    let mut server = Server::opened(json!({})).await;
    let params = json!({ "name": "crash" });
    server.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    assert!(!server.0.wait(SOON).await.unwrap().success());
}

#[tokio::test]
async fn the_end_of_input_ends_the_process() {
    let mut server = Server::opened(json!({})).await;
    server.0.close_input();
    assert!(server.0.wait(SOON).await.unwrap().success());
}
