//! Whoever changes what others may do, or reads what they said, is in the audit log.

use crate::{audit, config, log_of, records, search, session};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{call, eventually, signalbox};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SECURITY: &str = "[mcp.protocol.security]\nrequire_authentication = true\n\
    [[rules]]\nid = 'ask'\nwhen = { tool = 'count' }\nthen = { hold = { reason = 'look', within = '60s' } }\n\
    [[rules]]\nid = 'ask-too'\nwhen = { tool = 'greet' }\nthen = { hold = { reason = 'look', within = '60s' } }\n";

async fn key(gateway: &GatewayProcess, args: &[&str]) -> String {
    let all: Vec<&str> = ["keys", "new"].into_iter().chain(args.iter().copied()).collect();
    signalbox(&gateway.data_dir(), &all).await.unwrap().trim().to_owned()
}

async fn of_action(gateway: &GatewayProcess, action: &str, origin: &str) -> Value {
    let found = async || {
        let all = search(gateway, &["--type", "admin_action"], 0).await;
        let fits = |one: &Value| one["details"]["action"] == action && one["details"]["origin"] == origin;
        all.into_iter().find(fits)
    };
    eventually(&format!("{action} from {origin} is in the log"), found).await.unwrap()
}

async fn held(gateway: &GatewayProcess) -> String {
    let look = async || {
        let all: Value =
            serde_json::from_str(&signalbox(&gateway.data_dir(), &["hold", "list", "--json"]).await.ok()?).ok()?;
        Some(all["holds"][0]["id"].as_u64().or(all[0]["id"].as_u64())?.to_string())
    };
    eventually("a call is held", look).await.unwrap()
}

#[expect(clippy::too_many_lines, reason = "one dialogue in which each act follows from the one before")]
#[tokio::test(flavor = "multi_thread")]
async fn every_act_of_administration_is_in_the_log() {
    let text = format!("{}{SECURITY}", config("", ""));
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    gateway.ready().await.unwrap();
    let data = gateway.data_dir();
    let file = gateway.config_file().display().to_string();
    let ada = key(&gateway, &["ada"]).await;
    let boss = key(&gateway, &["boss", "--role", "admin", "-c", &file]).await;
    let client = |key: &str| HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let begin = async || client(&boss).clone().initialize(crate::VERSION, json!({})).await.ok();
    let worker = eventually("the keys are known", begin).await.unwrap();
    let new = of_action(&gateway, "key.new", "cli").await;
    assert!(!new.to_string().contains(&boss) && new["details"]["after"]["name"] == "boss", "{new}");
    of_action(&gateway, "key.added", "file").await;

    // The API: what is done, and what is refused.
    let switch = json!({"pattern": "one/big", "off": "killed", "reason": "too big"}).to_string();
    let set = |client: HttpClient| {
        let body = Bytes::from(switch.clone());
        async move {
            client
                .with("content-type", "application/json")
                .send(Method::POST, "/api/v1/switches", body)
                .await
                .unwrap()
                .status
        }
    };
    assert_eq!((set(client(&boss)).await, set(client(&ada)).await), (200, 403));
    assert_eq!(HttpClient::new(gateway.address()).get("/api/v1/status").await.unwrap().status, 401);
    let killed = of_action(&gateway, "switch.set", "api").await;
    assert_eq!(
        (&killed["user_context"]["principal"], &killed["details"]["after"]["pattern"]),
        (&json!("key:boss"), &json!("one/big"))
    );
    of_action(&gateway, "switch.added", "file").await;
    let denied = search(&gateway, &["--type", "admin_action", "--status", "denied"], 1).await;
    assert_eq!(
        (&denied[0]["user_context"]["principal"], &denied[0]["risk_level"]),
        (&json!("key:ada"), &json!("high"))
    );

    // The command line, by way of the gateway.
    signalbox(&data, &["switch", "lift", "one/big"]).await.unwrap();
    of_action(&gateway, "switch.lift", "cli").await;
    signalbox(
        &data,
        &["grant", "add", "--tools", "one/greet", "--to", "key:ada", "--for", "5m", "--because", "a test"],
    )
    .await
    .unwrap();
    let granted = of_action(&gateway, "grant.add", "cli").await;
    assert_eq!(granted["details"]["after"]["to"], "key:ada", "{granted}");
    signalbox(&data, &["grant", "revoke", granted["details"]["after"]["id"].as_str().unwrap()]).await.unwrap();
    of_action(&gateway, "grant.revoke", "cli").await;
    signalbox(&data, &["reload"]).await.unwrap();
    of_action(&gateway, "config.reload", "cli").await;

    // Held calls: who released and who edited one.
    for (what, tool, action) in [("release", "count", "hold.release"), ("edit", "greet", "hold.edit")] {
        let (caller, body) = (worker.clone(), call(7, tool, &json!({"name": "Ada"})).to_string());
        let calling = tokio::spawn(async move { caller.post(&body).await });
        let id = held(&gateway).await;
        let params = json!({"name": tool, "arguments": {"name": "Bob"}}).to_string();
        let mut args = vec!["hold", what, &id];
        if what == "edit" {
            args.extend(["--params", &params]);
        }
        signalbox(&data, &args).await.unwrap();
        calling.await.unwrap().unwrap();
        let done = of_action(&gateway, action, "cli").await;
        assert!(done["details"]["after"]["by"].is_string(), "{done}");
        if what == "edit" {
            let changed = &done["details"]["after"]["changed"];
            assert_ne!(changed["before"]["sha256"], changed["after"]["sha256"], "{done}");
        }
    }
    let intents = search(&gateway, &["--type", "tool_invocation", "--tool", "count"], 1).await;
    assert!(intents.iter().any(|one| one["details"]["decisions"].to_string().contains("\"person\"")), "{intents:#?}");
    assert!(client(&boss).get("/api/v1/audit?limit=1").await.unwrap().status == 200);
    of_action(&gateway, "audit.read", "api").await;
    signalbox(&data, &["keys", "revoke", "ada", "-c", &file]).await.unwrap();
    of_action(&gateway, "key.revoke", "cli").await;
    of_action(&gateway, "key.changed", "file").await;
    std::fs::write(gateway.config_file(), format!("{text}\n# another\n")).unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    of_action(&gateway, "config.reload", "file").await;
    let folder = gateway.terminate().await.unwrap();
    let (good, said) = audit(folder.path(), &["verify"]);
    assert!(good, "{said}");
}

/// The records of reloads from this origin, once there are so many.
async fn reloads(gateway: &GatewayProcess, origin: &str, enough: usize) -> Vec<Value> {
    let log = gateway.data_dir().join("audit/audit.log");
    let found = async || {
        // `audit search` would read the configuration, which is broken.
        let text = std::fs::read_to_string(&log).ok()?;
        let fits = |one: &Value| one["details"]["action"] == "config.reload" && one["details"]["origin"] == origin;
        let all: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(fits).collect();
        (all.len() >= enough).then_some(all)
    };
    eventually(&format!("{enough} reloads from {origin} are in the log"), found).await.unwrap()
}

/// A reload that failed is recorded as an error, a file or signal by the owner of the file, and a reload that turns
/// records of calls off says so.
#[tokio::test(flavor = "multi_thread")]
async fn records_of_reloads_tell_who_how_and_what_is_no_longer_recorded() {
    let text = config("", "");
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    gateway.ready().await.unwrap();
    let (data, file) = (gateway.data_dir(), gateway.config_file());
    let owner = {
        use std::os::unix::fs::MetadataExt as _;
        format!("uid:{}", std::fs::metadata(&file).unwrap().uid())
    };
    std::fs::write(&file, format!("{text}\nnonsense = \n")).unwrap();
    let refused = &reloads(&gateway, "file", 1).await[0];
    assert_eq!(
        (&refused["details"]["status"], &refused["user_context"]["principal"]),
        (&json!("error"), &json!(owner))
    );
    assert_eq!(refused["details"]["after"]["trigger"], "the file changed", "{refused}");
    let mut command = std::process::Command::new(built("signalbox").unwrap());
    let reloaded = command.arg("reload").arg("--data-dir").arg(&data).output().unwrap();
    assert_eq!(reloaded.status.code(), Some(1), "{reloaded:?}");
    let refused = &reloads(&gateway, "cli", 1).await[0];
    assert_eq!(refused["details"]["status"], "error", "{refused}");
    assert!(refused["details"]["error"].as_str().is_some_and(|error| error.contains("not valid TOML")), "{refused}");
    std::fs::write(&file, config("log_tool_invocations = false", "")).unwrap();
    let taken = &reloads(&gateway, "file", 2).await[1];
    let warnings = &taken["details"]["after"]["summary"]["warnings"];
    assert_eq!(taken["details"]["status"], "success", "{taken}");
    assert!(warnings.to_string().contains("calls are no longer in the audit log"), "{taken}");
}

/// A command writes to the journal by itself where no gateway runs.
#[tokio::test(flavor = "multi_thread")]
async fn commands_are_audited_while_no_gateway_runs() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    session(&gateway).await;
    let folder = gateway.terminate().await.unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("signalbox.toml").display().to_string());
    signalbox(&data, &["keys", "new", "ada", "-c", &file]).await.unwrap();
    signalbox(&data, &["switch", "kill", "one/greet", "-c", &file]).await.unwrap();
    signalbox(&data, &["switch", "lift", "one/greet", "-c", &file]).await.unwrap();
    signalbox(&data, &["audit", "search", "--payloads", "-c", &file]).await.unwrap();
    let all = records(&log_of(folder.path()));
    for action in ["key.new", "switch.set", "switch.lift", "audit.read"] {
        let found = all.iter().find(|record| record["details"]["action"] == action);
        assert!(found.is_some_and(|one| one["details"]["origin"] == "cli"), "{action}: {all:#?}");
    }
    let (good, said) = audit(folder.path(), &["verify"]);
    assert!(good, "{said}");
}

/// Keys of signatures, tapes and refreshed credentials; a deleted file of switches lifts nothing and says so.
#[tokio::test(flavor = "multi_thread")]
async fn signature_keys_tapes_and_deleted_switches_are_in_the_log() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let client = session(&gateway).await;
    let (data, file) = (gateway.data_dir(), gateway.config_file().display().to_string());
    crate::greet(&client, 1, "Ada").await;
    let run = async |args: &[&str]| signalbox(&data, &[args, &["-c", &file]].concat()).await;

    run(&["seal", "keys", "new", "--name", "user:ada", "--id", "k1"]).await.unwrap();
    let new = of_action(&gateway, "seal_key.new", "cli").await;
    assert_eq!((&new["details"]["target"], &new["details"]["after"]["name"]), (&json!("k1"), &json!("user:ada")));
    of_action(&gateway, "seal_key.added", "file").await;
    run(&["seal", "keys", "revoke", "k1"]).await.unwrap();
    of_action(&gateway, "seal_key.revoke", "cli").await;
    let changed = of_action(&gateway, "seal_key.changed", "file").await;
    assert!(changed["details"]["after"]["revoked_at"].is_string(), "{changed}");

    eventually("the tape is there", async || run(&["tape", "show"]).await.ok()).await.unwrap();
    of_action(&gateway, "tape.read", "cli").await;
    run(&["tape", "delete", "last", "--yes"]).await.unwrap();
    of_action(&gateway, "tape.delete", "cli").await;

    signalbox(&data, &["switch", "kill", "one/greet"]).await.unwrap();
    of_action(&gateway, "switch.added", "file").await;
    std::fs::remove_file(data.join("auth/switches.json")).unwrap();
    of_action(&gateway, "switch.restored", "file").await;
    assert!(crate::greet(&client, 2, "Ada").await["error"].is_object());
    assert!(signalbox(&data, &["switch", "list"]).await.unwrap().contains("one/greet"));
    assert!(data.join("auth/switches.json").exists());
    let removed = search(&gateway, &["--type", "admin_action"], 0).await;
    assert!(removed.iter().all(|one| one["details"]["action"] != "switch.removed"), "{removed:#?}");
    signalbox(&data, &["switch", "lift", "one/greet"]).await.unwrap();
    of_action(&gateway, "switch.removed", "file").await;
    signalbox(&data, &["keys", "new", "x", "-c", &file]).await.unwrap();
    signalbox(&data, &["keys", "revoke", "x", "-c", &file]).await.unwrap();
    of_action(&gateway, "credentials.refresh", "cli").await;
    let folder = gateway.terminate().await.unwrap();
    let (good, said) = audit(folder.path(), &["verify"]);
    assert!(good, "{said}");
}

/// Refusals beyond those of a second are told of although none follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_refusals_is_told_of_when_it_ends() {
    let security = "[mcp.protocol.security]\nrequire_authentication = true\n";
    let gateway = GatewayProcess::serve(&format!("{}{security}", config("", ""))).await.unwrap();
    gateway.ready().await.unwrap();
    let client = HttpClient::new(gateway.address());
    let body = call(1, "greet", &json!({"name": "Ada"})).to_string();
    for _ in 0..300 {
        assert_eq!(client.post(&body).await.unwrap().status, 401);
    }
    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let errors = all.iter().filter(|one| one["details"]["reason"] == "unauthenticated");
    let errors: Vec<&str> = errors.map(|one| one["details"]["error"].as_str().unwrap_or_default()).collect();
    let number = |text: &str, before: &str| text.split_once(before)?.1.split(' ').next()?.parse::<usize>().ok();
    let counted = |text: &&str| {
        // The record of the last one stands for itself as well.
        number(text, "(the last of ").map(|count| count - 1).or_else(|| number(text, "(")).unwrap_or(0)
    };
    assert_eq!(errors.len() + errors.iter().map(counted).sum::<usize>(), 300, "{errors:#?}");
}

/// While one client sends requests without a credential as fast as it can, all that others are refused is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_without_credentials_hides_no_refusal_of_others() {
    let security = "[mcp.protocol.security]\nrequire_authentication = true\n";
    let gateway = GatewayProcess::serve(&format!("{}{security}", config("", ""))).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, vic) = (key(&gateway, &["ada"]).await, key(&gateway, &["vic"]).await);
    let client = |key: &str| HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let begin = async || client(&ada).initialize(crate::VERSION, json!({})).await.ok();
    let session = eventually("the key is known", begin).await.unwrap();
    let body = call(1, "greet", &json!({"name": "Ada"})).to_string();
    let refused = Arc::new(AtomicUsize::new(0));
    let flood = {
        let (client, body, refused) = (HttpClient::new(gateway.address()), body.clone(), Arc::clone(&refused));
        tokio::spawn(async move {
            loop {
                assert_eq!(client.post(&body).await.unwrap().status, 401);
                refused.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let flooded = async |least: usize| {
        let look = async || (refused.load(Ordering::Relaxed) >= least).then_some(());
        eventually("the flood goes on", look).await.unwrap();
    };
    flooded(200).await;
    let stolen = client(&vic).with("mcp-session-id", session.session_id().unwrap());
    let elsewhere = client(&vic).with("origin", "http://evil.example");
    let guess = client("sbx_wrong");
    for _ in 0..15 {
        assert_eq!(stolen.post(&body).await.unwrap().status, 404);
        assert_eq!(elsewhere.post(&body).await.unwrap().status, 403);
        assert_eq!(guess.post(&body).await.unwrap().status, 401);
    }
    flooded(400).await;
    flood.abort();
    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let count = |fits: &dyn Fn(&Value) -> bool| all.iter().filter(|one| fits(one)).count();
    let error = |one: &Value, text: &str| one["details"]["error"].as_str().is_some_and(|error| error.contains(text));
    assert_eq!(count(&|one| one["user_context"]["principal"] == "key:vic" && error(one, "session")), 15);
    assert_eq!(count(&|one| error(one, "Origin") || error(one, "origin")), 15);
    assert_eq!(count(&|one| error(one, "is not known here")), 15);
}
