//! What is refused: guessed codes, foreign origins, bodies that are none, too much of anything, and the past.

use super::page::{Page, send};
use super::{Agent, OPEN, gateway, initialize, modern};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::scene::{eventually, signalbox};

fn name(answer: &HttpAnswer) -> (u16, String) {
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    (answer.status, told["error"].as_str().unwrap_or_default().to_owned())
}

fn refused(status: u16, name: &str) -> (u16, String) {
    (status, name.to_owned())
}

/// Every legacy route refuses what it must by the name that clients know.
/// Proves C-17, C-34, CO-3, CO-4 and CO-11.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_refused_by_the_names_that_clients_know() {
    let gateway = gateway(&format!("{OPEN}wrong_codes_per_minute = 0\nbody = 2048\n")).await;
    let page = Page::open(gateway.address()).await.unwrap();
    let client = HttpClient::new(gateway.address());
    let post = async |path: &str, body: &str| name(&send(&client, Method::POST, path, body).await.unwrap());
    let get = async |path: &str| name(&client.get(path).await.unwrap());
    assert_eq!(post("/api/sessions", r#"{"ttl":1}"#).await, refused(400, "invalid_request"));
    assert_eq!(post("/api/sessions", "{").await, refused(400, "invalid_json"));
    assert_eq!(get("/api/sessions").await, refused(405, "method_not_allowed"));
    assert_eq!(get("/api/metadata").await, refused(400, "missing_session_code"));
    assert_eq!(get("/api/metadata?code=abc").await, refused(400, "invalid_session_code"));
    assert_eq!(get("/api/metadata?code=AAAAAAAA").await, refused(404, "session_not_found"));
    assert_eq!(get("/api/stream?code=AAAAAAAA").await, refused(404, "session_not_found"));
    assert_eq!(get("/api/request/AAAAAAAA").await, refused(404, "session_not_found"));
    let old = client.clone().with("accept-version", "2.0.0");
    let answer = old.get(&format!("/api/metadata?code={}", page.code)).await.unwrap();
    assert_eq!(name(&answer), refused(406, "version_not_acceptable"));
    for header in ["api-version", "tool-manifest-version", "supported-versions"] {
        assert_eq!(answer.headers[header], "1.0.0", "CO-4");
    }
    let with = |more: Value| {
        let mut body = json!({"sessionCode": page.code});
        more.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        body.to_string()
    };
    assert_eq!(post("/api/request", &with(json!({}))).await, refused(400, "validation_error"));
    assert_eq!(
        post("/api/request", &with(json!({"tool": "t", "arguments": []}))).await,
        refused(400, "validation_error")
    );
    assert_eq!(post("/api/request", "[]").await, refused(400, "validation_error"));
    assert_eq!(post("/api/request", "nothing").await, refused(400, "invalid_json"));
    assert_eq!(post("/api/response", &with(json!({"result": 1}))).await, refused(400, "missing_request_id"));
    assert_eq!(post("/api/response", &with(json!({"requestId": "1"}))).await, refused(400, "missing_result_or_error"));
    assert_eq!(
        post("/api/response", &with(json!({"requestId": "1", "result": 1}))).await,
        refused(404, "request_not_found")
    );
    let large = with(json!({"tool": "t", "arguments": {"x": "x".repeat(5_000)}}));
    assert_eq!(send(&client, Method::POST, "/api/request", &large).await.unwrap().status, 413);
    // MCP.
    let empty = Agent::open(&gateway, "2025-03-26").await.post(&json!([])).await;
    assert_eq!((empty.status, &empty.message().unwrap()["error"]["code"]), (400, &json!(-32600)), "CO-11");
    let plain = client.clone().with("content-type", "text/plain");
    let none = send(&plain, Method::POST, "/api/mcp", "{}").await.unwrap();
    assert_eq!((none.status, &none.body[..]), (404, &b"Not Found"[..]), "C-17");
    let unknown = client.clone().with("mcp-session-id", "5f0c1a5e-0000-4000-8000-000000000000");
    let answer =
        send(&unknown, Method::POST, "/api/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await.unwrap();
    assert_eq!((answer.status, &answer.message().unwrap()["error"]["code"]), (404, &json!(-32002)));
    let notification = Agent::open(&gateway, "2024-11-05").await;
    let told = notification.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    assert_eq!(told.status, 202);
    let health = client.clone().with("accept", "application/json").get("/api/mcp").await.unwrap();
    assert_eq!((health.status, &health.message().unwrap()["status"]), (200, &json!("healthy")));
    let bad =
        modern(&gateway, "tools/call", json!({"name": "get_items", "arguments": {"sessionCode": "AAAAAAAA"}})).await;
    let told = bad.message().unwrap();
    let expected = json!({"originalCode": "SESSION_NOT_FOUND", "legacyCode": -32002});
    assert_eq!((bad.status, &told["error"]["code"], &told["error"]["data"]), (404, &json!(-32602), &expected), "C-34");
    let leaving = unknown.with("mcp-protocol-version", "2026-07-28");
    let answer = send(&leaving, Method::DELETE, "/api/mcp", "").await.unwrap();
    assert_eq!((answer.status, answer.message().unwrap()["error"]["code"] == -32002), (405, false), "C-34");
}

/// Ids of sessions are minted here alone. A client's own id is neither taken over nor given a code, and a code that is
/// unknown gets no MCP session.
/// Proves C-11 and C-12.
#[tokio::test(flavor = "multi_thread")]
async fn only_ids_that_were_minted_here_name_a_session() {
    let gateway = gateway(&format!("{OPEN}wrong_codes_per_minute = 0\n")).await;
    let chosen = "5f0c1a5e-0000-4000-8000-00000000c0de";
    let client = HttpClient::new(gateway.address()).with("mcp-session-id", chosen);
    let minted = initialize(&client, "2025-06-18").await;
    assert_ne!(minted.headers["mcp-session-id"], chosen, "no fixation");
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(send(&client, Method::POST, "/api/mcp", list).await.unwrap().status, 404);
    let unknown = HttpClient::new(gateway.address()).get("/api/metadata?code=AAAAAAAA").await.unwrap();
    assert_eq!(name(&unknown), refused(404, "session_not_found"));
    let metrics = HttpClient::new(gateway.address()).get("/api/mcp/metrics").await.unwrap();
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(metrics.contains("signalbox_relay_sessions 1\n"), "that of `initialize` alone: {metrics}");
}

/// A client that guesses codes has to wait, by any way and with the right code too; one that asks too often is told
/// when to come back.
/// Proves CO-2, CO-5 and CO-11.
#[tokio::test(flavor = "multi_thread")]
async fn guesses_and_floods_are_slowed_down() {
    let limits = "[relay]\nenabled = true\n[relay.limits]\nwrong_codes_per_minute = 3\nsessions_per_minute = 5\nrequests_per_minute = 2\n[record]\nenabled = true\n";
    let gateway = gateway(limits).await;
    let client = HttpClient::new(gateway.address());
    let (page, other) = (Page::open(gateway.address()).await.unwrap(), Page::open(gateway.address()).await.unwrap());
    for expected in [202, 202, 429] {
        let ask = json!({"sessionCode": page.code, "tool": "get_items"});
        let answer = send(&client, Method::POST, "/api/request", &ask.to_string()).await.unwrap();
        assert_eq!(answer.status, expected, "CO-5");
    }
    for (guess, expected) in [("AAAAAAAA", 404), ("BBBBBBBB", 404), ("CCCCCCCC", 404), ("DDDDDDDD", 429)] {
        assert_eq!(client.get(&format!("/api/metadata?code={guess}")).await.unwrap().status, expected);
    }
    let right = client.get(&format!("/api/metadata?code={}", other.code)).await.unwrap();
    assert_eq!((right.status, right.headers.contains_key("retry-after")), (429, true));
    let mcp =
        modern(&gateway, "tools/call", json!({"name": "get_items", "arguments": {"sessionCode": other.code}})).await;
    assert_eq!((mcp.status, &mcp.message().unwrap()["error"]["code"]), (429, &json!(-32429)));
    assert!(mcp.headers.contains_key("retry-after") && mcp.message().unwrap()["id"] == 7, "CO-11: {mcp:?}");
    let mut last = 201;
    for _ in 0..6 {
        last = send(&client, Method::POST, "/api/sessions", "").await.unwrap().status;
    }
    assert_eq!(last, 429);
    let limited = initialize(&client, "2025-06-18").await;
    assert_eq!((limited.status, &limited.message().unwrap()["id"]), (429, &json!(1)), "they share a limit");
    let data = gateway.data_dir();
    let tape = async || {
        let text = signalbox(&data, &["tape", "show", "last"]).await.ok()?;
        (text.contains("session_not_found") && text.contains("rate_limit_exceeded")).then_some(text)
    };
    let tape = eventually("refusals are on the tape", tape).await.unwrap();
    assert!(!tape.contains(&other.code) && !tape.contains("DDDDDDDD"), "{tape}");
}

/// Ways to guess a code.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Guess {
    Rest,
    Stateless,
    /// `connect_to_session`, each time in an MCP session of its own.
    Connect,
    /// The same, with texts that no code can be.
    Malformed,
}

impl Guess {
    const ALL: [Self; 4] = [Self::Rest, Self::Stateless, Self::Connect, Self::Malformed];

    /// Gives this code, and returns `true` if it was refused for too many wrong ones.
    async fn is_limited(self, gateway: &GatewayProcess, code: &str) -> bool {
        match self {
            Self::Rest => {
                let answer =
                    HttpClient::new(gateway.address()).get(&format!("/api/metadata?code={code}")).await.unwrap();
                answer.status == 429
            }
            Self::Stateless => {
                let call = json!({"name": "get_items", "arguments": {"sessionCode": code}});
                modern(gateway, "tools/call", call).await.status == 429
            }
            Self::Connect | Self::Malformed => {
                let agent = Agent::open(gateway, "2025-06-18").await;
                let answer = agent.call("connect_to_session", json!({"sessionId": code})).await;
                super::text(&answer).contains("too many requests")
            }
        }
    }
}

/// Wrong codes of an address are counted together, by whatever way it gives them: a new MCP session brings no new
/// guesses.
/// Proves CO-12.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_count_per_address_by_every_way() {
    for way in Guess::ALL {
        let gateway = gateway(&format!("{OPEN}wrong_codes_per_minute = 3\n")).await;
        let page = Page::open(gateway.address()).await.unwrap();
        for guess in ["AAAAAAAA", "BBBBBBBB", "CCCCCCCC"] {
            let guess = if way == Guess::Malformed { &guess[..5] } else { guess };
            assert!(!way.is_limited(&gateway, guess).await, "{way:?}");
        }
        for other in [Guess::Rest, Guess::Stateless, Guess::Connect] {
            assert!(other.is_limited(&gateway, &page.code).await, "{way:?}, then {other:?}");
        }
    }
}

/// Messages to the MCP endpoint.
/// Proves CO-11.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_mcp_messages_are_refused_with_a_code_of_their_own() {
    let gateway = gateway("[relay]\nenabled = true\n[relay.limits]\nmcp_requests_per_minute = 3\n").await;
    let agent = Agent::open(&gateway, "2025-06-18").await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(agent.post(&ping).await.status, 200);
    assert_eq!(agent.post(&ping).await.status, 200);
    let answer = agent.post(&ping).await;
    assert_eq!((answer.status, &answer.message().unwrap()["error"]["code"]), (429, &json!(-32429)));
    assert_eq!(answer.message().unwrap()["id"], 1, "the request that is refused");
    let wait = answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

/// What every answer of the MCP endpoint says in its head, the relay's metrics, and how long a browser remembers that
/// it may ask.
/// Proves CO-11.
#[tokio::test(flavor = "multi_thread")]
async fn answers_tell_their_time_and_there_are_metrics() {
    let config = "[relay]\nenabled = true\norigins = ['https://codap.concord.org']\n[relay.limits]\nmcp_requests_per_minute = 4\n";
    let gateway = gateway(config).await;
    let client = HttpClient::new(gateway.address()).with("accept", "application/json");
    let marked = |answer: &HttpAnswer| {
        let took = answer.headers["x-processing-time-ms"].to_str().unwrap().parse::<u64>();
        assert!(took.is_ok() && answer.headers["x-server-version"] == "1.0.0", "{:?}", answer.headers);
    };
    let health = client.get("/api/mcp").await.unwrap();
    assert_eq!(health.status, 200);
    marked(&health);
    let agent = Agent::open(&gateway, "2025-06-18").await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for expected in [200, 200, 200, 429] {
        let answer = agent.post(&ping).await;
        assert_eq!(answer.status, expected);
        marked(&answer);
    }
    let metrics = client.get("/api/mcp/metrics").await.unwrap();
    let page = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(metrics.status == 200 && metrics.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    assert!(
        page.contains("signalbox_relay_rate_limited_total 1\n") && page.contains("signalbox_relay_sessions 1\n"),
        "{page}"
    );
    assert!(!page.contains("signalbox_requests_total"), "nothing but the relay: {page}");
    let friend =
        client.clone().with("origin", "https://codap.concord.org").with("access-control-request-method", "POST");
    for path in ["/api/mcp", "/api/stream"] {
        let preflight = friend.send(Method::OPTIONS, path, bytes::Bytes::new()).await.unwrap();
        assert_eq!((preflight.status, &preflight.headers["access-control-max-age"]), (204, &"86400".parse().unwrap()));
    }
    let exposed = health_from(&friend).await;
    assert!(exposed.contains("X-Processing-Time-Ms"), "{exposed}");
}

/// Which headers a page may read.
async fn health_from(page: &HttpClient) -> String {
    let answer = page.get("/api/mcp").await.unwrap();
    answer.headers["access-control-expose-headers"].to_str().unwrap().to_owned()
}

/// Pages of configured origins may use the relay and nothing else; others may use nothing.
#[tokio::test(flavor = "multi_thread")]
async fn only_configured_origins_may_use_the_relay() {
    let config = "[relay]\nenabled = true\norigins = ['https://codap.concord.org']\n";
    let gateway = gateway(config).await;
    let from = |origin: &str| HttpClient::new(gateway.address()).with("origin", origin);
    let (friend, foe) = (from("https://codap.concord.org"), from("https://evil.example"));
    let answer = send(&friend, Method::POST, "/api/sessions", "{}").await.unwrap();
    assert_eq!(
        (answer.status, &answer.headers["access-control-allow-origin"]),
        (201, &"https://codap.concord.org".parse().unwrap())
    );
    let exposed = answer.headers["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("Mcp-Session-Id"), "{exposed}");
    let ask = friend
        .clone()
        .with("access-control-request-method", "PUT")
        .with("access-control-request-headers", "x-worker-token,x-session-code,x-evil");
    let preflight = ask.send(Method::OPTIONS, "/api/tools", bytes::Bytes::new()).await.unwrap();
    assert_eq!(
        (preflight.status, &preflight.headers["access-control-allow-headers"]),
        (204, &"x-worker-token, x-session-code".parse().unwrap())
    );
    assert!(preflight.headers["access-control-allow-methods"].to_str().unwrap().contains("PUT"));
    for path in ["/api/sessions", "/api/mcp", "/api/response"] {
        assert_eq!(send(&foe, Method::POST, path, "{}").await.unwrap().status, 403, "{path}");
    }
    assert_eq!(initialize(&friend, "2025-06-18").await.status, 200);
    assert_eq!(send(&friend, Method::POST, "/mcp", "{}").await.unwrap().status, 403, "nothing but the relay");
    assert_eq!(friend.get("/metrics").await.unwrap().status, 403);
    let guide = HttpClient::new(gateway.address()).get("/relay/migrate/").await.unwrap();
    assert_eq!((guide.status, &guide.headers["referrer-policy"]), (200, &"no-referrer".parse().unwrap()));
    let moved = HttpClient::new(gateway.address()).get("/relay/migrate").await.unwrap();
    assert_eq!((moved.status, &moved.headers["location"]), (308, &"/relay/migrate/".parse().unwrap()));
}

/// With authentication on, a code alone is not enough for an agent, unless that is configured; pages need no key.
#[tokio::test(flavor = "multi_thread")]
async fn with_authentication_a_code_alone_opens_the_agents_side_only_if_configured() {
    for (anonymous, expected) in [(false, 401), (true, 200)] {
        let config = format!(
            "[mcp.protocol.security]\nrequire_authentication = true\n[relay]\nenabled = true\nanonymous = {anonymous}\n"
        );
        let gateway = gateway(&config).await;
        let page = Page::open(gateway.address()).await.unwrap();
        let stream = page.stream("w1", "j1").await.unwrap();
        page.echo(stream);
        let client = HttpClient::new(gateway.address());
        let metadata = client.get(&format!("/api/metadata?code={}", page.code)).await.unwrap();
        assert_eq!(metadata.status, expected, "anonymous = {anonymous}");
        let call = json!({"name": "get_items", "arguments": {"sessionCode": page.code}});
        let answer = modern(&gateway, "tools/call", call).await;
        assert_eq!(answer.status, expected, "anonymous = {anonymous}: {answer:?}");
        assert_eq!(initialize(&client, "2025-06-18").await.status, expected);
        assert_eq!(client.post("{}").await.unwrap().status, 401, "the usual endpoint is as it was");
    }
}

/// The phases.
/// Proves C-18, C-19, C-20, C-24 and CO-14.
#[tokio::test(flavor = "multi_thread")]
async fn the_legacy_routes_are_announced_to_end_and_end() {
    let config =
        "[relay]\nenabled = true\nphase = 'deprecated'\nsunset = '2027-06-30'\npublic_url = 'https://box.example'\n";
    let deprecated = gateway(config).await;
    let page = Page::open(deprecated.address()).await.unwrap();
    let client = HttpClient::new(deprecated.address()).with("user-agent", "python-requests/2");
    let answer = client.get(&format!("/api/metadata?code={}", page.code)).await.unwrap();
    assert_eq!(answer.status, 200, "C-24: existing clients keep working");
    assert_eq!(answer.headers["sunset"], "Wed, 30 Jun 2027 00:00:00 GMT");
    assert!(answer.headers["deprecation"].to_str().unwrap().starts_with('@'));
    assert!(
        answer.headers["link"].to_str().unwrap().contains("<https://box.example/relay/migrate>; rel=\"deprecation\"")
    );
    let metrics = String::from_utf8(client.get("/metrics").await.unwrap().body.to_vec()).unwrap();
    let line = r#"signalbox_relay_legacy_requests_total{client="python",phase="deprecated",route="metadata"} 1"#;
    assert!(metrics.lines().any(|one| one == line), "{metrics}");
    let described = client.get("/.well-known/codap-mcp.json").await.unwrap().message().unwrap();
    assert_eq!(
        (&described["protocolVersion"], &described["features"][0]),
        (&json!("2024-11-05"), &json!("deprecation-warnings"))
    );

    let over = gateway("[relay]\nenabled = true\nphase = 'mcp-only'\n").await;
    let page = Page::open(over.address()).await.unwrap();
    let stream = page.stream("w1", "j1").await.unwrap();
    page.echo(stream);
    let client = HttpClient::new(over.address());
    let gone = client.get(&format!("/api/metadata?code={}", page.code)).await.unwrap();
    assert_eq!((gone.status, gone.headers.contains_key("link")), (410, true));
    assert!(gone.message().unwrap()["message"].as_str().unwrap().contains("/relay/migrate"));
    let agent = Agent::open(&over, "2025-06-18").await;
    agent.connect(&page).await;
    assert!(super::text(&agent.call("get_items", json!({})).await).contains("echo"), "pages keep their side");
    // `performance-optimized`: what a page is sent holds the arguments once.
    let page = Page::open(over.address()).await.unwrap();
    let mut stream = page.stream("w2", "j2").await.unwrap();
    let agent = Agent::open(&over, "2025-06-18").await;
    agent.connect(&page).await;
    let asked = tokio::spawn(async move { agent.call("get_items", json!({"dataContextName": "once"})).await });
    let told = loop {
        let (_, told) = stream.raw().await.unwrap().unwrap();
        if told.contains("get_items") {
            break told;
        }
    };
    assert_eq!(told.matches("once").count(), 1, "C-20: {told}");
    asked.abort();
}
