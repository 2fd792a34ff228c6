//! Many sessions at a time: each gets its own answers and its own questions, over connections shared as far as may be.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::HashSet;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use signalbox_testkit::clients;
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{
    ask, backend_status, call, child, eventually, files_holding, pids, process_of, remote, signalbox, status, text,
    tool_names, web_fixture,
};
use signalbox_testkit::wire_log::now;
use signalbox_wire::timestamp::parse_rfc3339;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const VERSION: &str = "2025-06-18";
const SESSIONS: usize = 1_000;
/// How many connections are open at a time; the sessions are all open.
const CONNECTIONS: usize = 64;

/// Runs the same step for every client, as many at a time as there may be connections.
async fn each<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    clients: &[HttpClient],
    step: impl Fn(usize, HttpClient) -> F,
) -> Vec<T> {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let mut tasks = JoinSet::new();
    for (index, client) in clients.iter().enumerate() {
        let (permits, work) = (Arc::clone(&permits), step(index, client.clone()));
        tasks.spawn(async move {
            let _permit = permits.acquire_owned().await.unwrap();
            (index, work.await)
        });
    }
    let mut all = tasks.join_all().await;
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Opens a thousand sessions, lists and calls on each of them, under the same ids everywhere.
/// Returns what `whoami` said.
async fn a_thousand(gateway: &GatewayProcess) -> Vec<Value> {
    let fresh = vec![HttpClient::new(gateway.address()); SESSIONS];
    let open = |_, client: HttpClient| async move { client.initialize(VERSION, json!({})).await.unwrap() };
    let clients = each(&fresh, open).await;
    let lists = each(&clients, |_, client| async move { tool_names(&client).await.unwrap() }).await;
    assert!(lists[0].contains(&"greet".to_owned()) && lists.iter().all(|list| *list == lists[0]));
    let greet = |index: usize, client: HttpClient| async move {
        ask(&client, "greet", json!({"name": format!("caller {index} of many")})).await.unwrap()
    };
    for (index, greeting) in each(&clients, greet).await.into_iter().enumerate() {
        assert!(greeting.contains(&format!("caller {index} of many")), "{index}: {greeting}");
    }
    let whoami = |_, client: HttpClient| async move { ask(&client, "whoami", json!({})).await.unwrap() };
    let answers = each(&clients, whoami).await;
    assert_eq!(status(&gateway.data_dir()).await.unwrap()["sessions"], SESSIONS);
    answers.iter().map(|answer| serde_json::from_str(answer).unwrap()).collect()
}

/// Proves S-69.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_share_one_child() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    let answers = a_thousand(&gateway).await;
    let processes: HashSet<u64> = answers.iter().map(|answer| answer["process"].as_u64().unwrap()).collect();
    let backend = backend_status(&gateway.data_dir(), "one").await.unwrap();
    let known: HashSet<u64> = pids(&backend).into_iter().map(u64::from).collect();
    assert_eq!(processes.len(), 1);
    assert_eq!((processes, backend["restarts"].as_u64()), (known, Some(0)));
}

/// Proves S-69.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sessions_have_a_session_each_at_an_http_backend() {
    let (_web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let gateway = GatewayProcess::serve(&remote("web", &address, "")).await.unwrap();
    let answers = a_thousand(&gateway).await;
    let sessions: HashSet<&str> = answers.iter().map(|answer| answer["session"].as_str().unwrap()).collect();
    assert_eq!(sessions.len(), SESSIONS);
}

/// Proves S-16.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_ids_at_the_same_time_are_told_apart() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    let client = HttpClient::new(gateway.address());
    let first = client.initialize(VERSION, json!({})).await.unwrap();
    let second = client.initialize(VERSION, json!({})).await.unwrap();
    let post = async |client: &HttpClient, ms: u64| {
        let answer = client.post(&call(1, "slow", &json!({"ms": ms})).to_string()).await.unwrap().message().unwrap();
        assert_eq!(answer["id"], 1);
        text(&answer).unwrap()
    };
    // The first to be asked is the last to answer.
    let (slower, faster) = tokio::join!(post(&first, 900), post(&second, 300));
    assert_eq!((slower.as_str(), faster.as_str()), ("slept 900 ms", "slept 300 ms"));
}

async fn with_elicitation(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize(VERSION, json!({"elicitation": {}})).await.unwrap()
}

/// Waits for the question about the name and returns its id.
async fn question(stream: &mut EventStream) -> Value {
    let question = stream.next().await.unwrap().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    question["id"].clone()
}

async fn reply(client: &HttpClient, id: &Value, name: &str) {
    let result = json!({"action": "accept", "content": {"name": name}});
    let answer = client.post(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()).await.unwrap();
    assert_eq!(answer.status, 202);
}

/// The answer of the tool, which must be all that is left on the stream.
async fn last(stream: &mut EventStream) -> String {
    let answer = stream.next().await.unwrap().unwrap();
    assert_eq!(answer["id"], 1, "{answer}");
    assert_eq!(stream.next().await.unwrap(), None);
    text(&answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_that_can_be_asked_never_see_each_others_questions() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    let (ada, bob) = (with_elicitation(&gateway).await, with_elicitation(&gateway).await);
    let bare = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let processes = [
        process_of(&ada, "whoami").await.unwrap(),
        process_of(&bob, "whoami").await.unwrap(),
        process_of(&bare, "whoami").await.unwrap(),
    ];
    assert_eq!(HashSet::from(processes).len(), 3, "{processes:?}");
    let ask_name = call(1, "ask_name", &json!({}));
    let (to_ada, to_bob) = tokio::join!(EventStream::post(&ada, &ask_name), EventStream::post(&bob, &ask_name));
    let (mut to_ada, mut to_bob) = (to_ada.unwrap(), to_bob.unwrap());
    // Both questions are open before either is answered, and the later one is answered first.
    let (for_ada, for_bob) = (question(&mut to_ada).await, question(&mut to_bob).await);
    reply(&bob, &for_bob, "Bob").await;
    assert_eq!(last(&mut to_bob).await, "Bob");
    reply(&ada, &for_ada, "Ada").await;
    assert_eq!(last(&mut to_ada).await, "Ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_too_many_is_refused_by_name() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "max_children = 2").unwrap()).await.unwrap();
    let first = with_elicitation(&gateway).await;
    // Its client stays connected, so that its process cannot make room.
    let _connected = first.open(http::Method::GET, "/mcp", bytes::Bytes::new()).await.unwrap();
    let own = process_of(&first, "whoami").await.unwrap();
    // Of another kind, so that its lists are not known either: they must not be waited for.
    let second = HttpClient::new(gateway.address()).initialize(VERSION, json!({"sampling": {}})).await.unwrap();
    let started = Instant::now();
    assert!(tool_names(&second).await.unwrap().contains(&"whoami".to_owned()));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let refusal = second.request(2, "tools/call", json!({"name": "whoami", "arguments": {}})).await.unwrap();
    assert_eq!(refusal["error"]["data"]["reason"], "overloaded", "{refusal}");
    let message = refusal["error"]["message"].as_str().unwrap();
    assert!(message.contains("max_children") && message.contains("`one`"), "{message}");
    let backend = backend_status(&gateway.data_dir(), "one").await.unwrap();
    assert!(pids(&backend).len() == 2 && pids(&backend).contains(&own), "{backend}");

    // The place is free again when the first one ends.
    let ended = first.send(http::Method::DELETE, "/mcp", bytes::Bytes::new()).await.unwrap();
    assert!((200..300).contains(&ended.status), "{}", ended.status);
    assert_ne!(process_of(&second, "whoami").await.unwrap(), own);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_its_limit_of_event_streams_still_gets_answers() {
    let (_web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let config = format!("[gateway]\nmax_streams = 1\n{}", remote("only", &address, ""));
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let mut slow = call(1, "slow", &json!({"ms": 500}));
    slow["params"]["_meta"] = json!({"progressToken": "p"});
    let general = client.open(http::Method::GET, "/mcp", bytes::Bytes::new()).await.unwrap();
    assert_eq!(general.status(), 200);
    let second = client.send(http::Method::GET, "/mcp", bytes::Bytes::new()).await.unwrap();
    assert_eq!(second.status, 429);
    // The call reports progress, which has no stream to go to; its answer comes all the same.
    let answer = client.post(&slow.to_string()).await.unwrap();
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(answer.message().unwrap()["result"].is_object());
    drop(general);
    let freed =
        async || client.open(http::Method::GET, "/mcp", bytes::Bytes::new()).await.ok().filter(|a| a.status() == 200);
    eventually("the place is free again", freed).await.unwrap();
}

/// A gateway whose callers prove who they are, and the keys of two of them.
async fn two_users() -> (GatewayProcess, String, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let new = async |user: &str| {
        let args = ["keys", "new", user, "--subject", &format!("user:{user}")];
        signalbox(&data, &args).await.unwrap().trim().to_owned()
    };
    let keys = [new("ada").await, new("eve").await];
    let one = child("one", ServedEra::Old, "").unwrap();
    let config = format!("[mcp.protocol.security]\nrequire_authentication = true\n{one}");
    (GatewayProcess::serve_in(folder, &config).await.unwrap(), config, keys)
}

fn user(gateway: &GatewayProcess, key: &str) -> HttpClient {
    HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"))
}

/// The same session at another process.
fn go_on(gateway: &GatewayProcess, key: &str, session: &str, version: &str) -> HttpClient {
    user(gateway, key).with("mcp-session-id", session).with("mcp-protocol-version", version)
}

/// Waits until the folder of sessions holds as many as it should.
async fn stored(gateway: &GatewayProcess, count: usize) {
    let folder = gateway.data_dir().join("sessions");
    let files = async || (std::fs::read_dir(&folder).ok()?.count() == count).then_some(());
    eventually("the sessions are stored", files).await.unwrap();
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#;

/// Sessions of the old era outlive the process, for their owner alone.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_survive_a_restart_by_sigterm_and_by_sigkill() {
    let (mut gateway, config, [ada, eve]) = two_users().await;
    let newer = user(&gateway, &ada).initialize("2025-11-25", json!({"elicitation": {}})).await.unwrap();
    let older = user(&gateway, &ada).initialize("2025-06-18", json!({})).await.unwrap();
    let ended = user(&gateway, &ada).initialize("2025-06-18", json!({})).await.unwrap();
    let [newer, older, ended] = [newer, older, ended].map(|client| (client.session_id().unwrap().to_owned(), client));
    assert_eq!(ended.1.send(Method::DELETE, "/mcp", Bytes::new()).await.unwrap().status, 200);
    stored(&gateway, 2).await;
    assert!(files_holding(&gateway.data_dir().join("sessions"), &newer.0).unwrap().is_empty(), "no id in clear");
    for kill in [false, true] {
        let folder = if kill { gateway.stop().await } else { gateway.terminate().await }.unwrap();
        gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
        for (session, version) in [(&newer.0, "2025-11-25"), (&older.0, "2025-06-18")] {
            let stolen = go_on(&gateway, &eve, session, version).post(LIST).await.unwrap();
            let unknown = go_on(&gateway, &eve, "no-such-session", version).post(LIST).await.unwrap();
            assert_eq!((stolen.status, &stolen.body), (404, &unknown.body), "another's session does not exist");
            let client = go_on(&gateway, &ada, session, version);
            assert!(tool_names(&client).await.unwrap().contains(&"greet".to_owned()));
            assert!(ask(&client, "greet", json!({"name": "again"})).await.unwrap().contains("again"));
        }
        // What the client declared is known: the backend may ask it in the middle of a call.
        let client = go_on(&gateway, &ada, &newer.0, "2025-11-25");
        let mut stream = EventStream::post(&client, &call(1, "ask_name", &json!({}))).await.unwrap();
        let id = question(&mut stream).await;
        reply(&client, &id, "Ada").await;
        assert_eq!(last(&mut stream).await, "Ada");
        let gone = go_on(&gateway, &ada, &ended.0, "2025-06-18").post(LIST).await.unwrap();
        assert_eq!(gone.status, 404, "a session that its client ended stays ended");
    }
    let client = go_on(&gateway, &ada, &older.0, "2025-06-18");
    assert_eq!(client.send(Method::DELETE, "/mcp", Bytes::new()).await.unwrap().status, 200);
    stored(&gateway, 1).await;
}

/// A call in flight at the crash ends on its resumed stream with an error that says so, and other streams open empty.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_at_a_crash_ends_on_its_resumed_stream() {
    let (gateway, config, [ada, _]) = two_users().await;
    let client = user(&gateway, &ada).initialize("2025-11-25", json!({})).await.unwrap();
    let session = client.session_id().unwrap().to_owned();
    let events = client.clone().with("accept", "text/event-stream");
    let first = async |method: Method, body: Bytes| {
        let mut body = events.open(method, "/mcp", body).await.unwrap().into_body();
        let text = String::from_utf8(body.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap();
        let id =
            text.lines().find_map(|line| line.strip_prefix("id: ").or(line.strip_prefix("id:"))).unwrap().to_owned();
        (body, id)
    };
    let slow = call(7, "slow", &json!({"ms": 600_000})).to_string();
    let (_call, of_call) = first(Method::POST, slow.into()).await;
    let (_general, of_general) = first(Method::GET, Bytes::new()).await;
    stored(&gateway, 1).await;
    let gateway = GatewayProcess::serve_in(gateway.stop().await.unwrap(), &config).await.unwrap();
    let back = go_on(&gateway, &ada, &session, "2025-11-25");
    let mut stream = EventStream::general(&back.clone().with("last-event-id", &of_call)).await.unwrap();
    let error = stream.next().await.unwrap().unwrap();
    assert_eq!(error["id"], 7, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("restarted while this call was in flight"), "{error}");
    assert_eq!(stream.next().await.unwrap(), None, "and that is all");
    let general = back.with("last-event-id", &of_general).open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
    assert_eq!(general.status(), 200);
}

/// The output of `signalbox sessions list --json`.
async fn shown(gateway: &GatewayProcess) -> Vec<Value> {
    let text = signalbox(&gateway.data_dir(), &["sessions", "list", "--json"]).await.unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A session that is idle for `session_timeout` ends, and one that is used goes on.
/// Proves G-34.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_it_was_idle_for_session_timeout() {
    let gateway = GatewayProcess::serve("[mcp.protocol.security]\nsession_timeout = '6s'\n").await.unwrap();
    gateway.ready().await.unwrap();
    let open = async || HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let (idle, used) = (open().await, open().await);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let one_left = async || {
        assert_eq!(used.post(ping).await.unwrap().status, 200, "it is used");
        (shown(&gateway).await.len() == 1).then_some(())
    };
    eventually("the idle session ends", one_left).await.unwrap();
    assert_eq!(idle.post(ping).await.unwrap().status, 404);
    assert_eq!(used.post(ping).await.unwrap().status, 200);
}

/// A session is shown with when it ends, what its caller may use, and what is left of its limits.
/// Proves G-11 and G-12.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_show_expiry_permissions_and_limits() {
    // In nanoseconds, as the times are.
    const SECOND: u64 = 1_000_000_000;
    const LIFETIME: u64 = 600 * SECOND;
    let config = "[mcp.protocol.security]\nrequire_authentication = true\nsession_timeout = '1h'\n[roles.reader]\nallow = ['*']\n\
        [auth.users.\"user:ada\"]\ntrust = 'verified'\n[mcp.protocol.rate_limits]\nuser_requests_per_minute = 50\n";
    let gateway = GatewayProcess::serve(config).await.unwrap();
    gateway.ready().await.unwrap();
    let new =
        ["keys", "new", "ada", "--subject", "user:ada", "--role", "reader", "--scope", "mail", "--expires", "10m"];
    let before = now();
    let key = signalbox(&gateway.data_dir(), &new).await.unwrap().trim().to_owned();
    let made = (before, now());
    let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let begin = async || client.clone().initialize("2025-06-18", json!({})).await.ok();
    let session = eventually("the key is known", begin).await.unwrap();
    session.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await.unwrap();
    let all = shown(&gateway).await;
    let one = &all[0];
    assert_eq!(
        (&one["permissions"]["trust_level"], &one["permissions"]["roles"]),
        (&json!("verified"), &json!(["reader"]))
    );
    assert_eq!(one["permissions"]["scopes"], json!(["mail"]), "{one}");
    let limit = one["rate_limits"].as_array().unwrap().iter().find(|limit| limit["per_seconds"] == 60).unwrap();
    assert_eq!(limit["limit"], 50, "{one}");
    assert!(limit["left"].as_u64().is_some_and(|left| left < 50), "{one}");
    let (created, expires) = (one["created_at"].as_str().unwrap(), one["expires_at"].as_str().unwrap());
    assert!(created < expires, "{one}");
    // The key ends 10 min after it was made, and the session would go on.
    let key_ends = made.0 + (LIFETIME - SECOND)..=made.1 + (LIFETIME + SECOND);
    assert!(key_ends.contains(&parse_rfc3339(expires).unwrap()), "{key_ends:?}: {one}");
    let text = signalbox(&gateway.data_dir(), &["sessions", "show", &one["id"].to_string()]).await.unwrap();
    assert!(text.contains(expires) && text.contains("of 50 in 60 s"), "{text}");
}

/// Idle sessions end, and one with a call in flight goes on, however long ago it was used.
/// Proves SO-1.
#[tokio::test(flavor = "multi_thread")]
async fn cleanup_ends_idle_sessions_and_leaves_busy_ones() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    gateway.ready().await.unwrap();
    let idle = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    let busy = with_elicitation(&gateway).await;
    // The call is in flight until its question is answered.
    let mut stream = EventStream::post(&busy, &call(1, "ask_name", &json!({}))).await.unwrap();
    let asked = question(&mut stream).await;
    let one_idle = async || {
        let all = shown(&gateway).await;
        let idle = |one: &Value| one["in_flight"] == 0 && one["idle_ms"].as_u64().is_some_and(|idle| idle >= 1_000);
        all.iter().any(idle).then_some(all)
    };
    let all = eventually("one was last used a second ago", one_idle).await.unwrap();
    let id = |in_flight: u64| all.iter().find(|one| one["in_flight"] == in_flight).unwrap()["id"].clone();
    let (of_idle, of_busy) = (id(0), id(1));
    let cleanup = async |args: &[&str]| {
        let text = signalbox(&gateway.data_dir(), &[&["sessions", "cleanup"], args].concat()).await.unwrap();
        let left: Vec<Value> = shown(&gateway).await.iter().map(|one| one["id"].clone()).collect();
        (text, left)
    };
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

    let (told, left) = cleanup(&["--idle", "1h"]).await;
    assert!(told.ends_with("0 sessions ended\n") && left.len() == 2, "{told} {left:?}");
    let (told, left) = cleanup(&["--idle", "1s", "--dry-run"]).await;
    assert!(told.starts_with(&of_idle.to_string()) && told.ends_with("1 session would be ended\n"), "{told}");
    assert_eq!(left.len(), 2, "a dry run ends none");
    let (told, left) = cleanup(&["--idle", "1s"]).await;
    assert!(told.starts_with(&of_idle.to_string()) && told.ends_with("1 session ended\n"), "{told}");
    assert_eq!(left, [of_busy]);
    assert_eq!(idle.post(ping).await.unwrap().status, 404);

    reply(&busy, &asked, "Ada").await;
    assert_eq!(last(&mut stream).await, "Ada");
    assert_eq!(busy.post(ping).await.unwrap().status, 200);
}

/// Opens a stream of changes and closes it once it is acknowledged.
async fn listen_and_leave(gateway: &GatewayProcess) {
    let client = HttpClient::new(gateway.address()).with("mcp-protocol-version", "2026-07-28");
    let client = client.with("mcp-method", "subscriptions/listen");
    let own = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": own});
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    let mut stream = EventStream::post(&client, &listen).await.unwrap();
    stream.notification("notifications/subscriptions/acknowledged").await.unwrap();
}

/// A stream of changes that its client closes has not failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_changes_that_its_client_closes_is_no_error() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Both, "").unwrap()).await.unwrap();
    gateway.ready().await.unwrap();
    let mut opened = 3;
    for _ in 0..opened {
        listen_and_leave(&gateway).await;
    }
    let url = gateway.url();
    for client in ["ts-client2", "py-mcp2"] {
        let asked = [client, "--era", "new", "--steps", "listchanged", "--url", &url];
        let Some(said) = clients::run(&asked).await.unwrap() else { continue };
        assert_eq!(said["steps"]["subscribe"]["mode"], "new", "{client}: {said}");
        opened += 1;
    }
    let ended = async || {
        let traffic = status(&gateway.data_dir()).await.ok()?["traffic"].clone();
        (traffic["methods"]["subscriptions/listen"]["calls"] == opened).then_some(traffic)
    };
    let traffic = eventually("all streams have ended", ended).await.unwrap();
    assert_eq!(traffic["methods"]["subscriptions/listen"]["errors"], 0, "{traffic}");
    assert_eq!(
        (&traffic["total"]["errors"], &traffic["total"]["recent"]["errors"]),
        (&json!(0), &json!(0)),
        "{traffic}"
    );
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let counted: Vec<&str> = page.lines().filter(|line| line.starts_with("signalbox_requests_total{")).collect();
    let ended = "signalbox_requests_total{method=\"subscriptions/listen\",backend=\"\",outcome=\"success\"}";
    assert!(counted.contains(&&*format!("{ended} {opened}")), "{counted:#?}");
    assert!(counted.iter().all(|line| line.contains("outcome=\"success\"")), "{counted:#?}");
}

/// A token proves the client of a pipe, read once; one that is not valid is answered with -32001.
/// Proves NO-1.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_proves_the_client_of_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("signalbox.toml");
    std::fs::write(&config, "").unwrap();
    let key = signalbox(folder.path(), &["keys", "new", "ada", "--subject", "user:ada"]).await.unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    for (token, good) in [(key.trim(), true), ("no-such-credential", false)] {
        let mut command = Command::new(built("signalbox").unwrap());
        command.args(["stdio", "-c"]).arg(&config).arg("--data-dir").arg(folder.path());
        command.env("SIGNALBOX_STDIO_TOKEN", token).current_dir(folder.path()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        input.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let answer: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        if good {
            assert!(answer["result"].is_object(), "{answer}");
            let text = signalbox(folder.path(), &["sessions", "list", "--json"]).await.unwrap();
            let all: Vec<Value> = serde_json::from_str(&text).unwrap();
            assert_eq!(all[0]["principal"], "user:ada", "{text}");
        } else {
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32001)), "{answer}");
        }
        drop(input);
        process.wait().await.unwrap();
    }
}
