//! A `requestState` that comes twice, late, from somebody else or with something else.

use crate::bridged_following::new_era;
use crate::client::{Modern, answer, text};
use crate::fake::{Fake, Heard, Shape, Step, plain, said, tools};
use crate::{Setup, start_with};
use serde_json::{Value, json};
use signalbox_engine::back::Wish;
use signalbox_engine::chain::{Case, HoldResponse, Judgement, Phase};
use signalbox_engine::{Chain, Interceptor, Principal};
use signalbox_runtime::Gateway;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts calls as limits and budgets do: further rounds are free.
#[derive(Default)]
struct Charged(AtomicUsize);

impl Charged {
    fn calls(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Interceptor for Charged {
    fn name(&self) -> &'static str {
        "charged"
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        if case.phase == Phase::Request && case.round <= 1 {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Judgement::pass()
    }
}

struct Scene {
    fake: Fake,
    gateway: Arc<Gateway>,
    charged: Arc<Charged>,
}

/// A backend of the new era that asks twice before it is done, with a state of its own for each question.
fn modern_backend() -> Fake {
    Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "tools/list" => vec![Step::Say(tools(&["t1", "dear"]))],
        "tools/call" => {
            let next = match heard.params["requestState"].as_str() {
                Some(state) if state.starts_with("first") => format!("second-{}", heard.nth),
                Some(_) => return vec![Step::Say(said("done"))],
                None => format!("first-{}", heard.nth),
            };
            let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
            vec![Step::Say(json!({"resultType": "input_required", "requestState": next,
                "inputRequests": {"k": {"method": "elicitation/create", "params": form}}}))]
        }
        _ => new_era(heard),
    })
}

fn scene(fake: Fake, wish: Wish) -> Scene {
    let charged = Arc::new(Charged::default());
    let chain = Chain::new(vec![Arc::clone(&charged) as Arc<dyn Interceptor>]);
    let gateway = start_with(&fake, Setup { wish, ..Setup::default() }, chain);
    Scene { fake, gateway, charged }
}

impl Scene {
    fn caller(&self, name: &str) -> Modern {
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}});
        Modern { principal: Principal::named(name), capabilities, ..Modern::askable(&self.gateway) }
    }

    fn heard(&self) -> usize {
        self.fake.heard("tools/call").len()
    }
}

fn back(asked: &Value) -> Value {
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let keys = asked["result"]["inputRequests"].as_object().unwrap().keys();
    let given: serde_json::Map<_, _> = keys.map(|key| (key.clone(), json!({"action": "accept"}))).collect();
    json!({"requestState": asked["result"]["requestState"], "inputResponses": given})
}

#[tokio::test(start_paused = true)]
async fn rounds_in_order_count_once_and_each_repetition_as_a_call() {
    let scene = scene(modern_backend(), Wish::Modern);
    let ann = scene.caller("ann");
    let first = ann.call("t1", json!({})).await;
    let second = ann.call("t1", back(&first)).await;
    assert_eq!(text(&ann.call("t1", back(&second)).await), "done");
    assert_eq!(scene.charged.calls(), 1);
    for more in 1..=20 {
        assert_eq!(text(&ann.call("t1", back(&second)).await), "done");
        assert_eq!(scene.charged.calls(), 1 + more);
    }
    // In another order: the state of the first round after that of the second.
    ann.call("t1", back(&first)).await;
    assert_eq!(scene.charged.calls(), 22);
}

#[tokio::test(start_paused = true)]
async fn of_repetitions_that_come_together_one_is_the_round() {
    let scene = scene(modern_backend(), Wish::Modern);
    let ann = scene.caller("ann");
    let first = ann.call("t1", json!({})).await;
    let streams: Vec<_> = (0..16).map(|_| ann.post("t1", &back(&first))).collect();
    for stream in &streams {
        answer(stream).await.unwrap();
    }
    assert_eq!(scene.charged.calls(), 1 + 15);
}

#[tokio::test(start_paused = true)]
async fn the_state_of_another_caller_runs_nothing() {
    let scene = scene(modern_backend(), Wish::Modern);
    let (ann, bob) = (scene.caller("ann"), scene.caller("bob"));
    let first = ann.call("t1", json!({})).await;
    let refused = bob.call("t1", back(&first)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let second = ann.call("t1", back(&first)).await;
    let refused = bob.call("t1", back(&first)).await;
    assert_eq!(refused["error"]["code"], -32602, "used by its owner, and still not his: {refused}");
    assert_eq!(scene.heard(), 2);
    assert_eq!(text(&ann.call("t1", back(&second)).await), "done");
    assert_eq!(scene.charged.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_state_of_another_tool_or_of_another_process_counts_as_a_call() {
    let one = scene(modern_backend(), Wish::Modern);
    let first = one.caller("ann").call("t1", json!({})).await;
    one.caller("ann").call("dear", back(&first)).await;
    assert_eq!(one.charged.calls(), 2, "a cheap tool does not pay for a dear one");
    one.caller("ann").call("t1", back(&first)).await;
    assert_eq!(one.charged.calls(), 2, "it is still good for its own call");
    let other = scene(modern_backend(), Wish::Modern);
    other.caller("ann").call("t1", back(&first)).await;
    assert_eq!(other.charged.calls(), 1);
}

/// A parked call at an old backend.
#[tokio::test(start_paused = true)]
async fn a_repeated_state_of_a_parked_call_runs_nothing() {
    let fake = Fake::new(Shape::Pipe, |heard: &Heard| match &*heard.method {
        "tools/call" => {
            let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
            vec![Step::Ask(7, "elicitation/create", form), Step::Hear, Step::Say(said("done"))]
        }
        crate::fake::ANSWER => Vec::new(),
        _ => plain(heard),
    });
    let scene = scene(fake, Wish::Legacy);
    let (ann, bob) = (scene.caller("ann"), scene.caller("bob"));
    let first = ann.call("t1", json!({})).await;
    assert_eq!(bob.call("t1", back(&first)).await["error"]["code"], -32602);
    assert_eq!(text(&ann.call("t1", back(&first)).await), "done");
    for _ in 0..3 {
        assert_eq!(ann.call("t1", back(&first)).await["error"]["code"], -32602);
    }
    assert_eq!((scene.heard(), scene.charged.calls()), (1, 1 + 3));
}

/// A call at an old backend that is refused until the user has visited a URL.
#[tokio::test(start_paused = true)]
async fn a_call_refused_for_a_url_is_made_once_more() {
    let fake = Fake::new(Shape::Pipe, |heard: &Heard| match &*heard.method {
        "tools/call" if heard.nth > 1 => vec![Step::Say(said("done"))],
        "tools/call" => {
            let urls =
                json!({"elicitations": [{"mode": "url", "elicitationId": "e", "url": "https://a/", "message": "m"}]});
            let error = json!({"code": -32042, "message": "go", "data": urls});
            let refusal = json!({"jsonrpc": "2.0", "id": heard.params["_meta"]["progressToken"], "error": error});
            vec![Step::Together(vec![refusal], json!({}))]
        }
        _ => plain(heard),
    });
    let scene = scene(fake, Wish::Legacy);
    let ann = scene.caller("ann");
    let with_token = |more: &Value| {
        let mut more = more.clone();
        more["_meta"] = json!({"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}}});
        more
    };
    let asked = ann.call("t1", with_token(&json!({}))).await;
    let again = with_token(&back(&asked));
    assert_eq!(text(&ann.call("t1", again.clone()).await), "done");
    for _ in 0..3 {
        let refused = ann.call("t1", again.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert_eq!((scene.heard(), scene.charged.calls()), (2, 1 + 3));
}
