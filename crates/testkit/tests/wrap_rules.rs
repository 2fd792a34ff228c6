//! `signalbox wrap --rules` and `signalbox proxy --rules`: the same server, governed.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use signalbox_testkit::fixture::Era;
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
    assert!(wrap.error_lines().iter().any(|line| line.contains("so what passes may be changed")));
    wrap.close_input();
    assert!(wrap.wait(PATIENCE).await.unwrap().success());
    let left: Vec<_> = std::fs::read_dir(folder.path().join("data/run")).unwrap().flatten().collect();
    assert!(left.iter().all(|file| file.path().extension().is_none_or(|end| end != "toml")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxied_server_is_governed() {
    let (_web, address) = web_fixture("127.0.0.1:0", Era::Old).await.unwrap();
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
