//! Backends whose process runs only while somebody uses it.

use crate::bridged_following::new_era;
use crate::client::{Client, Modern, answer, next, text};
use crate::fake::{Fake, OPEN, Shape, Step, plain, said, tools};
use crate::listening::{followed, listen};
use crate::{Setup, pass, spec, start, status};
use serde_json::{Value, json};
use signalbox_engine::back::Wish;
use signalbox_engine::{Fact, FactSink};
use signalbox_runtime::{Backend, Gateway, Lifetime, StartPolicy};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const IDLE: Duration = Duration::from_secs(600);
/// Longer than [`IDLE`], in milliseconds.
const LONG: u64 = 601_000;
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

fn first_use() -> Lifetime {
    Lifetime { start: StartPolicy::FirstUse, idle_stop: None }
}

fn stopped_when_idle() -> Lifetime {
    Lifetime { start: StartPolicy::Eager, idle_stop: Some(IDLE) }
}

/// Has an earlier run keep the lists of this backend.
async fn keep_lists(fake: &Fake, wish: Wish, file: &Path) {
    let gateway = start(fake, Setup { wish, catalog_file: Some(file.to_owned()), ..Setup::default() });
    Client::open(&gateway, json!({})).await.tools().await;
    gateway.shut_down(Duration::ZERO).await;
}

/// A gateway whose backend is asleep, since what it lists was kept.
async fn asleep(fake: &Fake, setup: Setup, file: &Path) -> Arc<Gateway> {
    keep_lists(fake, setup.wish, file).await;
    let gateway = start(fake, Setup { catalog_file: Some(file.to_owned()), ..setup });
    pass(100).await;
    assert_eq!((status(&gateway).state, fake.open_links().len()), ("asleep", 0));
    gateway
}

async fn hears(general: &signalbox_runtime::StreamReader, method: &str) {
    while next(general).await.expect("the general stream ended")["method"] != method {}
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl FactSink for Notes {
    fn wants_messages(&self) -> bool {
        true
    }

    fn fact(&self, fact: &Fact) {
        if let Fact::Decision(decision) = fact {
            let words = decision.each().map(|(by, ruling)| format!("{by} {}: {}", ruling.verdict, ruling.detail));
            self.0.lock().unwrap().extend(words);
        }
    }
}

impl Notes {
    fn stopped(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().filter(|words| words.starts_with("idle stopped")).cloned().collect()
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_until_the_first_call_and_kept_lists_are_shown() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new(Shape::Pipe, plain));
    let setup = Setup { lifetime: first_use(), ..Setup::default() };
    let gateway = asleep(&fake, setup, &folder.path().join("catalog.json")).await;
    let before = fake.heard(OPEN).len();
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    // Neither lists of another kind of client, nor pings, nor time, nor a look at its state wake it.
    assert_eq!(Client::open(&gateway, json!({"sampling": {}})).await.tools().await, ["t1"]);
    client.ask("logging/setLevel", json!({"level": "info"})).await;
    pass(7_200_000).await;
    let told = status(&gateway);
    assert_eq!((told.state, told.lists["tools"], told.restarts), ("asleep", 1, 0));
    assert!(gateway.is_ready());
    assert_eq!(fake.heard(OPEN).len(), before);

    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(text(&client.call("t1").await), format!("link {}", before + 1));
    pass(7_200_000).await;
    assert_eq!((status(&gateway).state, fake.open_links().len()), ("up", 1), "without `idle_stop` it stays");
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_was_never_listed_is_started_once_to_learn_its_lists() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "prompts/list" => [Step::Wait(2_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { lifetime: first_use(), ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    pass(1_000).await;
    assert_eq!((status(&gateway).state, fake.open_links().len()), ("asleep", 0));
    // A client that can be asked needs a process of its own; the gateway's runs only until the era is known.
    let askable = Client::open(&gateway, json!({"sampling": {}})).await;
    assert_eq!(text(&askable.call("t1").await), "link 2");
    pass(5_000).await;
    assert_eq!(fake.open_links(), [2]);
    assert_eq!(text(&client.call("t1").await), "link 3");
    assert_eq!(fake.open_links(), [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_nobody_uses_is_stopped_and_the_next_call_starts_it() {
    let fake = Fake::new(Shape::Pipe, plain);
    let notes = Arc::new(Notes::default());
    let facts: Vec<Arc<dyn FactSink>> = vec![notes.clone()];
    let gateway = start(&fake, Setup { lifetime: stopped_when_idle(), facts, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    let _general = client.session.open_general().unwrap();
    for link in 1..4 {
        assert_eq!(text(&client.call("t1").await), format!("link {link}"));
        pass(LONG / 2).await;
        assert_eq!(text(&client.call("t1").await), format!("link {link}"), "it was used in between");
        assert_eq!(status(&gateway).state, "up");
        pass(LONG).await;
        assert_eq!((status(&gateway).state, fake.open_links().len()), ("asleep", 0));
        assert_eq!(client.tools().await, ["t1"]);
    }
    let stopped = notes.stopped();
    assert_eq!(stopped.len(), 3, "{stopped:?}");
    assert!(stopped[0].contains("backend `a`") && stopped[0].contains("is lost"), "{stopped:?}");
    let told = status(&gateway);
    assert_eq!((told.restarts, told.last_error), (0, None), "that is no failure");
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_start_one_process_and_wait_for_it() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new(Shape::Pipe, plain));
    let setup = Setup { lifetime: first_use(), ..Setup::default() };
    let gateway = asleep(&fake, setup, &folder.path().join("catalog.json")).await;
    let (opened, client) = (fake.heard(OPEN).len(), Client::open(&gateway, json!({})).await);
    let calls: Vec<_> = (0..20).map(|_| client.post("tools/call", json!({"name": "t1", "arguments": {}}))).collect();
    for call in &calls {
        assert_eq!(text(&answer(call).await.unwrap()), format!("link {}", opened + 1));
    }
    assert_eq!(fake.heard(OPEN).len(), opened + 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_a_subscription_and_a_task_keep_the_process() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "initialize" => vec![Step::Say(json!({
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "fake", "version": "1"},
            "capabilities": {"tools": {}, "resources": {"subscribe": true}, "tasks": {"requests": {"tools": {"call": {}}}}}
        }))],
        "tools/list" => vec![Step::Say(tools(&["slow", "task"]))],
        "tools/call" if heard.params["name"] == "slow" => vec![Step::Wait(LONG * 3), Step::Say(said("done"))],
        "tools/call" => vec![Step::Say(json!({"task": {
            "taskId": "t", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 4 * LONG
        }}))],
        _ => plain(heard),
    });
    let timeout = Duration::from_secs(24 * 3600);
    let gateway = start(&fake, Setup { lifetime: stopped_when_idle(), timeout, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    let _general = client.session.open_general().unwrap();
    let slow = client.post("tools/call", json!({"name": "slow", "arguments": {}}));
    pass(LONG * 2).await;
    assert_eq!(fake.open_links(), [1], "a call is in flight");
    pass(LONG).await;
    assert_eq!(text(&answer(&slow).await.unwrap()), "done");

    client.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    pass(LONG * 3).await;
    assert_eq!(fake.open_links(), [1], "somebody follows a resource");
    client.ask("resources/unsubscribe", json!({"uri": "x://y"})).await;
    pass(LONG).await;
    assert_eq!(fake.open_links().len(), 0);

    client.call("task").await;
    pass(LONG * 3).await;
    assert_eq!(fake.open_links(), [2], "a task is worked on");
    pass(LONG * 2).await;
    assert_eq!(fake.open_links().len(), 0, "it is over its time");
}

#[tokio::test(start_paused = true)]
async fn the_process_of_a_session_is_stopped_when_idle_and_started_when_the_session_calls_again() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup { lifetime: stopped_when_idle(), ..Setup::default() });
    let client = Client::open(&gateway, json!({"sampling": {}})).await;
    let general = client.session.open_general().unwrap();
    assert_eq!(text(&client.call("t1").await), "link 2");
    client.ask("logging/setLevel", json!({"level": "info"})).await;
    pass(LONG).await;
    assert_eq!(fake.open_links().len(), 0);
    pass(LONG).await;
    assert_eq!(fake.open_links().len(), 0, "nothing but a call starts it again");
    assert_eq!(text(&client.call("t1").await), "link 3", "the gateway's own process is not needed for it");
    drop(general);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_differs_at_the_next_start_is_told() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        ("tools/list", 2..) => vec![Step::Say(tools(&["t1", "t2"]))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { lifetime: stopped_when_idle(), ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    let general = client.session.open_general().unwrap();
    pass(LONG).await;
    assert_eq!(client.tools().await, ["t1"]);
    client.call("t1").await;
    hears(&general, TOOLS_CHANGED).await;
    assert_eq!(client.tools().await, ["t1", "t2"]);
}

/// A listen request and `resources/subscribe` are uses, whichever era the backend speaks.
#[tokio::test(start_paused = true)]
async fn whoever_wants_to_hear_of_a_resource_wakes_the_backend() {
    for wish in [Wish::Legacy, Wish::Modern] {
        let script = if wish == Wish::Modern { new_era } else { plain };
        for kept in [true, false] {
            let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new(Shape::Pipe, script));
            let file = folder.path().join("catalog.json");
            let setup =
                || Setup { wish, lifetime: Lifetime { idle_stop: Some(IDLE), ..first_use() }, ..Setup::default() };
            let gateway = if kept {
                asleep(&fake, setup(), &file).await
            } else {
                let gateway = start(&fake, setup());
                Client::open(&gateway, json!({})).await.tools().await;
                pass(1_000).await;
                assert_eq!(status(&gateway).state, "asleep");
                gateway
            };
            let client = Client::open(&gateway, json!({})).await;
            let subscribed = client.ask("resources/subscribe", json!({"uri": "x://y"})).await;
            assert!(subscribed["result"].is_object(), "{subscribed}");
            pass(LONG).await;
            assert_eq!((status(&gateway).state, fake.open_links().len()), ("up", 1));
            client.ask("resources/unsubscribe", json!({"uri": "x://y"})).await;
            pass(LONG).await;
            assert_eq!(status(&gateway).state, "asleep");

            let modern = Modern { capabilities: json!({}), ..Modern::askable(&gateway) };
            let stream = listen(&modern, &["x://y"]);
            assert_eq!(followed(&stream).await, json!(["x://y"]));
            pass(LONG).await;
            assert_eq!((status(&gateway).state, fake.open_links().len()), ("up", 1));
            drop(stream);
            pass(LONG).await;
            assert_eq!(status(&gateway).state, "asleep");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn other_terms_are_taken_over_while_it_runs() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new(Shape::Pipe, plain));
    let setup = Setup { lifetime: first_use(), ..Setup::default() };
    let gateway = asleep(&fake, setup, &folder.path().join("catalog.json")).await;
    let backend = Arc::clone(&gateway.backends()[0]);
    backend.retune(spec(Lifetime::default(), |_| true), false);
    pass(LONG).await;
    assert_eq!((status(&gateway).state, fake.open_links().len()), ("up", 1), "it is to run from the start");
    backend.retune(spec(stopped_when_idle(), |_| true), false);
    pass(LONG).await;
    assert_eq!(status(&gateway).state, "asleep");
    let client = Client::open(&gateway, json!({})).await;
    let opened = fake.heard(OPEN).len();
    backend.retune(spec(Lifetime { idle_stop: Some(IDLE), ..first_use() }, |tool| tool != "t1"), true);
    pass(3_000).await;
    assert_eq!(fake.heard(OPEN).len(), opened + 1, "other tools are listed by a process");
    assert_eq!((status(&gateway).state, client.tools().await.len()), ("asleep", 0));
}

/// What is known under its name was listed by another program.
#[tokio::test(start_paused = true)]
async fn one_that_takes_the_place_of_another_is_started_once_to_learn_its_lists() {
    let (old, new) = (
        Fake::new(Shape::Pipe, plain),
        Fake::new(Shape::Pipe, |heard| match &*heard.method {
            "tools/list" => vec![Step::Say(tools(&["t2"]))],
            _ => plain(heard),
        }),
    );
    let gateway = start(&old, Setup { lifetime: first_use(), ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    pass(1_000).await;
    gateway.replace(vec![Backend::new("a", Arc::new(new.clone()), spec(first_use(), |_| true))]);
    pass(3_000).await;
    assert_eq!((status(&gateway).state, new.heard(OPEN).len(), new.open_links().len()), ("asleep", 1, 0));
    assert_eq!(client.tools().await, ["t2"]);
    assert_eq!(text(&client.call("t2").await), "link 2");
}

/// Tools that the configuration does not let through any more are not shown from the kept lists.
#[tokio::test(start_paused = true)]
async fn kept_lists_pass_the_filter() {
    let (folder, fake) = (tempfile::tempdir().unwrap(), Fake::new(Shape::Pipe, plain));
    let file = folder.path().join("catalog.json");
    keep_lists(&fake, Wish::Legacy, &file).await;
    let gateway = Gateway::new(signalbox_runtime::GatewayParts {
        catalog_file: Some(file),
        ..signalbox_runtime::GatewayParts::unguarded(
            signalbox_runtime::Settings::default(),
            vec![Backend::new("a", Arc::new(fake.clone()), spec(first_use(), |tool| tool != "t1"))],
        )
        .unwrap()
    })
    .unwrap();
    gateway.start();
    pass(100).await;
    let tools: Vec<String> = Client::open(&gateway, json!({})).await.tools().await;
    assert_eq!((status(&gateway).state, tools), ("asleep", Vec::new()));
}

/// What was kept under its name was listed by another program.
#[tokio::test(start_paused = true)]
async fn one_whose_command_has_changed_since_the_last_run_is_started_once_to_learn_its_lists() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.json");
    keep_lists(&Fake::new(Shape::Pipe, plain), Wish::Legacy, &file).await;
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/list" => vec![Step::Say(tools(&["t2"]))],
        _ => plain(heard),
    });
    let setup = || Setup { lifetime: first_use(), source: 7, catalog_file: Some(file.clone()), ..Setup::default() };
    let gateway = start(&fake, setup());
    pass(1_000).await;
    assert_eq!((status(&gateway).state, fake.heard(OPEN).len()), ("asleep", 1));
    assert_eq!(Client::open(&gateway, json!({})).await.tools().await, ["t2"]);
    gateway.shut_down(Duration::ZERO).await;
    let gateway = start(&fake, setup());
    pass(1_000).await;
    assert_eq!((status(&gateway).state, fake.heard(OPEN).len()), ("asleep", 1), "that is known from now on");
}

/// A remote server runs whether or not somebody uses it.
#[tokio::test(start_paused = true)]
async fn a_backend_without_a_process_is_not_concerned() {
    let fake = Fake::new(Shape::Web, plain);
    let lifetime = Lifetime { start: StartPolicy::FirstUse, idle_stop: Some(IDLE) };
    let gateway = start(&fake, Setup { lifetime, ..Setup::default() });
    pass(LONG * 2).await;
    assert_eq!(status(&gateway).state, "up");
    let _: Value = Client::open(&gateway, json!({})).await.call("t1").await;
}
