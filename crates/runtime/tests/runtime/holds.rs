//! Messages that wait for a person, and all the ways in which they stop waiting.

use crate::bridged_following::new_era;
use crate::client::{Client, Modern, answer, envelope, next, text};
use crate::fake::{Fake, Heard, Shape, Step, plain, said};
use crate::{Setup, pass, start_with};
use bytes::Bytes;
use serde_json::json;
use signalbox_engine::back::Wish;
use signalbox_engine::chain::{Case, Hold, HoldAnswer, HoldQuestion, HoldResponse, Judgement, Phase};
use signalbox_engine::{Chain, Interceptor, Principal, Verdict};
use signalbox_runtime::holds::{MAX_HELD, MAX_HELD_EACH};
use signalbox_runtime::{Breakpoint, Breakpoints, Gateway, HeldMessage, HoldError};
use signalbox_wire::Limits;
use std::sync::Arc;
use std::time::Duration;

fn backend() -> Fake {
    Fake::new(Shape::Pipe, |heard: &Heard| match &*heard.method {
        "tools/call" => vec![Step::Say(said(&heard.params.to_string()))],
        _ => plain(heard),
    })
}

struct Scene {
    fake: Fake,
    gateway: Arc<Gateway>,
    breakpoints: Arc<Breakpoints>,
}

fn scene() -> Scene {
    let fake = backend();
    let breakpoints = Arc::new(Breakpoints::new(Limits::default()));
    let chain = Chain::new(vec![Arc::clone(&breakpoints) as _]);
    let gateway = start_with(&fake, Setup::default(), chain);
    Scene { fake, gateway, breakpoints }
}

impl Scene {
    /// The one message that is held, as soon as it is.
    async fn held(&self) -> HeldMessage {
        loop {
            if let Some(held) = self.gateway.holds.list().pop() {
                return held;
            }
            pass(1).await;
        }
    }

    async fn nothing_is_held(&self) {
        while !self.gateway.holds.list().is_empty() {
            pass(1).await;
        }
    }

    fn settle(&self, held: &HeldMessage, answer: HoldAnswer) {
        self.gateway.holds.settle(held.id, answer).unwrap();
    }
}

fn next_call() -> Breakpoint {
    Breakpoint { next: Some(1), ..Breakpoint::default() }
}

fn by() -> Option<String> {
    Some("ada".to_owned())
}

#[tokio::test(start_paused = true)]
async fn only_the_next_call_is_held_and_it_goes_on_when_released() {
    let scene = scene();
    let client = Client::open(&scene.gateway, json!({})).await;
    client.tools().await;
    scene.breakpoints.set(next_call()).unwrap();
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    let held = scene.held().await;
    assert_eq!((held.held.subject.as_deref(), &*held.reason), (Some("t1"), "breakpoint 1"));
    assert!(scene.fake.heard("tools/call").is_empty());
    assert!(scene.breakpoints.list().is_empty(), "it was for one call");
    text(&client.call("t1").await);
    assert_eq!(scene.fake.heard("tools/call").len(), 1, "another call is not held");
    scene.settle(&held, HoldAnswer::GoOn { by: by() });
    text(&answer(&stream).await.unwrap());
    assert_eq!(scene.fake.heard("tools/call").len(), 2);
    assert_eq!(scene.gateway.holds.settled().get("released"), Some(&1));
    let again = scene.gateway.holds.settle(held.id, HoldAnswer::GoOn { by: by() });
    assert_eq!(again.unwrap_err(), HoldError::Unknown(held.id));
}

/// A backend of the new era whose tool wants a name before it answers.
fn curious(heard: &Heard) -> Vec<Step> {
    let form = json!({"mode": "form", "message": "name?", "requestedSchema": {"type": "object", "properties": {}}});
    let asked = json!({"k": {"method": "elicitation/create", "params": form}});
    match &*heard.method {
        "tools/call" if heard.params.get("inputResponses").is_none() => {
            vec![Step::Say(json!({"resultType": "input_required", "inputRequests": asked, "requestState": "s"}))]
        }
        "tools/call" => vec![Step::Say(said("done"))],
        _ => new_era(heard),
    }
}

fn curious_scene() -> Scene {
    let fake = Fake::new(Shape::Web, curious);
    let breakpoints = Arc::new(Breakpoints::new(Limits::default()));
    let chain = Chain::new(vec![Arc::clone(&breakpoints) as _]);
    let gateway = start_with(&fake, Setup { wish: Wish::Modern, ..Setup::default() }, chain);
    Scene { fake, gateway, breakpoints }
}

/// What is asked and answered in the middle of a call is not the next call.
/// Proves S-25.
#[tokio::test(start_paused = true)]
async fn the_answer_to_a_question_in_the_middle_of_a_call_is_not_the_next_call() {
    let scene = curious_scene();
    let client = Client::open(&scene.gateway, json!({"elicitation": {}})).await;
    client.tools().await;
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    let asked = next(&stream).await.unwrap();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    scene.breakpoints.set(next_call()).unwrap();
    scene.breakpoints.set(Breakpoint { tool: Some("t2".into()), phase: Phase::Response, ..next_call() }).unwrap();
    let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}});
    let post = client.session.open_stream().unwrap();
    client.session.receive(&post, envelope(&reply));
    assert_eq!(text(&answer(&stream).await.unwrap()), "done");
    assert_eq!(scene.breakpoints.list().iter().map(|set| set.hits).collect::<Vec<_>>(), [0, 0]);
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    let held = scene.held().await;
    assert_eq!(&*held.reason, "breakpoint 1");
    scene.settle(&held, HoldAnswer::GoOn { by: by() });
    assert_eq!(next(&stream).await.unwrap()["method"], "elicitation/create");
}

/// The same for a client of 2026-07-28, which brings its answers with a request of its own.
/// Proves S-25.
#[tokio::test(start_paused = true)]
async fn a_request_that_brings_answers_is_not_the_next_call_but_is_one_of_its_tool() {
    let scene = curious_scene();
    let client = Modern::askable(&scene.gateway);
    let asked = client.call("t1", json!({})).await;
    let brings =
        json!({"requestState": asked["result"]["requestState"], "inputResponses": {"k": {"action": "cancel"}}});
    scene.breakpoints.set(next_call()).unwrap();
    assert_eq!(text(&client.call("t1", brings.clone()).await), "done");
    assert_eq!(scene.breakpoints.list()[0].hits, 0);
    scene.breakpoints.clear_all();
    scene.breakpoints.set(Breakpoint { tool: Some("t1".into()), ..Breakpoint::default() }).unwrap();
    let stream = client.post("t1", &brings);
    let held = scene.held().await;
    scene.settle(&held, HoldAnswer::GoOn { by: by() });
    assert_eq!(text(&answer(&stream).await.unwrap()), "done");
}

#[tokio::test(start_paused = true)]
async fn an_edited_call_reaches_the_backend_as_it_was_edited() {
    let scene = scene();
    let client = Client::open(&scene.gateway, json!({})).await;
    client.tools().await;
    scene.breakpoints.set(Breakpoint { tool: Some("t*".into()), ..Breakpoint::default() }).unwrap();
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {"a": 1}}));
    let held = scene.held().await;
    let message = String::from_utf8(held.held.message.to_vec()).unwrap().replace("\"a\":1", "\"a\":2");
    scene.settle(&held, HoldAnswer::Edited { by: by(), message: Bytes::from(message) });
    text(&answer(&stream).await.unwrap());
    assert_eq!(scene.fake.heard("tools/call")[0].params["arguments"], json!({"a": 2}));
    // The breakpoint stays, and is met by the next one too.
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    let held = scene.held().await;
    scene.settle(&held, HoldAnswer::Refused { by: by(), reason: "not today".to_owned() });
    let refused = answer(&stream).await.unwrap();
    assert_eq!(refused["error"]["message"], "not today", "{refused}");
    assert_eq!(scene.breakpoints.list()[0].hits, 2);
}

#[tokio::test(start_paused = true)]
async fn one_message_too_many_for_a_person_is_refused_by_the_bound_that_it_met() {
    let scene = scene();
    let named = |name: &str| Modern { principal: Principal::named(name), ..Modern::askable(&scene.gateway) };
    let (ann, others) = (named("ann"), ["bob", "cem", "dan"].map(named));
    named("eve").call("t1", json!({})).await;
    scene.breakpoints.set(Breakpoint::default()).unwrap();
    let call = |who: &Modern| who.post("t1", &json!({}));
    let held = async |number: usize| {
        while scene.gateway.holds.list().len() < number {
            pass(1).await;
        }
    };
    let mut streams: Vec<_> = (0..MAX_HELD_EACH).map(|_| call(&ann)).collect();
    held(MAX_HELD_EACH).await;
    let refused = answer(&call(&ann)).await.unwrap();
    assert_eq!(refused["error"]["data"]["reason"], "overloaded", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("of yours"), "{refused}");
    for other in &others {
        streams.extend((0..MAX_HELD_EACH).map(|_| call(other)));
    }
    held(MAX_HELD).await;
    let refused = answer(&call(&named("eve"))).await.unwrap();
    assert_eq!(refused["error"]["data"]["reason"], "overloaded", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("of all callers"), "{refused}");
    let first = scene.held().await;
    scene.settle(&first, HoldAnswer::GoOn { by: by() });
    let again = call(&named("eve"));
    held(MAX_HELD).await;
    drop((streams, again));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_held_and_replaced() {
    let scene = scene();
    let client = Client::open(&scene.gateway, json!({})).await;
    client.tools().await;
    scene.breakpoints.set(Breakpoint { phase: Phase::Response, ..next_call() }).unwrap();
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    let held = scene.held().await;
    assert_eq!((held.held.phase, scene.fake.heard("tools/call").len()), (Phase::Response, 1));
    scene.settle(&held, HoldAnswer::Result { by: by(), result: Bytes::from(said("instead").to_string()) });
    assert_eq!(text(&answer(&stream).await.unwrap()), "instead");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gave_a_progress_token_hears_that_it_waits_until_its_time_is_over() {
    let scene = scene();
    let client = Client::open(&scene.gateway, json!({})).await;
    client.tools().await;
    scene.breakpoints.set(Breakpoint { within: Duration::from_secs(12), ..next_call() }).unwrap();
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}, "_meta": {"progressToken": 4}}));
    let mut told = Vec::new();
    let end = loop {
        let message = next(&stream).await.unwrap();
        if message["method"] != "notifications/progress" {
            break message;
        }
        assert_eq!(message["params"]["progressToken"], 4);
        told.push(message["params"]["progress"].as_f64().unwrap());
    };
    assert!(told.len() == 3 && told[0] < told[1] && told[1] < told[2], "{told:?}");
    assert_eq!(end["error"]["data"]["reason"], "hold_expired", "{end}");
    assert!(scene.gateway.holds.list().is_empty() && scene.fake.heard("tools/call").is_empty());
    assert_eq!(scene.gateway.holds.settled().get("expired"), Some(&1));
}

#[tokio::test(start_paused = true)]
async fn nothing_stays_held_for_a_client_that_is_gone() {
    let scene = scene();
    let client = Client::open(&scene.gateway, json!({})).await;
    client.tools().await;
    scene.breakpoints.set(Breakpoint { tool: Some("*".into()), ..Breakpoint::default() }).unwrap();
    // A session that ends.
    let _stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    scene.held().await;
    client.session.close();
    scene.nothing_is_held().await;
    // A client of the new era that drops its connection.
    let stream = Modern::askable(&scene.gateway).post("t1", &json!({}));
    scene.held().await;
    drop(stream);
    scene.nothing_is_held().await;
    assert!(scene.fake.heard("tools/call").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_ends_refuses_what_is_held_and_waits_for_nobody() {
    let scene = scene();
    let client = Client::open(&scene.gateway, json!({})).await;
    client.tools().await;
    scene.breakpoints.set(next_call()).unwrap();
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    scene.held().await;
    let gateway = Arc::clone(&scene.gateway);
    let ending = tokio::spawn(async move { gateway.shut_down(Duration::from_secs(600)).await });
    let refused = answer(&stream).await.unwrap();
    assert_eq!(refused["error"]["message"], "the gateway is shutting down", "{refused}");
    let began = tokio::time::Instant::now();
    ending.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(600), "it did not wait for the person");
    assert!(scene.fake.heard("tools/call").is_empty());
}

/// Lets every call wait for ten minutes.
struct Slow;

impl Interceptor for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        if case.message.method() != Some("tools/call") {
            return Judgement::pass();
        }
        let question = HoldQuestion::Pause(Duration::from_secs(600));
        Verdict::Hold(Hold { question, cursor: 0, message: None }).into()
    }
}

/// A cancelled call under a delay gives up its body at once.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_is_delayed_leaves_nothing_behind() {
    let gateway = start_with(&backend(), Setup::default(), Chain::new(vec![Arc::new(Slow)]));
    let client = Client::open(&gateway, json!({})).await;
    let (session, memory) = (Arc::downgrade(&client.session), Bytes::from(vec![b'x'; 1 << 20]));
    let params = json!({"name": "t1", "arguments": {"text": String::from_utf8_lossy(&memory)}});
    let stream = client.post("tools/call", params);
    pass(10).await;
    assert_eq!(client.session.in_flight(), 1);
    client.session.close();
    drop((stream, client));
    pass(1_000).await;
    assert!(session.upgrade().is_none(), "the session waits with the clock");
    assert_eq!(gateway.leftovers(), std::collections::BTreeMap::new());
}
