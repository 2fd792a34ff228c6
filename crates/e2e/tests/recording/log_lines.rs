//! Log lines that name the backend and the cause, and claim nothing that did not happen.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::ports::refusing_address;
use signalbox_testkit::process::built;
use signalbox_testkit::protected_server::{Demands, ProtectedServer};
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_server::{Network, Options, start};
use signalbox_testkit::scene::{
    backend_status, child, eventually, lists_saved, pids, remote, signal, status, tool_names,
};
use std::net::{Ipv4Addr, SocketAddr};

const VERSION: &str = "2025-06-18";

/// Waits for a line of the log with all of these parts.
async fn line(gateway: &GatewayProcess, parts: &[&str]) -> String {
    let fits = |line: &String| parts.iter().all(|part| line.contains(part));
    let look = async || gateway.process.error_lines().into_iter().find(fits);
    let found = eventually(&format!("a line with {parts:?}"), look).await;
    found.unwrap_or_else(|error| panic!("{error:#}\n{}", gateway.process.error_lines().join("\n")))
}

/// Returns the lines of the log so far that have this part.
fn lines_with(gateway: &GatewayProcess, part: &str) -> Vec<String> {
    gateway.process.error_lines().into_iter().filter(|line| line.contains(part)).collect()
}

/// A connection that never was cannot be lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_was_never_connected_has_not_lost_its_connection() {
    let (open, shared) = (
        ProtectedServer::start(Demands::Token, None).await.unwrap(),
        ProtectedServer::start(Demands::Token, None).await.unwrap(),
    );
    let (_held, never) = refusing_address().unwrap();
    let config = format!(
        "[auth.outbound]\nallow = [\"127.0.0.1\"]\n{}[backends.closed]\nurl = \"{}\"\n\
         [backends.signed]\nurl = \"{}\"\nauth = {{ type = \"oauth\" }}\n{}",
        remote("never", &never.to_string(), ""),
        open.url(),
        shared.url(),
        child("up", ServedEra::Old, "").unwrap(),
    );
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let cannot = "cannot open a connection to the backend";
    line(&gateway, &[cannot, "backend=never", "cannot be reached"]).await;
    line(&gateway, &[cannot, "backend=closed", "auth = { type = \"oauth\" }", "signalbox login closed"]).await;
    line(&gateway, &[cannot, "backend=signed"]).await;
    let lost = "lost the connection to the backend";
    assert_eq!(lines_with(&gateway, lost), [""; 0]);

    // One that was up has lost it.
    let backend = backend_status(&gateway.data_dir(), "up").await.unwrap();
    signal(pids(&backend)[0], "KILL").await.unwrap();
    line(&gateway, &[lost, "backend=up"]).await;
    assert!(lines_with(&gateway, lost).iter().all(|line| line.contains("backend=up")));
}

/// The last lines of a process in the status are redacted like those in the log.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_quotes_no_secret_of_a_process() {
    let secret = concat!("gh", "p_", "0123456789abcdefABCDEF0123456789abcd");
    let script = json!(format!("echo 'stray {secret}'; echo 'last {secret}' >&2; sleep 0.5; exit 1"));
    let config = format!("[backends.odd]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let both = async || {
        let status = backend_status(&gateway.data_dir(), "odd").await.ok()?;
        let told = |text: &Value, part: &str| text.to_string().contains(part);
        (told(&status["stray_line"], "stray") && told(&status["last_words"], "last")).then_some(status)
    };
    let status = eventually("the status has both lines", both).await.unwrap();
    assert!(!status.to_string().contains(secret), "{status}");
}

/// A list is said to lack those backends alone that it has no entries of.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_not_said_to_lack_what_it_contains() {
    let folder = tempfile::tempdir().unwrap();
    let (fixture, slow) = (built("fixture-server").unwrap(), folder.path().join("slow"));
    // Processes that start once the file is there answer nothing. They end with their input.
    let silent = "while read -r line; do :; done";
    let (fixture, slow) = (fixture.display(), slow.display());
    let script = json!(format!("if [ -e '{slow}' ]; then {silent}; else exec '{fixture}' --stdio --era old; fi"));
    let config = format!(
        "[gateway]\nfirst_list_wait = 2\n[backends.known]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\n\
         [backends.silent]\ncommand = \"sh\"\nargs = [\"-c\", \"{silent}\"]\nstart_timeout = 600\n"
    );
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let bare = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    assert!(tool_names(&bare).await.unwrap().contains(&"greet".to_owned()));
    std::fs::write(folder.path().join("slow"), "").unwrap();
    let without = "answered a list without";
    let logged = lines_with(&gateway, without).len();

    // Its client hears of no changes, and that of the next one does.
    let rich = HttpClient::new(gateway.address()).initialize(VERSION, json!({"sampling": {}})).await.unwrap();
    assert!(tool_names(&rich).await.unwrap().contains(&"greet".to_owned()));
    let caps = json!({"sampling": {}, "elicitation": {}});
    let told = HttpClient::new(gateway.address()).initialize(VERSION, caps).await.unwrap();
    let _stream = EventStream::general(&told).await.unwrap();
    assert!(tool_names(&told).await.unwrap().contains(&"greet".to_owned()));
    line(&gateway, &[without, "slow backends"]).await;
    let all = async || Some(lines_with(&gateway, without)).filter(|lines| lines.len() >= logged + 2);
    for line in eventually("a line for each list", all).await.unwrap() {
        assert!(line.contains("silent") && !line.contains("known"), "{line}");
    }
}

/// A name that is taken is told with its owner, whichever of the two starts first.
#[tokio::test(flavor = "multi_thread")]
async fn a_warning_of_a_collision_names_the_other_backend() {
    let fixture = built("fixture-server").unwrap();
    let late = json!(format!("sleep 2; exec '{}' --stdio --era old", fixture.display()));
    let late = format!("[backends.late]\ncommand = \"sh\"\nargs = [\"-c\", {late}]\n");
    let quick = child("quick", ServedEra::Old, "").unwrap();
    for (first, second) in [(&quick, &late), (&late, &quick)] {
        let gateway = GatewayProcess::serve(&format!("{first}{second}")).await.unwrap();
        let warning = line(&gateway, &["`greet` of backend `", "had that name first (tools)"]).await;
        assert!(warning.contains("backend `late`") || warning.contains("backend `quick`"), "{warning}");
        lists_saved(&gateway.data_dir()).await.unwrap();
        for warning in lines_with(&gateway, "had that name first") {
            let (owner, named) = match warning.contains("of backend `late`") {
                true => ("`quick` had", "`late__"),
                false => ("`late` had", "`quick__"),
            };
            assert!(warning.contains(owner), "{warning}");
            assert!(!warning.contains("(tools)") || warning.contains(named), "{warning}");
        }
    }
}

/// Two servers in `sh` of which each lists an entry without a name.
const NAMELESS: &str = r#"
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"inputSchema":{"type":"object"}},{"name":"good","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"id"'*'"method"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_is_left_out_is_told_with_its_backend() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("nameless.sh");
    std::fs::write(&script, NAMELESS).unwrap();
    let script = json!(script.to_str().unwrap());
    let backend = |name: &str| format!("[backends.{name}]\ncommand = \"sh\"\nargs = [{script}]\n");
    let gateway = GatewayProcess::serve(&(backend("first") + &backend("second"))).await.unwrap();
    for name in ["first", "second"] {
        let parts = ["leaving out an entry of a backend's list", &format!("backend={name}"), "list=\"tools\""];
        line(&gateway, &parts).await;
    }
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    assert!(tool_names(&client).await.unwrap().contains(&"good".to_owned()));
    for line in lines_with(&gateway, "leaving out an entry") {
        assert!(line.contains("backend=first") || line.contains("backend=second"), "{line}");
    }
}

/// Returns the capabilities that the gateway declares to a client of 2025-11-25.
async fn declared(gateway: &GatewayProcess, capabilities: Value) -> Value {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}});
    let answer = HttpClient::new(gateway.address()).post(&hello.to_string()).await.unwrap().message().unwrap();
    answer["result"]["capabilities"].clone()
}

/// The gateway declares `tasks` from the first session on, before it has seen the server.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_session_at_a_server_of_2025_11_25_has_tasks() {
    let program = built("revision-server").unwrap();
    let script = json!(format!("sleep 3; exec '{}' --stdio --revision 2025-11-25", program.display()));
    let config = format!("[backends.only]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    for capabilities in [json!({}), json!({"sampling": {}})] {
        let before = declared(&gateway, capabilities).await;
        assert!(before["tasks"]["requests"]["tools"]["call"].is_object(), "{before}");
    }
    lists_saved(&gateway.data_dir()).await.unwrap();
    for capabilities in [json!({}), json!({"sampling": {}}), json!({"elicitation": {}})] {
        let after = declared(&gateway, capabilities).await;
        assert!(after["tasks"]["requests"]["tools"]["call"].is_object(), "{after}");
    }
    assert_eq!(status(&gateway.data_dir()).await.unwrap()["backends"][0]["state"], "up");

    // A server without tasks, once it is known, has none declared.
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let plain = start(&Options::of(Revision::R3), Network::Http, any).await.unwrap();
    let gateway = GatewayProcess::serve(&format!("[backends.only]\nurl = \"{}\"\n", plain.url())).await.unwrap();
    lists_saved(&gateway.data_dir()).await.unwrap();
    let known = declared(&gateway, json!({})).await;
    assert!(known["tools"].is_object() && known["tasks"].is_null(), "{known}");
}
