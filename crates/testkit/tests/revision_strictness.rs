//! The server and the client of one revision notice what their revision does not allow; otherwise the matrix proves
//! nothing.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_client::{Answers, Client, Reach};
use signalbox_testkit::revision_server::{Network, Options, RunningServer, start};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

async fn server(revision: Revision, network: Network) -> RunningServer {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    start(&Options::of(revision), network, address).await.unwrap()
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn initialize() -> Value {
    let info = json!({"name": "raw", "version": "1"});
    request(0, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}))
}

/// The handshake of the old era, then these messages.
fn after_handshake(more: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let begin = [initialize(), serde_json::from_str(INITIALIZED).unwrap()];
    begin.into_iter().chain(more).collect()
}

/// The parameters of a request of the new era.
fn modern(mut params: Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "raw", "version": "1"});
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    params
}

/// Lines to and from a server.
struct Raw {
    lines: tokio::io::Lines<BufReader<OwnedReadHalf>>,
    output: OwnedWriteHalf,
}

impl Raw {
    async fn to(server: &RunningServer) -> Self {
        let stream = TcpStream::connect(server.url().trim_start_matches("tcp://")).await.unwrap();
        let (input, output) = stream.into_split();
        Self { lines: BufReader::new(input).lines(), output }
    }

    /// Sends a message; returns the answer if it is a request.
    async fn send(&mut self, message: &Value) -> Value {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        if message.is_array() || (message.get("id").is_some() && message.get("method").is_some()) {
            let line = self.lines.next_line().await.unwrap().unwrap();
            return serde_json::from_str(&line).unwrap();
        }
        Value::Null
    }
}

/// Sends messages to a server of this revision; returns the last answer and all violations.
async fn told(revision: Revision, messages: Vec<Value>) -> (Value, Vec<String>) {
    let server = server(revision, Network::Tcp).await;
    let mut raw = Raw::to(&server).await;
    let mut last = Value::Null;
    for message in &messages {
        last = raw.send(message).await;
    }
    // What gets no answer is judged when something after it is answered.
    raw.send(&request("end", "ping", modern(json!({})))).await;
    let counts = server.counts();
    let violations = counts["violations"].as_array().unwrap().iter().map(|what| what.as_str().unwrap().to_owned());
    let ends = |what: &String| what.starts_with("ping: ");
    (last, violations.filter(|what| !ends(what)).collect())
}

async fn check(revision: Revision, messages: Vec<Value>, wanted: &str) {
    let (_, violations) = told(revision, messages.clone()).await;
    let found = violations.iter().any(|what| what.contains(wanted));
    assert!(found, "{revision}: {messages:?} must be told as {wanted:?}, not {violations:?}");
}

#[tokio::test]
async fn an_old_server_wants_the_handshake_first() {
    let list = request(1, "tools/list", json!({}));
    check(Revision::R1, vec![list.clone()], "before initialize").await;
    check(Revision::R4, vec![initialize(), list], "before notifications/initialized").await;
    check(Revision::R2, vec![initialize(), request(1, "initialize", initialize()["params"].clone())], "twice").await;
    check(Revision::R2, after_handshake([serde_json::from_str(INITIALIZED).unwrap()]), "in the phase Open").await;
}

#[tokio::test]
async fn an_old_server_refuses_what_came_later() {
    let call = |params: Value| after_handshake([request(1, "tools/call", params)]);
    let answers = call(json!({"name": "echo", "inputResponses": {}}));
    check(Revision::R4, answers, "`inputResponses` is of 2026-07-28").await;
    check(Revision::R4, call(json!({"name": "echo", "requestState": "x"})), "`requestState` is of 2026-07-28").await;
    check(Revision::R3, call(json!({"name": "task", "task": {}})), "`task` is of 2025-11-25").await;
    check(Revision::R4, call(modern(json!({"name": "echo"}))), "of another revision").await;
    check(Revision::R3, after_handshake([request(1, "tasks/list", json!({}))]), "Method not found").await;
    check(Revision::R4, after_handshake([request(1, "subscriptions/listen", json!({}))]), "Method not found").await;
    let batch = json!([request(1, "ping", json!({})), request(2, "ping", json!({}))]);
    check(Revision::R3, after_handshake([batch]), "no request nor the answer to one").await;
}

#[tokio::test]
async fn an_old_server_watches_ids_and_notifications() {
    let list = |id: Value| request(id, "tools/list", json!({}));
    check(Revision::R1, after_handshake([list(json!(1)), list(json!(1))]), "id 1 used before").await;
    check(Revision::R3, after_handshake([list(json!(1.5))]), "neither string nor integer").await;
    let note = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let cancelled = note("notifications/cancelled", json!({"requestId": 99}));
    check(Revision::R3, after_handshake([cancelled]), "no request has the id 99").await;
    check(Revision::R3, after_handshake([note("notifications/other", json!({}))]), "no notification").await;
    let answer = json!({"jsonrpc": "2.0", "id": "nobody", "result": {}});
    check(Revision::R3, after_handshake([answer]), "no request nor the answer to one").await;
}

#[tokio::test]
async fn an_old_server_may_be_asked_for_the_new_era() {
    let (answer, violations) = told(Revision::R3, vec![request(1, "server/discover", modern(json!({})))]).await;
    assert_eq!((&answer["error"]["code"], violations), (&json!(-32601), vec![]));
}

#[tokio::test]
async fn a_new_server_wants_every_request_to_describe_itself() {
    for key in ["protocolVersion", "clientInfo", "clientCapabilities"] {
        let mut params = modern(json!({}));
        params["_meta"].as_object_mut().unwrap().remove(&format!("io.modelcontextprotocol/{key}"));
        let (answer, violations) = told(Revision::R5, vec![request(1, "tools/list", params)]).await;
        assert_eq!(answer["error"]["code"], -32602);
        assert!(violations[0].contains(key), "{violations:?}");
    }
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2025-11-25");
    let (answer, _) = told(Revision::R5, vec![request(1, "tools/list", params)]).await;
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}));
}

#[tokio::test]
async fn a_new_server_refuses_what_was_removed() {
    for method in ["logging/setLevel", "resources/subscribe", "tasks/result", "tasks/list"] {
        check(Revision::R5, vec![request(1, method, modern(json!({})))], "Method not found").await;
    }
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    check(Revision::R5, vec![answer], "no request nor the answer to one").await;
    check(Revision::R5, vec![serde_json::from_str(INITIALIZED).unwrap()], "no notification of this revision").await;
    let list = request(1, "tools/list", modern(json!({"inputResponses": {}})));
    check(Revision::R5, vec![list], "takes no answers").await;
}

#[tokio::test]
async fn a_new_server_checks_what_it_gave_out() {
    let server = server(Revision::R5, Network::Tcp).await;
    let mut raw = Raw::to(&server).await;
    let call = |id: u64, more: Value| {
        let mut params = modern(json!({"name": "ask_elicitation", "arguments": {"tag": "a"}}));
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        request(id, "tools/call", params)
    };
    let answers = json!({"elicitation": {"action": "accept", "content": {"name": "ann"}}});
    let asked = raw.send(&call(1, json!({}))).await;
    let state = &asked["result"]["requestState"];
    let forged = raw.send(&call(2, json!({"requestState": "forged", "inputResponses": answers}))).await;
    assert_eq!(forged["error"]["code"], -32602);
    let without = raw.send(&call(3, json!({"inputResponses": answers}))).await;
    assert!(without["error"]["message"].as_str().unwrap().contains("without the requestState"));
    let done = raw.send(&call(4, json!({"requestState": state, "inputResponses": answers}))).await;
    assert_eq!(done["result"]["content"][0]["text"], "hello ann");
    let again = raw.send(&call(5, json!({"requestState": state, "inputResponses": answers}))).await;
    assert!(again["error"]["message"].as_str().unwrap().contains("came back twice"));
    let counts = server.counts();
    assert_eq!((&counts["runs"]["ask_elicitation"], &counts["violation_count"]), (&json!(1), &json!(3)));
}

fn web(server: &RunningServer) -> HttpClient {
    let address = server.url().trim_start_matches("http://").trim_end_matches("/mcp");
    HttpClient::new(address.parse().unwrap())
}

#[tokio::test]
async fn a_new_server_wants_the_headers_to_say_what_the_body_says() {
    let server = server(Revision::R5, Network::Http).await;
    let call = request(1, "tools/call", modern(json!({"name": "echo", "arguments": {"text": "a"}}))).to_string();
    let version = web(&server).with("mcp-protocol-version", "2026-07-28");
    let whole = version.clone().with("mcp-method", "tools/call").with("mcp-name", "=?base64?ZWNobw==?=");
    assert_eq!(whole.post(&call).await.unwrap().status, 200);
    for bad in [
        web(&server).with("mcp-method", "tools/call").with("mcp-name", "echo"),
        version.clone().with("mcp-name", "echo"),
        version.clone().with("mcp-method", "tools/call"),
        version.clone().with("mcp-method", "tools/call").with("mcp-name", "fail"),
        version.clone().with("mcp-method", "tools/list").with("mcp-name", "echo"),
    ] {
        let answer = bad.post(&call).await.unwrap();
        assert_eq!((answer.status, &answer.message().unwrap()["error"]["code"]), (400, &json!(-32020)));
    }
    let unknown = request(1, "ping", modern(json!({}))).to_string();
    let answer = version.with("mcp-method", "ping").post(&unknown).await.unwrap();
    assert_eq!((answer.status, &answer.message().unwrap()["error"]["code"]), (404, &json!(-32601)));
    assert_eq!(web(&server).send(Method::DELETE, "/mcp", Bytes::new()).await.unwrap().status, 405);
    assert_eq!(server.counts()["violation_count"], 6);
}

#[tokio::test]
async fn an_old_server_wants_its_session_and_its_version() {
    let server = server(Revision::R3, Network::Http).await;
    let probe = request(1, "server/discover", modern(json!({}))).to_string();
    let answer = web(&server).post(&probe).await.unwrap();
    assert_eq!((answer.status, &answer.message().unwrap()["error"]["code"]), (400, &json!(-32000)));
    assert_eq!(server.counts()["violation_count"], 0);

    let opened = web(&server).post(&initialize().to_string()).await.unwrap();
    let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let inside = web(&server).with("mcp-session-id", &session);
    assert_eq!(inside.post(INITIALIZED).await.unwrap().status, 400);
    let inside = inside.with("mcp-protocol-version", "2025-06-18");
    assert_eq!(inside.post(INITIALIZED).await.unwrap().status, 202);
    let list = request(1, "tools/list", json!({})).to_string();
    assert_eq!(inside.clone().with("accept", "application/json").post(&list).await.unwrap().status, 406);
    assert_eq!(inside.post(&list).await.unwrap().status, 200);
    assert_eq!(web(&server).post(&list).await.unwrap().status, 400);
    let unknown = web(&server).with("mcp-session-id", "nobody").with("mcp-protocol-version", "2025-06-18");
    assert_eq!(unknown.post(&list).await.unwrap().status, 404);
    assert_eq!(server.counts()["violation_count"], 3);
}

/// A server of one connection: shakes hands, then answers the next request with these lines, in which `ID` is its id.
async fn scripted(revision: Revision, script: Vec<Value>) -> Reach {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (input, mut output) = stream.into_split();
        let mut lines = BufReader::new(input).lines();
        let caching = json!({"ttlMs": 0, "cacheScope": "private", "resultType": "complete"});
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let mut result = json!({"capabilities": {}, "serverInfo": {"name": "raw", "version": "1"}});
            let answers = match message["method"].as_str() {
                Some("initialize") => {
                    result["protocolVersion"] = json!(revision.name());
                    vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": result})]
                }
                Some("server/discover") => {
                    result["supportedVersions"] = json!([revision.name()]);
                    result.as_object_mut().unwrap().extend(caching.as_object().unwrap().clone());
                    vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": result})]
                }
                Some(_) if message.get("id").is_some() => script.clone(),
                _ => vec![],
            };
            for mut answer in answers {
                if answer["id"] == "ID" {
                    answer["id"] = message["id"].clone();
                }
                output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
            }
        }
    });
    Reach::Tcp(address.to_string())
}

/// What a client of this revision says of these lines in answer to a call with the progress token `mine`.
async fn judged(revision: Revision, script: Vec<Value>) -> Vec<String> {
    let client = Client::open(revision, scripted(revision, script).await, Answers::default()).await.unwrap();
    let params = json!({"name": "echo", "arguments": {}, "_meta": {"progressToken": "mine"}});
    client.request("tools/call", params).await.unwrap();
    client.violations()
}

fn result(result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "ID", "result": result})
}

/// A whole result of the new era with this content.
fn complete(kind: &str) -> Value {
    result(json!({"content": [{"type": kind, "text": "a"}], "resultType": "complete"}))
}

fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params})
}

async fn noticed(revision: Revision, script: Vec<Value>, wanted: &str) {
    let violations = judged(revision, script.clone()).await;
    let found = violations.iter().any(|what| what.contains(wanted));
    assert!(found, "{revision}: {script:?} must be told as {wanted:?}, not {violations:?}");
}

#[tokio::test]
async fn a_plain_answer_is_fine_for_every_client() {
    for revision in Revision::ALL {
        assert_eq!(judged(revision, vec![complete("text")]).await, Vec::<String>::new(), "{revision}");
    }
}

#[tokio::test]
async fn an_old_client_notices_what_came_later() {
    noticed(Revision::R1, vec![complete("audio")], "is of 2025-03-26").await;
    noticed(Revision::R2, vec![complete("resource_link")], "is of 2025-06-18").await;
    let asks = result(json!({"resultType": "input_required", "requestState": "x", "content": []}));
    noticed(Revision::R4, vec![asks], "is of 2026-07-28").await;
    let number = result(json!({"content": [], "structuredContent": 42}));
    noticed(Revision::R4, vec![number], "structuredContent that is no object").await;
    let error = json!({"jsonrpc": "2.0", "id": "ID", "error": {"code": -32021, "message": "no"}});
    noticed(Revision::R4, vec![error], "an error code of 2026-07-28").await;
    let tagged = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": 1}});
    noticed(Revision::R4, vec![note("tools/list_changed", tagged), complete("text")], "of another revision").await;
    noticed(Revision::R3, vec![note("tasks/status", json!({})), complete("text")], "2025-06-18 has no").await;
}

#[tokio::test]
async fn an_old_client_notices_questions_it_did_not_offer_to_answer() {
    let ask = |method: &str, params: Value| vec![request(7, method, params), complete("text")];
    let sampling = ask("sampling/createMessage", json!({"messages": [], "maxTokens": 1}));
    noticed(Revision::R2, sampling, "without sampling being declared").await;
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    noticed(Revision::R2, ask("elicitation/create", form), "without elicitation being declared").await;
    noticed(Revision::R3, ask("tools/list", json!({})), "a question tools/list").await;
}

#[tokio::test]
async fn every_client_notices_progress_that_is_wrong() {
    let step = |token: &str, progress: u64| note("progress", json!({"progressToken": token, "progress": progress}));
    for revision in Revision::ALL {
        noticed(revision, vec![step("other", 1), complete("text")], "a token of no request").await;
        noticed(revision, vec![step("mine", 2), step("mine", 2), complete("text")], "does not increase").await;
        assert!(judged(revision, vec![step("mine", 1), step("mine", 2), complete("text")]).await.is_empty());
        let stray = json!({"jsonrpc": "2.0", "id": 999, "result": {}});
        noticed(revision, vec![stray, complete("text")], "an answer to nothing").await;
    }
}

#[tokio::test]
async fn a_new_client_notices_what_was_removed_and_what_is_missing() {
    noticed(Revision::R5, vec![result(json!({"content": []}))], "resultType None").await;
    let ping = request(7, "ping", json!({}));
    noticed(Revision::R5, vec![ping, complete("text")], "a request of the server").await;
    let log = note("message", json!({"level": "error", "data": "x"}));
    noticed(Revision::R5, vec![log, complete("text")], "no request wanted").await;
    let change = note("tools/list_changed", json!({}));
    noticed(Revision::R5, vec![change, complete("text")], "no request on its way").await;
    let error = json!({"jsonrpc": "2.0", "id": "ID", "error": {"code": -32002, "message": "no"}});
    noticed(Revision::R5, vec![error], "retired").await;
    let task = result(json!({"resultType": "task", "taskId": "1"}));
    noticed(Revision::R5, vec![task], "a client without tasks").await;

    let script = vec![result(json!({"tools": [], "resultType": "complete"}))];
    let reach = scripted(Revision::R5, script).await;
    let client = Client::open(Revision::R5, reach, Answers::default()).await.unwrap();
    client.request("tools/list", json!({})).await.unwrap();
    assert!(client.violations()[0].contains("no ttlMs"));
}
