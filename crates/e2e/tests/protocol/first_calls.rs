//! The first list and the first call of a client, at real servers that ask the client first and at servers that
//! are slow to start.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::clients::{self, run_script};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{status, tool_names};
use std::path::Path;
use std::time::{Duration, Instant};

/// Calls a tool as a client whose only root is this folder.
async fn first_call(gateway: &GatewayProcess, root: &Path, tool: &str, arguments: Value) -> Value {
    let mut client = PipeClient::websocket(gateway.address(), &[]).await.unwrap();
    client.initialize("2025-06-18", json!({"roots": {"listChanged": true}})).await.unwrap();
    let call =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    client.say(&call.to_string()).await.unwrap();
    loop {
        let message = client.next().await.unwrap();
        if message["method"] == "roots/list" {
            let roots = json!([{"uri": format!("file://{}", root.display()), "name": "root"}]);
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}});
            client.say(&answer.to_string()).await.unwrap();
        } else if message["id"] == 7 {
            return message;
        }
    }
}

/// The folder that the server was started with is not the one that the client allows.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_call_at_server_filesystem_is_within_the_roots_of_the_client_every_time() {
    let (started_with, allowed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = allowed.path().canonicalize().unwrap();
    std::fs::write(root.join("note.txt"), "within the root").unwrap();
    let script = json!(run_script().to_str().unwrap());
    let config = format!("[backends.files]\ncommand = {script}\nargs = [\"filesystem\", {:?}]\n", started_with.path());
    if matches!(clients::run(&["ts-sdk1", "--help"]).await, Ok(None)) {
        println!("SKIP server-filesystem: run script/install-test-deps");
        return;
    }
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let bare = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    assert!(tool_names(&bare).await.unwrap().contains(&"read_text_file".to_owned()));
    for round in 0..20 {
        let called = first_call(&gateway, &root, "read_text_file", json!({"path": root.join("note.txt")})).await;
        let text = called["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!((text, &called["result"]["isError"]), ("within the root", &Value::Null), "round {round}: {called}");
    }
}

/// A process for old clients would take another 20 s, and Claude Code gives up after 5.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_client_lists_a_slow_server_of_both_eras_as_soon_as_it_has_started() {
    let fixture = built("fixture-server").unwrap();
    let script = json!(format!("sleep 20; exec '{}' --stdio --era both", fixture.display()));
    let config = format!("[backends.slow]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\nstart_timeout = 60\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let data_dir = gateway.data_dir();
    let up = async {
        while status(&data_dir).await.ok().is_none_or(|status| status["backends"][0]["state"] != "up") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), up).await.unwrap();
    let started = Instant::now();
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let tools = tool_names(&client).await.unwrap();
    let took = started.elapsed();
    assert!(tools.contains(&"greet".to_owned()), "{tools:?}");
    // A second process would take twice as long even on an idle machine.
    assert!(took < Duration::from_secs(10), "{took:?}");
    let url = gateway.url();
    if let Some(said) = clients::run(&["ts-sdk1", "--steps", "tools", "--url", &url]).await.unwrap() {
        let names = said["steps"]["tools"]["names"].as_array().unwrap();
        assert!(names.contains(&json!("greet")), "{said}");
    }
}
