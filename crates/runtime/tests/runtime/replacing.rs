//! Other backends while the gateway runs: who keeps what, who is told, and what becomes of calls that are under way.

use crate::bridged_following::new_era;
use crate::client::{Client, Modern, answer, next, text};
use crate::fake::{ANSWER, Fake, Heard, OPEN, Shape, Step, plain, said, tools};
use crate::{Setup, pass, start, start_with};
use serde_json::{Value, json};
use signalbox_engine::Chain;
use signalbox_engine::back::Wish;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Verdict};
use signalbox_runtime::{Backend, BackendSpec, Gateway, Lifetime, Settings, StreamReader};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const UPDATED: &str = "notifications/resources/updated";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

fn lets_through(allows: impl Fn(&str) -> bool + Send + Sync + 'static) -> BackendSpec {
    crate::spec(Lifetime::default(), allows)
}

fn backend(name: &str, fake: &Fake) -> Arc<Backend> {
    Backend::new(name, Arc::new(fake.clone()), lets_through(|_| true))
}

/// A backend with one tool that says this word, after so many milliseconds.
fn speaking(shape: Shape, tool: &'static str, word: &'static str, after: u64) -> Fake {
    Fake::new(shape, move |heard| match &*heard.method {
        "tools/list" => vec![Step::Say(tools(&[tool]))],
        "tools/call" => vec![Step::Wait(after), Step::Say(said(word))],
        _ => plain(heard),
    })
}

/// The backend that stands first in the gateway.
fn first(gateway: &Gateway) -> Arc<Backend> {
    Arc::clone(&gateway.backends()[0])
}

async fn hears(general: &StreamReader, method: &str) -> Value {
    loop {
        let message = next(general).await.expect("the general stream ended");
        if message["method"] == method {
            return message;
        }
    }
}

fn error(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_stays_keeps_its_connections_while_others_come_and_go() {
    let (stays, goes) = (speaking(Shape::Web, "stays", "here", 0), speaking(Shape::Pipe, "goes", "bye", 0));
    let gateway = start(&stays, Setup::default());
    let done = gateway.replace(vec![first(&gateway), backend("b", &goes)]);
    assert_eq!((done.added, done.removed, done.changed), (vec!["b".into()], vec![], vec![]));
    let client = Client::open(&gateway, json!({})).await;
    let general = client.session.open_general().unwrap();
    assert_eq!(client.tools().await, ["stays", "goes"]);
    assert_eq!(text(&client.call("stays").await), "here");
    let links = stays.open_links();

    let comes = speaking(Shape::Pipe, "comes", "hello", 0);
    let done = gateway.replace(vec![backend("c", &comes), first(&gateway)]);
    assert_eq!((done.added, done.removed, done.changed), (vec!["c".into()], vec!["b".into()], vec![]));
    hears(&general, TOOLS_CHANGED).await;
    pass(1_000).await;
    assert_eq!(client.tools().await, ["comes", "stays"], "in configured order");
    assert_eq!(text(&client.call("comes").await), "hello");
    assert_eq!(text(&client.call("stays").await), "here");
    assert_eq!(stays.open_links(), links, "the one that stays was not touched");
    assert_eq!(stays.heard(OPEN).len(), links.len());
    assert!(goes.open_links().is_empty(), "the one that is gone has ended");
    assert_eq!(gateway.status().retiring, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_is_finished_by_the_old_backend_while_others_go_to_the_new_one() {
    for shape in [Shape::Pipe, Shape::Web] {
        let (old, new) = (speaking(shape, "t", "old", 3_000), speaking(shape, "t", "new", 0));
        let gateway = start(&old, Setup::default());
        let client = Client::open(&gateway, json!({})).await;
        client.tools().await;
        let slow = client.post("tools/call", json!({"name": "t", "arguments": {}}));
        pass(500).await;
        let done = gateway.replace(vec![backend("a", &new)]);
        assert_eq!((done.added, done.removed, done.changed), (vec![], vec![], vec!["a".into()]));
        assert_eq!(text(&client.call("t").await), "new");
        assert_eq!(gateway.status().retiring, 1);
        assert_eq!(text(&answer(&slow).await.unwrap()), "old");
        pass(200).await;
        assert!(old.open_links().is_empty());
        assert_eq!(gateway.status().retiring, 0);
        assert_eq!(old.heard("tools/call").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_longer_than_it_may_ends_with_the_reason() {
    let old = speaking(Shape::Pipe, "t", "old", 30_000);
    let settings = Settings { drain: Duration::from_secs(2), ..Settings::default() };
    let gateway = start(&old, Setup { settings, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let slow = client.post("tools/call", json!({"name": "t", "arguments": {}}));
    pass(100).await;
    gateway.replace(Vec::new());
    let late = answer(&slow).await.unwrap();
    assert!(error(&late).contains("a reload has removed it from the configuration"), "{late}");
    assert!(old.open_links().is_empty());
    assert!(error(&client.call("t").await).contains("Unknown tool"), "it is not listed any more");
    assert_eq!(gateway.counters.in_flight.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_a_backend_which_does_not_start_go_to_its_successor() {
    let never = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        OPEN => vec![Step::Wait(50_000)],
        _ => plain(heard),
    });
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup { catalog_file: Some(folder.path().join("catalog.json")), ..Setup::default() };
    let gateway = start(&speaking(Shape::Pipe, "t", "before", 0), setup());
    assert_eq!(Client::open(&gateway, json!({})).await.tools().await, ["t"]);
    gateway.shut_down(Duration::ZERO).await;

    let gateway = start(&never, setup());
    let client = Client::open(&gateway, json!({})).await;
    let waiting = client.post("tools/call", json!({"name": "t", "arguments": {}}));
    pass(1_000).await;
    gateway.replace(vec![backend("a", &speaking(Shape::Pipe, "t", "new", 0))]);
    assert_eq!(text(&answer(&waiting).await.unwrap()), "new");
}

#[tokio::test(start_paused = true)]
async fn what_a_session_follows_is_followed_at_the_successor() {
    for shape in [Shape::Pipe, Shape::Web] {
        let (old, new) = (Fake::new(shape, plain), Fake::new(shape, plain));
        let gateway = start(&old, Setup::default());
        let client = Client::open(&gateway, json!({})).await;
        let general = client.session.open_general().unwrap();
        client.call("t1").await;
        assert!(client.ask("resources/subscribe", json!({"uri": "x://y"})).await["result"].is_object());
        client.ask("logging/setLevel", json!({"level": "error"})).await;
        gateway.replace(vec![backend("a", &new)]);
        pass(8_000).await;
        assert!(old.open_links().is_empty());
        let told = new.heard("resources/subscribe");
        assert!(told.iter().any(|one| one.params["uri"] == "x://y"), "{told:?}");
        assert!(new.heard("logging/setLevel").iter().any(|one| one.params["level"] == "error"));
        let link = told.last().unwrap().link;
        new.tell(link, UPDATED, &json!({"uri": "x://y"}));
        assert_eq!(hears(&general, UPDATED).await["params"]["uri"], "x://y");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listen_request_goes_on_at_the_successor() {
    let (old, new) = (Fake::new(Shape::Web, plain), Fake::new(Shape::Web, plain));
    let gateway = start(&old, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let client = Modern {
        gateway: Arc::clone(&gateway),
        principal: signalbox_engine::Principal::anonymous(),
        capabilities: json!({}),
    };
    let stream = crate::listening::listen(&client, &["x://y"]);
    assert_eq!(crate::listening::followed(&stream).await, json!(["x://y"]));
    gateway.replace(vec![backend("a", &new)]);
    pass(8_000).await;
    let link = new.heard("resources/subscribe").last().expect("it is followed").link;
    new.tell(link, UPDATED, &json!({"uri": "x://y"}));
    assert_eq!(hears(&stream, UPDATED).await["params"]["uri"], "x://y");
}

#[tokio::test(start_paused = true)]
async fn a_listen_request_and_what_an_old_session_follows_go_on_at_a_successor_of_the_new_era() {
    let (old, new) = (Fake::new(Shape::Web, plain), Fake::new(Shape::Web, new_era));
    let gateway = start(&old, Setup::default());
    let session = Client::open(&gateway, json!({})).await;
    session.call("t1").await;
    assert!(session.ask("resources/subscribe", json!({"uri": "x://y"})).await["result"].is_object());
    let principal = signalbox_engine::Principal::anonymous();
    let client = Modern { gateway: Arc::clone(&gateway), principal, capabilities: json!({}) };
    let stream = crate::listening::listen(&client, &["x://y"]);
    assert_eq!(crate::listening::followed(&stream).await, json!(["x://y"]));
    let modern = BackendSpec { wish: Wish::Modern, ..lets_through(|_| true) };
    gateway.replace(vec![Backend::new("a", Arc::new(new.clone()), modern)]);
    pass(8_000).await;
    assert!(old.open_links().is_empty());
    let asked = new.heard("subscriptions/listen");
    let named = |one: &&Heard| one.params["notifications"]["resourceSubscriptions"] == json!(["x://y"]);
    assert_eq!(asked.iter().filter(named).count(), 2, "one for each of them: {asked:?}");
}

/// A backend whose tool asks for a name before it answers.
fn curious(heard: &Heard) -> Vec<Step> {
    let form = json!({"message": "name?", "requestedSchema": {"type": "object", "properties": {}}});
    match &*heard.method {
        "tools/call" => vec![Step::Ask(7, "elicitation/create", form), Step::Hear, Step::Say(said("done"))],
        ANSWER => Vec::new(),
        _ => plain(heard),
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_is_finished_by_the_backend_that_asked() {
    for shape in [Shape::Pipe, Shape::Web] {
        let (old, new) = (Fake::new(shape, curious), Fake::new(shape, curious));
        let gateway = start(&old, Setup::default());
        let client = Modern::askable(&gateway);
        let asked = client.call("t1", json!({})).await;
        let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
        gateway.replace(vec![backend("a", &new)]);
        pass(500).await;
        let reply = json!({"requestState": state,
            "inputResponses": {"q1": {"action": "accept", "content": {"name": "Ada"}}}});
        assert_eq!(text(&client.call("t1", reply).await), "done");
        assert_eq!((old.heard("tools/call").len(), new.heard("tools/call").len()), (1, 0), "it runs once");
        pass(500).await;
        assert!(old.open_links().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_whose_backend_is_gone_is_over_and_says_why() {
    let (old, new) = (Fake::new(Shape::Pipe, curious), Fake::new(Shape::Pipe, curious));
    let gateway = start(&old, Setup::default());
    let client = Modern::askable(&gateway);
    let asked = client.call("t1", json!({})).await;
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
    gateway.replace(vec![backend("a", &new)]);
    pass(15_000).await;
    assert!(old.open_links().is_empty());
    let reply = json!({"requestState": state, "inputResponses": {"q1": {"action": "accept", "content": {}}}});
    let over = client.call("t1", reply).await;
    assert!(error(&over).contains("a reload has replaced it"), "{over}");
    assert!(new.heard("tools/call").is_empty(), "nothing runs a second time");
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_of_a_backend_that_was_removed_is_refused_and_runs_nowhere() {
    let (old, other) = (Fake::new(Shape::Pipe, curious), Fake::new(Shape::Pipe, plain));
    let gateway = start(&old, Setup::default());
    let client = Modern::askable(&gateway);
    let asked = client.call("t1", json!({})).await;
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
    gateway.replace(vec![backend("b", &other)]);
    pass(15_000).await;
    // Another backend has a tool of this name by now, and gets nothing of a call that was never its own.
    let reply = json!({"requestState": state, "inputResponses": {"q1": {"action": "accept", "content": {}}}});
    let over = client.call("t1", reply).await;
    assert!(error(&over).contains("a reload has removed it"), "{over}");
    assert!(old.open_links().is_empty() && other.heard("tools/call").is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_filter_hides_and_shows_tools_on_the_same_connection() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/list" => vec![Step::Say(tools(&["one", "two"]))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["one", "two"]);
    let general = client.session.open_general().unwrap();
    first(&gateway).retune(lets_through(|tool| tool == "one"), true);
    // At once, and not only when the backend has listed its tools again.
    assert_eq!(client.tools().await, ["one"]);
    assert!(client.call("two").await["error"].is_object());
    hears(&general, TOOLS_CHANGED).await;
    first(&gateway).retune(lets_through(|_| true), true);
    hears(&general, TOOLS_CHANGED).await;
    assert_eq!(client.tools().await, ["one", "two"]);
    assert_eq!(fake.heard(OPEN).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_words_of_a_backend_do_not_touch_the_lists_of_its_successor() {
    let old = speaking(Shape::Pipe, "before", "old", 5_000);
    let gateway = start(&old, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let slow = client.post("tools/call", json!({"name": "before", "arguments": {}}));
    gateway.replace(vec![backend("a", &speaking(Shape::Pipe, "after", "new", 0))]);
    pass(1_000).await;
    assert_eq!(client.tools().await, ["after"]);
    old.tell(1, TOOLS_CHANGED, &json!({}));
    assert_eq!(text(&answer(&slow).await.unwrap()), "old");
    pass(5_000).await;
    assert_eq!(client.tools().await, ["after"], "it is listed, too, after the old one is gone");
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_is_down_is_tried_again_without_waiting() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        (OPEN, 1..=5) => vec![Step::Refuse(signalbox_engine::FaultKind::BackendDown)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    pass(8_500).await;
    let tried = fake.heard(OPEN).len();
    first(&gateway).try_now();
    pass(100).await;
    assert_eq!(fake.heard(OPEN).len(), tried + 1, "in the middle of a wait of 8 s");
}

/// On a real clock and several threads: nobody's call is lost between two sets of backends.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_is_lost_while_backends_are_replaced_again_and_again() {
    const CLIENTS: usize = 8;
    let gateway = start(&speaking(Shape::Pipe, "t", "v", 10), Setup::default());
    let steady = speaking(Shape::Web, "steady", "s", 10);
    gateway.replace(vec![first(&gateway), backend("b", &steady)]);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let calling = (0..CLIENTS).map(|_| {
        let (gateway, stopped) = (Arc::clone(&gateway), stopped.clone());
        tokio::spawn(async move {
            let client = Client::open(&gateway, json!({})).await;
            client.tools().await;
            let mut calls = 0;
            while !*stopped.borrow() {
                assert_eq!(text(&client.call("t").await), "v");
                assert_eq!(text(&client.call("steady").await), "s");
                calls += 2;
            }
            calls
        })
    });
    let calling: Vec<_> = calling.collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut fakes = Vec::new();
    for _ in 0..50 {
        let fake = speaking(Shape::Pipe, "t", "v", 10);
        let same = Arc::clone(&gateway.backends()[1]);
        gateway.replace(vec![backend("a", &fake), same]);
        fakes.push(fake);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.send_replace(true);
    let mut calls = 0;
    for one in calling {
        calls += one.await.expect("every call is answered, and rightly");
    }
    assert!(calls > 100, "{calls}");
    // One for the gateway itself, and one for each session.
    assert_eq!(steady.heard(OPEN).len(), CLIENTS + 1, "the one that stays has the connections it had");
    let last = fakes.pop().unwrap();
    let until = tokio::time::Instant::now() + Duration::from_secs(20);
    while gateway.status().retiring > 0 && tokio::time::Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(fakes.iter().all(|fake| fake.open_links().is_empty()), "what was replaced has ended");
    assert!(!last.open_links().is_empty());
}

/// Takes the backend away in the very moment in which a session is about to follow one of its resources.
#[derive(Default)]
struct Remover(OnceLock<Arc<Gateway>>);

impl Interceptor for Remover {
    fn name(&self) -> &'static str {
        "remover"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        if case.phase == Phase::Request && case.message.method() == Some("resources/subscribe") {
            let gateway = Arc::clone(self.0.get().unwrap());
            let (reloads, runtime) = (Arc::clone(&gateway), tokio::runtime::Handle::current());
            // Sessions are told at the end of it, and this one is locked here: it goes on meanwhile.
            std::thread::spawn(move || {
                let _runtime = runtime.enter();
                reloads.replace(Vec::new());
            });
            while !gateway.backends().is_empty() {
                std::thread::yield_now();
            }
        }
        Verdict::Pass.into()
    }
}

/// `resources/subscribe` is answered though its backend is removed at the same time.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_races_the_removal_of_its_backend_is_answered() {
    let remover = Arc::new(Remover::default());
    let chain = Chain::new(vec![Arc::clone(&remover) as Arc<dyn Interceptor>]);
    let gateway = start_with(&Fake::new(Shape::Web, plain), Setup::default(), chain);
    remover.0.set(Arc::clone(&gateway)).ok().unwrap();
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    let refused = client.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    assert!(error(&refused).contains("`a`"), "{refused}");
}
