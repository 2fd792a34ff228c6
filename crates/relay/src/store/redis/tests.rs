//! The suite of every store, and what only Redis can get wrong, against a real server.

mod calls;
mod redis_server;

use super::*;
use crate::store::tests::{anybody, check_latencies, check_store, ids, request, result, session};
use crate::tool_request::WorkerError;
use redis_server::RedisServer;
use signalbox_runtime::clock::unix_millis;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::task::JoinSet;

const TTL: u64 = 60_000;
/// Nothing that is expected takes this long on a machine that does anything else.
const PATIENCE: Duration = Duration::from_secs(60);

fn store(server: &RedisServer) -> RedisStore {
    RedisStore::open(&server.url()).unwrap()
}

async fn next(events: &mut EventReader) -> Option<RelayEvent> {
    timeout(PATIENCE, events.recv()).await.expect("something is told")
}

/// The next event that is about more than who leads.
async fn answer_of(events: &mut EventReader, id: &str) -> Arc<ToolAnswer> {
    loop {
        match next(events).await {
            Some(RelayEvent::Answered { id: told, answer }) if *told == *id => return answer,
            Some(_) => {}
            None => panic!("the reader has ended"),
        }
    }
}

/// Until it is so. The store is asked again and again, as calls and pages would ask it.
async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asked = async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, asked).await.expect("it becomes so")
}

async fn new_session(store: &RedisStore) -> SessionRecord {
    let now = unix_millis();
    let record = session(now, TTL);
    assert_eq!(store.create(record.clone(), 1_000, now).await, Ok(CreateOutcome::Both));
    record
}

/// How many connections listen to events at this server.
fn listeners(server: &RedisServer) -> usize {
    server.command("CLIENT LIST").matches(" sub=1 ").count()
}

/// Proves C-11 and CO-13.
#[tokio::test]
async fn sessions_are_kept_in_redis() {
    let Some(server) = RedisServer::start() else { return };
    check_store(&store(&server), unix_millis(), TTL).await;
    check_latencies(&store(&server), unix_millis()).await;
}

/// Proves CO-8.
#[tokio::test]
async fn keys_are_named_as_of_old_under_a_prefix_and_end_by_themselves() {
    let Some(server) = RedisServer::start() else { return };
    let store = RedisStore::open(&format!("{}?prefix=eu:", server.url())).unwrap();
    let (record, now) = (new_session(&store).await, unix_millis());
    let code = &record.code;
    store.push(code, request("open", now + 1_000), 10, now).await.unwrap();
    store.push(code, request("done", now + 1_000), 10, now).await.unwrap();
    store.answer(code, "done", result("1"), now).await.unwrap();
    store.push_result(code, &anybody(), "x".into(), 10, now).await.unwrap();
    store.take_lead(code, "page", "s", now + 1_000, now).await.unwrap();
    let (keys, shown) = (server.command("KEYS *"), code.expose());
    let expected = [
        format!("eu:session:{shown}"),
        format!("eu:session:{shown}:events"),
        format!("eu:legacy:{shown}"),
        format!("eu:mcp:{}", record.mcp_id),
        format!("eu:queue:{shown}"),
        format!("eu:queue:{shown}:answered"),
        "eu:toolreq:open".to_owned(),
        "eu:toolres:done".to_owned(),
        format!("eu:res:{shown}"),
    ];
    for key in &expected {
        assert!(keys.contains(&format!("{key}\r\n")), "{key}\n{keys}");
        let left = server.command(&format!("PTTL {key}"));
        let left: i64 = left.lines().next().unwrap().trim_start_matches(':').parse().unwrap();
        assert!((1..=TTL as i64 + 60_000).contains(&left), "{key} ends in {left}");
    }
    let rest = ["eu:session:metrics:live", "eu:session:metrics:workers"];
    assert!(rest.iter().all(|key| keys.contains(key)));
    assert_eq!(keys.lines().filter(|line| line.starts_with("eu:")).count(), expected.len() + rest.len(), "{keys}");
    store.touch(code, now + 10 * TTL, now).await.unwrap();
    for key in expected.iter().filter(|key| !key.contains(":tool")) {
        let left = server.command(&format!("PTTL {key}"));
        let left: u64 = left.lines().next().unwrap().trim_start_matches(':').parse().unwrap();
        assert!(left > 9 * TTL, "{key} goes on with its session");
    }
    assert_eq!(store.remove(code).await, Ok(true));
    assert_eq!(server.command("DBSIZE").lines().next(), Some(":0"), "nothing is left");
}

/// Proves C-22.
#[tokio::test]
async fn a_session_ends_after_its_time_and_subscribers_at_every_gateway_hear_of_it() {
    let Some(server) = RedisServer::start() else { return };
    let (here, there) = (store(&server), store(&server));
    let (record, now) = (new_session(&here).await, unix_millis());
    assert_eq!(here.create(session(now, TTL), 1, now).await, Ok(CreateOutcome::Full));
    let mut events = there.subscribe(&record.code).await.unwrap();
    here.push(&record.code, request("1", now + TTL), 5, now).await.unwrap();
    assert!(matches!(next(&mut events).await, Some(RelayEvent::Requested { .. })));
    let end = record.until;
    assert_eq!(there.by_mcp(&record.mcp_id, end - 1).await.unwrap().map(|found| found.until), Some(end));
    assert_eq!(there.by_mcp(&record.mcp_id, end).await, Ok(None));
    assert_eq!(there.touch(&record.code, end + TTL, end).await, Ok(false));
    assert_eq!(there.push(&record.code, request("2", end + TTL), 5, end).await, Ok(QueueOutcome::NoSession));
    here.sweep(end - 1).await.unwrap();
    assert_eq!(here.counts(), SessionCounts { sessions: 1, connected: 0 });
    here.sweep(end).await.unwrap();
    assert!(matches!(next(&mut events).await, Some(RelayEvent::Ended)));
    assert!(next(&mut events).await.is_none());
    assert_eq!(here.counts(), SessionCounts::default());
    assert_eq!(server.command("DBSIZE").lines().next(), Some(":0"));
    assert!(there.subscribe(&record.code).await.unwrap().recv().await.is_none(), "there is nothing to hear of");
    assert_eq!(here.create(session(now, TTL), 1, now).await, Ok(CreateOutcome::Both), "its place is free");
}

#[tokio::test]
async fn a_worker_at_one_gateway_serves_a_call_that_came_to_another() {
    let Some(server) = RedisServer::start() else { return };
    let (agents, workers) = (store(&server), store(&server));
    let (record, now) = (new_session(&agents).await, unix_millis());
    let code = &record.code;
    assert_eq!(workers.by_code(code, now).await, Ok(Some(record.clone())));
    let mut at_worker = workers.subscribe(code).await.unwrap();
    let mut at_agent = agents.subscribe(code).await.unwrap();
    assert_eq!(workers.take_lead(code, "page", "s1", now + TTL, now).await, Ok(true));
    assert_eq!(agents.take_lead(code, "other", "s2", now + TTL, now).await, Ok(false));
    // Larger than what travels with an event.
    let large = format!("\"{}\"", "x".repeat(5 << 20));
    for (id, text) in [("small", "0"), ("large", large.as_str())] {
        agents.push(code, request(id, now + TTL), 5, now).await.unwrap();
        until(async || {
            matches!(next(&mut at_worker).await, Some(RelayEvent::Requested { id: told }) if *told == *id).then_some(())
        })
        .await;
        assert_eq!(ids(&workers.unanswered(code, now).await.unwrap()), [id]);
        assert_eq!(workers.mark_sent(code, id, "journal", now).await, Ok(true));
        assert_eq!(agents.unanswered(code, now).await.unwrap()[0].sent_to.as_deref(), Some("journal"));
        let progress = serde_json::value::RawValue::from_string("{\"progress\":1}".to_owned()).unwrap().into();
        workers.publish(code, RelayEvent::Progressed { id: id.into(), progress }).await.unwrap();
        assert_eq!(workers.answer(code, id, result(text), now).await, Ok(AnswerOutcome::Taken));
        let answer = answer_of(&mut at_agent, id).await;
        assert!(matches!(&*answer, ToolAnswer::Result(result) if result.get() == text));
    }
    let other = new_session(&agents).await;
    agents.push(code, request("mine", now + TTL), 5, now).await.unwrap();
    let foreign = workers.answer(&other.code, "mine", result("1"), now).await;
    assert_eq!(foreign, Ok(AnswerOutcome::Unknown), "another session's request");
    assert!(agents.push(&other.code, request("mine", now + TTL), 5, now).await.is_err(), "nobody's id is taken over");
    assert_eq!(workers.answer(code, &"x".repeat(1 << 20), result("1"), now).await, Ok(AnswerOutcome::Unknown));
}

/// No call runs twice, and one answer is the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_answers_at_once_from_two_gateways_exactly_one_is_taken() {
    let Some(server) = RedisServer::start() else { return };
    let stores = [Arc::new(store(&server)), Arc::new(store(&server))];
    let (record, now) = (new_session(&stores[0]).await, unix_millis());
    let mut events = stores[1].subscribe(&record.code).await.unwrap();
    for round in 0..20 {
        let id = format!("r{round}");
        stores[0].push(&record.code, request(&id, now + TTL), 5, now).await.unwrap();
        let mut racing = JoinSet::new();
        for runner in 0..10 {
            let (store, code, id) = (Arc::clone(&stores[runner % 2]), record.code.clone(), id.clone());
            racing.spawn(async move { store.answer(&code, &id, result(&runner.to_string()), now).await.unwrap() });
        }
        let ends = racing.join_all().await;
        assert_eq!(ends.iter().filter(|end| **end == AnswerOutcome::Taken).count(), 1, "{ends:?}");
        assert_eq!(ends.iter().filter(|end| **end == AnswerOutcome::Duplicate).count(), 9, "{ends:?}");
        answer_of(&mut events, &id).await;
    }
    assert!(events.try_recv().is_err(), "each was told once");
    let mut racing = JoinSet::new();
    for runner in 0..10 {
        let (store, taken) = (Arc::clone(&stores[runner % 2]), record.code.clone());
        racing.spawn(async move {
            let record = SessionRecord { code: taken, ..session(now, TTL) };
            (store.create(record.clone(), 100, now).await.unwrap(), store.by_mcp(&record.mcp_id, now).await.unwrap())
        });
    }
    assert!(racing.join_all().await.iter().all(|end| *end == (CreateOutcome::Taken, None)), "both mappings or neither");
}

/// Redis restarted.
#[tokio::test]
async fn a_redis_that_was_restarted_empty_means_that_sessions_are_over() {
    let Some(mut server) = RedisServer::start() else { return };
    let store = store(&server);
    let (record, now) = (new_session(&store).await, unix_millis());
    let mut events = store.subscribe(&record.code).await.unwrap();
    store.push(&record.code, request("1", now + TTL), 5, now).await.unwrap();
    server.stop();
    let error = until(async || store.by_code(&record.code, now).await.err()).await;
    assert!(matches!(error, RelayStoreError::Unreachable(_)), "{error}");
    assert!(store.trouble().is_some());
    server.start_again();
    until(async || matches!(next(&mut events).await, Some(RelayEvent::Ended)).then_some(())).await;
    assert_eq!(until(async || store.by_code(&record.code, now).await.ok()).await, None);
    assert_eq!(store.answer(&record.code, "1", result("1"), now).await, Ok(AnswerOutcome::Unknown));
    assert_eq!(store.touch(&record.code, now + TTL, now).await, Ok(false));
    until(async || store.trouble().is_none().then_some(())).await;
    new_session(&store).await;
}

/// The same with a Redis that keeps its data: nobody notices more than a pause.
#[tokio::test]
async fn a_redis_that_kept_its_data_goes_on_with_sessions() {
    let keeping = |_: &Path, port: u16| {
        let port = port.to_string();
        ["--port", &port, "--appendonly", "yes", "--appendfsync", "always"].map(str::to_owned).to_vec()
    };
    let Some(mut server) = RedisServer::start_with(keeping) else { return };
    let store = store(&server);
    let (record, now) = (new_session(&store).await, unix_millis());
    let mut events = store.subscribe(&record.code).await.unwrap();
    store.push(&record.code, request("1", now + TTL), 5, now).await.unwrap();
    assert!(matches!(next(&mut events).await, Some(RelayEvent::Requested { .. })));
    server.stop();
    server.start_again();
    let waiting = until(async || store.unanswered(&record.code, now).await.ok()).await;
    assert_eq!(ids(&waiting), ["1"]);
    assert_eq!(store.answer(&record.code, "1", result("5"), now).await, Ok(AnswerOutcome::Taken));
    let answer = answer_of(&mut events, "1").await;
    assert!(matches!(&*answer, ToolAnswer::Result(result) if result.get() == "5"));
}

#[tokio::test]
async fn a_lost_connection_is_made_again_and_what_was_missed_is_told() {
    let Some(server) = RedisServer::start() else { return };
    let (here, there) = (store(&server), store(&server));
    let (record, now) = (new_session(&here).await, unix_millis());
    let code = &record.code;
    let mut events = here.subscribe(code).await.unwrap();
    until(async || (listeners(&server) == 1).then_some(())).await;
    for round in 0..5 {
        let (id, other) = (format!("a{round}"), format!("b{round}"));
        here.push(code, request(&id, now + TTL), 5, now).await.unwrap();
        // All at once, so that the connection is surely away when it happens.
        let kept = written(&result("7")).unwrap();
        let event = Notice::write(&RelayEvent::Answered { id: id.as_str().into(), answer: Arc::new(result("7")) });
        let mut call = there.line.call("answer", now);
        call.arg(code.expose()).arg(&id).arg(kept).arg(event);
        server.command("CLIENT KILL TYPE pubsub");
        let answered: String = there.line.run(&call).await.unwrap();
        assert_eq!(answered, "taken");
        assert_eq!(there.push(code, request(&other, now + TTL), 5, now).await, Ok(QueueOutcome::Queued));
        let answer = answer_of(&mut events, &id).await;
        assert!(matches!(&*answer, ToolAnswer::Result(result) if result.get() == "7"));
        let told = next(&mut events).await;
        assert!(matches!(&told, Some(RelayEvent::Requested { id }) if **id == *other), "{told:?}");
        there.withdraw(code, &other, "done", now).await.unwrap();
        assert!(matches!(next(&mut events).await, Some(RelayEvent::Cancelled { .. })));
    }
    assert!(here.line.counters.caught_up.load(Ordering::Relaxed) >= 10, "{}", here.metrics());
    server.command("CLIENT KILL TYPE normal");
    assert_eq!(until(async || here.by_code(code, now).await.ok()).await, Some(record.clone()));
    assert!(here.metrics().contains("signalbox_relay_redis_connections_total"));
}

#[tokio::test]
async fn who_missed_more_than_is_kept_looks_at_everything_anew() {
    let Some(mut server) = RedisServer::start() else { return };
    let (here, there) = (store(&server), store(&server));
    let (record, now) = (new_session(&here).await, unix_millis());
    let mut events = here.subscribe(&record.code).await.unwrap();
    // As after a failover to a copy that lags behind.
    there
        .line
        .run::<redis::Value>(there.line.call("set", now).arg(record.code.expose()).arg("events").arg(9_000))
        .await
        .unwrap();
    there.set_tools(&record.code, "[]", now).await.unwrap();
    assert!(next(&mut events).await.is_none());
    let mut slow = here.subscribe(&record.code).await.unwrap();
    let mut fast = there.subscribe(&record.code).await.unwrap();
    for _ in 0..crate::store::EVENT_QUEUE + 10 {
        there.set_tools(&record.code, "[]", now).await.unwrap();
        assert!(matches!(next(&mut fast).await, Some(RelayEvent::ToolsChanged)));
    }
    let mut came = 0;
    while next(&mut slow).await.is_some() {
        came += 1;
    }
    assert_eq!(came, crate::store::EVENT_QUEUE);
    server.stop();
}

#[tokio::test]
async fn a_redis_that_hangs_does_not_hang_calls() {
    let Some(server) = RedisServer::start() else { return };
    let address = RedisAddress::read(&server.url()).unwrap();
    let store = RedisStore::at(address.with_timeout(Duration::from_secs(1)));
    let (record, now) = (new_session(&store).await, unix_millis());
    server.freeze();
    let began = std::time::Instant::now();
    let found = timeout(PATIENCE, store.by_code(&record.code, now)).await.expect("it does not hang");
    assert!(
        matches!(&found, Err(RelayStoreError::Unreachable(text)) if text.contains("did not answer within 1 s")),
        "{found:?}"
    );
    assert!(began.elapsed() >= Duration::from_secs(1));
    let subscribed = timeout(PATIENCE, store.subscribe(&record.code)).await.expect("it does not hang");
    assert!(subscribed.is_err());
    assert!(store.trouble().is_some());
    let timeouts = store.line.counters.timeouts.load(Ordering::Relaxed);
    assert!(timeouts >= 2, "{timeouts}");
    server.thaw();
    let found = until(async || store.by_code(&record.code, now).await.ok()).await;
    assert_eq!(found, Some(record.clone()), "it was kept");
    let mut events = until(async || store.subscribe(&record.code).await.ok()).await;
    store.set_tools(&record.code, "[]", now).await.unwrap();
    assert!(matches!(next(&mut events).await, Some(RelayEvent::ToolsChanged)));
}

#[tokio::test]
async fn a_lead_whose_gateway_is_gone_lapses_and_standbys_hear_of_it() {
    let Some(server) = RedisServer::start() else { return };
    let (gone, here) = (store(&server), store(&server));
    let (record, now) = (new_session(&gone).await, unix_millis());
    let code = &record.code;
    gone.take_lead(code, "page", "s1", now + 500, now).await.unwrap();
    drop(gone);
    let mut events = here.subscribe(code).await.unwrap();
    assert_eq!(here.take_lead(code, "standby", "s2", now + 1_000, now + 499).await, Ok(false));
    here.sweep(now + 499).await.unwrap();
    assert_eq!(here.counts(), SessionCounts { sessions: 1, connected: 1 });
    here.sweep(now + 500).await.unwrap();
    assert!(matches!(next(&mut events).await, Some(RelayEvent::LeadChanged)));
    assert_eq!(here.counts(), SessionCounts { sessions: 1, connected: 0 });
    assert_eq!(here.has_lead(code, now + 500).await, Ok(false));
    assert_eq!(here.take_lead(code, "standby", "s2", now + 1_000, now + 500).await, Ok(true));
}

#[tokio::test]
async fn a_password_is_shown_to_redis_and_to_nobody_else() {
    let with_password =
        |_: &Path, port: u16| ["--port", &port.to_string(), "--requirepass", "s3 cr@t"].map(str::to_owned).to_vec();
    let Some(server) = RedisServer::start_with(with_password) else { return };
    let at = |password: &str| format!("redis://{password}127.0.0.1:{}/3", server.port());
    let store = RedisStore::open(&at(":s3%20cr%40t@")).unwrap();
    let record = new_session(&store).await;
    let mut events = store.subscribe(&record.code).await.unwrap();
    store.set_tools(&record.code, "[]", unix_millis()).await.unwrap();
    assert!(matches!(next(&mut events).await, Some(RelayEvent::ToolsChanged)));
    for password in ["", ":wrong%20one@"] {
        let store = RedisStore::open(&at(password)).unwrap();
        let error = store.by_code(&record.code, unix_millis()).await.unwrap_err().to_string();
        assert!(error.contains("cannot be reached") && !error.contains("wrong"), "{error}");
        let all = format!("{error} {store:?} {:?}", store.trouble());
        assert!(!all.contains("s3") && !all.contains("wrong"), "{all}");
    }
}

/// What Redis says of a command that it does not know repeats the arguments, which hold the code.
#[tokio::test]
async fn no_error_repeats_the_code() {
    let without_scripts = |_: &Path, port: u16| {
        let mut settings = vec!["--port".to_owned(), port.to_string()];
        settings.extend(["--rename-command", "EVALSHA", "NOTHING"].map(str::to_owned));
        settings
    };
    let Some(server) = RedisServer::start_with(without_scripts) else { return };
    let store = store(&server);
    let record = session(unix_millis(), TTL);
    let error = store.by_code(&record.code, unix_millis()).await.unwrap_err();
    assert!(matches!(error, RelayStoreError::Unreachable(_)), "{error}");
    let raw = server.command(&format!("EVALSHA 0 0 {}", record.code.expose()));
    assert!(raw.contains(record.code.expose()), "the test proves nothing: {raw}");
    let all =
        format!("{error} {error:?} {:?} {:?} {store:?}", store.trouble(), store.create(record.clone(), 1, 0).await);
    assert!(!all.contains(record.code.expose()) && !all.contains(&*record.mcp_id), "{all}");
    let unreadable = RedisStore::open(&server.url()).unwrap();
    assert!(unreadable.answer(&record.code, "1", ToolAnswer::Error(WorkerError::outcome_unknown()), 0).await.is_err());
}

/// Certificates by the `openssl` program; false where it is not installed.
fn certificates(folder: &Path) -> bool {
    let run = |arguments: &str| {
        let made = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
        made.is_ok_and(|made| made.status.success())
    };
    std::fs::write(folder.join("san"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    run(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 30 -subj /CN=ca"))
        && run(&format!("req {key} -keyout own.key -out own.csr -subj /CN=localhost"))
        && run("x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile san -out own.pem")
}

#[tokio::test]
async fn rediss_speaks_tls_and_believes_only_the_authority_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    if !certificates(folder.path()) {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "openssl is not installed");
        eprintln!("SKIP: openssl is not installed");
        return;
    }
    let file = |name: &str| folder.path().join(name).display().to_string();
    let secure = |_: &Path, port: u16| {
        let mut settings: Vec<String> = ["--port", "0", "--tls-port"].map(str::to_owned).to_vec();
        settings.push(port.to_string());
        for (key, name) in
            [("--tls-cert-file", "own.pem"), ("--tls-key-file", "own.key"), ("--tls-ca-cert-file", "ca.pem")]
        {
            settings.extend([key.to_owned(), file(name)]);
        }
        settings
    };
    let Some(server) = RedisServer::start_with(secure) else { return };
    let base = format!("rediss://localhost:{}/0", server.port());
    let own = format!("cert_file={}&key_file={}", file("own.pem"), file("own.key"));
    let store = RedisStore::open(&format!("{base}?ca_file={}&{own}", file("ca.pem"))).unwrap();
    let record = new_session(&store).await;
    let mut events = store.subscribe(&record.code).await.unwrap();
    store.set_tools(&record.code, "[]", unix_millis()).await.unwrap();
    assert!(matches!(next(&mut events).await, Some(RelayEvent::ToolsChanged)));
    // The system's authorities; no certificate of its own; a file that is not there.
    for bad in [own.clone(), format!("ca_file={}", file("ca.pem")), format!("{own}&ca_file={}", file("none.pem"))] {
        let store = RedisStore::open(&format!("{base}?{bad}")).unwrap();
        let found = store.by_code(&record.code, unix_millis()).await;
        assert!(matches!(found, Err(RelayStoreError::Unreachable(_))), "{bad}: {found:?}");
    }
}
