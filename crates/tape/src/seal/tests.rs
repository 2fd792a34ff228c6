//! Tape files that were changed after they were sealed.

use super::{
    Anchors, HeadInterval, HeadSink, InclusionProof, NoProof, NoRedaction, ProofFault, SealFaultKind, SealReport,
    SealSettings, SealVerdict, SealedRedaction, SignedHead, TapeSealer,
};
use crate::{TapeFileWriter, TapeSource, sample};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind, SessionInfo, TapeInfo};
use signalbox_seal::{HeadContent, HeadKind, SigningKey};
use std::sync::{Arc, Mutex};
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
    seal_telling(entries, None)
}

fn seal_telling(entries: &mut [Entry], heads: Option<Arc<dyn HeadSink>>) -> (TapeInfo, TapeSealer) {
    let mut info = TapeInfo { ended: None, ..sample::info() };
    let key = SigningKey::from_seed(&[1; 32]).unwrap();
    let commit = vec![vec!["result".to_owned()]];
    let settings = SealSettings::begin(
        &mut info,
        key,
        [2; 32],
        commit,
        HeadInterval { entries: 50, time: Duration::from_secs(3600) },
    )
    .unwrap();
    let settings = match heads {
        Some(heads) => settings.telling(heads),
        None => settings,
    };
    let mut sealer = TapeSealer::new(settings);
    sealer.seal(entries);
    (info, sealer)
}

/// A file of these entries, closed if that is wanted.
fn file(info: &TapeInfo, entries: &[Entry], closing: Option<Vec<u8>>) -> Vec<u8> {
    listing(&[], info, entries, closing)
}

/// A file whose head lists these sessions.
fn listing(sessions: &[(u64, SessionInfo)], info: &TapeInfo, entries: &[Entry], closing: Option<Vec<u8>>) -> Vec<u8> {
    let mut writer = TapeFileWriter::new(vec![], info, sessions).unwrap();
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
fn verify(bytes: &[u8]) -> Option<SealReport> {
    let path = std::env::temp_dir().join(format!("seal-{}-{:?}.tape", std::process::id(), std::thread::current().id()));
    std::fs::write(&path, bytes).unwrap();
    let report = TapeSource::open(&path).ok().map(|mut source| source.verify(|| ()));
    std::fs::remove_file(&path).unwrap();
    report
}

fn fault(bytes: &[u8]) -> (SealFaultKind, Option<u64>) {
    let report = verify(bytes).unwrap();
    let fault = report.fault.unwrap_or_else(|| panic!("it says {:?}", report.verdict));
    (fault.kind, fault.entry)
}

#[test]
fn a_flipped_bit_anywhere_in_a_file_is_found() {
    let mut sealed = entries();
    let (info, sealer) = seal(&mut sealed);
    let bytes = file(&info, &sealed, sealer.closing(5_000));
    let report = verify(&bytes).unwrap();
    assert_eq!((report.verdict, report.entries), (SealVerdict::Valid, ENTRIES), "{report:?}");
    // Every byte of the beginning and of the end, and a sample of those between.
    let ends = bytes.len().saturating_sub(120);
    let places = (0..60).chain((60..700).step_by(7)).chain((700..ends).step_by(61)).chain(ends..bytes.len());
    for place in places {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        let report = verify(&changed);
        let broken = report.as_ref().is_none_or(|report| report.verdict == SealVerdict::Broken);
        assert!(broken, "byte {place} of {}: {report:?}", bytes.len());
    }
}

/// Two descriptions of session 1, and one of session 2.
fn described() -> (Vec<Entry>, SessionInfo, [(u64, SessionInfo); 2]) {
    let last = SessionInfo {
        external: Some("hmac:00".into()),
        client_version: Some("2".into()),
        proof: Some("none".into()),
        claims: vec![("subject".into(), "CN=ann".into())],
        address: Some("10.0.0.7".into()),
        ..sample::sessions().remove(0).1
    };
    let first = SessionInfo { client: None, ..last.clone() };
    let second = SessionInfo { proof: Some("certificate".into()), ..last.clone() };
    let mut entries = entries();
    for (place, number, info) in [(3, 1, &first), (9, 1, &last), (20, 2, &second)] {
        entries[place] =
            Entry { session: Some(number), content: Content::Session(info.clone()), ..entries[place].clone() };
    }
    (entries, first, [(1, last), (2, second)])
}

#[test]
fn sessions_in_the_head_of_a_file_are_those_of_its_entries() {
    let (mut sealed, first, listed) = described();
    let (info, sealer) = seal(&mut sealed);
    let of =
        |sessions: &[(u64, SessionInfo)]| verify(&listing(sessions, &info, &sealed, sealer.closing(5_000))).unwrap();
    for sessions in [&listed[..], &[]] {
        let report = of(sessions);
        assert_eq!((report.verdict, &report.fault), (SealVerdict::Valid, &None), "{sessions:?}");
    }
    type Change = fn(&mut SessionInfo);
    let changes: [(&str, Change); 8] = [
        ("external", |info| info.external = None),
        ("client`", |info| info.client = Some("forged".into())),
        ("client_version", |info| info.client_version = Some("9".into())),
        ("revision", |info| info.revision = None),
        ("transport", |info| info.transport = "tcp".into()),
        ("proof", |info| info.proof = Some("certificate".into())),
        ("claims", |info| info.claims.clear()),
        ("address", |info| info.address = Some("10.9.9.9".into())),
    ];
    let why = |sessions: &[(u64, SessionInfo)]| {
        let fault = of(sessions).fault.unwrap_or_else(|| panic!("{sessions:?}"));
        assert_eq!((fault.kind, fault.entry), (SealFaultKind::Wrong, None));
        fault.why
    };
    for (member, change) in changes {
        let mut sessions = listed.clone();
        change(&mut sessions[0].1);
        let why = why(&sessions);
        assert!(why.starts_with("session 1 in the head") && why.contains(&format!("`{member}")), "{member}: {why}");
    }
    let [one, two] = listed.clone();
    let outdated = (1, first);
    let ghost = (77, two.1.clone());
    for wrong in [vec![one.clone()], vec![outdated.clone(), two.clone()], vec![one.clone(), two.clone(), ghost.clone()]]
    {
        why(&wrong);
    }
    assert!(why(&[one.clone(), two.clone(), one.clone()]).contains("twice"));
    // The list of a tape that had not ended may lag behind, but no session may be invented.
    let open = |sessions: &[(u64, SessionInfo)]| verify(&listing(sessions, &info, &sealed, None)).unwrap();
    assert_eq!(open(&[outdated]).fault, None);
    assert_eq!(open(&[one, ghost]).verdict, SealVerdict::Broken);
    // Nothing is claimed of a tape that was never sealed.
    let plain: Vec<Entry> = sealed.iter().map(|entry| Entry { seal: None, ..entry.clone() }).collect();
    let unsealed = TapeInfo { seal: None, ..info.clone() };
    let report = verify(&listing(&[(9, two.1)], &unsealed, &plain, None)).unwrap();
    assert_eq!((report.verdict, report.fault), (SealVerdict::NeverSealed, None));
}

#[test]
fn entries_that_were_changed_moved_added_or_left_out_are_named() {
    let mut sealed = entries();
    let (info, sealer) = seal(&mut sealed);
    let closing = || sealer.closing(5_000);
    let with = |change: &dyn Fn(&mut Vec<Entry>)| {
        let mut entries = sealed.clone();
        change(&mut entries);
        fault(&file(&info, &entries, closing()))
    };
    assert_eq!(with(&|all| all[70].at += 1), (SealFaultKind::Wrong, Some(71)));
    assert_eq!(with(&|all| all[70].seal = None), (SealFaultKind::Added, Some(71)));
    assert_eq!(with(&|all| drop(all.remove(70))), (SealFaultKind::Missing, Some(71)));
    assert_eq!(with(&|all| all.truncate(150)), (SealFaultKind::Missing, Some(151)));
    let renumber = |all: &mut Vec<Entry>| {
        for (place, entry) in all.iter_mut().enumerate() {
            entry.seq = place as u64 + 1;
        }
    };
    let missing = with(&|all| {
        all.remove(70);
        renumber(all);
    });
    assert_eq!(missing, (SealFaultKind::Missing, Some(71)));
    let swapped = with(&|all| {
        all.swap(70, 90);
        renumber(all);
    });
    assert_eq!(swapped, (SealFaultKind::Reordered, Some(71)));
    let neighbours = with(&|all| {
        all.swap(70, 71);
        renumber(all);
    });
    assert_eq!(neighbours, (SealFaultKind::Reordered, Some(71)));
    let added = with(&|all| {
        all.insert(70, all[3].clone());
        renumber(all);
    });
    assert_eq!(added, (SealFaultKind::Added, Some(71)));
    let appended = with(&|all| {
        all.push(all[3].clone());
        renumber(all);
    });
    assert_eq!(appended, (SealFaultKind::Added, Some(ENTRIES + 1)));
    let head = file(&TapeInfo { target: "other".into(), ..info.clone() }, &sealed, closing());
    assert_eq!(fault(&head), (SealFaultKind::Head, None));
    let unsealed = file(&TapeInfo { seal: None, ..info.clone() }, &sealed, None);
    assert_eq!(fault(&unsealed), (SealFaultKind::Head, None));
}

#[test]
fn a_file_that_breaks_off_is_intact_up_to_there() {
    let mut sealed = entries();
    let (info, _) = seal(&mut sealed);
    let bytes = file(&info, &sealed, None);
    let mut lengths = std::collections::BTreeSet::new();
    for length in (700..bytes.len() - 300).step_by(53) {
        let report = verify(&bytes[..length]).unwrap();
        assert_eq!(report.verdict, SealVerdict::NeverClosed, "{length} of {} bytes: {report:?}", bytes.len());
        assert_eq!(report.last % FRAME, 0);
        lengths.insert(report.last);
    }
    assert!(lengths.len() > 5, "{lengths:?}");
}

#[test]
fn a_tape_that_was_never_sealed_says_so() {
    let bytes = file(&sample::info(), &entries(), None);
    assert_eq!(verify(&bytes).unwrap().verdict, SealVerdict::NeverSealed);
}

#[test]
fn a_redacted_copy_verifies_and_says_where() {
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
    assert_eq!((report.verdict, report.entries), (SealVerdict::Valid, ENTRIES), "{report:?}");
    assert_eq!(report.redacted[6].paths, ["/result/text", "/result/n/1"]);
    assert!(report.redacted[8].paths.is_empty(), "the whole message");
    // What stays cannot be changed, and what was removed cannot be replaced by something else.
    for (from, to) in [("[1,", "[2,"), ("\"id\":7", "\"id\":8"), ("{\"text\":\"[redacted]\"", "{\"text\":\"yes\"")] {
        let mut changed = copy.clone();
        let Content::Message(message) = &mut changed[6].content else { panic!() };
        message.body = Body::Whole(Bytes::from(expected.replacen(from, to, 1)));
        assert_eq!(fault(&file(&head, &changed, closing.clone())), (SealFaultKind::Wrong, Some(7)), "{to}");
    }
    assert_eq!(SealedRedaction::new(&head).unwrap_err(), NoRedaction::NoSeed);
    assert_eq!(SealedRedaction::new(&sample::info()).unwrap_err(), NoRedaction::NeverSealed);
}

/// The proof that a file of these bytes gives for an entry.
fn prove(bytes: &[u8], entry: u64) -> Result<InclusionProof, NoProof> {
    let path =
        std::env::temp_dir().join(format!("prove-{}-{:?}.tape", std::process::id(), std::thread::current().id()));
    std::fs::write(&path, bytes).unwrap();
    let proof = TapeSource::open(&path).unwrap().prove(entry);
    std::fs::remove_file(&path).unwrap();
    proof
}

/// A proof of an entry.
pub(crate) fn proof() -> InclusionProof {
    let mut sealed = entries();
    let (info, sealer) = seal(&mut sealed);
    prove(&file(&info, &sealed, sealer.closing(5_000)), 45).unwrap()
}

#[test]
fn one_entry_is_proved_without_the_tape() {
    let mut sealed = entries();
    let (info, sealer) = seal(&mut sealed);
    let closed = file(&info, &sealed, sealer.closing(5_000));
    // A signature comes with every 50th entry, and the last one is covered by the one that closes the tape.
    for (entry, signed) in [(1, 50), (49, 50), (50, 50), (51, 100), (199, 200), (200, 200)] {
        let proof = prove(&closed, entry).unwrap();
        let text = proof.to_json().unwrap();
        let read = InclusionProof::from_json(text.as_bytes()).unwrap();
        assert_eq!(read, proof);
        let proved = read.verify().unwrap();
        assert_eq!((proved.signed_at, proved.signers.len(), proved.removed.len()), (signed, 1, 0), "{entry}");
        assert!(text.len() < 10_000, "{} bytes", text.len());
        // Neither the seed nor other entries are in it.
        assert!(!text.contains(&format!("answer {}", entry + 1)));
    }
    assert!(matches!(prove(&closed, 201), Err(NoProof::NoEntry(201))));
    let open = file(&info, &sealed[..120], None);
    assert!(matches!(prove(&open, 101), Err(NoProof::NotSigned(101))));
    assert!(prove(&open, 100).is_ok());
    let unsealed = file(&sample::info(), &entries(), None);
    assert!(matches!(prove(&unsealed, 1), Err(NoProof::NeverSealed)));
    let mut changed = sealed.clone();
    changed[60].at += 1;
    assert!(matches!(prove(&file(&info, &changed, sealer.closing(5_000)), 55), Err(NoProof::Broken(_))));
}

#[test]
fn nothing_of_a_proof_can_be_changed() {
    let proof = proof();
    let text = proof.to_json().unwrap();
    let said = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}: {text}");
        InclusionProof::from_json(text.replacen(from, to, 1).as_bytes()).unwrap().verify().unwrap_err()
    };
    assert_eq!(said("answer 45", "answer 46"), ProofFault::Chain);
    assert_eq!(said("\"principal\": \"ann\"", "\"principal\": \"bob\""), ProofFault::Chain);
    assert!(matches!(said("\"program\": \"", "\"program\": \"x"), ProofFault::Tape(_)));
    assert_eq!(said("\"seq\": 50", "\"seq\": 51"), ProofFault::Signature);
    assert_eq!(said("\"kind\": \"interim\"", "\"kind\": \"opening\""), ProofFault::Chain);
    assert_eq!(said("\"kind\": \"interim\"", "\"kind\": \"closing\""), ProofFault::Signature);
    assert!(InclusionProof::from_json(b"{}").is_err());
    assert!(InclusionProof::from_json(text.replacen("proof/1", "proof/2", 1).as_bytes()).is_err());
}

#[test]
fn a_proof_says_nothing_that_was_not_signed() {
    let text = proof().to_json().unwrap();
    let said = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}: {text}");
        InclusionProof::from_json(text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    };
    let not_covered = |path: &str| format!("the proof is not valid: nothing that was signed covers `{path}`");
    let entry = "\"entry\": {";
    let refused = r#""refused": {"status": 403, "reason": "denied", "detail": "forged"},"#;
    let second = |kind: &str| format!("line 1: not valid: an entry of two kinds, {kind}");
    assert_eq!(said(entry, &format!("{entry}{refused}")), second("`message` and `refused`"));
    assert_eq!(said(entry, &format!("{entry}\"decisions\": [],")), second("`message` and `decisions`"));
    assert_eq!(said(entry, &format!("{entry}\"note\": null,")), not_covered("entry.note"));
    let message = "\"message\": {";
    assert_eq!(said(message, &format!("{message}\"base64\": \"eA==\",")), not_covered("entry.message.base64"));
    assert_eq!(
        said("\"sessions\": []", r#""sessions": [{"session": 1, "transport": "x"}]"#),
        not_covered("tape.sessions")
    );
    assert_eq!(said("\"target\": ", "\"ended\": 1, \"target\": "), not_covered("tape.ended"));
    assert_eq!(said("\"key_id\": ", "\"note\": 1, \"key_id\": "), not_covered("head.note"));
    let twice = |name: &str| format!("it is no proof: the member `{name}` is there twice");
    assert!(said(entry, &format!("\"entry\": {{}}, {entry}")).starts_with(&twice("entry")));
    assert!(said(message, &format!("\"message\": {{}}, {message}")).starts_with(&twice("message")));
    assert!(said(entry, &format!("\"note\": 1, {entry}")).starts_with("it is no proof: unknown field `note`"));
}

#[test]
fn an_entry_of_a_redacted_copy_is_proved_without_what_was_removed() {
    let mut sealed = entries();
    let (info, sealer) = seal(&mut sealed);
    let (mut redaction, head) = SealedRedaction::new(&info).unwrap();
    let removes = |path: &str| path == "/result/text";
    let copy = |entry: &Entry| redaction.entry(entry.clone(), &removes, &|_| false).unwrap();
    let copy: Vec<Entry> = sealed.iter().map(copy).collect();
    let proof = prove(&file(&head, &copy, sealer.closing(5_000)), 7).unwrap();
    assert_eq!(proof.verify().unwrap().removed, ["/result/text"]);
    assert!(!proof.to_json().unwrap().contains("answer 7"));
}

/// Keeps every head that it is told of.
#[derive(Default)]
struct Kept(Mutex<Vec<SignedHead>>);

impl HeadSink for Kept {
    fn signed(&self, head: SignedHead) {
        self.0.lock().unwrap().push(head);
    }
}

/// What verifying these bytes against these anchors says.
fn verify_against(bytes: &[u8], anchors: &[SignedHead]) -> SealReport {
    let lines: String = anchors.iter().map(|head| format!("{}\n", head.to_json())).collect();
    let path =
        std::env::temp_dir().join(format!("anchor-{}-{:?}.tape", std::process::id(), std::thread::current().id()));
    std::fs::write(&path, bytes).unwrap();
    let mut source = TapeSource::open(&path).unwrap();
    let anchors = Anchors::read(lines.as_bytes(), &source.info().id).unwrap();
    let report = source.verify_against(anchors, || ());
    std::fs::remove_file(&path).unwrap();
    report
}

#[test]
fn a_tape_that_was_made_anew_or_cut_off_does_not_agree_with_its_anchors() {
    let kept = Arc::new(Kept::default());
    let mut sealed = entries();
    let (info, mut sealer) = seal_telling(&mut sealed, Some(kept.clone()));
    let closing = sealer.closing(5_000).unwrap();
    sealer.closed(&closing);
    let heads = kept.0.lock().unwrap().clone();
    assert_eq!(heads.iter().map(|head| head.head.seq).collect::<Vec<_>>(), [0, 50, 100, 150, 200, 200]);
    let closed = file(&info, &sealed, Some(closing));
    let report = verify_against(&closed, &heads);
    assert_eq!((report.verdict, report.anchored_up_to), (SealVerdict::Valid, Some(200)), "{report:?}");
    let report = verify_against(&closed, &heads[..2]);
    assert_eq!((report.verdict, report.anchored_up_to), (SealVerdict::Valid, Some(50)));

    // Whoever has the key can make a tape that is valid in itself.
    let mut changed = entries();
    changed[70].at += 1;
    let (other_info, sealer) = seal(&mut changed);
    let forged = file(&other_info, &changed, sealer.closing(5_000));
    assert_eq!(verify(&forged).unwrap().verdict, SealVerdict::Valid);
    let fault = verify_against(&forged, &heads).fault.unwrap();
    assert_eq!((fault.kind, fault.entry), (SealFaultKind::Anchor, Some(100)));

    // A tape that looks as if its process was killed early.
    let cut = file(&info, &sealed[..120], None);
    let fault = verify_against(&cut, &heads).fault.unwrap();
    assert_eq!((fault.kind, fault.entry), (SealFaultKind::Missing, Some(121)));
    let unclosed = file(&info, &sealed, None);
    assert_eq!(verify_against(&unclosed, &heads).fault.unwrap().kind, SealFaultKind::Head);
    let unsealed = file(&TapeInfo { seal: None, ..info }, &entries(), None);
    assert_eq!(verify_against(&unsealed, &heads).fault.unwrap().kind, SealFaultKind::Anchor);
}

#[test]
fn anchors_that_somebody_changed_are_refused_by_their_line() {
    let key = SigningKey::from_seed(&[1; 32]).unwrap();
    let head = |seq, hash| {
        let head =
            signalbox_seal::Head::sign(HeadKind::Interim, "t", HeadContent::of(seq, &[hash; 32], 1), &key).unwrap();
        SignedHead { tape: "t".to_owned(), kind: HeadKind::Interim, head }.to_json().to_string()
    };
    let said = |text: &str| Anchors::read(text.as_bytes(), "t").unwrap_err().to_string();
    assert!(said("{}").starts_with("line 1: it is no signed head"), "{}", said("{}"));
    let forged = head(1, 1).replace("\"seq\":1", "\"seq\":2");
    assert!(said(&format!("{}\n{forged}\n", head(1, 1))).starts_with("line 2: the signature does not fit"));
    assert!(said(&format!("{}\n\n{}\n", head(1, 1), head(1, 2))).starts_with("line 3: entry 1"));
    assert!(said(&"x".repeat(100_000)).starts_with("line 1: longer"));
    assert!(Anchors::read(head(1, 1).as_bytes(), "other").unwrap().is_empty());
}
