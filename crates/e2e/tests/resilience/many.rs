//! Very many clients that do nothing but listen, and one among them that does not read: what they cost, and that all
//! the others hear everything.
//!
//! The counts are small here. `script/prove many` asks for 10,000 sessions, 10,000 streams and 1,000 readers by
//! `MCP_TEST_SESSIONS`, `MCP_TEST_STREAMS` and `MCP_TEST_READERS`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this is a test, its helpers too"
)]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{remote, web_fixture};
use std::time::{Duration, Instant};
use tokio::process::Command;

const WATCHED: &str = "test://watched-resource";
/// How long anything may take, however large the counts are.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);
/// Client processes that share the streams; each has descriptors of its own to use up.
const PROCESSES: usize = 4;
/// Maximum memory at rest besides the pages of the program file, and for each session or stream beyond that: about 400
/// MB for 10,000 of each. A build for debugging holds more.
const REST_KB: usize = if cfg!(debug_assertions) { 25_000 } else { 15_000 };
const EACH_KB: usize = 18;
/// Connections to the backend that any number of clients share.
const SHARED: usize = 16;

fn asked_for(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A gateway before a backend of the new era, whose connections all clients share. It records nothing: what waits to be
/// written has a bound of its own (`record.queue_bytes`), and would hide what sessions and streams cost.
async fn gateway(sessions: usize, streams: usize) -> (GatewayProcess, Spawned, String) {
    let (web, backend) = web_fixture("127.0.0.1:0", ServedEra::New).await.unwrap();
    let config = format!(
        "record.enabled = false\nmcp.protocol.security.max_concurrent_sessions = {}\ngateway.max_connections = {}\n{}",
        sessions + streams + 100,
        streams + 200,
        remote("only", &backend, "era = \"new\"")
    );
    let gateway = GatewayProcess::serve(&format!("guard.level = 'off'\n{config}")).await.unwrap();
    gateway.ready().await.unwrap();
    (gateway, web, backend)
}

/// Every other process of clients speaks the old era.
fn is_old(index: usize) -> bool {
    index.is_multiple_of(2)
}

/// A process of clients.
struct Holder(Spawned);

impl Holder {
    fn start(gateway: &GatewayProcess, arguments: &str) -> Self {
        let mut command = Command::new(built("signalbox-bench").unwrap());
        command.args(["hold", "--url", &gateway.url()]).args(arguments.split_whitespace());
        Self(Spawned::start(command).unwrap())
    }

    /// Waits until everything is open.
    async fn held(&self) {
        self.0.wait_line("held ", PATIENCE).await.unwrap();
    }

    async fn order(&mut self, order: &str) {
        self.0.write_line(order).await.unwrap();
    }

    /// What its streams got so far.
    async fn count(&mut self) -> Value {
        let before = self.counts().len();
        self.order("count").await;
        let started = Instant::now();
        loop {
            if let Some(count) = self.counts().get(before) {
                return serde_json::from_str(count.trim_start_matches("count ")).unwrap();
            }
            assert!(started.elapsed() < PATIENCE, "no count: {:?}", self.0.error_lines());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn counts(&self) -> Vec<String> {
        self.0.lines().into_iter().filter(|line| line.starts_with("count ")).collect()
    }

    /// Waits until every stream got at least so many notifications of this kind.
    async fn all_got(&mut self, kind: &str, least: u64) -> Value {
        let started = Instant::now();
        loop {
            let count = self.count().await;
            if count[kind]["least"].as_u64().unwrap() >= least {
                return count;
            }
            assert!(started.elapsed() < PATIENCE, "not all got {least} {kind}: {count}");
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// A line of a file about a process, in KiB.
fn memory_kb(process: &Spawned, file: &str, key: &str) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{}/{file}", process.pid().unwrap())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn rss_kb(gateway: &GatewayProcess) -> usize {
    memory_kb(&gateway.process, "status", "VmRSS:")
}

/// Connections of this process that lead to the port.
fn connections_to(process: &Spawned, port: u16) -> usize {
    let folder = format!("/proc/{}", process.pid().unwrap());
    let sockets = std::fs::read_dir(format!("{folder}/fd")).unwrap().flatten();
    let own: std::collections::HashSet<String> = sockets
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string(format!("{folder}/net/tcp")).unwrap();
    let leads = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[2].ends_with(&format!(":{port:04X}")) && own.contains(fields[9])
    };
    table.lines().skip(1).filter(leads).count()
}

/// A number of the metrics page.
async fn metric(gateway: &GatewayProcess, name: &str) -> u64 {
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |value| value.trim().parse::<f64>().unwrap() as u64)
}

async fn call(client: &HttpClient, tool: &str, arguments: Value) {
    let answer = client.modern(1, "tools/call", json!({"name": tool, "arguments": arguments})).await.unwrap();
    let message = answer.message().unwrap();
    assert!(message["result"]["content"][0]["text"].is_string(), "{tool}: {message}");
}

/// Proves SO-16.
#[tokio::test(flavor = "multi_thread")]
async fn idle_sessions_and_open_streams_cost_little_and_all_of_them_hear_of_a_change() {
    let sessions = asked_for("MCP_TEST_SESSIONS", 500);
    let streams = asked_for("MCP_TEST_STREAMS", 500) / PROCESSES * PROCESSES;
    let (gateway, _web, backend) = gateway(sessions, streams).await;
    let at_rest = rss_kb(&gateway);

    // Sessions without a connection.
    let idle = Holder::start(&gateway, &format!("--sessions {sessions}"));
    idle.held().await;
    assert_eq!(metric(&gateway, "signalbox_sessions ").await, sessions as u64);
    let with_sessions = rss_kb(&gateway);

    // Streams of sessions, each of which follows a resource, and listen requests for changes of lists, in processes and
    // from addresses of their own.
    let mut holders = Vec::new();
    for index in 0..PROCESSES {
        let (share, source) = (streams / PROCESSES, index + 2);
        let kind = if is_old(index) { format!("--era old --follow {WATCHED}") } else { "--era new".to_owned() };
        let arguments = format!("--streams {share} {kind} --source 127.0.0.{source}");
        holders.push(Holder::start(&gateway, &arguments));
    }
    for holder in &holders {
        holder.held().await;
    }
    let with_streams = rss_kb(&gateway);
    assert_eq!(metric(&gateway, "signalbox_sessions ").await, (sessions + streams / 2) as u64);

    // They share what leads to the backend.
    let port = backend.rsplit(':').next().unwrap().parse().unwrap();
    let shared = connections_to(&gateway.process, port);
    assert!((1..=SHARED).contains(&shared), "{shared} connections to the backend");

    // A change of the resource reaches every session that follows it, and a change of the list reaches all.
    let client = HttpClient::new(gateway.address());
    call(&client, "touch_resource", json!({})).await;
    for holder in holders.iter_mut().step_by(2) {
        let count = holder.all_got("updates", 1).await;
        assert_eq!(count["updates"]["most"], 1, "{count}");
    }
    call(&client, "test_trigger_tool_change", json!({})).await;
    for holder in &mut holders {
        let count = holder.all_got("lists", 1).await;
        assert_eq!((&count["open"], &count["lists"]["most"]), (&json!(streams / PROCESSES), &json!(1)), "{count}");
    }

    let peak = memory_kb(&gateway.process, "status", "VmHWM:");
    let shared_fairly = memory_kb(&gateway.process, "smaps_rollup", "Pss:");
    let each = |after: usize, before: usize, count: usize| {
        after.saturating_sub(before) as f64 / f64::from(u32::try_from(count.max(1)).unwrap())
    };
    println!(
        "many: {sessions} sessions and {streams} streams over {shared} backend connections; memory {at_rest} KiB at rest, \
         {with_sessions} KiB with sessions ({:.1} KiB each), {with_streams} KiB with streams ({:.1} KiB each), \
         peak {peak} KiB, PSS {shared_fairly} KiB, of which the program file is {} KiB",
        each(with_sessions, at_rest, sessions),
        each(with_streams, with_sessions, streams),
        memory_kb(&gateway.process, "status", "RssFile:"),
    );
    let program = memory_kb(&gateway.process, "status", "RssFile:");
    let most = program + REST_KB + EACH_KB * (sessions + streams);
    assert!(peak.max(shared_fairly) < most, "{peak} KiB at most, {program} of the program, where {most} were allowed");
}

/// A URI so long that a few hundred updates fill what a system takes for a client that does not read.
fn long_uri() -> String {
    format!("test://template/{}/data", "x".repeat(4000))
}

/// Updates in one burst: fewer than wait for one stream before the first is dropped.
const BURST: u64 = 50;
/// Most bursts until a client that does not read must have lost something.
const BURSTS: u64 = 100;
/// Bursts after that, in which the gateway must not grow any more.
const MORE: u64 = 10;
/// What it may grow by all the same: others' buffers, and the allocator's.
const GROWTH_KB: usize = 32 * 1024;

async fn slow_reader(era: &str) {
    let readers = asked_for("MCP_TEST_READERS", 20);
    let (gateway, _web, _) = gateway(readers, readers).await;
    let follow = long_uri();
    let mut slow = Holder::start(&gateway, &format!("--streams 1 --slow --era {era} --follow {follow}"));
    let mut fast = Holder::start(&gateway, &format!("--streams {} --era new --follow {follow}", readers - 1));
    slow.held().await;
    fast.held().await;
    let client = HttpClient::new(gateway.address());
    let dropped = "signalbox_dropped_total{reason=\"slow_client\"} ";

    let mut sent = 0;
    let mut bursts = 0;
    let (mut more, mut at_first_loss) = (0, None);
    while more < MORE {
        bursts += 1;
        assert!(bursts <= BURSTS, "after {sent} updates nothing was dropped for the client that does not read");
        for _ in 0..BURST {
            call(&client, "touch_resource", json!({"uri": follow})).await;
            sent += 1;
        }
        let count = fast.all_got("updates", sent).await;
        assert_eq!(count["updates"]["most"], sent, "nobody else loses one, or gets one twice: {count}");
        if metric(&gateway, dropped).await > 0 {
            at_first_loss.get_or_insert(rss_kb(&gateway));
            more += 1;
        }
    }
    let lost = metric(&gateway, dropped).await;
    let (before, after) = (at_first_loss.unwrap(), rss_kb(&gateway));
    println!(
        "slow reader of the {era} era among {readers}: {sent} updates, {lost} dropped for it and none for others; \
         memory {before} KiB at the first loss, {after} KiB {} updates later",
        MORE * BURST
    );
    assert!(after < before + GROWTH_KB, "{before} KiB grew to {after} KiB");
    let count = fast.count().await;
    assert_eq!(count["open"], readers - 1, "{count}");

    // It can catch up: what was kept for it arrives, and so does what comes next.
    slow.order("read").await;
    let kept = sent - lost;
    let count = slow.all_got("updates", kept).await;
    assert_eq!((&count["updates"]["most"], &count["open"]), (&json!(kept), &json!(1)), "{count}");
    call(&client, "touch_resource", json!({"uri": follow})).await;
    slow.all_got("updates", kept + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_does_not_read_harms_none_of_the_others() {
    slow_reader("new").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_stream_is_not_read_harms_none_of_the_others() {
    slow_reader("old").await;
}
