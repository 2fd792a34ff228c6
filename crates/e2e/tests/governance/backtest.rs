//! Rules tried on a tape that a real gateway recorded with rules of every kind: the same rules give the same verdicts,
//! and another threshold changes exactly the calls that arithmetic says.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{call, child, eventually};
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::Command;

const VERSION: &str = "2025-06-18";
/// How many clients call at the same time.
const CLIENTS: usize = 8;
/// How many calls under one key the limiter lets through, in so long a time that none comes back meanwhile.
const LIMIT: usize = 7;

/// The kinds of calls, by the beginning of their name; each has rules of its own.
const KINDS: [&str; 20] = [
    "plain",
    "blocked",
    "failing",
    "rude",
    "rewritten",
    "listed",
    "random",
    "seeded",
    "unseeded",
    "garbled",
    "slow",
    "limited",
    "cached",
    "brief",
    "delayed",
    "hook-pass",
    "hook-refuse",
    "hook-reply",
    "hook-modify",
    "expiring",
];

fn rules(url: &str, limit: usize) -> String {
    let text = |text: &str| format!(r#"{{ content = [{{ type = "text", text = "{text}" }}] }}"#);
    let on = |id: &str, kind: &str, then: String| {
        format!(
            "[[rules]]\nid = \"{id}\"\nwhen = {{ tool = \"greet\", params = {{ \"/arguments/name\" = {{ starts_with = \"{kind}\" }} }} }}\nthen = [{then}]\n"
        )
    };
    let fault = |rest: &str| format!("{{ fault = {{ {rest} }} }}");
    [
        on("block", "blocked", r#"{ block = "not this" }"#.into()),
        on("fail", "failing", r#"{ error = { code = -32050, message = "no" } }"#.into()),
        on("polite", "rude", r#"{ set = { "/params/arguments/name" = "kind ${unix_ms}" } }"#.into()),
        "[[rules]]\nid = \"rewrite\"\nwhen = { phase = \"response\", tool = \"greet\", params = { \"/arguments/name\" = { starts_with = \"rewritten\" } } }\nthen = { set = { \"/result/content/0/text\" = \"rewritten for {{/params/arguments/name}}\" } }\n".to_owned(),
        on("list", "listed", format!("{{ mock = {{ list = [{}, {}, {}] }} }}", text("one"), text("two"), text("three"))),
        on("random", "random", format!("{{ mock = {{ random = [{}, {}, {}] }} }}", text("a"), text("b"), text("c"))),
        on("seeded", "seeded", fault(r#"kind = "error", probability = 0.5, seed = 7"#)),
        on("unseeded", "unseeded", fault(r#"kind = "reset", probability = 0.5"#)),
        on("garble", "garbled", fault(r#"kind = "garble", probability = 0.7"#)),
        on("slow", "slow", fault(r#"kind = "slow", after = "2ms", probability = 0.5"#)),
        on(
            "limit",
            "limited",
            format!("{{ rate_limit = {{ key = \"{{{{/params/arguments/name}}}}\", limit = {limit}, per = \"24h\" }} }}"),
        ),
        on("keep", "cached", r#"{ cache = { key = "{{/params/arguments/name}}", ttl = "1h" } }"#.into()),
        on("keep-briefly", "brief", r#"{ cache = { key = "{{/params/arguments/name}}", ttl = "40ms" } }"#.into()),
        on("delay", "delayed", r#"{ delay = { between = ["1ms", "4ms"] } }"#.into()),
        on("judge", "hook-", format!(r#"{{ webhook = {{ url = "{url}", timeout = "30s", wait = true }} }}"#)),
        on("expire", "expiring", r#"{ hold = { reason = "look", within = "5ms", on_expiry = "release" } }"#.into()),
        on("person", "person", r#"{ hold = { reason = "decide", within = "60s" } }"#.into()),
        "[[rules]]\nid = \"tally\"\npriority = -5\nwhen = { method = \"tools/call\" }\nthen = [{ count = \"calls\" }, { log = { level = \"debug\", text = \"${tool}\" } }]\n".to_owned(),
        "[[rules]]\nid = \"all\"\npriority = -6\nwhen = { tool = \"greet\" }\nthen = { rate_limit = { key = \"${session}\", limit = 1000000, per = \"1h\" } }\n".to_owned(),
    ]
    .concat()
}

/// A web server that decides by the name in a call.
async fn judge() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/judge", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while let Ok(1..) = socket.read_buf(&mut seen).await {
                    let Some(body) = whole_body(&seen) else { continue };
                    let answer = decided(&serde_json::from_slice(body).unwrap());
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
                    if socket.write_all((head + &answer).as_bytes()).await.is_err() {
                        return;
                    }
                    seen.clear();
                }
            });
        }
    });
    url
}

fn decided(body: &Value) -> String {
    let name = body["message"]["params"]["arguments"]["name"].as_str().unwrap_or_default();
    match name.split(' ').next().unwrap_or_default() {
        "hook-refuse" => json!({"verdict": "refuse", "reason": "no"}).to_string(),
        "hook-reply" => {
            json!({"verdict": "reply", "result": {"content": [{"type": "text", "text": name}]}}).to_string()
        }
        "hook-modify" => {
            let mut message = body["message"].clone();
            message["params"]["arguments"]["name"] = json!(format!("changed {name}"));
            json!({"verdict": "modify", "message": message}).to_string()
        }
        _ => String::new(),
    }
}

fn whole_body(seen: &[u8]) -> Option<&[u8]> {
    let head = seen.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&seen[..head]).ok()?.to_ascii_lowercase();
    let length: usize = text.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse().ok()?;
    seen.get(head + 4..head + 4 + length)
}

/// The exit code and the output of `signalbox ARGS`.
async fn signalbox(data_dir: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(args).arg("--data-dir").arg(data_dir).current_dir(data_dir).env("USER", "ada");
    let output = command.kill_on_drop(true).output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

/// A backtest as JSON, with its exit code.
async fn backtest(data_dir: &Path, config: &Path, tape: &str) -> (Option<i32>, Value) {
    let config = config.to_str().unwrap();
    let (code, text) = signalbox(data_dir, &["backtest", tape, "-c", config, "--json", "--examples", "2"]).await;
    (code, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// The name that the call of this number has. Limited ones share few keys, and so do cached ones.
fn name_of(number: usize) -> String {
    let kind = KINDS[number % KINDS.len()];
    let round = number / KINDS.len();
    match kind {
        "limited" => format!("limited {}", round % keys()),
        "cached" | "brief" => format!("{kind} {}", round % 5),
        _ => format!("{kind} {number}"),
    }
}

fn calls() -> usize {
    std::env::var("MCP_TEST_BACKTEST_CALLS").ok().map_or(600, |count| count.parse().unwrap())
}

/// How many keys the limited calls have.
fn keys() -> usize {
    (calls() / KINDS.len() / 15).max(1)
}

async fn many_calls(gateway: &GatewayProcess) {
    let address = gateway.address();
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|client| {
            tokio::spawn(async move {
                let session = HttpClient::new(address).initialize(VERSION, json!({})).await.unwrap();
                for number in (client..calls()).step_by(CLIENTS) {
                    let message = call(number as u64, "greet", &json!({"name": name_of(number)})).to_string();
                    session.post(&message).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Calls that a person decides about: released, edited, answered, refused.
async fn held_calls(gateway: &GatewayProcess) {
    let client = Arc::new(HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap());
    let edit = json!({"name": "greet", "arguments": {"name": "edited"}}).to_string();
    let ways: [&[&str]; 4] = [
        &["hold", "release"],
        &["hold", "edit", "--params", &edit],
        &["hold", "answer", "--text", "by hand"],
        &["hold", "refuse", "--reason", "not today"],
    ];
    for (number, way) in (0..).zip(ways) {
        let message = call(number, "greet", &json!({"name": format!("person {number}")})).to_string();
        let waits = tokio::spawn({
            let client = Arc::clone(&client);
            async move { client.post(&message).await.unwrap() }
        });
        let data_dir = gateway.data_dir();
        let done = async || (signalbox(&data_dir, way).await.0 == Some(0)).then_some(());
        eventually("the held call is decided about", done).await.unwrap();
        waits.await.unwrap();
    }
}

/// The configuration that recorded a tape decides about it as it did, every time; another threshold changes exactly the
/// calls that arithmetic says.
#[tokio::test(flavor = "multi_thread")]
async fn the_rules_that_recorded_a_tape_decide_the_same_and_another_threshold_changes_what_it_must() {
    let url = judge().await;
    let backend = child("only", ServedEra::Old, "").unwrap();
    let with = |limit: usize| format!("{backend}{}", rules(&url, limit));
    let gateway = GatewayProcess::serve(&with(LIMIT)).await.unwrap();
    gateway.ready().await.unwrap();
    many_calls(&gateway).await;
    held_calls(&gateway).await;
    let data_dir = gateway.data_dir();
    let folder = tempfile::tempdir().unwrap();
    let config = |limit: usize| {
        let file = folder.path().join(format!("limit-{limit}.toml"));
        std::fs::write(&file, with(limit)).unwrap();
        file
    };
    // Each session begins with a request too.
    let requests = (calls() + 4 + CLIENTS + 1) as u64;
    let mut report = Value::Null;
    for _ in 0..30 {
        report = backtest(&data_dir, &config(LIMIT), "last").await.1;
        if report["calls"] == requests {
            break;
        }
    }
    assert_eq!(report["calls"], requests, "not all calls are on the tape: {report:#}");
    let tape = folder.path().join("calls.tape");
    let tape = tape.to_str().unwrap();
    assert_eq!(signalbox(&data_dir, &["tape", "export", "last", "-o", tape]).await.0, Some(0));

    let (code, report) = backtest(&data_dir, &config(LIMIT), tape).await;
    assert_eq!((code, &report["groups"]), (Some(0), &json!([])), "{report:#}");
    assert_eq!(report["classes"]["same"], report["judged"]);

    // How often each key was used, and how many uses more or fewer fit into the other limits.
    let mut uses = vec![0; keys()];
    (0..calls())
        .filter(|number| KINDS[number % KINDS.len()] == "limited")
        .for_each(|number| uses[number / KINDS.len() % keys()] += 1);
    let fewer: usize = uses.iter().map(|uses| uses.min(&LIMIT) - uses.min(&(LIMIT - 3))).sum();
    let more: usize = uses.iter().map(|uses| uses.min(&(LIMIT + 3)) - uses.min(&LIMIT)).sum();
    assert!(fewer > 0 && more > 0);

    let (code, report) = backtest(&data_dir, &config(LIMIT - 3), tape).await;
    assert_eq!(code, Some(1));
    let group = &report["groups"][0];
    assert_eq!(
        (&group["class"], &group["rule"], &group["tool"]),
        (&json!("blocked"), &json!("limit"), &json!("greet"))
    );
    assert_eq!((&group["count"], report["groups"].as_array().unwrap().len()), (&json!(fewer), 1), "{report:#}");
    assert_eq!(group["examples"].as_array().unwrap().len(), 2);

    // What is let through now has no recorded answer for the rules about answers.
    let (code, report) = backtest(&data_dir, &config(LIMIT + 3), tape).await;
    let classes = &report["classes"];
    assert_eq!((code, &classes["allowed"], &classes["unknown"]), (Some(1), &json!(more), &json!(more)), "{report:#}");
    assert_eq!(classes["same"], json!(report["judged"].as_u64().unwrap() - 2 * more as u64), "{report:#}");
    let judged = &report["judged"];
    eprintln!(
        "backtest: {requests} calls, {judged} verdicts, all the same; {fewer} blocked below the limit, {more} allowed above"
    );

    let lenient = config(LIMIT - 3);
    let args = ["backtest", tape, "-c", lenient.to_str().unwrap(), "--fail-on", "held,unknown"];
    let (code, text) = signalbox(&data_dir, &args).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("blocked") && text.contains("passed, now refused by limit"), "{text}");
    assert_eq!(signalbox(&data_dir, &["backtest", tape, "--fail-on", "nonsense"]).await.0, Some(2));
}
