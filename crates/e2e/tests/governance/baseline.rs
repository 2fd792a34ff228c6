//! Live traffic compared with a recorded tape: `[record] baseline`.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{eventually, signalbox, status};
use std::path::{Path, PathBuf};
use tokio::process::Command;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The config of a gateway in front of the notes server, with more lines for `record`.
fn config(folder: &Path, flags: &[&str], record: &str) -> String {
    let (program, counter) = (built("notes-server").unwrap(), folder.join("writes"));
    let args: Vec<&str> = [text(&counter), "--fixed-ids"].into_iter().chain(flags.iter().copied()).collect();
    format!("[backends.notes]\ncommand = {}\nargs = {}\n[record]\n{record}\n", json!(text(&program)), json!(args))
}

/// Creates, reads and deletes a note, and reads it once more.
async fn conversation(gateway: &GatewayProcess) {
    let client = client_of(gateway).initialize("2025-06-18", json!({})).await.unwrap();
    call(&client, 1, "create_note", json!({"text": "milk"})).await;
    for (id, tool) in [(2, "read_note"), (3, "delete_note"), (4, "read_note")] {
        call(&client, id, tool, json!({"note": "note-1"})).await;
    }
}

fn client_of(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address())
}

/// The page of `/metrics`.
async fn metrics(gateway: &GatewayProcess) -> String {
    let page = client_of(gateway).get("/metrics").await.unwrap();
    String::from_utf8(page.body.to_vec()).unwrap()
}

/// The first line of a process that has this text.
async fn line_with(process: &Spawned, text: &str) -> String {
    let look = async || process.lines().into_iter().find(|line| line.contains(text));
    eventually(text, look).await.unwrap()
}

async fn call(client: &HttpClient, id: u64, tool: &str, arguments: Value) {
    let answer = client.request(id, "tools/call", json!({"name": tool, "arguments": arguments})).await.unwrap();
    assert!(answer["result"]["content"].is_array(), "{answer}");
}

/// A tape file of that conversation.
async fn recorded(folder: &Path) -> PathBuf {
    let tape = folder.join("notes.tape");
    let gateway = GatewayProcess::serve(&config(folder, &[], "")).await.unwrap();
    conversation(&gateway).await;
    let data = gateway.data_dir();
    let whole = async || {
        let listed = signalbox(&data, &["tape", "show", "last", "--json"]).await.ok()?;
        (listed.matches("\"read_note\"").count() >= 2).then_some(())
    };
    eventually("the conversation is on the tape", whole).await.unwrap();
    signalbox(&data, &["tape", "export", "last", "-o", text(&tape)]).await.unwrap();
    tape
}

/// What `status` says of the baseline, once so many calls were counted.
async fn counted(gateway: &GatewayProcess, calls: u64) -> Value {
    let look = async || {
        let baseline = status(&gateway.data_dir()).await.ok()?["baseline"].take();
        let sum: u64 = ["same", "differs", "unknown", "dropped"]
            .iter()
            .map(|word| baseline[word].as_u64())
            .sum::<Option<u64>>()?;
        (sum >= calls).then_some(baseline)
    };
    eventually("the calls are counted", look).await.unwrap()
}

fn watch(gateway: &GatewayProcess) -> Spawned {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["watch", "--json", "--data-dir"]).arg(gateway.data_dir());
    Spawned::start(command).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_server_answers_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let tape = recorded(folder.path()).await;
    let record = format!("baseline = {}", json!(text(&tape)));
    let gateway = GatewayProcess::serve(&config(folder.path(), &[], &record)).await.unwrap();
    conversation(&gateway).await;
    let said = counted(&gateway, 4).await;
    assert_eq!([&said["same"], &said["differs"], &said["unknown"], &said["dropped"]], [4, 0, 0, 0], "{said}");
    let page = metrics(&gateway).await;
    assert!(page.contains("signalbox_baseline_calls_total{verdict=\"same\"} 4"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_answer_is_a_decision_on_the_new_tape_a_metric_and_a_line_in_watch() {
    let folder = tempfile::tempdir().unwrap();
    let tape = recorded(folder.path()).await;
    let record = format!("baseline = {}", json!(text(&tape)));
    let gateway = GatewayProcess::serve(&config(folder.path(), &["--changed"], &record)).await.unwrap();
    let watching = watch(&gateway);
    line_with(&watching, "\"watching\"").await;
    conversation(&gateway).await;
    let client = client_of(&gateway).initialize("2025-06-18", json!({})).await.unwrap();
    call(&client, 1, "create_note", json!({"text": "bread"})).await;

    let said = counted(&gateway, 5).await;
    assert_eq!([&said["same"], &said["differs"], &said["unknown"], &said["dropped"]], [3, 1, 1, 0], "{said}");
    let page = metrics(&gateway).await;
    for line in
        ["{verdict=\"same\"} 3", "{verdict=\"differs\"} 1", "{verdict=\"unknown\"} 1", "{verdict=\"dropped\"} 0"]
    {
        assert!(page.contains(&format!("signalbox_baseline_calls_total{line}")), "{line}: {page}");
    }

    let line: Value = serde_json::from_str(&line_with(&watching, "\"verdict\":\"differs\"").await).unwrap();
    assert_eq!(
        (&line["type"], &line["by"], &line["phase"]),
        (&json!("decision"), &json!("baseline"), &json!("response"))
    );
    let detail = line["detail"].as_str().unwrap();
    assert!(detail.starts_with("tools/call read_note differs from call "), "{detail}");
    assert!(detail.contains("at /result/content/0/text/@json/text (missing)"), "{detail}");

    let number = line["exchange"].to_string();
    let data = gateway.data_dir();
    let shown = async || {
        let shown = signalbox(&data, &["tape", "show", "last", "--exchange", &number]).await.ok()?;
        shown.contains("baseline").then_some(shown)
    };
    let shown = eventually("the decision is on the tape", shown).await.unwrap();
    assert!(shown.contains("differs") && shown.contains("/result/content/0/text/@json/text (missing)"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_paths_do_not_count_and_a_stored_tape_may_be_the_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let gateway = GatewayProcess::serve_in(home, &config(folder.path(), &[], "")).await.unwrap();
    conversation(&gateway).await;
    let tape = eventually("the conversation is recorded", async || {
        let recording = status(&gateway.data_dir()).await.ok()?["recording"].take();
        (recording["queue"] == 0 && recording["entries"].as_u64()? > 10)
            .then(|| recording["tape"].as_str().map(ToOwned::to_owned))?
    });
    let tape = tape.await.unwrap();
    let home = gateway.stop().await.unwrap();
    let record = format!("baseline = \"{tape}\"\nbaseline_ignore = [\"/result/content/*/text/@json\"]");
    let gateway = GatewayProcess::serve_in(home, &config(folder.path(), &["--changed"], &record)).await.unwrap();
    conversation(&gateway).await;
    let said = counted(&gateway, 4).await;
    assert_eq!((&said["same"], &said["tape"]), (&json!(4), &json!(tape)), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_baseline_that_cannot_be_read_is_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("signalbox.toml");
    std::fs::write(&file, config(folder.path(), &[], "baseline = \"missing.tape\"")).unwrap();
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["check", "-c", text(&file), "--data-dir", text(&folder.path().join("data"))]);
    let output = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("`record.baseline` cannot be used"), "{said}");
}
