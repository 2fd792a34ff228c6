//! `signalbox tools` beside a gateway that runs.

use crate::program::{Program, run};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A gateway with one backend, this very program with its demo tools, and a rule. Its file is not the one that a
/// command finds by itself.
async fn gateway(folder: &Path) -> Program {
    let (program, inner) = (env!("CARGO_BIN_EXE_signalbox"), folder.join("inner"));
    let text = format!(
        "[backends.inner]\ncommand = {program:?}\nargs = [\"stdio\", \"--data-dir\", {inner:?}, \"-c\", \"/dev/null\"]\n\
         trust_level = \"verified\"\ncategory = \"demo\"\n\
         [[rules]]\nid = \"quiet\"\nwhen = {{ tool = \"countdown\" }}\nthen = [{{ block = \"not today\" }}]\n"
    );
    std::fs::write(folder.join("other.toml"), text).unwrap();
    let program = Program::start(folder, &["serve", "-c", "other.toml", "--listen", "127.0.0.1:0"]);
    program.url().await;
    program
}

/// After `serve -c FILE` the hint of the banner must show that gateway's tools.
#[tokio::test]
async fn tools_ask_the_gateway_that_runs_and_are_judged_and_recorded_like_any_client() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = gateway(folder.path()).await;
    let list = run(folder.path(), &["tools", "list"], "").await;
    assert_eq!(list.code, 0, "{}", list.stderr);
    assert!(list.stdout.starts_with("TOOL") && list.stdout.contains("BACKEND"), "{}", list.stdout);
    let echo = list.stdout.lines().find(|line| line.starts_with("echo ")).expect("the tool").to_owned();
    let cells: Vec<&str> = echo.split_whitespace().take(4).collect();
    assert_eq!(cells, ["echo", "inner", "verified", "demo"], "labels are shown");

    let json = run(folder.path(), &["tools", "list", "--json"], "").await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json.as_array().unwrap().iter().all(|tool| tool["backend"] == "inner"), "{json}");

    let called = run(folder.path(), &["tools", "call", "echo", "text=by the gateway"], "").await;
    assert_eq!((called.code, called.stdout.trim()), (0, "by the gateway"), "{}", called.stderr);
    let refused = run(folder.path(), &["tools", "call", "countdown", "from=1"], "").await;
    assert!(refused.code == 1 && refused.stderr.contains("not today"), "{}", refused.stderr);
    let found = crate::program::eventually(async || {
        let found = run(folder.path(), &["tape", "search", "gateway", "--json"], "").await;
        (found.code == 0 && found.stdout.contains("echo")).then_some(found.stdout)
    })
    .await;
    assert!(found.contains("uid:"), "the local user called: {found}");

    // With --fresh, or another file, everything is started for this.
    let fresh = run(folder.path(), &["tools", "list", "--fresh"], "").await;
    assert!(fresh.stdout.contains("demo") && !fresh.stdout.contains("inner"), "{}", fresh.stdout);
    std::fs::write(folder.path().join("empty.toml"), "").unwrap();
    let another = run(folder.path(), &["tools", "list", "-c", "empty.toml"], "").await;
    assert!(another.stdout.contains("demo") && !another.stdout.contains("inner"), "{}", another.stdout);
    let same = run(folder.path(), &["tools", "list", "-c", "other.toml"], "").await;
    assert!(same.stdout.contains("inner"), "{}", same.stdout);
    gateway.signal("TERM").await;
}

#[tokio::test]
async fn arguments_are_json_where_they_can_be_and_text_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let counted = run(folder.path(), &["tools", "call", "countdown", "from=2", "interval_ms=10"], "").await;
    assert_eq!(counted.code, 0, "{}{}", counted.stdout, counted.stderr);
    let said = run(folder.path(), &["tools", "call", "echo", "text=a=b {"], "").await;
    assert_eq!((said.code, said.stdout.trim()), (0, "a=b {"), "{}", said.stderr);
    for (bad, why) in [(["text"].as_slice(), "KEY=VALUE"), (&["text=a", "text=b"], "twice")] {
        let line: Vec<&str> = ["tools", "call", "echo"].into_iter().chain(bad.iter().copied()).collect();
        let done = run(folder.path(), &line, "").await;
        assert!(done.code == 2 && done.stderr.contains(why), "{}", done.stderr);
    }
}

/// A call at an address was seven requests, and opened a session.
#[tokio::test]
async fn a_call_at_an_address_is_one_request_without_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Program::start(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let url = gateway.url().await;
    for place in
        [["--url", &url, "tools", "call", "echo", "text=hi"], ["tools", "call", "echo", "text=hi", "--url", &url]]
    {
        let called = run(folder.path(), &place, "").await;
        assert_eq!((called.code, called.stdout.trim()), (0, "hi"), "{}", called.stderr);
    }
    let status = run(folder.path(), &["status", "--json"], "").await;
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(
        (&status[0]["traffic"]["total"]["calls"], &status[0]["sessions_opened"]),
        (&2.into(), &0.into()),
        "{status}"
    );
    let unknown = run(folder.path(), &["tools", "call", "nosuch", "--url", &url], "").await;
    assert!(unknown.code == 1 && unknown.stderr.contains("nosuch"), "{}", unknown.stderr);
    gateway.signal("TERM").await;
}

/// The call was sent again in a session, though it may have run.
#[tokio::test]
async fn a_call_that_may_have_run_is_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let heard = Arc::clone(&requests);
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            heard.fetch_add(1, Ordering::SeqCst);
            stream.write_all(b"HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    });
    let called = run(folder.path(), &["tools", "call", "pay", "--url", &url], "").await;
    assert!(called.code == 1 && called.stderr.contains("504"), "{} {}", called.code, called.stderr);
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    server.abort();
}

/// The gateway that was asked kept the session of a list until it expired.
#[tokio::test]
async fn a_list_at_an_address_leaves_no_session() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Program::start(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let url = gateway.url().await;
    for opened in 1..=3 {
        let listed = run(folder.path(), &["tools", "list", "--url", &url], "").await;
        assert!(listed.stdout.contains("echo"), "{}", listed.stderr);
        let status = run(folder.path(), &["status", "--json"], "").await;
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        let sessions = (&status[0]["sessions_opened"], &status[0]["sessions"]);
        assert_eq!(sessions, (&opened.into(), &0.into()), "{status}");
    }
    gateway.signal("TERM").await;
}
