//! Recordings of other programs, imported and shown; and what is said of files that cannot be.

use crate::program::run;
use std::path::{Path, PathBuf};

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tape/tests/recordings").join(name)
}

#[tokio::test]
async fn recordings_of_other_programs_are_imported_shown_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format, call) in [
        ("mcporter.ndjson", "mcporter", "echo"),
        ("mcp-rec.jsonl", "mcp-rec", "convert_time"),
        ("mcp-recorder.json", "mcp-recorder", "convert_time"),
        ("mitmproxy.har", "har", "echo"),
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
