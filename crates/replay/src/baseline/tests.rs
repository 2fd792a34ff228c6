use super::*;
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::fact::{Decision, FinishedFact, MessageFact, Outcome, Point, SessionFact};
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind, TapeInfo, TapeKind};
use signalbox_engine::{Caller, ExchangeId, Identity, Principal, SessionKey};
use signalbox_tape::TapeFileWriter;
use signalbox_wire::Era;
use std::sync::Mutex;
use std::time::Instant;

fn request(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

fn answer(id: u64, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A tape of these calls: a tool, its arguments, its result, and whether the result was redacted.
fn tape(redaction: &[&str], calls: &[(&str, Value, Value, bool)]) -> (tempfile::TempDir, TapeSource) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tape");
    let mut info = TapeInfo::new("old".to_owned(), TapeKind::Serve, "x".to_owned(), 1);
    info.redaction = redaction.iter().map(|rule| (*rule).to_owned()).collect();
    let mut file = TapeFileWriter::new(std::fs::File::create(&path).unwrap(), &info, &[]).unwrap();
    let mut seq = 0;
    for (number, (tool, arguments, result, redacted)) in (1..).zip(calls) {
        let messages = [
            (Point::ClientIn, MessageKind::Request, request(number, tool, arguments), false),
            (Point::ClientOut, MessageKind::Result, answer(number, result), *redacted),
        ];
        for (point, kind, body, redacted) in messages {
            seq += 1;
            let bytes = Bytes::from(body.to_string());
            let message = MessageEntry::new(point, kind, bytes.len() as u64, Body::Whole(bytes));
            let content = Content::Message(MessageEntry { redacted, method: Some("tools/call".into()), ..message });
            let entry = Entry::new(seq, seq, "ann".into(), content);
            file.push(&Entry { session: Some(1), exchange: Some(number), ..entry }).unwrap();
        }
    }
    file.finish(Some(9)).unwrap();
    let source = TapeSource::open(&path).unwrap();
    (folder, source)
}

fn message(session: u64, exchange: u64, point: Point, body: &Value) -> Fact {
    let (caller, bytes) = (Caller::anonymous("http"), Bytes::from(body.to_string()));
    let fact = MessageFact::new(Instant::now(), SessionKey(session), caller, point, bytes);
    Fact::Message(MessageFact { exchange: Some(ExchangeId(exchange)), ..fact })
}

fn session(number: u64) -> Fact {
    Fact::Session(Arc::new(SessionFact {
        at: Instant::now(),
        session: SessionKey(number),
        caller: Caller::anonymous("http"),
        external: None,
        transport: "http",
        client: None,
    }))
}

fn cancelled(exchange: u64) -> Fact {
    Fact::Finished(Arc::new(FinishedFact {
        at: Instant::now(),
        session: SessionKey(1),
        caller: Caller::anonymous("http"),
        exchange: ExchangeId(exchange),
        era: Era::Legacy,
        method: "tools/call".into(),
        subject: None,
        backend: None,
        client: None,
        operation: ExchangeId(exchange),
        round: 1,
        outcome: Outcome::Cancelled,
        took: Duration::ZERO,
        bytes_in: 0,
        bytes_out: 0,
        trace: None,
        unreached: None,
    }))
}

/// The facts of one call.
fn call(exchange: u64, tool: &str, arguments: Value, result: Value) -> [Fact; 2] {
    [
        message(1, exchange, Point::ClientIn, &request(70, tool, &arguments)),
        message(1, exchange, Point::ClientOut, &answer(70, &result)),
    ]
}

/// Keeps the decisions that it is told.
#[derive(Default)]
struct Kept(Mutex<Vec<Arc<Decision>>>);

impl FactSink for Kept {
    fn fact(&self, fact: &Fact) {
        if let Fact::Decision(decision) = fact {
            self.0.lock().unwrap().push(Arc::clone(decision));
        }
    }
}

/// What a baseline counts and tells of these facts: exchange, phase, verdict and detail of each decision.
fn check(source: TapeSource, settings: BaselineSettings, facts: &[Fact]) -> (BaselineStats, Vec<String>) {
    let kept = Arc::new(Kept::default());
    let baseline = Baseline::start(source, settings, vec![kept.clone()]).unwrap();
    baseline.facts(facts);
    baseline.stop(Duration::from_secs(30));
    let decisions = kept.0.lock().unwrap();
    let line = |decision: &Arc<Decision>| {
        let (by, ruling) = decision.each().next().unwrap();
        assert_eq!((by, &*ruling.inputs), ("baseline", &[("baseline", "old".to_owned())][..]));
        format!("{} {} {}: {}", decision.exchange.unwrap(), decision.phase, ruling.verdict, ruling.detail)
    };
    (baseline.stats(), decisions.iter().map(line).collect())
}

fn stats(same: u64, differs: u64, unknown: u64, dropped: u64) -> BaselineStats {
    BaselineStats { same, differs, unknown, dropped }
}

#[test]
fn each_call_is_the_same_differs_or_is_unknown() {
    let recorded = [("add", json!({"a": 1}), json!({"at": 5, "sum": 2}), false)];
    let (_folder, source) = tape(&[], &recorded);
    let facts = [
        call(7, "add", json!({"a": 1}), json!({"at": 5.0, "sum": 2, "_meta": {"x": 1}})),
        call(8, "add", json!({"a": 1}), json!({"sum": "2", "more": []})),
        call(9, "add", json!({"a": 2}), json!({"sum": 3})),
    ];
    let (counted, told) = check(source, BaselineSettings::default(), facts.as_flattened());
    assert_eq!(counted, stats(1, 1, 1, 0));
    assert_eq!(
        told,
        [
            "8 response differs: tools/call add differs from call 1 at /result/at (missing), /result/sum (type), /result/more (added)",
            "9 request unknown: tools/call add is not on the baseline",
        ]
    );
}

#[test]
fn an_error_in_place_of_a_result_differs() {
    let (_folder, source) = tape(&[], &[("add", json!({}), json!({"sum": 2}), false)]);
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}});
    let facts = [
        message(1, 1, Point::ClientIn, &request(1, "add", &json!({}))),
        message(1, 1, Point::ClientOut, &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})),
        message(1, 1, Point::ClientOut, &error),
    ];
    let (counted, told) = check(source, BaselineSettings::default(), &facts);
    assert_eq!(counted, stats(0, 1, 0, 0));
    assert!(told[0].ends_with("at /result (missing), /error (added)"), "{told:?}");
}

#[test]
fn equal_calls_are_compared_in_order_for_each_session_and_the_last_answer_stands_for_further_ones() {
    let read = |text: &str| ("read", json!({"id": 1}), json!({"text": text}), false);
    let (_folder, source) = tape(&[], &[read("milk"), read("gone")]);
    let mut facts = vec![session(1), session(2)];
    let said = [(1, 1, "milk"), (1, 2, "gone"), (2, 3, "milk"), (1, 4, "gone"), (2, 5, "gone"), (2, 6, "milk")];
    for (session, exchange, text) in said {
        facts.push(message(session, exchange, Point::ClientIn, &request(1, "read", &json!({"id": 1}))));
        facts.push(message(session, exchange, Point::ClientOut, &answer(1, &json!({"text": text}))));
    }
    let (counted, told) = check(source, BaselineSettings::default(), &facts);
    assert_eq!(counted, stats(5, 1, 0, 0));
    assert_eq!(told, ["6 response differs: tools/call read differs from call 2 at /result/text (changed)"]);
}

#[test]
fn ignored_paths_count_neither_in_requests_nor_in_answers_and_numbers_may_be_near() {
    let recorded = [("f", json!({"at": 1, "x": 2}), json!({"at": 3, "mean": 10.0}), false)];
    let (_folder, source) = tape(&[], &recorded);
    let ignored = Paths::parse(["/params/arguments/at", "/result/at"]).unwrap();
    let facts = [
        call(1, "f", json!({"at": 9, "x": 2}), json!({"at": 9, "mean": 10.05})),
        call(2, "f", json!({"at": 9, "x": 2}), json!({"at": 9, "mean": 11})),
    ];
    let (counted, told) = check(source, BaselineSettings { ignored, tolerance: 0.01 }, facts.as_flattened());
    assert_eq!(counted, stats(1, 1, 0, 0));
    assert!(told[0].ends_with("call 1 at /result/mean (changed)"), "{told:?}");
}

#[test]
fn redacted_members_of_the_baseline_are_not_compared() {
    let recorded = [("who", json!({}), json!({"name": "ann", "token": "[redacted]"}), true)];
    let (_folder, source) = tape(&["key token: replace"], &recorded);
    let facts = [
        call(1, "who", json!({}), json!({"name": "ann", "token": "s3cret"})),
        call(2, "who", json!({}), json!({"name": "bob", "token": "s3cret"})),
    ];
    let (counted, told) = check(source, BaselineSettings::default(), facts.as_flattened());
    assert_eq!(counted, stats(1, 1, 0, 0));
    assert!(told[0].ends_with("at /result/name (changed)"), "{told:?}");
}

#[test]
fn other_methods_repeated_messages_and_cancelled_calls_are_not_compared() {
    let (_folder, source) = tape(&[], &[("add", json!({}), json!({}), false)]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let asked = message(1, 2, Point::ClientIn, &request(1, "add", &json!({})));
    let Fact::Message(again) = message(1, 3, Point::ClientIn, &request(1, "add", &json!({}))) else { unreachable!() };
    let again = Fact::Message(MessageFact { again: std::num::NonZeroU64::new(1), ..again });
    let late = message(1, 2, Point::ClientOut, &answer(1, &json!({"x": 1})));
    let facts = [message(1, 1, Point::ClientIn, &list), asked, again, cancelled(2), late];
    assert_eq!(check(source, BaselineSettings::default(), &facts), (stats(0, 0, 0, 0), vec![]));
}

#[test]
fn names_from_outside_are_cut() {
    let long = "x".repeat(5_000);
    let (_folder, source) = tape(&[], &[("add", json!({}), json!({}), false)]);
    let facts = [call(1, "add", json!({}), json!({&*long: 1})), call(2, &long, json!({}), json!({}))];
    let (counted, told) = check(source, BaselineSettings::default(), facts.as_flattened());
    assert_eq!(counted, stats(0, 1, 1, 0));
    assert!(told.iter().all(|line| line.len() < 300 && line.contains('…')), "{told:?}");
}

/// A checker and a queue that no thread empties.
fn stuck(source: TapeSource) -> (FactQueue, Checker, Arc<Counters>) {
    let counters = Arc::new(Counters::default());
    let settings = PlayerSettings { repeat: Repeat::Last, ..PlayerSettings::default() };
    let player = TapePlayer::open(source, settings).unwrap();
    let checker = Checker::new("old".into(), player, Comparison::default(), Masks::default(), Arc::clone(&counters));
    (FactQueue::new(Arc::clone(&counters)), checker, counters)
}

#[test]
fn a_full_queue_takes_nothing_more_and_each_call_is_counted_once() {
    let (_folder, source) = tape(&[], &[("add", json!({}), json!({}), false)]);
    let (queue, mut checker, counters) = stuck(source);
    let calls = MAX_FACTS as u64 / 2 + 10;
    // All requests but the last ones fit, then the answers of the first ones.
    let asked = |exchange| message(1, exchange, Point::ClientIn, &request(1, "add", &json!({})));
    let answered = |exchange| message(1, exchange, Point::ClientOut, &answer(1, &json!({})));
    (0..calls).for_each(|exchange| queue.push(&[asked(exchange)]));
    (0..calls).for_each(|exchange| queue.push(&[answered(exchange)]));
    (0..calls).for_each(|exchange| queue.push(&[asked(1_000_000 + exchange), answered(1_000_000 + exchange)]));
    queue.close();
    while let Some(batch) = queue.take() {
        assert!(batch.facts.len() <= MAX_FACTS);
        batch.facts.iter().for_each(|fact| assert!(checker.take(fact).is_none()));
        batch.missed.into_iter().for_each(|exchange| checker.drop_exchange(exchange));
    }
    let counted = counters.read();
    assert_eq!(counted.same, MAX_FACTS as u64 - calls);
    assert_eq!(counted.same + counted.dropped, 2 * calls, "{counted:?}");
}

#[test]
fn a_message_that_is_too_large_is_counted_as_dropped() {
    let (_folder, source) = tape(&[], &[("add", json!({}), json!({}), false)]);
    let facts = [
        call(1, "add", json!({}), json!({"text": "x".repeat(MAX_BYTES)})),
        call(2, "add", json!({"text": "x".repeat(MAX_BYTES)}), json!({})),
        call(3, "add", json!({}), json!({})),
    ];
    let (counted, told) = check(source, BaselineSettings::default(), facts.as_flattened());
    assert_eq!((counted, told), (stats(1, 0, 0, 2), vec![]));
}

/// A caller without a session keeps its place on the tape, however many others call.
#[test]
fn of_too_many_callers_the_one_that_was_silent_for_longest_starts_again() {
    let read = |text: &str| ("read", json!({}), json!({"text": text}), false);
    let (_folder, source) = tape(&[], &[read("milk"), read("gone")]);
    let (_, mut checker, counters) = stuck(source);
    let mut exchange = 0;
    let mut check = |name: &str, text: &str| {
        exchange += 1;
        let anonymous = Caller::anonymous("http").identity().clone();
        let caller = Caller::new(Identity { principal: Principal::named(name), ..anonymous });
        for (point, body) in
            [(Point::ClientIn, request(1, "read", &json!({}))), (Point::ClientOut, answer(1, &json!({"text": text})))]
        {
            let bytes = Bytes::from(body.to_string());
            let fact = MessageFact::new(Instant::now(), SessionKey(1), caller.clone(), point, bytes);
            checker.take(&Fact::Message(MessageFact { exchange: Some(ExchangeId(exchange)), ..fact }));
        }
        counters.read().differs
    };
    assert_eq!(check("ada", "milk"), 0);
    for number in 0..checker::MAX_CALLERS - 1 {
        assert_eq!(check(&format!("u{number}"), "milk"), 0);
    }
    assert_eq!(check("ada", "gone"), 0);
    assert_eq!(check("one more", "milk"), 0);
    assert_eq!(check("ada", "gone"), 0, "its cursor stays");
    assert_eq!(check("u1", "gone"), 0);
    assert_eq!(check("u0", "gone"), 1, "it starts again");
}
