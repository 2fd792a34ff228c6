//! Listen requests are in the audit log like other requests that go to backends.

use crate::refusals::Person;
use crate::{of_phase, search};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::scene::child;

const CONFIG: &str = "[mcp.protocol.security]\nrequire_authentication = true\n[mcp.protocol.audit]\nenabled = true\n";
const URIS: [&str; 2] = ["test://watched-resource", "test://static-text"];

/// Proves G-26.
#[tokio::test(flavor = "multi_thread")]
async fn a_listen_request_has_an_intent_for_each_resource_and_an_outcome() {
    let backend = child("one", ServedEra::Old, "").unwrap();
    let gateway = GatewayProcess::serve(&format!("{CONFIG}{backend}")).await.unwrap();
    gateway.ready().await.unwrap();
    let ada = Person::new(&gateway, "ada", &[]).await;
    let params = json!({"notifications": {"resourceSubscriptions": URIS},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}});
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": params}).to_string();
    let client = ada.http.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "subscriptions/listen");
    let stream = client.open(Method::POST, "/mcp", body.into()).await.unwrap();
    assert_eq!(stream.status(), 200);
    let intents = search(&gateway, &["--type", "request"], 2).await;
    let mut followed: Vec<&Value> = of_phase(&intents, "intent").map(|intent| &intent["details"]["tool"]).collect();
    followed.sort_by_key(|uri| uri.to_string());
    assert_eq!(followed, [URIS[1], URIS[0]], "{intents:#?}");
    drop(stream);
    let all = search(&gateway, &["--type", "request"], 3).await;
    let outcomes: Vec<&Value> = of_phase(&all, "outcome").collect();
    assert_eq!(outcomes.len(), 1, "{all:#?}");
    assert!(all.iter().all(|record| record["correlation_id"] == outcomes[0]["correlation_id"]), "{all:#?}");
    assert!(all.iter().all(|record| record["details"]["method"] == "subscriptions/listen"), "{all:#?}");
}
