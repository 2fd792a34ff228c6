//! Rules through the real gateway: what they answer, whom they ask, and that they follow their file.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{ask, call, child, eventually, signalbox, status};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const VERSION: &str = "2025-06-18";

async fn session(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap()
}

/// The message that answers a call of `greet`.
async fn greet(client: &HttpClient, id: u64, name: &str) -> Value {
    let message = call(id, "greet", &json!({"name": name})).to_string();
    client.post(&message).await.unwrap().message().unwrap()
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// A verdict that is never given.
const SILENCE: &str = "silence";

/// A web server that answers every POST with what `judge` makes of its body, and remembers the bodies.
async fn judge(judge: fn(&Value) -> String) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/judge", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let remembered = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let remembered = Arc::clone(&remembered);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while let Ok(read @ 1..) = socket.read_buf(&mut seen).await {
                    let Some(body) = whole_body(&seen) else { continue };
                    let body: Value = serde_json::from_slice(body).unwrap();
                    let answer = judge(&body);
                    remembered.lock().unwrap().push(body);
                    if answer == SILENCE {
                        std::future::pending::<()>().await;
                    }
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
                    socket.write_all((head + &answer).as_bytes()).await.unwrap();
                    seen.clear();
                    let _ = read;
                }
            });
        }
    });
    (url, asked)
}

fn whole_body(seen: &[u8]) -> Option<&[u8]> {
    let head = seen.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&seen[..head]).ok()?.to_ascii_lowercase();
    let length: usize = text.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse().ok()?;
    seen.get(head + 4..head + 4 + length)
}

/// A web address judges a message: it refuses, answers, changes, or is not there.
/// Proves S-26 and S-54.
#[tokio::test(flavor = "multi_thread")]
async fn a_web_address_judges_calls_and_its_absence_blocks_or_allows() {
    let (url, asked) = judge(|body| {
        let name = body["message"]["params"]["arguments"]["name"].as_str().unwrap_or_default();
        match name {
            "refuse" => json!({"verdict": "refuse", "reason": "the judge says no"}).to_string(),
            "reply" => {
                json!({"verdict": "reply", "result": {"content": [{"type": "text", "text": "judged"}]}}).to_string()
            }
            "modify" => {
                let mut message = body["message"].clone();
                message["params"]["arguments"]["name"] = json!("changed");
                json!({"verdict": "modify", "message": message}).to_string()
            }
            _ => String::new(),
        }
    })
    .await;
    let rules = format!(
        r#"
[[rules]]
id = "judge"
when = {{ tool = "greet" }}
then = {{ webhook = {{ url = "{url}", timeout = "10s", wait = true, on_failure = "block" }} }}
[[rules]]
id = "absent"
when = {{ tool = "whoami" }}
then = {{ webhook = {{ url = "http://127.0.0.1:1/", timeout = "5s", wait = true, on_failure = "block" }} }}
[[rules]]
id = "absent-but-allowed"
when = {{ tool = "count" }}
then = {{ webhook = {{ url = "http://127.0.0.1:1/", timeout = "5s", wait = true, on_failure = "allow" }} }}
"#
    );
    let gateway = GatewayProcess::serve(&(child("only", ServedEra::Old, "").unwrap() + &rules)).await.unwrap();
    let client = session(&gateway).await;
    assert_eq!(text(&greet(&client, 1, "Ada").await), "Hello, Ada!");
    assert!(greet(&client, 2, "refuse").await["error"]["message"].as_str().unwrap().contains("the judge says no"));
    assert_eq!(text(&greet(&client, 3, "reply").await), "judged");
    assert_eq!(text(&greet(&client, 4, "modify").await), "Hello, changed!");
    let blocked = client.post(&call(5, "whoami", &json!({})).to_string()).await.unwrap().message().unwrap();
    assert!(blocked["error"].is_object(), "{blocked}");
    assert_eq!(ask(&client, "count", json!({})).await.unwrap(), "1");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    assert_eq!(
        (&asked[0]["rule"]["id"], &asked[0]["exchange"]["backend"]),
        (&json!("judge"), &json!("only")),
        "{}",
        asked[0]
    );
}

/// A caller with an API key of its own.
async fn caller(gateway: &GatewayProcess, name: &str) -> HttpClient {
    let key = signalbox(&gateway.data_dir(), &["keys", "new", name]).await.unwrap();
    let web = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()));
    eventually("the key is known", async || web.initialize("2025-03-26", json!({})).await.ok()).await.unwrap()
}

/// A caller who asks a webhook more than it answers neither gets past it nor holds up others, though the webhook's
/// silence lets calls pass.
#[tokio::test(flavor = "multi_thread")]
async fn one_caller_with_many_questions_to_a_webhook_neither_gets_past_it_nor_holds_up_others() {
    let (url, asked) = judge(|body| match body["message"]["params"]["arguments"]["name"].as_str() {
        Some("slow") => SILENCE.to_owned(),
        Some("forbidden") => json!({"verdict": "refuse", "reason": "the judge says no"}).to_string(),
        _ => String::new(),
    })
    .await;
    let rule = format!(
        "[[rules]]\nid = 'judge'\nwhen = {{ tool = 'greet' }}\n\
         then = {{ webhook = {{ url = '{url}', timeout = '3s', wait = true, on_failure = 'allow' }} }}\n"
    );
    let security = "[mcp.protocol.security]\nrequire_authentication = true\n";
    let config = format!("{security}{}{rule}", child("only", ServedEra::Old, "").unwrap());
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, vic) = (caller(&gateway, "ada").await, caller(&gateway, "vic").await);
    assert!(greet(&ada, 1, "forbidden").await["error"]["message"].as_str().unwrap().contains("the judge says no"));
    let flood: Vec<_> = (0..4_u64)
        .map(|number| {
            let calls: Vec<_> =
                (0..100).map(|one| call(1000 + number * 100 + one, "greet", &json!({"name": "slow"}))).collect();
            let ada = ada.clone();
            tokio::spawn(async move { ada.post(&json!(calls).to_string()).await })
        })
        .collect();
    let full = async || (asked.lock().unwrap().len() > 60).then_some(());
    eventually("many questions are under way", full).await.unwrap();
    let (forbidden, fine) = tokio::join!(greet(&ada, 2, "forbidden"), greet(&vic, 3, "fine"));
    assert!(forbidden["error"].is_object(), "{forbidden}");
    assert_eq!(text(&fine), "Hello, fine!", "{fine}");
    flood.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Rules follow their file while the gateway runs, and a bad file changes nothing.
/// Proves S-24 and SO-14.
#[tokio::test(flavor = "multi_thread")]
async fn rules_follow_their_file_and_a_bad_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.toml");
    let rule = |text: &str| {
        let answer = format!("{{ content = [{{ type = \"text\", text = \"{text}\" }}] }}");
        format!(
            "[[rules]]\nid = \"mock\"\nwhen = {{ tool = \"greet\" }}\nthen = {{ mock = {{ result = {answer} }} }}\n"
        )
    };
    std::fs::write(&file, rule("first")).unwrap();
    let config = format!("[gateway]\nrule_files = [\"rules.toml\"]\n{}", child("only", ServedEra::Old, "").unwrap());
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = session(&gateway).await;
    assert_eq!(text(&greet(&client, 1, "x").await), "first");
    std::fs::write(&file, rule("second, and longer")).unwrap();
    let mut id = 10;
    let changed = async || {
        id += 1;
        (text(&greet(&client, id, "x").await) == "second, and longer").then_some(())
    };
    eventually("the changed rule is in force", changed).await.unwrap();
    std::fs::write(&file, "[[rules]]\nid = 7\n").unwrap();
    let data_dir = gateway.data_dir();
    let told = async || Some(status(&data_dir).await.ok()?["reload"]["last_error"].as_str()?.to_owned());
    let error = eventually("the status tells why", told).await.unwrap();
    assert!(error.contains("rules.toml:2"), "{error}");
    assert_eq!(text(&greet(&client, 9, "x").await), "second, and longer");
}

/// Made up results come from a file beside the rules, and follow it while the gateway runs.
/// Proves S-24 and SO-6.
#[tokio::test(flavor = "multi_thread")]
async fn made_up_results_follow_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answers.jsonl");
    let line = |text: &str| json!({"content": [{"type": "text", "text": text}]}).to_string() + "\n";
    std::fs::write(&file, line("first") + &line("second for {{/params/arguments/name}}")).unwrap();
    let rule =
        "[[rules]]\nid = \"mock\"\nwhen = { tool = \"greet\" }\nthen = { mock = { file = \"answers.jsonl\" } }\n";
    let gateway = GatewayProcess::serve_in(folder, &(child("only", ServedEra::Old, "").unwrap() + rule)).await.unwrap();
    let client = session(&gateway).await;
    assert_eq!(text(&greet(&client, 1, "x").await), "first");
    assert_eq!(text(&greet(&client, 2, "ann").await), "second for ann");
    assert_eq!(text(&greet(&client, 3, "x").await), "first");
    std::fs::write(&file, line("another")).unwrap();
    let mut id = 10;
    let changed = async || {
        id += 1;
        (text(&greet(&client, id, "x").await) == "another").then_some(())
    };
    eventually("the changed results are given", changed).await.unwrap();
}

/// Limits, counts and copies, each seen from outside.
/// Proves S-23, SO-4 and SO-5.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_limited_counted_and_copied_elsewhere() {
    let rules = r#"
[[rules]]
id = "copy"
priority = 3
when = { tool = "one__count" }
then = { fork = "two" }
[[rules]]
id = "tally"
priority = 2
when = { method = "tools/call" }
then = { count = "calls" }
[[rules]]
id = "few"
priority = 1
when = { tool = "one__greet" }
then = { rate_limit = { limit = 2, per = "1h" } }
"#;
    let backends = child("one", ServedEra::Old, "").unwrap() + &child("two", ServedEra::Old, "").unwrap();
    let gateway = GatewayProcess::serve(&(backends + rules)).await.unwrap();
    let client = session(&gateway).await;
    for _ in 0..2 {
        ask(&client, "one__greet", json!({"name": "x"})).await.unwrap();
    }
    let message = call(20, "one__greet", &json!({"name": "x"})).to_string();
    let limited = client.post(&message).await.unwrap().message().unwrap();
    assert!(limited["error"]["data"]["retryAfterMs"].as_u64().is_some(), "{limited}");
    ask(&client, "one__count", json!({})).await.unwrap();
    // The copy reached the other backend too, whose count has moved on.
    let copied = async || (ask(&client, "two__count", json!({})).await.ok()?.parse::<u64>().ok()? > 1).then_some(());
    eventually("the copy is counted", copied).await.unwrap();
    let metrics = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let page = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(page.contains("signalbox_rule_counts_total{name=\"calls\"}"), "{page}");
    // The recorder writes in batches, so the calls may not be on the tape yet.
    let recorded = async || {
        let found = signalbox(&gateway.data_dir(), &["tape", "search", "--tool", "one__greet", "--json"]).await.ok()?;
        found.contains("one__greet").then_some(())
    };
    eventually("the calls are found on the tape", recorded).await.unwrap();
}

/// A rule is switched off and on in the file that the configuration has it from, and the running gateway follows.
/// Proves SO-1.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_switched_off_and_on_where_it_stands_and_the_gateway_follows() {
    let rule = |id: &str, tool: &str| {
        format!(
            "# About {id}.\n[[rules]]\nid = \"{id}\"\nwhen = {{ tool = \"{tool}\" }}\nthen = {{ block = \"{id} says no\" }}\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let more = folder.path().join("more.toml");
    std::fs::write(&more, rule("named", "greet")).unwrap();
    let config = "[gateway]\nrule_files = [\"more.toml\"]\n".to_owned()
        + &child("only", ServedEra::Old, "").unwrap()
        + &rule("inside", "count");
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    gateway.ready().await.unwrap();
    let (client, own) = (session(&gateway).await, gateway.config_file());
    let path = own.to_str().unwrap();
    let blocked = async |tool: &str| {
        let message = call(1, tool, &json!({"name": "Ada"})).to_string();
        let answer = client.post(&message).await.unwrap().message().unwrap();
        answer["error"]["message"].as_str().is_some_and(|text| text.contains("says no"))
    };
    for (id, tool, file, other) in [("named", "greet", &more, "count"), ("inside", "count", &own, "greet")] {
        assert!(blocked(tool).await && blocked(other).await, "{id}");
        let before = std::fs::read_to_string(file).unwrap();
        signalbox(&gateway.data_dir(), &["rules", "disable", id, "-c", path]).await.unwrap();
        let passes = async || (!blocked(tool).await).then_some(());
        eventually(&format!("{id} is off"), passes).await.unwrap();
        assert!(blocked(other).await, "the other rule holds while {id} is off");
        let off = std::fs::read_to_string(file).unwrap();
        assert!(off.contains("enabled = false") && before.lines().all(|line| off.contains(line)), "{off}");

        signalbox(&gateway.data_dir(), &["rules", "enable", id, "-c", path]).await.unwrap();
        let holds = async || blocked(tool).await.then_some(());
        eventually(&format!("{id} is on"), holds).await.unwrap();
    }
}
