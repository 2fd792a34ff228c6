//! Two gateways that keep the relay's sessions in one Redis: a client of one reaches pages at the other, and a restart
//! of a gateway or of Redis has a defined outcome.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

#[allow(dead_code, reason = "a part of it is used here")]
#[path = "../../../relay/src/store/redis/tests/redis_server.rs"]
mod redis_server;

use crate::pages::page::{Events, Page, send};
use http::Method;
use redis_server::RedisServer;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::scene::{eventually, files_holding};
use std::net::SocketAddr;

fn config(server: &RedisServer) -> String {
    format!(
        "[relay]\nenabled = true\nstore = '{}'\n[relay.limits]\nsessions_per_minute = 0\nrequests_per_minute = 0\n\
         mcp_requests_per_minute = 0\nrequest_timeout = '60s'\n",
        server.url()
    )
}

async fn gateway(server: &RedisServer) -> GatewayProcess {
    let gateway = GatewayProcess::serve(&config(server)).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// A call of the new revision, which names the page.
async fn call(at: SocketAddr, code: &str, tool: &str, mut arguments: Value) -> Value {
    arguments["sessionCode"] = code.into();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let client = HttpClient::new(at).with("mcp-protocol-version", "2026-07-28");
    let client = client.with("mcp-method", "tools/call").with("mcp-name", tool);
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    send(&client, Method::POST, "/api/mcp", &message.to_string()).await.unwrap().message().unwrap()
}

/// A call that waits for its page.
fn calling(at: SocketAddr, page: &Page, tool: &'static str, n: u64) -> tokio::task::JoinHandle<Value> {
    let code = page.code.clone();
    tokio::spawn(async move { call(at, &code, tool, json!({"n": n})).await })
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The same page where its requests come to another gateway.
fn moved(page: &Page, to: &GatewayProcess) -> Page {
    Page { client: HttpClient::new(to.address()).with("user-agent", "Mozilla/5.0 page"), ..page.clone() }
}

async fn metadata(at: SocketAddr, page: &Page) -> HttpAnswer {
    HttpClient::new(at).get(&format!("/api/metadata?code={}", page.code)).await.unwrap()
}

/// A page at one gateway serves legacy clients and MCP clients that come to another.
/// Proves C-11 and C-12.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_at_one_gateway_serves_calls_that_come_to_another() {
    let Some(server) = RedisServer::start() else { return };
    let (here, there) = (gateway(&server).await, gateway(&server).await);
    let page = Page::open(here.address()).await.unwrap();
    let mut stream = page.stream("w1", "j1").await.unwrap();
    stream.until("connected").await.unwrap();
    page.echo(stream);

    let answer = call(there.address(), &page.code, "get_items", json!({"n": 1})).await;
    assert_eq!(text(&answer), r#"{"echo":{"n":1},"tool":"get_items"}"#);

    let client = HttpClient::new(there.address()).with("user-agent", "curl/8");
    assert_eq!(metadata(there.address(), &page).await.status, 200);
    let mut results = Events::open(&client, &format!("/api/stream?code={}&role=client", page.code)).await.unwrap();
    let request = json!({"code": page.code, "id": "r-1", "tool": "get_items", "args": {"n": 2}});
    assert_eq!(send(&client, Method::POST, "/api/request", &request.to_string()).await.unwrap().status, 202);
    let result: Value = serde_json::from_str(&results.result().await.unwrap()).unwrap();
    assert_eq!((&result["requestId"], &result["result"]["echo"]), (&json!("r-1"), &json!({"n": 2})), "{result}");

    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    let opened = send(&HttpClient::new(there.address()), Method::POST, "/api/mcp", &initialize).await.unwrap();
    let id = opened.headers["mcp-session-id"].to_str().unwrap();
    let agent = HttpClient::new(there.address()).with("mcp-session-id", id).with("mcp-protocol-version", "2025-06-18");
    let ask = async |method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        send(&agent, Method::POST, "/api/mcp", &message.to_string()).await.unwrap().message().unwrap()
    };
    let bound = ask("tools/call", json!({"name": "connect_to_session", "arguments": {"sessionId": page.code}})).await;
    assert_eq!(bound["result"]["isError"], Value::Null, "{bound}");
    let answer = ask("tools/call", json!({"name": "get_items", "arguments": {"n": 3}})).await;
    assert_eq!(text(&answer), r#"{"echo":{"n":3},"tool":"get_items"}"#);

    // The page's own tools, told to the one gateway, are listed at the other.
    let tools = json!({"tools": [{"name": "roll", "description": "Rolls dice", "inputSchema": {"type": "object"}}]});
    let put = send(&page.library("w1", "j1"), Method::PUT, "/api/tools", &tools.to_string()).await.unwrap();
    assert_eq!(put.status, 200);
    let look = async || ask("tools/list", json!({})).await.to_string().contains(r#""name":"roll""#).then_some(());
    eventually("the list has the page's tool", look).await.unwrap();

    // Neither keeps the code or the token in a file.
    let (code, token) = (page.code.clone(), page.token.clone());
    for gateway in [here, there] {
        let folder = gateway.stop().await.unwrap();
        for secret in [&code, &token] {
            let found = files_holding(folder.path(), secret).unwrap();
            assert!(found.is_empty(), "{found:?}");
        }
    }
}

/// Behind a balancer nothing sticks: the stream is at one gateway, answers go to the other, and a page that stands by
/// takes over.
#[tokio::test(flavor = "multi_thread")]
async fn answers_may_come_to_any_gateway_and_a_page_at_another_takes_over() {
    let Some(server) = RedisServer::start() else { return };
    let (here, there) = (gateway(&server).await, gateway(&server).await);
    let page = Page::open(here.address()).await.unwrap();
    let mut active = page.stream("w1", "j1").await.unwrap();
    assert_eq!(active.until("connected").await.unwrap()["standby"], false);
    let elsewhere = moved(&page, &there);
    let mut standby = elsewhere.stream("w2", "j2").await.unwrap();
    assert_eq!(
        standby.until("connected").await.unwrap()["standby"],
        true,
        "one page is asked, whichever gateway it is at"
    );
    let waiting = calling(here.address(), &page, "get_items", 1);
    let asked = active.until("tool-request").await.unwrap();
    let id = asked["id"].as_str().unwrap();
    let large = "x".repeat(5_000_000);
    assert_eq!(elsewhere.answer(id, json!({"result": large})).await.unwrap().status, 200);
    assert_eq!(page.answer(id, json!({"result": 2})).await.unwrap().status, 409, "once, whichever gateway it comes to");
    assert_eq!(text(&waiting.await.unwrap()).len(), large.len());
    drop(active);
    standby.until("promoted").await.unwrap();
    let waiting = calling(here.address(), &page, "get_items", 2);
    let asked = standby.until("tool-request").await.unwrap();
    assert_eq!(asked["arguments"], json!({"n": 2}));
    elsewhere.answer(asked["id"].as_str().unwrap(), json!({"result": 2})).await.unwrap();
    assert_eq!(text(&waiting.await.unwrap()), "2");
}

/// A gateway that is killed in mid-call and started again knows its sessions; the page comes back and the call is
/// answered, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_restarted_keeps_its_sessions() {
    let Some(server) = RedisServer::start() else { return };
    let (here, there) = (gateway(&server).await, gateway(&server).await);
    let page = Page::open(here.address()).await.unwrap();
    let mut stream = page.stream("w1", "journal").await.unwrap();
    let waiting = calling(there.address(), &page, "create_items", 1);
    let asked = stream.until("tool-request").await.unwrap();
    assert_eq!(asked["redelivered"], false);
    let address = here.address();
    let folder = here.stop().await.unwrap();
    drop(stream);
    let here = GatewayProcess::serve_at(address, folder, &config(&server)).await.unwrap();
    here.ready().await.unwrap();
    assert_eq!(metadata(address, &page).await.status, 200, "the session is there");
    let mut stream = page.stream("w1", "journal").await.unwrap();
    let again = stream.until("tool-request").await.unwrap();
    assert_eq!((&again["id"], &again["redelivered"]), (&asked["id"], &json!(true)), "{again}");
    let id = again["id"].as_str().unwrap();
    assert_eq!(page.answer(id, json!({"result": "done"})).await.unwrap().status, 200);
    assert_eq!(page.answer(id, json!({"result": "twice"})).await.unwrap().status, 409);
    assert_eq!(text(&waiting.await.unwrap()), "done");
}

/// A Redis that is restarted empty ends its sessions, which is said to everybody, and gateways go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_restarted_ends_sessions_and_gateways_go_on() {
    let Some(mut server) = RedisServer::start() else { return };
    let (here, there) = (gateway(&server).await, gateway(&server).await);
    let page = Page::open(here.address()).await.unwrap();
    let mut stream = page.stream("w1", "j1").await.unwrap();
    let waiting = calling(there.address(), &page, "create_items", 1);
    let asked = stream.until("tool-request").await.unwrap();
    server.stop();
    // Without Redis there is an answer, and not a late one.
    let refused = send(&HttpClient::new(there.address()), Method::POST, "/api/sessions", "{}").await.unwrap();
    assert_eq!((refused.status, &refused.message().unwrap()["error"]), (500, &json!("internal_server_error")));
    assert_eq!(HttpClient::new(there.address()).get("/healthz").await.unwrap().status, 200);
    server.start_again();
    assert_eq!(stream.until("error").await.unwrap()["error"], "session_expired");
    let ended = waiting.await.unwrap();
    // 2026-07-28 has no -32002 any more.
    let error = &ended["error"];
    assert_eq!((&error["code"], &error["data"]["legacyCode"]), (&json!(-32602), &json!(-32002)), "{ended}");
    let look = async || Some(metadata(here.address(), &page).await.status).filter(|status| *status != 500);
    assert_eq!(eventually("Redis is used again", look).await.unwrap(), 410, "it was here");
    let look = async || Some(metadata(there.address(), &page).await.status).filter(|status| *status != 500);
    assert_eq!(eventually("Redis is used again", look).await.unwrap(), 404, "nobody knows it");
    let late = page.answer(asked["id"].as_str().unwrap(), json!({"result": 1})).await.unwrap();
    assert!(matches!(late.status, 404 | 410), "{late:?}");
    // A new session works as the first did.
    let page = Page::open(here.address()).await.unwrap();
    let stream = page.stream("w1", "j1").await.unwrap();
    page.echo(stream);
    let answer = call(there.address(), &page.code, "get_items", json!({"n": 2})).await;
    assert_eq!(text(&answer), r#"{"echo":{"n":2},"tool":"get_items"}"#);
    let metrics = HttpClient::new(there.address()).get("/metrics").await.unwrap();
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(metrics.contains("signalbox_relay_redis_connections_total "), "{metrics}");
}
