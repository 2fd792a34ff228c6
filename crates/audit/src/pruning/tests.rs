use super::*;
use crate::chain::ChainPlace;
use crate::event::{AuditEvent, EventType, RiskLevel};
use crate::files::of_day;
use crate::signed::HEAD;
use crate::verify::AuditVerdict;
use std::collections::BTreeSet;

const DAY: u64 = 24 * 3600 * 1000;

fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn pruner() -> Pruner {
    Pruner::new(key(), KeySet::new(), Path::new("no journals"))
}

/// So many records of one chain, of which every fifth is a head.
fn chain(name: &str, count: u64) -> Vec<String> {
    chain_of(name, count, 0)
}

fn chain_of(name: &str, count: u64, at: u64) -> Vec<String> {
    let (mut place, mut lines) = (ChainPlace::start(name), Vec::new());
    for number in 1..=count {
        let mut text = String::new();
        let (kind, details) = match number % 5 {
            0 => {
                let ChainPlace { chain, seq, hash } = place.clone();
                let head =
                    SignedPlace { kind: HEAD, chain, from: seq, to: seq, hash, at: 1_700_000_000_000, sink: None };
                (EventType::ChainHead, head.sign(&key()).unwrap())
            }
            _ => (EventType::RecordsLost, "{}".to_owned()),
        };
        place.append(&AuditEvent::own(at + number, kind, &details, RiskLevel::Low), &mut text);
        lines.push(text.trim_end().to_owned());
    }
    lines
}

fn verdict(path: &Path) -> (AuditVerdict, Vec<AuditFaultKind>) {
    verdict_by(&pruner(), path)
}

fn verdict_by(pruner: &Pruner, path: &Path) -> (AuditVerdict, Vec<AuditFaultKind>) {
    let mut verifier = pruner.verifier().of_place(&pruner.file_place(path));
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

/// A log whose old files were deleted by age still verifies, again and again, and shows what others delete from it.
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
    assert_eq!(verdict(&path), (AuditVerdict::Whole, vec![]));
    for before in [101, 101, 102, 103] {
        pruner().prune_files(&path, before).unwrap();
        assert_eq!(verdict(&path), (AuditVerdict::Whole, vec![]), "before day {before}");
        assert!((100..before).all(|day| !of_day(&path, day).exists()));
    }
    let kept = std::fs::read_to_string(files::checkpoints(&path)).unwrap();
    assert_eq!(kept.lines().count(), 2, "one line for each chain: {kept}");
    write(&path, None, &one[19..]);
    assert_eq!(verdict(&path).0, AuditVerdict::Broken);
    write(&path, None, &one[18..]);
    std::fs::remove_file(files::checkpoints(&path)).unwrap();
    assert_eq!(verdict(&path).0, AuditVerdict::Broken);
}

/// A checkpoint vouches for nothing that did not verify, and later ones do not forget that.
#[test]
fn a_checkpoint_of_a_log_that_was_tampered_with_says_so_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let one = chain("c", 30);
    write(&path, Some(100), &one[2..8]);
    write(&path, Some(101), &one[8..16]);
    write(&path, None, &one[16..]);
    assert_eq!(verdict(&path).0, AuditVerdict::Broken);
    for (before, upto) in [(101, 8), (102, 16)] {
        pruner().prune_files(&path, before).unwrap();
        assert_eq!(verdict(&path), (AuditVerdict::Unproved, vec![AuditFaultKind::PrunedUnproved(upto)]));
    }
}

/// Records that somebody adds to an old file are not signed by way of its checkpoint.
#[test]
fn a_checkpoint_does_not_stand_for_invented_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let one = chain("c", 20);
    let mut place = ChainPlace::start("c");
    let mut invented = one[..8].to_vec();
    (place.seq, place.hash) = (8, crate::AuditRecord::read(&one[7]).unwrap().hashes().unwrap().1);
    for _ in 0..6 {
        let mut text = String::new();
        place.append(&AuditEvent::own(9, EventType::RecordsLost, "{\"count\":1}", RiskLevel::Low), &mut text);
        invented.push(text.trim_end().to_owned());
    }
    write(&path, Some(100), &invented);
    write(&path, None, &one[8..]);
    assert_eq!(verdict(&path).0, AuditVerdict::Broken);
    pruner().prune_files(&path, 101).unwrap();
    assert_ne!(verdict(&path).0, AuditVerdict::Whole);
}

/// A file that somebody gave an old name or an old time is not deleted before its records are old.
#[test]
fn records_are_deleted_by_their_own_age() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    write(&path, Some(100), &chain_of("c", 5, 200 * DAY));
    pruner().prune_files(&path, 200).unwrap();
    assert!(of_day(&path, 100).exists() && !files::checkpoints(&path).exists());
    pruner().prune_files(&path, 201).unwrap();
    assert!(!of_day(&path, 100).exists());
}

/// Records whose times were edited do not verify, so that nothing says that they are old.
#[test]
fn records_whose_times_were_edited_stay() {
    let (young, old) = (chain_of("c", 20, 200 * DAY), "1970-01-02");
    let dated = |line: &String| line.replace("1970-07-20", old);
    assert!(young[0].contains("1970-07-20"));
    // Without the key, hashes can be made anew, but heads cannot.
    let unsigned = |lines: &[String]| {
        let mut place = ChainPlace::start("c");
        let again = |line: &String| {
            let kind = crate::AuditRecord::read(line).unwrap().event_type.filter(|kind| *kind != EventType::ChainHead);
            let mut text = String::new();
            place
                .append(&AuditEvent::own(DAY, kind.unwrap_or(EventType::RecordsLost), "{}", RiskLevel::Low), &mut text);
            text.trim_end().to_owned()
        };
        lines.iter().map(again).collect::<Vec<_>>()
    };
    let all: Vec<String> = young.iter().map(dated).collect();
    let beginning: Vec<String> = young[..8].iter().map(dated).collect();
    for (what, first, rest) in [
        ("all times", &all[..], &[][..]),
        ("times of the beginning", &beginning[..], &young[8..]),
        ("times and hashes", &unsigned(&young), &[]),
        ("times and hashes of the beginning", &unsigned(&young[..8]), &young[8..]),
        ("times and hashes, with a hole behind", &unsigned(&young[..8]), &young[10..]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        write(&path, Some(1), first);
        if !rest.is_empty() {
            write(&path, None, rest);
        }
        let before = verdict(&path);
        pruner().prune_files(&path, 100).unwrap();
        assert!(of_day(&path, 1).exists() && !files::checkpoints(&path).exists(), "{what}");
        assert_eq!(verdict(&path), before, "{what}");
        let rows: Vec<&String> = first.iter().chain(rest).collect();
        let place = pruner().database_place("sqlite:audit.db").unwrap();
        let expiry = pruner().expire_chain(&place, "c", 100 * DAY, |each| {
            for line in rows {
                let record = crate::AuditRecord::read(line).unwrap();
                let (seq, at) = (Some(record.seq), Some(record.at));
                let (event_type, risk, principal, backend, correlation_id) = (None, None, None, None, None);
                let chain = "c";
                let row =
                    StoredRecord { chain, seq, at, event_type, risk, principal, backend, correlation_id, record: line };
                if !each(&row) {
                    break;
                }
            }
            Ok(())
        });
        assert!(!matches!(expiry.unwrap(), Expiry::Checkpoint(_)), "{what}");
    }
}

/// Files before one that does not verify are deleted, that one and those behind it stay.
#[test]
fn a_faulty_file_stays_with_all_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let one = chain("c", 30);
    for day in 0..5 {
        let first = usize::try_from(day * 5).unwrap();
        write(&path, Some(100 + day), &one[first..first + 5]);
    }
    write(&path, None, &one[25..]);
    let damaged = of_day(&path, 102);
    let text = std::fs::read_to_string(&damaged).unwrap().replacen("\"low\"", "\"high\"", 1);
    std::fs::write(&damaged, text).unwrap();
    for _ in 0..2 {
        pruner().prune_files(&path, 110).unwrap();
        let kept: BTreeSet<u64> = (100..105).filter(|day| of_day(&path, *day).exists()).collect();
        assert_eq!(kept, BTreeSet::from([102, 103, 104]));
        assert_eq!(verdict(&path), (AuditVerdict::Broken, vec![AuditFaultKind::Tampered(11)]));
    }
}

/// What a process that was killed did not sign is proved by its journal.
#[test]
fn unsigned_records_are_deleted_only_if_the_journal_has_them() {
    let one = chain("c", 7);
    let journals = tempfile::tempdir().unwrap();
    std::fs::create_dir(journals.path().join("c")).unwrap();
    for (journaled, stays) in [(one[..6].join("\n"), true), (one.join("\n"), false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        write(&path, Some(100), &one);
        std::fs::write(journals.path().join("c/00000000000000000001.jsonl"), journaled + "\n").unwrap();
        let pruner = Pruner::new(key(), KeySet::new(), journals.path());
        pruner.prune_files(&path, 101).unwrap();
        assert_eq!(of_day(&path, 100).exists(), stays);
        let expected = if stays { AuditVerdict::Unproved } else { AuditVerdict::Whole };
        assert_eq!(verdict_by(&pruner, &path).0, expected);
    }
}
