//! Tapes that answer: real clients talk to a recorded server that is gone (rows S-38, S-45, S-64, S-75, SO-2, SO-12).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail wherever it wants")]

use serde_json::{Value, json};
use signalbox_testkit::clients::{run, run_script};
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{eventually, signalbox};
use std::path::{Path, PathBuf};
use tokio::process::Command;

const CLIENTS: [&[&str]; 5] =
    [&["ts-sdk1"], &["py-mcp1"], &["ts-client2", "--era", "old"], &["ts-client2", "--era", "new"], &["py-mcp2"]];

const STEPS: [&str; 10] = [
    "--steps",
    "tools,call,elicit,progress,prompts,resources",
    "--answer",
    "Ada",
    "--call",
    r#"echo={"message":"häł😀"}"#,
    "--call",
    "trigger-elicitation-request={}",
    "--call",
    r#"trigger-long-running-operation={"duration":1,"steps":4}"#,
];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What a client was told, without what differs from run to run.
fn told(document: &Value) -> Value {
    let mut steps = document["steps"].clone();
    for call in steps["call"].as_array_mut().into_iter().flatten() {
        // How much progress a client counts depends on what it reads together with the answer.
        call.as_object_mut().unwrap().retain(|name, _| name != "ms" && name != "progress");
    }
    steps
}

/// Runs a client's steps against a server that it starts.
async fn talk(client: &[&str], server: &[&str]) -> Option<Value> {
    let line = [client, &STEPS[..], &["--stdio"], server].concat();
    run(&line).await.unwrap()
}

/// Records a client's steps with server-everything behind the gateway.
async fn recorded(client: &[&str], folder: &Path) -> Option<(Value, PathBuf)> {
    let (config, data, tape) = (folder.join("live.toml"), folder.join("live"), folder.join("talk.tape"));
    let script = json!(text(&run_script()));
    std::fs::write(&config, format!("[backends.ev]\ncommand = {script}\nargs = [\"everything\", \"stdio\"]\n"))
        .unwrap();
    let program = built("signalbox").unwrap();
    let live = talk(client, &[text(&program), "stdio", "-c", text(&config), "--data-dir", text(&data)]).await?;
    let export = async || signalbox(&data, &["tape", "export", "last", "-o", text(&tape)]).await.ok().map(drop);
    eventually("the tape can be exported", export).await.unwrap();
    std::fs::remove_file(&config).unwrap();
    Some((live, tape))
}

#[tokio::test(flavor = "multi_thread")]
async fn s38_s75_a_recorded_session_is_served_back_over_stdio_with_the_server_gone() {
    for client in CLIENTS {
        let folder = tempfile::tempdir().unwrap();
        let Some((live, tape)) = recorded(client, folder.path()).await else { return };
        let (program, data) = (built("signalbox").unwrap(), folder.path().join("replay"));
        // SO-2: a tape alone on the command line, with a pipe as input, is served.
        let replayed = talk(client, &[text(&program), "--data-dir", text(&data), text(&tape)]).await.unwrap();
        assert!(told(&live)["call"].to_string().contains("häł😀"), "{client:?}: {live}");
        assert_eq!(told(&replayed), told(&live), "{client:?}");
        assert!(replayed["progress"]["count"].as_u64() > Some(0), "{client:?}: {replayed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s45_a_recorded_session_is_served_to_clients_of_other_revisions_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_, tape)) = recorded(CLIENTS[0], folder.path()).await else { return };
    let served = serve(folder.path(), &tape, &[]).await;
    for client in CLIENTS {
        let line = [client, &STEPS[..], &["--url", &served.url]].concat();
        let replayed = run(&line).await.unwrap().unwrap();
        let calls = told(&replayed)["call"].to_string();
        assert!(calls.contains("häł😀") && calls.contains("Long running operation completed"), "{client:?}: {calls}");
        assert!(!calls.contains("not on the tape"), "{client:?}: {calls}");
    }
}

struct Served {
    url: String,
    _process: Spawned,
}

/// Serves a tape over HTTP.
async fn serve(folder: &Path, tape: &Path, more: &[&str]) -> Served {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args([
        "replay",
        "serve",
        text(tape),
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        text(&folder.join("served")),
    ]);
    command.args(more);
    let process = Spawned::start(command).unwrap();
    let url = eventually("the gateway says where it listens", async || {
        let lines = [process.lines(), process.error_lines()].concat();
        lines.iter().find_map(|line| {
            let at = line.find("http://127.0.0.1:")?;
            let url = line[at..].split(|c: char| c.is_whitespace() || c == '"').next()?;
            url.ends_with("/mcp").then(|| url.to_owned())
        })
    });
    Served { url: url.await.unwrap(), _process: process }
}
