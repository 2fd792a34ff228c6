//! A tape that is large or old ends, and the next one goes on with everything that its readers need.

use super::sealing::{commit, verify};
use super::*;
use crate::Bodies;
use crate::seal::{HeadInterval, SealSettings, SealVerdict};
use signalbox_engine::record::{RulesEntry, TapeInfo, TapeKind};
use signalbox_seal::SigningKey;
use std::sync::{Mutex, MutexGuard};

/// The tapes of one recorder, in memory.
#[derive(Clone, Default)]
struct Tapes(Arc<Mutex<Vec<Tape>>>);

#[derive(Clone)]
struct Tape {
    info: TapeInfo,
    memory: Memory,
}

impl Tape {
    /// Begins a sealed tape.
    fn new(number: usize, started: u64) -> (Self, SealSettings) {
        let mut info = TapeInfo::new(format!("tape-{number}"), TapeKind::Serve, "x".to_owned(), started);
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let seal =
            SealSettings::begin(&mut info, key, [number as u8; 32], commit(), HeadInterval { entries: 10, time: LONG })
                .unwrap();
        (Self { info, memory: Memory::default() }, seal)
    }

    fn entries(&self) -> Vec<Entry> {
        let mut bodies = Bodies::default();
        self.memory.all_entries().into_iter().map(|entry| bodies.whole(entry)).collect()
    }

    fn notes(&self) -> Vec<(Option<u64>, String, String)> {
        let notes = self.entries().into_iter().filter_map(|entry| match &entry.content {
            Content::Decisions(list) if list[0].is_note() => {
                Some((entry.exchange, list[0].verdict.to_string(), list[0].inputs[0].1.clone()))
            }
            _ => None,
        });
        notes.collect()
    }
}

impl Tapes {
    fn lock(&self) -> MutexGuard<'_, Vec<Tape>> {
        self.0.lock().unwrap()
    }

    /// All tapes that were begun.
    fn all(&self) -> Vec<Tape> {
        self.lock().clone()
    }

    fn record(&self, settings: RecorderSettings, bounds: TapeBounds, grace: Duration) -> Recorder {
        let (first, seal) = Tape::new(1, 0);
        let series = TapeSeries { first: first.info.id.clone(), bounds, grace, factory: Box::new(self.clone()) };
        let writer = Box::new(first.memory.clone());
        self.lock().push(first);
        let settings = RecorderSettings { seal: Some(seal), gather: Duration::ZERO, ..settings };
        let redactor = Redactor::new(&crate::RedactionSettings::default(), [1; 32]).unwrap();
        Recorder::start_series(settings, redactor, writer, Anchor::now(), series).unwrap()
    }

    /// Waits until this many tapes were begun.
    fn wait_for(&self, number: usize) {
        eventually(|| self.lock().len() >= number);
    }
}

impl TapeFactory for Tapes {
    fn next_tape(&mut self, started: u64) -> Result<NextTape, NextTapeError> {
        let (tape, seal) = Tape::new(self.lock().len() + 1, started);
        let writer = Box::new(tape.memory.clone());
        // It is one of the tapes when it was begun; until then it stands behind them.
        PENDING.with(|pending| *pending.borrow_mut() = Some(tape.memory));
        Ok(NextTape { info: tape.info, writer, seal: Some(seal), hash_key: [9; 32] })
    }

    fn begun(&mut self, info: TapeInfo) {
        let memory = PENDING.with(|pending| pending.borrow_mut().take()).unwrap();
        self.lock().push(Tape { info, memory });
    }
}

thread_local! {
    static PENDING: std::cell::RefCell<Option<Memory>> = const { std::cell::RefCell::new(None) };
}

const NEVER: Duration = LONG;

fn bytes(most: u64) -> TapeBounds {
    TapeBounds { max_bytes: Some(most), max_age: None }
}

/// Checks that every tape is sealed, closed, counted from 1 and refers to nothing outside, and gives the entries of
/// all.
fn checked(tapes: &Tapes) -> Vec<Vec<Entry>> {
    let all = tapes.all();
    for tape in &all {
        let report = verify(&tape.info, &tape.memory);
        let is_empty = tape.memory.all_entries().is_empty();
        assert!(report.verdict == SealVerdict::Valid || is_empty, "{}: {report:?}", tape.info.id);
        let entries = tape.entries();
        assert!(entries.iter().enumerate().all(|(index, entry)| entry.seq == index as u64 + 1));
        assert!(entries.is_sorted_by_key(|entry| entry.at));
        assert!(messages(&entries).iter().all(|message| message.body != Body::Left), "{entries:#?}");
        let first = entries.first().map_or(u64::MAX, |entry| entry.at);
        assert!(tape.info.started <= first && entries.last().is_none_or(|entry| Some(entry.at) <= tape.memory.ended()));
        let described =
            |wanted: &dyn Fn(&Entry) -> bool, before: u64| entries.iter().any(|one| one.seq < before && wanted(one));
        for entry in &entries {
            if let (Some(session), false) = (entry.session, matches!(entry.content, Content::Session(_))) {
                let is_it = |one: &Entry| one.session == Some(session) && matches!(one.content, Content::Session(_));
                assert!(described(&is_it, entry.seq), "session {session} of {entry:?}");
            }
            if let Content::Finished(finished) = &entry.content
                && let Some(client) = finished.client
            {
                let is_it = |one: &Entry| matches!(&one.content, Content::Client(told) if told.number == client);
                assert!(described(&is_it, entry.seq), "caller {client}");
            }
        }
    }
    all.iter().map(Tape::entries).collect()
}

/// Returns the recorded entries of calls, without descriptions that each tape repeats.
fn facts_of(entries: &[Vec<Entry>]) -> Vec<(Option<u64>, String)> {
    let facts = entries.iter().flatten().filter_map(|entry| match &entry.content {
        Content::Message(message) => Some((entry.exchange, format!("{:?} {:?}", message.point, message.body))),
        Content::Finished(finished) => Some((entry.exchange, format!("ended {}", finished.outcome))),
        _ => None,
    });
    facts.collect()
}

/// A tape that reaches `max_bytes` ends, and the next one begins; each is sealed and closed, and no fact is missing or
/// doubled.
/// Proves SO-9.
#[test]
fn a_tape_that_is_large_ends_and_the_next_one_goes_on() {
    let tapes = Tapes::default();
    let recorder = tapes.record(RecorderSettings::default(), bytes(20_000), NEVER);
    let facts = Facts::new(&recorder);
    recorder.rules(RulesEntry { hash: "h1".into(), text: "rules".into(), redacted: false });
    facts.session(1, Some("ann-code"));
    for id in 1..=200 {
        // Some callers have a session, and some have none.
        facts.call(1 + id % 2, id, "add", Outcome::Ok);
        if id % 20 == 0 {
            assert_eq!(recorder.barrier().wait(LONG), Ok(()));
        }
    }
    recorder.stop(LONG);
    let entries = checked(&tapes);
    assert!(entries.len() > 3, "{}", entries.len());
    let facts = facts_of(&entries);
    assert_eq!(facts.len(), 200 * 5);
    assert!(facts.chunks(5).enumerate().all(|(call, chunk)| chunk.iter().all(|(id, _)| *id == Some(call as u64 + 1))));
    assert!(tapes.all().iter().all(|tape| tape.notes().is_empty()), "there were moments without calls");
    for tape in &entries[..entries.len() - 1] {
        let kept: usize = messages(tape).iter().map(|message| message.length as usize + 120).sum();
        assert!(kept < 60_000, "{kept}");
        assert!(matches!(&tape[0].content, Content::Rules(rules) if rules.hash == "h1"), "{:?}", tape[0]);
    }
    assert_eq!(recorder.stats().entries, entries.iter().map(|tape| tape.len() as u64).sum::<u64>());
    assert!(recorder.stats().gaps.iter().all(|(_, facts)| *facts == 0));
}

/// The age of a tape is a bound too; a tape without calls goes on.
/// Proves SO-9.
#[test]
fn a_tape_that_is_old_ends_and_an_empty_one_goes_on() {
    let tapes = Tapes::default();
    let settings = RecorderSettings { idle_every: Duration::from_millis(5), ..RecorderSettings::default() };
    let bounds = TapeBounds { max_bytes: None, max_age: Some(Duration::from_millis(20)) };
    let recorder = tapes.record(settings, bounds, NEVER);
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "add", Outcome::Ok);
    tapes.wait_for(2);
    std::thread::park_timeout(Duration::from_millis(100));
    assert_eq!(tapes.all().len(), 2, "nothing has happened since");
    facts.call(1, 2, "sub", Outcome::Ok);
    tapes.wait_for(3);
    recorder.stop(LONG);
    let entries = checked(&tapes);
    assert_eq!(entries.iter().map(|tape| tools(tape)).collect::<Vec<_>>(), [vec!["add"], vec!["sub"], vec![]]);
}

/// A call that is under way at the border for longer than the grace has a part on each tape, and both say so.
/// Proves SO-9.
#[test]
fn a_call_across_the_border_is_noted_on_both_tapes() {
    let tapes = Tapes::default();
    let settings = RecorderSettings { idle_every: Duration::from_millis(5), ..RecorderSettings::default() };
    let recorder = tapes.record(settings, bytes(1_000), Duration::from_millis(50));
    let facts = Facts::new(&recorder);
    facts.session(1, Some("ann-code"));
    facts.message(1, Some(7), Point::ClientIn, &facts::request(7, "slow"));
    facts.message(1, Some(7), Point::BackendOut, &facts::request(900, "slow"));
    facts.call(1, 8, "add", Outcome::Ok);
    facts.call(2, 9, "add", Outcome::Ok);
    tapes.wait_for(2);
    facts.message(1, Some(7), Point::BackendIn, &facts::result(900));
    facts.message(1, Some(7), Point::ClientOut, &facts::result(7));
    facts.finished(1, 7, "slow", Outcome::Ok, Duration::from_secs(1));
    facts.call(2, 10, "add", Outcome::Ok);
    recorder.stop(LONG);
    let entries = checked(&tapes);
    let all = tapes.all();
    assert_eq!(all[0].notes(), [(Some(7), "continues".to_owned(), "tape-2".to_owned())]);
    assert_eq!(all[1].notes(), [(Some(7), "resumed".to_owned(), "tape-1".to_owned())]);
    let of_call: Vec<_> = entries[1].iter().filter(|entry| entry.exchange == Some(7)).collect();
    assert!(matches!(&of_call[0].content, Content::Decisions(list) if list[0].tape_of_beginning() == Some("tape-1")));
    let Content::Finished(finished) = &of_call.last().unwrap().content else { panic!("{of_call:?}") };
    assert_eq!((finished.subject.as_deref(), finished.took), (Some("slow"), 1_000_000_000));
    assert_eq!(facts_of(&entries).len(), 4 * 5);
}

/// The answer of a call stays on the tape of the call, even if it is told after the end.
/// Proves SO-9.
#[test]
fn a_late_answer_is_waited_for() {
    let tapes = Tapes::default();
    let settings = RecorderSettings { idle_every: Duration::from_millis(1), ..RecorderSettings::default() };
    let recorder = tapes.record(settings, bytes(100), NEVER);
    let facts = Facts::new(&recorder);
    facts.message(1, Some(1), Point::ClientIn, &facts::request(1, "add"));
    facts.finished(1, 1, "add", Outcome::Ok, Duration::ZERO);
    assert_eq!(recorder.barrier().wait(LONG), Ok(()));
    facts.message(1, Some(1), Point::ClientOut, &facts::result(1));
    tapes.wait_for(2);
    recorder.stop(LONG);
    assert_eq!(messages(&tapes.all()[0].entries()).len(), 2);
}

/// What sampling holds back goes on to the next tape, whole, and a ring keeps what it holds.
/// Proves SO-9.
#[test]
fn what_is_held_back_goes_on_to_the_next_tape() {
    let tapes = Tapes::default();
    let ring = Sampling::Ring {
        exchanges: 100,
        within: None,
        after: 1,
        on: SamplingTrigger { errors: true, ..SamplingTrigger::default() },
    };
    let settings =
        RecorderSettings { sampling: ring, idle_every: Duration::from_millis(5), ..RecorderSettings::default() };
    let recorder = tapes.record(settings, bytes(3_000), Duration::from_millis(500));
    let facts = Facts::new(&recorder);
    facts.session(1, Some("ann-code"));
    // The first call of the ring is written while it runs, so that its rest is like what is on the first tape.
    facts.message(1, Some(1), Point::ClientIn, &facts::request(1, "slow"));
    (2..6).for_each(|id| facts.call(id % 2, id, "held", Outcome::Ok));
    recorder.trigger();
    assert_eq!(recorder.barrier().wait(LONG), Ok(()));
    facts.call(1, 9, "after", Outcome::Ok);
    facts.call(1, 10, "held", Outcome::Ok);
    facts.message(1, Some(1), Point::BackendOut, &facts::request(900, "slow"));
    (11..15).for_each(|id| facts.call(id % 2, id, "held", Outcome::Ok));
    tapes.wait_for(2);
    let first = tapes.all()[0].entries();
    assert_eq!(tools(&first), ["held", "held", "held", "held", "after"]);
    assert_eq!(first.iter().filter(|entry| entry.exchange == Some(1)).count(), 2, "its request, and where its rest is");
    facts.message(1, Some(1), Point::BackendIn, &facts::result(900));
    facts.message(1, Some(1), Point::ClientOut, &facts::result(1));
    facts.finished(1, 1, "slow", Outcome::Ok, Duration::from_secs(1));
    facts.call(1, 20, "broken", Outcome::ToolError);
    recorder.trigger();
    recorder.stop(LONG);
    let entries = checked(&tapes);
    let rest: Vec<String> = entries[1..].iter().flat_map(|tape| tools(tape)).collect();
    assert_eq!(rest.iter().filter(|tool| *tool == "held").count(), 5, "{rest:?}");
    assert!(rest.contains(&"slow".to_owned()) && rest.contains(&"broken".to_owned()), "{rest:?}");
    let stats = recorder.stats();
    assert_eq!(facts_of(&entries).len() as u64 + stats.sampled_out, 12 * 5);
}

/// While the store cannot end a tape, nothing is lost, and the tapes are whole when it works again.
/// Proves SO-9.
#[test]
fn a_store_that_fails_at_the_border_loses_nothing() {
    let tapes = Tapes::default();
    let recorder = tapes.record(RecorderSettings::default(), bytes(5_000), Duration::ZERO);
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "add", Outcome::Ok);
    assert_eq!(recorder.barrier().wait(LONG), Ok(()));
    tapes.all()[0].memory.fail_with(Some(StoreError::Full("x".into())));
    (2..20).for_each(|id| facts.call(1, id, "add", Outcome::Ok));
    eventually(|| recorder.stats().failing.is_some());
    tapes.all()[0].memory.fail_with(None);
    tapes.wait_for(2);
    (20..25).for_each(|id| facts.call(1, id, "add", Outcome::Ok));
    recorder.stop(LONG);
    let entries = checked(&tapes);
    assert_eq!(facts_of(&entries).len(), 24 * 5);
}

/// Equal secrets look equal within a tape only.
/// Proves SO-9.
#[test]
fn each_tape_hashes_secrets_under_a_key_of_its_own() {
    let redaction = crate::redact::RedactionSettings {
        keys: vec![crate::redact::KeyRule { name: "card".into(), action: crate::redact::Action::Hash }],
        ..crate::redact::RedactionSettings::none()
    };
    let redactor = Redactor::new(&redaction, [1; 32]).unwrap();
    let text = |redactor: &Redactor| redactor.text(r#"{"card":"4711"}"#.to_owned());
    assert_ne!(text(&redactor), text(&redactor.with_key([2; 32])));
    assert_eq!(text(&redactor), text(&redactor.with_key([2; 32]).with_key([1; 32])));
}
