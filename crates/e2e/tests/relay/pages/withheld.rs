//! A text that is withheld reaches a caller of the relay neither by the legacy routes nor by
//! MCP of any era.

use super::page::{Events, Page, send};
use super::{Agent, OPEN, gateway, modern};
use http::Method;
use serde_json::json;
use signalbox_testkit::http_client::HttpClient;

/// What the page answers with.
const CANARY: &str = "canary of the page";
const TOOL: &str = "get_items";

/// Configurations that withhold the text, and one that does not.
fn reasons() -> [(&'static str, bool, String); 6] {
    let role = |more: &str| format!("[permissions]\ndefault_role = 'reader'\n[roles.reader]\n{more}\n");
    let rule = |then: &str| {
        format!("[[rules]]\nid = 'withhold'\nwhen = {{ phase = 'response', tool = '{TOOL}' }}\nthen = {then}\n")
    };
    [
        ("nothing", true, role("")),
        ("role deny", false, role(&format!("deny = ['relay/{TOOL}']"))),
        ("hidden", false, role("allow = ['relay/create_graph', 'relay/connect_to_session']")),
        ("redact", false, format!("[constraints.'relay/*']\nredact = ['{CANARY}']\n")),
        ("replace_result", false, rule("{ replace_result = { content = [] } }")),
        ("block", false, rule("{ block = 'withheld' }")),
    ]
}

/// Answers every request of the page with the text, in the background.
fn answer_all(page: &Page, mut events: Events) {
    let page = page.clone();
    tokio::spawn(async move {
        while let Ok(Some((name, data))) = events.next().await {
            if name == "tool-request" {
                let id = data["id"].as_str().unwrap_or_default();
                let _ = page.answer(id, json!({"result": {"text": CANARY}})).await;
            }
        }
    });
}

/// Reasons × ways of the relay.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_withheld_reaches_no_client_of_the_relay() {
    for (reason, is_shown, config) in reasons() {
        let gateway = gateway(&format!("{OPEN}{config}")).await;
        let page = Page::open(gateway.address()).await.unwrap();
        answer_all(&page, page.stream("w1", "j1").await.unwrap());
        let mut received = Vec::new();

        let legacy = HttpClient::new(gateway.address()).with("user-agent", "curl/8");
        let path = format!("/api/stream?sessionCode={}&role=client", page.code);
        let mut results = Events::open(&legacy, &path).await.unwrap();
        let request = json!({"sessionCode": page.code, "tool": TOOL, "arguments": {}, "id": "r"}).to_string();
        let told = send(&legacy, Method::POST, "/api/request", &request).await.unwrap();
        let told = String::from_utf8_lossy(&told.body).into_owned();
        received.push(("REST", told + &results.result().await.unwrap()));

        for version in ["2024-11-05", "2025-11-25"] {
            let agent = Agent::open(&gateway, version).await;
            agent.connect(&page).await;
            received.push((version, agent.call(TOOL, json!({})).await.to_string()));
        }
        let given = json!({"name": TOOL, "arguments": {"sessionCode": page.code}});
        let told = modern(&gateway, "tools/call", given).await;
        received.push(("2026-07-28", String::from_utf8_lossy(&told.body).into_owned()));

        for (way, told) in received {
            assert_eq!(told.contains(CANARY), is_shown, "{reason}, {way}: {told}");
        }
    }
}
