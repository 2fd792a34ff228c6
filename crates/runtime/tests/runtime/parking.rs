//! Calls of the new era that an old backend asks something about: whatever the client does, no tool runs twice.

use crate::client::{Modern, text};
use crate::fake::{ANSWER, Fake, Heard, Shape, Step, plain, said};
use crate::{Setup, pass, start};
use serde_json::{Value, json};
use signalbox_engine::Principal;
use signalbox_runtime::{Gateway, Settings};
use std::sync::Arc;
use std::time::Duration;

/// A backend whose tool asks for a name before it answers.
fn curious(heard: &Heard) -> Vec<Step> {
    let form = json!({"message": "name?", "requestedSchema": {"type": "object", "properties": {}}});
    match &*heard.method {
        "tools/call" => vec![
            Step::Ask(7, "elicitation/create", form),
            Step::Hear,
            Step::Tell("notifications/message", json!({"level": "info", "data": "thanks"})),
            Step::Say(said("done")),
        ],
        ANSWER => Vec::new(),
        _ => plain(heard),
    }
}

fn scene(shape: Shape) -> (Fake, Arc<Gateway>) {
    scene_with(shape, Settings::default())
}

fn scene_with(shape: Shape, settings: Settings) -> (Fake, Arc<Gateway>) {
    let fake = Fake::new(shape, curious);
    let gateway = start(&fake, Setup { settings, ..Setup::default() });
    (fake, gateway)
}

/// The first round: what the client is asked, and the state it has to bring back.
async fn first_round(client: &Modern) -> String {
    let asked = client.call("t1", json!({})).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    assert_eq!(result["inputRequests"]["q1"]["params"]["mode"], "form", "{asked}");
    result["requestState"].as_str().unwrap().to_owned()
}

fn reply(state: &str) -> Value {
    json!({"requestState": state, "inputResponses": {"q1": {"action": "accept", "content": {"name": "Ada"}}}})
}

fn refused(answer: &Value, part: &str) {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_goes_on_with_the_answers_its_client_brings_back() {
    for shape in [Shape::Pipe, Shape::Web] {
        let (fake, gateway) = scene(shape);
        let client = Modern::askable(&gateway);
        let state = first_round(&client).await;
        assert_eq!(gateway.parks.len(), 1);
        let answer = client.call("t1", reply(&state)).await;
        assert_eq!(text(&answer), "done");
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(fake.heard(ANSWER)[0].params["result"]["content"]["name"], "Ada");
        assert_eq!(fake.heard("tools/call").len(), 1, "one run for both rounds");
        assert!(gateway.parks.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_reply_with_the_same_state_runs_nothing() {
    let (fake, gateway) = scene(Shape::Pipe);
    let client = Modern::askable(&gateway);
    let state = first_round(&client).await;
    let (one, two) = tokio::join!(client.call("t1", reply(&state)), client.call("t1", reply(&state)));
    let (good, bad) = if one.get("result").is_some() { (one, two) } else { (two, one) };
    assert_eq!(text(&good), "done");
    refused(&bad, "not run a second time");
    refused(&client.call("t1", reply(&state)).await, "not run a second time");
    assert_eq!(fake.heard("tools/call").len(), 1);
    assert_eq!(fake.heard(ANSWER).len(), 1, "and the backend hears one answer");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_was_changed_or_made_up_is_refused() {
    let (fake, gateway) = scene(Shape::Pipe);
    let client = Modern::askable(&gateway);
    let state = first_round(&client).await;
    let mut changed = state.clone();
    let last = changed.pop().unwrap();
    changed.push(if last == '0' { '1' } else { '0' });
    for forged in [changed.as_str(), "", "sbx1.", "sbx1.00", "opaque"] {
        refused(&client.call("t1", reply(forged)).await, "was not given to this caller");
    }
    refused(&client.call("t1", json!({"inputResponses": {}})).await, "requestState is missing");
    let mut other = reply(&state);
    other["arguments"] = json!({"changed": true});
    refused(&client.call("t1", other).await, "belongs to another request");
    assert_eq!(text(&client.call("t1", reply(&state)).await), "done", "the call waited all the while");
    assert_eq!(fake.heard("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_principal_cannot_answer() {
    let (fake, gateway) = scene(Shape::Web);
    let client = Modern::askable(&gateway);
    let state = first_round(&client).await;
    let thief = Modern { principal: Principal::local("thief"), ..Modern::askable(&gateway) };
    refused(&thief.call("t1", reply(&state)).await, "was not given to this caller");
    assert_eq!(text(&client.call("t1", reply(&state)).await), "done");
    assert_eq!(fake.heard("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_comes_back_is_given_up_and_the_backend_is_told() {
    let settings = Settings { park_timeout: Duration::ZERO, ..Settings::default() };
    let (fake, gateway) = scene_with(Shape::Pipe, settings);
    let client = Modern::askable(&gateway);
    let state = first_round(&client).await;
    pass(1_000).await;
    assert!(gateway.parks.is_empty());
    assert_eq!(fake.heard("notifications/cancelled").len(), 1);
    let late = client.call("t1", reply(&state)).await;
    refused(&late, "not run a second time");
    assert_eq!(fake.heard("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_vanishes_in_the_second_round_cancels_the_call() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => {
            let mut steps = curious(heard);
            steps.insert(2, Step::Wait(60_000_000));
            steps
        }
        _ => curious(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Modern::askable(&gateway);
    let state = first_round(&client).await;
    let stream = client.post("t1", &reply(&state));
    pass(100).await;
    drop(stream);
    pass(100).await;
    assert_eq!(fake.heard("notifications/cancelled").len(), 1);
    assert_eq!(gateway.status().in_flight, 0);
    assert_eq!(gateway.status().backends[0].in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_dies_while_the_call_is_parked_is_told_to_whoever_comes_back() {
    let (fake, gateway) = scene(Shape::Pipe);
    let client = Modern::askable(&gateway);
    let state = first_round(&client).await;
    let child = fake.heard("tools/call")[0].link;
    fake.kill(child);
    pass(10).await;
    let answer = client.call("t1", reply(&state)).await;
    assert_eq!(answer["error"]["data"]["reason"], "backend_died", "{answer}");
    assert_eq!(fake.heard("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pipe_is_one_call_s_alone_and_is_used_again_after_it() {
    let (fake, gateway) = scene(Shape::Pipe);
    let client = Modern::askable(&gateway);
    let (one, two) = (first_round(&client).await, first_round(&client).await);
    let links: Vec<usize> = fake.heard("tools/call").iter().map(|heard| heard.link).collect();
    assert_ne!(links[0], links[1], "a question on a pipe does not say which call it is about");
    assert_eq!(text(&client.call("t1", reply(&two)).await), "done");
    assert_eq!(text(&client.call("t1", reply(&one)).await), "done");
    let three = first_round(&client).await;
    assert!(links.contains(&fake.heard("tools/call")[2].link), "no third process was needed");
    assert_eq!(text(&client.call("t1", reply(&three)).await), "done");
    assert_eq!(fake.open_links().len(), 3, "the home connection and two of the pool");
}

#[tokio::test(start_paused = true)]
async fn with_no_process_left_a_call_waits_for_one() {
    let fake = Fake::new(Shape::Pipe, curious);
    let gateway = start(&fake, Setup { max_children: 2, ..Setup::default() });
    let client = Modern::askable(&gateway);
    let state = first_round(&client).await;
    let waiting = client.post("t1", &json!({}));
    pass(500).await;
    assert_eq!(fake.heard("tools/call").len(), 1, "the only process of the pool is parked");
    assert_eq!(text(&client.call("t1", reply(&state)).await), "done");
    let asked = crate::client::answer(&waiting).await.unwrap();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
}

#[tokio::test(start_paused = true)]
async fn calls_with_other_capabilities_and_principals_never_share_a_pooled_connection() {
    let (fake, gateway) = scene(Shape::Web);
    let one = Modern::askable(&gateway);
    let two = Modern { capabilities: json!({"elicitation": {"form": {}}}), ..Modern::askable(&gateway) };
    let three = Modern { principal: Principal::local("you"), ..Modern::askable(&gateway) };
    for client in [&one, &two, &three, &one] {
        first_round(client).await;
    }
    let links: Vec<usize> = fake.heard("tools/call").iter().map(|heard| heard.link).collect();
    assert_eq!(links[0], links[3], "the same client meets the same session");
    assert!(links[0] != links[1] && links[1] != links[2] && links[0] != links[2], "{links:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_belongs_to_no_call_is_refused_to_the_backend() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "notifications/initialized" if heard.link > 1 => vec![Step::Ask(3, "roots/list", json!({}))],
        "tools/call" => vec![Step::Wait(50), Step::Say(said("done"))],
        ANSWER => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Modern::askable(&gateway);
    let (one, two) = tokio::join!(client.call("t1", json!({})), client.call("t1", json!({})));
    assert_eq!((text(&one), text(&two)), ("done", "done"));
    assert_eq!(fake.heard(ANSWER)[0].params["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_declared_too_little_hears_what_the_call_needs() {
    for (shape, capabilities) in
        [(Shape::Web, json!({})), (Shape::Pipe, json!({})), (Shape::Pipe, json!({"roots": {}}))]
    {
        let (fake, gateway) = scene(shape);
        let client = Modern { capabilities, ..Modern::askable(&gateway) };
        let answer = client.call("t1", json!({})).await;
        assert_eq!(answer["error"]["code"], -32021, "{answer}");
        assert!(answer["error"]["data"]["requiredCapabilities"]["elicitation"].is_object(), "{answer}");
        pass(10).await;
        assert_eq!(fake.heard(ANSWER)[0].params["error"]["code"], -32601, "and the backend is not left waiting");
        assert_eq!(gateway.status().backends[0].in_flight, 0);
    }
}
