//! Recordings of other programs, imported and shown; and what is said of files that cannot be.

use crate::program::{Program, run};
use crate::{INITIALIZE, INITIALIZED};
use serde_json::{Value, json};
use signalbox_replay::call_gatherer::gather;
use signalbox_replay::{Paths, RecordedSide};
use signalbox_tape::TapeSource;
use std::path::{Path, PathBuf};

/// In the form that the documentation of mcpsnoop shows; the program itself is in no package index.
const MCPSNOOP: &str = r#"{"session_id":"s-1","server_label":"math","seq":1,"ts":"2026-07-01T10:00:00.5Z","direction":"c2s","transport":"stdio","raw":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}}
{"session_id":"s-1","server_label":"math","seq":2,"ts":"2026-07-01T10:00:00.75Z","direction":"s2c","transport":"stdio","raw":{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2"}]}}}
"#;

const JSON_LINES: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"häł"}]}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}
{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"not again"}}
"#;

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tape/tests/recordings").join(name)
}

/// Proves SO-13.
#[tokio::test]
async fn recordings_of_other_programs_are_imported_shown_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format, call) in [
        ("mcporter.ndjson", "mcporter", "echo"),
        ("mcp-rec.jsonl", "mcp-rec", "convert_time"),
        ("mcp-recorder.json", "mcp-recorder", "convert_time"),
        ("mitmproxy.har", "har", "echo"),
        ("session.pcap", "pcap", "countdown"),
    ] {
        let file = recording(name).display().to_string();
        let imported = run(folder.path(), &["tape", "import", &file], "").await;
        assert_eq!(imported.code, 0, "{name}: {}", imported.stderr);
        let listed = run(folder.path(), &["tape", "list"], "").await.stdout;
        assert!(listed.contains(&format!("{format}: {name}")) && listed.contains("import"), "{listed}");
        let id = imported.stdout.split(':').next().unwrap().to_owned();
        let shown = run(folder.path(), &["tape", "show", &id], "").await.stdout;
        assert!(shown.contains(call) && shown.contains("success"), "{name}: {shown}");
        // The same with the format named, and through a tape file to another store.
        let again = run(folder.path(), &["tape", "import", "--format", format, &file], "").await;
        assert_eq!(again.code, 0, "{name}: {}", again.stderr);
        let tape = folder.path().join(format!("{name}.tape")).display().to_string();
        let exported = run(folder.path(), &["tape", "export", &id, "-o", &tape], "").await;
        assert_eq!(exported.code, 0, "{name}: {}", exported.stderr);
        let elsewhere = tempfile::tempdir().unwrap();
        let carried = run(elsewhere.path(), &["tape", "import", &tape], "").await;
        assert_eq!(carried.stdout, imported.stdout, "{name}: {}", carried.stderr);
    }
}

#[tokio::test]
async fn nothing_is_kept_of_a_file_that_breaks_off() {
    let folder = tempfile::tempdir().unwrap();
    let good = std::fs::read_to_string(recording("mcp-rec.jsonl")).unwrap();
    let file = folder.path().join("broken.jsonl");
    std::fs::write(&file, &good[..good.len() - 20]).unwrap();
    let file = file.display().to_string();
    let failed = run(folder.path(), &["tape", "import", &file], "").await;
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("broken.jsonl: line 9: "), "{}", failed.stderr);
    let listed = run(folder.path(), &["tape", "list", "--json"], "").await.stdout;
    assert_eq!(listed.trim(), "[]");
}

#[tokio::test]
async fn a_file_that_is_no_tape_yet_is_to_be_imported_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording("mcp-rec.jsonl").display().to_string();
    for command in ["show", "stats"] {
        let shown = run(folder.path(), &["tape", command, &file], "").await;
        assert!(shown.stderr.contains(&format!("import it first: signalbox tape import {file}")), "{}", shown.stderr);
    }
}

/// The calls of a tape file with their answers.
fn calls_of(tape: &Path) -> Vec<(Value, Value)> {
    let mut tape = TapeSource::open(tape).unwrap();
    let side = RecordedSide::of(&mut tape).unwrap();
    let parsed = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let calls = gather(tape.entries(None), side, Paths::default()).unwrap().into_iter();
    let calls = calls.filter(|call| &*call.method == "tools/call");
    let both = |call: &signalbox_replay::RecordedCall| {
        let answer = call.answer.as_ref().unwrap().bytes.as_ref().unwrap();
        (parsed(call.request.as_ref().unwrap()), parsed(answer))
    };
    calls.map(|call| both(&call)).collect()
}

/// Proves SO-13.
#[tokio::test]
async fn recordings_of_other_programs_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let (snooped, lines) = (written("mcpsnoop.jsonl", MCPSNOOP), written("lines.jsonl", JSON_LINES));
    let made =
        ["mcporter.ndjson", "mcp-rec.jsonl", "mcp-recorder.json", "mitmproxy.har", "session.pcap"].map(recording);
    for (file, calls) in made.into_iter().zip([2, 2, 2, 3, 2]).chain([(snooped, 1), (lines, 2)]) {
        let name = file.display().to_string();
        let imported = run(folder.path(), &["tape", "import", &name], "").await;
        assert_eq!(imported.code, 0, "{name}: {}", imported.stderr);
        let tape = folder.path().join(format!("{calls}-{}.tape", file.file_name().unwrap().display()));
        let target = tape.display().to_string();
        let id = imported.stdout.split(':').next().unwrap();
        let exported = run(folder.path(), &["tape", "export", id, "-o", &target], "").await;
        assert_eq!(exported.code, 0, "{name}: {}", exported.stderr);
        let recorded = calls_of(&tape);
        assert_eq!(recorded.len(), calls, "{name}");
        let mut served = Program::start(folder.path(), &["replay", "serve", id]);
        served.write(INITIALIZE).await;
        served.answer(1).await;
        served.write(INITIALIZED).await;
        for (id, (mut request, recorded)) in (2..).zip(recorded) {
            request["id"] = json!(id);
            served.write(&request.to_string()).await;
            let answer: Value = serde_json::from_str(&served.answer(id).await).unwrap();
            assert_eq!(answer["result"], recorded["result"], "{name}: {request}: {answer}");
            assert_eq!(answer["error"]["message"], recorded["error"]["message"], "{name}: {request}");
        }
        served.signal("TERM").await;
    }
}
