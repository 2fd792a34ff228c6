//! Tools that live in web pages, called by legacy clients and by MCP clients of all eras, at a real gateway.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod caching;
mod faults;
pub mod page;
mod recorded;
mod refusals;
mod separation;
mod withheld;

use http::Method;
use page::{Events, Page, send};
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_client::{Answers, Client, Reach};
use signalbox_testkit::scene::{eventually, files_holding};
use std::sync::atomic::{AtomicU64, Ordering};

/// A relay without limits per minute that tests would run into.
pub(crate) const OPEN: &str = "[relay]\nenabled = true\npublic_url = 'https://codap-mcp.vercel.app'\n[relay.limits]\n\
    sessions_per_minute = 0\nrequests_per_minute = 0\nmcp_requests_per_minute = 0\n";

pub(crate) async fn gateway(config: &str) -> GatewayProcess {
    let gateway = GatewayProcess::serve(config).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// A client of the legacy kind, at the relay's endpoint.
pub(crate) struct Agent {
    pub(crate) client: HttpClient,
    calls: AtomicU64,
}

impl Agent {
    /// An MCP session of this revision.
    pub(crate) async fn open(gateway: &GatewayProcess, version: &str) -> Self {
        let client = HttpClient::new(gateway.address());
        let answer = initialize(&client, version).await;
        let id = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let client = client.with("mcp-session-id", &id);
        let client = if version == "2024-11-05" { client } else { client.with("mcp-protocol-version", version) };
        Self { client, calls: AtomicU64::new(100) }
    }

    pub(crate) async fn post(&self, message: &Value) -> HttpAnswer {
        send(&self.client, Method::POST, "/api/mcp", &message.to_string()).await.unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            .await
            .message()
            .unwrap()
    }

    /// Binds it to the page.
    pub(crate) async fn connect(&self, page: &Page) {
        let answer = self.call("connect_to_session", json!({"sessionId": page.code})).await;
        assert_eq!(answer["result"]["isError"], Value::Null, "{answer}");
    }
}

pub(crate) async fn initialize(client: &HttpClient, version: &str) -> HttpAnswer {
    let params = json!({"protocolVersion": version, "capabilities": {"tools": {}},
        "clientInfo": {"name": "cursor", "version": "0.44.9"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    send(client, Method::POST, "/api/mcp", &message.to_string()).await.unwrap()
}

/// A call of the new revision.
pub(crate) async fn modern(gateway: &GatewayProcess, method: &str, mut params: Value) -> HttpAnswer {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let mut client = HttpClient::new(gateway.address());
    client = client.with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        client = client.with("mcp-name", name);
    }
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    send(&client, Method::POST, "/api/mcp", &message.to_string()).await.unwrap()
}

pub(crate) fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The exchanges of the specification, byte for byte.
/// Proves C-1, C-2 and C-3.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_initialize_have_the_specified_form() {
    let gateway = gateway(OPEN).await;
    let client = HttpClient::new(gateway.address());
    let answer = send(&client, Method::POST, "/api/sessions", "{}").await.unwrap();
    assert_eq!(answer.status, 201);
    let told = answer.message().unwrap();
    let code = told["sessionCode"].as_str().unwrap();
    assert!(code.len() == 8 && code.bytes().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte)));
    assert_eq!(
        (&told["code"], &told["ttl"], &told["ttlSeconds"]),
        (&told["sessionCode"], &json!(600_000), &json!(600))
    );
    assert_eq!(told["relayBaseUrl"], "https://codap-mcp.vercel.app");
    assert_eq!(told["workerToken"].as_str().unwrap().len(), 43);

    let answer = initialize(&client, "2024-11-05").await;
    assert_eq!(answer.status, 200);
    let id = answer.headers["mcp-session-id"].to_str().unwrap();
    assert_eq!((id.len(), id.matches('-').count(), &id[14..15]), (36, 4, "4"), "a UUID");
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"codap-mcp-server","version":"1.0.0"}}}"#;
    assert_eq!(answer.body, expected);
}

/// The same tools and results by the legacy routes and by MCP of three eras.
/// Proves C-4, C-5, C-6, C-7, C-8, C-9, C-10, C-11, C-12, C-13, C-14, C-15, C-16, C-21, C-25 and C-37.
#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_and_mcp_clients_of_all_eras_use_one_page() {
    let gateway = gateway(OPEN).await;
    let page = Page::open(gateway.address()).await.unwrap();
    let mut stream = page.stream("w1", "j1").await.unwrap();
    let connected = stream.until("connected").await.unwrap();
    assert_eq!((&connected["code"], &connected["standby"]), (&json!(page.code), &json!(false)), "{connected}");
    page.echo(stream);

    // The legacy client.
    let client = HttpClient::new(gateway.address()).with("user-agent", "curl/8");
    let metadata = client.get(&format!("/api/metadata?sessionCode={}", page.code)).await.unwrap();
    assert_eq!((metadata.status, &metadata.headers["api-version"]), (200, &"1.0.0".parse().unwrap()));
    let metadata = metadata.message().unwrap();
    assert_eq!((&metadata["version"], metadata["tools"].as_array().unwrap().len()), (&json!("1.0.0"), 33));
    let mut results =
        Events::open(&client, &format!("/api/stream?sessionCode={}&role=client", page.code)).await.unwrap();
    let request = json!({"sessionCode": page.code, "tool": "createDataContext",
        "arguments": {"name": "StudentData", "title": "Student Performance Data"}});
    let queued = send(&client, Method::POST, "/api/request", &request.to_string()).await.unwrap();
    assert_eq!(queued.status, 202);
    let queued = queued.message().unwrap();
    assert_eq!(queued["status"], "queued");
    let result = results.result().await.unwrap();
    let echo = r#"{"echo":{"name":"StudentData","title":"Student Performance Data"},"tool":"createDataContext"}"#;
    assert_eq!(result, format!(r#"{{"tool":"createDataContext","result":{echo},"requestId":{}}}"#, queued["id"]));

    // MCP with sessions.
    let arguments = json!({"name": "StudentData", "title": "Student Performance Data"});
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let agent = Agent::open(&gateway, version).await;
        let list = agent.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await.message().unwrap();
        let listed = names(&list);
        assert_eq!(listed.len(), 34, "{version}: the 33 and connect_to_session");
        for (tool, legacy) in
            list["result"]["tools"].as_array().unwrap().iter().zip(metadata["tools"].as_array().unwrap())
        {
            assert_eq!(tool["inputSchema"], legacy["parameters"], "C-5: the schema is the same");
        }
        agent.connect(&page).await;
        let answer = agent.call("createDataContext", arguments.clone()).await;
        assert_eq!(answer["result"], json!({"content": [{"type": "text", "text": echo}]}));
    }

    // MCP without sessions: the code is a handle.
    let list = modern(&gateway, "tools/list", json!({})).await.message().unwrap();
    assert_eq!(names(&list).len(), 33, "{list}");
    assert!(list["result"]["tools"][0]["inputSchema"]["properties"]["sessionCode"].is_object());
    let mut given = arguments.clone();
    given["sessionCode"] = json!(page.code);
    let answer = modern(&gateway, "tools/call", json!({"name": "createDataContext", "arguments": given})).await;
    assert_eq!(text(&answer.message().unwrap()), echo, "the page does not see the code");
    let meta = json!({"io.signalbox/sessionCode": page.code});
    let params = json!({"name": "createDataContext", "arguments": arguments, "_meta": meta});
    assert_eq!(text(&modern(&gateway, "tools/call", params).await.message().unwrap()), echo);
    let params = json!({"name": "createDataContext", "arguments": arguments});
    let without = modern(&gateway, "tools/call", params).await.message().unwrap();
    assert!(without["result"]["isError"] == true && text(&without).contains("sessionCode"), "{without}");
    // The usual endpoint knows nothing of it.
    let usual = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let list = usual.request(2, "tools/list", json!({})).await.unwrap();
    assert!(!names(&list).iter().any(|name| name.contains("create_") || name.starts_with("relay")), "{list}");
    let refused = usual.request(3, "tools/call", json!({"name": "relay__get_items", "arguments": {}})).await.unwrap();
    assert!(refused["error"].is_object(), "{refused}");
}

/// Clients that each speak exactly one revision, 2024-11-05 over Streamable HTTP among them, find nothing to object to.
/// Proves C-31, C-32, C-33, C-34 and C-35.
#[tokio::test(flavor = "multi_thread")]
async fn strict_clients_of_every_revision_are_served() {
    let gateway = gateway(OPEN).await;
    let page = Page::open(gateway.address()).await.unwrap();
    page.echo(page.stream("w1", "j1").await.unwrap());
    for revision in Revision::ALL {
        let reach = Reach::RelayHttp(format!("http://{}/api/mcp", gateway.address()));
        let mut client = Client::open(revision, reach, Answers::default()).await.unwrap();
        let tools = client.list("tools/list", "tools").await.unwrap();
        assert_eq!(tools.len(), if revision.modern() { 33 } else { 34 }, "{revision}");
        let mut arguments = json!({"name": "Birds"});
        if revision.modern() {
            arguments["sessionCode"] = json!(page.code);
        } else {
            client.call("connect_to_session", json!({"sessionId": page.code})).await.unwrap().result().unwrap();
        }
        let told = client.call("get_data_context", arguments).await.unwrap().text().unwrap();
        assert_eq!(told, r#"{"echo":{"name":"Birds"},"tool":"get_data_context"}"#, "{revision}");
        assert_eq!(client.violations(), Vec::<String>::new(), "{revision}");
        client.end().await.unwrap();
    }
}

/// These clients speak 2024-11-05, and JSON-RPC 2.0 has batches. The revisions without them still refuse.
/// Proves C-31.
#[tokio::test(flavor = "multi_thread")]
async fn batches_of_relay_clients_are_answered() {
    let gateway = gateway(OPEN).await;
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": "two", "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    for version in ["2024-11-05", "2025-03-26"] {
        let answer = Agent::open(&gateway, version).await.post(&batch).await;
        let told: Value = serde_json::from_slice(&answer.body).unwrap();
        let ids: Vec<&Value> =
            told.as_array().unwrap_or_else(|| panic!("{told}")).iter().map(|one| &one["id"]).collect();
        assert!(ids.len() == 2 && ids.contains(&&json!(1)) && ids.contains(&&json!("two")), "{version}: {told}");
    }
    for version in ["2025-06-18", "2025-11-25"] {
        assert_eq!(Agent::open(&gateway, version).await.post(&batch).await.status, 400, "{version}");
    }
}

/// A call whose client takes events only is answered by one.
/// Proves C-8, C-36 and CO-12.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_answered_by_an_event() {
    let gateway = gateway(OPEN).await;
    let page = Page::open(gateway.address()).await.unwrap();
    let mut stream = page.stream("w1", "j1").await.unwrap();
    let agent = Agent::open(&gateway, "2024-11-05").await;
    agent.connect(&page).await;
    let connected = stream.until("tool-request").await.unwrap();
    assert_eq!(connected["tool"], "__claude_connected__", "CO-12");
    let answering = tokio::spawn(async move {
        let request = stream.until("tool-request").await.unwrap();
        let result = json!({"result": "Successfully created data context 'StudentData'"});
        page.answer(request["id"].as_str().unwrap(), result).await.unwrap()
    });
    let client = agent.client.clone().with("accept", "text/event-stream");
    let message = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "createDataContext", "arguments": {"name": "StudentData"}}});
    let answer = send(&client, Method::POST, "/api/mcp", &message.to_string()).await.unwrap();
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let expected = r#"data: {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Successfully created data context 'StudentData'"}]}}"#;
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(body.lines().any(|line| line == expected), "{body}");
    let answered = answering.await.unwrap();
    assert_eq!((answered.status, &answered.message().unwrap()["success"]), (200, &json!(true)));
}

/// A page brings tools of its own, and MCP sessions that are bound to it hear of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_brings_tools_of_its_own() {
    let gateway = gateway(OPEN).await;
    let page = Page::open(gateway.address()).await.unwrap();
    let stream = page.stream("w1", "j1").await.unwrap();
    page.echo(stream);
    let (agent, other) = (Agent::open(&gateway, "2025-06-18").await, Agent::open(&gateway, "2025-06-18").await);
    agent.connect(&page).await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let listed = names(&agent.post(&list).await.message().unwrap());
    let tools = json!({"tools": [{"name": "roll", "description": "Rolls dice", "inputSchema": {"type": "object"}}]});
    let tokenless = page.client.clone().with("x-session-code", &page.code);
    let without = send(&tokenless, Method::PUT, "/api/tools", &tools.to_string()).await.unwrap();
    assert_eq!(without.status, 403, "only with the token");
    let put = send(&page.library("w1", "j1"), Method::PUT, "/api/tools", &tools.to_string()).await.unwrap();
    assert_eq!((put.status, put.message().unwrap()), (200, json!({"tools": 1})));
    let look = async || {
        let now = names(&agent.post(&list).await.message().unwrap());
        (now.len() == listed.len() + 1 && now.contains(&"roll".to_owned())).then_some(())
    };
    eventually("the list has the page's tool", look).await.unwrap();
    assert!(text(&agent.call("roll", json!({"n": 2})).await).contains(r#""tool":"roll""#));
    assert!(
        !names(&other.post(&list).await.message().unwrap()).contains(&"roll".to_owned()),
        "another page's is not shown"
    );
    assert!(other.call("roll", json!({})).await["error"].is_object());
}

/// Permissions, rules and recording apply to calls by either way, and the code stands nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn permissions_rules_and_recording_apply_and_the_code_stands_nowhere() {
    let config = format!(
        "{OPEN}\n[record]\nenabled = true\n\n[permissions]\ndefault_role = 'reader'\n\n\
         [roles.reader]\npermissions = ['tools.execute']\nallow = ['relay/get_*', 'relay/connect_to_session', 'relay/create_graph']\n\n\
         [[rules]]\nid = 'no-graphs'\nwhen = {{ tool = 'create_graph' }}\nthen = [{{ block = 'no graphs today' }}]\n"
    );
    let gateway = gateway(&config).await;
    let page = Page::open(gateway.address()).await.unwrap();
    let stream = page.stream("w1", "j1").await.unwrap();
    page.echo(stream);
    let agent = Agent::open(&gateway, "2025-06-18").await;
    agent.connect(&page).await;
    let list = agent.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await.message().unwrap();
    assert!(
        names(&list)
            .iter()
            .all(|name| name.starts_with("get_") || name.contains("graph") || name == "connect_to_session")
    );
    assert!(text(&agent.call("get_items", json!({"dataContextName": "d"})).await).contains("echo"));
    let denied = agent.call("create_items", json!({})).await;
    assert!(denied["error"].is_object(), "{denied}");
    assert!(agent.call("create_graph", json!({})).await["error"].is_object());
    let client = HttpClient::new(gateway.address());
    let metadata = client.get(&format!("/api/metadata?sessionCode={}", page.code)).await.unwrap().message().unwrap();
    assert!(metadata["toolCount"].as_u64().unwrap() < 20, "{metadata}");
    let mut results =
        Events::open(&client, &format!("/api/stream?sessionCode={}&role=client", page.code)).await.unwrap();
    for tool in ["create_items", "create_graph", "get_items"] {
        let request = json!({"sessionCode": page.code, "tool": tool, "arguments": {}, "id": tool});
        assert_eq!(send(&client, Method::POST, "/api/request", &request.to_string()).await.unwrap().status, 202);
        let result: Value = serde_json::from_str(&results.result().await.unwrap()).unwrap();
        assert_eq!(
            (&result["requestId"], result["error"].is_string()),
            (&json!(tool), tool != "get_items"),
            "{result}"
        );
    }
    let given = json!({"name": "get_items", "arguments": {"dataContextName": "d", "sessionCode": page.code}});
    assert!(text(&modern(&gateway, "tools/call", given).await.message().unwrap()).contains("echo"));
    let metrics = client.get("/metrics").await.unwrap();
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(metrics.contains("signalbox_relay_sessions ") && !metrics.contains(&page.code));
    let (code, token) = (page.code.clone(), page.token.clone());
    let folder = gateway.stop().await.unwrap();
    for secret in [code, token] {
        let found = files_holding(folder.path(), &secret).unwrap();
        assert!(found.is_empty(), "{secret} stands in {found:?}");
    }
}
