//! Failures hurt their own calls alone: children are killed, backends never answer, are down, or lose their sessions.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::scene::{
    alive, ask, backend_status, call, child, eventually, lists_saved, pids, process_of, remote, signal, text,
    tool_names, web_fixture,
};

const LIST: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{}}"#;

async fn session(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap()
}

/// Two children of the fixture, whose names therefore all collide.
async fn two_children(more: &str) -> GatewayProcess {
    let config = child("one", ServedEra::Old, more).unwrap() + &child("two", ServedEra::Old, "").unwrap();
    GatewayProcess::serve(&config).await.unwrap()
}

fn in_background(client: &HttpClient, tool: &str, ms: u64) -> tokio::task::JoinHandle<Value> {
    let (client, message) = (client.clone(), call(9, tool, &json!({"ms": ms})));
    tokio::spawn(async move { client.post(&message.to_string()).await.unwrap().message().unwrap() })
}

/// Waits until a backend works on so many requests.
async fn busy(gateway: &GatewayProcess, name: &str, wanted: u64) {
    let data_dir = gateway.data_dir();
    let look = async || backend_status(&data_dir, name).await.ok().filter(|one| one["in_flight"] == wanted);
    eventually("a backend at work", look).await.unwrap();
}

/// Proves NO-4.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_child_fails_its_call_only_and_comes_back_under_the_same_names() {
    let gateway = two_children("").await;
    let (victim, other) = (session(&gateway).await, session(&gateway).await);
    let before = victim.post(LIST).await.unwrap().body;
    assert!(tool_names(&victim).await.unwrap().contains(&"two__slow".to_owned()));
    let pid = process_of(&victim, "one__whoami").await.unwrap();
    assert_eq!(pids(&backend_status(&gateway.data_dir(), "one").await.unwrap()), [pid]);

    let dying = in_background(&victim, "one__slow", 60_000);
    let living = in_background(&other, "two__slow", 2_500);
    busy(&gateway, "one", 1).await;
    busy(&gateway, "two", 1).await;
    signal(pid, "KILL").await.unwrap();
    let fault = dying.await.unwrap();
    assert_eq!(fault["error"]["data"]["reason"], "backend_died", "{fault}");
    assert!(fault["error"]["message"].as_str().unwrap().contains("signal 9"), "{fault}");
    assert_eq!(fault["id"], 9);
    assert!(!living.is_finished());

    // The child is on its way back: a call waits for it, and the list is whole meanwhile.
    let waiting = tokio::spawn({
        let client = other.clone();
        async move { process_of(&client, "one__whoami").await.unwrap() }
    });
    assert_eq!(other.post(LIST).await.unwrap().body, before);
    let newer = waiting.await.unwrap();
    assert!(newer != pid && alive(newer) && !alive(pid));
    assert_eq!(text(&living.await.unwrap()).unwrap(), "slept 2500 ms");
    let status = backend_status(&gateway.data_dir(), "one").await.unwrap();
    assert_eq!((status["state"].as_str(), pids(&status)), (Some("up"), vec![newer]));
    assert_eq!(victim.post(LIST).await.unwrap().body, before);
    assert_eq!(ask(&victim, "two__count", json!({})).await.unwrap(), "1");
}

/// Proves NO-4.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_crashes_is_told_apart_and_restarted() {
    let gateway = two_children("").await;
    let client = session(&gateway).await;
    let pid = process_of(&client, "one__whoami").await.unwrap();
    let fault = client.request(1, "tools/call", json!({"name": "one__crash", "arguments": {}})).await.unwrap();
    assert_eq!(fault["error"]["data"]["reason"], "backend_died", "{fault}");
    assert!(fault["error"]["message"].as_str().unwrap().contains("signal 6"), "{fault}");
    assert_ne!(process_of(&client, "one__whoami").await.unwrap(), pid);
}

/// A server that takes two seconds for one of its tools and does not care whether it was cancelled.
const STUBBORN: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"stubborn","inputSchema":{}},{"name":"prompt","inputSchema":{}}]}' ;;
    *'"stubborn"'*) sleep 2; result='{"content":[{"type":"text","text":"late"}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"prompt"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Proves S-18.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_does_not_answer_in_time_delays_nobody_else() {
    let stubborn = format!(
        "[backends.stubborn]\ncommand = \"sh\"\nargs = [\"-c\", {}]\ntimeout = 1\nera = \"old\"\n",
        json!(STUBBORN)
    );
    let gateway = GatewayProcess::serve(&(stubborn + &child("free", ServedEra::Old, "").unwrap())).await.unwrap();
    let (stuck, free) = (session(&gateway).await, session(&gateway).await);
    ask(&stuck, "prompt", json!({})).await.unwrap();
    ask(&free, "count", json!({})).await.unwrap();
    let mut general = EventStream::general(&stuck).await.unwrap();
    let started = Instant::now();
    let client = stuck.clone();
    let waiting = tokio::spawn(async move { client.post(&call(7, "stubborn", &json!({})).to_string()).await.unwrap() });
    let mut slowest = Duration::ZERO;
    while !waiting.is_finished() {
        let one = Instant::now();
        ask(&free, "count", json!({})).await.unwrap();
        slowest = slowest.max(one.elapsed());
    }
    let took = started.elapsed();
    let answers = waiting.await.unwrap().messages().unwrap();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["error"]["data"]["reason"], "timed_out", "{answers:?}");
    assert!(took >= Duration::from_millis(900) && took < Duration::from_millis(1900), "{took:?}");
    assert!(slowest < Duration::from_millis(700), "{slowest:?}");

    // The late answer is counted and reaches nobody, not even the next call under the same id.
    let data_dir = gateway.data_dir();
    let late = async || backend_status(&data_dir, "stubborn").await.ok().filter(|one| one["strays"]["answer"] == 1);
    eventually("the late answer is counted", late).await.unwrap();
    let again = stuck.post(&call(7, "prompt", &json!({})).to_string()).await.unwrap().messages().unwrap();
    assert_eq!((again.len(), text(&again[0]).as_deref()), (1, Some("prompt")));
    ask(&free, "test_trigger_tool_change", json!({})).await.unwrap();
    let first = general.next().await.unwrap().unwrap();
    assert_eq!(first["method"], "notifications/tools/list_changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_down_at_the_start_is_left_out_and_comes_by_itself() {
    let address = free_address().unwrap().to_string();
    let config = child("good", ServedEra::Old, "tools.include = [\"count\"]").unwrap()
        + &remote("late", &address, "tools.include = [\"greet\"]")
        + "[backends.missing]\ncommand = \"/no/such/program\"\n";
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = session(&gateway).await;
    let started = Instant::now();
    assert_eq!(tool_names(&client).await.unwrap(), ["count"]);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    for (name, reason) in [("late", "refused"), ("missing", "/no/such/program")] {
        let status = backend_status(&gateway.data_dir(), name).await.unwrap();
        assert_eq!(status["state"], "down", "{status}");
        assert!(status["last_error"].as_str().unwrap().contains(reason), "{status}");
    }
    assert_eq!(ask(&client, "count", json!({})).await.unwrap(), "1");

    let mut general = EventStream::general(&client).await.unwrap();
    let _web = web_fixture(&address, ServedEra::Old).await.unwrap();
    general.notification("notifications/tools/list_changed").await.unwrap();
    let look = async || tool_names(&client).await.ok().filter(|names| *names == ["count", "greet"]);
    eventually("the late backend is listed", look).await.unwrap();
    assert!(ask(&client, "greet", json!({"name": "Ada"})).await.unwrap().contains("Ada"));
    assert_eq!(backend_status(&gateway.data_dir(), "late").await.unwrap()["state"], "up");
    let missing = backend_status(&gateway.data_dir(), "missing").await.unwrap();
    assert!(missing["restarts"].as_u64().unwrap() <= 4, "it is tried again without a wait: {missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_backend_session_is_opened_again_without_the_client_noticing() {
    let (mut web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let gateway = GatewayProcess::serve(&remote("web", &address, "")).await.unwrap();
    let client = session(&gateway).await;
    let before = process_of(&client, "whoami").await.unwrap();
    web.kill().await.unwrap();
    let _web = web_fixture(&address, ServedEra::Old).await.unwrap();
    let after = process_of(&client, "whoami").await.unwrap();
    assert_ne!(before, after);
    assert_eq!(ask(&client, "count", json!({})).await.unwrap(), "1");
    assert_eq!(ask(&client, "count", json!({})).await.unwrap(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_on_an_expired_backend_session_are_each_answered_once() {
    let (mut web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let gateway = GatewayProcess::serve(&remote("web", &address, "")).await.unwrap();
    let client = session(&gateway).await;
    let mut general = EventStream::general(&client).await.unwrap();
    ask(&client, "count", json!({})).await.unwrap();
    web.kill().await.unwrap();
    let _web = web_fixture(&address, ServedEra::Old).await.unwrap();
    let calls: Vec<_> = (10..30)
        .map(|id| {
            let client = client.clone();
            tokio::spawn(async move { client.post(&call(id, "count", &json!({})).to_string()).await.unwrap() })
        })
        .collect();
    let mut counts = Vec::new();
    for (id, call) in (10..30).zip(calls) {
        let answer = call.await.unwrap().message().unwrap();
        assert_eq!(answer["id"], id);
        match text(&answer).and_then(|text| text.parse::<u32>().ok()) {
            Some(count) => counts.push(count),
            // It was sent on a connection of before, whose end the gateway had not heard of yet.
            None => assert_eq!(answer["error"]["data"]["reason"], "backend_died", "{answer}"),
        }
    }
    counts.sort_unstable();
    assert!(counts.len() >= 10, "{counts:?}");
    assert_eq!(counts, (1..).take(counts.len()).collect::<Vec<_>>(), "a call ran twice");
    // What the backend says unasked arrives on the new session as it did on the old one.
    let look = async || ask(&client, "emit_log", json!({"level": "error", "message": "after"})).await.ok();
    eventually("a log message", look).await.unwrap();
    assert_eq!(general.notification("notifications/message").await.unwrap()["params"]["data"], "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_of_one_session_alone_is_replaced_at_its_next_call() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    let client = HttpClient::new(gateway.address());
    let own = client.initialize("2025-06-18", json!({"elicitation": {}})).await.unwrap();
    let bare = session(&gateway).await;
    let (pid, home) = (process_of(&own, "whoami").await.unwrap(), process_of(&bare, "whoami").await.unwrap());
    let dying = in_background(&own, "slow", 60_000);
    busy(&gateway, "one", 1).await;
    signal(pid, "KILL").await.unwrap();
    let fault = dying.await.unwrap();
    assert_eq!(fault["error"]["data"]["reason"], "backend_died", "{fault}");
    assert!(fault["error"]["message"].as_str().unwrap().contains("signal 9"), "{fault}");
    let newer = process_of(&own, "whoami").await.unwrap();
    assert!(newer != pid && newer != home);
    assert_eq!(process_of(&bare, "whoami").await.unwrap(), home);
}

/// Proves N-20.
#[tokio::test(flavor = "multi_thread")]
async fn names_do_not_flip_when_the_gateway_starts_while_one_of_two_is_down() {
    let gateway = two_children("").await;
    let before = tool_names(&session(&gateway).await).await.unwrap();
    let ones: Vec<String> = before.iter().filter(|name| !name.starts_with("two__")).cloned().collect();
    assert_eq!(ones.len() * 2, before.len());
    lists_saved(&gateway.data_dir()).await.unwrap();
    let folder = gateway.stop().await.unwrap();

    let config = child("one", ServedEra::Old, "").unwrap() + "[backends.two]\ncommand = \"/no/such/program\"\n";
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = session(&gateway).await;
    let data_dir = gateway.data_dir();
    let down = async || backend_status(&data_dir, "two").await.ok().filter(|two| two["state"] == "down");
    eventually("two is down", down).await.unwrap();
    assert_eq!(tool_names(&client).await.unwrap(), ones);
    assert_eq!(ask(&client, "one__count", json!({})).await.unwrap(), "1");
    let gone = client.request(3, "tools/call", json!({"name": "two__count", "arguments": {}})).await.unwrap();
    assert_eq!(gone["error"]["data"]["reason"], "backend_down", "{gone}");
}
