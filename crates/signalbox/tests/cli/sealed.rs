//! `signalbox tape verify` and `tape redact`.

use crate::program::{Program, eventually, run};
use crate::{INITIALIZE, INITIALIZED, call};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Records a few calls, and gives the program that still runs.
async fn recorded(folder: &Path) -> Program {
    let mut program = Program::start(folder, &["stdio"]);
    program.write(INITIALIZE).await;
    program.answer(1).await;
    program.write(INITIALIZED).await;
    for id in 2..12 {
        let arguments = json!({"text": format!("secret {id}")});
        program.write(&call(id, "echo", &arguments)).await;
        program.answer(u64::from(id)).await;
    }
    eventually(async || {
        let shown = run(folder, &["tape", "show"], "").await.stdout;
        (shown.matches("tools/call").count() == 10).then_some(())
    })
    .await;
    program
}

async fn verify(folder: &Path, args: &[&str]) -> (i32, Value) {
    let line: Vec<&str> = ["tape", "verify", "--json"].into_iter().chain(args.iter().copied()).collect();
    let done = run(folder, &line, "").await;
    let told = serde_json::from_str(&done.stdout);
    assert!(told.is_ok(), "{}{}", done.stdout, done.stderr);
    (done.code, told.unwrap())
}

/// Ends the program as a user does.
async fn stop(mut program: Program) {
    program.signal("TERM").await;
    program.ended().await;
}

#[tokio::test]
async fn a_tape_proves_itself_and_every_exit_code_has_its_case() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let running = recorded(folder).await;
    let (code, told) = verify(folder, &["last"]).await;
    assert_eq!((code, told["outcome"].as_str()), (4, Some("never_closed")), "{told}");
    stop(running).await;
    let (code, told) = verify(folder, &["last"]).await;
    assert_eq!((code, told["outcome"].as_str(), &told["closed"]), (0, Some("valid"), &json!(true)), "{told}");
    let plain = run(folder, &["tape", "verify"], "").await;
    assert!(plain.stdout.contains("is as it was recorded") && plain.stdout.contains("--pin"), "{}", plain.stdout);
    let key = folder.join("data/seal/signing.key");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (id, public) = (&told["signers"][0]["key_id"], &told["signers"][0]["public_key"]);
    for pin in [id, public] {
        let (code, told) = verify(folder, &["last", "--pin", pin.as_str().unwrap()]).await;
        assert_eq!((code, told["trust"].as_str()), (0, Some("pinned")), "{told}");
    }
    let (code, told) = verify(folder, &["last", "--pin", "ed25519-0000"]).await;
    assert_eq!((code, told["outcome"].as_str()), (3, Some("signer_unknown")), "{told}");
    assert_eq!(run(folder, &["tape", "verify", "last", "--pin", "me"], "").await.code, 2);

    // In a file, and where nobody knows the key.
    assert_eq!(run(folder, &["tape", "export", "last", "-o", "a.tape"], "").await.code, 0);
    assert_eq!(verify(folder, &["a.tape"]).await.0, 0);
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::copy(folder.join("a.tape"), elsewhere.path().join("a.tape")).unwrap();
    assert_eq!(verify(elsewhere.path(), &["a.tape"]).await.0, 3);
    // Imported again, it is still sealed.
    assert_eq!(run(elsewhere.path(), &["tape", "import", "a.tape"], "").await.code, 0);
    let (code, told) = verify(elsewhere.path(), &["last", "--pin", id.as_str().unwrap()]).await;
    assert_eq!(code, 0, "{told}");

    let mut bytes = std::fs::read(folder.join("a.tape")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.join("b.tape"), bytes).unwrap();
    let (code, told) = verify(folder, &["b.tape"]).await;
    assert_eq!((code, told["outcome"].as_str()), (1, Some("broken")), "{told}");

    std::fs::write(folder.join("signalbox.toml"), "[seal]\ntapes = false\n").unwrap();
    stop(recorded(folder).await).await;
    let (code, told) = verify(folder, &["last"]).await;
    assert_eq!((code, told["outcome"].as_str()), (5, Some("never_sealed")), "{told}");
}

#[tokio::test]
async fn a_redacted_copy_verifies_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    stop(recorded(folder).await).await;
    let line = ["tape", "redact", "last", "--path", "/result/content/*/text", "-o", "copy.tape"];
    let done = run(folder, &line, "").await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    let (code, told) = verify(folder, &["copy.tape"]).await;
    assert_eq!((code, told["outcome"].as_str()), (0, Some("valid")), "{told}");
    let redacted = told["redacted"].as_array().unwrap();
    assert!(redacted.iter().any(|one| one["paths"] == json!(["/result/content/0/text"])), "{told}");
    let mut served = Program::start(folder, &["replay", "serve", "copy.tape"]);
    served.write(INITIALIZE).await;
    served.answer(1).await;
    served.write(INITIALIZED).await;
    served.write(&call(2, "echo", &json!({"text": "secret 5"}))).await;
    let answer: Value = serde_json::from_str(&served.answer(2).await).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "[redacted]", "{answer}");
    served.signal("TERM").await;
    let twice = run(folder, &["tape", "redact", "copy.tape", "--path", "/result", "-o", "b.tape"], "").await;
    assert_eq!(twice.code, 1, "{}", twice.stderr);
    assert!(twice.stderr.contains("redact the original"), "{}", twice.stderr);
}

/// What a program in Python says; none where it is not installed, which is a failure with `CI=true`.
fn python(arguments: &[&std::ffi::OsStr]) -> Option<(Option<i32>, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/run");
    let judged = std::process::Command::new(script).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&[judged.stdout, judged.stderr].concat()).into_owned();
    if judged.status.code() == Some(77) {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{said}");
        eprintln!("SKIP {arguments:?}: run script/install-test-deps");
        return None;
    }
    Some((judged.status.code(), said))
}

fn judge(lines: &Path) -> Option<(Option<i32>, String)> {
    python(&["seal-tape".as_ref(), lines.as_os_str()])
}

#[test]
fn another_language_computes_the_golden_vectors() {
    if let Some((code, said)) = python(&["seal-vectors".as_ref()]) {
        assert!(code == Some(0) && said.contains("vectors hold"), "{said}");
    }
}

/// The verifier in Python is written from the documentation alone.
#[tokio::test]
async fn another_language_comes_to_the_same_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let export = async |tape: &str, to: &str| {
        let done = run(folder, &["tape", "export", tape, "-o", to], "").await;
        assert_eq!(done.code, 0, "{}", done.stderr);
        folder.join(to)
    };
    let running = recorded(folder).await;
    let open = export("last", "open.jsonl").await;
    stop(running).await;
    let closed = export("last", "closed.jsonl").await;
    let line = ["tape", "redact", "last", "--path", "/result/content/*/text", "--path", "/params/arguments/text"];
    let done = run(folder, &[&line[..], &["-o", "copy.tape"]].concat(), "").await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    let copy = export("copy.tape", "copy.jsonl").await;
    let text = std::fs::read_to_string(&closed).unwrap();
    let changed = folder.join("changed.jsonl");
    std::fs::write(&changed, text.replacen("secret 5", "secret 6", 1)).unwrap();
    let cut = folder.join("cut.jsonl");
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(&cut, lines[..lines.len() - 2].join("\n")).unwrap();
    let report = export("last", "report.html").await;
    let page = std::fs::read_to_string(&report).unwrap();
    assert!(page.contains("<h2>Seal</h2>") && page.contains("<td>closing"), "{page}");
    let forged = folder.join("forged.html");
    let (before, lines) = page.split_once("id=\"tape\">").unwrap();
    std::fs::write(&forged, [before, "id=\"tape\">", &lines.replacen("secret 5", "secret 6", 1)].concat()).unwrap();
    // A reader may show the first of two members; the hash is of the last.
    let (twice, second, unknown) = (folder.join("twice.jsonl"), folder.join("second.jsonl"), folder.join("note.jsonl"));
    let told = r#""finished":{"method":"tools/call","outcome":"success","took":1,"bytes_in":1,"bytes_out":1},"#;
    std::fs::write(&twice, text.replacen("\"finished\":", &format!("{told}\"finished\":"), 1)).unwrap();
    let refused = r#""refused":{"reason":"denied","detail":"forged"},"#;
    std::fs::write(&second, text.replacen("\"finished\":", &format!("{refused}\"finished\":"), 1)).unwrap();
    std::fs::write(&unknown, text.replacen("\"finished\":{", "\"finished\":{\"note\":1,", 1)).unwrap();
    // Another store, as this one has a tape of that name.
    let other = tempfile::tempdir().unwrap();
    for refused in [&twice, &second] {
        let imported = run(other.path(), &["tape", "import", refused.to_str().unwrap()], "").await;
        assert!(imported.code == 1 && imported.stderr.contains("`finished`"), "{}", imported.stderr);
    }
    let forgeries = [(changed, 1), (cut, 1), (forged, 1), (twice, 1), (second, 1), (unknown, 1)];
    for (file, expected) in [(open, 4), (closed, 0), (copy, 0), (report, 0)].into_iter().chain(forgeries) {
        let Some((code, said)) = judge(&file) else { return };
        assert_eq!(code, Some(expected), "{}: {said}", file.display());
        let is_page = file.extension().is_some_and(|end| end == "html");
        assert_eq!(said.contains("the page around it is not covered"), is_page, "{}: {said}", file.display());
    }
}

#[tokio::test]
async fn one_entry_is_handed_to_an_auditor_who_has_no_tape() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    stop(recorded(folder).await).await;
    let found = run(folder, &["tape", "export", "last", "-o", "all.jsonl"], "").await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    let lines = std::fs::read_to_string(folder.join("all.jsonl")).unwrap();
    let entry = lines.lines().find(|line| line.contains("secret 7")).unwrap();
    let entry: Value = serde_json::from_str(entry).unwrap();
    let number = entry["seq"].to_string();
    let done = run(folder, &["tape", "prove", "last", "--entry", &number, "-o", "proof.json"], "").await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    let proof = folder.join("proof.json");
    assert_eq!(proof.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (code, told) = verify(folder, &["--proof", "proof.json"]).await;
    assert_eq!((code, told["outcome"].as_str(), told["trust"].as_str()), (0, Some("valid"), Some("trusted")), "{told}");
    assert_eq!(told["entry"]["seq"], entry["seq"], "{told}");
    let shown = run(folder, &["tape", "verify", "--proof", "proof.json"], "").await.stdout;
    assert!(shown.contains("as it was recorded") && shown.contains("secret 7"), "{shown}");

    let auditor = tempfile::tempdir().unwrap();
    std::fs::copy(&proof, auditor.path().join("proof.json")).unwrap();
    assert_eq!(verify(auditor.path(), &["--proof", "proof.json"]).await.0, 3);
    let key = told["signers"][0]["key_id"].as_str().unwrap();
    let (code, told) = verify(auditor.path(), &["--proof", "proof.json", "--pin", key]).await;
    assert_eq!((code, told["trust"].as_str()), (0, Some("pinned")), "{told}");

    let text = std::fs::read_to_string(&proof).unwrap();
    let forged = folder.join("forged.json");
    std::fs::write(&forged, text.replacen("secret 7", "secret 8", 1)).unwrap();
    let (code, told) = verify(folder, &["--proof", "forged.json"]).await;
    assert_eq!((code, told["outcome"].as_str()), (1, Some("broken")), "{told}");
    assert_eq!(run(folder, &["tape", "prove", "last", "--entry", "9999", "-o", "x.json"], "").await.code, 1);
    let second = folder.join("second.json");
    std::fs::write(&second, text.replacen("\"entry\": {", "\"entry\": {\"decisions\": [],", 1)).unwrap();
    let refused = run(folder, &["tape", "verify", "--proof", "second.json"], "").await;
    assert!(refused.code == 1 && refused.stderr.contains("not valid") && refused.stderr.contains("`decisions`"));
    for (file, expected) in [(&proof, 0), (&forged, 1), (&second, 1)] {
        let Some((code, said)) = python(&["seal-proof".as_ref(), file.as_os_str()]) else { return };
        assert_eq!(code, Some(expected), "{said}");
    }
}

#[tokio::test]
async fn heads_that_were_anchored_elsewhere_show_that_a_tape_was_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let (folder, anchors) = (folder.path(), elsewhere.path().join("anchors.jsonl"));
    let anchors = anchors.to_str().unwrap();
    std::fs::write(folder.join("signalbox.toml"), format!("[seal]\nanchor = [{anchors:?}]\nhead_every = 5\n")).unwrap();
    stop(recorded(folder).await).await;
    let (code, told) = verify(folder, &["last", "--anchor", anchors]).await;
    assert_eq!((code, told["trust"].as_str()), (0, Some("anchored")), "{told}");
    assert_eq!(told["anchored_up_to"], told["last_entry"], "{told}");
    let shown = run(folder, &["tape", "verify", "last", "--anchor", anchors], "").await.stdout;
    assert!(shown.contains("anchored elsewhere, up to entry") && !shown.contains("beside"), "{shown}");
    assert_eq!(verify(folder, &["last"]).await.1["trust"], "trusted");

    // A prefix of the tape, cut off where a killed process would have left it.
    assert_eq!(run(folder, &["tape", "export", "last", "-o", "all.jsonl"], "").await.code, 0);
    let text = std::fs::read_to_string(folder.join("all.jsonl")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.truncate(20);
    let mut head: Value = serde_json::from_str(&lines[0]).unwrap();
    head.as_object_mut().unwrap().remove("ended");
    let seal = open_seal(head["seal"].as_str().unwrap());
    head["seal"] = seal.into();
    lines[0] = head.to_string();
    std::fs::write(folder.join("cut.jsonl"), lines.join("\n")).unwrap();
    let other = tempfile::tempdir().unwrap();
    let imported = run(other.path(), &["tape", "import", folder.join("cut.jsonl").to_str().unwrap()], "").await;
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let key = told["signers"][0]["key_id"].as_str().unwrap();
    assert_eq!(verify(other.path(), &["last", "--pin", key]).await.0, 4, "nothing but the anchors tells");
    let (code, told) = verify(other.path(), &["last", "--anchor", anchors]).await;
    assert_eq!((code, told["fault"]["kind"].as_str()), (1, Some("missing")), "{told}");

    // Anchors of another tape say nothing of this one.
    std::fs::write(folder.join("none.jsonl"), "").unwrap();
    let (code, told) = verify(folder, &["last", "--anchor", "none.jsonl"]).await;
    assert_eq!((code, told["outcome"].as_str()), (3, Some("signer_unknown")), "{told}");
}

/// The seal of a tape without the head that closes it.
fn open_seal(base64: &str) -> String {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let seal = signalbox_seal::TapeSeal::from_bytes(&engine.decode(base64).unwrap()).unwrap();
    engine.encode(signalbox_seal::TapeSeal { closing: None, ..seal }.to_bytes())
}

#[tokio::test]
async fn a_part_of_a_tape_says_that_it_is_not_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    stop(recorded(folder).await).await;
    let shown = run(folder, &["tape", "show", "--json"], "").await.stdout;
    let number = (1..5).find(|number| shown.contains(&format!("\"session\":{number}"))).unwrap_or(1).to_string();
    for file in ["part.tape", "part.jsonl", "part.html"] {
        let done = run(folder, &["tape", "export", "last", "--session", &number, "-o", file], "").await;
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(done.stderr.contains("the seal does not carry over: a part of a tape"), "{}", done.stderr);
    }
    assert_eq!(verify(folder, &["part.tape"]).await.0, 5);
    let page = std::fs::read_to_string(folder.join("part.html")).unwrap();
    assert!(!page.contains("<h2>Seal</h2>"), "{page}");
    let whole = run(folder, &["tape", "export", "last", "-o", "whole.tape"], "").await;
    assert!(!whole.stderr.contains("seal"), "{}", whole.stderr);
}
