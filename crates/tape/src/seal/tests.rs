//! Tape files that somebody changes.

use super::{FaultKind, NoRedaction, Report, SealSettings, SealedRedaction, TapeSealer, Verdict};
use crate::{TapeFileWriter, TapeSource, sample};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind, TapeInfo};
use signalbox_seal::SigningKey;
use std::time::Duration;

const ENTRIES: u64 = 200;
const FRAME: u64 = 20;

fn entries() -> Vec<Entry> {
    (1..=ENTRIES)
        .map(|seq| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{seq},"result":{{"text":"answer {seq}","n":[1,{seq}]}}}}"#);
            let whole = Body::Whole(Bytes::from(body.clone()));
            let message = MessageEntry::new(Point::ClientOut, MessageKind::Result, body.len() as u64, whole);
            Entry { session: Some(seq % 3), ..Entry::new(seq, seq * 10, "ann".into(), Content::Message(message)) }
        })
        .collect()
}

fn seal(entries: &mut [Entry]) -> (TapeInfo, TapeSealer) {
    let mut info = TapeInfo { ended: None, ..sample::info() };
    let key = SigningKey::from_seed(&[1; 32]).unwrap();
    let commit = vec![vec!["result".to_owned()]];
    let settings = SealSettings::begin(&mut info, key, [2; 32], commit, (50, Duration::from_secs(3600))).unwrap();
    let mut sealer = TapeSealer::new(settings);
    sealer.seal(entries);
    (info, sealer)
}

/// A file of these entries, closed if that is wanted.
fn file(info: &TapeInfo, entries: &[Entry], closing: Option<Vec<u8>>) -> Vec<u8> {
    let mut writer = TapeFileWriter::new(vec![], info, &[]).unwrap();
    for entry in entries {
        writer.push(entry).unwrap();
        if entry.seq % FRAME == 0 {
            writer.flush().unwrap();
        }
    }
    if let Some(closing) = &closing {
        writer.close_seal(closing);
    }
    writer.finish(closing.map(|_| 5_000)).unwrap()
}

/// What verifying these bytes says; none if they are no tape at all.
fn verify(bytes: &[u8]) -> Option<Report> {
    let path = std::env::temp_dir().join(format!("seal-{}-{:?}.tape", std::process::id(), std::thread::current().id()));
    std::fs::write(&path, bytes).unwrap();
    let report = TapeSource::open(&path).ok().map(|mut source| source.verify(|| ()));
    std::fs::remove_file(&path).unwrap();
    report
}

fn fault(bytes: &[u8]) -> (FaultKind, Option<u64>) {
    let report = verify(bytes).unwrap();
    let fault = report.fault.unwrap_or_else(|| panic!("it says {:?}", report.verdict));
    (fault.kind, fault.entry)
}

#[test]
fn issue_16_5_a_flipped_bit_anywhere_in_a_file_is_found() {
    let mut sealed = entries();
    let (info, sealer) = seal(&mut sealed);
    let bytes = file(&info, &sealed, sealer.closing(5_000));
    let report = verify(&bytes).unwrap();
    assert_eq!((report.verdict, report.entries), (Verdict::Valid, ENTRIES), "{report:?}");
    // Every byte of the beginning and of the end, and a sample of those between.
    let ends = bytes.len().saturating_sub(120);
    let places = (0..60).chain((60..700).step_by(7)).chain((700..ends).step_by(61)).chain(ends..bytes.len());
    for place in places {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        let report = verify(&changed);
        let broken = report.as_ref().is_none_or(|report| report.verdict == Verdict::Broken);
        assert!(broken, "byte {place} of {}: {report:?}", bytes.len());
    }
}

#[test]
fn issue_16_5_entries_that_were_changed_moved_added_or_left_out_are_named() {
    let mut sealed = entries();
    let (info, sealer) = seal(&mut sealed);
    let closing = || sealer.closing(5_000);
    let with = |change: &dyn Fn(&mut Vec<Entry>)| {
        let mut entries = sealed.clone();
        change(&mut entries);
        fault(&file(&info, &entries, closing()))
    };
    assert_eq!(with(&|all| all[70].at += 1), (FaultKind::Wrong, Some(71)));
    assert_eq!(with(&|all| all[70].seal = None), (FaultKind::Added, Some(71)));
    assert_eq!(with(&|all| drop(all.remove(70))), (FaultKind::Missing, Some(71)));
    assert_eq!(with(&|all| all.truncate(150)), (FaultKind::Missing, Some(151)));
    let renumber = |all: &mut Vec<Entry>| {
        for (place, entry) in all.iter_mut().enumerate() {
            entry.seq = place as u64 + 1;
        }
    };
    let missing = with(&|all| {
        all.remove(70);
        renumber(all);
    });
    assert_eq!(missing, (FaultKind::Missing, Some(71)));
    let swapped = with(&|all| {
        all.swap(70, 90);
        renumber(all);
    });
    assert_eq!(swapped, (FaultKind::Reordered, Some(71)));
    let neighbours = with(&|all| {
        all.swap(70, 71);
        renumber(all);
    });
    assert_eq!(neighbours, (FaultKind::Reordered, Some(71)));
    let added = with(&|all| {
        all.insert(70, all[3].clone());
        renumber(all);
    });
    assert_eq!(added, (FaultKind::Added, Some(71)));
    let appended = with(&|all| {
        all.push(all[3].clone());
        renumber(all);
    });
    assert_eq!(appended, (FaultKind::Added, Some(ENTRIES + 1)));
    let head = file(&TapeInfo { target: "other".into(), ..info.clone() }, &sealed, closing());
    assert_eq!(fault(&head), (FaultKind::Head, None));
    let unsealed = file(&TapeInfo { seal: None, ..info.clone() }, &sealed, None);
    assert_eq!(fault(&unsealed), (FaultKind::Head, None));
}

#[test]
fn issue_16_5_a_file_that_breaks_off_is_intact_up_to_there() {
    let mut sealed = entries();
    let (info, _) = seal(&mut sealed);
    let bytes = file(&info, &sealed, None);
    let mut lengths = std::collections::BTreeSet::new();
    for length in (700..bytes.len() - 300).step_by(53) {
        let report = verify(&bytes[..length]).unwrap();
        assert_eq!(report.verdict, Verdict::NeverClosed, "{length} of {} bytes: {report:?}", bytes.len());
        assert_eq!(report.last % FRAME, 0);
        lengths.insert(report.last);
    }
    assert!(lengths.len() > 5, "{lengths:?}");
}

#[test]
fn a_tape_that_was_never_sealed_says_so() {
    let bytes = file(&sample::info(), &entries(), None);
    assert_eq!(verify(&bytes).unwrap().verdict, Verdict::NeverSealed);
}

#[test]
fn issue_16_5_a_redacted_copy_verifies_and_says_where() {
    let mut sealed = entries();
    let (info, sealer) = seal(&mut sealed);
    let closing = sealer.closing(5_000);
    let (mut redaction, head) = SealedRedaction::new(&info).unwrap();
    let removes = |path: &str| ["/result/text", "/result/n/1"].contains(&path);
    let whole = |body: &[u8]| String::from_utf8_lossy(body).contains("\"id\":9,");
    let copy = |entry: &Entry| redaction.entry(entry.clone(), &removes, &whole).unwrap();
    let copy: Vec<Entry> = sealed.iter().map(copy).collect();
    assert_eq!(redaction.removed(), (2 * (ENTRIES - 1), ENTRIES));
    let Content::Message(message) = &copy[6].content else { panic!() };
    let expected = r#"{"jsonrpc":"2.0","id":7,"result":{"text":"[redacted]","n":[1,"[redacted]"]}}"#;
    assert_eq!(message.body, Body::Whole(Bytes::from_static(expected.as_bytes())));
    let report = verify(&file(&head, &copy, closing.clone())).unwrap();
    assert_eq!((report.verdict, report.entries), (Verdict::Valid, ENTRIES), "{report:?}");
    assert_eq!(report.redacted[6].paths, ["/result/text", "/result/n/1"]);
    assert!(report.redacted[8].paths.is_empty(), "the whole message");
    // What stays cannot be changed, and what was removed cannot be replaced by something else.
    for (from, to) in [("[1,", "[2,"), ("\"id\":7", "\"id\":8"), ("{\"text\":\"[redacted]\"", "{\"text\":\"yes\"")] {
        let mut changed = copy.clone();
        let Content::Message(message) = &mut changed[6].content else { panic!() };
        message.body = Body::Whole(Bytes::from(expected.replacen(from, to, 1)));
        assert_eq!(fault(&file(&head, &changed, closing.clone())), (FaultKind::Wrong, Some(7)), "{to}");
    }
    assert_eq!(SealedRedaction::new(&head).unwrap_err(), NoRedaction::NoSeed);
    assert_eq!(SealedRedaction::new(&sample::info()).unwrap_err(), NoRedaction::NeverSealed);
}
