//! Facts come in, and the tape is looked at.

mod charges;
mod facts;
mod images;
mod memory;
mod order;
mod sampling;
mod sealing;
mod tape_change;
mod version_2;

use super::*;
use crate::glob::Glob;
use facts::{Facts, LONG};
use memory::{Memory, eventually};
use signalbox_engine::fact::{Outcome, Point};
use signalbox_engine::record::{Body, Content, Entry, MessageKind, StoreError};
use std::time::Duration;

/// Records what `say` says and gives the tape.
fn recorded(settings: RecorderSettings, say: impl FnOnce(&Facts)) -> (Vec<Entry>, RecorderStats) {
    let memory = Memory::default();
    let recorder = memory.record(settings, Redactor::none());
    say(&Facts::new(&recorder));
    recorder.stop(LONG);
    (memory.entries(), recorder.stats())
}

/// The exchanges that are on a tape, by the tool they called.
fn tools(entries: &[Entry]) -> Vec<String> {
    let ends = entries.iter().filter_map(|entry| match &entry.content {
        Content::Finished(finished) => finished.subject.as_deref().map(str::to_owned),
        _ => None,
    });
    ends.collect()
}

fn messages(entries: &[Entry]) -> Vec<&signalbox_engine::record::MessageEntry> {
    let messages = entries.iter().filter_map(|entry| match &entry.content {
        Content::Message(message) => Some(message),
        _ => None,
    });
    messages.collect()
}

/// Proves S-31, S-63 and N-35.
#[test]
fn a_session_is_recorded_whole_in_one_order_on_one_clock() {
    let (entries, stats) = recorded(RecorderSettings::default(), |facts| {
        facts.session(1, Some("ann-code"));
        facts.call(1, 7, "add", Outcome::Ok);
        facts.decision(1, 8, "refuse");
        facts.call(1, 8, "drop", Outcome::Fault("denied"));
        facts.session_ended(1);
    });
    assert_eq!(entries.len(), 1 + 5 + 1 + 5 + 1);
    assert!(entries.iter().enumerate().all(|(index, entry)| entry.seq == index as u64 + 1));
    assert!(entries.is_sorted_by_key(|entry| entry.at));
    assert!(entries.iter().all(|entry| entry.session == Some(1) && &*entry.principal == "ann"));
    let Content::Session(info) = &entries[0].content else { panic!("{:?}", entries[0]) };
    assert_eq!((info.client.as_deref(), info.transport.as_str()), (Some("ann-code"), "http"));
    assert_eq!(entries.last().unwrap().content, Content::SessionEnded);
    assert_eq!((stats.entries, stats.queue_depth, stats.sampled_out), (13, 0, 0));
    assert_eq!(stats.last_error, None);
}

/// Proves S-32 and S-61.
#[test]
fn answers_carry_the_method_and_subject_of_their_request() {
    let (entries, _) = recorded(RecorderSettings::default(), |facts| {
        facts.call(1, 1, "add", Outcome::Ok);
        facts.call(2, 2, "sub", Outcome::Ok);
    });
    let seen: Vec<_> = entries.iter().map(|entry| (entry.exchange, entry.session)).collect();
    assert_eq!(seen[..5], [(Some(1), None); 5], "a stateless request belongs to no session");
    assert_eq!(seen[5..], [(Some(2), None); 5]);
    for (message, tool) in messages(&entries).into_iter().zip(["add"; 4].into_iter().chain(["sub"; 4])) {
        assert_eq!((message.method.as_deref(), message.subject.as_deref()), (Some("tools/call"), Some(tool)));
    }
    assert_eq!(messages(&entries)[2].kind, MessageKind::Result);
}

#[test]
fn an_image_like_the_one_before_is_told_by_its_difference() {
    let (entries, _) = recorded(RecorderSettings::default(), |facts| facts.call(1, 1, "add", Outcome::Ok));
    let messages = messages(&entries);
    assert!(matches!(messages[0].body, Body::Whole(_)) && matches!(messages[2].body, Body::Whole(_)));
    let Body::Like { seq, prefix, suffix, middle } = &messages[1].body else { panic!("{:?}", messages[1]) };
    let Body::Whole(base) = &messages[0].body else { unreachable!() };
    let made = [&base[..*prefix as usize], middle, &base[base.len() - *suffix as usize..]].concat();
    assert_eq!((*seq, made.len() as u64), (entries[0].seq, messages[1].length));
    assert_eq!(made, facts::request(900, "add").as_bytes());
    let Body::Like { seq, .. } = &messages[3].body else { panic!("{:?}", messages[3]) };
    assert_eq!(*seq, entries[2].seq);
}

#[test]
fn what_comes_after_the_end_still_belongs_to_its_exchange() {
    let (entries, stats) = recorded(RecorderSettings::default(), |facts| {
        facts.call(1, 1, "add", Outcome::Ok);
        facts.message(1, Some(1), Point::ClientOut, &facts::result(1));
    });
    assert_eq!(entries.last().unwrap().exchange, Some(1));
    assert_eq!(stats.orphans, 0);
}

/// Proves S-33.
#[test]
fn bodies_may_be_left_out_and_large_ones_are() {
    let settings = RecorderSettings { max_body: 100, ..RecorderSettings::default() };
    let large = facts::request(1, &"x".repeat(200));
    let (entries, _) = recorded(settings, |facts| {
        facts.message(1, Some(1), Point::ClientIn, &large);
        facts.message(1, Some(1), Point::ClientOut, &facts::result(1));
    });
    let seen = messages(&entries);
    assert_eq!((&seen[0].body, seen[0].length), (&Body::Left, large.len() as u64));
    assert!(matches!(seen[1].body, Body::Whole(_)));
    let outlines = RecorderSettings { bodies: false, ..RecorderSettings::default() };
    let (entries, _) = recorded(outlines, |facts| facts.call(1, 1, "add", Outcome::Ok));
    assert!(messages(&entries).iter().all(|message| message.body == Body::Left && message.length > 0));
}

/// Proves S-33.
#[test]
fn filters_name_methods_tools_backends_and_principals() {
    let globs = |list: &[&str]| list.iter().map(|text| crate::glob::Glob::new(text)).collect::<Vec<_>>();
    let kept = |filter: Filter| {
        let settings = RecorderSettings { filter, ..RecorderSettings::default() };
        let (entries, stats) = recorded(settings, |facts| {
            facts.call(1, 1, "add", Outcome::Ok);
            facts.call(1, 2, "sub", Outcome::Ok);
        });
        assert_eq!(entries.len() as u64 + stats.sampled_out, 10);
        tools(&entries)
    };
    let only = |names: &[&str]| Choice { include: globs(names), exclude: vec![] };
    let but = |names: &[&str]| Choice { include: vec![], exclude: globs(names) };
    assert_eq!(kept(Filter { tools: only(&["a*"]), ..Filter::default() }), ["add"]);
    assert_eq!(kept(Filter { methods: but(&["tools/*"]), ..Filter::default() }), [""; 0]);
    assert_eq!(kept(Filter { principals: but(&["ann"]), ..Filter::default() }), [""; 0]);
    assert_eq!(kept(Filter { backends: only(&["math"]), ..Filter::default() }), ["add", "sub"]);
    assert_eq!(kept(Filter { backends: only(&["other"]), ..Filter::default() }), [""; 0]);
}

/// Proves S-21 and S-70.
#[test]
fn an_exchange_without_an_end_is_forgotten_and_counted() {
    let settings = RecorderSettings {
        orphan_after: Duration::from_millis(5),
        idle_every: Duration::from_millis(5),
        ..RecorderSettings::default()
    };
    let memory = Memory::default();
    let recorder = memory.record(settings, Redactor::none());
    Facts::new(&recorder).images(1, 1, "add");
    eventually(|| recorder.stats().orphans == 1);
    Facts::new(&recorder).message(1, Some(1), Point::ClientOut, &facts::result(1));
    recorder.stop(LONG);
    assert_eq!(memory.entries().last().unwrap().exchange, Some(1));
}

#[test]
fn a_full_queue_leaves_a_counted_gap() {
    let memory = Memory::default();
    memory.fail_with(Some(StoreError::Full("tapes.db".into())));
    let settings = RecorderSettings { queue_facts: 10, ..RecorderSettings::default() };
    let recorder = memory.record(settings, Redactor::none());
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "first", Outcome::Ok);
    eventually(|| recorder.stats().store_errors > 0);
    (2..12).for_each(|id| facts.call(1, id, "more", Outcome::Ok));
    let stats = recorder.stats();
    assert_eq!((stats.queue_depth, stats.lost(GapReason::Disk)), (10, 40));
    assert_eq!(stats.last_error.as_deref(), Some("no space left where tapes.db is"));
    memory.fail_with(None);
    eventually(|| recorder.stats().queue_depth == 0);
    facts.call(1, 12, "last", Outcome::Ok);
    recorder.stop(LONG);
    let entries = memory.entries();
    assert_eq!(tools(&entries), ["first", "more", "more", "last"]);
    let gaps: Vec<_> = entries.iter().filter(|entry| matches!(entry.content, Content::Gap(_))).collect();
    let [gap] = gaps[..] else { panic!("{gaps:?}") };
    assert_eq!(gap.content, Content::Gap(signalbox_engine::record::Gap { facts: 40, reason: "disk".into() }));
    assert_eq!(gap.seq, 16, "behind what was kept before it");
    assert!(entries.iter().enumerate().all(|(index, entry)| entry.seq == index as u64 + 1));
}

#[test]
fn bytes_have_a_bound_too() {
    let memory = Memory::default();
    memory.fail_with(Some(StoreError::Locked("tapes.db".into())));
    let settings = RecorderSettings { queue_bytes: 10_000, ..RecorderSettings::default() };
    let recorder = memory.record(settings, Redactor::none());
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "first", Outcome::Ok);
    eventually(|| recorder.stats().store_errors > 0);
    (2..6).for_each(|id| facts.message(1, Some(id), Point::ClientIn, &"x".repeat(4_000)));
    let stats = recorder.stats();
    assert_eq!((stats.queue_depth, stats.lost(GapReason::Disk)), (2, 2));
    assert!(stats.queue_bytes <= 10_000);
    memory.fail_with(None);
    recorder.stop(LONG);
}

#[test]
fn by_choice_whoever_takes_messages_waits_for_room() {
    let memory = Memory::default();
    let gate = memory.gate();
    let settings = RecorderSettings { queue_facts: 10, on_full: OnFull::Wait(LONG), ..RecorderSettings::default() };
    let recorder = memory.record(settings, Redactor::none());
    std::thread::scope(|scope| {
        let bringing = scope.spawn(|| {
            let facts = Facts::new(&recorder);
            for id in 0..100 {
                recorder.wait_for_room();
                facts.call(1, id, "add", Outcome::Ok);
            }
        });
        eventually(|| recorder.stats().queue_depth >= 5);
        assert!(!bringing.is_finished());
        drop(gate);
        bringing.join().unwrap();
    });
    recorder.stop(LONG);
    assert_eq!(memory.entries().len(), 500);
    assert!(recorder.stats().gaps.iter().all(|(_, facts)| *facts == 0));
}

/// All waiting messages went in at once, whatever their size, and the tape lost facts.
#[test]
fn large_messages_wait_for_as_much_room_as_they_need() {
    let memory = Memory::default();
    let gate = memory.gate();
    let on_full = OnFull::Wait(LONG);
    let settings = RecorderSettings { queue_bytes: 1 << 20, on_full, ..RecorderSettings::default() };
    let recorder = memory.record(settings, Redactor::none());
    let text = "x".repeat(100 << 10);
    let callers = 40;
    std::thread::scope(|scope| {
        for id in 0..callers {
            let (recorder, text) = (&recorder, &text);
            scope.spawn(move || {
                if let Some((room, within)) = recorder.room(text.len()) {
                    room.wait(within).unwrap();
                }
                let facts = Facts::new(recorder);
                facts.message(1, Some(id), Point::ClientIn, &facts::request(id, text));
                facts.message(1, Some(id), Point::BackendOut, &facts::request(id + 1000, text));
            });
        }
        eventually(|| recorder.stats().queue_depth >= 2);
        drop(gate);
    });
    recorder.stop(LONG);
    assert!(recorder.stats().gaps.iter().all(|(_, facts)| *facts == 0), "{:?}", recorder.stats().gaps);
    assert_eq!(memory.entries().iter().filter(|entry| matches!(entry.content, Content::Message(_))).count(), 80);
}

#[test]
fn an_entry_that_the_store_refuses_becomes_a_gap_and_the_rest_is_kept() {
    let memory = Memory::default();
    memory.refuse("bad");
    let recorder = memory.record(RecorderSettings::default(), Redactor::none());
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "good", Outcome::Ok);
    facts.message(1, Some(2), Point::ClientIn, &facts::request(1, "bad"));
    facts.call(1, 3, "good", Outcome::Ok);
    recorder.stop(LONG);
    assert_eq!(tools(&memory.entries()), ["good", "good"]);
    assert_eq!(recorder.stats().lost(GapReason::Refused), 1);
    assert!(
        memory.entries().iter().any(|entry| matches!(&entry.content, Content::Gap(gap) if gap.reason == "refused"))
    );
    assert_eq!(memory.entries().len(), 11);
}

#[test]
fn a_barrier_is_ready_when_everything_before_it_is_on_disk() {
    let memory = Memory::default();
    let recorder = memory.record(RecorderSettings::default(), Redactor::none());
    let facts = Facts::new(&recorder);
    for id in 0..50 {
        facts.call(1, id, "add", Outcome::Ok);
        assert_eq!(recorder.barrier().wait(LONG), Ok(()));
        // One more for the caller, who is told of once.
        assert_eq!(memory.durable(), (id as usize + 1) * 5 + 1);
    }
    facts.call(1, 50, "add", Outcome::Ok);
    assert_eq!(memory::block_on(recorder.barrier()), Ok(()), "as a future");
    assert_eq!(memory.durable(), 256);
    memory.fail_with(Some(StoreError::Full("tapes.db".into())));
    facts.call(1, 51, "add", Outcome::Ok);
    assert_eq!(recorder.barrier().wait(LONG), Err(BarrierError::Store));
    recorder.stop(Duration::ZERO);
    assert_eq!(recorder.barrier().wait(LONG), Err(BarrierError::Closed));
    assert_eq!(recorder.stats().lost(GapReason::Disk), 5, "what was given up is counted");
}

#[test]
fn nobody_waits_for_a_store_that_panics() {
    let memory = Memory::default();
    let settings = RecorderSettings { queue_facts: 10, on_full: OnFull::Wait(LONG), ..RecorderSettings::default() };
    let recorder = memory.record(settings, Redactor::none());
    memory.panic();
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "add", Outcome::Ok);
    assert!(recorder.barrier().wait(LONG).is_err_and(|why| why != BarrierError::Late));
    eventually(|| recorder.barrier().wait(LONG) == Err(BarrierError::Store));
    (2..6).for_each(|id| facts.call(1, id, "add", Outcome::Ok));
    let stats = recorder.stats();
    assert_eq!((stats.queue_depth, stats.lost(GapReason::Disk)), (10, 10));
    assert_eq!(stats.last_error.as_deref(), Some("the thread that writes the tape has panicked"));
}

#[test]
fn the_store_has_time_of_its_own_and_is_told_of_the_end() {
    let memory = Memory::default();
    let settings = RecorderSettings { idle_every: Duration::from_millis(5), ..RecorderSettings::default() };
    let recorder = memory.record(settings, Redactor::none());
    eventually(|| memory.idled() > 2);
    recorder.stop(LONG);
    assert!(memory.ended().is_some());
}

/// Proves SO-10.
#[test]
fn secrets_are_taken_out_before_the_store_sees_them() {
    let memory = Memory::default();
    let redactor = Redactor::new(&crate::RedactionSettings::default(), [1; 32]).unwrap();
    let recorder = memory.record(RecorderSettings::default(), redactor);
    let facts = Facts::new(&recorder);
    let secret = "AKIAABCDEFGHIJKLMNOP";
    facts.session(1, Some(secret));
    facts.message(1, Some(1), Point::ClientIn, &facts::request(1, secret));
    facts.message(1, Some(1), Point::BackendOut, &facts::request(2, secret));
    facts.message(
        1,
        Some(1),
        Point::BackendIn,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no Bearer abcdefgh12"}}"#,
    );
    facts.ruling(1, 1, secret);
    recorder.stop(LONG);
    let text = format!("{:?}", memory.entries());
    assert!(!text.contains("abcdefgh12") && text.contains("Bearer [redacted]"), "{text}");
    assert!(!text.contains(secret), "{text}");
    assert_eq!(recorder.stats().redacted, 3);
}

/// Asking about a tape does not make it grow by what it shows.
#[test]
fn of_a_withheld_backend_only_the_request_and_the_outlines_are_kept() {
    let memory = Memory::default();
    let recorder = memory.record(RecorderSettings::default(), Redactor::none());
    recorder.withhold(vec!["math".into()]);
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "search", Outcome::Ok);
    facts.sent_again(1, 1, 77);
    facts.message(1, Some(2), Point::ClientIn, &facts::request(2, "other"));
    facts.message(1, Some(2), Point::ClientOut, &facts::result(2));
    recorder.withhold(vec![]);
    facts.call(1, 3, "search", Outcome::Ok);
    recorder.stop(LONG);
    let entries = memory.entries();
    let kept: Vec<_> = messages(&entries).iter().map(|message| message.body != Body::Left).collect();
    assert_eq!(kept[..4], [true, false, false, false], "of the call itself only what the client asked");
    assert_eq!(kept[4..6], [false, false], "nor when its answer is sent again");
    assert_eq!(kept[6..], [true; 6], "other calls, and those of another configuration, are whole");
    let outline = messages(&entries)[3];
    assert_eq!((outline.kind, outline.subject.as_deref()), (MessageKind::Result, Some("search")));
    assert_eq!(outline.length, facts::result(1).len() as u64);
    assert_eq!(tools(&entries), ["search", "search"], "that there was a call is recorded");
}
