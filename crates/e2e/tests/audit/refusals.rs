//! Every way to be refused leaves its record, whatever the reason and whichever way the request
//! came in.

use crate::{VERSION, of_phase, records, search};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::scene::{child, eventually, signalbox};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One tool for each reason for which a call can be refused.
const POLICIES: &str = r#"
[mcp.protocol.security]
require_authentication = true
[mcp.protocol.audit]
enabled = true
[kill_switch]
tools = ["one/big"]
[roles.user]
allow = ["one/greet", "one/slow", "one/count", "one/big", "one/touch_resource"]
[roles.reader]
permissions = ["tools.read"]
[auth.users.'key:ada']
roles = ["user"]
[auth.users.'key:carl']
roles = ["reader"]
[limits."one/touch_resource"]
calls_per_day = 1
[[rules]]
id = "no-greetings"
when = { tool = "greet" }
then = [{ block = "nobody greets" }]
[[rules]]
id = "ask-first"
when = { tool = "count" }
then = { hold = { reason = "look at it", within = "50ms" } }
"#;

/// A way for a call of a tool to come in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Plain,
    Batch,
    Task,
    Modern,
    Dialect,
}

impl Way {
    pub(crate) const ALL: [Self; 5] = [Self::Plain, Self::Batch, Self::Task, Self::Modern, Self::Dialect];
}

/// Clients of one person, of every kind.
pub(crate) struct Person {
    pub(crate) http: HttpClient,
    pub(crate) session: HttpClient,
    batches: HttpClient,
}

impl Person {
    /// A person with a new key of this name, made with these arguments besides.
    pub(crate) async fn new(gateway: &GatewayProcess, name: &str, more: &[&str]) -> Self {
        let all = [&["keys", "new", name], more].concat();
        let key = signalbox(&gateway.data_dir(), &all).await.unwrap();
        let http = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()));
        let begin = async || http.clone().initialize(VERSION, json!({})).await.ok();
        let session = eventually("the key is known", begin).await.unwrap();
        let batches = http.clone().initialize("2025-03-26", json!({})).await.unwrap();
        Self { http, session, batches }
    }

    /// Calls a tool, which is refused.
    pub(crate) async fn call(&self, way: Way, tool: &str, arguments: &Value) -> Value {
        let mut params = json!({"name": tool, "arguments": arguments});
        if way == Way::Task {
            params["task"] = json!({"ttl": 1000});
        }
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let answer = match way {
            Way::Plain | Way::Task => self.session.post(&message.to_string()).await.unwrap().message().unwrap(),
            Way::Batch => {
                self.batches.post(&json!([message]).to_string()).await.unwrap().messages().unwrap()[0].clone()
            }
            Way::Modern => self.http.modern(7, "tools/call", params).await.unwrap().message().unwrap(),
            Way::Dialect => {
                let params = json!({"tool_id": tool, "parameters": arguments});
                let message = json!({"jsonrpc": "2.0", "id": "7", "method": "tools/invoke", "params": params});
                self.http.post(&message.to_string()).await.unwrap().message().unwrap()
            }
        };
        let answer = if answer.is_array() { answer[0].clone() } else { answer };
        assert!(answer["error"].is_object(), "{way:?} of {tool}: {answer}");
        answer
    }
}

async fn gateway(more: &str) -> GatewayProcess {
    let backend = child("one", ServedEra::Old, "timeout = \"300ms\"\n").unwrap();
    let gateway = GatewayProcess::serve(&format!("{POLICIES}{more}{backend}")).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// The records about a tool.
pub(crate) fn about<'a>(all: &'a [Value], tool: &str) -> Vec<&'a Value> {
    all.iter().filter(|record| record["details"]["tool"] == tool).collect()
}

/// Proves G-23 and G-46.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_leaves_its_outcome_for_every_reason_and_way() {
    let gateway = gateway("").await;
    let (ada, carl) = (Person::new(&gateway, "ada", &[]).await, Person::new(&gateway, "carl", &[]).await);
    let first = ada.session.request(1, "tools/call", json!({"name": "touch_resource", "arguments": {}})).await.unwrap();
    assert!(first["result"].is_object(), "{first}");
    // Tool, arguments, status and violation. A caller under permissions who guesses names is one who tries.
    let of_ada = [
        ("nothing", json!({}), "denied", Some("permission_denied")),
        ("test_simple_text", json!({}), "denied", Some("permission_denied")),
        ("big", json!({"bytes": 1}), "killed", Some("policy_violation")),
        ("greet", json!({"name": "Ada"}), "denied", Some("policy_violation")),
        ("count", json!({}), "denied", Some("policy_violation")),
        ("touch_resource", json!({}), "rate_limited", Some("rate_limit_exceeded")),
        ("slow", json!({"ms": 60_000}), "error", None),
    ];
    let of_carl = [("greet", json!({"name": "Ada"}), "denied", Some("permission_denied"))];
    let mut ids = Vec::new();
    for way in Way::ALL {
        for (person, refused) in [(&ada, &of_ada[..]), (&carl, &of_carl[..])] {
            for (tool, arguments, ..) in refused {
                let answer = person.call(way, tool, arguments).await;
                if way == Way::Dialect {
                    let id = &answer["error"]["data"]["security_context"]["audit_id"];
                    ids.push((id.as_str().unwrap().to_owned(), (*tool).to_owned()));
                }
            }
        }
    }
    let folder = gateway.terminate().await.unwrap();
    let all = records(&crate::log_of(folder.path()));
    for (who, refused) in [("key:ada", &of_ada[..]), ("key:carl", &of_carl[..])] {
        for (tool, _, status, violation) in refused {
            let own: Vec<Value> = about(&all, tool)
                .into_iter()
                .filter(|record| record["user_context"]["principal"] == who)
                .cloned()
                .collect();
            let ends = of_phase(&own, "outcome").filter(|record| record["details"]["status"] == *status).count();
            assert_eq!(ends, Way::ALL.len(), "{who} {tool}: {own:#?}");
            let violations: Vec<_> = own.iter().filter(|record| record["event_type"] == "security_violation").collect();
            let expected = if violation.is_some() { Way::ALL.len() } else { 0 };
            assert_eq!(violations.len(), expected, "{who} {tool}: {own:#?}");
            for record in violations {
                assert_eq!(record["details"]["violation"], violation.unwrap(), "{record}");
                assert_eq!((&record["source"], &record["risk_level"]), (&json!("mcp_security"), &json!("high")));
            }
        }
    }
    let reasons = |tool: &str| -> Vec<Value> {
        let violations = about(&all, tool).into_iter().filter(|record| record["event_type"] == "security_violation");
        violations.map(|record| record["details"]["reason"].clone()).collect()
    };
    assert!(reasons("test_simple_text").iter().all(|reason| *reason == "hidden"), "{:?}", reasons("test_simple_text"));
    assert!(reasons("nothing").iter().all(|reason| *reason == "unknown_tool"), "{:?}", reasons("nothing"));
    assert!(!ids.is_empty());
    for (id, tool) in ids {
        let of_id = |record: &&Value| record["correlation_id"] == *id && record["details"]["phase"] == "outcome";
        let outcome = all.iter().find(of_id).unwrap_or_else(|| panic!("{tool}: no record has the audit id {id}"));
        assert_eq!(outcome["details"]["tool"], tool, "{outcome}");
    }
}

/// Prompts, resources, templates, completions, tasks and listen requests, of an entry that is hidden and one that is
/// unknown.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_tool_leaves_its_record_too() {
    let gateway = gateway("").await;
    let ada = Person::new(&gateway, "ada", &[]).await;
    let argument = json!({"name": "a", "value": "b"});
    let mut expected = Vec::new();
    for (prompt, uri, filled, reason) in [
        ("test_simple_prompt", "test://static-text", "test://template/3/data", Some("hidden")),
        ("no_prompt", "test://nothing", "none://template/3", None),
    ] {
        let asked = [
            ("prompts/get", json!({"name": prompt}), prompt),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": argument}),
                prompt,
            ),
            ("completion/complete", json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": argument}), uri),
            ("resources/read", json!({"uri": uri}), uri),
            ("resources/read", json!({"uri": filled}), filled),
        ];
        for (method, params, name) in asked {
            let old = ada.session.request(9, method, params.clone()).await.unwrap();
            let new = ada.http.modern(9, method, params).await.unwrap().message().unwrap();
            assert!(old["error"].is_object() && new["error"].is_object(), "{method} {name}: {old} {new}");
            expected.push((method, name, reason, 2));
        }
        let old = ada.session.request(9, "resources/subscribe", json!({"uri": uri})).await.unwrap();
        assert!(old["error"].is_object(), "{old}");
        expected.push(("resources/subscribe", uri, reason, 1));
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let answer = ada.session.request(9, method, json!({"taskId": "no-such-task"})).await.unwrap();
        assert!(answer["error"].is_object(), "{method}: {answer}");
        expected.push((method, "no-such-task", None, 1));
    }
    let params = json!({"notifications": {"resourceSubscriptions": ["test://watched-resource"]},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}});
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": params}).to_string();
    let client = ada.http.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "subscriptions/listen");
    let stream = client.open(Method::POST, "/mcp", body.into()).await.unwrap();
    assert_eq!(stream.status(), 200);
    let listens = search(&gateway, &["--tool", "test://watched-resource"], 1).await;
    assert_eq!(
        (&listens[0]["details"]["reason"], &listens[0]["event_type"]),
        (&json!("hidden"), &json!("security_violation"))
    );
    assert!(listens[0]["correlation_id"].is_string(), "{listens:?}");
    drop(stream);
    let folder = gateway.terminate().await.unwrap();
    let all = records(&crate::log_of(folder.path()));
    for (method, name, reason, times) in expected {
        let own: Vec<Value> =
            about(&all, name).into_iter().filter(|record| record["details"]["method"] == method).cloned().collect();
        assert!(of_phase(&own, "outcome").count() >= times, "{method} {name}: {own:#?}");
        if let Some(reason) = reason {
            let hidden = own.iter().filter(|record| record["details"]["reason"] == reason).count();
            assert!(hidden >= times, "{method} {name}: {own:#?}");
        }
    }
}

/// What is refused before there is a call: credentials, sessions, ids, bodies.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_before_it_is_a_call_leaves_its_record() {
    let gateway = gateway("").await;
    let ada = Person::new(&gateway, "ada", &[]).await;
    let anybody = HttpClient::new(gateway.address());
    let greet =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "greet", "arguments": {}}});
    assert_eq!(anybody.post(&greet.to_string()).await.unwrap().status, 401);
    assert_eq!(anybody.clone().with("authorization", "Bearer x").post(&greet.to_string()).await.unwrap().status, 401);
    let lost = ada.http.clone().with("mcp-session-id", "no-such-session");
    assert_eq!(lost.post(&greet.to_string()).await.unwrap().status, 404);
    let resumed = lost.clone().with("accept", "text/event-stream").with("last-event-id", "1");
    assert!(resumed.get("/mcp").await.unwrap().status >= 400);
    assert!(ada.session.post("{").await.unwrap().status >= 400);
    let mut unnumbered = greet.clone();
    unnumbered.as_object_mut().unwrap().remove("id");
    ada.session.post(&unnumbered.to_string()).await.unwrap();
    let nameless = ada.session.request(3, "tools/call", json!({"arguments": {}})).await.unwrap();
    assert_eq!(nameless["error"]["code"], -32602);
    let odd = ada.session.request(3, "no/such/method", json!({})).await.unwrap();
    assert_eq!(odd["error"]["code"], -32601);
    // Guesses at routes of the API.
    assert_eq!(ada.http.get("/api/v1/unknown").await.unwrap().status, 404);
    assert_eq!(ada.http.send(Method::PUT, "/api/v1/audit", "".into()).await.unwrap().status, 405);
    // A second request with the id of one that is in flight.
    let slow = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "slow", "arguments": {"ms": 60_000}}});
    let (session, body) = (ada.session.clone(), slow.to_string());
    let first = tokio::spawn(async move { session.post(&body).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    ada.session.post(&slow.to_string()).await.unwrap();
    first.await.unwrap().unwrap();
    let folder = gateway.terminate().await.unwrap();
    let all = records(&crate::log_of(folder.path()));
    for (reason, times) in [
        ("unauthenticated", 2),
        ("session_closed", 2),
        ("parse_error", 1),
        ("request_without_id", 1),
        ("invalid_params", 1),
    ] {
        let found = all.iter().filter(|record| record["details"]["reason"] == reason).count();
        assert!(found >= times, "{reason}: {found} of {times}\n{all:#?}");
    }
    for (route, status) in [("GET /api/v1/unknown", 404), ("PUT /api/v1/audit", 405)] {
        let guessed = |record: &&Value| {
            let (details, who) = (&record["details"], &record["user_context"]["principal"]);
            details["error"].as_str().is_some_and(|error| error.starts_with(route))
                && (&details["http_status"], who) == (&json!(status), &json!("key:ada"))
        };
        assert_eq!(all.iter().filter(guessed).count(), 1, "{route}: {all:#?}");
    }
    // The only backend is asked about methods that the gateway does not know, and refuses them.
    let asked = |record: &&Value| record["details"]["method"] == "no/such/method";
    assert!(of_phase(&all, "outcome").any(|record| asked(&record)), "{all:#?}");
    let repeated = about(&all, "slow").into_iter().any(|record| record["details"]["reason"] == "duplicate_id");
    let both = of_phase(&all, "outcome").filter(|record| record["details"]["tool"] == "slow").count() >= 2;
    assert!(repeated || both, "{all:#?}");
}

/// The number of refusals that these records stand for: one tells of those of its source that were left out.
pub(crate) fn told(records: &[&Value]) -> usize {
    let number = |text: &str, before: &str| text.split_once(before)?.1.split(' ').next()?.parse::<usize>().ok();
    let counted = |record: &&Value| {
        let text = record["details"]["error"].as_str().unwrap_or_default();
        // The record of the last one stands for itself as well.
        number(text, "(the last of ").map(|count| count - 1).or_else(|| number(text, " (")).unwrap_or(0)
    };
    records.len() + records.iter().map(counted).sum::<usize>()
}

/// What begins a connection over TCP and is no message leaves a record with its address, and a flood of it few.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_line_that_is_no_json_is_recorded() {
    const CONNECTIONS: usize = 60;
    let tcp = "[mcp.protocol.transport]\ntype = \"tcp\"\n[mcp.protocol.audit]\nenabled = true\n";
    let gateway = GatewayProcess::serve_tcp(tcp).await.unwrap();
    for text in ["GET / HTTP/1.1\r\n\r\n", "{nonsense\n"] {
        for _ in 0..CONNECTIONS {
            let mut client = TcpStream::connect(gateway.address()).await.unwrap();
            client.write_all(text.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.contains("-32700"), "{answer}");
        }
    }
    let folder = gateway.terminate().await.unwrap();
    let all = records(&folder.path().join("data/audit/audit.log"));
    let refused: Vec<&Value> = all.iter().filter(|one| one["event_type"] == "protocol_error").collect();
    let about = |text: &str| -> Vec<&Value> {
        let fits = |one: &&&Value| one["details"]["error"].as_str().is_some_and(|error| error.contains(text));
        refused.iter().filter(fits).copied().collect()
    };
    let http = about("no HTTP");
    assert_eq!(told(&http), CONNECTIONS, "{http:#?}");
    assert!(http.len() < CONNECTIONS, "a flood is counted: {}", http.len());
    assert!(http[0]["user_context"]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{}", http[0]);
    assert_eq!(
        (&http[0]["details"]["reason"], &http[0]["user_context"]["transport"]),
        (&json!("parse_error"), &json!("tcp"))
    );
    assert!(refused.len() - http.len() >= CONNECTIONS, "lines of a session: {refused:#?}");
}

/// A head that is not HTTP, or too large, leaves a record with its address, and a flood of it few.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_not_http_is_recorded() {
    const CONNECTIONS: usize = 60;
    let gateway = GatewayProcess::serve("[mcp.protocol.audit]\nenabled = true\n").await.unwrap();
    let large = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
    for (text, number) in [("no such thing\r\n\r\n", CONNECTIONS), (&*large, 1)] {
        for _ in 0..number {
            let mut client = TcpStream::connect(gateway.address()).await.unwrap();
            let _ = client.write_all(text.as_bytes()).await;
            let _ = client.read_to_end(&mut Vec::new()).await;
        }
    }
    let folder = gateway.terminate().await.unwrap();
    let all = records(&folder.path().join("data/audit/audit.log"));
    let about = |text: &str| -> Vec<&Value> {
        let fits = |one: &&Value| one["details"]["error"].as_str().is_some_and(|error| error.contains(text));
        all.iter().filter(fits).collect()
    };
    let (odd, large) = (about("is not HTTP/1.1"), about("is too large"));
    assert_eq!(told(&odd) + told(&large), CONNECTIONS + 1, "{all:#?}");
    assert!(odd.len() < CONNECTIONS, "a flood is counted: {}", odd.len());
    let first = odd[0];
    assert_eq!((&first["event_type"], &first["details"]["http_status"]), (&json!("protocol_error"), &json!(400)));
    assert!(first["user_context"]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_socket_that_is_closed_because_of_a_message_is_recorded() {
    let limits = "[gateway]\nmax_message = 65536\n[mcp.protocol.audit]\nenabled = true\n";
    let gateway = GatewayProcess::serve(limits).await.unwrap();
    let mut socket = PipeClient::websocket(gateway.address(), &[]).await.unwrap();
    let _ = socket.say(&"x".repeat(70_000)).await;
    let _ = socket.end().await;
    let all = search(&gateway, &["--type", "protocol_error"], 1).await;
    assert_eq!(all[0]["details"]["error"], "the message is too large", "{all:#?}");
    assert!(all[0]["user_context"]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{all:#?}");
}

/// A connection over TCP on which nothing comes is closed and recorded, whether callers must authenticate or not, and a
/// flood of them leaves few records.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_recorded() {
    const CONNECTIONS: usize = 60;
    let tcp = "[mcp.protocol.transport]\ntype = \"tcp\"\n[mcp.protocol.audit]\nenabled = true\n\
        [mcp.protocol.security]\nrequire_authentication = true\nauthentication_timeout = 1\n";
    let gateway = GatewayProcess::serve_tcp(tcp).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(TcpStream::connect(gateway.address()).await.unwrap());
    }
    for mut client in clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
    }
    let folder = gateway.terminate().await.unwrap();
    let all = records(&folder.path().join("data/audit/audit.log"));
    let refused: Vec<&Value> = all.iter().filter(|one| one["details"]["reason"] == "unauthenticated").collect();
    assert_eq!(told(&refused), CONNECTIONS, "{refused:#?}");
    assert!(refused.len() < CONNECTIONS, "a flood is counted: {}", refused.len());
    for one in refused {
        assert_eq!(one["details"]["violation"], "authentication_failed", "{one}");
        assert!(one["user_context"]["address"].as_str().is_some_and(|at| at.starts_with("127.0.0.1:")), "{one}");
    }
}

/// A guessed link of an approval or a sign-in is a failed authentication, bounded as others are, and the guess is not
/// recorded.
async fn guesses_are_recorded(path: &str) {
    const GUESSES: usize = 60;
    let gateway = gateway("").await;
    let client = HttpClient::new(gateway.address());
    for number in 0..GUESSES {
        let guess = format!("{path}/{number}-0123456789abcdef");
        assert_eq!(client.get(&guess).await.unwrap().status, 404);
    }
    let posted = client.with("content-type", "application/x-www-form-urlencoded");
    let posted =
        posted.send(Method::POST, &format!("{path}/1-0123456789abcdef"), "answer=approve".into()).await.unwrap();
    assert_eq!(posted.status, 404);
    let folder = gateway.terminate().await.unwrap();
    let all = records(&folder.path().join("data/audit/audit.log"));
    let fits = |one: &&Value| one["details"]["error"].as_str().is_some_and(|error| error.contains(path));
    let refused: Vec<&Value> = all.iter().filter(fits).collect();
    assert_eq!(told(&refused), GUESSES + 1, "{refused:#?}");
    assert!(refused.len() < GUESSES, "a flood is counted: {}", refused.len());
    for one in refused {
        assert_eq!(one["details"]["violation"], "authentication_failed", "{one}");
        assert!(!one.to_string().contains("0123456789abcdef"), "{one}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guessed_approval_link_is_recorded() {
    guesses_are_recorded("/approve").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guessed_sign_in_link_is_recorded() {
    guesses_are_recorded("/auth/connect").await;
}
