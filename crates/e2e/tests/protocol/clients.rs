//! Real clients through the gateway to real servers: `server-everything` by stdio and by HTTP, and `server-filesystem`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail wherever it wants, and says what it skipped"
)]

use serde_json::{Value, json};
use signalbox_testkit::clients::{run, run_script};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::{GatewayProcess, stdio_command};
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::child;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::process::Command;

/// The tools that `server-everything` shows to a client without capabilities.
const BARE: [&str; 13] = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
];
/// Those it adds for a client with sampling, elicitation and roots.
const RICH: [&str; 4] =
    ["get-roots-list", "trigger-elicitation-request", "trigger-sampling-request", "trigger-url-elicitation"];

struct Servers {
    config: String,
    folder: tempfile::TempDir,
    _web: Spawned,
}

/// Starts the HTTP server and writes a config with all three.
async fn servers() -> Option<Servers> {
    let installed = run(&["ts-sdk1", "--help"]).await;
    if matches!(installed, Ok(None)) {
        println!("SKIP real clients: run script/install-test-deps");
        return None;
    }
    let address = free_address().unwrap();
    let mut command = Command::new(run_script());
    command.args(["everything", "streamableHttp"]).env("PORT", address.port().to_string());
    let web = Spawned::start(command).unwrap();
    for _ in 0..200 {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note.txt"), "kept in a file").unwrap();
    let script = json!(run_script().to_str().unwrap());
    let root = json!(folder.path().canonicalize().unwrap().to_str().unwrap());
    let config = format!(
        "[backends.ev]\ncommand = {script}\nargs = [\"everything\", \"stdio\"]\n\
         [backends.web]\nurl = \"http://{address}/mcp\"\n\
         [backends.files]\ncommand = {script}\nargs = [\"filesystem\", {root}]\n"
    );
    Some(Servers { config, folder, _web: web })
}

/// The tools of both servers: those of the first under their own names, those of the second qualified.
fn expected(extra: &[&str]) -> BTreeSet<String> {
    let own = || BARE.iter().chain(extra);
    own().map(|name| (*name).to_owned()).chain(own().map(|name| format!("web__{name}"))).collect()
}

/// The first so many names, of which none may come twice.
fn first(names: &[String], count: usize) -> BTreeSet<String> {
    let set: BTreeSet<String> = names[..count].iter().cloned().collect();
    assert_eq!(set.len(), count, "{names:?}");
    set
}

fn names(document: &Value) -> Vec<String> {
    let names = document["steps"]["tools"]["names"].as_array().unwrap_or_else(|| panic!("no tools: {document:#}"));
    names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn text(document: &Value, call: usize) -> String {
    let result = &document["steps"]["call"][call]["result"]["content"];
    result[0]["text"].as_str().map(str::to_owned).unwrap_or_else(|| document["steps"]["call"][call].to_string())
}

/// Everything a bare client must see through the gateway.
fn check_bare(client: &str, document: &Value, extra: &[&str]) {
    let listed = names(document);
    let wanted = expected(extra);
    assert_eq!(first(&listed, wanted.len()), wanted, "{client}");
    let files = &listed[wanted.len()..];
    // In the order in which the server lists them.
    assert_eq!(files[..2], ["read_file", "read_text_file"], "{client}: {files:?}");
    assert!(text(document, 0).contains("through stdio"), "{client}: {}", text(document, 0));
    assert!(text(document, 1).contains("through http"), "{client}: {}", text(document, 1));
    assert!(text(document, 2).contains("kept in a file"), "{client}: {}", text(document, 2));
}

fn arguments<'a>(client: &'a [&'a str], calls: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let mut all = client.to_vec();
    for call in calls {
        all.extend(["--call", call]);
    }
    all.extend(more);
    all
}

fn calls(servers: &Servers) -> Vec<String> {
    let note = servers.folder.path().canonicalize().unwrap().join("note.txt");
    vec![
        r#"ev__echo={"message":"through stdio"}"#.to_owned(),
        r#"web__echo={"message":"through http"}"#.to_owned(),
        format!("read_text_file={}", json!({"path": note.to_str().unwrap()})),
    ]
}

const MORE: &[&str] = &[
    "--get-prompt",
    r#"ev__args-prompt={"city":"Paris"}"#,
    "--get-prompt",
    r#"web__args-prompt={"city":"Oslo"}"#,
    "--read",
    "demo://resource/static/document/features.md",
    "--read",
    "web+demo://resource/static/document/features.md",
    "--complete",
    r#"{"ref":{"type":"ref/prompt","name":"web__completable-prompt"},"argument":{"name":"department","value":"E"}}"#,
];

/// Prompts, resources and completion, for the clients that can do them.
fn check_more(client: &str, document: &Value) {
    let steps = &document["steps"];
    let prompts = steps["prompts"]["names"].to_string();
    assert!(prompts.contains("\"args-prompt\"") && prompts.contains("web__args-prompt"), "{client}: {prompts}");
    assert!(steps["getPrompt"][1]["result"].to_string().contains("Oslo"), "{client}: {}", steps["getPrompt"]);
    let uris = steps["resources"]["uris"].to_string();
    assert!(uris.contains("\"demo://resource/static/document/features.md\""), "{client}: {uris}");
    assert!(uris.contains("\"web+demo://resource/static/document/features.md\""), "{client}: {uris}");
    let read = |index: usize| steps["read"][index]["result"]["contents"][0].clone();
    assert_eq!(read(0)["text"], read(1)["text"], "{client}");
    assert_eq!(read(1)["uri"], "web+demo://resource/static/document/features.md", "{client}");
    assert!(steps["complete"].to_string().contains("Engineering"), "{client}: {}", steps["complete"]);
    assert_eq!(document["ok"], true, "{client}: {}", document["errors"]);
}

/// Proves G-42, G-45 and N-46.
#[tokio::test(flavor = "multi_thread")]
async fn every_real_client_sees_and_calls_all_tools_of_all_three_over_http() {
    let Some(servers) = servers().await else { return };
    let gateway = GatewayProcess::serve(&servers.config).await.unwrap();
    let url = gateway.url();
    let calls = calls(&servers);
    for client in [
        &["ts-sdk1"][..],
        &["ts-client2", "--era", "old"],
        &["ts-client2", "--era", "new"],
        &["py-mcp1"],
        &["py-mcp2", "--era", "old"],
        &["py-mcp2", "--era", "new"],
    ] {
        let more = [MORE, &["--url", &url]].concat();
        let document = run(&arguments(client, &calls, &more)).await.unwrap().unwrap();
        check_bare(&client.join(" "), &document, &[]);
        check_more(&client.join(" "), &document);
    }
    let inspector = arguments(&["inspector", "--steps", "tools,call,prompts,resources"], &calls, &["--url", &url]);
    let document = run(&inspector).await.unwrap().unwrap();
    check_bare("inspector", &document, &["get-roots-list"]);
}

/// The inspector's command line opens a session and an event stream for each call and leaves the session open.
/// `MCP_TEST_ONE_SHOTS` makes it more than six in a row.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_at_once_leave_room_for_the_next() {
    let Some(servers) = servers().await else { return };
    let config = servers.config.replace("[backends.ev]\n", "[backends.ev]\nmax_children = 3\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let count = std::env::var("MCP_TEST_ONE_SHOTS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let calls: Vec<String> = (0..count).map(|number| format!(r#"echo={{"message":"call {number}"}}"#)).collect();
    let url = gateway.url();
    let inspector = arguments(&["inspector", "--steps", "call"], &calls, &["--url", &url]);
    let document = run(&inspector).await.unwrap().unwrap();
    for number in 0..count {
        assert!(text(&document, number).contains(&format!("call {number}")), "{}", text(&document, number));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_real_client_sees_and_calls_all_tools_of_all_three_over_stdio() {
    let Some(servers) = servers().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let command = stdio_command(folder.path(), &servers.config).unwrap();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let calls = calls(&servers);
    for client in [&["ts-sdk1"][..], &["ts-client2", "--era", "new"], &["py-mcp1"], &["py-mcp2", "--era", "old"]] {
        let more = [MORE, &["--stdio"], &command].concat();
        let document = run(&arguments(client, &calls, &more)).await.unwrap().unwrap();
        check_bare(&client.join(" "), &document, &[]);
        check_more(&client.join(" "), &document);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_capabilities_sees_more_and_answers_questions() {
    let Some(servers) = servers().await else { return };
    let gateway = GatewayProcess::serve(&servers.config).await.unwrap();
    for client in [&["ts-sdk1"][..], &["py-mcp1"]] {
        let mut all = client.to_vec();
        all.extend(["--steps", "tools,call,elicit,progress", "--answer", "Ada"]);
        for prefix in ["ev", "web"] {
            let ask: &'static str = Box::leak(format!("{prefix}__trigger-elicitation-request={{}}").into_boxed_str());
            let sample = format!("{prefix}__trigger-sampling-request={{\"prompt\":\"hi\",\"maxTokens\":10}}");
            let long = format!("{prefix}__trigger-long-running-operation={{\"duration\":1,\"steps\":4}}");
            all.extend(["--call", ask, "--call", Box::leak(sample.into_boxed_str())]);
            all.extend(["--call", Box::leak(long.into_boxed_str())]);
        }
        let url = gateway.url();
        all.extend(["--url", &url]);
        let document = run(&all).await.unwrap().unwrap();
        assert_eq!(first(&names(&document), 34), expected(&RICH), "{client:?}");
        for (index, part) in [(0, "Ada"), (1, "sampled"), (3, "Ada"), (4, "sampled")] {
            let call = document["steps"]["call"][index].to_string();
            assert!(call.contains(part), "{client:?}: {call}");
        }
        assert_eq!(document["progress"]["received"], 8, "{client:?}: {}", document["progress"]);
    }
}

/// Proves N-2.
#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_the_same_every_time_and_no_field_is_lost() {
    let Some(servers) = servers().await else { return };
    let gateway = GatewayProcess::serve(&servers.config).await.unwrap();
    let client = HttpClient::new(gateway.address());
    let mut seen = Vec::new();
    for _ in 0..3 {
        let session = client.initialize("2025-06-18", json!({})).await.unwrap();
        seen.push(session.request(1, "tools/list", json!({})).await.unwrap()["result"].to_string());
    }
    assert!(seen[0].contains("web__get-structured-content") && seen[0].contains("outputSchema"));
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
}

/// A page of an allowed origin connects, one of another port of this machine does not.
#[tokio::test]
async fn a_page_in_a_browser_connects_where_its_origin_is_allowed() {
    let (allowed, other) = (free_address().unwrap(), free_address().unwrap());
    let config =
        format!("gateway.allowed_origins = [\"http://{allowed}\"]\n") + &child("fixture", ServedEra::Old, "").unwrap();
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let url = format!("http://{}/mcp", gateway.address());
    let visit =
        async |page: std::net::SocketAddr| run(&["browser-client", &url, &page.port().to_string()]).await.unwrap();
    let Some(said) = visit(allowed).await else {
        println!("SKIP a page in a browser: run script/install-test-deps");
        return;
    };
    assert_eq!(said["session"], true, "{said}");
    assert!(said["tools"].as_array().is_some_and(|tools| tools.contains(&json!("greet"))), "{said}");
    let said = visit(other).await.unwrap();
    assert!(said["error"].as_str().is_some_and(|error| error.contains("Failed to fetch")), "{said}");
}
