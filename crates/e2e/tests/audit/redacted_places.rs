//! Arguments that `record.redact` names are in no record and no log, whichever way they came in and whatever quotes
//! them.

use crate::refusals::{Person, Way};
use crate::{log_of, search};
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{child, files_holding};
use std::path::Path;
use std::process::Command;

const CONFIG: &str = r#"
[record.redact]
keys = ["pin"]
paths = ["/params/arguments/card"]
[mcp.protocol.security]
require_authentication = true
[mcp.protocol.audit]
enabled = true
payloads = true
[roles.all]
allow = ["one/*"]
[auth.users.'key:ada']
roles = ["all"]
[[rules]]
id = "note"
priority = 9
when = { tool = "greet" }
then = [{ log = { level = "warning", text = "noted {{/params/arguments/card}}, {{/params/arguments/pin}}, {{/params/arguments}}" } }]
[[rules]]
id = "block"
when = { tool = "greet", params = { "/params/arguments/name" = "forbidden" } }
then = [{ block = "not with {{/params/arguments/card}} and {{/params/arguments/pin}}" }]
[[rules]]
id = "error"
when = { tool = "greet", params = { "/params/arguments/name" = "wrong" } }
then = [{ error = { code = -1, message = "wrong {{/params/arguments/card}}", data = { was = "{{/params/arguments/pin}}" } } }]
"#;

/// Values of the redacted arguments. No pattern finds them.
const SECRETS: [&str; 2] = ["amber-walrus", "violet-heron"];

fn arguments(name: &str) -> Value {
    json!({"name": name, "card": SECRETS[0], "pin": SECRETS[1]})
}

fn tape_of(folder: &Path) -> String {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["tape", "export", "last", "--format", "jsonl", "-o", "-", "-c", "signalbox.toml"]);
    let output = command.args(["--data-dir", "data"]).current_dir(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn redacted_arguments_are_in_no_record_and_no_log() {
    let backend = child("one", ServedEra::Old, "").unwrap();
    let gateway = GatewayProcess::serve(&format!("{CONFIG}{backend}")).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = Person::new(&gateway, "ada", &[]).await;
    for way in Way::ALL {
        for name in ["forbidden", "wrong"] {
            ada.call(way, "greet", &arguments(name)).await;
        }
    }
    let told = ada.session.request(1, "tools/call", json!({"name": "greet", "arguments": arguments("Ada")})).await;
    assert!(told.unwrap()["result"].is_object());
    let invoke = json!({"tool_id": "greet", "parameters": arguments("Ada")});
    let invoke = json!({"jsonrpc": "2.0", "id": "7", "method": "tools/invoke", "params": invoke}).to_string();
    let told = ada.http.post(&invoke).await.unwrap().message().unwrap();
    assert_eq!(told["result"]["status"], "success", "{told}");
    let intents = search(&gateway, &["--type", "tool_invocation", "--payloads"], 14).await;
    let intents: Vec<&Value> = intents.iter().filter(|record| record["details"]["phase"] == "intent").collect();
    assert_eq!(intents.len(), 2, "{intents:#?}");
    for intent in intents {
        let kept = json!({"name": "Ada", "card": "[redacted]", "pin": "[redacted]"});
        assert_eq!(intent["details"]["arguments"], kept, "{intent}");
    }
    let log = gateway.process.error_lines().join("\n");
    assert!(log.matches("noted [redacted], [redacted], {").count() >= 12, "{log}");
    let folder = gateway.terminate().await.unwrap();
    let folder = folder.path();
    let audit = std::fs::read_to_string(log_of(folder)).unwrap();
    assert!(audit.contains("not with [redacted] and [redacted]"), "{audit}");
    let tape = tape_of(folder);
    assert!(tape.contains("tools/invoke") && tape.contains("not with [redacted] and [redacted]"), "{tape}");
    for secret in SECRETS {
        for (what, text) in [("log", &log), ("audit log", &audit), ("tape", &tape)] {
            assert!(!text.contains(secret), "{what}: {text}");
        }
        assert!(files_holding(&folder.join("data"), secret).unwrap().is_empty(), "{secret}");
    }
}
