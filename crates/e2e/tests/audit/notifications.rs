//! Notifications of clients that go to backends.

use crate::{config, log_of, of_phase, records, search, session};
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;

/// Every notification that carries content has one record, before it leaves. Others have none.
/// Proves G-25.
#[tokio::test(flavor = "multi_thread")]
async fn notifications_with_content_leave_a_record_and_others_none() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    let client = session(&gateway).await;
    let recorded = [
        ("notifications/message", json!({"level": "info", "data": "rm -rf /"})),
        ("notifications/tasks/status", json!({"taskId": "1", "status": "completed"})),
        ("notifications/resources/updated", json!({"uri": "file:///x"})),
        ("notifications/evil/do", json!({"path": "/etc/passwd"})),
    ];
    let bare = [
        ("notifications/roots/list_changed", json!({})),
        ("notifications/cancelled", json!({"requestId": 99})),
        ("notifications/progress", json!({"progressToken": 99, "progress": 1})),
        ("notifications/initialized", json!({})),
    ];
    for (method, params) in bare.iter().chain(&recorded) {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        assert_eq!(client.post(&body).await.unwrap().status, 202, "{method}");
    }
    search(&gateway, &["--type", "request"], recorded.len()).await;
    let folder = gateway.terminate().await.unwrap();
    let all = records(&log_of(folder.path()));
    let found: Vec<&Value> = of_phase(&all, "notification").collect();
    let methods: Vec<&str> = found.iter().filter_map(|record| record["details"]["method"].as_str()).collect();
    assert_eq!(methods, recorded.map(|(method, _)| method), "{all:#?}");
    for record in found {
        assert_eq!((&record["event_type"], &record["details"]["backend"]), (&json!("request"), &json!("one")));
        assert!(record["correlation_id"].is_null() && record["user_context"]["principal"] == "anonymous", "{record}");
    }
}
