//! What happens at limits: a clear refusal, a count, and nothing left behind.

use crate::client::{Client, Modern, answer, text};
use crate::fake::{Fake, Heard, Shape, Step, plain, said};
use crate::{Setup, pass, start, status};
use serde_json::{Value, json};
use signalbox_runtime::Settings;
use signalbox_runtime::backend::MAX_WATCHES_EACH;
use signalbox_runtime::lists::{MAX_BYTES, MAX_PAGES};

fn overloaded(answer: &Value) {
    assert_eq!(answer["error"]["data"]["reason"], "overloaded", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn parked_calls_are_bounded_in_bytes() {
    let form = json!({"message": "name?", "requestedSchema": {"type": "object", "properties": {}}});
    let fake = Fake::new(Shape::Web, move |heard| match &*heard.method {
        "tools/call" => vec![Step::Ask(7, "elicitation/create", form.clone()), Step::Hear, Step::Say(said("done"))],
        _ => plain(heard),
    });
    let settings = Settings { max_parked_bytes: 2_000, ..Settings::default() };
    let gateway = start(&fake, Setup { settings, ..Setup::default() });
    let client = Modern::askable(&gateway);
    let large = json!({"arguments": {"text": "x".repeat(3_000)}});
    overloaded(&client.call("t1", large).await);
    assert_eq!((gateway.parks.len(), gateway.parks.bytes()), (0, 0));
    let small = client.call("t1", json!({"arguments": {"text": "x".repeat(500)}})).await;
    assert_eq!(small["result"]["resultType"], "input_required", "{small}");
    let held = gateway.parks.bytes();
    assert!((500..2_000).contains(&held), "{held}");
    overloaded(&client.call("t1", json!({"arguments": {"text": "x".repeat(1_000)}})).await);
    assert_eq!((gateway.parks.len(), gateway.parks.bytes()), (1, held));
    let answers = json!({"q1": {"action": "accept", "content": {}}});
    let state = &small["result"]["requestState"];
    let arguments = json!({"text": "x".repeat(500)});
    let back = json!({"arguments": arguments, "requestState": state, "inputResponses": answers});
    assert_eq!(text(&client.call("t1", back).await), "done");
    assert_eq!((gateway.parks.len(), gateway.parks.bytes()), (0, 0));
}

/// A backend whose list of tools has no end: every page has this much in it, and there is always another.
async fn endless(page: usize) -> (Fake, String, u64) {
    let fake = Fake::new(Shape::Pipe, move |heard: &Heard| match &*heard.method {
        "tools/list" => {
            let tool = json!({"name": format!("t{}", heard.nth), "description": "x".repeat(page), "inputSchema": {}});
            vec![Step::Say(json!({"tools": [tool], "nextCursor": "more"}))]
        }
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    for _ in 0..10_000 {
        if status(&gateway).last_error.is_some() {
            break;
        }
        pass(100).await;
    }
    let status = status(&gateway);
    (fake, status.last_error.unwrap(), status.strays.get("list_too_large").copied().unwrap_or(0))
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_end_is_given_up_after_so_many_pages() {
    let (fake, why, counted) = endless(1).await;
    assert!(why.contains("more than 1000 pages"), "{why}");
    assert!(counted >= 1);
    assert_eq!(fake.heard_on(1, "tools/list").len(), MAX_PAGES);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_large_entries_is_given_up_after_so_many_bytes() {
    let (fake, why, counted) = endless(MAX_BYTES / 4).await;
    assert!(why.contains("bytes"), "{why}");
    assert!(counted >= 1);
    assert!(fake.heard_on(1, "tools/list").len() <= 4);
}

#[tokio::test(start_paused = true)]
async fn one_session_follows_so_many_resources_and_others_still_can() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "resources/list" => {
            let all: Vec<Value> =
                (0..=MAX_WATCHES_EACH).map(|n| json!({"uri": format!("x://{n}"), "name": "n"})).collect();
            vec![Step::Say(json!({"resources": all}))]
        }
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let (greedy, modest) = (Client::open(&gateway, json!({})).await, Client::open(&gateway, json!({})).await);
    let subscribe = async |client: &Client, number: usize| {
        client.ask("resources/subscribe", json!({"uri": format!("x://{number}")})).await
    };
    for number in 0..MAX_WATCHES_EACH {
        let answer = subscribe(&greedy, number).await;
        assert!(answer["result"].is_object(), "{number}: {answer}");
    }
    overloaded(&subscribe(&greedy, MAX_WATCHES_EACH).await);
    assert!(subscribe(&greedy, 0).await["result"].is_object(), "what is followed already takes no room");
    assert!(subscribe(&modest, MAX_WATCHES_EACH).await["result"].is_object());
}

#[tokio::test(start_paused = true)]
async fn one_request_too_many_of_a_session_is_refused_and_counted() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => [Step::Wait(1_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let settings = Settings { max_in_flight: 1, ..Settings::default() };
    let gateway = start(&fake, Setup { settings, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    let first = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    overloaded(&client.call("t1").await);
    assert_eq!(gateway.status().refused["in_flight"], 1);
    assert!(answer(&first).await.unwrap()["result"].is_object());
}
