//! `signalbox tape` and `signalbox hold` beside a gateway that runs.

use crate::program::{Program, eventually, run};
use crate::{INITIALIZE, INITIALIZED, call};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A gateway on a pipe that has answered a few calls.
async fn gateway(folder: &Path) -> Program {
    let mut program = Program::start(folder, &["stdio"]);
    program.write(INITIALIZE).await;
    program.answer(1).await;
    program.write(INITIALIZED).await;
    for (id, tool, arguments) in [
        (2, "echo", json!({"text": "hi"})),
        (3, "directory_list", json!({"path": "."})),
        (4, "echo", json!({"text": "hi"})),
    ] {
        program.write(&call(id, tool, &arguments)).await;
        program.answer(u64::from(id)).await;
    }
    program
}

/// The methods and tools that `tape show` lists with these arguments, once the tape has what is waited for.
async fn shown(folder: &Path, args: &[&str], done: impl Fn(&str) -> bool) -> String {
    let line: Vec<&str> = ["tape", "show"].into_iter().chain(args.iter().copied()).collect();
    eventually(async || {
        let shown = run(folder, &line, "").await;
        (shown.code == 0 && done(&shown.stdout)).then_some(shown.stdout)
    })
    .await
}

#[tokio::test]
async fn a_tape_is_shown_from_its_end_and_by_what_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = gateway(folder.path()).await;
    let all = shown(folder.path(), &[], |text| text.matches("tools/call").count() == 3).await;
    assert!(all.contains("initialize") && !all.contains("notifications/"), "{all}");
    let tail = shown(folder.path(), &["--tail", "1"], |_| true).await;
    assert_eq!((tail.matches("tools/call").count(), tail.matches("initialize").count()), (1, 0), "{tail}");
    let tool = shown(folder.path(), &["--tool", "echo"], |_| true).await;
    assert_eq!((tool.matches("echo").count(), tool.matches("directory_list").count()), (2, 0), "{tool}");
    let method = shown(folder.path(), &["--method", "init*"], |_| true).await;
    assert!(method.contains("initialize") && !method.contains("tools/call"), "{method}");
    let backend = shown(folder.path(), &["--backend", "demo", "--outcome", "success"], |_| true).await;
    assert!(backend.contains("echo") && !backend.contains("initialize"), "{backend}");
    let none = shown(folder.path(), &["--outcome", "timed_out"], |_| true).await;
    assert!(!none.contains("tools/call"), "{none}");
    let notices = shown(folder.path(), &["--notifications"], |_| true).await;
    assert!(notices.contains("notifications/initialized"), "{notices}");
    gateway.signal("TERM").await;
}

#[tokio::test]
async fn a_tape_is_followed_until_it_ends_and_told_from_one_that_broke_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = gateway(folder.path()).await;
    shown(folder.path(), &[], |text| text.contains("directory_list")).await;
    let state = async || {
        let list = run(folder.path(), &["tape", "list", "--json"], "").await;
        let list: Value = serde_json::from_str(&list.stdout).expect(&list.stderr);
        list[0]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state().await, "running");
    let refused = run(folder.path(), &["tape", "delete", "last"], "").await;
    assert!(refused.code == 1 && refused.stderr.contains("--yes"), "{}", refused.stderr);

    let mut follow = Program::start(folder.path(), &["tape", "show", "--tail", "1", "--follow", "--tool", "countdown"]);
    while !follow.line().await.starts_with("CALL") {}
    gateway.write(&call(9, "countdown", &json!({"from": 1, "interval_ms": 10}))).await;
    while !follow.line().await.contains("countdown") {}
    gateway.signal("TERM").await;
    gateway.ended().await;
    assert_eq!(follow.ended().await, Some(0), "{}", follow.stderr());
    assert_eq!(state().await, "ended");

    let killed = self::gateway(folder.path()).await;
    eventually(async || (state().await == "running").then_some(())).await;
    killed.signal("KILL").await;
    eventually(async || (state().await == "killed").then_some(())).await;
    assert_eq!(run(folder.path(), &["tape", "delete", "last"], "").await.code, 0);
}

#[tokio::test]
async fn calls_without_an_end_are_shown_as_unfinished() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = gateway(folder.path()).await;
    gateway.write(&call(9, "countdown", &json!({"from": 20, "interval_ms": 2000}))).await;
    let open = shown(folder.path(), &["--tool", "countdown"], |text| text.contains("sent to the backend")).await;
    assert!(open.contains("unfinished") && open.contains("demo"), "{open}");
    // What breaks off has no end however long it is waited for.
    gateway.signal("KILL").await;
    gateway.ended().await;
    let only = shown(folder.path(), &["--outcome", "unfinished", "--json"], |_| true).await;
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["calls"], json!([]), "{only}");
    assert_eq!(only["unfinished"][0]["unfinished"]["subject"], "countdown", "{only}");
    let ended = shown(folder.path(), &["--outcome", "success"], |_| true).await;
    assert!(ended.contains("echo") && !ended.contains("countdown"), "{ended}");
    let last = shown(folder.path(), &["--tail", "1"], |_| true).await;
    assert!(last.contains("countdown") && last.contains("unfinished"), "{last}");
}

#[tokio::test]
async fn an_export_tells_its_format_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = gateway(folder.path()).await;
    gateway.signal("TERM").await;
    gateway.ended().await;
    for name in ["calls", "calls.txt", "-"] {
        let done = run(folder.path(), &["tape", "export", "last", "-o", name], "").await;
        assert!(done.code == 2 && done.stderr.contains("--format"), "{name}: {}", done.stderr);
        assert!(!folder.path().join(name).exists());
    }
    let html = run(folder.path(), &["tape", "export", "last", "-o", "calls.html"], "").await;
    assert_eq!(html.code, 0, "{}", html.stderr);
}

#[tokio::test]
async fn a_person_has_the_ring_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("signalbox.toml"), "[record]\nsampling = \"ring\"\nring = 2\nafter = 0\n")
        .unwrap();
    let nobody = run(folder.path(), &["tape", "keep"], "").await;
    assert!(nobody.code == 1 && nobody.stderr.contains("no signalbox is running"), "{} {}", nobody.code, nobody.stderr);
    let mut gateway = gateway(folder.path()).await;
    let kept = run(folder.path(), &["tape", "keep", "--json"], "").await;
    let told: Value = serde_json::from_str(&kept.stdout).expect(&kept.stderr);
    assert!(told["entries"].as_u64().unwrap() > 0, "{told}");
    let listed = run(folder.path(), &["tape", "show", told["tape"].as_str().unwrap()], "").await;
    let calls = |tool: &str| listed.stdout.matches(tool).count();
    // The last two, and not the one before them.
    assert_eq!((calls("tools/call"), calls("directory_list"), calls("echo")), (2, 1, 1), "{}", listed.stdout);
    gateway.write(&call(30, "countdown", &json!({"from": 1, "interval_ms": 10}))).await;
    gateway.answer(30).await;
    gateway.signal("TERM").await;
    gateway.ended().await;
    let listed = run(folder.path(), &["tape", "show"], "").await;
    assert!(!listed.stdout.contains("countdown"), "nobody asked for it: {}", listed.stdout);

    std::fs::write(folder.path().join("signalbox.toml"), "").unwrap();
    let gateway = self::gateway(folder.path()).await;
    let refused = run(folder.path(), &["tape", "keep"], "").await;
    assert!(refused.code == 1 && refused.stderr.contains("ring"), "{}", refused.stderr);
    gateway.signal("TERM").await;
}

#[tokio::test]
async fn what_a_rule_logs_is_in_the_log_at_its_level_and_on_the_tape() {
    let folder = tempfile::tempdir().unwrap();
    let log = |level: &str| format!("{{ log = {{ level = \"{level}\", text = \"said at {level}\" }} }}");
    let logs = ["debug", "info", "notice", "warning", "error"].map(log).join(", ");
    let rule = format!("[[rules]]\nid = \"l\"\nwhen = {{ tool = \"echo\" }}\nthen = [{logs}]\n");
    std::fs::write(folder.path().join("signalbox.toml"), rule).unwrap();
    let mut gateway = gateway(folder.path()).await;
    gateway.signal("TERM").await;
    gateway.ended().await;
    let said = eventually(async || Some(gateway.stderr()).filter(|said| said.contains("said at error"))).await;
    for (level, words) in
        [("INFO", "said at info"), ("INFO", "said at notice"), ("WARN", "said at warning"), ("ERROR", "said at error")]
    {
        assert!(said.lines().any(|line| line.contains(level) && line.contains(words)), "{words}: {said}");
    }
    assert!(!said.contains("said at debug"), "{said}");
    let exported = run(folder.path(), &["tape", "export", "last", "-o", "-", "--format", "jsonl"], "").await;
    for words in ["said at debug", "said at info", "said at notice", "said at warning", "said at error"] {
        assert!(exported.stdout.contains(words), "{words}: {}", exported.stdout);
    }
}

/// Answers to what a held call is told, with an editor that is a piece of shell.
async fn edited(folder: &Path, args: &[&str], editor: &str) -> (i32, String) {
    let script = folder.join("editor.sh");
    std::fs::write(&script, format!("#!/bin/sh\n{editor}\n")).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = crate::program::command(folder, args);
    command.env("VISUAL", &script).env("TMPDIR", folder);
    let done = tokio::time::timeout(crate::program::PATIENCE, command.spawn().unwrap().wait_with_output()).await;
    let done = done.expect("an end").unwrap();
    (done.status.code().unwrap_or(-1), String::from_utf8(done.stderr).unwrap())
}

#[tokio::test]
async fn the_only_held_message_needs_no_number_and_a_bad_edit_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = gateway(folder.path()).await;
    let none = run(folder.path(), &["hold", "release"], "").await;
    assert!(none.code == 1 && none.stderr.contains("nothing is held"), "{}", none.stderr);
    assert_eq!(run(folder.path(), &["hold", "next"], "").await.code, 0);
    gateway.write(&call(20, "echo", &json!({"text": "before"}))).await;
    let show = eventually(async || {
        let show = run(folder.path(), &["hold", "show"], "").await;
        (show.code == 0).then_some(show.stdout)
    })
    .await;
    assert!(show.contains("method   tools/call") && show.contains("\"text\": \"before\""), "{show}");
    // The first edit is no JSON; the second finds it in the file and mends it.
    let editor = r#"if grep -q broken "$1"; then sed -i -e 's/broken//' -e 's/before/after/' "$1"; else echo broken >> "$1"; fi"#;
    let (code, said) = edited(folder.path(), &["hold", "edit"], editor).await;
    assert!(code == 0 && said.contains("opens again"), "{code} {said}");
    let answer = gateway.answer(20).await;
    assert!(answer.contains("after"), "{answer}");
    gateway.signal("TERM").await;
}

/// Posts a call to a proxy and gives the whole answer.
async fn post(proxy: &Program) -> String {
    let url = eventually(async || {
        let text = proxy.stderr();
        let (_, rest) = text.split_once(" passes MCP at ")?;
        rest.split_whitespace().next().map(str::to_owned)
    })
    .await;
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let body = call(7, "echo", &json!({"text": "hi"}));
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head =
        format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(crate::program::PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

#[tokio::test]
async fn a_proxy_records_what_a_dead_server_did_not_get_and_what_another_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let mut proxy = Program::start(folder.path(), &["proxy", "--listen", "127.0.0.1:0", "--tape", "a.tape", &url]);
    let refusing = async {
        let (mut socket, _) = server.accept().await.unwrap();
        let mut seen = vec![0; 64 * 1024];
        let mut read = 0;
        while !String::from_utf8_lossy(&seen[..read]).ends_with("}}}") {
            read += socket.read(&mut seen[read..]).await.unwrap();
        }
        let answer = "HTTP/1.1 501 Not Implemented\r\ncontent-length: 8\r\nconnection: close\r\n\r\nnot here";
        socket.write_all(answer.as_bytes()).await.unwrap();
    };
    let (answer, ()) = tokio::join!(post(&proxy), refusing);
    assert!(answer.starts_with("HTTP/1.1 501") && answer.ends_with("not here"), "{answer}");
    drop(server);
    assert!(post(&proxy).await.starts_with("HTTP/1.1 502"));
    proxy.signal("TERM").await;
    proxy.ended().await;
    let first = run(folder.path(), &["tape", "show", "a.tape", "--exchange", "1"], "").await.stdout;
    assert!(first.contains("status 501") && first.contains("not here"), "{first}");
    assert!(!first.contains("never reached"), "{first}");
    let second = run(folder.path(), &["tape", "show", "a.tape", "--exchange", "2"], "").await.stdout;
    assert!(second.contains("tools/call echo") && second.contains("http_error"), "{second}");
    assert!(second.contains("It never reached a backend."), "{second}");
    let har = run(folder.path(), &["tape", "export", "a.tape", "--format", "har", "-o", "-"], "").await.stdout;
    let har: Value = serde_json::from_str(&har).unwrap();
    let response = &har["log"]["entries"][0]["response"];
    assert_eq!((&response["status"], &response["content"]["text"]), (&json!(501), &json!("not here")), "{har}");
}
