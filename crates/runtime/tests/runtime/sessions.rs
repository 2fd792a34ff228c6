//! Sessions that end, clients that do not read, and a gateway that stops.

use crate::client::{Client, answer, envelope, next, text};
use crate::fake::{Fake, Heard, Shape, Step, plain, said};
use crate::{Setup, pass, start, status};
use serde_json::json;
use signalbox_engine::Caller;
use signalbox_engine::front::Mode;
use signalbox_runtime::outbox::OUTBOX_LIMIT;
use signalbox_runtime::session_store::SessionStore;
use signalbox_runtime::{Gateway, GatewayParts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// A session that ended while it waited for lists gets no connection when the backend comes up.
#[tokio::test(start_paused = true)]
async fn a_session_closed_while_it_waits_for_lists_leaves_no_connection_behind() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        ("initialize", 1) => [Step::Wait(3_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { max_children: 3, ..Setup::default() });
    let mut streams = Vec::new();
    for _ in 0..4 {
        let client = Client::open(&gateway, json!({"sampling": {}})).await;
        streams.push(client.post("tools/list", json!({})));
        pass(100).await;
        client.session.close();
    }
    pass(5_000).await;
    assert_eq!(fake.open_links(), [1], "only the gateway's own connection has a reason to be open");
    assert_eq!(status(&gateway).connections, 1);

    let client = Client::open(&gateway, json!({"sampling": {}})).await;
    let said = client.call("t1").await;
    assert_ne!(text(&said), "link 1", "a session that can be asked back has a connection of its own");
    client.session.close();
    pass(100).await;
    assert_eq!(fake.open_links(), [1]);
}

/// A client that never ends its sessions was refused for an hour.
#[tokio::test(start_paused = true)]
async fn at_the_limit_the_idlest_session_of_a_caller_gives_way() {
    for each in [true, false] {
        let mut settings = signalbox_runtime::Settings::default();
        *if each { &mut settings.max_sessions_each } else { &mut settings.max_sessions } = 2;
        let gateway = start(&Fake::new(Shape::Pipe, plain), Setup { settings, ..Setup::default() });
        let open = |id: &str| gateway.open_session(Caller::anonymous("test"), Mode::Session, id, "test");
        let first = Client::open(&gateway, json!({})).await;
        pass(1_000).await;
        let second = Client::open(&gateway, json!({})).await;
        assert!(open("x").is_err(), "neither has been idle for a minute");
        let listening = first.session.open_general().unwrap();
        pass(59_500).await;
        assert!(open("x").is_err(), "one has a stream open, the other was idle for less than a minute");
        pass(1_000).await;
        let third = open("x").unwrap();
        assert!(second.session.is_ended() && !first.session.is_ended() && !third.is_ended());
        assert!(open("y").is_err());
        drop(listening);
    }
}

/// The same client was refused again once the gateway had been restarted.
#[tokio::test(start_paused = true)]
async fn sessions_of_an_earlier_process_give_way_too() {
    let mut settings = signalbox_runtime::Settings { max_sessions_each: 2, ..Default::default() };
    settings.session_timeout = Duration::from_secs(3600);
    let folder = tempfile::tempdir().unwrap();
    let caller = || Caller::anonymous("test");
    for (name, idle) in [("a", 600), ("b", 10)] {
        let file = folder.path().join(name.repeat(64));
        let principal = caller().principal().as_str().to_owned();
        let stored = json!({"principal": principal, "revision": "2025-11-25", "capabilities": {}});
        std::fs::write(&file, stored.to_string()).unwrap();
        let used = SystemTime::now() - Duration::from_secs(idle);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(used).unwrap();
    }
    let store = SessionStore::open(folder.path().to_owned(), settings.session_timeout).unwrap();
    let parts = GatewayParts::unguarded(settings, Vec::new()).unwrap();
    let gateway = Gateway::new(GatewayParts { session_store: Some(store), ..parts }).unwrap();
    let open = |id: &str| gateway.open_session(caller(), Mode::Session, id, "test");
    assert!(open("x").is_ok(), "the one that was idle for ten minutes gives way");
    assert!(open("y").is_err(), "neither has been idle for a minute");
}

/// M9: a pipe whose other end never reads is given up, so that whoever waits on it does not wait forever.
#[tokio::test(start_paused = true)]
async fn a_pipe_that_is_never_read_ends() {
    let gateway = start(&Fake::new(Shape::Pipe, plain), Setup::default());
    let session = gateway.open_session(Caller::anonymous("test"), Mode::Pipe, "pipe", "test").unwrap();
    let stream = session.open_general().unwrap();
    for id in 0..OUTBOX_LIMIT + 10 {
        session.receive(&stream, envelope(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
    }
    let mut read = 0;
    while next(&stream).await.is_some() {
        read += 1;
    }
    assert_eq!(read, OUTBOX_LIMIT);
    assert!(gateway.status().dropped["slow_client"] >= 1);
}

/// M9: so is the general stream of a session.
#[tokio::test(start_paused = true)]
async fn a_general_stream_that_is_never_read_ends_and_the_session_goes_on() {
    let fake = Fake::new(Shape::Web, plain);
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    let general = client.session.open_general().unwrap();
    assert_eq!(text(&client.call("t1").await), "link 2");
    for _ in 0..OUTBOX_LIMIT + 10 {
        fake.tell(2, "notifications/of/its/own", &json!({}));
    }
    let mut read = 0;
    while next(&general).await.is_some() {
        read += 1;
    }
    assert_eq!(read, OUTBOX_LIMIT);
    assert_eq!(text(&client.call("t1").await), "link 2");
}

/// A call that waits for a backend to start again is answered when the gateway stops.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_start_is_answered_when_the_gateway_stops() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    fake.kill(1);
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    pass(100).await;
    assert_eq!(status(&gateway).waiting, 1);
    gateway.shut_down(Duration::ZERO).await;
    let refused = answer(&stream).await.expect("the call was dropped without an answer");
    assert!(refused["error"]["message"].as_str().unwrap().contains("shutting down"), "{refused}");
    assert_eq!(gateway.status().in_flight, 0);
}

/// Clients that come, call once and leave their session open do not lock the backend for others.
#[tokio::test(start_paused = true)]
async fn the_child_of_a_session_without_a_connection_makes_room_and_is_started_again() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup { max_children: 3, ..Setup::default() });
    let mut clients = Vec::new();
    for number in 0..20 {
        let client = Client::open(&gateway, json!({"roots": {}})).await;
        assert_eq!(client.tools().await, ["t1"], "client {number}");
        let said = client.call("t1").await;
        assert!(said["result"].is_object(), "client {number}: {said}");
        clients.push(client);
        pass(50).await;
        assert!(fake.open_links().len() <= 3, "{:?}", fake.open_links());
    }
    let before = fake.heard("open").len();
    assert!(clients[0].call("t1").await["result"].is_object(), "the first comes back");
    assert_eq!(fake.heard("open").len(), before + 1);
}

/// A child that is of use to its session keeps its place.
#[tokio::test(start_paused = true)]
async fn a_child_with_a_connection_call_or_subscription_keeps_its_place() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, &heard.params["arguments"]["slow"]) {
        ("tools/call", slow) if slow.is_boolean() => [Step::Wait(30_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { max_children: 4, ..Setup::default() });
    let roots = || json!({"roots": {}});
    let connected = Client::open(&gateway, roots()).await;
    assert_eq!(text(&connected.call("t1").await), "link 2");
    let general = connected.session.open_general().unwrap();
    let follows = Client::open(&gateway, roots()).await;
    let followed = follows.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    assert!(followed["result"].is_object(), "{followed}");
    let busy = Client::open(&gateway, roots()).await;
    // Its client is gone before the answer, and may come back for it.
    drop(busy.post("tools/call", json!({"name": "t1", "arguments": {"slow": true}})));
    pass(500).await;
    let late = Client::open(&gateway, roots()).await;
    let refused = late.call("t1").await;
    assert_eq!(refused["error"]["data"]["reason"], "overloaded", "{refused}");
    assert_eq!(fake.open_links(), [1, 2, 3, 4]);
    drop(general);
    assert_eq!(text(&late.call("t1").await), "link 5");
    pass(100).await;
    assert_eq!(fake.open_links(), [1, 3, 4, 5]);
}

/// A server that asks for roots when it hears `initialized`, and says in each call whether it has them.
fn rooted(heard: &Heard, has: &AtomicBool) -> Vec<Step> {
    match &*heard.method {
        "notifications/initialized" if heard.link > 1 => vec![Step::Ask(7, "roots/list", json!({}))],
        "answer" => {
            has.store(true, Ordering::SeqCst);
            Vec::new()
        }
        "tools/call" => vec![Step::Say(said(if has.load(Ordering::SeqCst) { "inside" } else { "anywhere" }))],
        _ => plain(heard),
    }
}

/// The first call on a new connection comes after the roots that the server asked for.
#[tokio::test(start_paused = true)]
async fn the_first_call_waits_until_the_server_knows_the_roots() {
    for shape in [Shape::Pipe, Shape::Web] {
        let has = Arc::new(AtomicBool::new(false));
        let known = Arc::clone(&has);
        let fake = Fake::new(shape, move |heard| rooted(heard, &known));
        let gateway = start(&fake, Setup::default());
        let client = Client::open(&gateway, json!({"roots": {}})).await;
        let general = client.session.open_general().unwrap();
        let call = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
        let question = next(&general).await.unwrap();
        assert_eq!(question["method"], "roots/list");
        pass(300).await;
        let stream = client.session.open_stream().unwrap();
        let roots = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
        client.session.receive(&stream, envelope(&roots));
        assert_eq!(text(&answer(&call).await.unwrap()), "inside");
        assert_eq!(text(&client.call("t1").await), "inside");
        assert_eq!(fake.heard_on(2, "ping").len(), 4, "one before the roots and three after");
    }
}

/// A client that does not tell its roots, or a server that answers no ping, holds the call up for 2 s.
#[tokio::test(start_paused = true)]
async fn the_first_call_waits_for_two_seconds_at_most() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "ping" => Vec::new(),
        _ => rooted(heard, &AtomicBool::new(false)),
    });
    let gateway = start(&fake, Setup::default());
    pass(500).await;
    let client = Client::open(&gateway, json!({"roots": {}})).await;
    let _general = client.session.open_general().unwrap();
    let asked = tokio::time::Instant::now();
    assert_eq!(text(&client.call("t1").await), "anywhere");
    let waited = asked.elapsed().as_millis();
    assert!((1_900..2_600).contains(&waited), "{waited} ms");
}

/// A call that waited for the handshake may afterwards be silent for as long as any other.
#[tokio::test(start_paused = true)]
async fn a_call_that_waited_for_the_handshake_has_its_whole_time() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        ("initialize", 2) => [Step::Wait(8_000)].into_iter().chain(plain(heard)).collect(),
        ("tools/call", _) => [Step::Wait(9_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { timeout: Duration::from_secs(10), ..Setup::default() });
    pass(500).await;
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(text(&client.call("t1").await), "link 2");
}

/// A client that takes only JSON cannot be asked on its call's stream; the server is told, and it is counted.
#[tokio::test(start_paused = true)]
async fn a_question_to_a_client_that_takes_only_json_is_refused_and_counted() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "tools/call" => vec![Step::Ask(7, "elicitation/create", json!({})), Step::Hear, Step::Say(said("done"))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({"elicitation": {}})).await;
    let stream = client.session.open_answer_stream().unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t1", "arguments": {}}});
    client.session.receive(&stream, envelope(&call));
    assert_eq!(text(&next(&stream).await.unwrap()), "done");
    assert!(fake.heard("answer")[0].params["error"].is_object());
    assert_eq!(gateway.status().dropped.get("no_stream"), Some(&1));
    drop(stream);

    // On a stream of its own the client can be asked all the same.
    let general = client.session.open_general().unwrap();
    let stream = client.session.open_answer_stream().unwrap();
    client.session.receive(&stream, envelope(&call));
    assert_eq!(next(&general).await.unwrap()["method"], "elicitation/create");
}

/// A session that ends while its own connection reads lists says nothing against the backend.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_is_no_error_of_its_backend() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        ("tools/list", 2) => vec![Step::Wait(10_000)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    pass(500).await;
    let client = Client::open(&gateway, json!({"sampling": {}})).await;
    let _list = client.post("tools/list", json!({}));
    pass(500).await;
    assert_eq!(fake.heard_on(2, "tools/list").len(), 1);
    client.session.close();
    pass(500).await;
    assert_eq!(fake.open_links(), [1]);
    assert_eq!(status(&gateway).last_error, None);
}
