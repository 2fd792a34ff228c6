//! Bodies of the fuzz targets: each takes arbitrary bytes and asserts what must hold for all of them.
//!
//! They are part of the crate so that the ordinary tests run them too, over mutated seeds.

#![allow(clippy::expect_used, reason = "a fuzz target reports what does not hold by panicking")]

use crate::export;
use crate::file::frame::{self, FrameKind};
use crate::file::proto;
use crate::import::{Entries, ImportFormat};
use crate::redact::{Action, KeyRule, PathRule, Redaction, RedactionSettings, Redactor};
use crate::seal::{Anchors, InclusionProof, TapeVerifier};
use crate::{Bodies, Select, TapeFile, TapeFileWriter};
use bytes::Bytes;
use prost::Message;
use signalbox_engine::record::{Content, TapeInfo, TapeKind};
use signalbox_wire::{Envelope, Limits, scan};
use std::collections::HashSet;
use std::io::Cursor;
use std::sync::LazyLock;

/// Takes arbitrary bytes and panics when an assertion fails.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("tape_file", tape_file),
    ("redact", redact),
    ("import_har", import_har),
    ("import_pcap", import_pcap),
    ("import_lines", import_lines),
    ("import_cassette", import_cassette),
    ("export_calls", export_calls),
    ("seal_proof", seal_proof),
];

/// Checks that a tape which was read can be written again without a change. The bytes are read as a file and as the
/// content of a frame, since hardly any mutation of a file passes its checksums.
pub fn tape_file(data: &[u8]) {
    read_again(data);
    let mut framed = [&frame::MAGIC[..], &frame::VERSION.to_le_bytes()].concat();
    let mut headed = framed.clone();
    frame::write(&mut headed, FrameKind::Head, data).expect("memory takes it");
    read_again(&headed);
    let head = proto::Head { kind: "wrap".to_owned(), ..proto::Head::default() }.encode_to_vec();
    frame::write(&mut framed, FrameKind::Head, &head).expect("memory takes it");
    frame::write(&mut framed, FrameKind::Entries, data).expect("memory takes it");
    read_again(&framed);
    let index = framed.len() as u64;
    frame::write(&mut framed, FrameKind::Index, data).expect("memory takes it");
    framed.extend(frame::trailer(index));
    read_again(&framed);
}

fn read_again(data: &[u8]) {
    let Ok(mut tape) = TapeFile::open(Cursor::new(data)) else { return };
    let (info, sessions) = (tape.info().clone(), tape.sessions().to_vec());
    let read: Vec<_> = tape.entries(Select::default()).filter_map(Result::ok).collect();
    let mut bodies = Bodies::default();
    read.iter().for_each(|entry| drop(bodies.whole(entry.clone())));
    let _ = crate::explain(&read);
    let (mut verifier, mut whole) = (TapeVerifier::new(&info), Bodies::default());
    let _ = read.iter().all(|entry| verifier.push(whole.whole(entry.clone())));
    let _ = verifier.finish();
    let mut writer = TapeFileWriter::new(vec![], &info, &sessions).expect("memory takes it");
    read.iter().for_each(|entry| writer.push(entry).expect("memory takes it"));
    let written = writer.finish(None).expect("memory takes it");
    let mut again = TapeFile::open(Cursor::new(&written[..])).expect("what was written is read");
    assert!(again.entries(Select::default()).map(|entry| entry.expect("whole")).eq(read));
}

/// Checks that every proof which can be read is written identically, and that verification of foreign proofs and
/// anchors never panics.
pub fn seal_proof(data: &[u8]) {
    let _ = Anchors::read(data, "t");
    if let Ok(proof) = InclusionProof::from_json(data) {
        let text = proof.to_json().expect("every proof has a JSON form");
        let again = InclusionProof::from_json(text.as_bytes()).expect("what was written is read");
        assert_eq!(again.verify(), proof.verify());
    }
}

static REDACTORS: LazyLock<Vec<Redactor>> = LazyLock::new(|| {
    let key =
        |action| RedactionSettings { keys: vec![KeyRule { name: "a".into(), action }], ..RedactionSettings::none() };
    let path = |path: &str, action| RedactionSettings {
        paths: vec![PathRule { method: None, path: path.into(), action }],
        ..RedactionSettings::none()
    };
    let all = [
        RedactionSettings::default(),
        key(Action::Remove),
        key(Action::Mask { visible: 1 }),
        path("/*", Action::Remove),
        path("/*/*", Action::Remove),
        path("/params/*", Action::Hash),
    ];
    all.iter().map(|settings| Redactor::new(settings, [3; 32]).expect("these make sense")).collect()
});

/// Checks that redaction keeps valid JSON valid, and keeps the kind and id of a message.
pub fn redact(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let limits = Limits { depth: 600, ..Limits::default() };
    let valid = scan(&bytes, &limits).is_ok();
    let message = Envelope::parse(bytes.clone());
    for redactor in &*REDACTORS {
        let Redaction::Changed(changed) = redactor.message(&bytes, Some("tools/call")) else { continue };
        if valid {
            assert_eq!(scan(&changed, &limits), Ok(()), "{}", String::from_utf8_lossy(&changed));
        }
        if let (true, Ok(message)) = (valid, &message) {
            let after = Envelope::parse(changed).expect("still a message");
            assert_eq!((after.kind(), after.id().is_some()), (message.kind(), message.id().is_some()));
        }
    }
}

/// Imports arbitrary bytes as a HAR file.
pub fn import_har(data: &[u8]) {
    import(data, ImportFormat::Har);
}

/// Imports arbitrary bytes as a packet capture.
pub fn import_pcap(data: &[u8]) {
    import(data, ImportFormat::Pcap);
}

/// Imports arbitrary bytes as lines of messages, in every form.
pub fn import_lines(data: &[u8]) {
    for format in [ImportFormat::Messages, ImportFormat::Mcporter, ImportFormat::Mcpsnoop] {
        import(data, format);
    }
}

/// Imports arbitrary bytes as a cassette of mcp-recorder.
pub fn import_cassette(data: &[u8]) {
    import(data, ImportFormat::McpRecorder);
}

/// Exports messages as calls. Documents must be valid JSON and scripts pure ASCII, so that no character of a tape can
/// end a line or a literal.
pub fn export_calls(data: &[u8]) {
    let Ok(recording) = crate::import::read(&Bytes::copy_from_slice(data), ImportFormat::Messages) else { return };
    let entries: Vec<_> = Entries::new(recording, Redactor::none(), None, 1).collect();
    let info = TapeInfo::new("i".to_owned(), TapeKind::Import, String::new(), 1);
    let target = export::ExportTarget::new(&info, None, "i".to_owned());
    let made = |write: Exporter| {
        let (mut out, mut all) = (Vec::new(), entries.iter().cloned().map(Ok));
        let source = export::Source { info: &info, sessions: &[], entries: &mut all };
        write(source, &target, &mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    };
    const DOCUMENTS: [Exporter; 2] = [
        |source, target, out| export::postman::write(source, target, out),
        |source, target, out| export::insomnia::write(source, target, out),
    ];
    for write in DOCUMENTS {
        serde_json::from_str::<serde_json::Value>(&made(write)).expect("a JSON document");
    }
    const SCRIPTS: [Exporter; 4] = [
        |source, target, out| export::k6::write(source, target, out),
        |source, target, out| export::playwright::write(source, target, out),
        |source, target, out| export::vitest::write(source, target, out),
        |source, target, out| export::pytest::write(source, target, out),
    ];
    for write in SCRIPTS {
        assert!(made(write).bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
    }
    made(|source, target, out| export::curl::write(source, target, out));
}

type Exporter = fn(export::Source<'_>, &export::ExportTarget, &mut Vec<u8>) -> Result<(), export::ExportError>;

/// Checks that an import yields entries in order, ends each exchange at most once, and survives a tape file.
fn import(data: &[u8], format: ImportFormat) {
    let _ = crate::import::FileContent::of(data);
    let Ok(recording) = crate::import::read(&Bytes::copy_from_slice(data), format) else { return };
    let entries: Vec<_> = Entries::new(recording, Redactor::none(), None, 1).collect();
    let mut ended = HashSet::new();
    for (entry, seq) in entries.iter().zip(1..) {
        assert_eq!(entry.seq, seq);
        if matches!(entry.content, Content::Finished(_)) {
            assert!(ended.insert(entry.exchange), "{:?} ends twice", entry.exchange);
        }
    }
    assert!(entries.is_sorted_by_key(|entry| entry.at));
    let info = TapeInfo::new("i".to_owned(), TapeKind::Import, String::new(), 1);
    let mut writer = TapeFileWriter::new(vec![], &info, &[]).expect("memory takes it");
    entries.iter().for_each(|entry| writer.push(entry).expect("memory takes it"));
    let written = writer.finish(None).expect("memory takes it");
    let mut again = TapeFile::open(Cursor::new(&written[..])).expect("what was written is read");
    assert!(again.entries(Select::default()).map(|entry| entry.expect("whole")).eq(entries));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use signalbox_wire::fuzzing::run_mutated;

    /// Pieces that matter to some parser, to be put anywhere.
    const PIECES: &[&[u8]] = &[
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\u0061",
        b"\"a\":",
        b"\"token\":\"x\"",
        b"null",
        b" ",
        b"AKIAABCDEFGHIJKLMNOP",
        b"Bearer abcdefghijk",
        b"\\u0041KIA",
        b"\\ud83d\\ude00",
        b"\xff",
        b"\0",
        b"\x80",
        b"\"password\":{\"type\":\"string\"}",
        b"\"properties\":{",
    ];

    fn seeds() -> Vec<Vec<u8>> {
        let mut writer = TapeFileWriter::new(vec![], &sample::info(), &sample::sessions()).unwrap();
        sample::entries().iter().for_each(|entry| writer.push(entry).unwrap());
        let texts = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"password":"x","a":[1,{"a":2}]}}}"#,
            r#"{"jsonrpc":"2.0","id":"a","result":{"a":"AKIAABCDEFGHIJKLMNOP","b":"\u0041\n","properties":{"token":{"type":"x"}}}}"#,
            r#"[{"jsonrpc":"2.0","method":"a","params":{"a":1}},{"a":{"a":{"a":[]}}}]"#,
            "no JSON, Bearer abcdefghijk",
        ];
        let content = sample::entries().into_iter().flat_map(|entry| {
            let (record, body) = crate::file::record::of_entry(&entry);
            [record.encode_length_delimited_to_vec(), body.to_vec()].concat()
        });
        let head = crate::file::record::of_head(&sample::info(), &sample::sessions()).encode_to_vec();
        let frame = proto::Frame { offset: 12, entries: 1, last_seq: 9, sessions: vec![1, 300], ..Default::default() };
        let index = proto::Index { frames: vec![frame], ..Default::default() }.encode_to_vec();
        let mut seeds = vec![writer.finish(None).unwrap(), content.collect(), head, index];
        seeds.extend(texts.iter().map(|text| text.as_bytes().to_vec()));
        let recordings: [&[u8]; 5] = [
            include_bytes!("../tests/recordings/session.pcap"),
            include_bytes!("../tests/recordings/mitmproxy.har"),
            include_bytes!("../tests/recordings/mcporter.ndjson"),
            include_bytes!("../tests/recordings/mcp-rec.jsonl"),
            include_bytes!("../tests/recordings/mcp-recorder.json"),
        ];
        seeds.extend(recordings.map(<[u8]>::to_vec));
        let (info, mut har, mut entries) = (sample::info(), Vec::new(), sample::entries().into_iter().map(Ok));
        let source = crate::export::Source { info: &info, sessions: &[], entries: &mut entries };
        crate::export::har::write(source, &mut har).unwrap();
        seeds.push(har);
        let proof = crate::seal::tests::proof();
        seeds.extend([proof.to_json().unwrap().into_bytes(), proof.head().to_json().to_string().into_bytes()]);
        seeds
    }

    /// Proves S-66.
    #[test]
    fn all_targets_hold_on_seeds_and_mutations() {
        let seeds = seeds();
        run_mutated(TARGETS, &seeds, PIECES, 4_000);
    }
}
