//! The audit log of a real gateway: what is in it, what happens when the process or a sink fails, and how tampering
//! shows.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod administration;
mod bad_days;
mod columns;
mod confirmed_actions;
mod glass;
mod listens;
mod local_answers;
mod moves;
mod nothing_done;
mod notifications;
mod policies_and_backends;
#[allow(dead_code, reason = "the suite of stores needs more of it")]
#[path = "../../../store/tests/suite/postgres_server.rs"]
mod postgres_server;
mod receiver;
mod redacted_places;
mod refusals;
mod relay;
mod sample;
mod sign_ins;
mod small_disk;
mod tampering;
mod tape_reads;

use postgres_server::PostgresServer;
use receiver::Receiver;
use serde_json::{Value, json};
use signalbox_seal::SigningKey;
use signalbox_seal::signed_json::{SignatureTerms, sign_request};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{ask, call, child, eventually, signalbox};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const VERSION: &str = "2025-06-18";

const RULES: &str = r#"
[[rules]]
id = "no-secrets"
when = { tool = "greet", params = { "/params/arguments/name" = { contains = "forbidden" } } }
then = [{ block = "nobody says that" }]
"#;

fn config(audit: &str, sinks: &str) -> String {
    let backend = child("one", ServedEra::Old, "").unwrap();
    format!("[mcp.protocol.audit]\nenabled = true\n{audit}\n[mcp.protocol.audit.sinks]\n{sinks}\n{backend}{RULES}")
}

async fn session(gateway: &GatewayProcess) -> HttpClient {
    gateway.ready().await.unwrap();
    HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap()
}

async fn greet(client: &HttpClient, id: u64, name: &str) -> Value {
    client.post(&call(id, "greet", &json!({ "name": name })).to_string()).await.unwrap().message().unwrap()
}

/// What `audit` says of a folder that a gateway had.
fn audit(folder: &Path, args: &[&str]) -> (bool, String) {
    let mut command = std::process::Command::new(built("signalbox").unwrap());
    command.arg("audit").args(args).arg("-c").arg(folder.join("signalbox.toml"));
    let output = command.arg("--data-dir").arg(folder.join("data")).current_dir(folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.success(), text)
}

/// The records that fit, once there are so many.
async fn search(gateway: &GatewayProcess, args: &[&str], enough: usize) -> Vec<Value> {
    let file = gateway.config_file().display().to_string();
    let all: Vec<&str> = ["audit", "search", "--json", "--limit", "1000000", "-c", &file]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    let look = async || {
        let text = signalbox(&gateway.data_dir(), &all).await.ok()?;
        let found: Vec<Value> = serde_json::from_str(&text).ok()?;
        (found.len() >= enough).then_some(found)
    };
    eventually(&format!("{enough} records fit {args:?}"), look).await.unwrap()
}

fn log_of(folder: &Path) -> PathBuf {
    folder.join("data/audit/audit.log")
}

/// The records of a file that a gateway has left, without those about the log itself.
fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_phase<'a>(records: &'a [Value], phase: &'a str) -> impl Iterator<Item = &'a Value> {
    records.iter().filter(move |record| record["details"]["phase"] == phase)
}

/// Calls and refusals are in the log, with who, what was decided, by which policy, and how risky it is; each part of a
/// search narrows it.
/// Proves G-25, G-26, G-27 and G-39.
#[tokio::test(flavor = "multi_thread")]
async fn calls_and_violations_are_in_the_log() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let client = session(&gateway).await;
    assert_eq!(ask(&client, "greet", json!({"name": "Ada"})).await.unwrap(), "Hello, Ada!");
    assert!(greet(&client, 2, "forbidden").await["error"].is_object());
    let calls = search(&gateway, &["--type", "tool_invocation"], 3).await;
    let [intent, outcome, denied] = &calls[..] else { panic!("{calls:#?}") };
    assert_eq!((&intent["details"]["phase"], &outcome["details"]["phase"]), (&json!("intent"), &json!("outcome")));
    assert_eq!(intent["correlation_id"], outcome["correlation_id"]);
    assert!(intent["correlation_id"].as_str().unwrap().starts_with("audit-"), "{intent}");
    assert_eq!(
        (&intent["source"], &intent["details"]["tool"], &intent["details"]["backend"]),
        (&json!("mcp_protocol"), &json!("greet"), &json!("one"))
    );
    assert_eq!((&outcome["details"]["status"], &outcome["details"]["decision"]), (&json!("success"), &json!("allow")));
    assert_eq!(
        (&outcome["user_context"]["principal"], &outcome["user_context"]["trust_level"]),
        (&json!("anonymous"), &json!("untrusted"))
    );
    assert_eq!(
        (&denied["details"]["status"], &denied["details"]["policy"], &denied["details"]["forwarded"]),
        (&json!("denied"), &json!("rules/no-secrets"), &json!(false))
    );
    assert!(intent["details"].get("arguments").is_none(), "{intent}");
    let violations = search(&gateway, &["--type", "security_violation"], 1).await;
    assert_eq!((&violations[0]["source"], &violations[0]["risk_level"]), (&json!("mcp_security"), &json!("high")));
    assert_eq!(violations[0]["correlation_id"], denied["correlation_id"]);
    let id = intent["correlation_id"].as_str().unwrap();
    assert_eq!(search(&gateway, &["--id", id], 2).await.len(), 2);
    assert_eq!(
        search(
            &gateway,
            &["--status", "denied", "--backend", "one", "--tool", "gr*", "--principal", "anon*", "--since", "1h"],
            1
        )
        .await
        .len(),
        1
    );
    assert_eq!(search(&gateway, &["--until", "1h"], 0).await.len(), 0);
    let folder = gateway.terminate().await.unwrap();
    let (good, text) = audit(folder.path(), &["verify"]);
    assert!(good && text.contains("whole:"), "{text}");
    let (_, table) = audit(folder.path(), &["search"]);
    assert!(table.contains("greet") && table.contains("denied"), "{table}");
    let (_, csv) = audit(folder.path(), &["export", "--format", "csv", "--status", "denied"]);
    assert!(csv.lines().count() == 2 && csv.contains("rules/no-secrets"), "{csv}");
    let same = audit(folder.path(), &["export", "--format", "csv", "--status", "denied", "-o", "-"]);
    assert_eq!(same, (true, csv));
    assert!(!folder.path().join("-").exists(), "`-` is standard output");
    let (_, lines) = audit(folder.path(), &["export", "--id", id]);
    assert_eq!(lines.lines().count(), 2, "{lines}");
}

/// What was changed, removed, moved or cut off is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_tampered_record_is_named() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..5 {
        greet(&client, id, "Ada").await;
    }
    search(&gateway, &["--type", "tool_invocation"], 10).await;
    let folder = gateway.terminate().await.unwrap();
    let log = log_of(folder.path());
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let verdict = |lines: &[String]| {
        std::fs::write(&log, lines.join("\n") + "\n").unwrap();
        audit(folder.path(), &["verify"])
    };
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert!(verdict(&own(&lines)).0);
    let mut changed = own(&lines);
    changed[3] = changed[3].replace("greet", "great");
    let (good, said) = verdict(&changed);
    assert!(!good && said.contains("audit.log:4: record 4 was changed"), "{said}");
    let mut removed = own(&lines);
    removed.remove(2);
    let (good, said) = verdict(&removed);
    assert!(!good && said.contains("audit.log:3: records 3 to 3 are missing"), "{said}");
    let mut moved = own(&lines);
    moved.swap(4, 6);
    let (good, said) = verdict(&moved);
    assert!(
        !good && said.contains("audit.log:5: records 5 to 6 are missing") && said.contains("record 6 is not where"),
        "{said}"
    );
    let (good, said) = verdict(&own(&lines[..lines.len() - 4]));
    assert!(!good && said.contains("are missing"), "{said}");
    assert!(verdict(&own(&lines)).0);
}

/// `kill -9` at any step leaves an intent without an outcome at worst, and a chain that is whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_an_intent_of_every_call_that_left() {
    let mut folder = tempfile::tempdir().unwrap();
    // The first result after a start would wait until the guard is ready.
    let (text, mut answered) = (config("payloads = true\n", "[guard]\nlevel = 'off'\n"), Vec::new());
    let rounds = rounds(6);
    for round in 0..rounds {
        let gateway = GatewayProcess::serve_in(folder, &text).await.unwrap();
        let client = session(&gateway).await;
        let mut calls = tokio::task::JoinSet::new();
        for lane in 0..4 {
            let client = client.clone();
            calls.spawn(async move {
                let mut done = Vec::new();
                for number in 0_u64.. {
                    let name = format!("r{round}-{lane}-{number}");
                    let body = call(lane * 1_000_000 + number, "greet", &json!({ "name": name })).to_string();
                    match client.post(&body).await.ok().and_then(|answer| answer.message().ok()) {
                        Some(answer) if answer["result"].is_object() => done.push(name),
                        _ => break,
                    }
                }
                done
            });
        }
        // Not a measured time: a moment that differs from round to round, at which the process is killed.
        tokio::time::sleep(Duration::from_millis(40 + 35 * round)).await;
        folder = gateway.stop().await.unwrap();
        while let Some(done) = calls.join_next().await {
            answered.extend(done.unwrap());
        }
    }
    // The next start brings the sink what it had not got.
    let gateway = GatewayProcess::serve_in(folder, &text).await.unwrap();
    gateway.ready().await.unwrap();
    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let intended: std::collections::HashMap<&str, &Value> =
        of_phase(&all, "intent").map(|intent| (intent["correlation_id"].as_str().unwrap(), intent)).collect();
    let names: std::collections::HashSet<&str> =
        intended.values().filter_map(|intent| intent["details"]["arguments"]["name"].as_str()).collect();
    assert!(!answered.is_empty());
    for name in &answered {
        assert!(names.contains(name.as_str()), "{name} was answered and has no intent");
    }
    for outcome in of_phase(&all, "outcome").filter(|outcome| outcome["details"]["forwarded"] == true) {
        assert!(intended.contains_key(outcome["correlation_id"].as_str().unwrap()), "{outcome}");
    }
    let (good, said) = audit(folder.path(), &["verify"]);
    assert!(good, "{said}");
}

/// The records of the journals of a gateway, as they are on disk now.
fn journal(data_dir: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    for chain in std::fs::read_dir(data_dir.join("audit/journal")).unwrap() {
        for file in std::fs::read_dir(chain.unwrap().path()).into_iter().flatten() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let text = std::fs::read_to_string(path).unwrap();
                // A record that is being written just now has no end yet.
                found.extend(text.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()));
            }
        }
    }
    found
}

/// Kills the process once its journal has the intent of a call, and gives what the next start makes of it.
async fn killed_after_intent(text: &str, tool: &str, arguments: Value) -> (tempfile::TempDir, Vec<Value>) {
    let gateway = GatewayProcess::serve(text).await.unwrap();
    let (client, data_dir) = (session(&gateway).await, gateway.data_dir());
    let body = call(1, tool, &arguments).to_string();
    let waiting = tokio::spawn(async move { client.post(&body).await });
    let there = async || of_phase(&journal(&data_dir), "intent").next().is_some().then_some(());
    eventually("the intent is on disk", there).await.unwrap();
    let folder = gateway.stop().await.unwrap();
    assert!(waiting.await.unwrap().is_err(), "nobody was left to answer");
    let text = text.lines().filter(|line| !line.contains("remote") && !line.contains("required"));
    let gateway = GatewayProcess::serve_in(folder, &text.collect::<Vec<_>>().join("\n")).await.unwrap();
    let counted = ask(&session(&gateway).await, "count", json!({})).await.unwrap();
    assert_eq!(counted, "1");
    let folder = gateway.terminate().await.unwrap();
    let (good, said) = audit(folder.path(), &["verify"]);
    assert!(good, "{said}");
    let all = records(&log_of(folder.path()));
    (folder, all)
}

/// Killed between intent and call, and between call and answer, there is an intent without an outcome, and the chain
/// goes on after it; killed between answer and outcome, there is at least the intent.
#[tokio::test(flavor = "multi_thread")]
async fn killed_between_two_steps_a_call_has_an_intent_and_no_outcome() {
    // A sink that is required and hangs: the intent is on disk, and the call has not left.
    let hanging = format!("remote_sink = true\nremote_endpoint = {:?}", Receiver::hanging().await);
    let (_folder, before) = killed_after_intent(&config("required = [\"remote\"]", &hanging), "count", json!({})).await;
    // The backend works on it.
    let (_folder, during) = killed_after_intent(&config("", ""), "slow", json!({"ms": 600_000})).await;
    for (all, tool) in [(before, "count"), (during, "slow")] {
        let of_first: Vec<&Value> = all.iter().filter(|record| record["details"]["tool"] == tool).collect();
        let first = of_first.first().unwrap();
        assert_eq!(first["details"]["phase"], "intent", "{all:#?}");
        let outcomes = of_phase(&all, "outcome").filter(|outcome| outcome["correlation_id"] == first["correlation_id"]);
        assert_eq!(outcomes.count(), 0, "{all:#?}");
        assert_eq!(of_phase(&all, "outcome").count(), 1, "the call after the restart has one: {all:#?}");
    }
    // The client has its answer; the outcome may not be written yet.
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let client = session(&gateway).await;
    assert_eq!(ask(&client, "greet", json!({"name": "Ada"})).await.unwrap(), "Hello, Ada!");
    let folder = gateway.stop().await.unwrap();
    let left = journal(&folder.path().join("data"));
    assert_eq!(of_phase(&left, "intent").count(), 1, "{left:#?}");
    assert!(of_phase(&left, "outcome").count() <= 1, "{left:#?}");
}

/// How often something is done: little in the suite, much in `script/prove`.
fn rounds(usual: u64) -> u64 {
    std::env::var("MCP_TEST_AUDIT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The address of a database of the test's own server, as the configuration has it.
fn database_url(address: &str) -> String {
    let part = |name: &str| address.split(' ').find_map(|part| part.strip_prefix(&format!("{name}="))).unwrap();
    format!("postgresql://postgres:s3cret@{}:{}/{}", part("host").replace('/', "%2F"), part("port"), part("dbname"))
}

/// A PostgreSQL that goes away for a while and a remote sink have in the end what the file has, record by record.
/// Proves G-40, G-41 and NO-7.
#[tokio::test(flavor = "multi_thread")]
async fn all_sinks_have_the_same_records_in_the_end() {
    let Some(server) = tokio::task::spawn_blocking(PostgresServer::start).await.unwrap() else { return };
    let server = std::sync::Arc::new(server);
    let on_server = async |sql: &'static str| {
        let server = server.clone();
        tokio::task::spawn_blocking(move || server.run(sql)).await.unwrap();
    };
    let address = {
        let server = server.clone();
        tokio::task::spawn_blocking(move || server.database()).await.unwrap()
    };
    let url = database_url(&address);
    let remote = Receiver::start().await;
    let sinks = format!("database_url = \"{url}\"\nremote_sink = true\nremote_endpoint = \"{}\"\n", remote.url);
    let gateway = GatewayProcess::serve(&config("", &sinks)).await.unwrap();
    let client = session(&gateway).await;
    let calls: u64 = std::env::var("MCP_TEST_AUDIT_CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(90);
    for id in 0..calls {
        if id == calls / 3 {
            on_server("ALTER DATABASE d0 WITH ALLOW_CONNECTIONS false").await;
            on_server("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'd0'").await;
        }
        if id == 2 * calls / 3 {
            on_server("ALTER DATABASE d0 WITH ALLOW_CONNECTIONS true").await;
        }
        let name = if id % 10 == 0 { "forbidden" } else { "Ada" };
        greet(&client, id, name).await;
    }
    let denied = calls.div_ceil(10);
    let outcomes = ["--type", "tool_invocation", "--status", "denied"];
    search(&gateway, &outcomes, usize::try_from(denied).unwrap()).await;
    let written = async || {
        let rows = search(&gateway, &["--database", "--type", "tool_invocation"], 0).await;
        (rows.len() as u64 == 2 * calls - denied).then_some(())
    };
    eventually("the database has every record", written).await.unwrap();
    let folder = gateway.terminate().await.unwrap();
    let in_file = records(&log_of(folder.path()));
    let (good, exported) = audit(folder.path(), &["export", "--database"]);
    assert!(good, "{exported}");
    let in_database: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let without_heads: Vec<&Value> = in_file.iter().filter(|record| record["event_type"] != "chain_head").collect();
    assert_eq!(in_database.iter().collect::<Vec<_>>(), without_heads);
    let (good, said) = audit(folder.path(), &["verify", "--database"]);
    assert!(good, "{said}");
    let all = async || (remote.records().len() >= in_file.len()).then_some(());
    eventually("the remote sink has every record", all).await.unwrap();
    assert_eq!(remote.records(), in_file);
    let rows = tokio::task::spawn_blocking(move || {
        let mut database = postgres::Client::connect(&address, postgres::NoTls).unwrap();
        let sql = "SELECT response_status, count(*) FROM signalbox.audit_log WHERE tool_name = 'greet' AND client_subject = 'anonymous'
            AND request_id ~ '^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' AND latency_ms >= 0 AND created_at IS NOT NULL GROUP BY 1 ORDER BY 1";
        let rows = database.query(sql, &[]).unwrap();
        rows.iter().map(|row| (row.get::<_, String>(0), row.get::<_, i64>(1) as u64)).collect::<Vec<_>>()
    });
    let expected = [("denied".to_owned(), denied), ("success".to_owned(), calls - denied)];
    assert_eq!(rows.await.unwrap(), expected);
}

/// A full disk and a hanging address hold up nobody who did not ask for it, and the others get everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_and_a_hanging_address_hold_up_nobody() {
    let hanging = Receiver::hanging().await;
    let sinks = format!(
        "file_path = \"/dev/full\"\ndatabase_url = \"sqlite:audit.db\"\nremote_sink = true\nremote_endpoint = \"{hanging}\"\nsyslog = \"udp://127.0.0.1:9\"\n"
    );
    let gateway = GatewayProcess::serve(&config("", &sinks)).await.unwrap();
    let client = session(&gateway).await;
    let begun = Instant::now();
    for id in 0..30 {
        assert!(greet(&client, id, "Ada").await["result"].is_object());
    }
    // The address is given up after 10 s: whoever waited for it once would be later than this.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let found = search(&gateway, &["--database", "--type", "tool_invocation"], 60).await;
    assert_eq!(of_phase(&found, "intent").count(), 30);
    let state = signalbox(&gateway.data_dir(), &["status", "--json"]).await;
    assert!(state.is_ok());
    let folder = gateway.stop().await.unwrap();
    let (good, said) = audit(folder.path(), &["verify", "--database"]);
    assert!(good, "{said}");
}

/// A required sink that cannot write stops calls, which the backend never sees; violations are in the other sinks.
/// Proves G-27.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_does_not_leave_without_a_sink_that_is_required() {
    let sinks = "file_path = \"/dev/full\"\ndatabase_url = \"sqlite:audit.db\"\n";
    let gateway = GatewayProcess::serve(&config("required = [\"file\"]\n", sinks)).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..3 {
        let answer = greet(&client, id, "Ada").await;
        assert_eq!(answer["error"]["data"]["reason"], "not_recorded", "{answer}");
    }
    let found = search(&gateway, &["--database", "--status", "not_recorded"], 3).await;
    assert_eq!(found.len(), 3);
}

/// What is switched off is not written, and `enabled = false` writes nothing at all.
/// Proves G-38.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_switched_off_is_not_written() {
    let gateway = GatewayProcess::serve(&config("log_tool_invocations = false\n", "")).await.unwrap();
    let client = session(&gateway).await;
    greet(&client, 1, "Ada").await;
    greet(&client, 2, "forbidden").await;
    search(&gateway, &["--type", "security_violation"], 1).await;
    let folder = gateway.terminate().await.unwrap();
    assert!(records(&log_of(folder.path())).iter().all(|record| record["event_type"] != "tool_invocation"));
    let off = config("", "").replace("enabled = true", "enabled = false");
    let gateway = GatewayProcess::serve(&off).await.unwrap();
    greet(&session(&gateway).await, 1, "Ada").await;
    let folder = gateway.terminate().await.unwrap();
    assert!(!folder.path().join("data/audit").exists());
}

/// A role that may read payloads, apart from those that may not; secrets are in nobody's records.
#[tokio::test(flavor = "multi_thread")]
async fn payloads_are_shown_only_to_those_who_may_read_them() {
    // A text that is filled in with an argument is as secret as that.
    let quoting = "[[rules]]\nid = 'quotes'\nwhen = { tool = 'greet', params = { '/params/arguments/name' = 'quoted-canary' } }\n\
        then = [{ log = 'logged {{/params/arguments/name}}' }, { block = 'not {{/params/arguments/name}}' }]\n";
    let audited = config("payloads = true\n", "");
    let text = format!("[mcp.protocol.security]\nrequire_authentication = true\n{audited}{quoting}");
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    gateway.ready().await.unwrap();
    let key = async |name: &str, roles: &[&str]| {
        let mut args = vec!["keys", "new", name];
        roles.iter().for_each(|role| args.extend(["--role", role]));
        let key = signalbox(&gateway.data_dir(), &args).await.unwrap().trim().to_owned();
        HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"))
    };
    let caller = key("caller", &[]).await;
    let begin = async || caller.clone().initialize(VERSION, json!({})).await.ok();
    let client = eventually("the key is known", begin).await.unwrap();
    let arguments = json!({"name": "payload-canary", "password": "hunter2-canary"});
    client.post(&call(1, "greet", &arguments).to_string()).await.unwrap();
    assert!(greet(&client, 2, "quoted-canary").await["error"].is_object());
    let seen = async |who: &HttpClient| {
        let look = async || {
            let answer = who.get("/api/v1/audit?tool=greet").await.ok()?;
            if answer.status == 401 {
                return None;
            }
            let text = String::from_utf8(answer.body.to_vec()).ok()?;
            let is_all = text.contains("outcome") && text.contains("policy_violation");
            (answer.status == 403 || is_all).then_some((answer.status, text))
        };
        eventually("the API answers", look).await.unwrap()
    };
    let (status, text) = seen(&key("reader", &["auditor_payloads"]).await).await;
    assert!(status == 200 && text.contains("payload-canary") && !text.contains("hunter2-canary"), "{text}");
    assert!(text.contains("not quoted-canary") && text.contains("logged quoted-canary"), "{text}");
    for role in ["auditor", "admin"] {
        let (status, text) = seen(&key(role, &[role]).await).await;
        assert!(status == 200 && !text.contains("payload-canary") && text.contains("[withheld]"), "{role}: {text}");
        assert!(!text.contains("quoted-canary"), "{role}: {text}");
    }
    let (status, text) = seen(&caller).await;
    assert!(status == 403 && !text.contains("greet"), "{text}");
    let stranger = HttpClient::new(gateway.address()).get("/api/v1/audit").await.unwrap();
    assert_eq!(stranger.status, 401);
    let tried = HttpClient::new(gateway.address()).post(&call(1, "greet", &json!({})).to_string()).await.unwrap();
    assert_eq!(tried.status, 401);
    // What a stranger tried is a violation.
    let found = search(&gateway, &["--type", "security_violation"], 2).await;
    assert_eq!(found[1]["details"]["violation"], "authentication_failed", "{found:?}");
}

/// A forged message is a critical violation, in every sink, and somebody is told at once.
/// Proves G-27.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_message_is_critical_and_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let socket = tokio::net::UnixDatagram::bind(folder.path().join("log")).unwrap();
    let alerts = Receiver::start().await;
    let audit = format!("alert_webhook = \"{}\"\n", alerts.url);
    let sinks = format!("syslog = \"unix://{}\"\n", folder.path().join("log").display());
    let text = format!("{}[seal]\nrequire = [\"one\"]\n", config(&audit, &sinks).replace(RULES, ""));
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    let client = session(&gateway).await;
    let key = SigningKey::from_seed(&[9; 32]).unwrap();
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let message = call(7, "greet", &json!({"name": "Ada"})).to_string();
    let signed = sign_request(
        message.as_bytes(),
        &key,
        &SignatureTerms::new("0123456789abcdef0123456789abcdef", now, now + 60_000),
    );
    let forged = String::from_utf8(signed.unwrap().to_vec()).unwrap();
    let forged = forged.replace(r#""domain":"request""#, r#""domain":"audit""#);
    let answer = client.post(&forged).await.unwrap().message().unwrap();
    assert_eq!(answer["error"]["data"]["reason"], "wrong_domain", "{answer}");
    let found = search(&gateway, &["--risk", "critical"], 1).await;
    assert_eq!((&found[0]["source"], &found[0]["event_type"]), (&json!("mcp_security"), &json!("security_violation")));
    let told = async || alerts.bodies.lock().unwrap().first().cloned();
    let alert = eventually("somebody is told", told).await.unwrap();
    assert_eq!((&alert["alert"], &alert["event"]["hash"]), (&json!("security_violation"), &found[0]["hash"]));
    let heard = async || {
        let mut buffer = vec![0; 65_536];
        let length = socket.recv(&mut buffer).await.ok()?;
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        (text.starts_with("<106>1 ") && text.contains(" security_violation - {") && text.contains("wrong_domain"))
            .then_some(())
    };
    eventually("syslog has it", heard).await.unwrap();
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    for family in [
        "signalbox_audit_lost_total 0",
        "signalbox_audit_waiting{sink=\"syslog\"}",
        "signalbox_audit_skipped_total{sink=\"alert\"} 0",
    ] {
        assert!(page.contains(family), "{family}: {page}");
    }
}
