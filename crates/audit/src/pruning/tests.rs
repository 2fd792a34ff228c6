use super::*;
use crate::chain::ChainPlace;
use crate::event::{AuditEvent, EventType, RiskLevel};
use crate::files::of_day;
use crate::signed::HEAD;
use crate::verify::Verdict;

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn pruner() -> Pruner {
    Pruner::new(key(), KeySet::new())
}

/// So many records of one chain, of which every fifth is a head.
fn chain(name: &str, count: u64) -> Vec<String> {
    let (mut place, mut lines) = (ChainPlace::start(name), Vec::new());
    for number in 1..=count {
        let mut text = String::new();
        let (kind, details) = match number % 5 {
            0 => {
                let ChainPlace { chain, seq, hash } = place.clone();
                let head = SignedPlace { kind: HEAD, chain, from: seq, to: seq, hash, at: 1_700_000_000_000 };
                (EventType::ChainHead, head.sign(&key()).unwrap())
            }
            _ => (EventType::RecordsLost, "{}".to_owned()),
        };
        place.append(&AuditEvent::own(number, kind, &details, RiskLevel::Low), &mut text);
        lines.push(text.trim_end().to_owned());
    }
    lines
}

fn verdict(path: &Path) -> (Verdict, Vec<FaultKind>) {
    let pruner = pruner();
    let mut verifier = AuditVerifier::new(&pruner.keys);
    for file in files::all(path).unwrap() {
        follow(&mut verifier, &file, &mut |_| true).unwrap();
    }
    let report = verifier.finish();
    let kinds = report.faults.iter().chain(&report.doubts).map(|fault| fault.kind.clone()).collect();
    (report.verdict(), kinds)
}

fn write(path: &Path, day: Option<u64>, lines: &[String]) {
    let file = day.map_or_else(|| path.to_owned(), |day| of_day(path, day));
    std::fs::write(file, lines.join("\n") + "\n").unwrap();
}

/// Issue 31, point 17: a log whose old files were deleted by age still verifies, again and again, and shows what somebody else
/// deletes.
#[test]
fn a_pruned_log_verifies_by_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let (one, two) = (chain("c", 30), chain("d", 10));
    // The end of a day is signed only on the next one.
    write(&path, Some(100), &one[..7]);
    write(&path, Some(101), &[&one[7..16], &two[..2]].concat());
    write(&path, Some(102), &[&one[16..18], &two[2..]].concat());
    write(&path, None, &one[18..]);
    assert_eq!(verdict(&path), (Verdict::Whole, vec![]));
    for before in [101, 101, 102, 103] {
        pruner().prune_files(&path, before).unwrap();
        assert_eq!(verdict(&path), (Verdict::Whole, vec![]), "before day {before}");
        assert!((100..before).all(|day| !of_day(&path, day).exists()));
    }
    let kept = std::fs::read_to_string(files::checkpoints(&path)).unwrap();
    assert_eq!(kept.lines().count(), 2, "one line for each chain: {kept}");
    write(&path, None, &one[19..]);
    assert_eq!(verdict(&path).0, Verdict::Broken);
    write(&path, None, &one[18..]);
    std::fs::remove_file(files::checkpoints(&path)).unwrap();
    assert_eq!(verdict(&path).0, Verdict::Broken);
}

/// Issue 31, point 17: a checkpoint vouches for nothing that did not verify, and later ones do not forget that.
#[test]
fn a_checkpoint_of_a_log_that_was_tampered_with_says_so_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let one = chain("c", 30);
    write(&path, Some(100), &one[2..8]);
    write(&path, Some(101), &one[8..16]);
    write(&path, None, &one[16..]);
    assert_eq!(verdict(&path).0, Verdict::Broken);
    for (before, upto) in [(101, 8), (102, 16)] {
        pruner().prune_files(&path, before).unwrap();
        assert_eq!(verdict(&path), (Verdict::Unproved, vec![FaultKind::PrunedUnproved(upto)]));
    }
}

/// Issue 31, point 17: records that somebody adds to an old file are not signed by way of its checkpoint.
#[test]
fn a_checkpoint_does_not_stand_for_invented_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let one = chain("c", 20);
    let mut place = ChainPlace::start("c");
    let mut invented = one[..8].to_vec();
    (place.seq, place.hash) = (8, crate::Record::read(&one[7]).unwrap().hashes().unwrap().1);
    for _ in 0..6 {
        let mut text = String::new();
        place.append(&AuditEvent::own(9, EventType::RecordsLost, "{\"count\":1}", RiskLevel::Low), &mut text);
        invented.push(text.trim_end().to_owned());
    }
    write(&path, Some(100), &invented);
    write(&path, None, &one[8..]);
    assert_eq!(verdict(&path).0, Verdict::Broken);
    pruner().prune_files(&path, 101).unwrap();
    assert_ne!(verdict(&path).0, Verdict::Whole);
}

/// Issue 31, point 17: a file that somebody gave an old name or an old time is not deleted before its records are old.
#[test]
fn records_are_deleted_by_their_own_age() {
    const DAY: u64 = 24 * 3600 * 1000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let (mut place, mut text) = (ChainPlace::start("c"), String::new());
    place.append(&AuditEvent::own(200 * DAY, EventType::RecordsLost, "{}", RiskLevel::Low), &mut text);
    write(&path, Some(100), &[text.trim_end().to_owned()]);
    pruner().prune_files(&path, 200).unwrap();
    assert!(of_day(&path, 100).exists() && !files::checkpoints(&path).exists());
    pruner().prune_files(&path, 201).unwrap();
    assert!(!of_day(&path, 100).exists());
}
