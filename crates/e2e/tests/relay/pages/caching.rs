//! What is kept of a call to one page is not used for another, whose tools have the same names.

use super::page::{Events, Page, send};
use super::{Agent, OPEN, gateway, modern};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;

const TOOL: &str = "get_items";

/// A page that answers every call with its code.
async fn page(gateway: &GatewayProcess) -> Page {
    let page = Page::open(gateway.address()).await.unwrap();
    let (own, mut events) = (page.clone(), page.stream("w1", "j1").await.unwrap());
    tokio::spawn(async move {
        while let Ok(Some((name, data))) = events.next().await {
            if name == "tool-request" {
                let text = format!("from {}", own.code);
                let _ = own.answer(data["id"].as_str().unwrap_or_default(), json!({"result": {"text": text}})).await;
            }
        }
    });
    page
}

/// Calls the page by REST and by MCP of each era, each with a client of its own.
async fn results(gateway: &GatewayProcess, page: &Page) -> Vec<String> {
    let mut received = Vec::new();
    for version in ["2024-11-05", "2025-11-25"] {
        let agent = Agent::open(gateway, version).await;
        agent.connect(page).await;
        received.push(agent.call(TOOL, json!({})).await.to_string());
    }
    let told = modern(gateway, "tools/call", json!({"name": TOOL, "arguments": {"sessionCode": page.code}})).await;
    received.push(String::from_utf8_lossy(&told.body).into_owned());
    let legacy = HttpClient::new(gateway.address()).with("user-agent", "curl/8");
    let path = format!("/api/stream?sessionCode={}&role=client", page.code);
    let mut results = Events::open(&legacy, &path).await.unwrap();
    let request = json!({"sessionCode": page.code, "tool": TOOL, "arguments": {}, "id": "r"}).to_string();
    assert_eq!(send(&legacy, Method::POST, "/api/request", &request).await.unwrap().status, 202);
    received.push(results.result().await.unwrap());
    received
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_result_of_one_page_is_not_given_to_callers_of_another() {
    for shared in [false, true] {
        let rule = format!("[[rules]]\nid = 'keep'\nthen = {{ cache = {{ ttl = '5m', shared = {shared} }} }}\n");
        let gateway = gateway(&format!("{OPEN}{rule}")).await;
        let (first, second) = (page(&gateway).await, page(&gateway).await);
        for page in [&first, &second, &first] {
            for told in results(&gateway, page).await {
                assert!(told.contains(&format!("from {}", page.code)), "shared: {shared}, {}: {told}", page.code);
            }
        }
    }
}

/// A call of the new revision by a client that can be asked.
async fn asked(gateway: &GatewayProcess, page: &Page, more: Value) -> Value {
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut params = json!({"name": TOOL, "arguments": {"sessionCode": page.code},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities}});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    let client = HttpClient::new(gateway.address()).with("mcp-protocol-version", "2026-07-28");
    let client = client.with("mcp-method", "tools/call").with("mcp-name", TOOL);
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    send(&client, Method::POST, "/api/mcp", &message.to_string()).await.unwrap().message().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consent_to_a_call_of_one_page_is_none_for_another() {
    let permissions = format!(
        "[permissions]\ndefault_role = 'reader'\n[permissions.ask]\nof = 'caller'\n\
         [roles.reader]\nallow = ['relay/*']\nask = ['relay/{TOOL}']\n"
    );
    let gateway = gateway(&format!("{OPEN}{permissions}")).await;
    let (first, second) = (page(&gateway).await, page(&gateway).await);
    for (page, runs) in [(&second, false), (&first, true)] {
        let question = asked(&gateway, &first, json!({})).await;
        assert_eq!(question["result"]["resultType"], "input_required", "{question}");
        let consent = json!({"action": "accept", "content": {"approve": true}});
        let more = json!({"requestState": question["result"]["requestState"],
            "inputResponses": {"signalbox-consent": consent}});
        let told = asked(&gateway, page, more).await.to_string();
        assert_eq!(told.contains("from "), runs, "{told}");
        assert_eq!(told.contains("changed after consent was asked for"), !runs, "{told}");
    }
}
