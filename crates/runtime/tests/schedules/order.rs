//! The same promises with real threads: answers race cancellations, clients that leave, and connections that die, on
//! four workers at once.

use crate::dice::Dice;
use crate::driven::{Driven, Manner, Shape};
use crate::notes::Notes;
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::back::Wish;
use signalbox_engine::front::Mode;
use signalbox_engine::{Caller, FactSink};
use signalbox_runtime::{Backend, BackendSpec, FailureRules, Gateway, GatewayParts, Session, Settings, StreamReader};
use signalbox_wire::Envelope;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

const SESSIONS: u64 = 8;
/// Tasks that call at the same time within one session.
const SIDE_BY_SIDE: u64 = 4;
const CALLS: u64 = 60;
const MODERN: u64 = 8;
/// How long an answer may take before it counts as lost; a call itself is given up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(60);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

fn envelope(message: &Value) -> Envelope {
    Envelope::parse(Bytes::from(message.to_string())).unwrap()
}

/// What a client saw of its calls.
#[derive(Default)]
struct Seen {
    answered: u64,
    cancelled: u64,
    faults: Vec<String>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.cancelled += other.cancelled;
        self.faults.extend(other.faults);
    }
}

/// Reads a stream to its end: one answer to its request, or none where that was cancelled.
async fn read(stream: &StreamReader, id: u64, cancelled: bool, seen: &mut Seen) {
    let mut answers = 0;
    loop {
        let Ok(next) = tokio::time::timeout(PATIENCE, stream.next()).await else {
            return seen.faults.push(format!("request {id} got no answer, and its stream does not end"));
        };
        let Some(out) = next else { break };
        let message: Value = serde_json::from_slice(out.bytes()).unwrap();
        if message.get("method").is_none() {
            answers += 1;
            if message["id"] != id {
                seen.faults.push(format!("request {id} was answered with {message}"));
            }
        }
    }
    seen.answered += u64::from(answers == 1);
    seen.cancelled += u64::from(answers == 0);
    if answers > 1 || (answers == 0 && !cancelled) {
        seen.faults.push(format!("request {id} has {answers} answers"));
    }
}

fn post(session: &Arc<Session>, method: &str, params: &Value) -> (u64, StreamReader) {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let stream = session.open_stream().unwrap();
    session.receive(&stream, envelope(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})));
    (id, stream)
}

fn tell(session: &Arc<Session>, method: &str, params: &Value) {
    let stream = session.open_stream().unwrap();
    session.receive(&stream, envelope(&json!({"jsonrpc": "2.0", "method": method, "params": params})));
}

async fn greeted(gateway: &Arc<Gateway>, number: u64, seen: &mut Seen) -> Arc<Session> {
    let caller = Caller::local(["ann", "bob"][usize::from(number.is_multiple_of(2))], "test");
    let session = gateway.open_session(caller, Mode::Session, &format!("s{number}"), "test").unwrap();
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let (id, stream) = post(&session, "initialize", &hello);
    read(&stream, id, false, seen).await;
    tell(&session, "notifications/initialized", &json!({}));
    session
}

/// Calls of one session, some of which are cancelled from another task while they are answered.
async fn calls(session: Arc<Session>, seed: u64) -> Seen {
    let (mut dice, mut seen) = (Dice::new(seed), Seen::default());
    for _ in 0..CALLS {
        let tool = dice.pick(&["old__t0", "old__t1", "new__t0", "new__t1"]);
        let (id, stream) = post(&session, "tools/call", &json!({"name": tool, "arguments": {}}));
        let cancelled = dice.chance(30);
        if cancelled {
            let (session, yields) = (Arc::clone(&session), dice.below(20));
            tokio::spawn(async move {
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
                tell(&session, "notifications/cancelled", &json!({"requestId": id}));
            });
        }
        read(&stream, id, cancelled, &mut seen).await;
    }
    seen
}

/// Calls of the new era, some of which are given up by dropping their stream.
async fn modern_calls(gateway: Arc<Gateway>, seed: u64) -> Seen {
    let (mut dice, mut seen) = (Dice::new(seed), Seen::default());
    for _ in 0..CALLS {
        let caller = Caller::local(dice.pick(&["ann", "bob"]), "test");
        let session = gateway.open_session(caller, Mode::Stateless, "", "test").unwrap();
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let tool = dice.pick(&["old__t0", "old__t1", "new__t0", "new__t1"]);
        let (id, stream) = post(&session, "tools/call", &json!({"name": tool, "arguments": {}, "_meta": meta}));
        if dice.chance(20) {
            for _ in 0..dice.below(20) {
                tokio::task::yield_now().await;
            }
            drop(stream);
            seen.cancelled += 1;
        } else {
            read(&stream, id, false, &mut seen).await;
        }
    }
    seen
}

fn backend(name: &str, shape: Shape, modern: bool) -> (Arc<Backend>, Driven) {
    let driven = Driven::new(shape, modern, Manner::Prompt(Mutex::new(Dice::new(7))));
    let spec = BackendSpec {
        timeout: Duration::from_secs(10),
        start_timeout: Duration::from_secs(10),
        max_children: 16,
        wish: if modern { Wish::Modern } else { Wish::Legacy },
        strict: None,
        // What fails is the connection; that is not to keep the others from being raced.
        failing: FailureRules {
            breaker: None,
            slow_start: Duration::ZERO,
            max_restarts: None,
            ..FailureRules::default()
        },
        lifetime: signalbox_runtime::Lifetime::default(),
        questions: signalbox_runtime::QuestionTime::default(),
        source: 0,
        allows: Box::new(|_| true),
    };
    (Backend::new(name, Arc::new(driven.clone()), spec), driven)
}

async fn race(gateway: &Arc<Gateway>, drivens: Vec<Driven>) -> (Seen, Vec<Weak<Session>>) {
    let (mut seen, mut tasks, mut sessions) = (Seen::default(), Vec::new(), Vec::new());
    for number in 0..SESSIONS {
        let session = greeted(gateway, number, &mut seen).await;
        if number == 0 {
            let (id, stream) = post(&session, "tools/list", &json!({}));
            read(&stream, id, false, &mut seen).await;
        }
        for task in 0..SIDE_BY_SIDE {
            tasks.push(tokio::spawn(calls(Arc::clone(&session), number * SIDE_BY_SIDE + task)));
        }
        sessions.push(session);
    }
    for number in 0..MODERN {
        tasks.push(tokio::spawn(modern_calls(Arc::clone(gateway), 1_000 + number)));
    }
    // Connections also die while nobody calls on them.
    let killing = tokio::spawn(async move {
        let mut dice = Dice::new(3);
        for _ in 0..40 {
            tokio::time::sleep(dice.millis(1..20)).await;
            let driven = &drivens[dice.below(drivens.len())];
            let links = driven.open_links();
            if !links.is_empty() {
                driven.kill(dice.pick(&links));
            }
        }
    });
    for task in tasks {
        seen.add(task.await.unwrap());
    }
    killing.await.unwrap();
    let left = sessions.iter().map(Arc::downgrade).collect();
    sessions.iter().for_each(Session::close);
    (seen, left)
}

/// Waits until nothing is kept for clients any more; what still is after a minute was left behind.
async fn left_behind(gateway: &Gateway) -> BTreeMap<String, usize> {
    let is_kept = |what: &String| !what.starts_with("connections besides its own");
    for _ in 0..600 {
        if !gateway.leftovers().keys().any(is_kept) {
            return BTreeMap::new();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    gateway.leftovers()
}

/// Proves S-68 and S-69.
#[test]
fn with_real_threads_every_request_has_one_outcome_and_the_facts_of_each_session_keep_their_order() {
    let notes = Arc::new(Notes::new(1, false));
    let working_for: Arc<OnceLock<Weak<Gateway>>> = Arc::default();
    let hired = Arc::clone(&working_for);
    let idle = move || {
        if let Some(gateway) = hired.get().and_then(Weak::upgrade) {
            gateway.idle();
        }
    };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(4).enable_all().on_thread_park(idle).build().unwrap();
    let (old, new) = (backend("old", Shape::Pipe, false), backend("new", Shape::Web, true));
    let (seen, left, gateway, sessions) = runtime.block_on(async {
        let gateway = Gateway::new(GatewayParts {
            facts: vec![Arc::clone(&notes) as Arc<dyn FactSink>],
            ..GatewayParts::unguarded(Settings::default(), vec![old.0, new.0]).unwrap()
        })
        .unwrap();
        gateway.start();
        working_for.set(Arc::downgrade(&gateway)).unwrap();
        let (racing, drivens) = (Arc::clone(&gateway), vec![old.1, new.1]);
        let (seen, sessions) = tokio::spawn(async move { race(&racing, drivens).await }).await.unwrap();
        let left = left_behind(&gateway).await;
        (seen, left, gateway, sessions)
    });
    // The threads end what they had begun.
    drop(runtime);
    gateway.settle();
    assert!(seen.faults.is_empty(), "{:#?}", seen.faults);
    assert_eq!(seen.answered + seen.cancelled, SESSIONS + 1 + CALLS * (SESSIONS * SIDE_BY_SIDE + MODERN));
    assert!(left.is_empty(), "left behind: {left:?}");
    assert_eq!(sessions.iter().filter(|session| session.strong_count() > 0).count(), 0, "sessions were left behind");
    let faults = notes.faults(false);
    assert!(faults.is_empty(), "{} faults, such as {:#?}", faults.len(), &faults[..faults.len().min(5)]);
    let counts = notes.counts();
    println!("order: {} answered, {} cancelled; {counts:?}", seen.answered, seen.cancelled);
    for what in ["success", "cancelled", "backend_died"] {
        assert!(counts.contains_key(what), "nothing ended as {what}: {counts:?}");
    }
}
