//! The real program, from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod check;
mod doctor;
mod exports;
mod hostile_text;
mod imports;
mod manual;
mod program;
mod seal;
mod sealed;
mod status;
mod surface;
mod tape_diff;
mod tapes;
mod tools;
mod users;

use program::{Program, run};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn call(id: u32, tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

#[tokio::test]
async fn anything_bad_in_a_config_is_one_message_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    for (text, expected) in [
        ("[backends.a]\ncomand = \"x\"\n", "bad.toml:2:1: backends.a.comand: unknown key; did you mean `command`?"),
        ("[backends.a\n", "bad.toml:1:"),
        ("[auth]\norder = ['magic']\n", "auth.order"),
        ("[gateway]\ndemo_root = \"/does/not/exist\"\n", "demo_root"),
    ] {
        std::fs::write(&file, text).unwrap();
        for command in ["check", "serve", "stdio"] {
            let mut args = vec![command, "-c", file.to_str().unwrap()];
            // Whoever has the usual port has nothing to do with it.
            if command == "serve" {
                args.extend(["--listen", "127.0.0.1:0"]);
            }
            let done = run(folder.path(), &args, "").await;
            assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{command} {text}");
            assert_eq!(done.stderr.lines().count(), 1, "{command}: {}", done.stderr);
            assert!(done.stderr.contains(expected), "{command}: {}", done.stderr);
        }
    }
    let missing = run(folder.path(), &["check", "-c", "none.toml"], "").await;
    assert_eq!((missing.code, missing.stderr.lines().count()), (2, 1), "{}", missing.stderr);
    let usage = run(folder.path(), &["serve", "--listen", "0.0.0.0:80"], "").await;
    assert_eq!(usage.code, 2, "{}", usage.stderr);
    assert!(usage.stderr.contains("authentication"), "{}", usage.stderr);
}

#[tokio::test]
async fn check_says_what_it_found() {
    let folder = tempfile::tempdir().unwrap();
    let none = run(folder.path(), &["check"], "").await;
    assert_eq!(none.code, 0, "{}", none.stderr);
    assert!(none.stdout.contains("demo tools"), "{}", none.stdout);
    std::fs::write(
        folder.path().join("signalbox.toml"),
        "[backends.b]\ncommand = \"x\"\n[backends.a]\nurl = \"http://h/mcp\"\ndisabled = true\n",
    )
    .unwrap();
    let some = run(folder.path(), &["check"], "").await;
    assert_eq!(some.stdout, "signalbox.toml is fine: backends b; disabled a\n");
    let json = run(folder.path(), &["check", "--json"], "").await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["ok"], &json["backends"]), (&json!(true), &json!(["b"])));
}

#[tokio::test]
async fn import_writes_a_config_that_passes_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let client =
        r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "server"], "env": {"API_KEY": "sk-1"}}}}"#;
    std::fs::write(folder.path().join("client.json"), client).unwrap();
    let shown = run(folder.path(), &["import", "client.json"], "").await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("[backends.files]\ncommand = \"npx\"\n"), "{}", shown.stdout);
    assert!(shown.stderr.contains("secret") && !shown.stderr.contains("sk-1"), "{}", shown.stderr);
    let written = run(folder.path(), &["import", "client.json", "-o", "signalbox.toml"], "").await;
    assert_eq!((written.code, written.stdout.as_str()), (0, ""));
    let file = folder.path().join("signalbox.toml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(run(folder.path(), &["check"], "").await.code, 0);
    let again = run(folder.path(), &["import", "client.json", "-o", "signalbox.toml"], "").await;
    assert_eq!((again.code, again.stderr.lines().last().unwrap().contains("exists already")), (2, true));
    assert_eq!(run(folder.path(), &["import", "none.json"], "").await.code, 2);
}

#[tokio::test]
async fn import_reads_the_servers_of_projects() {
    let folder = tempfile::tempdir().unwrap();
    let client = r#"{"numStartups": 3, "mcpServers": {"files": {"command": "npx"}}, "projects": {
        "/home/me/a": {"history": [{"display": "x"}], "mcpServers": {"files": {"command": "npx"}, "git": {"command": "uvx"}}},
        "/home/me/b": {"mcpServers": {"git": {"command": "other"}}}, "/home/me/c": {"allowedTools": []}}}"#;
    std::fs::write(folder.path().join(".claude.json"), client).unwrap();
    let done = run(folder.path(), &["import", ".claude.json"], "").await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    let servers: Vec<&str> = done.stdout.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(servers, ["[backends.files]", "[backends.git]", "[backends.git-2]"], "{}", done.stdout);
    assert!(done.stderr.contains("projects") && done.stderr.contains("git-2"), "{}", done.stderr);
}

#[tokio::test]
async fn the_reference_and_the_help_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let reference = run(folder.path(), &["config", "reference"], "").await;
    assert!(reference.stdout.contains("| `gateway.drain` |"), "{}", reference.stdout);
    let help = run(folder.path(), &["--help"], "").await;
    assert!(help.code == 0 && help.stdout.contains("Exit codes: 0 fine, 1 failed, 2 usage"), "{}", help.stdout);
}

/// Proves N-16, N-37, N-38 and N-41.
#[tokio::test]
async fn json_piped_in_gives_only_json_on_stdout() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hello.txt"), "x").unwrap();
    let input = [
        INITIALIZE,
        INITIALIZED,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        &call(3, "echo", &json!({"text": "hi"})),
        "this is not JSON",
        &call(4, "directory_list", &json!({"path": "."})),
        &call(5, "countdown", &json!({"from": 2, "interval_ms": 50})),
    ]
    .join("\n");
    let done = run(folder.path(), &["stdio", "--log-level", "trace"], &input).await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    let messages: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let answer =
        |id: Value| messages.iter().find(|one| one.get("id") == Some(&id) && one.get("method").is_none()).unwrap();
    assert_eq!(answer(json!(1))["result"]["protocolVersion"], "2025-06-18");
    let names: Vec<&Value> =
        answer(json!(2))["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["countdown", "directory_list", "echo"]);
    assert_eq!(answer(json!(3))["result"]["content"][0]["text"], "hi");
    assert_eq!(answer(Value::Null)["error"]["code"], -32700);
    assert!(answer(json!(4)).to_string().contains("hello.txt"));
    assert_eq!(answer(json!(5))["result"]["isError"], false);
    assert!(done.stderr.contains("session open") && !done.stdout.contains("session open"));
}

#[tokio::test]
async fn status_sees_a_stdio_process_which_ends_well_by_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = run(folder.path(), &["status"], "").await;
    assert_eq!((nothing.code, nothing.stdout.as_str()), (1, ""));
    let mut program = Program::start(folder.path(), &["stdio"]);
    program.write(INITIALIZE).await;
    assert!(program.line().await.contains("protocolVersion"));
    let run_folder = folder.path().join("data/run");
    let socket = run_folder.join(format!("{}.sock", program.pid()));
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(run_folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    std::os::unix::net::UnixListener::bind(run_folder.join("1.sock")).unwrap();

    let shown = run(folder.path(), &["status"], "").await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.starts_with(&format!("stdio (pid {}, ", program.pid())), "{}", shown.stdout);
    assert!(shown.stdout.contains("built-in   up"), "{}", shown.stdout);
    assert!(!run_folder.join("1.sock").exists());
    let json = run(folder.path(), &["status", "--json"], "").await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json[0]["command"], &json[0]["backends"][0]["lists"]["tools"]), (&json!("stdio"), &json!(3)));

    program.signal("TERM").await;
    assert_eq!(program.ended().await, Some(0));
    assert!(!socket.exists());
    assert_eq!(run(folder.path(), &["status"], "").await.code, 1);
}

/// Claude Code sends a second signal after 100 ms, and its tapes counted as killed.
#[tokio::test]
async fn a_tape_is_closed_when_a_second_signal_stops_the_program_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let stubborn = "trap '' TERM INT HUP; while :; do sleep 1; done";
    let config = format!("[backends.stubborn]\ncommand = \"sh\"\nargs = [\"-c\", {stubborn:?}]\n");
    std::fs::write(folder.path().join("signalbox.toml"), config).unwrap();
    let mut program = Program::start(folder.path(), &["stdio"]);
    program.write(INITIALIZE).await;
    assert!(program.line().await.contains("protocolVersion"));
    program.signal("INT").await;
    program::eventually(async || program.stderr().contains("a second signal stops at once").then_some(())).await;
    program.signal("TERM").await;
    assert_eq!(program.ended().await, Some(130), "{}", program.stderr());
    let shown = run(folder.path(), &["tape", "show", "last"], "").await.stdout;
    let verified = run(folder.path(), &["tape", "verify", "last"], "").await;
    assert!(verified.code == 0 && !shown.contains("killed"), "{}{}{shown}", verified.stdout, verified.stderr);
}

#[tokio::test]
async fn serve_says_where_it_is_and_ends_well() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Program::start(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let url = server.url().await;
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let get = async |path: &str| program::get(&address, path).await;
    assert!(get("/healthz").await.contains("200 OK"));
    assert!(get("/readyz").await.contains("ready"));
    assert!(get("/metrics").await.contains("signalbox_backend_up{backend=\"demo\"} 1"));
    assert!(get("/api/v1/status").await.contains("401"), "the API on TCP is for admins");

    let taken = run(folder.path(), &["serve", "--listen", &address], "").await;
    assert_eq!((taken.code, taken.stderr.lines().count()), (1, 1), "{}", taken.stderr);
    assert!(taken.stderr.contains("--listen 127.0.0.1:0"), "{}", taken.stderr);

    let list = run(folder.path(), &["tools", "list", "--url", &url], "").await;
    assert!(list.stdout.contains("directory_list"), "{}{}", list.stdout, list.stderr);
    let echo = run(folder.path(), &["tools", "call", "echo", "--args", r#"{"text":"hi"}"#, "--url", &url], "").await;
    assert_eq!((echo.code, echo.stdout.as_str()), (0, "hi\n"), "{}", echo.stderr);
    server.signal("INT").await;
    assert_eq!(server.ended().await, Some(0));
    let gone = run(folder.path(), &["tools", "list", "--url", &url], "").await;
    assert_eq!((gone.code, gone.stdout.as_str()), (1, ""));
}

/// A configuration whose only backend is this very program, with its demo tools.
fn nested(folder: &Path) {
    let program = env!("CARGO_BIN_EXE_signalbox");
    let inner = folder.join("inner");
    let text = format!(
        "[backends.inner]\ncommand = {program:?}\nargs = [\"stdio\", \"--data-dir\", {inner:?}, \"-c\", \"/dev/null\"]\n"
    );
    std::fs::write(folder.join("signalbox.toml"), text).unwrap();
}

#[tokio::test]
async fn tools_are_listed_and_called_through_a_child() {
    let folder = tempfile::tempdir().unwrap();
    nested(folder.path());
    let list = run(folder.path(), &["tools", "list", "--json"], "").await;
    let tools: Value = serde_json::from_str(&list.stdout).expect(&list.stderr);
    assert_eq!(tools.as_array().unwrap().len(), 3);
    let failed = run(folder.path(), &["tools", "call", "directory_list", "--args", r#"{"path":"../.."}"#], "").await;
    assert_eq!(failed.code, 1, "{}{}", failed.stdout, failed.stderr);
    let unknown = run(folder.path(), &["tools", "call", "nope"], "").await;
    assert!(unknown.code == 1 && unknown.stderr.contains("nope"), "{}", unknown.stderr);
    let usage = run(folder.path(), &["tools", "call", "echo", "--args", "[]"], "").await;
    assert_eq!(usage.code, 2, "{}", usage.stderr);
}

#[tokio::test]
async fn a_second_signal_ends_at_once_and_leaves_no_child() {
    let folder = tempfile::tempdir().unwrap();
    nested(folder.path());
    let mut program = Program::start(folder.path(), &["stdio"]);
    program.write(INITIALIZE).await;
    program.write(INITIALIZED).await;
    program.write(&call(2, "countdown", &json!({"from": 20, "interval_ms": 2000}))).await;
    let child = program::eventually(async || {
        let status = run(folder.path(), &["status", "--json"], "").await;
        let status: Value = serde_json::from_str(&status.stdout).ok()?;
        (status[0]["in_flight"] == 1).then(|| status[0]["backends"][0]["pids"][0].to_string())
    })
    .await;
    assert!(Path::new("/proc").join(&child).exists());
    program.signal("TERM").await;
    program::eventually(async || program.stderr().contains("a second signal").then_some(())).await;
    program.signal("TERM").await;
    assert_eq!(program.ended().await, Some(130));
    program::eventually(async || (!Path::new("/proc").join(&child).exists()).then_some(())).await;
}
