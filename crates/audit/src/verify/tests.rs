use super::*;
use crate::chain::ChainPlace;
use crate::event::{AuditEvent, EventType, RiskLevel};
use signalbox_seal::{SigningKey, TrustedKey};

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn trusted(key: &SigningKey) -> KeySet {
    let mut keys = KeySet::new();
    keys.add(TrustedKey::new(key.verifying_key().clone(), "gateway", &[Role::Gateway, Role::Recorder])).unwrap();
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
                let head = SignedPlace { kind: HEAD, chain, from: seq, to: seq, hash, at: 1_700_000_000_000 };
                (EventType::ChainHead, head.sign(&key()).unwrap())
            }
            _ => (EventType::RecordsLost, format!("{{\"count\":{number}}}")),
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

fn first(lines: &[String]) -> Option<(String, FaultKind)> {
    verify(lines).faults.into_iter().next().map(|fault| (fault.place, fault.kind))
}

#[test]
fn a_whole_chain_is_whole_from_any_record_on() {
    let report = verify(&chain());
    assert_eq!((report.records, report.chains, report.heads, report.unsigned), (10, 1, 2, 0));
    assert_eq!(report.faults, []);
    assert_eq!(first(&chain()[3..]), None);
}

/// T29, must show 5: the first record that was changed, removed, moved or repeated is named.
#[test]
fn t_29_the_first_tampered_missing_or_reordered_record_is_named() {
    let at = |line: &str, kind| Some((line.to_owned(), kind));
    let mut changed = chain();
    changed[2] = changed[2].replace("\"count\":3", "\"count\":4");
    assert_eq!(first(&changed), at("line 3", FaultKind::Tampered(3)));
    let mut removed = chain();
    removed.drain(2..4);
    assert_eq!(first(&removed), at("line 3", FaultKind::Missing(3, 4)));
    let mut moved = chain();
    moved.swap(2, 3);
    assert_eq!(first(&moved), at("line 3", FaultKind::Missing(3, 3)));
    let mut repeated = chain();
    repeated.insert(3, repeated[2].clone());
    assert_eq!(first(&repeated), at("line 4", FaultKind::Reordered(3)));
    let mut torn = chain();
    torn[9].truncate(40);
    assert_eq!(first(&torn), at("line 10", FaultKind::Unreadable));
    let mut more = chain();
    more[1] = more[1].replacen("\"seq\":2", "\"seq\":2,\"x\":1", 1);
    assert_eq!(first(&more), at("line 2", FaultKind::Tampered(2)));
}

/// Whoever makes all hashes anew has no key for the heads.
#[test]
fn a_chain_that_was_made_anew_has_no_good_heads() {
    let (mut place, mut lines) = (ChainPlace::start("c"), Vec::new());
    for (number, line) in chain().iter().enumerate() {
        let record = Record::read(line).unwrap();
        let details = match number {
            2 => "{\"count\":999}".to_owned(),
            _ => record.value["details"].to_string(),
        };
        let mut text = String::new();
        let event = AuditEvent::own(number as u64, record.event_type.unwrap(), &details, RiskLevel::Low);
        place.append(&event, &mut text);
        lines.push(text.trim_end().to_owned());
    }
    assert_eq!(first(&lines), Some(("line 5".to_owned(), FaultKind::BadSignature(5))));
    let others = trusted(&SigningKey::from_seed(&[8; 32]).unwrap());
    let mut verifier = AuditVerifier::new(&others);
    chain().iter().for_each(|line| verifier.line("x", line));
    assert_eq!(verifier.finish().faults[0].kind, FaultKind::Untrusted(5, key().id().to_owned()));
}

/// T29: what is missing at the end is known from the signed head that is kept elsewhere.
#[test]
fn t_29_deleted_last_records_are_named() {
    let keys = trusted(&key());
    let mut verifier = AuditVerifier::new(&keys);
    chain()[..7].iter().for_each(|line| verifier.line("x", line));
    verifier.came_to("head.json", "c", 9);
    assert_eq!(verifier.finish().faults[0].kind, FaultKind::Missing(8, 9));
}

/// A gap is as good as its signature.
#[test]
fn a_signed_gap_stands_for_what_a_sink_did_not_get() {
    let mut lines = chain();
    let (hash, _) = Record::read(&lines[6]).unwrap().hashes().unwrap();
    let gap = SignedPlace { kind: GAP, chain: "c".into(), from: 3, to: 6, hash, at: 1_700_000_000_000 };
    let signed = gap.sign(&key()).unwrap();
    lines.splice(2..6, [signed.clone()]);
    let report = verify(&lines);
    assert_eq!((report.faults.as_slice(), report.skipped), (&[][..], 4));
    lines[2] = signed.replace("\"from\":3", "\"from\":2");
    assert!(!verify(&lines).faults.is_empty());
}
