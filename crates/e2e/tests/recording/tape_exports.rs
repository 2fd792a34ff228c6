//! Exports of a tape, judged by programs that are not ours: npm `har-validator`, PyPI `opentelemetry-proto`, Chromium.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail wherever it wants, and says what it skipped"
)]

use serde_json::{Value, json};
use signalbox_engine::record::StoreError;
use signalbox_tape::export::{ExportError, Source, har, html, otlp};
use signalbox_tape::{Select, TapeFile};
use signalbox_testkit::clients::run;
use std::fs::File;
use std::path::Path;

/// Exports the tape that the first version of the format left behind: a blocked call, a modified one, one that timed
/// out and one without a session, with a line that is no JSON and a gap.
fn export(to: &Path, write: impl FnOnce(Source<'_>, File) -> Result<(), ExportError>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tape/tests/golden/version-1.tape");
    let mut tape = TapeFile::open(File::open(path).unwrap()).unwrap();
    let (info, sessions) = (tape.info().clone(), tape.sessions().to_vec());
    let mut entries = tape.entries(Select::default()).map(|entry| entry.map_err(StoreError::from));
    write(Source { info: &info, sessions: &sessions, entries: &mut entries }, File::create(to).unwrap()).unwrap();
}

/// What a checker says of a file; `None` where it is not installed.
async fn judged(checker: &str, file: &Path) -> Option<Value> {
    let said = run(&[checker, file.to_str().unwrap()]).await.unwrap();
    if said.is_none() {
        println!("SKIP {checker}: run script/install-test-deps");
    }
    said
}

#[tokio::test]
async fn har_is_valid_for_har_validator() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tape.har");
    export(&file, har::write);
    let Some(said) = judged("har-check", &file).await else { return };
    assert_eq!(said, json!({"entries": 4}));
    // The validator is awake: it refuses what is none.
    std::fs::write(&file, r#"{"log":{"version":"1.2","entries":[{}]}}"#).unwrap();
    let said = judged("har-check", &file).await.unwrap();
    assert!(said["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{said}");
}

#[tokio::test]
async fn otlp_parses_without_unknown_fields() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tape.otlp.json");
    export(&file, otlp::write);
    let Some(said) = judged("otlp-check", &file).await else { return };
    assert_eq!((&said["spans"], &said["events"]), (&json!(4), &json!(15)), "{said}");
    assert_eq!(said["names"][1], "tools/call math__add");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"kind\":", "\"sort\":", 1)).unwrap();
    assert!(run(&["otlp-check", file.to_str().unwrap()]).await.is_err(), "an unknown field is refused");
}

#[tokio::test]
async fn the_report_renders_in_chromium_without_network() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    export(&file, |source, to| html::write(source, html::Bounds::default(), to));
    let Some(said) = judged("report-check", &file).await else { return };
    let dom = said["dom"].as_str().unwrap();
    assert!(dom.contains("4 of 4 exchanges"), "its script ran: {dom}");
    assert!(dom.contains("<p id=\"tools\">"), "the filter is there");
    assert!(dom.contains("/etc/passwd &lt;b&gt;") && dom.contains("12 facts are missing"));
    assert_eq!(said["requests"], json!([]), "it asks for nothing but itself");
    std::fs::write(&file, "<img src=\"http://pictures.invalid/x.png\">").unwrap();
    let said = judged("report-check", &file).await.unwrap();
    assert_eq!(said["requests"], json!(["http://pictures.invalid/x.png"]), "what asks for more is noticed");
}
