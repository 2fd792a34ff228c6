//! Streams of events that are lost, and credentials of the same principal that are good for less.

use super::Scene;
use super::openers::Opener;
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};

const VERSION: &str = "2025-11-25";

async fn resume(client: &HttpClient, event: &str) -> HttpAnswer {
    let client = client.clone().with("accept", "text/event-stream").with("last-event-id", event);
    client.send(Method::GET, "/mcp", Bytes::new()).await.unwrap()
}

/// What was made for one credential is not resumed with another that is good for less.
#[tokio::test(flavor = "multi_thread")]
async fn a_weaker_credential_does_not_resume_the_stream_of_a_stronger_one() {
    let scene = Scene::new(|_| String::new()).await;
    let mut keys = Vec::new();
    for (name, role) in [("strong", "all"), ("alike", "all"), ("weak", "none")] {
        let new = ["keys", "new", name, "--subject", "user:other", "--role", role];
        keys.push(scene.command(&new).await.trim().to_owned());
    }
    let address = scene.gateway.address();
    let with_key = |key: &String| Opener::bearer(address, key).client().clone();
    let strong = with_key(&keys[0]).initialize(VERSION, json!({})).await.unwrap();
    let params = json!({"name": "slow", "arguments": {"ms": 2_000}, "_meta": {"progressToken": "p"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut answer = strong.open(Method::POST, "/mcp", Bytes::from(call.to_string())).await.unwrap();
    let first = answer.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let event =
        first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap_or_else(|| panic!("{first}")).to_owned();
    drop(answer);
    let in_session = |key: &String| {
        with_key(key).with("mcp-session-id", strong.session_id().unwrap()).with("mcp-protocol-version", VERSION)
    };
    let refused = resume(&in_session(&keys[2]), &event).await;
    assert_eq!(refused.status, 410, "{refused:?}");
    let alike = resume(&in_session(&keys[1]), &event).await;
    assert!(alike.status == 200 && alike.message().unwrap()["result"].is_object(), "{alike:?}");
}

/// what belongs to no call is told by the rights of the session's credential, so no other rights hear it.
#[tokio::test(flavor = "multi_thread")]
async fn a_weaker_credential_does_not_open_the_stream_of_a_stronger_session() {
    let scene = Scene::new(|_| String::new()).await;
    let mut keys = Vec::new();
    for (name, role) in [("strong", "all"), ("alike", "all"), ("weak", "none")] {
        let new = ["keys", "new", name, "--subject", "user:key", "--role", role];
        keys.push(scene.command(&new).await.trim().to_owned());
    }
    let with_key = |key: &String| Opener::bearer(scene.gateway.address(), key).client().clone();
    let strong = with_key(&keys[0]).initialize(VERSION, json!({})).await.unwrap();
    let open = async |key: &String, event: Option<&str>| {
        let client = with_key(key).with("mcp-session-id", strong.session_id().unwrap());
        let client = client.with("mcp-protocol-version", VERSION).with("accept", "text/event-stream");
        let client = event.map_or(client.clone(), |event| client.with("last-event-id", event));
        client.open(Method::GET, "/mcp", Bytes::new()).await.unwrap().status().as_u16()
    };
    assert_eq!([open(&keys[2], None).await, open(&keys[1], None).await, open(&keys[0], None).await], [403, 200, 200]);
    // Rights that a reload changes are those of the next request.
    scene.withdraw().await;
    scene.command(&["reload"]).await;
    assert_eq!([open(&keys[0], None).await, open(&keys[1], None).await, open(&keys[2], None).await], [200, 200, 403]);
    for event in ["g1-1", "1-g1", "g999-1", "x"] {
        assert_ne!(open(&keys[2], Some(event)).await, 200, "{event}");
    }
}
