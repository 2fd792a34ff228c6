//! Requests that the gateway answers itself, and what of them reaches backends.

use crate::{config, of_phase, search, session};
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::scene::lists_saved;

const URI: &str = "test://watched-resource";

async fn asks(client: &HttpClient, id: u64, method: &str, params: Value) {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
    let answer = client.post(&body).await.unwrap().message().unwrap();
    assert!(answer["result"].is_object(), "{answer}");
}

fn of_method<'a>(records: &'a [Value], method: &'a str) -> Vec<&'a Value> {
    let all = of_phase(records, "outcome");
    all.filter(|record| record["details"]["method"] == method).map(|record| &record["details"]["forwarded"]).collect()
}

/// An end of a subscription leaves for the backend only with the last session that follows the resource.
/// Proves G-25 and G-26.
#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_says_whether_an_end_of_a_subscription_reached_the_backend() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let (first, second) = (session(&gateway).await, session(&gateway).await);
    for (id, client) in [(1, &first), (2, &second)] {
        asks(client, id, "resources/subscribe", json!({"uri": URI})).await;
    }
    for (id, client) in [(3, &first), (4, &second)] {
        asks(client, id, "resources/unsubscribe", json!({"uri": URI})).await;
    }
    let all = search(&gateway, &["--type", "request"], 8).await;
    let ends = of_phase(&all, "outcome").filter(|one| one["details"]["method"] == "resources/unsubscribe");
    let mut ends: Vec<(u64, bool)> = ends
        .map(|one| (one["user_context"]["session"].as_u64().unwrap(), one["details"]["forwarded"] == true))
        .collect();
    ends.sort_unstable();
    assert_eq!(ends.iter().map(|(_, forwarded)| *forwarded).collect::<Vec<_>>(), [false, true], "{all:#?}");
}

/// Proves G-25 and G-26.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tasks_that_a_backend_gives_has_an_intent_and_an_outcome() {
    let program = json!(built("revision-server").unwrap().to_str().unwrap());
    let args = json!(["--stdio", "--revision", Revision::R4.to_string()]);
    let backend = format!("[backends.only]\ncommand = {program}\nargs = {args}\n");
    let gateway = GatewayProcess::serve(&format!("[mcp.protocol.audit]\nenabled = true\n{backend}")).await.unwrap();
    lists_saved(&gateway.data_dir()).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize("2025-11-25", json!({})).await.unwrap();
    asks(&client, 1, "tasks/list", json!({})).await;
    let all = search(&gateway, &["--type", "request"], 2).await;
    assert_eq!(of_phase(&all, "intent").count(), 1, "{all:#?}");
    assert_eq!(of_method(&all, "tasks/list"), [true], "{all:#?}");
}

/// Proves G-25 and G-26.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_log_level_has_an_intent_and_an_outcome() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    asks(&session(&gateway).await, 1, "logging/setLevel", json!({"level": "debug"})).await;
    let all = search(&gateway, &["--type", "request"], 2).await;
    let [intent, outcome] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((&intent["details"]["phase"], &outcome["details"]["phase"]), (&json!("intent"), &json!("outcome")));
    assert_eq!(intent["correlation_id"], outcome["correlation_id"]);
    let said = &intent["details"];
    assert_eq!((&said["method"], &said["backend"]), (&json!("logging/setLevel"), &json!("one")));
    assert_eq!(outcome["details"]["forwarded"], true);
}
