//! Calls that need consent, at a real gateway: every way to give it, and every way in which it does not count.
//! The tool runs at most once, counted at the backend.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{call, eventually, remote, signalbox, text};
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::task::JoinHandle;

const PASSWORD: &str = "made-up correct horse";
const FORM: &str = "application/x-www-form-urlencoded";

/// A server of 2025-06-18 that counts how often its tool `pay` ran, and whose tool `change` gives `pay` another
/// definition.
struct Backend {
    address: SocketAddr,
    ran: Arc<AtomicU64>,
}

impl Backend {
    async fn start() -> Self {
        let (ran, version) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(1)));
        let counted = Arc::clone(&ran);
        let address = serving(move |message| mcp(message, &counted, &version)).await;
        Self { address, ran }
    }

    fn ran(&self) -> u64 {
        self.ran.load(Ordering::SeqCst)
    }
}

/// The messages with which the server answers one.
fn mcp(message: &Value, ran: &AtomicU64, version: &AtomicU64) -> Vec<Value> {
    let result = match (message["method"].as_str().unwrap_or_default(), message["params"]["name"].as_str()) {
        ("initialize", _) => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "bank", "version": "1"}}),
        ("tools/list", _) => {
            let pay = json!({"name": "pay", "description": format!("version {}", version.load(Ordering::SeqCst)),
                "inputSchema": {"type": "object"}});
            json!({"tools": [pay, {"name": "change", "inputSchema": {"type": "object"}}]})
        }
        ("tools/call", Some("pay")) => {
            let times = ran.fetch_add(1, Ordering::SeqCst) + 1;
            let card = if message["params"]["arguments"]["card"] == true { " by 4111111111111111" } else { "" };
            json!({"content": [{"type": "text", "text": format!("paid {times}{card}")}]})
        }
        ("tools/call", _) => {
            version.fetch_add(1, Ordering::SeqCst);
            let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            let done = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}});
            return vec![told, done];
        }
        ("ping", _) => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return vec![json!({"jsonrpc": "2.0", "id": message["id"], "error": error})];
        }
    };
    vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": result})]
}

/// A web server that answers every POST of JSON with what `answer` makes of it: one message as JSON, several as events.
pub(super) async fn serving(answer: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let (mut length, mut line, mut is_post) = (0, String::new(), false);
                while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                    is_post |= line.starts_with("POST ");
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).await.unwrap();
                let said = serde_json::from_slice::<Value>(&body).ok().filter(|_| is_post);
                let reply = match said.map(|said| (said["id"].is_null(), answer(&said))) {
                    None => {
                        "HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned()
                    }
                    Some((true, all)) if all.len() != 1 || all[0]["id"].is_null() => {
                        "HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned()
                    }
                    Some((_, all)) => whole(&all),
                };
                stream.write_all(reply.as_bytes()).await.unwrap();
            });
        }
    });
    address
}

fn whole(all: &[Value]) -> String {
    let (kind, body) = match all {
        [one] => ("application/json", one.to_string()),
        several => {
            let events = several.iter().map(|one| format!("event: message\ndata: {one}\n\n"));
            ("text/event-stream", events.collect())
        }
    };
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const PEOPLE: &str = "[roles.user]\nask = ['bank/pay']\n[auth.users.'key:ada']\nroles = ['user']\n\
                      [auth.users.'key:bob']\nroles = ['user', 'approver']\n[auth.users.'key:carl']\nroles = ['user']\n";

fn config(backend: &Backend, more: &str) -> String {
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n{more}\n{PEOPLE}\n{}",
        remote("bank", &backend.address.to_string(), "era = 'old'")
    )
}

async fn scene(more: &str) -> (Backend, GatewayProcess) {
    let backend = Backend::start().await;
    let gateway = GatewayProcess::serve(&config(&backend, more)).await.unwrap();
    gateway.ready().await.unwrap();
    (backend, gateway)
}

/// Somebody with an API key.
async fn person(gateway: &GatewayProcess, name: &str) -> HttpClient {
    key_of(gateway, name, name).await
}

/// Somebody with an API key of this name.
async fn key_of(gateway: &GatewayProcess, name: &str, key: &str) -> HttpClient {
    let new = ["keys", "new", key, "--subject", &format!("key:{name}")];
    let key = signalbox(&gateway.data_dir(), &new).await.unwrap().trim().to_owned();
    let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let known = async || (client.get("/api/v1/holds").await.ok()?.status != 401).then_some(());
    eventually("the key is known", known).await.unwrap();
    client
}

async fn session(person: &HttpClient, capabilities: Value) -> HttpClient {
    let client = person.initialize("2025-06-18", capabilities).await.unwrap();
    let listed = async || {
        let tools = client.request(1, "tools/list", json!({})).await.ok()?;
        tools.to_string().contains("\"pay\"").then_some(())
    };
    eventually("the tools are listed", listed).await.unwrap();
    client
}

fn pay() -> Value {
    call(7, "pay", &json!({"amount": 5}))
}

/// A call that goes on by itself.
fn paying(client: &HttpClient) -> JoinHandle<Value> {
    let client = client.clone();
    tokio::spawn(async move { client.post(&pay().to_string()).await.unwrap().message().unwrap() })
}

/// The number of the call that is held.
async fn held(gateway: &GatewayProcess) -> String {
    let look = async || {
        let list = signalbox(&gateway.data_dir(), &["hold", "list", "--json"]).await.ok()?;
        let list: Value = serde_json::from_str(&list).ok()?;
        list["holds"].as_array().filter(|all| !all.is_empty()).map(|all| all[0]["id"].to_string())
    };
    eventually("the call is held", look).await.unwrap()
}

/// Whether a command succeeds, and what it says.
async fn tried(gateway: &GatewayProcess, args: &[&str]) -> (bool, String) {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(args).arg("--data-dir").arg(gateway.data_dir()).kill_on_drop(true);
    let output = command.output().await.unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn why(answer: &Value) -> (&str, &str) {
    (
        answer["error"]["data"]["reason"].as_str().unwrap_or_default(),
        answer["error"]["message"].as_str().unwrap_or_default(),
    )
}

/// Posts a call of a session of the old era, whose client is asked; gives the question and the stream of the call.
async fn asked(client: &HttpClient) -> (Value, EventStream) {
    let mut stream = EventStream::post(client, &pay()).await.unwrap();
    let question = stream.next().await.unwrap().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    (question, stream)
}

async fn answers(client: &HttpClient, question: &Value, result: Value) -> u16 {
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    client.post(&answer.to_string()).await.unwrap().status
}

async fn outcome(stream: &mut EventStream) -> Value {
    loop {
        let message = stream.next().await.unwrap().unwrap();
        if message["id"] == 7 {
            return message;
        }
    }
}

const ASK_CALLER: &str = "[permissions.ask]\nof = 'caller'\n";

fn yes() -> Value {
    json!({"action": "accept", "content": {"approve": true}})
}

/// The caller agrees in its own client, in the middle of its call; each answer that is no yes refuses.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_of_the_old_era_agrees_by_elicitation() {
    let (backend, gateway) = scene(ASK_CALLER).await;
    let ada = session(&person(&gateway, "ada").await, json!({"elicitation": {}})).await;
    let (question, mut stream) = asked(&ada).await;
    assert!(
        question["params"]["message"].as_str().unwrap().contains("`pay` of `bank` run with {\"amount\":5}?"),
        "{question}"
    );
    assert_eq!(question["params"]["requestedSchema"]["required"], json!(["approve"]));
    assert_eq!(backend.ran(), 0);
    assert_eq!(answers(&ada, &question, yes()).await, 202);
    assert_eq!(text(&outcome(&mut stream).await).as_deref(), Some("paid 1"));
    // The same answer once more is of no use.
    answers(&ada, &question, yes()).await;
    for no in [
        json!({"action": "accept", "content": {"approve": false}}),
        json!({"action": "accept"}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        let (question, mut stream) = asked(&ada).await;
        answers(&ada, &question, no).await;
        let refused = outcome(&mut stream).await;
        assert_eq!(why(&refused).0, "denied", "{refused}");
    }
    assert_eq!(backend.ran(), 1);
}

/// A client that cannot ask is refused and told who else can decide, or approvers are asked in its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_ask_is_told_who_else_decides() {
    let (backend, gateway) = scene(ASK_CALLER).await;
    let person = person(&gateway, "ada").await;
    let ada = session(&person, json!({})).await;
    let refused = paying(&ada).await.unwrap();
    assert_eq!(why(&refused).0, "denied");
    assert!(why(&refused).1.contains("role `approver`"), "{refused}");
    let others = format!("{ASK_CALLER}without_elicitation = 'approver'\n");
    std::fs::write(gateway.config_file(), config(&backend, &others)).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    let calling = paying(&ada);
    signalbox(&gateway.data_dir(), &["hold", "release", &held(&gateway).await]).await.unwrap();
    assert_eq!(text(&calling.await.unwrap()).as_deref(), Some("paid 1"));
    assert_eq!(backend.ran(), 1);
}

/// Nobody answers in time, in the client or elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_decides_about_expires() {
    let (backend, gateway) = scene(&format!("[permissions]\nask_timeout = '1s'\n{ASK_CALLER}")).await;
    let person = person(&gateway, "ada").await;
    let ada = session(&person, json!({"elicitation": {}})).await;
    let (question, mut stream) = asked(&ada).await;
    let cancelled = stream.next().await.unwrap().unwrap();
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &question["id"])
    );
    let late = outcome(&mut stream).await;
    assert_eq!(why(&late).0, "hold_expired", "{late}");
    answers(&ada, &question, yes()).await;
    std::fs::write(gateway.config_file(), config(&backend, "[permissions]\nask_timeout = '1s'\n")).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    let late = paying(&ada).await.unwrap();
    assert_eq!(why(&late).0, "hold_expired", "{late}");
    assert_eq!(backend.ran(), 0);
}

/// A call of the new era, with more members.
async fn modern(person: &HttpClient, arguments: Value, more: Value) -> Value {
    let mut params = json!({"name": "pay", "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    let client = person.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    client.with("mcp-name", "pay").post(&message.to_string()).await.unwrap().message().unwrap()
}

/// The state with which a call of the new era comes back.
async fn asked_modern(person: &HttpClient) -> Value {
    let asked = async || {
        let answer = modern(person, json!({"amount": 5}), json!({})).await;
        // The lists may not be there yet.
        (answer["error"]["data"]["reason"] != "unknown_tool").then_some(answer)
    };
    let answer = eventually("the tool is known", asked).await.unwrap();
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let request = &answer["result"]["inputRequests"]["signalbox-consent"];
    assert_eq!(
        (&request["method"], &request["params"]["mode"]),
        (&json!("elicitation/create"), &json!("form")),
        "{answer}"
    );
    answer["result"]["requestState"].clone()
}

fn back(state: &Value, answer: Value) -> Value {
    json!({"requestState": state, "inputResponses": {"signalbox-consent": answer}})
}

/// The caller agrees by coming back with the same call; what it agreed to is that call, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_of_the_new_era_agrees_by_elicitation() {
    let (backend, gateway) = scene(ASK_CALLER).await;
    let ada = person(&gateway, "ada").await;
    let carl = person(&gateway, "carl").await;
    let five = json!({"amount": 5});
    let state = asked_modern(&ada).await;
    let refused = modern(&ada, five.clone(), back(&state, json!({"action": "decline"}))).await;
    assert_eq!(why(&refused).0, "denied", "{refused}");
    let too_late = modern(&ada, five.clone(), back(&state, yes())).await;
    assert_eq!(why(&too_late).0, "denied", "whoever said no cannot say yes to the same question: {too_late}");
    // Other arguments, and another caller.
    let state = asked_modern(&ada).await;
    let other = modern(&carl, five.clone(), back(&state, yes())).await;
    assert_eq!(why(&other).0, "invalid_params", "{other}");
    let more = modern(&ada, json!({"amount": 5000}), back(&state, yes())).await;
    assert!(why(&more).1.contains("changed after consent was asked for"), "{more}");
    assert_eq!(backend.ran(), 0);
    // The call itself, and the same again.
    let state = asked_modern(&ada).await;
    let paid = modern(&ada, five.clone(), back(&state, yes())).await;
    assert_eq!(text(&paid).as_deref(), Some("paid 1"), "{paid}");
    let again = modern(&ada, five.clone(), back(&state, yes())).await;
    // A repeated state is a call of its own, for which nobody has agreed.
    assert_eq!(why(&again).0, "denied", "{again}");
    let forged = modern(&ada, five, back(&json!("signalbox-consent-1-1"), yes())).await;
    assert_eq!(why(&forged).0, "denied", "{forged}");
    assert_eq!(backend.ran(), 1);
}

/// `@of` of a policy says who is asked, whatever is configured.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_says_who_is_asked() {
    let backend = Backend::start().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("policies")).unwrap();
    let policy = "permit(principal, action, resource);\n@id(\"small\") @ask(\"Is that right?\") @of(\"caller\")\n\
                  forbid(principal, action == Action::\"call\", resource == Tool::\"bank/pay\") when { context.arguments.amount < 10 };\n\
                  @id(\"big\") @ask(\"a second pair of eyes\")\n\
                  forbid(principal, action == Action::\"call\", resource == Tool::\"bank/pay\") when { context.arguments.amount >= 10 };";
    std::fs::write(folder.path().join("policies/a.cedar"), policy).unwrap();
    let text_of = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[permissions]\npolicies = '{}'\n{}",
        folder.path().join("policies").display(),
        remote("bank", &backend.address.to_string(), "era = 'old'")
    );
    let gateway = GatewayProcess::serve(&text_of).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = session(&person(&gateway, "ada").await, json!({"elicitation": {}})).await;
    let (question, mut stream) = asked(&ada).await;
    assert!(question["params"]["message"].as_str().unwrap().ends_with("Is that right?"));
    answers(&ada, &question, yes()).await;
    assert_eq!(text(&outcome(&mut stream).await).as_deref(), Some("paid 1"));
    let big = call(7, "pay", &json!({"amount": 50})).to_string();
    let calling = tokio::spawn({
        let ada = ada.clone();
        async move { ada.post(&big).await.unwrap().message().unwrap() }
    });
    let id = held(&gateway).await;
    let shown = signalbox(&gateway.data_dir(), &["hold", "list", "--json"]).await.unwrap();
    assert!(shown.contains("\"policy\":\"big\""), "{shown}");
    signalbox(&gateway.data_dir(), &["hold", "refuse", &id]).await.unwrap();
    assert_eq!(why(&calling.await.unwrap()).0, "denied");
    assert_eq!(backend.ran(), 1);
}

/// Approved by the command line, then a second time; refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_approver_decides_at_the_command_line_once() {
    let (backend, gateway) = scene("").await;
    let ada = session(&person(&gateway, "ada").await, json!({})).await;
    let calling = paying(&ada);
    let id = held(&gateway).await;
    signalbox(&gateway.data_dir(), &["hold", "release", &id]).await.unwrap();
    assert_eq!(text(&calling.await.unwrap()).as_deref(), Some("paid 1"));
    let (again, told) = tried(&gateway, &["hold", "release", &id]).await;
    assert!(!again, "{told}");
    let calling = paying(&ada);
    signalbox(&gateway.data_dir(), &["hold", "refuse", &held(&gateway).await, "--reason", "too much"]).await.unwrap();
    assert!(why(&calling.await.unwrap()).1.contains("too much"));
    assert_eq!(backend.ran(), 1);
}

/// What changes between the question and the answer makes the answer worthless.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_definition_or_policy_that_change_void_the_consent() {
    let (backend, gateway) = scene("").await;
    let data = gateway.data_dir();
    let ada = session(&person(&gateway, "ada").await, json!({})).await;
    let changed = "changed after consent was asked for";
    // Arguments.
    let calling = paying(&ada);
    let params = r#"{"name": "pay", "arguments": {"amount": 5000}}"#;
    signalbox(&data, &["hold", "edit", &held(&gateway).await, "--params", params]).await.unwrap();
    let refused = calling.await.unwrap();
    assert!(why(&refused).1.contains(changed), "{refused}");
    // The definition of the tool.
    let calling = paying(&ada);
    let id = held(&gateway).await;
    let other = session(&person(&gateway, "carl").await, json!({})).await;
    other.post(&call(8, "change", &json!({})).to_string()).await.unwrap();
    let seen = async || {
        let tools = other.request(1, "tools/list", json!({})).await.ok()?;
        tools.to_string().contains("version 2").then_some(())
    };
    eventually("the other definition is known", seen).await.unwrap();
    signalbox(&data, &["hold", "release", &id]).await.unwrap();
    let refused = calling.await.unwrap();
    assert!(why(&refused).1.contains(changed), "{refused}");
    // The policy, even where nobody has to agree any more.
    let calling = paying(&ada);
    let id = held(&gateway).await;
    let free = config(&backend, "").replace("ask = ['bank/pay']", "");
    std::fs::write(gateway.config_file(), free).unwrap();
    signalbox(&data, &["reload"]).await.unwrap();
    signalbox(&data, &["hold", "release", &id]).await.unwrap();
    let refused = calling.await.unwrap();
    assert!(why(&refused).1.contains(changed), "{refused}");
    assert_eq!(backend.ran(), 0);
    assert_eq!(text(&paying(&ada).await.unwrap()).as_deref(), Some("paid 1"));
}

/// A chat that keeps what it is told.
async fn chat() -> (SocketAddr, Arc<Mutex<Vec<Value>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let address = serving(move |message| {
        kept.lock().unwrap().push(message.clone());
        vec![json!({"id": 1, "ok": true})]
    })
    .await;
    (address, told)
}

/// The path of the newest link that the chat was told.
async fn link(told: &Mutex<Vec<Value>>, gateway: &GatewayProcess, nth: usize) -> String {
    let look = async || told.lock().unwrap().get(nth).map(|one| one["link"].as_str().unwrap_or_default().to_owned());
    let link = eventually("the chat is told", look).await.unwrap();
    link.strip_prefix(&format!("http://{}", gateway.address())).unwrap().to_owned()
}

async fn sends(client: &HttpClient, path: &str, form: &str) -> HttpAnswer {
    let client = client.clone().with("content-type", FORM);
    client.send(Method::POST, path, Bytes::copy_from_slice(form.as_bytes())).await.unwrap()
}

fn page(answer: &HttpAnswer) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// A chat gets a link; looking at it decides nothing, and only an approver who did not call decides, once.
#[tokio::test(flavor = "multi_thread")]
async fn an_approver_decides_by_the_link_that_a_chat_was_told() {
    let (address, told) = chat().await;
    let (backend, gateway) = scene(&format!("[permissions.ask]\nwebhook = 'http://{address}/hook'\n")).await;
    let (ada, bob) = (person(&gateway, "ada").await, person(&gateway, "bob").await);
    let (carl, nobody) = (person(&gateway, "carl").await, HttpClient::new(gateway.address()));
    let calling = paying(&session(&ada, json!({})).await);
    let path = link(&told, &gateway, 0).await;
    let note = told.lock().unwrap()[0].clone();
    assert!(note["text"].as_str().unwrap().contains("`key:ada` wants to use `bank/pay`"), "{note}");
    assert_eq!((&note["policy"], &note["arguments"]), (&json!("role:user"), &json!("{\"amount\":5}")));
    // Chats look at links by themselves.
    for _ in 0..3 {
        let shown = nobody.get(&path).await.unwrap();
        let html = page(&shown);
        assert!(shown.status == 200 && html.contains("key:ada") && html.contains("{&quot;amount&quot;:5}"), "{html}");
        assert!(!html.contains("<script") && !html.contains("<button"), "{html}");
        let policy = shown.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
    }
    for (who, client) in [("nobody", &nobody), ("the caller", &ada), ("somebody else", &carl)] {
        let denied = sends(client, &path, "answer=approve").await;
        assert_eq!(denied.status, 403, "{who}: {}", page(&denied));
    }
    let unknown = nobody.get("/approve/1-0123456789abcdef0123456789abcdef").await.unwrap();
    assert_eq!((sends(&bob, &path, "answer=perhaps").await.status, backend.ran()), (400, 0));
    assert_eq!(sends(&bob, &path, "answer=approve").await.status, 200);
    assert_eq!(text(&calling.await.unwrap()).as_deref(), Some("paid 1"));
    let used = sends(&bob, &path, "answer=approve").await;
    assert_eq!((used.status, page(&used)), (404, page(&unknown)), "used and unknown links are answered alike");
    assert_eq!(page(&nobody.get(&path).await.unwrap()), page(&unknown));
    // Refused.
    let calling = paying(&session(&ada, json!({})).await);
    let path = link(&told, &gateway, 1).await;
    assert_eq!(sends(&bob, &path, "answer=refuse").await.status, 200);
    assert_eq!(why(&calling.await.unwrap()).0, "denied");
    // An approver's own call.
    let calling = paying(&session(&bob, json!({})).await);
    let path = link(&told, &gateway, 2).await;
    let own = sends(&bob, &path, "answer=approve").await;
    assert!(own.status == 403 && page(&own).contains("cannot decide about their own calls"), "{}", page(&own));
    signalbox(&gateway.data_dir(), &["hold", "refuse", &held(&gateway).await]).await.unwrap();
    calling.await.unwrap();
    assert_eq!(backend.ran(), 1);
}

async fn add_user(gateway: &GatewayProcess, name: &str) {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["users", "add", name, "--data-dir"]).arg(gateway.data_dir());
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).await.unwrap();
    let ended = child.wait_with_output().await.unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// The cookie of a browser in which somebody has signed in for this link.
async fn signed_in(http: &HttpClient, path: &str, user: &str) -> String {
    let asked = http.get(&format!("{path}/sign-in")).await.unwrap();
    assert_eq!(asked.status, 200, "{}", page(&asked));
    let cookie = asked.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let html = page(&asked);
    let ticket = html.split("name=\"ticket\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let form = format!("ticket={ticket}&user={user}&password={}", PASSWORD.replace(' ', "+"));
    let back = sends(&http.clone().with("cookie", &cookie), "/auth/sign-in", &form).await;
    assert_eq!((back.status, back.headers["location"].to_str().unwrap()), (303, path));
    cookie
}

/// In a browser, after a sign-in; a form that another page sends does not count.
#[tokio::test(flavor = "multi_thread")]
async fn an_approver_signs_in_and_decides_in_a_browser() {
    let (address, told) = chat().await;
    let more = format!(
        "[permissions.ask]\nwebhook = 'http://{address}/hook'\n[auth.server]\nenabled = true\n\
         [auth.users.'user:bob']\nroles = ['approver']\n"
    );
    let (backend, gateway) = scene(&more).await;
    add_user(&gateway, "bob").await;
    add_user(&gateway, "eve").await;
    let ada = session(&person(&gateway, "ada").await, json!({})).await;
    let calling = paying(&ada);
    let path = link(&told, &gateway, 0).await;
    let http = HttpClient::new(gateway.address());
    assert!(page(&http.get(&path).await.unwrap()).contains("Sign in to decide"));
    let eve = http.clone().with("cookie", &signed_in(&http, &path, "eve").await);
    assert!(!page(&eve.get(&path).await.unwrap()).contains("<button"));
    assert_eq!(sends(&eve, &path, "answer=approve").await.status, 403);
    let bob = http.clone().with("cookie", &signed_in(&http, &path, "bob").await);
    let html = page(&bob.get(&path).await.unwrap());
    let token = html.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(sends(&bob, &path, "answer=approve").await.status, 403, "another page made this form");
    assert_eq!(sends(&eve, &path, &format!("answer=approve&token={token}")).await.status, 403, "it is not hers");
    assert_eq!(backend.ran(), 0);
    assert_eq!(sends(&bob, &path, &format!("answer=hour&token={token}")).await.status, 200);
    assert_eq!(text(&calling.await.unwrap()).as_deref(), Some("paid 1"));
    assert_eq!(sends(&bob, &path, &format!("answer=approve&token={token}")).await.status, 404);
    // For one hour nobody is asked about the same tool of the same caller.
    assert_eq!(text(&paying(&ada).await.unwrap()).as_deref(), Some("paid 2"));
    assert_eq!(backend.ran(), 2);
}

async fn names(client: &HttpClient) -> Vec<String> {
    let listed = client.request(1, "tools/list", json!({})).await.unwrap();
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

const STRICT: &str = "[roles.none]\nallow = ['other']\n[roles.shut]\nallow = ['other']\ndeny = ['bank/pay']\n\
                      [auth.users.'key:dora']\nroles = ['none']\n[auth.users.'key:emil']\nroles = ['shut']\n";

/// Grants make up for what is lacking, not for what is denied; they are kept over a restart, end by the clock and
/// change lists.
#[tokio::test(flavor = "multi_thread")]
async fn grants_end_by_themselves() {
    let (backend, gateway) = scene(STRICT).await;
    let data = gateway.data_dir();
    let (dora, emil, ada) =
        (person(&gateway, "dora").await, person(&gateway, "emil").await, person(&gateway, "ada").await);
    let begin = async |who: &HttpClient| who.initialize("2025-06-18", json!({})).await.unwrap();
    let (at_dora, at_emil, at_ada) = (begin(&dora).await, begin(&emil).await, session(&ada, json!({})).await);
    assert!(names(&at_dora).await.is_empty());
    let mut news = EventStream::general(&at_dora).await.unwrap();
    for who in ["key:dora", "key:emil", "key:ada"] {
        let add = ["grant", "add", "--to", who, "--tools", "bank/pay", "--for", "1h", "--because", "a test"];
        signalbox(&data, &add).await.unwrap();
    }
    let heard = news.next().await.unwrap().unwrap();
    assert_eq!(heard["method"], "notifications/tools/list_changed");
    assert_eq!(names(&at_dora).await, ["pay"]);
    let file = gateway.config_file().to_str().unwrap().to_owned();
    let told = signalbox(&data, &["policy", "explain", "bank/pay", "--as", "key:dora", "-c", &file]).await.unwrap();
    assert!(told.contains("allow") && told.contains("grant:") && told.contains(": a test"), "{told}");
    let told = signalbox(&data, &["policy", "who", "bank/pay", "--json", "-c", &file]).await.unwrap();
    let told: Vec<Value> = serde_json::from_str(&told).unwrap();
    let of_dora = told.iter().find(|row| row["who"] == "user key:dora").unwrap();
    assert_eq!(of_dora["decision"]["grant"]["because"], "a test", "{of_dora}");
    assert_eq!(text(&paying(&at_dora).await.unwrap()).as_deref(), Some("paid 1"));
    assert!(names(&at_emil).await.is_empty(), "what a role denies stays denied");
    assert_eq!(why(&paying(&at_emil).await.unwrap()).0, "unknown_tool");
    assert_eq!(text(&paying(&at_ada).await.unwrap()).as_deref(), Some("paid 2"), "nobody is asked");
    // A restart keeps them.
    let folder = gateway.stop().await.unwrap();
    let gateway = GatewayProcess::serve_in(folder, &config(&backend, STRICT)).await.unwrap();
    gateway.ready().await.unwrap();
    let data = gateway.data_dir();
    let listed: Value = serde_json::from_str(&signalbox(&data, &["grant", "list", "--json"]).await.unwrap()).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 3, "{listed}");
    let ids = listed.as_array().unwrap().iter().map(|grant| grant["id"].as_str().unwrap().to_owned());
    for id in ids.collect::<Vec<_>>() {
        signalbox(&data, &["grant", "revoke", &id]).await.unwrap();
    }
    assert!(!tried(&gateway, &["grant", "revoke", "0011223344556677"]).await.0);
    let dora = key_of(&gateway, "dora", "dora again").await;
    let at_dora = dora.initialize("2025-06-18", json!({})).await.unwrap();
    assert!(names(&at_dora).await.is_empty());
    // The clock ends one, and lists change.
    let mut news = EventStream::general(&at_dora).await.unwrap();
    let add = ["grant", "add", "--to", "key:dora", "--tools", "bank", "--for", "2s", "--because", "a moment"];
    signalbox(&data, &add).await.unwrap();
    for _ in 0..2 {
        while news.next().await.unwrap().unwrap()["method"] != "notifications/tools/list_changed" {}
    }
    assert!(names(&at_dora).await.is_empty());
    assert_eq!(why(&paying(&at_dora).await.unwrap()).0, "unknown_tool");
    assert_eq!(backend.ran(), 2);
}

/// The API: an approver grants something to others, never to themselves, and never breaks the glass.
#[tokio::test(flavor = "multi_thread")]
async fn an_approver_grants_to_others() {
    let (backend, gateway) = scene("[permissions.break_glass]\nallowed = true\n").await;
    let (ada, bob) = (person(&gateway, "ada").await, person(&gateway, "bob").await);
    let post = async |who: &HttpClient, body: Value| {
        let answer = who.send(Method::POST, "/api/v1/grants", Bytes::from(body.to_string())).await.unwrap();
        (answer.status, page(&answer))
    };
    let wanted = |to: &str| json!({"to": to, "tools": ["bank/pay"], "for": "1h", "because": "a test"});
    assert_eq!(post(&ada, wanted("key:carl")).await.0, 403);
    let (status, told) = post(&bob, wanted("key:bob")).await;
    assert!(status == 403 && told.contains("to themselves"), "{told}");
    let glass = json!({"to": "key:ada", "for": "1h", "because": "a test", "break_glass": true});
    assert_eq!(post(&bob, glass).await.0, 403);
    for bad in [
        json!({"to": "key:ada", "tools": [], "for": "1h", "because": "x"}),
        json!({"to": "key:ada", "tools": ["bank/"], "for": "1h", "because": "x"}),
        json!({"to": "key:ada", "tools": ["bank"], "for": "0s", "because": "x"}),
        json!({"to": "key:ada", "tools": ["bank"], "for": "400d", "because": "x"}),
        json!({"to": "key:ada", "tools": ["bank"], "for": "1h", "because": ""}),
        json!({"to": "key:ada", "tools": ["bank"], "for": "1h", "because": "x", "id": "../x"}),
    ] {
        assert_eq!(post(&bob, bad.clone()).await.0, 400, "{bad}");
    }
    let (status, told) = post(&bob, wanted("key:ada")).await;
    assert_eq!(status, 200, "{told}");
    let at_ada = session(&ada, json!({})).await;
    assert_eq!(text(&paying(&at_ada).await.unwrap()).as_deref(), Some("paid 1"));
    let id = serde_json::from_str::<Value>(&told).unwrap()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/grants/{id}");
    assert_eq!(bob.send(Method::DELETE, &path, Bytes::new()).await.unwrap().status, 200);
    let calling = paying(&at_ada);
    // With a release for a while there is a grant again.
    signalbox(&gateway.data_dir(), &["hold", "release", &held(&gateway).await, "--for", "1h"]).await.unwrap();
    assert_eq!(text(&calling.await.unwrap()).as_deref(), Some("paid 2"));
    assert_eq!(text(&paying(&at_ada).await.unwrap()).as_deref(), Some("paid 3"));
    assert_eq!(backend.ran(), 3);
}

/// A release for a while makes a grant, which the audit log has as the approver's and not only as a change of a file.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_comes_with_a_release_is_recorded_as_the_approvers() {
    let (_backend, gateway) = scene("[mcp.protocol.audit]\nenabled = true").await;
    let ada = person(&gateway, "ada").await;
    let at_ada = session(&ada, json!({})).await;
    let calling = paying(&at_ada);
    let release = ["hold", "release", &held(&gateway).await, "--for", "1h"];
    signalbox(&gateway.data_dir(), &release).await.unwrap();
    calling.await.unwrap();
    let file = gateway.config_file().display().to_string();
    let args = ["audit", "search", "--json", "--type", "admin_action", "-c", &file];
    let found = async || {
        let text = signalbox(&gateway.data_dir(), &args).await.ok()?;
        let all: Vec<Value> = serde_json::from_str(&text).ok()?;
        let of = |action: &str| all.iter().find(|one| one["details"]["action"] == action).cloned();
        of("hold.release").zip(of("grant.add"))
    };
    let (released, granted) = eventually("the release and the grant are recorded", found).await.unwrap();
    assert_eq!(granted["user_context"]["principal"], released["user_context"]["principal"], "{granted} {released}");
    let after = &granted["details"]["after"];
    assert_eq!((&after["to"], &after["tools"]), (&json!("key:ada"), &json!(["bank/pay"])), "{granted}");
    assert_eq!(after["by"], released["details"]["after"]["by"], "{granted} {released}");
}

/// Grants and switches that one process is told by its API hold in another process of the same data folder, without a
/// reload.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_process_is_told_holds_in_all_of_its_data_folder() {
    let (backend, gateway) = scene(&format!("[auth.users.'key:alice']\nroles = ['admin']\n{STRICT}")).await;
    let beside = gateway.serve_beside().await.unwrap();
    beside.ready().await.unwrap();
    let (bob, alice) = (person(&gateway, "bob").await, person(&gateway, "alice").await);
    let dora = person(&beside, "dora").await.initialize("2025-06-18", json!({})).await.unwrap();
    assert!(names(&dora).await.is_empty());
    let mut news = EventStream::general(&dora).await.unwrap();
    let post = async |who: &HttpClient, path: &str, body: Value| {
        let answer = who.send(Method::POST, path, Bytes::from(body.to_string())).await.unwrap();
        assert_eq!(answer.status, 200, "{}", page(&answer));
        serde_json::from_str::<Value>(&page(&answer)).unwrap()
    };
    let wanted = json!({"to": "key:dora", "tools": ["bank/pay"], "for": "1h", "because": "a test"});
    let granted = post(&bob, "/api/v1/grants", wanted).await;
    let mut changed =
        async || while news.next().await.unwrap().unwrap()["method"] != "notifications/tools/list_changed" {};
    changed().await;
    assert_eq!(names(&dora).await, ["pay"]);
    assert_eq!(text(&paying(&dora).await.unwrap()).as_deref(), Some("paid 1"));
    let killed = json!({"pattern": "bank/pay", "off": "killed", "reason": "it lost data"});
    post(&alice, "/api/v1/switches", killed).await;
    changed().await;
    assert!(names(&dora).await.is_empty());
    assert_eq!(paying(&dora).await.unwrap()["error"]["code"], -32005);
    post(&alice, "/api/v1/switches/lift", json!({"pattern": "bank/pay"})).await;
    changed().await;
    assert_eq!(text(&paying(&dora).await.unwrap()).as_deref(), Some("paid 2"));
    let path = format!("/api/v1/grants/{}", granted["id"].as_str().unwrap());
    assert_eq!(bob.send(Method::DELETE, &path, Bytes::new()).await.unwrap().status, 200);
    changed().await;
    assert_eq!(why(&paying(&dora).await.unwrap()).0, "unknown_tool");
    assert_eq!(backend.ran(), 2);
    drop(beside);
}

/// Break-glass: everything but what is switched off, for one caller, with an alarm in the log, the status, the doctor,
/// the metrics and a chat; only where it is allowed.
#[tokio::test(flavor = "multi_thread")]
async fn breaking_the_glass_allows_everything_and_raises_an_alarm() {
    let (backend, gateway) = scene(STRICT).await;
    let data = gateway.data_dir();
    let glass = ["grant", "break-glass", "--to", "key:emil", "--for", "15m", "--because", "the site is down"];
    let (done, told) = tried(&gateway, &glass).await;
    assert!(!done && told.contains("permissions.break_glass.allowed"), "{told}");
    let (address, alarms) = chat().await;
    let allowed = format!("[permissions.break_glass]\nallowed = true\nwebhook = 'http://{address}/alarm'\n{STRICT}");
    std::fs::write(gateway.config_file(), config(&backend, &allowed)).unwrap();
    signalbox(&data, &["reload"]).await.unwrap();
    let too_long = ["grant", "break-glass", "--to", "key:emil", "--for", "2h", "--because", "the site is down"];
    assert!(!tried(&gateway, &too_long).await.0);
    signalbox(&data, &glass).await.unwrap();
    let emil = person(&gateway, "emil").await.initialize("2025-06-18", json!({})).await.unwrap();
    assert_eq!(names(&emil).await, ["pay", "change"]);
    assert_eq!(text(&paying(&emil).await.unwrap()).as_deref(), Some("paid 1"));
    let heard = async || alarms.lock().unwrap().first().cloned();
    let alarm = eventually("the chat is told", heard).await.unwrap();
    assert!(alarm["text"].as_str().unwrap().contains("`key:emil` breaks the glass"), "{alarm}");
    let status = signalbox(&data, &["status"]).await.unwrap();
    assert!(status.contains("ALARM") && status.contains("the site is down"), "{status}");
    let (_, found) = tried(&gateway, &["doctor", "-c", gateway.config_file().to_str().unwrap()]).await;
    assert!(found.contains("may use everything but what is switched off"), "{found}");
    let metrics = emil.get("/metrics").await.unwrap();
    assert!(page(&metrics).contains("signalbox_break_glass 1"), "{}", page(&metrics));
    let logged =
        async || gateway.process.error_lines().iter().any(|line| line.contains("behind broken glass")).then_some(());
    eventually("the use is in the log", logged).await.unwrap();
    // The kill switch still holds.
    signalbox(&data, &["switch", "kill", "bank/pay"]).await.unwrap();
    assert_eq!(paying(&emil).await.unwrap()["error"]["code"], -32005);
    assert_eq!(backend.ran(), 1);
}

/// Allow with constraints: paths lie within folders, before an approver is asked; what is taken out of answers never
/// leaves; the kill switch and unknown names come first.
/// Proves G-13.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_allowed_can_be_constrained() {
    let constraints = "[constraints.'bank/pay']\nroles = ['user']\npath_arguments = ['receipt']\nfolders = ['/srv/receipts']\n\
                       redact = ['[0-9]{16}']\n[roles.free]\n[auth.users.'key:fay']\nroles = ['free']\n";
    let (backend, gateway) = scene(&format!("{constraints}{STRICT}")).await;
    let ada = session(&person(&gateway, "ada").await, json!({})).await;
    let pay = async |who: &HttpClient, receipt: &str| {
        let arguments = json!({"receipt": receipt, "card": true});
        who.post(&call(7, "pay", &arguments).to_string()).await.unwrap().message().unwrap()
    };
    for bad in ["/etc/passwd", "/srv/receipts/../x", "file:///etc/passwd", "/srv/receipts/%2e%2e/x", "~/x"] {
        let denied = pay(&ada, bad).await;
        assert_eq!(
            (why(&denied).0, &denied["error"]["data"]["policy"]),
            ("denied", &json!("constraint:bank/pay")),
            "{denied}"
        );
        assert!(why(&denied).1.contains("the argument `receipt` must lie within"), "{denied}");
    }
    let calling = tokio::spawn({
        let (ada, arguments) = (ada.clone(), json!({"receipt": "/srv/receipts/1", "card": true}));
        async move { ada.post(&call(7, "pay", &arguments).to_string()).await.unwrap().message().unwrap() }
    });
    signalbox(&gateway.data_dir(), &["hold", "release", &held(&gateway).await]).await.unwrap();
    let paid = text(&calling.await.unwrap()).unwrap();
    assert!(paid.starts_with("paid 1 by ") && !paid.contains("4111"), "{paid}");
    let fay = session(&person(&gateway, "fay").await, json!({})).await;
    assert_eq!(
        text(&pay(&fay, "/etc/passwd").await).as_deref(),
        Some("paid 2 by 4111111111111111"),
        "it is for one role"
    );
    let dora = person(&gateway, "dora").await.initialize("2025-06-18", json!({})).await.unwrap();
    assert_eq!(why(&pay(&dora, "/etc/passwd").await).0, "unknown_tool");
    assert_eq!(backend.ran(), 2);
}
