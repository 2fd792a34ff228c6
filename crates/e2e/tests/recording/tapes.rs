//! Tapes of a real gateway: whole sessions, explanations from the tape alone, and failures of the process or the store.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{ask, call, child, eventually, signalbox, status};
use std::path::Path;

const VERSION: &str = "2025-06-18";

async fn session(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap()
}

async fn as_json(data_dir: &Path, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.push("--json");
    serde_json::from_str(&signalbox(data_dir, &all).await.unwrap()).unwrap()
}

/// The calls of the newest tape once `enough` of them are written.
async fn calls(data_dir: &Path, enough: usize) -> Vec<Value> {
    let look = async || {
        let shown = as_json(data_dir, &["tape", "show", "last"]).await;
        let calls = shown["calls"].as_array()?.clone();
        let tools: Vec<Value> = calls.into_iter().filter(|call| method(call) == "tools/call").collect();
        (tools.len() >= enough).then_some(tools)
    };
    eventually("the calls are on the tape", look).await.unwrap()
}

fn method(call: &Value) -> &str {
    find(call, "method").and_then(Value::as_str).unwrap_or_default()
}

/// A member of an entry, wherever its kind keeps it.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => members.get(name).or_else(|| members.values().find_map(|inner| find(inner, name))),
        _ => None,
    }
}

fn number(call: &Value) -> String {
    call["exchange"].to_string()
}

/// Four kinds of trouble, each told by the tape alone.
/// Proves S-63.
#[tokio::test(flavor = "multi_thread")]
async fn a_collided_a_blocked_a_modified_and_a_timed_out_call_explain_themselves() {
    let config = child("one", ServedEra::Old, "timeout = 1").unwrap()
        + &child("two", ServedEra::Old, "").unwrap()
        + r#"
[[rules]]
id = "no-secrets"
when = { tool = "one__greet", params = { "/params/arguments/name" = { contains = "forbidden" } } }
then = [{ block = "nobody says that" }]

[[rules]]
id = "polite"
when = { tool = "two__greet", params = { "/params/arguments/name" = { contains = "rude" } } }
then = [{ set = { "/params/arguments/name" = "kind words" } }]
"#;
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = session(&gateway).await;
    assert_eq!(ask(&client, "two__greet", json!({"name": "plain"})).await.unwrap(), "Hello, plain!");
    let blocked = client.post(&call(11, "one__greet", &json!({"name": "forbidden"})).to_string()).await.unwrap();
    assert!(blocked.message().unwrap()["error"]["message"].as_str().unwrap().contains("nobody says that"));
    assert_eq!(ask(&client, "two__greet", json!({"name": "rude words"})).await.unwrap(), "Hello, kind words!");
    let late = client.post(&call(12, "one__slow", &json!({"ms": 5_000})).to_string()).await.unwrap();
    assert_eq!(late.message().unwrap()["error"]["data"]["reason"], "timed_out");
    let data_dir = gateway.data_dir();
    let calls = calls(&data_dir, 4).await;
    let mut stories = Vec::new();
    for call in &calls {
        stories.push(signalbox(&data_dir, &["tape", "show", "last", "--exchange", &number(call)]).await.unwrap());
    }
    let story = |words: &[&str]| {
        let fits = |story: &&String| words.iter().all(|word| story.contains(word));
        stories.iter().find(fits).unwrap_or_else(|| panic!("no call tells of {words:?}: {stories:#?}"))
    };
    story(&["`two__greet` is `greet` of backend `two`", "\"plain\""]);
    story(&["no-secrets", "nobody says that", "forbidden", "refuse"]);
    story(&["polite", "rude words", "kind words", "modify"]);
    story(&["timed_out", "did not answer within 1 s"]);
}

/// What was said is found by its words, and secrets are not on the disk.
/// Proves S-31, S-36 and SO-10.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_found_and_secrets_are_not_on_the_disk() {
    let gateway = GatewayProcess::serve(&child("only", ServedEra::Old, "").unwrap()).await.unwrap();
    let client = session(&gateway).await;
    ask(&client, "greet", json!({"name": "the quick brown fox"})).await.unwrap();
    let secret = json!({"name": "x", "password": "hunter2-canary", "note": "Bearer canary0123456789abcdef"});
    let _ = client.post(&call(13, "greet", &secret).to_string()).await.unwrap();
    let data_dir = gateway.data_dir();
    calls(&data_dir, 2).await;
    let found = async || {
        let page = as_json(&data_dir, &["tape", "search", "\"quick brown\""]).await;
        Some(page).filter(|page| page["hits"].as_array().is_some_and(|hits| !hits.is_empty()))
    };
    eventually("the words are found", found).await.unwrap();
    let kept = gateway.stop().await.unwrap();
    for file in walk(kept.path()) {
        let bytes = std::fs::read(&file).unwrap();
        for canary in ["hunter2-canary", "canary0123456789abcdef"] {
            let held = bytes.windows(canary.len()).any(|window| window == canary.as_bytes());
            assert!(!held, "{} holds {canary}", file.display());
        }
    }
}

/// Who called, what the backend offered and by which rules was decided are on the tape, and the id of the session,
/// which is a credential, is not on the disk.
/// Proves S-28 and S-29.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_found_by_its_id_although_the_id_is_not_on_the_disk() {
    let config = child("only", ServedEra::Old, "").unwrap()
        + r#"
[[rules]]
id = "tell"
when = { tool = "greet" }
then = [{ log = "${tool} was called" }]
"#;
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = session(&gateway).await;
    ask(&client, "greet", json!({"name": "fox"})).await.unwrap();
    let data_dir = gateway.data_dir();
    let call = calls(&data_dir, 1).await.remove(0);
    let shown = as_json(&data_dir, &["tape", "show", "last"]).await;
    let known = &shown["sessions"][0];
    assert_eq!(known["proof"], "none", "{shown}");
    assert!(known["id"].as_str().unwrap().starts_with("hmac:"), "{shown}");
    assert_eq!(shown["rules"].as_array().unwrap().len(), 1, "{shown}");
    let id = client.session_id().unwrap().to_owned();
    let found = as_json(&data_dir, &["tape", "search", "--session-id", &id]).await;
    let of_session = |hit: &Value| hit["entry"]["session"] == call["session"];
    assert!(found["hits"].as_array().unwrap().iter().all(of_session), "{found}");
    assert!(found["hits"].as_array().unwrap().iter().any(|hit| hit["entry"]["exchange"] == call["exchange"]));
    let told = async || {
        let lines = signalbox(&data_dir, &["tape", "export", "last", "--format", "jsonl", "-o", "-"]).await.unwrap();
        let words = ["\"backend\":{\"backend\":\"only\"", "\"rules\":{\"hash\"", "logged: greet was called"];
        words.iter().all(|word| lines.contains(word)).then_some(())
    };
    eventually("the backend, the rules and what they logged are on the tape", told).await.unwrap();
    let kept = gateway.stop().await.unwrap();
    for file in walk(kept.path()).iter().filter(|file| file.to_string_lossy().contains("tapes.db")) {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(id.len()).any(|window| window == id.as_bytes()), "{} holds the id", file.display());
    }
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files
}

/// The process is killed at any time; with `strict` every answered call is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_a_store_that_opens_and_in_strict_mode_every_answered_call() {
    let rounds: u64 = std::env::var("MCP_TEST_KILLS").ok().map_or(5, |rounds| rounds.parse().unwrap());
    let mut folder = tempfile::tempdir().unwrap();
    // The first result after a start would wait until the guard is ready.
    let settings = "[record]\ndurability = \"strict\"\n[guard]\nlevel = 'off'\n";
    let config = format!("{}\n{settings}", child("only", ServedEra::Old, "").unwrap());
    let mut answered: Vec<String> = Vec::new();
    for round in 0..rounds {
        let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
        let client = session(&gateway).await;
        let told = |call: u64| format!("round-{round}-call-{call}");
        let calling = async {
            for call in 0.. {
                if ask(&client, "greet", json!({"name": told(call)})).await.is_err() {
                    break;
                }
                answered.push(told(call));
            }
        };
        // Not a measured time: a moment that differs from round to round, at which the process is killed.
        let moment = std::time::Duration::from_millis(60 + round * 37 % 200);
        let _ = tokio::time::timeout(moment, calling).await;
        folder = gateway.stop().await.unwrap();
    }
    let data_dir = folder.path().join("data");
    let tapes = as_json(&data_dir, &["tape", "list"]).await;
    let mut recorded = String::new();
    for tape in tapes.as_array().unwrap() {
        let id = tape["id"].as_str().unwrap();
        recorded += &signalbox(&data_dir, &["tape", "export", id, "--format", "jsonl", "-o", "-"]).await.unwrap();
        // A tape that was never closed, and never one that somebody changed.
        let verify = std::process::Command::new(built("signalbox").unwrap())
            .args(["tape", "verify", id, "--data-dir"])
            .arg(&data_dir)
            .output()
            .unwrap();
        let code = verify.status.code();
        assert!(matches!(code, Some(0 | 4)), "{code:?}: {}", String::from_utf8_lossy(&verify.stdout));
    }
    assert!(!answered.is_empty());
    for text in &answered {
        assert!(
            recorded.contains(&format!("{text}\\\"")) || recorded.contains(text),
            "{text} was answered and is not there"
        );
    }
}

/// A store that cannot be written stops nobody, and what is missing is counted and shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_written_stops_nobody_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    // A folder where the file should be can never be opened as one.
    std::fs::create_dir_all(folder.path().join("data/tapes.db")).unwrap();
    let gateway = GatewayProcess::serve_in(folder, &child("only", ServedEra::Old, "").unwrap()).await.unwrap();
    let client = session(&gateway).await;
    assert_eq!(ask(&client, "greet", json!({"name": "you"})).await.unwrap(), "Hello, you!");
    let data_dir = gateway.data_dir();
    let told = async || {
        let status = status(&data_dir).await.ok()?;
        Some(status["recording"]["last_error"].as_str()?.to_owned())
    };
    let error = eventually("the status tells of it", told).await.unwrap();
    assert!(error.contains("tapes.db"), "{error}");
}

/// An encrypted secret is on no page of the tape, until somebody brings the key.
/// Proves SO-10.
#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_secret_is_shown_to_whoever_has_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("tape.key");
    std::fs::write(&key, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n").unwrap();
    let redact = "[record.redact]\naction = \"encrypt\"\nkey_file = \"tape.key\"\nkey_id = \"k1\"\nkeys = [\"name\"]\n\
                  paths = [\"/params/arguments/name\"]\n";
    let config = redact.to_owned() + &child("only", ServedEra::Old, "").unwrap();
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let data_dir = gateway.data_dir();
    ask(&session(&gateway).await, "greet", json!({"name": "Rumpelstiltskin"})).await.unwrap();
    let call = number(&calls(&data_dir, 1).await[0]);
    let show = ["tape", "show", "last", "--exchange", &call];
    let hidden = signalbox(&data_dir, &show).await.unwrap();
    assert!(hidden.contains("enc:k1:"), "{hidden}");
    let asked = |text: &str| text.lines().any(|line| line.contains("arguments") && line.contains("Rumpelstiltskin"));
    assert!(!asked(&hidden), "{hidden}");
    let mut with_key = show.to_vec();
    let key = key.display().to_string();
    with_key.extend(["--key-file", &key]);
    let shown = signalbox(&data_dir, &with_key).await.unwrap();
    assert!(asked(&shown) && !shown.contains("enc:k1:"), "{shown}");
    let clear = signalbox(&data_dir, &["tape", "export", "last", "--format", "jsonl", "-o", "-", "--key-file", &key])
        .await
        .unwrap();
    assert!(asked(&clear) && !clear.contains("enc:k1:"), "{clear}");
}

/// What a search fits is counted by its properties, and a tape tells what followed what; so does a file of it.
/// Proves SO-11.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_by_what_is_known_of_them() {
    let gateway = GatewayProcess::serve(&child("only", ServedEra::Old, "").unwrap()).await.unwrap();
    let data_dir = gateway.data_dir();
    let client = session(&gateway).await;
    for _ in 0..2 {
        ask(&client, "greet", json!({"name": "Ada"})).await.unwrap();
        ask(&client, "count", json!({})).await.unwrap();
    }
    calls(&data_dir, 4).await;
    let file = data_dir.join("a.tape").display().to_string();
    signalbox(&data_dir, &["tape", "export", "last", "-o", &file]).await.unwrap();
    for tape in ["last", &file] {
        let all = as_json(&data_dir, &["tape", "search", "--facets", "--tape", tape, "--method", "tools/call"]).await;
        assert_eq!(all["calls"], 4, "{all}");
        assert_eq!(all["subjects"]["values"], json!({"count": 2, "greet": 2}));
        let word = as_json(&data_dir, &["tape", "search", "Ada", "--facets", "--tape", tape]).await;
        assert_eq!((&word["calls"], &word["outcomes"]["values"]), (&json!(2), &json!({"success": 2})));
        let stats = as_json(&data_dir, &["tape", "stats", tape]).await;
        let pairs = stats["analysis"]["pairs"].as_array().unwrap();
        assert!(pairs.contains(&json!({"first": "greet", "then": "count", "times": 2})), "{stats}");
        assert!(!stats["analysis"]["slowest"].as_array().unwrap().is_empty(), "{stats}");
    }
    let table = signalbox(&data_dir, &["tape", "search", "--facets"]).await.unwrap();
    assert!(table.contains("backend") && table.contains("only"), "{table}");
}

/// A store that cannot be used is told of at once and everywhere, and mended without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_written_is_told_of_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(data.join("tapes.db"), "this is no database, and long enough to be looked at by anybody").unwrap();
    let config = "[record]\nreadiness = true\n".to_owned() + &child("one", ServedEra::Old, "").unwrap();
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let data_dir = gateway.data_dir();
    assert_eq!(data_dir, data);
    let log = gateway.process.error_lines().join("\n");
    assert!(log.contains("NOTHING CAN BE RECORDED") && !log.contains("every call is recorded"), "{log}");
    assert!(log.contains("calls are NOT recorded"), "{log}");
    let shown = signalbox(&data_dir, &["status"]).await.unwrap();
    assert!(shown.contains("NOTHING CAN BE RECORDED"), "{shown}");
    let mut doctor = tokio::process::Command::new(built("signalbox").unwrap());
    doctor.arg("doctor").arg("--data-dir").arg(&data_dir).current_dir(&data_dir);
    let examined = doctor.output().await.unwrap();
    let found = String::from_utf8_lossy(&examined.stdout);
    assert!(!examined.status.success() && found.contains("nothing can be recorded"), "{found}");
    let ready = HttpClient::new(gateway.address()).get("/readyz").await.unwrap();
    assert_eq!(ready.status, 503, "{ready:?}");
    let metrics = async || {
        let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
        String::from_utf8_lossy(&page.body).into_owned()
    };
    assert!(metrics().await.contains("\nsignalbox_tape_failing 1\n"));
    // Calls are served all the same, and recorded once the store is there.
    ask(&session(&gateway).await, "greet", json!({"name": "Ann"})).await.unwrap();
    std::fs::remove_file(data_dir.join("tapes.db")).unwrap();
    let mended = async || status(&data_dir).await.ok()?["recording"]["failing"].is_null().then_some(());
    eventually("it records again", mended).await.unwrap();
    assert_eq!(HttpClient::new(gateway.address()).get("/readyz").await.unwrap().status, 200);
    assert!(metrics().await.contains("\nsignalbox_tape_failing 0\n"));
    calls(&data_dir, 1).await;
}
