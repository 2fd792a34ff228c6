//! Servers whose process runs only while somebody uses it, with real children.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{
    alive, ask, backend_status, child, eventually, lists_saved, pids, process_of, signalbox, status, tool_names,
};
use std::path::Path;

const MANY: usize = 20;

async fn session(gateway: &GatewayProcess, capabilities: Value) -> HttpClient {
    HttpClient::new(gateway.address()).initialize("2025-06-18", capabilities).await.unwrap()
}

fn servers(more: &str) -> String {
    (0..MANY).map(|number| child(&format!("s{number}"), ServedEra::Old, more).unwrap()).collect()
}

async fn states(data_dir: &Path) -> Vec<(String, usize)> {
    let status = status(data_dir).await.unwrap();
    let backends = status["backends"].as_array().unwrap().iter();
    backends.map(|one| (one["state"].as_str().unwrap().to_owned(), pids(one).len())).collect()
}

async fn all_asleep(data_dir: &Path) {
    let look = async || states(data_dir).await.iter().all(|one| *one == ("asleep".to_owned(), 0)).then_some(());
    eventually("all are asleep", look).await.unwrap();
}

async fn state(gateway: &GatewayProcess, name: &str, wanted: &str) -> Value {
    let data_dir = gateway.data_dir();
    let look = async || backend_status(&data_dir, name).await.ok().filter(|one| one["state"] == wanted);
    eventually(wanted, look).await.unwrap()
}

/// Twenty servers that nobody uses cost nothing.
#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_servers_only_the_one_that_is_called_runs() {
    let config = servers("start = \"first_use\"\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    // They were never seen: each is started once to learn what it lists.
    lists_saved(&gateway.data_dir()).await.unwrap();
    all_asleep(&gateway.data_dir()).await;
    let folder = gateway.stop().await.unwrap();

    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = session(&gateway, json!({})).await;
    let names = tool_names(&client).await.unwrap();
    assert!(names.contains(&"whoami".to_owned()) && names.contains(&"s19__whoami".to_owned()), "{names:?}");
    let ready = HttpClient::new(gateway.address()).get("/readyz").await.unwrap();
    let words = String::from_utf8(ready.body.to_vec()).unwrap();
    assert!(ready.status == 200 && words.contains("backend `s7` is asleep"), "{} {words}", ready.status);
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.lines().any(|line| line == r#"signalbox_backend_asleep{backend="s7"} 1"#), "{page}");
    all_asleep(&gateway.data_dir()).await;
    let log = gateway.process.error_lines().join("\n");
    assert!(!log.contains("backend is up"), "none was started: {log}");

    let pid = process_of(&client, "s7__whoami").await.unwrap();
    let running: Vec<usize> = states(&gateway.data_dir()).await.into_iter().map(|(_, pids)| pids).collect();
    assert_eq!(running.iter().sum::<usize>(), 1, "{running:?}");
    assert_eq!(pids(&backend_status(&gateway.data_dir(), "s7").await.unwrap()), [pid]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_process_is_stopped_and_what_is_lost_is_told() {
    let config = child("one", ServedEra::Old, "idle_stop = \"300ms\"\n").unwrap();
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let (plain, askable) = (session(&gateway, json!({})).await, session(&gateway, json!({"elicitation": {}})).await);
    let first = process_of(&plain, "whoami").await.unwrap();
    let own = process_of(&askable, "whoami").await.unwrap();
    assert_ne!(first, own);
    let gone = async || (!alive(first) && !alive(own)).then_some(());
    eventually("both processes are gone", gone).await.unwrap();
    let told = state(&gateway, "one", "asleep").await;
    assert_eq!((&told["restarts"], &told["last_error"]), (&json!(0), &Value::Null), "{told}");
    assert!(tool_names(&plain).await.unwrap().contains(&"whoami".to_owned()));
    // Longer than it may be idle: a process with a call is not stopped.
    assert_eq!(ask(&plain, "slow", json!({"ms": 1_500})).await.unwrap(), "slept 1500 ms");
    let again = process_of(&askable, "whoami").await.unwrap();
    assert_ne!(again, own);
    let log = gateway.process.error_lines().join("\n");
    assert!(log.contains("a process is stopped") && log.contains("in memory for its clients is lost"), "{log}");
    let data_dir = gateway.data_dir();
    let tape = async || {
        let lines = signalbox(&data_dir, &["tape", "export", "last", "-o", "-", "--format", "jsonl"]).await.ok()?;
        lines.contains("the process of backend `one` is stopped").then_some(())
    };
    eventually("it is on the tape", tape).await.unwrap();
}

/// A changed configuration is taken over without a restart of the gateway.
#[tokio::test(flavor = "multi_thread")]
async fn the_keys_are_taken_over_by_a_reload() {
    let write = |gateway: &GatewayProcess, more: &str| {
        let text = std::fs::read_to_string(gateway.config_file()).unwrap();
        let begin = text.find("# lifetime").unwrap();
        std::fs::write(gateway.config_file(), format!("{}# lifetime\n{more}", &text[..begin])).unwrap();
    };
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "# lifetime\n").unwrap()).await.unwrap();
    let pid = pids(&state(&gateway, "one", "up").await)[0];
    write(&gateway, "start = \"first_use\"\n");
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    state(&gateway, "one", "asleep").await;
    eventually("its process is gone", async || (!alive(pid)).then_some(())).await.unwrap();
    write(&gateway, "");
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
    state(&gateway, "one", "up").await;
}
