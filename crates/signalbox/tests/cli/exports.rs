//! Calls of a tape that other programs make again.

use crate::program::{Program, eventually, run};
use crate::{INITIALIZE, INITIALIZED, call};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::process::Command;

#[tokio::test]
async fn a_script_makes_the_recorded_calls_at_a_running_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorded = Program::start(folder.path(), &["stdio"]);
    recorded.write(INITIALIZE).await;
    recorded.answer(1).await;
    recorded.write(INITIALIZED).await;
    for (id, tool, arguments) in
        [(2, "echo", json!({"text": "it's $(id) \"so\" – naïve"})), (3, "no-such-tool", json!({}))]
    {
        recorded.write(&call(id, tool, &arguments)).await;
        recorded.answer(u64::from(id)).await;
    }
    recorded.signal("TERM").await;
    eventually(async || {
        let shown = run(folder.path(), &["tape", "show", "last"], "").await.stdout;
        (shown.matches("tools/call").count() == 2).then_some(())
    })
    .await;

    let other = tempfile::tempdir().unwrap();
    let gateway = Program::start(other.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let url = gateway.url().await;
    let script = folder.path().join("calls.sh").display().to_string();
    let exported = run(folder.path(), &["tape", "export", "last", "-o", &script, "--url", &url], "").await;
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let done = Command::new("bash").arg(&script).stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    let answers: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(answers.len(), 2, "{said}");
    assert_eq!(answers[0]["result"]["content"][0]["text"], "it's $(id) \"so\" – naïve");
    assert_eq!(answers[1]["error"]["code"], -32602);
    gateway.signal("TERM").await;
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let file = folder.path().join("a.jsonl");
    std::fs::write(&file, line).unwrap();
    run(folder.path(), &["tape", "import", &file.display().to_string()], "").await;
    let out = folder.path().join("a.sh").display().to_string();
    let refused = run(folder.path(), &["tape", "export", "last", "-o", &out, "--url", "file:///etc/passwd"], "").await;
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("begins with http:// or https://"), "{}", refused.stderr);
    let unknown = run(folder.path(), &["tape", "export", "last", "-o", "calls.xyz"], "").await;
    assert!(unknown.stderr.contains(".k6.js") && unknown.stderr.contains(".har"), "{}", unknown.stderr);
}
