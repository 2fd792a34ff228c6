//! Entries bear the time at which things happened, and stand in that order.

use super::facts::{LONG, request, result};
use super::memory::{Memory, eventually};
use crate::Redactor;
use crate::recorder::RecorderSettings;
use bytes::Bytes;
use signalbox_engine::fact::{FinishedFact, MessageFact, Outcome, Point, SessionFact};
use signalbox_engine::record::{Content, Entry};
use signalbox_engine::{Caller, ExchangeId, Fact, FactSink, SessionKey};
use signalbox_wire::Era;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// A call on a connection of its own. Its end bears the time of the event that led to it, which is before the answer
/// left.
fn call(session: u64, exchange: u64, began: Instant, took: Duration) -> Vec<Fact> {
    let caller = Caller::anonymous("http");
    let message = |at: Instant, point: Point, text: String| {
        let fact = MessageFact::new(at, SessionKey(session), caller.clone(), point, Bytes::from(text));
        Fact::Message(MessageFact { exchange: Some(ExchangeId(exchange)), ..fact })
    };
    let finished = FinishedFact {
        at: began + took,
        session: SessionKey(session),
        caller: caller.clone(),
        exchange: ExchangeId(exchange),
        era: Era::Legacy,
        method: "tools/call".into(),
        subject: None,
        unreached: None,
        backend: Some("math".into()),
        client: None,
        operation: ExchangeId(exchange),
        round: 1,
        outcome: Outcome::Ok,
        took,
        bytes_in: 1,
        bytes_out: 1,
        trace: None,
    };
    vec![
        message(began, Point::ClientIn, request(exchange, "add")),
        message(began + micros(20), Point::BackendOut, request(900, "add")),
        message(began + took - micros(30), Point::BackendIn, result(900)),
        message(began + took + micros(10), Point::ClientOut, result(exchange)),
        Fact::Finished(Arc::new(finished)),
    ]
}

fn opened(session: u64, at: Instant) -> Fact {
    Fact::Session(Arc::new(SessionFact {
        at,
        session: SessionKey(session),
        caller: Caller::anonymous("http"),
        external: None,
        transport: "http",
        client: None,
    }))
}

fn of(entries: &[Entry], exchange: u64) -> Vec<&Entry> {
    entries.iter().filter(|entry| entry.exchange == Some(exchange)).collect()
}

/// No image of a call is later than its end, and nothing comes before it has begun.
fn assert_true_times(entries: &[Entry], exchange: u64) {
    let of = of(entries, exchange);
    let Some(Content::Finished(finished)) = of.last().map(|entry| &entry.content) else { panic!("{of:?}") };
    let (began, ended) = (of[0].at, of[4].at);
    assert_eq!(ended - began, finished.took + 10_000, "the answer left 10 microseconds after the event of the end");
    assert_eq!(of[2].at - began, finished.took - 30_000, "the backend's answer bears its own time");
}

/// What a thread tells late bears its own time, and stands where it happened.
#[test]
fn facts_that_come_late_are_stamped_with_their_own_time_and_sorted_by_it() {
    let memory = Memory::default();
    let recorder = Arc::new(memory.record(RecorderSettings::default(), Redactor::none()));
    let start = Instant::now();
    // What another worker has noted and not told yet, as the buffers of the gateway have it.
    let noted: Arc<Mutex<Vec<Fact>>> = Arc::default();
    let (buffer, sink) = (Arc::clone(&noted), Arc::downgrade(&recorder));
    recorder.settle_with(move || {
        if let Some(sink) = sink.upgrade() {
            sink.facts(&std::mem::take(&mut *buffer.lock().unwrap()));
        }
    });
    *noted.lock().unwrap() = call(2, 2, start + micros(100), micros(600));
    let mut told = vec![opened(1, start + micros(5))];
    told.extend(call(1, 1, start, micros(500)));
    told.extend(call(1, 3, start + Duration::from_millis(70), micros(500)));
    recorder.facts(&told);
    eventually(|| memory.entries().len() >= 15);
    recorder.stop(LONG);
    let entries = memory.entries();
    assert!(entries.is_sorted_by_key(|entry| entry.at));
    assert_true_times(&entries, 2);
    assert_true_times(&entries, 3);
    assert!(of(&entries, 2)[4].at < of(&entries, 3)[0].at, "in order across connections");
    assert!(of(&entries, 1)[0].session.is_some(), "a session is told of before its messages");
}

/// The tick that looks for what is overdue makes no entry, so it does not move the clock.
#[test]
fn a_tick_does_not_make_later_facts_late() {
    let memory = Memory::default();
    let recorder = memory.record(RecorderSettings::default(), Redactor::none());
    let start = Instant::now();
    // Whatever is told from here on happened before the tick that follows the first batch.
    std::thread::park_timeout(Duration::from_millis(5));
    recorder.facts(&call(1, 1, start, micros(500)));
    eventually(|| memory.entries().len() >= 5);
    recorder.facts(&call(2, 2, start + micros(600), micros(700)));
    recorder.stop(LONG);
    assert_true_times(&memory.entries(), 2);
}
