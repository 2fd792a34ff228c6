//! Tasks through the gateway, between clients and servers of different revisions.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_server::{Network, Options, RunningServer, start};
use signalbox_testkit::scene::{call, eventually, lists_saved, text};

/// How the gateway reaches its one backend.
#[derive(Copy, Clone, Debug)]
enum Way {
    Http,
    Stdio,
}

/// A gateway with one backend of this revision; the backend itself where it runs in this process.
async fn gateway(revision: Revision, way: Way) -> (GatewayProcess, Option<RunningServer>) {
    let (config, running) = match way {
        Way::Http => {
            let options = Options::of(revision);
            let running = start(&options, Network::Http, "127.0.0.1:0".parse().unwrap()).await.unwrap();
            (format!("[backends.only]\nurl = \"{}\"\n", running.url()), Some(running))
        }
        Way::Stdio => {
            let program = json!(built("revision-server").unwrap().to_str().unwrap());
            let args = json!(["--stdio", "--revision", revision.to_string()]);
            (format!("[backends.only]\ncommand = {program}\nargs = {args}\n"), None)
        }
    };
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    lists_saved(&gateway.data_dir()).await.unwrap();
    (gateway, running)
}

/// What the server has counted.
async fn counts(client: &HttpClient) -> Value {
    let answer = client.request(900, "tools/call", json!({"name": "counts", "arguments": {}})).await.unwrap();
    serde_json::from_str(&text(&answer).unwrap()).unwrap()
}

async fn ran_once_and_without_fault(client: &HttpClient) {
    let counts = counts(client).await;
    assert_eq!(counts["runs"]["task"], 1, "{counts}");
    assert_eq!(faults(&counts), Vec::<String>::new());
}

/// What the server found wrong, but for the question which era it is of.
fn faults(counts: &Value) -> Vec<String> {
    let all = counts["violations"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let probe = |fault: &&str| fault.starts_with("initialize:") || fault.starts_with("server/discover:");
    all.filter(|fault| !probe(fault)).map(str::to_owned).collect()
}

/// Reads a stream until the request `id` is answered, and answers what is asked on the way.
async fn answered(client: &HttpClient, stream: &mut EventStream, id: u64) -> Value {
    loop {
        let message = stream.next().await.unwrap().unwrap();
        if message["id"] == id && message.get("method").is_none() {
            return message;
        }
        if message["method"] == "elicitation/create" {
            let result = json!({"action": "accept", "content": {"name": "Ada"}});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            assert_eq!(client.post(&answer.to_string()).await.unwrap().status, 202);
        }
    }
}

async fn waits_with_its_call(version: &str, way: Way) {
    let (gateway, _server) = gateway(Revision::R5, way).await;
    let client = HttpClient::new(gateway.address()).initialize(version, json!({})).await.unwrap();
    let answer = client.request(1, "tools/call", json!({"name": "task", "arguments": {"ms": 200}})).await.unwrap();
    assert_eq!(text(&answer).as_deref(), Some("task done"), "{version} {way:?}: {answer}");
    assert!(answer["result"].get("resultType").is_none(), "{answer}");
    ran_once_and_without_fault(&client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_client_waits_with_its_call_for_a_task_of_a_new_server() {
    waits_with_its_call("2025-03-26", Way::Http).await;
    waits_with_its_call("2025-11-25", Way::Stdio).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_client_is_asked_what_a_task_of_a_new_server_wants_to_know() {
    for way in [Way::Http, Way::Stdio] {
        let (gateway, _server) = gateway(Revision::R5, way).await;
        let client =
            HttpClient::new(gateway.address()).initialize("2025-06-18", json!({"elicitation": {}})).await.unwrap();
        let mut stream = EventStream::post(&client, &call(1, "task", &json!({"ask": true}))).await.unwrap();
        let answer = answered(&client, &mut stream, 1).await;
        assert_eq!(text(&answer).as_deref(), Some("task done, hello Ada"), "{way:?}: {answer}");
        ran_once_and_without_fault(&client).await;
    }
}

/// The state of a task as an old client is told it.
async fn state(client: &HttpClient, task: &str) -> Value {
    client.request(50, "tasks/get", json!({"taskId": task})).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_client_of_2025_11_25_runs_tasks_of_a_new_server() {
    for way in [Way::Http, Way::Stdio] {
        let (gateway, _server) = gateway(Revision::R5, way).await;
        let client = HttpClient::new(gateway.address());
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let greeting = client.post(&hello.to_string()).await.unwrap().message().unwrap();
        assert!(greeting["result"]["capabilities"]["tasks"]["requests"]["tools"]["call"].is_object(), "{greeting}");
        let client = client.initialize("2025-11-25", json!({"elicitation": {}})).await.unwrap();
        let tools = client.request(2, "tools/list", json!({})).await.unwrap();
        let mut listed = tools["result"]["tools"].as_array().unwrap().iter();
        let tool = listed.find(|tool| tool["name"] == "task").unwrap();
        assert_eq!(tool["execution"]["taskSupport"], "optional", "{tool}");

        let wish = json!({"name": "task", "arguments": {"ask": true}, "task": {"ttl": 30_000}});
        let made = client.request(3, "tools/call", wish).await.unwrap();
        let task = made["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        assert!(made["result"]["task"]["ttl"].is_u64(), "{made}");
        let asks = |told: &Value| told["result"]["status"] == "input_required";
        let wanting = async || Some(state(&client, &task).await).filter(asks);
        eventually("the task asks", wanting).await.unwrap();

        let ask = json!({"jsonrpc": "2.0", "id": 4, "method": "tasks/result", "params": {"taskId": task}});
        let mut stream = EventStream::post(&client, &ask).await.unwrap();
        let result = answered(&client, &mut stream, 4).await;
        assert_eq!(text(&result).as_deref(), Some("task done, hello Ada"), "{way:?}: {result}");
        let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(*related, json!({"taskId": task}), "{result}");
        assert_eq!(state(&client, &task).await["result"]["status"], "completed");
        let list = client.request(5, "tasks/list", json!({})).await.unwrap();
        assert_eq!(list["result"]["tasks"][0]["taskId"], json!(task), "{list}");
        assert_eq!(list["result"]["tasks"][0]["status"], "completed", "{list}");
        ran_once_and_without_fault(&client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_new_server_is_cancelled_by_an_old_client() {
    let (gateway, _server) = gateway(Revision::R5, Way::Stdio).await;
    let client = HttpClient::new(gateway.address()).initialize("2025-11-25", json!({})).await.unwrap();
    let wish = json!({"name": "task", "arguments": {"ms": 60_000}, "task": {}});
    let made = client.request(3, "tools/call", wish).await.unwrap();
    let task = made["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    let over = client.request(4, "tasks/cancel", json!({"taskId": task})).await.unwrap();
    assert_eq!(over["result"]["status"], "cancelled", "{over}");
    assert_eq!(over["result"]["taskId"], json!(task));
    ran_once_and_without_fault(&client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_answers_at_once_is_a_task_that_is_over() {
    let (gateway, _server) = gateway(Revision::R5, Way::Http).await;
    let client = HttpClient::new(gateway.address()).initialize("2025-11-25", json!({})).await.unwrap();
    let wish = json!({"name": "echo", "arguments": {"text": "hi"}, "task": {"ttl": 60_000}});
    let made = client.request(3, "tools/call", wish).await.unwrap();
    assert_eq!(made["result"]["task"]["status"], "completed", "{made}");
    let task = made["result"]["task"]["taskId"].clone();
    let result = client.request(4, "tasks/result", json!({"taskId": task})).await.unwrap();
    assert_eq!(text(&result).as_deref(), Some("hi"), "{result}");
    let unknown = client.request(5, "tasks/get", json!({"taskId": "no such task"})).await.unwrap();
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Capabilities of a client of the new era that knows tasks, or does not.
fn capabilities(tasks: bool) -> Value {
    if tasks {
        json!({"elicitation": {"form": {}}, "extensions": {TASKS: {}}})
    } else {
        json!({"elicitation": {"form": {}}})
    }
}

/// A request of the new era; its whole answer.
async fn modern(gateway: &GatewayProcess, tasks: bool, method: &str, mut params: Value) -> Value {
    let name = ["name", "taskId"].iter().find_map(|key| params[*key].as_str()).map(str::to_owned);
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities(tasks);
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    let client =
        HttpClient::new(gateway.address()).with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
    let client = match name {
        Some(name) => client.with("mcp-name", &name),
        None => client,
    };
    client.request(1, method, params).await.unwrap()
}

async fn modern_counts(gateway: &GatewayProcess) -> Value {
    let answer = modern(gateway, true, "tools/call", json!({"name": "counts", "arguments": {}})).await;
    serde_json::from_str(&text(&answer).unwrap()).unwrap()
}

/// Looks at a task until it has this status.
async fn until(gateway: &GatewayProcess, task: &Value, status: &str) -> Value {
    let look = async || {
        let told = modern(gateway, true, "tasks/get", json!({"taskId": task})).await;
        assert_eq!(told["result"]["resultType"], "complete", "{told}");
        Some(told).filter(|told| told["result"]["status"] == status)
    };
    eventually(status, look).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_runs_tasks_of_an_old_server() {
    for way in [Way::Http, Way::Stdio] {
        let (gateway, _server) = gateway(Revision::R4, way).await;
        let found = modern(&gateway, true, "server/discover", json!({})).await;
        assert!(found["result"]["capabilities"]["extensions"][TASKS].is_object(), "{found}");
        let made = modern(&gateway, true, "tools/call", json!({"name": "task", "arguments": {"ask": true}})).await;
        assert_eq!(made["result"]["resultType"], "task", "{way:?}: {made}");
        assert!(made["result"]["ttlMs"].is_u64() && made["result"]["pollIntervalMs"].is_u64(), "{made}");
        let task = made["result"]["taskId"].clone();
        let asking = until(&gateway, &task, "input_required").await;
        let questions = asking["result"]["inputRequests"].as_object().unwrap();
        let (key, question) = questions.iter().next().unwrap();
        assert_eq!(question["method"], "elicitation/create", "{asking}");
        let answers = json!({key: {"action": "accept", "content": {"name": "Ada"}}});
        let ack = modern(&gateway, true, "tasks/update", json!({"taskId": task, "inputResponses": answers})).await;
        assert_eq!(ack["result"], json!({"resultType": "complete"}), "{ack}");
        let done = until(&gateway, &task, "completed").await;
        assert_eq!(done["result"]["result"]["content"][0]["text"], "task done, hello Ada", "{way:?}: {done}");
        assert_eq!(done["result"]["result"]["resultType"], "complete", "{done}");
        let ack = modern(&gateway, true, "tasks/cancel", json!({"taskId": task})).await;
        assert_eq!(ack["result"], json!({"resultType": "complete"}), "a task that is over: {ack}");
        let unknown = modern(&gateway, true, "tasks/get", json!({"taskId": "no such task"})).await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let counts = modern_counts(&gateway).await;
        assert_eq!(counts["runs"]["task"], 1, "{counts}");
        assert_eq!(faults(&counts), Vec::<String>::new(), "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_cancels_a_task_of_an_old_server() {
    let (gateway, _server) = gateway(Revision::R4, Way::Stdio).await;
    let made = modern(&gateway, true, "tools/call", json!({"name": "task", "arguments": {"ms": 60_000}})).await;
    let task = made["result"]["taskId"].clone();
    assert_eq!(until(&gateway, &task, "working").await["result"]["taskId"], task);
    let ack = modern(&gateway, true, "tasks/cancel", json!({"taskId": task})).await;
    assert_eq!(ack["result"], json!({"resultType": "complete"}), "{ack}");
    until(&gateway, &task, "cancelled").await;
}

/// A listen request of the new era for these tasks; its stream.
async fn listen(gateway: &GatewayProcess, tasks: &[&Value]) -> EventStream {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities(true),
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let params = json!({"_meta": meta, "notifications": {"taskIds": tasks}});
    let message = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params});
    let client = HttpClient::new(gateway.address())
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "subscriptions/listen");
    EventStream::post(&client, &message).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_that_listens_for_a_task_hears_of_it_and_of_no_other() {
    for (revision, way) in
        [(Revision::R5, Way::Http), (Revision::R5, Way::Stdio), (Revision::R4, Way::Http), (Revision::R4, Way::Stdio)]
    {
        let (gateway, _server) = gateway(revision, way).await;
        let make = async || {
            let made = modern(&gateway, true, "tools/call", json!({"name": "task", "arguments": {"ask": true}})).await;
            made["result"]["taskId"].clone()
        };
        let (ours, other) = (make().await, make().await);
        let mut stream = listen(&gateway, &[&ours]).await;
        let acknowledged = stream.next().await.unwrap().unwrap();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
        assert_eq!(acknowledged["params"]["notifications"], json!({"taskIds": [ours]}), "{revision} {way:?}");
        for task in [&other, &ours] {
            let asking = until(&gateway, task, "input_required").await;
            let key = asking["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
            let answers = json!({key: {"action": "accept", "content": {"name": "Ada"}}});
            modern(&gateway, true, "tasks/update", json!({"taskId": task, "inputResponses": answers})).await;
            until(&gateway, task, "completed").await;
        }
        loop {
            let told = stream.notification("notifications/tasks").await.unwrap();
            let params = &told["params"];
            assert_eq!((&params["taskId"], params.get("resultType")), (&ours, None), "{revision} {way:?}: {told}");
            assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], "l", "{told}");
            if params["status"] == "completed" {
                assert_eq!(params["result"]["content"][0]["text"], "task done, hello Ada", "{told}");
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_session_that_was_given_a_task_hears_of_it_and_no_other_does() {
    for way in [Way::Http, Way::Stdio] {
        let (gateway, _server) = gateway(Revision::R4, way).await;
        let mut sessions = Vec::new();
        for _ in 0..2 {
            let client = HttpClient::new(gateway.address()).initialize("2025-11-25", json!({})).await.unwrap();
            let stream = EventStream::general(&client).await.unwrap();
            sessions.push((client, stream));
        }
        let params = json!({"name": "task", "arguments": {"ms": 50}, "task": {"ttl": 60_000}});
        for (client, stream) in &mut sessions {
            let made = client.request(1, "tools/call", params.clone()).await.unwrap();
            let task = &made["result"]["task"]["taskId"];
            assert!(task.is_string(), "{way:?}: {made}");
            let told = stream.notification("notifications/tasks/status").await.unwrap();
            let status = (&told["params"]["taskId"], &told["params"]["status"]);
            assert_eq!(status, (task, &json!("completed")), "{way:?}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_several_servers_do_not_meet() {
    let mut config = String::new();
    let mut servers = Vec::new();
    for (name, revision) in [("old", Revision::R4), ("new", Revision::R5), ("older", Revision::R4)] {
        let options = Options::of(revision);
        let running = start(&options, Network::Http, "127.0.0.1:0".parse().unwrap()).await.unwrap();
        config.push_str(&format!("[backends.{name}]\nurl = \"{}\"\n", running.url()));
        servers.push(running);
    }
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    lists_saved(&gateway.data_dir()).await.unwrap();
    let mut tasks = Vec::new();
    for tool in ["old__task", "older__task", "new__task"] {
        let made = modern(&gateway, true, "tools/call", json!({"name": tool, "arguments": {"ms": 100}})).await;
        assert_eq!(made["result"]["resultType"], "task", "{tool}: {made}");
        tasks.push(made["result"]["taskId"].clone());
    }
    assert!(tasks[0] != tasks[1] && tasks[1] != tasks[2] && tasks[0] != tasks[2], "servers count alike: {tasks:?}");
    for task in &tasks {
        assert_eq!(until(&gateway, task, "completed").await["result"]["taskId"], *task);
    }
    for server in &servers {
        assert_eq!(server.counts()["runs"]["task"], 1, "{}", server.counts());
    }
}
