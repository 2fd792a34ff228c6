//! `signalbox wrap --rules` and `signalbox proxy --rules`: the same server, governed.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use signalbox_engine::record::TapeKind;
use signalbox_tape::TapeFile;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{eventually, web_fixture};
use tokio::process::Command;

const RULES: &str =
    "[[rules]]\nid = \"no-greet\"\nwhen = { tool = \"greet\" }\nthen = { block = \"nobody is greeted\" }\n";
const PATIENCE: Duration = Duration::from_secs(60);

fn signalbox(folder: &Path, command: &str) -> Command {
    let rules = folder.join("rules.toml");
    std::fs::write(&rules, RULES).unwrap();
    let mut signalbox = Command::new(built("signalbox").unwrap());
    signalbox.arg(command).arg("--data-dir").arg(folder.join("data")).arg("--rules").arg(rules);
    signalbox
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_server_is_governed_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = signalbox(folder.path(), "wrap");
    command.arg("--").arg(built("fixture-server").unwrap()).args(["--stdio", "--era", "old"]);
    let mut wrap = Spawned::start(command).unwrap();
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    wrap.write_line(&hello.to_string()).await.unwrap();
    wrap.wait_line("{\"jsonrpc\":\"2.0\",\"id\":0,", PATIENCE).await.unwrap();
    wrap.write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.unwrap();
    let call = |id: u32, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"name": "Ada"}}});
    wrap.write_line(&call(1, "greet").to_string()).await.unwrap();
    let refused = wrap.wait_line("{\"jsonrpc\":\"2.0\",\"id\":1,", PATIENCE).await.unwrap();
    assert!(refused.contains("nobody is greeted"), "{refused}");
    wrap.write_line(&call(2, "count").to_string()).await.unwrap();
    let counted = wrap.wait_line("{\"jsonrpc\":\"2.0\",\"id\":2,", PATIENCE).await.unwrap();
    assert!(counted.contains("\"result\""), "{counted}");
    assert!(wrap.error_lines().iter().any(|line| line.contains("so messages may be changed")));
    wrap.close_input();
    assert!(wrap.wait(PATIENCE).await.unwrap().success());
    let left: Vec<_> = std::fs::read_dir(folder.path().join("data/run")).unwrap().flatten().collect();
    assert!(left.iter().all(|file| file.path().extension().is_none_or(|end| end != "toml")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_governed_server_is_recorded_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.tape");
    let talk = async |flags: &[&str]| {
        let mut command = signalbox(folder.path(), "wrap");
        command.args(flags).arg("--").arg(built("fixture-server").unwrap()).args(["--stdio", "--era", "old"]);
        let mut wrap = Spawned::start(command).unwrap();
        wrap.write_line(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#).await.unwrap();
        wrap.close_input();
        let ended = wrap.wait(PATIENCE).await.unwrap();
        (ended.success(), wrap.error_lines().join("\n"))
    };
    assert!(talk(&["--tape", file.to_str().unwrap()]).await.0);
    let tape = TapeFile::open(File::open(&file).unwrap()).unwrap();
    assert_eq!((tape.missing(), tape.info().kind, tape.info().ended.is_some()), (None, TapeKind::Stdio, true));
    assert!(!folder.path().join("data/tapes.db").exists(), "the file takes the place of the store");
    let (ok, why) = talk(&["--tape", file.to_str().unwrap()]).await;
    assert!(!ok && why.contains("talk.tape") && why.contains("exists"), "{why}");
    assert!(talk(&["--no-tape"]).await.0);
    assert!(!folder.path().join("data/tapes.db").exists(), "nothing is recorded where that is asked for");

    // The rest of the configuration is of the gateway that others use, but how it records holds here too.
    let config = folder.path().join("signalbox.toml");
    std::fs::write(&config, "[record]\npostgres = \"postgres://nobody@127.0.0.1:1/none\"\n").unwrap();
    let (_, why) = talk(&["-c", config.to_str().unwrap()]).await;
    assert!(why.contains("calls are NOT recorded") && why.contains("127.0.0.1"), "{why}");
    assert!(!folder.path().join("data/tapes.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxied_server_is_governed() {
    let (_web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let here = free_address().unwrap();
    let mut command = signalbox(folder.path(), "proxy");
    command.args(["--listen", &here.to_string(), &format!("http://{address}/mcp")]);
    let _proxy = Spawned::start(command).unwrap();
    let look = async || HttpClient::new(here).initialize("2025-06-18", json!({})).await.ok();
    let client = eventually("the gateway listens", look).await.unwrap();
    let greet = json!({"name": "greet", "arguments": {"name": "Ada"}});
    let refused = client.request(1, "tools/call", greet).await.unwrap();
    assert!(refused.to_string().contains("nobody is greeted"), "{refused}");
}
