//! What a recorder seals is valid, whatever the store does with it.

use super::facts::{Facts, LONG};
use super::*;
use crate::Bodies;
use crate::seal::{HeadInterval, SealReport, SealSettings, SealVerdict, TapeVerifier};
use signalbox_engine::record::{TapeInfo, TapeKind};
use signalbox_seal::{SigningKey, TapeSeal};

/// Members whose values are sealed one by one.
pub(super) fn commit() -> Vec<Vec<String>> {
    vec![vec!["params".to_owned(), "arguments".to_owned()], vec!["result".to_owned()]]
}

pub(super) fn sealed(every: u64) -> (TapeInfo, RecorderSettings) {
    let mut info = TapeInfo::new("t".to_owned(), TapeKind::Serve, "x".to_owned(), 1);
    let key = SigningKey::from_seed(&[1; 32]).unwrap();
    let seal =
        SealSettings::begin(&mut info, key, [2; 32], commit(), HeadInterval { entries: every, time: LONG }).unwrap();
    (info, RecorderSettings { seal: Some(seal), ..RecorderSettings::default() })
}

pub(super) fn verify(info: &TapeInfo, memory: &Memory) -> SealReport {
    let mut info = info.clone();
    info.ended = memory.ended();
    if let (Some(seal), Some(closing)) = (&info.seal, memory.closing()) {
        info.seal = Some(TapeSeal::closed(seal, &closing));
    }
    let (mut verifier, mut bodies) = (TapeVerifier::new(&info), Bodies::default());
    for entry in memory.all_entries() {
        verifier.push(bodies.whole(entry));
    }
    verifier.finish()
}

#[test]
fn what_is_recorded_is_sealed_and_closed() {
    let (info, settings) = sealed(10);
    let memory = Memory::default();
    let recorder = memory.record(settings, Redactor::none());
    let facts = Facts::new(&recorder);
    facts.session(1, Some("ann-code"));
    for id in 1..100 {
        facts.call(1, id, "add", Outcome::Ok);
        facts.decision(1, id, "refuse");
    }
    facts.message(1, Some(100), Point::ClientOut, &facts::result(1));
    assert_eq!(recorder.barrier().wait(LONG), Ok(()));
    let report = verify(&info, &memory);
    assert_eq!(report.verdict, SealVerdict::NeverClosed, "{report:?}");
    assert_eq!(report.last - report.last % 10, report.signed_up_to);
    recorder.stop(LONG);
    let report = verify(&info, &memory);
    assert_eq!(report.verdict, SealVerdict::Valid, "{report:?}");
    assert_eq!(report.entries, memory.all_entries().len() as u64);
}

#[test]
fn a_store_that_fails_or_refuses_an_entry_does_not_break_the_chain() {
    let (info, settings) = sealed(3);
    let memory = Memory::default();
    memory.refuse("bad");
    let recorder = memory.record(settings, Redactor::none());
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "good", Outcome::Ok);
    facts.call(1, 2, "bad", Outcome::Ok);
    facts.call(1, 3, "good", Outcome::Ok);
    assert_eq!(recorder.barrier().wait(LONG), Err(BarrierError::Store));
    eventually(|| recorder.stats().lost(GapReason::Refused) == 4);
    memory.fail_with(Some(StoreError::Full("x".into())));
    facts.call(1, 4, "good", Outcome::Ok);
    eventually(|| recorder.stats().failing.is_some());
    memory.fail_with(None);
    recorder.stop(LONG);
    let report = verify(&info, &memory);
    assert_eq!((report.verdict, report.missing), (SealVerdict::ClosedWithGaps, 4), "{report:?}");
    assert!(memory.all_entries().iter().any(|entry| matches!(entry.content, Content::Gap(_))));
}

/// On a full disk there was room for nothing but the end.
#[test]
fn a_tape_that_lost_facts_says_so_in_what_closes_it() {
    let (info, settings) = sealed(3);
    let memory = Memory::default();
    let recorder = memory.record(settings, Redactor::none());
    let facts = Facts::new(&recorder);
    facts.call(1, 1, "good", Outcome::Ok);
    assert_eq!(recorder.barrier().wait(LONG), Ok(()));
    memory.fill();
    (2..30).for_each(|id| facts.call(1, id, "good", Outcome::Ok));
    eventually(|| recorder.stats().failing.is_some());
    recorder.stop(Duration::ZERO);
    let report = verify(&info, &memory);
    let missing: u64 = recorder.stats().gaps.iter().map(|(_, facts)| facts).sum();
    assert!(missing > 0 && memory.ended().is_some(), "{report:?}");
    assert_eq!(report.verdict, SealVerdict::ClosedWithGaps, "{report:?}");
    assert_eq!(report.missing, missing, "{report:?}");
}
