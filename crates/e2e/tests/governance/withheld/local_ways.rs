//! The ways of a person at the machine: MCP at the control socket of the gateway, and a tape that `replay serve` plays.

use super::{CANARIES, ENTRIES, Reason, TOOL};
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{PATIENCE, child, eventually, signalbox, tool_names};
use signalbox_testkit::served_tape::ServedTape;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::Command;

/// Requests that bring the texts to a caller from whom nothing is withheld.
fn requests() -> Vec<(&'static str, Value)> {
    vec![
        ("tools/call", json!({"name": TOOL, "arguments": {}})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("resources/read", json!({"uri": "test://template/7/data"})),
    ]
}

/// Constraints are for results of tools.
fn counts_for(reason: Reason, method: &str) -> bool {
    reason != Reason::Redacted || method == "tools/call"
}

fn shown(text: &str) -> bool {
    CANARIES.iter().any(|canary| text.contains(canary))
}

/// A gateway whose user `principal` has the role from which the texts are withheld, or the one from which nothing is.
async fn gateway(reason: Reason, principal: &str, role: &str) -> GatewayProcess {
    let config = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[auth.users.'{principal}']\nroles = ['{role}']\n[roles.all]\n{}{}",
        reason.config(if role == "some" { principal } else { "key:nobody" }),
        child("one", ServedEra::Both, "").unwrap()
    );
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// The control socket in this data folder.
fn socket(data: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(data.join("run")).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.extension().is_some_and(|end| end == "sock")).unwrap()
}

/// Everything that the gateway says at its control socket to a session with this request.
async fn at_control_socket(data: &Path, method: &str, params: &Value) -> String {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                       "clientInfo": {"name": "test", "version": "1"}});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": "last", "method": method, "params": params}),
    ];
    let body: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let mut stream = UnixStream::connect(socket(data)).await.unwrap();
    let head = format!("POST /api/v1/mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut told = String::new();
    let reading = async {
        let mut buffer = vec![0; 65_536];
        // The answer stays open until the client leaves.
        while !told.contains("\"last\"") || !told.ends_with('\n') {
            match stream.read(&mut buffer).await.unwrap() {
                0 => break,
                read => told.push_str(&String::from_utf8_lossy(&buffer[..read])),
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    told
}

/// Reasons × requests, for the user of the machine at the control socket.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_withheld_from_the_owner_is_not_told_at_the_control_socket() {
    for reason in Reason::ALL {
        let owner = format!("uid:{}", std::fs::metadata("/proc/self").unwrap().uid());
        let (limited, free) = (gateway(reason, &owner, "some").await, gateway(reason, &owner, "all").await);
        for (method, params) in requests() {
            let told = async |gateway: &GatewayProcess| at_control_socket(&gateway.data_dir(), method, &params).await;
            let (withheld, whole) = (told(&limited).await, told(&free).await);
            assert!(shown(&whole), "{reason:?} {method}: without a limit {whole}");
            assert!(!shown(&withheld) || !counts_for(reason, method), "{reason:?} {method}: {withheld}");
        }
        if matches!(reason, Reason::RoleDeny | Reason::Hidden) {
            let listed = at_control_socket(&limited.data_dir(), "tools/list", &json!({})).await;
            assert!(!ENTRIES.iter().any(|entry| listed.contains(&format!("\"{entry}\""))), "{reason:?}: {listed}");
            let mut command = Command::new(built("signalbox").unwrap());
            command.args(["tools", "call", TOOL, "--data-dir"]).arg(limited.data_dir());
            let called = command.output().await.unwrap();
            let told = String::from_utf8_lossy(&[called.stdout, called.stderr].concat()).into_owned();
            assert!(told.contains("Unknown tool"), "{reason:?}: {told}");
        }
    }
}

/// The tape of a caller that made all requests at this gateway.
async fn recorded(gateway: &GatewayProcess, name: &str, folder: &Path) -> PathBuf {
    let data = gateway.data_dir();
    let key = signalbox(&data, &["keys", "new", name]).await.unwrap();
    let web = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()));
    let client = eventually("the key is known", async || web.initialize("2025-06-18", json!({})).await.ok());
    let client = client.await.unwrap();
    let listed = async || tool_names(&client).await.ok().filter(|names| names.iter().any(|name| name == "greet"));
    eventually("the tools are listed", listed).await.unwrap();
    for (number, (method, params)) in (2..).zip(requests()) {
        client.request(number, method, params).await.unwrap();
    }
    let end = json!({"name": "greet", "arguments": {"name": "the end"}});
    let greeted = client.request(9, "tools/call", end).await.unwrap();
    assert!(greeted["result"].to_string().contains("the end"), "{greeted}");
    let tape = folder.join(format!("{name}.tape"));
    let show = ["tape", "show", "last", "--tool", "greet"];
    let kept = async || signalbox(&data, &show).await.ok().filter(|all| all.contains("success"));
    eventually("the calls are on the tape", kept).await.unwrap();
    signalbox(&data, &["tape", "export", "last", "-o", tape.to_str().unwrap()]).await.unwrap();
    tape
}

/// A tape of a caller from whom texts were withheld tells none of them when it is played.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_withheld_is_not_told_when_the_tape_is_played() {
    for reason in Reason::ALL {
        let folder = tempfile::tempdir().unwrap();
        for (role, is_withheld) in [("some", true), ("all", false)] {
            let gateway = gateway(reason, "key:ada", role).await;
            let tape = recorded(&gateway, "ada", folder.path()).await;
            drop(gateway);
            let served = ServedTape::start(folder.path(), &tape, &[]).await.unwrap();
            let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
            let client = HttpClient::new(address).initialize("2025-06-18", json!({})).await.unwrap();
            let greeting = json!({"name": "greet", "arguments": {"name": "the end"}});
            let played = client.request(1, "tools/call", greeting).await.unwrap();
            assert!(played["result"].to_string().contains("the end"), "{played}");
            for (number, (method, params)) in (2..).zip(requests()) {
                let told = client.request(number, method, params).await.unwrap().to_string();
                let expected = !is_withheld || !counts_for(reason, method);
                assert_eq!(shown(&told), expected, "{reason:?} {role} {method}: {told}");
            }
        }
    }
}
