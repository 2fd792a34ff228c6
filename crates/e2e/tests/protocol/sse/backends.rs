//! Backends that speak HTTP+SSE, behind clients that speak something newer.

use super::installed;
use serde_json::{Value, json};
use signalbox_testkit::clients::{run, run_script};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::{ask, backend_status, call, eventually, tool_names};
use signalbox_testkit::sse_client::SseClient;
use signalbox_testkit::sse_server::SseServer;
use tokio::process::Command;

fn config(server: &SseServer, more: &str) -> String {
    format!("[backends.old]\nurl = \"http://{}/sse\"\n{more}\n", server.address)
}

async fn session(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_backend_serves_clients_of_every_kind() {
    for more in ["transport = 'sse'", "transport = 'auto'", ""] {
        let server = SseServer::start().await.unwrap();
        let gateway = GatewayProcess::serve(&config(&server, more)).await.unwrap();
        let client = session(&gateway).await;
        assert_eq!(tool_names(&client).await.unwrap(), ["echo", "hang"], "{more}");
        assert_eq!(ask(&client, "echo", json!({"a": 1})).await.unwrap(), r#"{"a":1}"#);
        let modern = HttpClient::new(gateway.address());
        let answer = modern.modern(1, "tools/call", json!({"name": "echo", "arguments": {"b": 2}})).await.unwrap();
        assert!(answer.message().unwrap()["result"]["content"][0]["text"] == r#"{"b":2}"#, "{answer:?}");
        let mut old = SseClient::open(gateway.address()).await.unwrap();
        old.initialize("2024-11-05", json!({})).await.unwrap();
        let answer = old.request(1, "tools/call", json!({"name": "echo", "arguments": {}})).await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "{}");
        // All of them can share one connection, as over a pipe; one that can be asked needs its own.
        assert_eq!(server.opened(), 1, "{more}");
        let asked = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({"roots": {}})).await.unwrap();
        assert_eq!(ask(&asked, "echo", json!({})).await.unwrap(), "{}");
        assert_eq!(server.opened(), 2, "{more}");
        let status = backend_status(&gateway.data_dir(), "old").await.unwrap();
        assert_eq!((status["transport"].as_str(), status["revision"].as_str()), (Some("sse"), Some("2024-11-05")));
    }
}

/// Proves N-46.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_stream_fails_its_calls_once_and_the_backend_comes_back() {
    let server = SseServer::start().await.unwrap();
    let gateway = GatewayProcess::serve(&config(&server, "")).await.unwrap();
    let client = session(&gateway).await;
    assert_eq!(tool_names(&client).await.unwrap(), ["echo", "hang"]);
    let hanging = {
        let client = client.clone();
        tokio::spawn(async move { client.post(&call(9, "hang", &json!({})).to_string()).await.unwrap() })
    };
    let at_work = async || server.methods().contains(&"tools/call".to_owned()).then_some(());
    eventually("the call arrives", at_work).await.unwrap();
    server.cut();
    let messages = hanging.await.unwrap().messages().unwrap();
    assert_eq!(messages.len(), 1, "{messages:?}");
    let fault = &messages[0];
    assert_eq!((&fault["id"], &fault["error"]["data"]["reason"]), (&json!(9), &json!("backend_died")), "{fault}");
    let text = fault["error"]["message"].as_str().unwrap();
    assert!(text.contains("`old`") && text.contains("event stream"), "{text}");
    // A call that comes meanwhile waits for the new connection.
    assert_eq!(ask(&client, "echo", json!({"back": true})).await.unwrap(), r#"{"back":true}"#);
    assert_eq!(server.opened(), 2);
    let calls = server.methods().iter().filter(|method| *method == "tools/call").count();
    assert_eq!(calls, 2, "nothing is sent twice");
    let status = backend_status(&gateway.data_dir(), "old").await.unwrap();
    assert_eq!((&status["restarts"], &status["transport"]), (&json!(1), &json!("sse")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_told_to_an_old_backend() {
    let server = SseServer::start().await.unwrap();
    let gateway = GatewayProcess::serve(&config(&server, "transport = 'sse'")).await.unwrap();
    let client = session(&gateway).await;
    let hanging = {
        let client = client.clone();
        tokio::spawn(async move { client.post(&call(9, "hang", &json!({})).to_string()).await })
    };
    eventually("the call arrives", async || server.methods().contains(&"tools/call".to_owned()).then_some(()))
        .await
        .unwrap();
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}});
    assert_eq!(client.post(&cancel.to_string()).await.unwrap().status, 202);
    let told = async || server.methods().contains(&"notifications/cancelled".to_owned()).then_some(());
    eventually("the cancellation arrives", told).await.unwrap();
    hanging.abort();
}

/// `server-everything` in the mode of 2024-11-05, and where it listens.
async fn everything() -> (Spawned, String) {
    let address = free_address().unwrap();
    let mut command = Command::new(run_script());
    command.args(["everything", "sse"]).env("PORT", address.port().to_string());
    let server = Spawned::start(command).unwrap();
    let listening = async || tokio::net::TcpStream::connect(address).await.ok();
    eventually("server-everything listens", listening).await.unwrap();
    (server, format!("http://{address}/sse"))
}

async fn through_everything(more: &str) {
    let (_server, url) = everything().await;
    let gateway = GatewayProcess::serve(&format!("[backends.ev]\nurl = \"{url}\"\n{more}\n")).await.unwrap();
    let client = session(&gateway).await;
    let names = tool_names(&client).await.unwrap();
    assert!(names.contains(&"echo".to_owned()) && names.contains(&"get-sum".to_owned()), "{more}: {names:?}");
    assert_eq!(ask(&client, "echo", json!({"message": "by SSE"})).await.unwrap(), "Echo: by SSE");
    let status = backend_status(&gateway.data_dir(), "ev").await.unwrap();
    assert_eq!((&status["transport"], &status["state"]), (&json!("sse"), &json!("up")), "{more}: {status}");
    // A question in the middle of a call, and its answer.
    let asked = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({"sampling": {}})).await.unwrap();
    let sample = call(3, "trigger-sampling-request", &json!({"prompt": "hi", "maxTokens": 10}));
    let mut stream = EventStream::post(&asked, &sample).await.unwrap();
    let question = stream.until(|message| message["method"] == "sampling/createMessage").await.unwrap();
    let result = json!({"model": "m", "role": "assistant", "content": {"type": "text", "text": "sampled by a test"}});
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(asked.post(&reply.to_string()).await.unwrap().status, 202);
    let answer = stream.until(|message| message["id"] == 3).await.unwrap();
    assert!(answer.to_string().contains("sampled by a test"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_everything_by_sse_is_configured_or_found_out() {
    if !installed().await {
        return;
    }
    through_everything("transport = \"sse\"").await;
    through_everything("").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn real_clients_use_server_everything_by_sse() {
    if !installed().await {
        return;
    }
    let (_server, url) = everything().await;
    let gateway = GatewayProcess::serve(&format!("[backends.ev]\nurl = \"{url}\"\n")).await.unwrap();
    for client in ["ts-sdk1", "py-mcp1"] {
        let at = gateway.url();
        let document: Value = run(&[
            client,
            "--steps",
            "tools,call,elicit,progress",
            "--answer",
            "Ada",
            "--call",
            r#"echo={"message":"hello"}"#,
            "--call",
            "trigger-elicitation-request={}",
            "--call",
            r#"trigger-long-running-operation={"duration":1,"steps":4}"#,
            "--url",
            &at,
        ])
        .await
        .unwrap()
        .unwrap();
        assert_eq!(document["ok"], true, "{client}: {document:#}");
        assert!(document["steps"]["call"][0].to_string().contains("Echo: hello"), "{client}: {document:#}");
        assert!(document["steps"]["call"][1].to_string().contains("Ada"), "{client}: {document:#}");
        assert_eq!(document["progress"]["received"], 4, "{client}: {}", document["progress"]);
    }
}
