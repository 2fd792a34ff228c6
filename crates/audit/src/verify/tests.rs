use super::*;
use crate::event::{AuditEvent, EventType, RiskLevel};
use signalbox_seal::{SigningKey, TrustedKey};

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn trusted(key: &SigningKey) -> KeySet {
    let mut keys = KeySet::new();
    keys.add(TrustedKey::new(key.verifying_key().clone(), "gateway", &[KeyRole::Gateway, KeyRole::Recorder])).unwrap();
    keys
}

/// Ten records, of which the fifth and the last are heads.
fn chain() -> Vec<String> {
    let (mut place, mut lines) = (ChainPlace::start("c"), Vec::new());
    for number in 1..=10_u64 {
        let mut text = String::new();
        let (kind, details) = match number % 5 {
            0 => {
                let ChainPlace { chain, seq, hash } = place.clone();
                let head =
                    SignedPlace { kind: HEAD, chain, from: seq, to: seq, hash, at: 1_700_000_000_000, sink: None };
                (EventType::ChainHead, head.sign(&key()).unwrap())
            }
            _ => (EventType::ProtocolError, format!("{{\"count\":{number}}}")),
        };
        place.append(&AuditEvent::own(number, kind, &details, RiskLevel::Low), &mut text);
        lines.push(text.trim_end().to_owned());
    }
    lines
}

fn verify(lines: &[String]) -> AuditReport {
    let keys = trusted(&key());
    let mut verifier = AuditVerifier::new(&keys);
    for (number, line) in lines.iter().enumerate() {
        verifier.line(&format!("line {}", number + 1), line);
    }
    verifier.finish()
}

fn first(lines: &[String]) -> Option<(String, AuditFaultKind)> {
    verify(lines).faults.into_iter().next().map(|fault| (fault.place, fault.kind))
}

/// A chain is whole from its first record on, or behind a signed checkpoint.
#[test]
fn a_chain_without_its_start_is_not_whole_unless_a_checkpoint_stands_for_it() {
    let report = verify(&chain());
    assert_eq!((report.records, report.chains, report.heads, report.unsigned), (10, 1, 2, 0));
    assert_eq!(report.verdict(), AuditVerdict::Whole);
    for cut in 1..chain().len() {
        let left = chain()[cut..].to_vec();
        let missing = AuditFaultKind::Missing(1, cut as u64);
        assert_eq!(first(&left), Some(("line 1".to_owned(), missing)), "without the first {cut}");
        let (hash, _) = AuditRecord::read(&left[0]).unwrap().hashes().unwrap();
        let place = |kind| SignedPlace {
            kind,
            chain: "c".into(),
            from: 1,
            to: cut as u64,
            hash,
            at: 1_700_000_000_000,
            sink: None,
        };
        let with = |line: String| [vec![line], left.clone()].concat();
        let report = verify(&with(place("pruned").sign(&key()).unwrap()));
        assert_eq!((report.verdict(), report.pruned), (AuditVerdict::Whole, cut as u64));
        let report = verify(&with(place("pruned_unproved_file").sign(&key()).unwrap()));
        assert_eq!(report.verdict(), AuditVerdict::Unproved);
        let other = SigningKey::from_seed(&[8; 32]).unwrap();
        assert_eq!(verify(&with(place("pruned").sign(&other).unwrap())).verdict(), AuditVerdict::Broken);
        let later = SignedPlace { to: cut as u64 + 1, ..place("pruned") };
        let forged = later.sign(&key()).unwrap().replace(&format!("\"to\":{}", cut + 1), &format!("\"to\":{cut}"));
        assert_eq!(verify(&with(forged)).verdict(), AuditVerdict::Broken);
    }
}

/// Records that a crash left behind their checkpoint are not looked at; what follows must still fit.
#[test]
fn records_that_a_checkpoint_stands_for_may_still_be_there() {
    let (hash, _) = AuditRecord::read(&chain()[4]).unwrap().hashes().unwrap();
    let place =
        SignedPlace { kind: "pruned_file", chain: "c".into(), from: 1, to: 4, hash, at: 1_700_000_000_000, sink: None };
    let with = |lines: Vec<String>| [vec![place.sign(&key()).unwrap()], lines].concat();
    assert_eq!(verify(&with(chain())).verdict(), AuditVerdict::Whole);
    assert_eq!(verify(&with(chain()[2..].to_vec())).verdict(), AuditVerdict::Whole);
    assert_eq!(verify(&with(chain()[5..].to_vec())).verdict(), AuditVerdict::Broken);
}

/// What no signature covers is not whole.
#[test]
fn unsigned_records_are_unproved_and_a_chain_without_any_signature_is_invented() {
    assert_eq!(verify(&chain()[..4]).verdict(), AuditVerdict::Unproved, "a copy without heads");
    let tail = verify(&chain()[..7]);
    assert_eq!((tail.verdict(), tail.unsigned), (AuditVerdict::Unproved, 2), "a copy with an unsigned end");
    let (mut place, mut invented) = (ChainPlace::start("d"), String::new());
    place.append(&AuditEvent::own(1, EventType::RecordsLost, "{}", RiskLevel::Low), &mut invented);
    let mut lines = chain();
    lines.insert(3, invented.trim_end().to_owned());
    let report = verify(&lines);
    assert_eq!(report.verdict(), AuditVerdict::Broken);
    assert_eq!(report.faults[0].kind, AuditFaultKind::Unsigned(1, 1));
    assert_eq!(report.faults[0].chain, "d");
}

/// The first record follows the start of its chain, and nothing else.
#[test]
fn a_first_record_with_another_beginning_is_tampered_with() {
    let mut place = ChainPlace { chain: "c".into(), seq: 0, hash: [9; 32] };
    let mut text = String::new();
    place.append(&AuditEvent::own(1, EventType::RecordsLost, "{}", RiskLevel::Low), &mut text);
    assert_eq!(first(&[text.trim_end().to_owned()]), Some(("line 1".to_owned(), AuditFaultKind::Tampered(1))));
}

/// The first record that was changed, removed, moved or repeated is named.
#[test]
fn the_first_tampered_missing_or_reordered_record_is_named() {
    let at = |line: &str, kind| Some((line.to_owned(), kind));
    let mut changed = chain();
    changed[2] = changed[2].replace("\"count\":3", "\"count\":4");
    assert_eq!(first(&changed), at("line 3", AuditFaultKind::Tampered(3)));
    let mut removed = chain();
    removed.drain(2..4);
    assert_eq!(first(&removed), at("line 3", AuditFaultKind::Missing(3, 4)));
    let mut moved = chain();
    moved.swap(2, 3);
    assert_eq!(first(&moved), at("line 3", AuditFaultKind::Missing(3, 3)));
    let mut repeated = chain();
    repeated.insert(3, repeated[2].clone());
    assert_eq!(first(&repeated), at("line 4", AuditFaultKind::Reordered(3)));
    let mut torn = chain();
    torn[9].truncate(40);
    assert_eq!(first(&torn), at("line 10", AuditFaultKind::Unreadable));
    let mut more = chain();
    more[1] = more[1].replacen("\"seq\":2", "\"seq\":2,\"x\":1", 1);
    assert_eq!(first(&more), at("line 2", AuditFaultKind::Tampered(2)));
}

/// Whoever makes all hashes anew has no key for the heads.
#[test]
fn a_chain_that_was_made_anew_has_no_good_heads() {
    let (mut place, mut lines) = (ChainPlace::start("c"), Vec::new());
    for (number, line) in chain().iter().enumerate() {
        let record = AuditRecord::read(line).unwrap();
        let details = match number {
            2 => "{\"count\":999}".to_owned(),
            _ => record.value["details"].to_string(),
        };
        let mut text = String::new();
        let event = AuditEvent::own(number as u64, record.event_type.unwrap(), &details, RiskLevel::Low);
        place.append(&event, &mut text);
        lines.push(text.trim_end().to_owned());
    }
    assert_eq!(first(&lines), Some(("line 5".to_owned(), AuditFaultKind::BadSignature(5))));
    let others = trusted(&SigningKey::from_seed(&[8; 32]).unwrap());
    let mut verifier = AuditVerifier::new(&others);
    chain().iter().for_each(|line| verifier.line("x", line));
    assert_eq!(verifier.finish().faults[0].kind, AuditFaultKind::Untrusted(5, key().id().to_owned()));
}

/// What is missing at the end is known from the signed head that is kept elsewhere.
#[test]
fn deleted_last_records_are_named() {
    let keys = trusted(&key());
    let mut verifier = AuditVerifier::new(&keys);
    chain()[..7].iter().for_each(|line| verifier.line("x", line));
    verifier.came_to("head.json", "c", 9);
    assert_eq!(verifier.finish().faults[0].kind, AuditFaultKind::Missing(8, 9));
}

/// A gap is as good as its signature.
#[test]
fn a_signed_gap_stands_for_what_a_sink_did_not_get() {
    let mut lines = chain();
    let (hash, _) = AuditRecord::read(&lines[6]).unwrap().hashes().unwrap();
    let gap = SignedPlace { kind: "gap", chain: "c".into(), from: 3, to: 6, hash, at: 1_700_000_000_000, sink: None };
    let signed = gap.sign(&key()).unwrap();
    lines.splice(2..6, [signed.clone()]);
    let report = verify(&lines);
    assert_eq!((report.faults.as_slice(), report.skipped, report.verdict()), (&[][..], 4, AuditVerdict::WithGaps));
    lines[2] = signed.replace("\"from\":3", "\"from\":2");
    assert!(!verify(&lines).faults.is_empty());
}

/// What one sink did not get, or deleted by age, is no reason for another to lack it.
#[test]
fn gaps_and_checkpoints_of_another_sink_are_faults() {
    let (hash, _) = AuditRecord::read(&chain()[6]).unwrap().hashes().unwrap();
    let keys = trusted(&key());
    for (absence, from) in [(MissingReason::Gap, 3), (MissingReason::Pruned, 1), (MissingReason::PrunedUnproved, 1)] {
        let kind = absence.kind("database");
        let place = SignedPlace { kind, chain: "c".into(), from, to: 6, hash, at: 1_700_000_000_000, sink: None };
        let mut lines = chain();
        lines.splice(usize::try_from(from - 1).unwrap()..6, [place.sign(&key()).unwrap()]);
        let faults = |sink: &'static str| {
            let mut verifier = AuditVerifier::new(&keys).of_sink(sink);
            lines.iter().for_each(|line| verifier.line("x", line));
            verifier.finish().faults
        };
        assert_eq!(faults("file")[0].kind, AuditFaultKind::OfAnotherSink(6), "{absence:?}");
        assert_eq!(faults("database"), [], "{absence:?}");
    }
}

/// What stands for records is good for the place that it names. Of a copy, whose place is not known, the reader is told
/// the name; two names are a fault.
#[test]
fn gaps_and_checkpoints_of_another_place_are_faults() {
    let (hash, _) = AuditRecord::read(&chain()[6]).unwrap().hashes().unwrap();
    let keys = trusted(&key());
    for (absence, from) in [(MissingReason::Gap, 3), (MissingReason::Elsewhere, 3), (MissingReason::Pruned, 1)] {
        let (kind, sink) = (absence.kind("file"), Some("/var/log/b.log".to_owned()));
        let place = SignedPlace { kind, chain: "c".into(), from, to: 6, hash, at: 1_700_000_000_000, sink };
        let mut lines = chain();
        lines.splice(usize::try_from(from - 1).unwrap()..6, [place.sign(&key()).unwrap()]);
        let report = |place: Option<&str>| {
            let mut verifier = AuditVerifier::new(&keys).of_sink("file");
            verifier.expect_place(place.map(SinkPlace::named_file).as_ref());
            lines.iter().for_each(|line| verifier.line("x", line));
            verifier.finish()
        };
        assert_eq!(report(Some("/var/log/a.log")).faults[0].kind, AuditFaultKind::OfAnotherSink(6), "{absence:?}");
        let gaps = if absence == MissingReason::Pruned { AuditVerdict::Whole } else { AuditVerdict::WithGaps };
        assert_eq!(report(Some("/var/log/b.log")).verdict(), gaps, "{absence:?}");
        let unknown = report(None);
        assert_eq!(unknown.verdict(), AuditVerdict::Unproved, "{absence:?}");
        assert_eq!(unknown.doubts[0].kind, AuditFaultKind::PlaceUnknown(6, "/var/log/b.log".into()));
    }
    let gap = |from: u64, to: u64, sink: &str| {
        let (hash, _) = AuditRecord::read(&chain()[usize::try_from(to).unwrap()]).unwrap().hashes().unwrap();
        let (chain, sink) = ("c".to_owned(), Some(sink.to_owned()));
        let place = SignedPlace { kind: "gap_file", chain, from, to, hash, at: 1_700_000_000_000, sink };
        place.sign(&key()).unwrap()
    };
    let mut lines = chain();
    lines[1] = gap(2, 2, "a");
    lines[6] = gap(7, 7, "b");
    assert_eq!(first(&lines), Some(("line 7".to_owned(), AuditFaultKind::OfAnotherSink(7))));
}

/// A log that says itself that records could not be written is not simply whole.
#[test]
fn records_that_could_not_be_written_are_counted() {
    let (mut place, mut lines) = (ChainPlace::start("c"), Vec::new());
    for (kind, details) in [(EventType::ProtocolError, "{}"), (EventType::RecordsLost, "{\"count\":7}")] {
        let mut text = String::new();
        place.append(&AuditEvent::own(1, kind, details, RiskLevel::High), &mut text);
        lines.push(text.trim_end().to_owned());
    }
    let ChainPlace { chain, seq, hash } = place.clone();
    let head = SignedPlace { kind: HEAD, chain, from: seq, to: seq, hash, at: 1_700_000_000_000, sink: None };
    let mut text = String::new();
    place.append(&AuditEvent::own(1, EventType::ChainHead, &head.sign(&key()).unwrap(), RiskLevel::Low), &mut text);
    lines.push(text.trim_end().to_owned());
    let report = verify(&lines);
    assert_eq!((report.verdict(), report.lost), (AuditVerdict::WithGaps, 7), "{report:?}");
}
