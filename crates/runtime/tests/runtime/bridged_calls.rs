//! Parked and pooled calls: what cancels, crowds and races do to them.

use crate::client::{Modern, answer, text};
use crate::fake::{ANSWER, Fake, Heard, Shape, Step, plain, said};
use crate::{Setup, pass, start};
use serde_json::{Value, json};
use signalbox_engine::Principal;
use signalbox_runtime::Gateway;
use std::sync::Arc;
use std::time::Duration;

fn form() -> Value {
    json!({"message": "name?", "requestedSchema": {"type": "object", "properties": {}}})
}

fn curious(heard: &Heard) -> Vec<Step> {
    match &*heard.method {
        "tools/call" => vec![Step::Ask(7, "elicitation/create", form()), Step::Hear, Step::Say(said("done"))],
        ANSWER => Vec::new(),
        _ => plain(heard),
    }
}

fn slow(heard: &Heard) -> Vec<Step> {
    match &*heard.method {
        "tools/call" => vec![Step::Wait(200), Step::Say(said("done"))],
        _ => plain(heard),
    }
}

fn other_caps(gateway: &Arc<Gateway>) -> Modern {
    Modern { capabilities: json!({"roots": {}}), ..Modern::askable(gateway) }
}

/// A process that is closed to make room may be given to a call before the closing task runs.
#[tokio::test(start_paused = true)]
async fn a_process_is_not_closed_under_the_call_it_was_just_given_to() {
    let fake = Fake::new(Shape::Pipe, slow);
    let gateway = start(&fake, Setup { max_children: 2, ..Setup::default() });
    let (one, two) = (Modern::askable(&gateway), other_caps(&gateway));
    assert_eq!(text(&one.call("t1", json!({})).await), "done");
    pass(10).await;
    // The pool's only process is idle. Two calls come at once: one that wants its place, and one that can use it.
    let (b, a) = (two.post("t1", &json!({})), one.post("t1", &json!({})));
    let a = answer(&a).await.unwrap();
    let runs = fake.heard("tools/call").len();
    assert!(a.get("result").is_some(), "the call was sent ({runs} runs) and its connection closed under it: {a}");
    drop(b);
}

/// An HTTP connection has no exclusive_use, so that every one of them looks idle when room is wanted.
#[tokio::test(start_paused = true)]
async fn a_full_pool_does_not_end_the_parked_calls_of_another_principal() {
    let fake = Fake::new(Shape::Web, curious);
    let gateway = start(&fake, Setup::default());
    let mut streams = Vec::new();
    for number in 0..2_200 {
        let capabilities = json!({"roots": {}, "elicitation": {}, "experimental": {format!("n{number}"): {}}});
        let principal = Principal::local(if number < 50 { "victim" } else { "crowd" });
        streams.push(Modern { principal, capabilities, ..Modern::askable(&gateway) }.post("t1", &json!({})));
        pass(1).await;
    }
    pass(1_000).await;
    let open = fake.open_links();
    let victims = fake.heard("tools/call").into_iter().take(50);
    let closed: Vec<usize> = victims.map(|one| one.link).filter(|link| !open.contains(link)).collect();
    assert_eq!(closed, [0; 0], "connections with a parked call of another principal were closed to make room");
}

/// The settle timer outlives a call that was cancelled.
#[tokio::test(start_paused = true)]
async fn a_call_cancelled_while_its_questions_settle_is_not_parked() {
    let fake = Fake::new(Shape::Pipe, curious);
    let gateway = start(&fake, Setup { max_children: 2, ..Setup::default() });
    let client = Modern::askable(&gateway);
    let warm = client.call("t1", json!({})).await;
    let back = json!({"requestState": warm["result"]["requestState"], "inputResponses": {"q1": {"action": "cancel"}}});
    assert_eq!(text(&client.call("t1", back).await), "done");
    let stream = client.post("t1", &json!({}));
    pass(5).await;
    drop(stream);
    pass(100).await;
    assert_eq!(fake.heard("notifications/cancelled").len(), 1, "the backend was told to stop");
    assert_eq!(gateway.parks.len(), 0, "a call that is over is parked, with the process for itself until park_timeout");
    let next = client.post("t1", &json!({}));
    pass(1_000).await;
    drop(next);
    assert_eq!(fake.heard("tools/call").len(), 3, "the process is free for the next call");
}

/// A backend that asks, does not wait, and then refuses until the user has been at a URL.
#[tokio::test(start_paused = true)]
async fn a_call_refused_for_a_url_is_not_parked_for_an_earlier_question() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => {
            let urls =
                json!({"elicitations": [{"mode": "url", "elicitationId": "e", "url": "https://a/", "message": "m"}]});
            let error = json!({"code": -32042, "message": "go", "data": urls});
            let refusal = json!({"jsonrpc": "2.0", "id": heard.params["_meta"]["progressToken"], "error": error});
            vec![Step::Ask(7, "elicitation/create", form()), Step::Together(vec![refusal], json!({}))]
        }
        ANSWER => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let caps = json!({"elicitation": {"form": {}, "url": {}}});
    let client = Modern { capabilities: caps.clone(), ..Modern::askable(&gateway) };
    let meta = json!({"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": caps});
    let asked = client.call("t1", json!({"_meta": meta})).await;
    assert!(asked["result"]["inputRequests"]["u1"].is_object(), "{asked}");
    pass(100).await;
    assert_eq!(gateway.parks.len(), 0, "the call is over, yet it is parked with its process");
}

/// A call that waits for `logging/setLevel` is nowhere to be found by a cancellation.
#[tokio::test(start_paused = true)]
async fn a_call_cancelled_while_its_log_level_is_set_is_not_run() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "logging/setLevel" => vec![Step::Wait(1_000), Step::Say(json!({}))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Modern::askable(&gateway);
    assert!(client.call("t1", json!({})).await["result"].is_object());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": client.capabilities, "io.modelcontextprotocol/logLevel": "debug"});
    let stream = client.post("t1", &json!({"_meta": meta}));
    pass(100).await;
    assert_eq!(fake.heard("logging/setLevel").len(), 1);
    drop(stream);
    pass(5_000).await;
    assert_eq!(fake.heard("tools/call").len(), 1, "the tool ran although its caller had gone before it was sent");
}

/// A ticket of an earlier process that comes before the backend's era is known runs the tool a second time.
#[tokio::test(start_paused = true)]
async fn a_ticket_of_an_earlier_process_never_runs_a_tool_again() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup { catalog_file: Some(folder.path().join("catalog.json")), ..Setup::default() };
    let first = start(&Fake::new(Shape::Pipe, curious), setup());
    let client = Modern::askable(&first);
    let asked = client.call("t1", json!({})).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    first.shut_down(Duration::ZERO).await;

    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        ("initialize", 1) => [Step::Wait(2_000)].into_iter().chain(plain(heard)).collect(),
        _ => curious(heard),
    });
    let second = start(&fake, setup());
    let client = Modern::askable(&second);
    let back = json!({"requestState": state, "inputResponses": {"q1": {"action": "accept", "content": {}}}});
    let again = client.call("t1", back).await;
    let heard: Vec<Value> = fake.heard("tools/call").into_iter().map(|one| one.params).collect();
    assert!(heard.is_empty(), "the tool ran again, with the words of the new era: {heard:?}");
    assert_eq!(again["error"]["code"], -32602, "{again}");
}

/// On HTTP the backend takes its question back on the stream of the call.
#[tokio::test(start_paused = true)]
async fn a_question_taken_back_on_the_stream_of_the_call_is_not_shown() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "tools/call" => vec![
            Step::Ask(7, "elicitation/create", form()),
            Step::TellHere("notifications/cancelled", json!({"requestId": 7})),
            Step::Wait(100),
            Step::Say(said("done without")),
        ],
        ANSWER => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let answer = Modern::askable(&gateway).call("t1", json!({})).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

/// A backend that gave up its question and answered needs its process no longer.
#[tokio::test(start_paused = true)]
async fn a_parked_call_that_is_over_gives_its_process_back() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => vec![Step::Ask(7, "elicitation/create", form()), Step::Wait(100), Step::Say(said("gave up"))],
        ANSWER => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { max_children: 2, ..Setup::default() });
    let client = Modern::askable(&gateway);
    client.call("t1", json!({})).await;
    pass(1_000).await;
    let next = client.post("t1", &json!({}));
    pass(1_000).await;
    assert_eq!(fake.heard("tools/call").len(), 2, "the backend has answered, but its process stays taken");
    drop(next);
}
