//! Outages of a database, a disk or an address: no record is lost, calls stay fast unless the configuration makes them
//! wait, and the gateway recovers by itself.
//!
//! `MCP_TEST_AUDIT_AWAY` is how many seconds things are away; a few in the suite, a minute in `script/prove`.

use crate::postgres_server::PostgresServer;
use crate::receiver::Receiver;
use crate::small_disk::SmallDisk;
use crate::{audit, config, database_url, greet, log_of, of_phase, records, search, session};
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{PATIENCE, ask, call, eventually, signalbox, status};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// What a steady client does between two calls.
const PAUSE: Duration = Duration::from_millis(5);
fn away() -> Duration {
    let seconds = std::env::var("MCP_TEST_AUDIT_AWAY").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(3))
}

/// Clients that call all the time. Every call has to succeed.
struct Steady {
    done: Arc<AtomicU64>,
    /// How long the slowest call took since it was last asked, in milliseconds.
    slowest: Arc<AtomicU64>,
    enough: Arc<AtomicBool>,
    lanes: Vec<JoinHandle<()>>,
}

impl Steady {
    fn start(client: &HttpClient) -> Self {
        let (done, slowest, enough) = <(Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicBool>)>::default();
        let lane = |lane: u64| {
            let (client, done) = (client.clone(), Arc::clone(&done));
            let (slowest, enough) = (Arc::clone(&slowest), Arc::clone(&enough));
            tokio::spawn(async move {
                for number in 0.. {
                    let begun = Instant::now();
                    let answer = greet(&client, lane * 1_000_000 + number, "Ada").await;
                    assert!(answer["result"].is_object(), "{answer}");
                    slowest.fetch_max(u64::try_from(begun.elapsed().as_millis()).unwrap(), Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Relaxed);
                    if enough.load(Ordering::Relaxed) {
                        return;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            })
        };
        let lanes = vec![lane(1), lane(2)];
        Self { done, slowest, enough, lanes }
    }

    /// How many calls were done in the next second.
    async fn second(&self) -> u64 {
        let before = self.done.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.done.load(Ordering::Relaxed) - before
    }

    /// How many calls a second are done in a good time: the most of a few.
    async fn good(&self) -> u64 {
        let mut good = 0;
        for _ in 0..3 {
            good = good.max(self.second().await);
        }
        good
    }

    /// Waits as long as something is away, and sees that calls go on as in a good time. A busy machine may be slow
    /// meanwhile, so this goes on until one second is nearly as good: calls that wait for an outage never have one.
    async fn undisturbed(&self, what: &str, good: u64) {
        self.slowest.store(0, Ordering::Relaxed);
        let (begun, before, mut best) = (Instant::now(), self.done.load(Ordering::Relaxed), 0);
        while begun.elapsed() < away() || best < good / 3 {
            best = best.max(self.second().await);
            assert!(begun.elapsed() < away() + PATIENCE, "{what}: at most {best} calls in a second instead of {good}");
        }
        let (took, slowest) = (begun.elapsed().as_secs_f64(), self.slowest.load(Ordering::Relaxed));
        let rate = (self.done.load(Ordering::Relaxed) - before) as f64 / took;
        eprintln!("\naudit: {what} for {took:.0} s: {rate:.0} calls/s, before {good}; the slowest took {slowest} ms");
    }

    /// All calls that were made.
    async fn end(self) -> u64 {
        self.enough.store(true, Ordering::Relaxed);
        for lane in self.lanes {
            lane.await.unwrap();
        }
        self.done.load(Ordering::Relaxed)
    }
}

/// What `status` says of the log, and of one sink of it.
async fn told(gateway: &GatewayProcess, sink: &str) -> Option<(Value, Value)> {
    let audit = status(&gateway.data_dir()).await.ok()?["audit"].clone();
    let of_sink = audit["sinks"].as_array()?.iter().find(|one| one["name"] == sink)?.clone();
    Some((audit, of_sink))
}

/// Waits until a sink has everything.
async fn caught_up(gateway: &GatewayProcess, sink: &str) {
    let look = async || {
        let (audit, of_sink) = told(gateway, sink).await?;
        (of_sink["taken"] == audit["written"] && of_sink["failing"].is_null()).then_some(())
    };
    eventually(&format!("the sink `{sink}` catches up"), look).await.unwrap();
}

/// Every call has an intent and an outcome here, and no record is missing.
fn all_there(records: &[Value], calls: u64) {
    for phase in ["intent", "outcome"] {
        assert_eq!(of_phase(records, phase).count() as u64, calls, "{phase}");
    }
    assert!(records.iter().all(|record| record["event_type"] != "records_lost"));
}

/// The records of the database, which are those of the file; heads are not exported.
fn same_in_database(folder: &Path, in_file: &[Value]) {
    let (good, exported) = audit(folder, &["export", "--database"]);
    assert!(good, "{exported}");
    let in_database: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let without_heads: Vec<&Value> = in_file.iter().filter(|record| record["event_type"] != "chain_head").collect();
    assert!(in_database.iter().eq(without_heads.iter().copied()), "{} and {}", in_database.len(), without_heads.len());
    for args in [&["verify"][..], &["verify", "--database"]] {
        let (good, said) = audit(folder, args);
        assert!(good, "{said}");
    }
}

/// How a server is away.
enum Gone {
    Stopped,
    Hanging,
}

/// While PostgreSQL is away, calls go on as before; afterwards it gets everything that it missed.
async fn while_postgres_is_away(gone: Gone) {
    let Some(mut server) = tokio::task::block_in_place(PostgresServer::start) else { return };
    let url = database_url(&tokio::task::block_in_place(|| server.database()));
    let gateway = GatewayProcess::serve(&config("", &format!("database_url = \"{url}\"\n"))).await.unwrap();
    let client = session(&gateway).await;
    let steady = Steady::start(&client);
    let taking = async || told(&gateway, "database").await.filter(|(_, sink)| sink["taken"].as_u64() > Some(0));
    eventually("the database takes records", taking).await.unwrap();
    let good = steady.good().await;
    match gone {
        Gone::Stopped => {
            tokio::task::block_in_place(|| server.stop());
            steady.undisturbed("PostgreSQL is stopped", good).await;
            let (_, sink) = told(&gateway, "database").await.unwrap();
            assert!(sink["failing"].is_string() && sink["waiting"].as_u64() > Some(0), "{sink}");
            tokio::task::block_in_place(|| server.start_again());
        }
        Gone::Hanging => {
            let hanging = tokio::task::block_in_place(|| server.hang());
            steady.undisturbed("PostgreSQL hangs", good).await;
            let (_, sink) = told(&gateway, "database").await.unwrap();
            assert!(sink["waiting"].as_u64() > Some(0), "{sink}");
            drop(hanging);
        }
    }
    let calls = steady.end().await;
    caught_up(&gateway, "database").await;
    let folder = gateway.terminate().await.unwrap();
    let in_file = records(&log_of(folder.path()));
    all_there(&in_file, calls);
    same_in_database(folder.path(), &in_file);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_that_is_stopped_for_a_while_loses_nothing_and_slows_nobody() {
    while_postgres_is_away(Gone::Stopped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_that_hangs_for_a_while_loses_nothing_and_slows_nobody() {
    while_postgres_is_away(Gone::Hanging).await;
}

/// A remote sink that hangs for a while slows nobody, and gets everything afterwards, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_remote_sink_that_hangs_for_a_while_loses_nothing_and_slows_nobody() {
    // What is good is measured without the sink, which hangs from the beginning.
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let steady = Steady::start(&session(&gateway).await);
    let good = steady.good().await;
    steady.end().await;
    drop(gateway);
    let (remote, begin) = Receiver::late().await;
    let sinks = format!("remote_sink = true\nremote_endpoint = \"{}\"\n", remote.url);
    let gateway = GatewayProcess::serve(&config("", &sinks)).await.unwrap();
    let steady = Steady::start(&session(&gateway).await);
    steady.undisturbed("a remote sink hangs", good).await;
    let (_, sink) = told(&gateway, "remote").await.unwrap();
    assert!(sink["taken"] == 0 && sink["waiting"].as_u64() > Some(0), "{sink}");
    begin.send(()).unwrap();
    let calls = steady.end().await;
    caught_up(&gateway, "remote").await;
    let folder = gateway.terminate().await.unwrap();
    let in_file = records(&log_of(folder.path()));
    all_there(&in_file, calls);
    let all = async || (remote.records().len() >= in_file.len()).then_some(());
    eventually("the remote sink has every record", all).await.unwrap();
    assert_eq!(remote.records().len(), in_file.len());
    assert_eq!(remote.records(), in_file);
}

/// Fills a disk, and calls until the log says that something cannot be written there.
async fn fill_until(disk: &SmallDisk, client: &HttpClient, is_full: impl AsyncFn() -> Option<bool>) -> u64 {
    let calls = AtomicU64::new(0);
    let look = async || {
        // What was freed meanwhile is taken as well, and what is left of a page is written on.
        disk.fill();
        let number = calls.fetch_add(1, Ordering::Relaxed);
        greet(client, 100_000 + number, "Ada").await;
        is_full().await?.then_some(())
    };
    eventually("the disk is full", look).await.unwrap();
    calls.into_inner()
}

/// A full disk under the file sink slows nobody; once there is room the file has everything, and is whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_one_sink_loses_nothing_and_slows_nobody() {
    let Some(disk) = SmallDisk::mount() else { return };
    let log = disk.path().join("logs/audit.log");
    let sinks = format!("file_path = {log:?}\ndatabase_url = \"sqlite:audit.db\"\n");
    let gateway = GatewayProcess::serve(&config("", &sinks)).await.unwrap();
    let client = session(&gateway).await;
    let steady = Steady::start(&client);
    search(&gateway, &["--type", "tool_invocation"], 1).await;
    let good = steady.good().await;
    let failing = async || Some(told(&gateway, "file").await?.1["failing"].is_string());
    let more = fill_until(&disk, &client, failing).await;
    steady.undisturbed("the disk of the file sink is full", good).await;
    let (audit, sink) = told(&gateway, "file").await.unwrap();
    assert!(sink["failing"].as_str().unwrap().contains("No space left"), "{sink}");
    assert_eq!((&audit["lost"], &audit["failing"]), (&0.into(), &Value::Null), "{audit}");
    disk.clear();
    caught_up(&gateway, "file").await;
    let calls = steady.end().await + more;
    caught_up(&gateway, "database").await;
    let folder = gateway.terminate().await.unwrap();
    let in_file = records(&log);
    all_there(&in_file, calls);
    same_in_database(folder.path(), &in_file);
}

/// The data folder itself is full, so that no journal can be written. Calls go on where no sink is required; what is
/// lost is counted, and told by a record once there is room. The chain is whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_data_folder_stops_no_call_and_what_is_lost_is_told() {
    let Some(disk) = SmallDisk::mount() else { return };
    let folder = tempfile::tempdir_in(disk.path()).unwrap();
    let gateway = GatewayProcess::serve_in(folder, &config("", "")).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..5 {
        assert!(greet(&client, id, "Ada").await["result"].is_object());
    }
    let full = async || Some(told(&gateway, "file").await?.0["failing"].is_string());
    let more = fill_until(&disk, &client, full).await;
    for id in 10..40 {
        let answer = greet(&client, id, "Ada").await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    let (audit_told, _) = told(&gateway, "file").await.unwrap();
    assert!(audit_told["failing"].as_str().unwrap().contains("No space left"), "{audit_told}");
    assert!(audit_told["lost"].as_u64() >= Some(30), "{audit_told}");
    disk.clear();
    // Nobody has to call for that.
    let works = async || told(&gateway, "file").await.filter(|(audit, _)| audit["failing"].is_null());
    let (recovered, _) = eventually("the journal is written again", works).await.unwrap();
    assert!(greet(&client, 50, "Ada").await["result"].is_object());
    search(&gateway, &["--type", "records_lost"], 1).await;
    caught_up(&gateway, "file").await;
    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let counted: u64 = all
        .iter()
        .filter(|record| record["event_type"] == "records_lost")
        .map(|record| record["details"]["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, recovered["lost"].as_u64().unwrap());
    let there = of_phase(&all, "intent").count() + of_phase(&all, "outcome").count();
    let missing = 2 * (5 + more + 30 + 1) - there as u64;
    // A signed head may be among what was lost.
    assert!((missing..=missing + 3).contains(&counted), "{missing} are missing, {counted} were counted");
    let (good, said) = audit(folder.path(), &["verify"]);
    assert!(!good && said.contains(&format!("{counted} records could not be written")), "{said}");
}

/// A loss is known while the gateway runs, after `kill -9`, and after the next start: `audit verify` never calls
/// such a log whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_loss_on_a_full_data_folder_survives_the_process() {
    let Some(disk) = SmallDisk::mount() else { return };
    let folder = tempfile::tempdir_in(disk.path()).unwrap();
    let place = folder.path().to_owned();
    let gateway = GatewayProcess::serve_in(folder, &config("", "")).await.unwrap();
    let client = session(&gateway).await;
    assert!(greet(&client, 1, "Ada").await["result"].is_object());
    let full = async || Some(told(&gateway, "file").await?.0["failing"].is_string());
    fill_until(&disk, &client, full).await;
    for id in 10..40 {
        assert!(greet(&client, id, "Ada").await["result"].is_object());
    }
    let at_least = |when: &str| -> u64 {
        let (good, said) = audit(&place, &["verify"]);
        let number =
            said.split_once("at least ").and_then(|(_, rest)| rest.split_once(" records could not be written"));
        assert!(!good && said.contains("with gaps: "), "{when}: {said}");
        number.and_then(|(number, _)| number.parse().ok()).unwrap_or_else(|| panic!("{when}: {said}"))
    };
    let running = at_least("while it runs");
    assert!(running >= 30, "{running}");
    let folder = gateway.stop().await.unwrap();
    disk.clear();
    assert!(at_least("after kill -9") >= running);
    let gateway = GatewayProcess::serve_in(folder, &config("", "")).await.unwrap();
    search(&gateway, &["--type", "records_lost"], 1).await;
    assert!(at_least("after a start") >= running);
    let _folder = gateway.terminate().await.unwrap();
    assert!(at_least("after the end") >= running);
}

/// Where a sink is required, a full data folder refuses calls by name, the backend sees none of them, and calls go on
/// by themselves once there is room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_data_folder_refuses_calls_where_a_sink_is_required() {
    let Some(disk) = SmallDisk::mount() else { return };
    let folder = tempfile::tempdir_in(disk.path()).unwrap();
    let gateway = GatewayProcess::serve_in(folder, &config("required = [\"file\"]", "")).await.unwrap();
    let client = session(&gateway).await;
    let counted = async || ask(&client, "count", json!({})).await;
    assert_eq!(counted().await.unwrap(), "1");
    let refused = async || {
        let answer = greet(&client, 7, "Ada").await;
        Some(answer["error"]["data"]["reason"] == "not_recorded")
    };
    fill_until(&disk, &client, refused).await;
    for id in 10..20 {
        let body = call(id, "count", &json!({})).to_string();
        let answer = client.post(&body).await.unwrap().message().unwrap();
        assert_eq!(answer["error"]["data"]["reason"], "not_recorded", "{answer}");
    }
    disk.clear();
    let passes = async || counted().await.ok();
    assert_eq!(eventually("calls pass again", passes).await.unwrap(), "2", "the backend saw none that was refused");
    let folder = gateway.terminate().await.unwrap();
    let (good, said) = audit(folder.path(), &["verify"]);
    // What was to be written of the refused calls is lost, and the log says so.
    assert!(good || said.contains("with gaps:"), "{said}");
}

/// A sink that is further behind than `spool_max` gets a signed gap in place of the oldest records; what it has can be
/// verified with that, and the others have everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_is_behind_by_more_than_spool_max_gets_a_signed_gap() {
    let (remote, begin) = Receiver::late().await;
    let sinks = format!("remote_sink = true\nremote_endpoint = \"{}\"\n", remote.url);
    let gateway = GatewayProcess::serve(&config("spool_max = 65536\nrequired = [\"file\"]", &sinks)).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..150 {
        assert!(greet(&client, id, "Ada").await["result"].is_object());
    }
    let kept: u64 = crate::journal(&gateway.data_dir()).iter().map(|record| record.to_string().len() as u64).sum();
    assert!(kept < 2 * 65_536, "the journal has {kept} bytes");
    begin.send(()).unwrap();
    caught_up(&gateway, "remote").await;
    let (_, sink) = told(&gateway, "remote").await.unwrap();
    let folder = gateway.terminate().await.unwrap();
    let in_file = records(&log_of(folder.path()));
    all_there(&in_file, 150);
    let all = async || remote.records().last().filter(|last| *last == in_file.last().unwrap()).cloned();
    eventually("the remote sink has the last record", all).await.unwrap();
    let there = remote.records();
    let (gap, rest) = there.split_first().unwrap();
    let missing = gap["to"].as_u64().unwrap() + 1 - gap["from"].as_u64().unwrap();
    assert_eq!((&gap["from"], Some(missing)), (&json!(1), sink["skipped"].as_u64()), "{gap}");
    assert_eq!(rest, &in_file[usize::try_from(missing).unwrap()..]);
    let copy = folder.path().join("remote.jsonl");
    std::fs::write(&copy, there.iter().map(|record| format!("{record}\n")).collect::<String>()).unwrap();
    let (good, said) = audit(folder.path(), &["verify"]);
    assert!(good, "{said}");
    let (good, said) = audit(folder.path(), &["verify", "--file", copy.to_str().unwrap()]);
    assert!(!good && said.starts_with("with gaps: ") && said.contains("records in signed gaps"), "{said}");
}

/// A chain that no process takes up again, such as that of a command, waited in its journal for ever, and
/// `audit verify` said that the log was whole.
#[tokio::test(flavor = "multi_thread")]
async fn records_that_ended_processes_left_behind_are_delivered_at_the_next_start() {
    let (remote, begin) = Receiver::late().await;
    let text = config("", &format!("remote_sink = true\nremote_endpoint = {:?}", remote.url));
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    let client = session(&gateway).await;
    let file = gateway.config_file().display().to_string();
    for id in 0..3 {
        greet(&client, id, "Ada").await;
    }
    signalbox(&gateway.data_dir(), &["keys", "new", "later", "-c", &file]).await.unwrap();
    search(&gateway, &["--type", "tool_invocation"], 6).await;
    let folder = gateway.terminate().await.unwrap();
    let left = records(&log_of(folder.path()));
    let chains: HashSet<&Value> = left.iter().map(|record| &record["chain"]).collect();
    assert!(chains.len() == 2 && remote.records().is_empty(), "{chains:?}");
    begin.send(()).unwrap();
    let _gateway = GatewayProcess::serve_in(folder, &text).await.unwrap();
    let all = async || {
        let arrived = remote.records();
        left.iter().all(|record| arrived.contains(record)).then_some(())
    };
    eventually("the remote sink has what both processes left behind", all).await.unwrap();
}
