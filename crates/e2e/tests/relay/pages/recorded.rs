//! A legacy client and its page, as they were recorded, byte for byte on their side, go on working while the legacy API
//! is served (`dual`) and while it is announced to end (`deprecated`).

use super::gateway;
use super::page::{Events, send};
use http::Method;
use serde_json::Value;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};

/// What the client and the page sent. `CODE` stands for the session's code and `ID` for the id of the last request.
const CREATE: &str = "{}";
const METADATA: &str = "/api/metadata?sessionCode=CODE";
const STREAM: &str = "/api/stream?sessionCode=CODE";
const REQUESTS: [&str; 3] = [
    r#"{"sessionCode":"CODE","tool":"create_data_context","arguments":{"name":"StudentData","title":"Student Performance Data"}}"#,
    r#"{"sessionCode": "CODE", "tool": "create_items", "arguments": {"dataContextName": "StudentData", "collectionName": "Cases", "items": [{"score": 1.50}]}}"#,
    r#"{"code":"CODE","id":"req-7","tool":"get_items","args":{"dataContextName":"StudentData"}}"#,
];
const ANSWERS: [&str; 3] = [
    r#"{"sessionCode":"CODE","requestId":"ID","result":{"success":true,"dataContextId":"dc123"}}"#,
    r#"{"sessionCode":"CODE","requestId":"ID","result":{"itemIDs":[1]}}"#,
    r#"{"code":"CODE","id":"ID","result":{"content":[{"type":"text","text":"[]"}]}}"#,
];

/// What they were told, without what differs each time.
#[derive(PartialEq, Debug)]
struct Told(u16, String);

impl Told {
    fn of(answer: &HttpAnswer, code: &str, id: &str) -> Self {
        let mut body: Value = answer.message().unwrap();
        if let Some(members) = body.as_object_mut() {
            let fresh = ["timestamp", "expiresAt", "generatedAt", "workerToken", "joinUrl", "relayBaseUrl"];
            members.retain(|name, _| !fresh.contains(&name.as_str()));
        }
        let text = body.to_string().replace(code, "CODE");
        Self(answer.status, if id.is_empty() { text } else { text.replace(id, "ID") })
    }
}

/// Plays both sides, and gives everything that they were told.
async fn played(phase: &str) -> (Vec<Told>, bool) {
    let gateway = gateway(&format!("[relay]\nenabled = true\nphase = '{phase}'\n")).await;
    let client = HttpClient::new(gateway.address()).with("user-agent", "codap-client/1.0");
    let worker = HttpClient::new(gateway.address()).with("user-agent", "Mozilla/5.0 (CODAP)");
    let created = send(&client, Method::POST, "/api/sessions", CREATE).await.unwrap();
    let code = created.message().unwrap()["sessionCode"].as_str().unwrap().to_owned();
    let mut told = vec![Told::of(&created, &code, "")];
    let metadata = client.get(&METADATA.replace("CODE", &code)).await.unwrap();
    told.push(Told::of(&metadata, &code, ""));
    let announced = metadata.headers.contains_key("deprecation");
    let mut requests = Events::open(&worker, &STREAM.replace("CODE", &code)).await.unwrap();
    requests.until("connected").await.unwrap();
    let mut results = None;
    for (request, answer) in REQUESTS.iter().zip(ANSWERS) {
        let queued = send(&client, Method::POST, "/api/request", &request.replace("CODE", &code)).await.unwrap();
        let own_id = queued.message().unwrap()["id"].as_str().unwrap().to_owned();
        told.push(Told::of(&queued, &code, &own_id));
        let asked = requests.until("tool-request").await.unwrap();
        let id = asked["id"].as_str().unwrap().to_owned();
        told.push(Told(0, asked["arguments"].to_string()));
        let answer = answer.replace("CODE", &code).replace("ID", &id);
        let stored = send(&worker, Method::POST, "/api/response", &answer).await.unwrap();
        told.push(Told::of(&stored, &code, &id));
        if results.is_none() {
            // The legacy client listens after it has asked.
            results = Some(Events::open(&client, &STREAM.replace("CODE", &code)).await.unwrap());
        }
        let result = results.as_mut().unwrap().result().await.unwrap();
        told.push(Told(0, result.replace(&own_id, "ID").replace(&id, "ID")));
    }
    (told, announced)
}

/// Proves C-18, C-19 and C-24.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_legacy_client_keeps_working_in_both_phases() {
    let (dual, announced) = played("dual").await;
    assert!(!announced);
    let results: Vec<&str> = dual.iter().filter(|told| told.0 == 0).map(|told| told.1.as_str()).collect();
    assert_eq!(
        results[1],
        r#"{"tool":"create_data_context","result":{"success":true,"dataContextId":"dc123"},"requestId":"ID"}"#
    );
    assert_eq!(
        dual.iter().map(|told| told.0).collect::<Vec<_>>(),
        [201, 200, 202, 0, 200, 0, 202, 0, 200, 0, 202, 0, 202, 0]
    );
    let (deprecated, announced) = played("deprecated").await;
    assert!(announced);
    assert_eq!(deprecated, dual);
}
