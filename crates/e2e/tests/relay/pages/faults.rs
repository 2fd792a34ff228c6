//! Calls whose pages, sessions or answers go wrong: each has a defined outcome, none runs twice, none hangs.

use super::page::{Events, Page, send};
use super::{Agent, OPEN, gateway, text};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use std::sync::Arc;

async fn bound(gateway: &GatewayProcess) -> (Page, Arc<Agent>) {
    let page = Page::open(gateway.address()).await.unwrap();
    let agent = Agent::open(gateway, "2025-06-18").await;
    agent.connect(&page).await;
    (page, Arc::new(agent))
}

fn call(agent: &Arc<Agent>, tool: &'static str, n: u64) -> tokio::task::JoinHandle<Value> {
    let agent = Arc::clone(agent);
    tokio::spawn(async move { agent.call(tool, json!({"n": n})).await })
}

/// The next request that is not the announcement of an agent.
async fn request(events: &mut Events) -> Value {
    loop {
        let request = events.until("tool-request").await.unwrap();
        if request["tool"] != "__claude_connected__" {
            return request;
        }
    }
}

fn id(request: &Value) -> &str {
    request["id"].as_str().unwrap()
}

/// A page is killed or reloaded with a call in its hands: the same journal gets it again, another gets only what does
/// no harm.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_page_that_comes_back_goes_on_and_another_does_not_repeat_what_may_do_harm() {
    let gateway = gateway(OPEN).await;
    let (page, agent) = bound(&gateway).await;
    let mut first = page.stream("w1", "journal").await.unwrap();
    let paying = call(&agent, "create_items", 1);
    let asked = request(&mut first).await;
    assert_eq!(
        (&asked["redelivered"], &asked["idempotent"], &asked["arguments"]),
        (&json!(false), &json!(false), &json!({"n": 1}))
    );
    drop(first);
    // A reload: another page load, the same journal.
    let mut second = page.stream("w2", "journal").await.unwrap();
    let again = request(&mut second).await;
    assert_eq!((&again["id"], &again["redelivered"]), (&asked["id"], &json!(true)));
    assert_eq!(page.answer(id(&again), json!({"result": {"ok": 1}})).await.unwrap().status, 200);
    assert_eq!(text(&paying.await.unwrap()), r#"{"ok":1}"#);
    // Another journal: what may do harm ends, what does not is sent again.
    let (harm, look) = (call(&agent, "create_items", 2), call(&agent, "get_items", 3));
    for _ in 0..2 {
        request(&mut second).await;
    }
    drop(second);
    let mut third = page.stream("w3", "another").await.unwrap();
    let seen = request(&mut third).await;
    assert_eq!((&seen["tool"], &seen["redelivered"]), (&json!("get_items"), &json!(true)));
    let harm = harm.await.unwrap();
    assert!(harm["result"]["isError"] == true && text(&harm).contains("outcome unknown"), "{harm}");
    page.answer(id(&seen), json!({"result": []})).await.unwrap();
    assert_eq!(text(&look.await.unwrap()), "[]");
}

/// Two pages with one code: one is asked, the other stands by and takes over.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_pages_with_one_code_one_is_asked_and_the_other_takes_over() {
    let gateway = gateway(OPEN).await;
    let (page, agent) = bound(&gateway).await;
    let mut active = page.stream("w1", "j1").await.unwrap();
    assert_eq!(active.until("connected").await.unwrap()["standby"], false);
    let mut standby = page.stream("w2", "j2").await.unwrap();
    assert_eq!(standby.until("connected").await.unwrap()["standby"], true);
    let first = call(&agent, "get_items", 1);
    let asked = request(&mut active).await;
    page.answer(id(&asked), json!({"result": 1})).await.unwrap();
    assert_eq!(text(&first.await.unwrap()), "1");
    drop(active);
    standby.until("promoted").await.unwrap();
    let second = call(&agent, "get_items", 2);
    let asked = request(&mut standby).await;
    assert_eq!(asked["arguments"], json!({"n": 2}), "the first came to one page only");
    page.answer(id(&asked), json!({"result": 2})).await.unwrap();
    assert_eq!(text(&second.await.unwrap()), "2");
}

/// A page that is too slow; its answer comes too late, a second one too often, and one of another session not at all.
#[tokio::test(flavor = "multi_thread")]
async fn slow_late_double_and_foreign_answers_are_refused() {
    let gateway = gateway(&format!("{OPEN}request_timeout = '500ms'\n")).await;
    let (page, agent) = bound(&gateway).await;
    let mut events = page.stream("w1", "j1").await.unwrap();
    let slow = call(&agent, "get_items", 1);
    let asked = request(&mut events).await;
    let slow = slow.await.unwrap();
    assert!(slow["result"]["isError"] == true && text(&slow).contains("0.5 s"), "{slow}");
    let cancelled = events.until("cancel").await.unwrap();
    assert_eq!((&cancelled["id"], &cancelled["reason"]), (&asked["id"], &json!("timeout")));
    let late = page.answer(id(&asked), json!({"result": 1})).await.unwrap();
    assert_eq!((late.status, &late.message().unwrap()["error"]), (404, &json!("request_not_found")));
    let quick = call(&agent, "get_items", 2);
    let asked = request(&mut events).await;
    let other = Page::open(gateway.address()).await.unwrap();
    assert_eq!(other.answer(id(&asked), json!({"result": "foreign"})).await.unwrap().status, 404);
    let stolen = Page { token: other.token.clone(), ..page.clone() };
    assert_eq!(stolen.answer(id(&asked), json!({"result": "stolen"})).await.unwrap().status, 403);
    assert_eq!(page.answer(id(&asked), json!({"result": "mine"})).await.unwrap().status, 200);
    let double = page.answer(id(&asked), json!({"result": "twice"})).await.unwrap();
    assert_eq!((double.status, &double.message().unwrap()["error"]), (409, &json!("duplicate_response")));
    assert_eq!(text(&quick.await.unwrap()), "mine");
    let metrics = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    for line in [
        "signalbox_relay_duplicate_answers_total 1",
        "signalbox_relay_unknown_answers_total 2",
        "signalbox_relay_timeouts_total 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
}

/// A large answer, answers out of order, progress, falsy results, and errors.
/// Proves CO-6.
#[tokio::test(flavor = "multi_thread")]
async fn large_and_unordered_answers_progress_and_errors_reach_their_calls() {
    let gateway = gateway(OPEN).await;
    let (page, agent) = bound(&gateway).await;
    let mut events = page.stream("w1", "j1").await.unwrap();
    let calls = [call(&agent, "get_items", 1), call(&agent, "get_items", 2), call(&agent, "get_items", 3)];
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(request(&mut events).await);
    }
    asked.reverse();
    let large = "x".repeat(5_000_000);
    for request in &asked {
        let result = match request["arguments"]["n"].as_u64() {
            Some(1) => json!({"result": large}),
            Some(2) => json!({"result": null}),
            _ => json!({"error": {"type": "codap_error", "message": "no such data set"}}),
        };
        assert_eq!(page.answer(id(request), result).await.unwrap().status, 200);
    }
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    assert_eq!(text(&answers[0]).len(), large.len());
    assert_eq!(text(&answers[1]), "null", "CO-6: falsy results are results");
    assert!(answers[2]["result"]["isError"] == true && text(&answers[2]) == "no such data set", "{}", answers[2]);
    // Progress comes before the answer, on the call's own stream.
    let client = agent.client.clone().with("accept", "text/event-stream");
    let message = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "get_items", "arguments": {}, "_meta": {"progressToken": "p"}}});
    let calling =
        tokio::spawn(async move { send(&client, Method::POST, "/api/mcp", &message.to_string()).await.unwrap() });
    let asked = request(&mut events).await;
    let told = page.answer(id(&asked), json!({"progress": {"progress": 1, "total": 2}})).await.unwrap();
    assert_eq!(told.status, 202);
    page.answer(id(&asked), json!({"result": 1})).await.unwrap();
    let messages = calling.await.unwrap().messages().unwrap();
    assert_eq!(
        (&messages[0]["method"], &messages[0]["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!("p"))
    );
}

/// A session whose time is over, in the middle of a call and before one.
/// Proves C-10 and C-22.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_is_told_in_the_specified_form() {
    let gateway = gateway(&OPEN.replace("[relay.limits]", "ttl = '1s'\n[relay.limits]")).await;
    let (page, agent) = bound(&gateway).await;
    // Nobody is there to answer, and nobody uses the session meanwhile.
    let answer = agent.call("get_items", json!({})).await;
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    let id = agent.client.session_id().unwrap();
    let after = agent.post(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})).await;
    assert_eq!(after.status, 404);
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":3,"error":{{"code":-32002,"message":"Session expired","data":{{"sessionId":"{id}","originalCode":"SESSION_EXPIRED"}}}}}}"#
    );
    assert_eq!(after.body, expected);
    let client = HttpClient::new(gateway.address());
    let legacy = client.get(&format!("/api/metadata?code={}", page.code)).await.unwrap();
    assert_eq!(legacy.status, 410);
    let told = legacy.message().unwrap();
    assert_eq!(
        (&told["message"], &told["code"], &told["sessionCode"]),
        (&json!("Session expired"), &json!("SESSION_EXPIRED"), &json!(page.code))
    );
}

/// An open page keeps its session, and one that ends is told so on its stream.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_keeps_its_session_and_a_listener_does_not() {
    let gateway = gateway(&OPEN.replace("[relay.limits]", "ttl = '1s'\n[relay.limits]")).await;
    let page = Page::open(gateway.address()).await.unwrap();
    let mut events = page.stream("w1", "j1").await.unwrap();
    for _ in 0..6 {
        events.until("heartbeat").await.unwrap();
    }
    let client = HttpClient::new(gateway.address());
    let mut listener = Events::open(&client, &format!("/api/stream?code={}&role=client", page.code)).await.unwrap();
    drop(events);
    let error = listener.until("error").await.unwrap();
    assert_eq!(error["error"], "session_expired");
    assert!(listener.next().await.unwrap().is_none(), "the stream ends");
}

/// Legacy pages and clients that say nothing of themselves, by one address; long polling.
/// Proves CO-7 and CO-9.
#[tokio::test(flavor = "multi_thread")]
async fn legacy_pages_and_clients_share_an_address_and_eat_nothing_of_each_other() {
    let gateway = gateway(OPEN).await;
    let page = Page::open(gateway.address()).await.unwrap();
    let stream = format!("/api/stream?sessionCode={}", page.code);
    let worker = HttpClient::new(gateway.address()).with("user-agent", "page");
    let client = HttpClient::new(gateway.address()).with("user-agent", "script");
    let mut requests = Events::open(&worker, &stream).await.unwrap();
    assert_eq!(requests.until("connected").await.unwrap()["standby"], false);
    let ask = json!({"code": page.code, "id": "r-1", "tool": "get_items", "args": {"n": 1}});
    assert_eq!(send(&client, Method::POST, "/api/request", &ask.to_string()).await.unwrap().status, 202);
    let asked = requests.until("tool-request").await.unwrap();
    assert_eq!((&asked["args"], &asked["sessionCode"]), (&json!({"n": 1}), &json!(page.code)));
    let answer = json!({"code": page.code, "id": asked["id"], "result": {"content": [{"type": "text", "text": "hi"}]}});
    let stored = send(&worker, Method::POST, "/api/response", &answer.to_string()).await.unwrap();
    assert_eq!((stored.status, &stored.message().unwrap()["status"]), (202, &json!("stored")), "the older form");
    // The client listens only now; its result has waited.
    let mut results = Events::open(&client, &stream).await.unwrap();
    let result: Value = serde_json::from_str(&results.result().await.unwrap()).unwrap();
    assert_eq!(
        result,
        json!({"tool": "get_items", "result": {"content": [{"type": "text", "text": "hi"}]}, "requestId": "r-1"})
    );
    drop(requests);
    // Long polling.
    let poll = format!("/api/request/{}?wait=20", page.code);
    let polling = tokio::spawn({
        let worker = worker.clone();
        async move { worker.get(&poll).await.unwrap().message().unwrap() }
    });
    let ask = json!({"code": page.code, "id": "r-2", "tool": "get_items"});
    assert_eq!(send(&client, Method::POST, "/api/request", &ask.to_string()).await.unwrap().status, 202);
    let polled = polling.await.unwrap();
    let given = polled["requests"][0]["id"].as_str().unwrap_or_else(|| panic!("{polled}")).to_owned();
    let empty = worker.get(&format!("/api/request/{}?wait=0", page.code)).await.unwrap();
    assert_eq!(empty.body, r#"{"requests":[]}"#, "what was given is not given twice");
    let batch = json!([{"sessionCode": page.code, "requestId": given, "result": 0}, {"sessionCode": page.code, "requestId": "x", "result": 0}]);
    let told = send(&worker, Method::POST, "/api/response", &batch.to_string()).await.unwrap().message().unwrap();
    assert_eq!((&told[0]["success"], &told[1]["error"]), (&json!(true), &json!("request_not_found")));
    let result: Value = serde_json::from_str(&results.result().await.unwrap()).unwrap();
    assert_eq!((&result["result"], &result["requestId"]), (&json!(0), &json!("r-2")));
}
