//! What one client of the relay can do to another: nothing, or as little as the legacy protocol allows.

use super::page::{Events, Page, send};
use super::{Agent, OPEN, gateway};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{add_user, eventually, signalbox};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// The bytes of messages that the gateway holds.
async fn message_bytes(gateway: &GatewayProcess) -> usize {
    let body = HttpClient::new(gateway.address()).get("/metrics").await.unwrap().body;
    let metrics = String::from_utf8_lossy(&body);
    let line = metrics.lines().find_map(|line| line.strip_prefix("signalbox_message_bytes "));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
}

/// Calls that wait for a page and answers that wait for a client are charged to `gateway.memory`.
#[tokio::test(flavor = "multi_thread")]
async fn large_calls_without_a_credential_are_charged_and_refused_beyond_the_budget() {
    let config = format!("[gateway]\nmemory = 67108864\n{}request_timeout = '300s'\n", OPEN);
    let gateway = gateway(&config).await;
    let client = HttpClient::new(gateway.address());
    let large = "x".repeat(7 * MIB);
    let (mut taken, mut pages) = (0, Vec::new());
    let refused = loop {
        let page = Page::open(gateway.address()).await.unwrap();
        let ask = json!({"code": page.code, "tool": "get_items", "args": {"x": large}}).to_string();
        let answer = send(&client, Method::POST, "/api/request", &ask).await.unwrap();
        pages.push(page);
        if answer.status != 202 {
            break answer;
        }
        taken += 1;
        assert!(taken * 7 < 64, "{taken} calls of 7 MiB are taken");
    };
    assert_eq!((refused.status, &refused.message().unwrap()["error"]), (503, &json!("overloaded")), "{refused:?}");
    assert!(taken > 0 && message_bytes(&gateway).await >= taken * 7 * MIB);
    // One that is small is taken all the same, and the first page still gets what waits for it.
    let ask = json!({"code": pages[0].code, "tool": "get_items", "id": "small", "args": {}}).to_string();
    assert_eq!(send(&client, Method::POST, "/api/request", &ask).await.unwrap().status, 202);
    let mut requests = pages[0].stream("w", "j").await.unwrap();
    for length in [7 * MIB, 0] {
        let asked = requests.until("tool-request").await.unwrap();
        assert_eq!(asked["arguments"]["x"].as_str().unwrap_or_default().len(), length);
    }
}

/// A class behind one address, whose pages and clients all have the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_not_taken_for_a_client_because_of_another_session() {
    let gateway = gateway(OPEN).await;
    let pupil = HttpClient::new(gateway.address()).with("user-agent", "Mozilla/5.0 (School)");
    let stream = |page: &Page| format!("/api/stream?sessionCode={}", page.code);
    let (first, second) = (Page::open(gateway.address()).await.unwrap(), Page::open(gateway.address()).await.unwrap());
    let ask = |page: &Page| json!({"code": page.code, "tool": "get_items"}).to_string();
    assert_eq!(send(&pupil, Method::POST, "/api/request", &ask(&first)).await.unwrap().status, 202);
    let mut requests = Events::open(&pupil, &stream(&second)).await.unwrap();
    assert_eq!(requests.until("connected").await.unwrap()["standby"], false, "it is the page of its own session");
    let other = HttpClient::new(gateway.address()).with("user-agent", "script");
    assert_eq!(send(&other, Method::POST, "/api/request", &ask(&second)).await.unwrap().status, 202);
    requests.until("tool-request").await.unwrap();
    // In the first session it has only called; a page that shows its id is a page there all the same.
    let mut results = Events::open(&pupil, &stream(&first)).await.unwrap();
    assert!(results.until("connected").await.unwrap().get("standby").is_none(), "a client");
    let page = pupil.clone().with("x-worker-id", "w1");
    let mut requests = Events::open(&page, &stream(&first)).await.unwrap();
    assert_eq!(requests.until("connected").await.unwrap()["standby"], false);
    requests.until("tool-request").await.unwrap();
}

/// An API key of the gateway, once the gateway knows it.
async fn key(gateway: &GatewayProcess, name: &str) -> String {
    key_of(gateway, name, &format!("user:{name}"), &[]).await
}

/// Such a key of this subject.
async fn key_of(gateway: &GatewayProcess, name: &str, subject: &str, more: &[&str]) -> String {
    let new = [&["keys", "new", name, "--subject", subject], more].concat();
    let key = signalbox(&gateway.data_dir(), &new).await.unwrap().trim().to_owned();
    let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let known = async || client.get("/metrics").await.ok().filter(|answer| answer.status == 200);
    eventually("the key is known", known).await.unwrap();
    key
}

/// The stream of a revoked or expired key ends, and gets no results of its principal's other keys.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_key_that_opened_it() {
    let security = "[mcp.protocol.security]\nrequire_authentication = true\n";
    let gateway = gateway(&format!("{security}{OPEN}")).await;
    let page = Page::open(gateway.address()).await.unwrap();
    page.echo(page.stream("w1", "j1").await.unwrap());
    let of = |key: &str| HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let (first, second) =
        (key_of(&gateway, "first", "user:ag", &[]).await, key_of(&gateway, "second", "user:ag", &[]).await);
    let brief = key_of(&gateway, "brief", "user:ag", &["--expires", "4s"]).await;
    let path = format!("/api/stream?code={}&role=client", page.code);
    let mut revoked = Events::open(&of(&first), &path).await.unwrap();
    let mut expired = Events::open(&of(&brief), &path).await.unwrap();
    let mut kept = Events::open(&of(&second), &path).await.unwrap();
    let worker = format!("/api/stream?code={}&role=worker", page.code);
    let proved = page.library("w2", "j2").with("authorization", &format!("Bearer {first}"));
    let mut standby = Events::open(&proved, &worker).await.unwrap();
    signalbox(&gateway.data_dir(), &["keys", "revoke", "first"]).await.unwrap();
    for (name, stream) in [("revoked", &mut revoked), ("expired", &mut expired), ("worker", &mut standby)] {
        let end = stream.until("error").await.unwrap();
        assert_eq!(end["error"], "unauthenticated", "{name}");
        assert_eq!(stream.raw().await.unwrap(), None, "{name}: nothing follows");
    }
    let ask = json!({"code": page.code, "id": "later", "tool": "get_items"}).to_string();
    assert_eq!(send(&of(&second), Method::POST, "/api/request", &ask).await.unwrap().status, 202);
    assert_eq!(call_of(&kept.result().await.unwrap()), "later", "another key's stream goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_shows_the_id_of_a_page_ends_no_stream_of_it() {
    let gateway = gateway(OPEN).await;
    let page = Page::open(gateway.address()).await.unwrap();
    page.echo(page.stream("w1", "j1").await.unwrap());
    let client = HttpClient::new(gateway.address()).with("x-worker-id", "w1");
    let mut stream = Events::open(&client, &format!("/api/stream?code={}&role=client", page.code)).await.unwrap();
    let ask = json!({"code": page.code, "id": "one", "tool": "get_items"}).to_string();
    assert_eq!(send(&client, Method::POST, "/api/request", &ask).await.unwrap().status, 202);
    assert_eq!(call_of(&stream.result().await.unwrap()), "one");
}

/// A call of the older API is kept for its page as long as its key says, and one by MCP is not.
/// Proves CO-5.
#[tokio::test(flavor = "multi_thread")]
async fn a_queued_request_lives_as_long_as_its_key_says() {
    let gateway = gateway(&format!("{OPEN}request_timeout = '1s'\nrequest_ttl = '1m'\n")).await;
    let page = Page::open(gateway.address()).await.unwrap();
    let client = HttpClient::new(gateway.address());
    let ask = json!({"code": page.code, "id": "old", "tool": "get_items"}).to_string();
    assert_eq!(send(&client, Method::POST, "/api/request", &ask).await.unwrap().status, 202);
    let agent = Agent::open(&gateway, "2025-06-18").await;
    agent.connect(&page).await;
    let ended = agent.call("get_items", json!({})).await;
    assert!(super::text(&ended).contains("did not answer within 1 s"), "{ended}");
    // The page comes after the time of the call by MCP, and is given the older one.
    page.echo(page.stream("w1", "j1").await.unwrap());
    let path = format!("/api/stream?code={}&role=client", page.code);
    let told = Events::open(&client, &path).await.unwrap().result().await.unwrap();
    assert!(call_of(&told) == "old" && told.contains("echo"), "{told}");
}

fn call_of(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap();
    result["requestId"].as_str().unwrap_or_default().to_owned()
}

/// Whoever has the code gets the results of its own calls.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_the_results_of_its_own_calls_only() {
    let security = "[mcp.protocol.security]\nrequire_authentication = true\n";
    let relay = OPEN.replace("[relay.limits]", "anonymous = true\nttl = '3s'\n[relay.limits]");
    let gateway = gateway(&format!("{security}{relay}")).await;
    let page = Page::open(gateway.address()).await.unwrap();
    page.echo(page.stream("w1", "j1").await.unwrap());
    let client = |name: &str| HttpClient::new(gateway.address()).with("user-agent", name);
    let (ada, eve) = (key(&gateway, "ada").await, key(&gateway, "eve").await);
    let clients = [
        ("ada", client("ada").with("authorization", &format!("Bearer {ada}"))),
        ("eve", client("eve").with("authorization", &format!("Bearer {eve}"))),
        ("one", client("one").with("x-client-id", "one")),
        ("two", client("two").with("x-client-id", "two")),
        ("old", client("old")),
    ];
    let path = format!("/api/stream?code={}&role=client", page.code);
    let mut streams = Vec::new();
    for (_, client) in &clients {
        streams.push(Events::open(client, &path).await.unwrap());
    }
    for (name, client) in &clients {
        let ask = json!({"code": page.code, "id": name, "tool": "get_items"}).to_string();
        assert_eq!(send(client, Method::POST, "/api/request", &ask).await.unwrap().status, 202);
    }
    for ((name, _), stream) in clients.iter().zip(&mut streams) {
        assert_eq!(call_of(&stream.result().await.unwrap()), *name);
    }
    // All results are there by now: whatever else a stream carries would come before its next heartbeat.
    for ((name, _), stream) in clients.iter().zip(&mut streams) {
        loop {
            match stream.raw().await.unwrap() {
                Some((event, _)) if event == "heartbeat" => break,
                Some((event, data)) => assert!(!event.is_empty(), "{name} gets {data}"),
                None => panic!("the stream of {name} ended"),
            }
        }
    }
    // The same holds for a stream that is opened later.
    let mut later = Events::open(&clients[1].1, &path).await.unwrap();
    let ask = json!({"code": page.code, "id": "again", "tool": "get_items"}).to_string();
    assert_eq!(send(&clients[1].1, Method::POST, "/api/request", &ask).await.unwrap().status, 202);
    assert_eq!(call_of(&later.result().await.unwrap()), "again");
}

/// What waits for a user who is removed is not for the next one of that name.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_user_of_a_name_gets_no_result_of_the_former_one() {
    let security = "[mcp.protocol.security]\nrequire_authentication = true\n[auth.server]\nenabled = true\n";
    let relay = OPEN.replace("[relay.limits]", "anonymous = true\n[relay.limits]");
    let gateway = gateway(&format!("{security}{relay}")).await;
    let page = Page::open(gateway.address()).await.unwrap();
    page.echo(page.stream("w1", "j1").await.unwrap());
    let path = format!("/api/stream?code={}&role=client", page.code);
    let ask = async |client: &HttpClient, id: &str| {
        let ask = json!({"code": page.code, "id": id, "tool": "get_items"}).to_string();
        assert_eq!(send(client, Method::POST, "/api/request", &ask).await.unwrap().status, 202);
    };
    let join = async |name: &str| {
        add_user(&gateway.data_dir(), "ag", "made-up correct horse").await.unwrap();
        let key = key_of(&gateway, name, "user:ag", &[]).await;
        HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"))
    };
    let first = join("first").await;
    ask(&first, "former").await;
    // The page answers in order: once this result is there, the other one waits.
    let other = HttpClient::new(gateway.address()).with("x-client-id", "other");
    let mut stream = Events::open(&other, &path).await.unwrap();
    ask(&other, "other").await;
    assert_eq!(call_of(&stream.result().await.unwrap()), "other");
    signalbox(&gateway.data_dir(), &["users", "remove", "ag"]).await.unwrap();
    let next = join("next").await;
    let mut stream = Events::open(&next, &path).await.unwrap();
    ask(&next, "later").await;
    assert_eq!(call_of(&stream.result().await.unwrap()), "later");
}

/// The call of the next result on a stream, which has to come soon: heartbeats go on without end.
async fn next(stream: &mut Events) -> String {
    let result = tokio::time::timeout(Duration::from_secs(20), stream.result()).await;
    call_of(&result.unwrap().unwrap())
}

/// Attack F3b: the results of a key's calls are for keys with the same rights, on streams that listen and later ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_weaker_key_of_the_same_principal_gets_no_result_of_a_stronger_one() {
    let security = "[mcp.protocol.security]\nrequire_authentication = true\n";
    let gateway = gateway(&format!("{security}{OPEN}")).await;
    let page = Page::open(gateway.address()).await.unwrap();
    page.echo(page.stream("w1", "j1").await.unwrap());
    let path = format!("/api/stream?code={}&role=client", page.code);
    let mut clients = Vec::new();
    for (name, more) in [
        ("strong", &["--role", "root", "--scope", "write"][..]),
        ("second", &["--role", "root", "--scope", "write"]),
        ("role", &["--role", "reader", "--scope", "write"]),
        ("scope", &["--role", "root", "--scope", "read"]),
    ] {
        let key = key_of(&gateway, name, "user:ag", more).await;
        clients.push(HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}")));
    }
    let ask = async |client: &HttpClient, id: &str| {
        let ask = json!({"code": page.code, "id": id, "tool": "get_items"}).to_string();
        assert_eq!(send(client, Method::POST, "/api/request", &ask).await.unwrap().status, 202);
    };
    let [strong, second, weaker @ ..] = &clients[..] else { panic!("four keys") };
    let mut listening =
        [Events::open(&weaker[0], &path).await.unwrap(), Events::open(&weaker[1], &path).await.unwrap()];
    let mut equal = Events::open(second, &path).await.unwrap();
    ask(strong, "secret").await;
    assert_eq!(next(&mut equal).await, "secret", "a key with the same rights");
    ask(strong, "waiting").await;
    assert_eq!(next(&mut equal).await, "waiting");
    drop(equal);
    for (client, stream) in weaker.iter().zip(&mut listening) {
        ask(client, "own").await;
        assert_eq!(next(stream).await, "own", "one that listened");
        ask(client, "later").await;
        assert_eq!(next(stream).await, "later");
    }
    drop(listening);
    for client in weaker {
        let mut later = Events::open(client, &path).await.unwrap();
        ask(client, "again").await;
        assert_eq!(next(&mut later).await, "again", "one that comes later");
    }
}
