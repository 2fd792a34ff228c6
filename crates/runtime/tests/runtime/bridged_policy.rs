//! What the bridge must not let through unseen, nor take at its word.

use crate::bridged_following::new_era;
use crate::client::{Client, Modern, answer, envelope, next, text};
use crate::fake::{ANSWER, Fake, Heard, Shape, Step, plain, said};
use crate::{Setup, start};
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::back::Wish;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Verdict};
use signalbox_engine::front::Mode;
use signalbox_engine::{Caller, Chain, Fault, FaultKind};
use signalbox_runtime::{Backend, BackendSpec, Gateway, GatewayParts, Settings, StreamReader};
use signalbox_wire::Envelope;
use std::sync::Arc;
use std::time::Duration;

/// Refuses every message of a backend or client that says the one word, and blackens the other.
struct Guard;

fn guarded(message: &Envelope) -> Verdict {
    if String::from_utf8_lossy(message.bytes()).contains("PASSWORD") {
        return Verdict::Refuse(Fault::new(FaultKind::Refused, "not with this gateway"));
    }
    let text = String::from_utf8_lossy(message.bytes());
    if !text.contains("SECRET") {
        return Verdict::Pass;
    }
    Verdict::Modify(Envelope::parse(Bytes::from(text.replace("SECRET", "******"))).unwrap())
}

impl Interceptor for Guard {
    fn name(&self) -> &'static str {
        "guard"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        guarded(case.message).into()
    }
}

fn start_guarded(fake: &Fake, wish: Wish) -> Arc<Gateway> {
    let spec = BackendSpec {
        timeout: Duration::from_secs(60),
        start_timeout: Duration::from_secs(60),
        max_children: 8,
        wish,
        strict: None,
        failing: signalbox_runtime::FailureRules::default(),
        lifetime: signalbox_runtime::Lifetime::default(),
        questions: signalbox_runtime::QuestionTime::default(),
        source: 0,
        allows: Box::new(|_| true),
    };
    let parts = GatewayParts {
        chain: Chain::new(vec![Arc::new(Guard)]),
        ..GatewayParts::unguarded(Settings::default(), vec![Backend::new("a", Arc::new(fake.clone()), spec)]).unwrap()
    };
    let gateway = Gateway::new(parts).unwrap();
    gateway.start();
    gateway
}

fn form(message: &str) -> Value {
    json!({"mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {}}})
}

/// What an old backend asks a new client is an answer to that client, and is judged like one.
#[tokio::test(start_paused = true)]
async fn a_question_of_an_old_backend_passes_the_interceptors() {
    let fake = Fake::new(Shape::Pipe, |heard: &Heard| match &*heard.method {
        "tools/call" => vec![Step::Ask(7, "elicitation/create", form("your PASSWORD?")), Step::Hear],
        ANSWER => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start_guarded(&fake, Wish::Legacy);
    let asked = Modern::askable(&gateway).call("t1", json!({})).await;
    assert!(asked.get("error").is_some(), "nobody judged: {asked}");
    assert!(gateway.parks.is_empty(), "nobody can come back for the call");
    assert_eq!(fake.heard("notifications/cancelled").len(), 1);
}

/// What a new client brings back is what the interceptors made of it.
#[tokio::test(start_paused = true)]
async fn an_edit_of_a_new_client_s_answer_reaches_the_old_backend() {
    let fake = Fake::new(Shape::Pipe, |heard: &Heard| match &*heard.method {
        "tools/call" => vec![Step::Ask(7, "elicitation/create", form("?")), Step::Hear, Step::Say(said("done"))],
        ANSWER => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start_guarded(&fake, Wish::Legacy);
    let client = Modern::askable(&gateway);
    let asked = client.call("t1", json!({})).await;
    let answer = json!({"q1": {"action": "accept", "content": {"a": "SECRET"}}});
    let more = json!({"requestState": asked["result"]["requestState"], "inputResponses": answer});
    assert_eq!(text(&client.call("t1", more).await), "done");
    assert_eq!(fake.heard(ANSWER)[0].params["result"]["content"]["a"], "******");
}

/// What a new backend asks an old client is part of an answer, and is judged like one.
#[tokio::test(start_paused = true)]
async fn a_question_of_a_new_backend_passes_the_interceptors() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "tools/call" => vec![Step::Say(json!({"resultType": "input_required", "requestState": "s",
            "inputRequests": {"k": {"method": "elicitation/create", "params": form("your PASSWORD?")}}}))],
        _ => new_era(heard),
    });
    let gateway = start_guarded(&fake, Wish::Modern);
    let client = Client::open(&gateway, json!({"elicitation": {}})).await;
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    let first = next(&stream).await.unwrap();
    assert_eq!(first.get("method"), None, "nobody judged: {first}");
}

/// What an old client answers becomes a part of the next request, and is judged like one.
#[tokio::test(start_paused = true)]
async fn an_answer_of_an_old_client_passes_the_interceptors() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "tools/call" if heard.params.get("inputResponses").is_none() => {
            vec![Step::Say(json!({"resultType": "input_required", "requestState": "s",
                "inputRequests": {"k": {"method": "elicitation/create", "params": form("?")}}}))]
        }
        "tools/call" => vec![Step::Say(said("done"))],
        _ => new_era(heard),
    });
    let gateway = start_guarded(&fake, Wish::Modern);
    let client = Client::open(&gateway, json!({"elicitation": {}})).await;
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    let asked = next(&stream).await.unwrap();
    let result = json!({"action": "accept", "content": {"a": "my PASSWORD"}});
    let post = client.session.open_stream().unwrap();
    client.session.receive(&post, envelope(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})));
    let end = answer(&stream).await.unwrap();
    assert_eq!(fake.heard("tools/call").len(), 1, "nobody judged what went to the backend: {end}");
}

/// The words of the new era mean nothing in a result of the old one.
#[tokio::test(start_paused = true)]
async fn a_result_of_an_old_backend_is_never_a_question() {
    let fake = Fake::new(Shape::Pipe, |heard: &Heard| match &*heard.method {
        "tools/call" => {
            let url = json!({"mode": "url", "message": "log in", "url": "https://evil/"});
            vec![Step::Say(json!({"content": [], "resultType": "input_required", "requestState": "s",
                "inputRequests": {"k": {"method": "elicitation/create", "params": url}}}))]
        }
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let bare = Modern { capabilities: json!({}), ..Modern::askable(&gateway) };
    let answer = bare.call("t1", json!({})).await;
    assert_eq!(answer["result"]["resultType"], "complete", "a client without capabilities was asked: {answer}");
}

fn read(gateway: &Arc<Gateway>, who: &str) -> StreamReader {
    let session = gateway.open_session(Caller::local(who, "test"), Mode::Stateless, "", "test").unwrap();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    Client { session }.post("resources/read", json!({"uri": "x://y", "_meta": meta}))
}

/// Nor do they make a result of the old era fit to be kept: each of its sessions may have its own.
#[tokio::test(start_paused = true)]
async fn a_result_of_an_old_backend_is_never_kept() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "resources/read" => vec![Step::Say(json!({"ttlMs": 60_000, "cacheScope": "public",
            "contents": [{"uri": "x://y", "text": format!("for session {}", heard.link)}]}))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let one = answer(&read(&gateway, "one")).await.unwrap();
    let two = answer(&read(&gateway, "two")).await.unwrap();
    assert_eq!(one["result"]["resultType"], "complete", "{one}");
    assert_eq!(
        two["result"]["resultType"], "complete",
        "a kept result of the old era lacks what the new one needs: {two}"
    );
    assert_eq!(fake.heard("resources/read").len(), 2);
}

/// A process that nobody uses makes room, whoever wants it.
#[tokio::test(start_paused = true)]
async fn an_idle_pooled_process_makes_room_for_an_old_session() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup { max_children: 2, ..Setup::default() });
    let new = Modern::askable(&gateway).call("t1", json!({})).await;
    assert!(new["result"].is_object(), "{new}");
    let old = Client::open(&gateway, json!({"elicitation": {}})).await;
    let answer = old.call("t1").await;
    assert!(answer.get("result").is_some(), "{answer}");
    assert!(text(&answer).starts_with("link"));
}

/// The status follows the error that the client is shown.
#[tokio::test(start_paused = true)]
async fn the_status_follows_the_code_that_is_sent() {
    let fake = Fake::new(Shape::Pipe, |heard: &Heard| match &*heard.method {
        "tools/call" => vec![Step::Deny(-32021)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let out = Modern::askable(&gateway).post("t1", &json!({})).next().await.unwrap();
    let body: Value = serde_json::from_slice(out.bytes()).unwrap();
    assert_eq!(body["error"]["code"], -32603, "{body}");
    assert_eq!(out.status, 200, "an internal error of the backend goes out as a bad request: {body}");
}
