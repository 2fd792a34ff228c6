//! Another configuration while the gateway runs: what makes it read its file again, what goes on, and what is refused.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::{GatewayProcess, stdio_command};
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{
    PATIENCE, alive, ask, backend_status, child, eventually, pids, process_of, remote, signal, status, tool_names,
    web_fixture,
};
use tokio::process::Command;

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The file is left alone unless the test says otherwise.
const UNWATCHED: &str = "[gateway]\nwatch_config = false\n";

async fn session(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap()
}

/// A child of the fixture that offers one tool only.
fn only(name: &str, tool: &str, more: &str) -> String {
    child(name, ServedEra::Old, &format!("tools.include = [{}]\n{more}", json!(tool))).unwrap()
}

/// Puts a file in the place of the configuration, as editors do.
fn put(gateway: &GatewayProcess, config: &str) {
    let fresh = gateway.config_file().with_extension("new");
    std::fs::write(&fresh, config).unwrap();
    std::fs::rename(&fresh, gateway.config_file()).unwrap();
}

struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

async fn signalbox(data_dir: &Path, arguments: &[&str]) -> Done {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(arguments).arg("--data-dir").arg(data_dir).current_dir(data_dir);
    let output = command.kill_on_drop(true).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// `signalbox reload`, which has to be carried out.
async fn reload(gateway: &GatewayProcess) -> String {
    let done = signalbox(&gateway.data_dir(), &["reload"]).await;
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    done.stdout
}

/// The part of the status that is about the configuration, once it fits.
async fn reload_status(data_dir: &Path, fits: impl Fn(&Value) -> bool) -> Value {
    let look = async || Some(status(data_dir).await.ok()?["reload"].clone()).filter(&fits);
    eventually("the state of the configuration", look).await.unwrap()
}

async fn names_are(client: &HttpClient, expected: &[&str]) {
    let look = async || tool_names(client).await.ok().filter(|names| names == expected);
    eventually(&format!("the tools {expected:?}"), look).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_a_signal_and_a_changed_file_each_make_it_read_the_configuration() {
    let (one, two) = (only("one", "count", ""), only("two", "greet", ""));
    let gateway = GatewayProcess::serve(&format!("{UNWATCHED}{one}")).await.unwrap();
    let client = session(&gateway).await;
    names_are(&client, &["count"]).await;

    put(&gateway, &format!("{UNWATCHED}{one}{two}"));
    // Two at a time: one of them finds nothing left to do.
    let (first, second) = tokio::join!(reload(&gateway), reload(&gateway));
    let (said, other) = if first.contains("added") { (first, second) } else { (second, first) };
    assert!(said.starts_with("serve (pid ") && said.contains("generation 2") && said.contains("added: two"), "{said}");
    assert!(other.contains("nothing has changed (generation 2)"), "{other}");
    names_are(&client, &["count", "greet"]).await;

    put(&gateway, &format!("{UNWATCHED}{two}"));
    signal(gateway.process.pid().unwrap(), "HUP").await.unwrap();
    names_are(&client, &["greet"]).await;

    // From here on it looks at the file by itself: when it is written in place, and when another is put in its place.
    put(&gateway, &two);
    reload(&gateway).await;
    std::fs::write(gateway.config_file(), format!("{two}{one}")).unwrap();
    names_are(&client, &["greet", "count"]).await;
    put(&gateway, &one);
    names_are(&client, &["count"]).await;
    let told = status(&gateway.data_dir()).await.unwrap();
    assert_eq!((&told["reload"]["generation"], &told["reload"]["last_error"]), (&json!(6), &Value::Null), "{told}");
    assert_eq!(told["labels"].as_object().unwrap().keys().collect::<Vec<_>>(), ["one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_is_refused_and_said_everywhere_while_the_old_configuration_serves_on() {
    let config = only("one", "count", "");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = session(&gateway).await;
    let pid = {
        names_are(&client, &["count"]).await;
        pids(&backend_status(&gateway.data_dir(), "one").await.unwrap())
    };
    put(&gateway, "[backends.two]\ncomand = \"x\"\n");
    let expected = "signalbox.toml:2:1: backends.two.comand: unknown key; did you mean `command`?";
    let told = reload_status(&gateway.data_dir(), |reload| reload["last_error"].is_string()).await;
    assert!(told["last_error"].as_str().unwrap().ends_with(expected), "{told}");
    assert_eq!((&told["generation"], &told["refused"]), (&json!(1), &json!(1)), "{told}");
    let shown = signalbox(&gateway.data_dir(), &["status"]).await;
    assert!(shown.stdout.contains("kept this configuration") && shown.stdout.contains(expected), "{}", shown.stdout);
    // The same words as `check` has, and both commands find the process although the file is bad.
    let file = gateway.config_file();
    let file = file.to_str().unwrap();
    let checked = signalbox(&gateway.data_dir(), &["check", "-c", file]).await;
    assert!(checked.stderr.contains(expected), "{}", checked.stderr);
    let refused = signalbox(&gateway.data_dir(), &["reload", "-c", file]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    assert!(
        refused.stderr.contains(expected) && refused.stderr.contains("keeping the previous configuration"),
        "{}",
        refused.stderr
    );
    let told = |line: &String| line.contains("keeping the previous configuration") && line.contains(expected);
    let logged = async || gateway.process.error_lines().iter().any(told).then_some(());
    eventually("the line in the log", logged).await.unwrap();

    assert_eq!(tool_names(&client).await.unwrap(), ["count"]);
    ask(&client, "count", json!({})).await.unwrap();
    assert_eq!(pids(&backend_status(&gateway.data_dir(), "one").await.unwrap()), pid);
    let metrics = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let page = String::from_utf8(metrics.body.to_vec()).unwrap();
    for line in [
        "signalbox_config_generation 1",
        "signalbox_config_outdated 1",
        "signalbox_config_reloads_total{outcome=\"ok\"} 0",
        "signalbox_config_reloads_total{outcome=\"refused\"} 2",
    ] {
        assert!(page.lines().any(|one| one == line), "{line}\n{page}");
    }
    let older = "runs an older configuration";
    let doctor = signalbox(&gateway.data_dir(), &["doctor"]).await;
    assert!(doctor.stdout.contains(older) && doctor.stdout.contains(expected), "{}", doctor.stdout);
    put(&gateway, &config);
    reload_status(&gateway.data_dir(), |reload| reload["last_error"].is_null()).await;
    let doctor = signalbox(&gateway.data_dir(), &["doctor"]).await;
    assert!(!doctor.stdout.contains(older), "{}", doctor.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_go_on_and_only_what_changed_is_started_anew() {
    let (_web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let fixed = remote("web", &address, "") + &child("kept", ServedEra::Old, "").unwrap();
    let moved =
        |round: u32| child("moved", ServedEra::Old, &format!("env = {{ MCP_TEST_ROUND = \"{round}\" }}")).unwrap();
    let config = |round: u32| format!("{UNWATCHED}{fixed}{}", moved(round));
    let gateway = GatewayProcess::serve(&config(1)).await.unwrap();
    let client = session(&gateway).await;
    let mut general = EventStream::general(&client).await.unwrap();
    let web = ask(&client, "web__whoami", json!({})).await.unwrap();
    assert!(serde_json::from_str::<Value>(&web).unwrap()["session"].is_string(), "{web}");
    let kept = process_of(&client, "kept__whoami").await.unwrap();
    let before = process_of(&client, "moved__whoami").await.unwrap();

    put(&gateway, &config(2));
    assert!(reload(&gateway).await.contains("restarted: moved"));
    let after = process_of(&client, "moved__whoami").await.unwrap();
    assert_ne!(before, after);
    eventually("the old process is gone", async || (!alive(before)).then_some(())).await.unwrap();
    // The same backend session, the same process, and the same session of the client.
    assert_eq!(ask(&client, "web__whoami", json!({})).await.unwrap(), web);
    assert_eq!(process_of(&client, "kept__whoami").await.unwrap(), kept);

    put(&gateway, &format!("{UNWATCHED}{}", child("kept", ServedEra::Old, "").unwrap()));
    assert!(reload(&gateway).await.contains("removed: web, moved"));
    general.notification(TOOLS_CHANGED).await.unwrap();
    eventually("the removed process is gone", async || (!alive(after)).then_some(())).await.unwrap();
    // Nothing else has a tool of this name any more, so that it is called as its backend calls it.
    assert_eq!(process_of(&client, "whoami").await.unwrap(), kept);

    put(&gateway, &format!("{UNWATCHED}{}{}", child("kept", ServedEra::Old, "").unwrap(), moved(3)));
    reload(&gateway).await;
    general.notification(TOOLS_CHANGED).await.unwrap();
    let look = async || tool_names(&client).await.ok()?.contains(&"moved__whoami".to_owned()).then_some(());
    eventually("the added backend is listed", look).await.unwrap();
    assert_eq!(process_of(&client, "kept__whoami").await.unwrap(), kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_under_load_drops_no_call() {
    const CLIENTS: usize = 4;
    const RELOADS: u32 = 20;
    let (_web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let config = |round: u32| {
        let moved = child("moved", ServedEra::Old, &format!("env = {{ MCP_TEST_ROUND = \"{round}\" }}")).unwrap();
        let web = remote("web", &address, &format!("headers = {{ X-Round = \"{round}\" }}"));
        format!("{UNWATCHED}{}{moved}{web}", child("kept", ServedEra::Old, "").unwrap())
    };
    let gateway = GatewayProcess::serve(&config(0)).await.unwrap();
    let kept = process_of(&session(&gateway).await, "kept__whoami").await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut calling = Vec::new();
    for number in 0..CLIENTS {
        let (client, stopped) = (session(&gateway).await, stopped.clone());
        calling.push(tokio::spawn(async move {
            let mut calls = 0_u64;
            while !*stopped.borrow() {
                for tool in ["kept__greet", "moved__greet", "web__greet"] {
                    calls += 1;
                    let name = format!("{number}-{calls}");
                    let params = json!({"name": tool, "arguments": {"name": name}});
                    let message = json!({"jsonrpc": "2.0", "id": calls, "method": "tools/call", "params": params});
                    let answers = client.post(&message.to_string()).await.unwrap().messages().unwrap();
                    let texts: Vec<_> = answers.iter().filter(|one| one["id"] == calls).collect();
                    assert_eq!(texts.len(), 1, "{answers:?}");
                    let said = texts[0]["result"]["content"][0]["text"].as_str();
                    assert_eq!(said, Some(&*format!("Hello, {name}!")), "{tool}: {answers:?}");
                }
            }
            calls
        }));
    }
    for round in 1..=RELOADS {
        put(&gateway, &config(round));
        let told = reload(&gateway).await;
        assert!(told.contains("restarted: moved, web"), "{told}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stop.send_replace(true);
    let mut calls = 0;
    for one in calling {
        calls += one.await.expect("every call gets its one answer");
    }
    println!("{calls} calls during {RELOADS} reloads");
    assert!(calls >= u64::from(RELOADS), "{calls}");
    let client = session(&gateway).await;
    assert_eq!(process_of(&client, "kept__whoami").await.unwrap(), kept);
}

/// A key that needs a restart is named, and holds nothing else of its file back.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_fixed_at_the_start_is_named_and_all_else_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data_dir) = (folder.path().join("signalbox.toml"), folder.path().join("data"));
    let address = "[mcp.protocol.transport]\nport = 0\n";
    std::fs::write(&file, format!("{address}{UNWATCHED}{}", only("one", "count", ""))).unwrap();
    let mut command = Command::new(built("signalbox").unwrap());
    command.arg("serve").arg("-c").arg(&file).arg("--data-dir").arg(&data_dir);
    let _process = Spawned::start(command).unwrap();
    reload_status(&data_dir, |reload| reload["generation"] == 1).await;
    for (change, key) in [
        ("[mcp.protocol.transport]\nport = 1\n", "mcp.protocol.transport.port"),
        ("[mcp.protocol.transport]\nport = 0\npath = \"/other\"\n", "mcp.protocol.transport.path"),
        ("[mcp.protocol.transport]\nport = 0\ntype = \"tcp\"\n", "mcp.protocol.transport.type"),
    ] {
        std::fs::write(&file, format!("{change}{UNWATCHED}{}", only("two", "greet", ""))).unwrap();
        let refused = signalbox(&data_dir, &["reload"]).await;
        assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        assert!(refused.stderr.contains(key) && refused.stderr.contains("restart"), "{}", refused.stderr);
        let told = status(&data_dir).await.unwrap();
        assert_eq!((&told["backends"][0]["name"], &told["reload"]["partly"]), (&json!("two"), &json!(true)), "{told}");
    }
    std::fs::write(&file, format!("{address}{UNWATCHED}{}", only("three", "greet", ""))).unwrap();
    assert_eq!(signalbox(&data_dir, &["reload"]).await.code, Some(0));
    let told = status(&data_dir).await.unwrap();
    assert_eq!(told["backends"][0]["name"], "three");
    assert_ne!(told["reload"]["partly"], true, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_front_the_sessions_and_the_filter_follow_without_a_restart() {
    let config = |gateway: &str, tools: &str| {
        format!("[gateway]\nwatch_config = false\n{gateway}{}", child("one", ServedEra::Old, tools).unwrap())
    };
    let few = "tools.include = [\"count\", \"whoami\"]";
    let gateway = GatewayProcess::serve(&config("", few)).await.unwrap();
    let client = session(&gateway).await;
    names_are(&client, &["count", "whoami"]).await;
    let pid = process_of(&client, "whoami").await.unwrap();
    let stranger = HttpClient::new(gateway.address()).with("origin", "https://app.example");
    let hello = async || stranger.initialize("2025-06-18", json!({})).await;
    assert!(hello().await.is_err());
    put(&gateway, &config("allowed_origins = [\"https://app.example\"]\n", "tools.include = [\"whoami\"]"));
    let said = reload(&gateway).await;
    assert!(said.contains("retuned: one") && said.contains("settings: gateway.allowed_origins"), "{said}");
    assert!(hello().await.is_ok());
    assert_eq!(tool_names(&client).await.unwrap(), ["whoami"]);
    put(&gateway, &format!("[mcp.protocol.security]\nmax_concurrent_sessions = 1\n{}", config("", few)));
    assert!(reload(&gateway).await.contains("mcp.protocol.security.max_concurrent_sessions"));
    assert!(hello().await.is_err());
    names_are(&client, &["count", "whoami"]).await;
    let own = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await;
    assert!(own.is_err(), "there is room for one session only");
    assert_eq!(process_of(&client, "whoami").await.unwrap(), pid);

    // A flag wins over the file as it did at the start, so that another port in the file is no change.
    let port = "[mcp.protocol.transport]\nport = 1\n";
    let debug = |lines: &[String]| lines.iter().any(|line| line.contains("DEBUG"));
    assert!(!debug(&gateway.process.error_lines()));
    let second = only("two", "greet", "");
    put(&gateway, &format!("{port}{}{second}", config("log_level = \"debug\"\n", few)));
    assert!(reload(&gateway).await.contains("gateway.log_level"));
    let look = async || debug(&gateway.process.error_lines()).then_some(());
    eventually("more is logged", look).await.unwrap();
}

/// The numbers of threads, of open files and of children of a process.
fn counted(pid: u32) -> (usize, usize, usize) {
    let entries = |folder: &str| std::fs::read_dir(format!("/proc/{pid}/{folder}")).unwrap().count();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children = children.map(|list| list.split_whitespace().count()).sum();
    (entries("task"), entries("fd"), children)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_reloads_leave_no_process_no_file_and_no_thread_behind() {
    let (_web, address) = web_fixture("127.0.0.1:0", ServedEra::Old).await.unwrap();
    let config = |round: u32| {
        let moved = child("moved", ServedEra::Old, &format!("env = {{ MCP_TEST_ROUND = \"{round}\" }}")).unwrap();
        let web = remote("web", &address, &format!("headers = {{ X-Round = \"{round}\" }}"));
        format!("{UNWATCHED}{}{moved}{web}", child("kept", ServedEra::Old, "").unwrap())
    };
    let gateway = GatewayProcess::serve(&config(0)).await.unwrap();
    let (pid, data_dir) = (gateway.process.pid().unwrap(), gateway.data_dir());
    let client = session(&gateway).await;
    let settled = async || {
        process_of(&client, "moved__whoami").await.unwrap();
        process_of(&client, "web__whoami").await.unwrap();
        let look = async || {
            let told = status(&data_dir).await.ok()?;
            let up = told["backends"].as_array()?.iter().all(|backend| backend["state"] == "up");
            (up && told["retiring"] == 0 && counted(pid).2 == 2).then_some(())
        };
        eventually("all is quiet", look).await.unwrap();
    };
    for round in 1..=5 {
        put(&gateway, &config(round));
        reload(&gateway).await;
    }
    settled().await;
    let before = counted(pid);
    for round in 6..=205 {
        put(&gateway, &config(round));
        reload(&gateway).await;
    }
    settled().await;
    println!("threads, files, children: {before:?} before, {:?} after", counted(pid));
    // A thread of the pool for file work and a connection that is being closed come and go.
    let look = async || {
        let now = counted(pid);
        (now.0 <= before.0 + 2 && now.1 <= before.1 + 2 && now.2 == before.2).then_some(())
    };
    eventually(&format!("as before: {before:?}"), look).await.unwrap();
    assert_eq!(status(&data_dir).await.unwrap()["reload"]["generation"], 206);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_on_standard_input_reads_its_configuration_again() {
    let folder = tempfile::tempdir().unwrap();
    let line = stdio_command(folder.path(), &only("one", "count", "")).unwrap();
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    let mut client = Spawned::start(command).unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    client.write_line(&hello.to_string()).await.unwrap();
    client.write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.unwrap();
    client.wait_line(r#"{"jsonrpc":"2.0","id":1"#, PATIENCE).await.unwrap();
    client.write_line(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await.unwrap();
    let listed = client.wait_line(r#"{"jsonrpc":"2.0","id":2"#, PATIENCE).await.unwrap();
    assert!(listed.contains("\"count\""), "{listed}");

    // An address means nothing here, so that another one is no reason to refuse.
    let other = format!("[mcp.protocol.transport]\nport = 1\n{}", only("two", "greet", ""));
    std::fs::write(folder.path().join("signalbox.toml"), other).unwrap();
    signal(client.pid().unwrap(), "HUP").await.unwrap();
    client.wait_line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed""#, PATIENCE).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.write_line(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#).await.unwrap();
    let listed = client.wait_line(r#"{"jsonrpc":"2.0","id":3"#, PATIENCE).await.unwrap();
    assert!(listed.contains("\"greet\"") && !listed.contains("\"count\""), "{listed}");
}
