//! Notifications of clients that go to backends.

use crate::{VERSION, config, greet, log_of, of_phase, records, search, session};
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;

/// Every notification that carries content and leaves has one record, before it leaves. Others have none.
/// Proves G-25.
#[tokio::test(flavor = "multi_thread")]
async fn notifications_with_content_leave_a_record_and_others_none() {
    let gateway = GatewayProcess::serve(&config("", "")).await.unwrap();
    gateway.ready().await.unwrap();
    // A session of a client that can be asked has a connection of its own, which its notifications leave by.
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({"sampling": {}})).await.unwrap();
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
    let early = json!({"jsonrpc": "2.0", "method": "notifications/early/do", "params": {"path": "/"}});
    assert_eq!(client.post(&early.to_string()).await.unwrap().status, 202, "the session has no connection yet");
    assert!(greet(&client, 1, "Ada").await["result"].is_object());
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

const REFUSING_RULE: &str = "[[rules]]\nid = 'no-foo'\nwhen = { method = 'notifications/foo' }\nthen = 'block'\n";
const SWITCH: &str = "[kill_switch]\ntools = ['one/notifications/foo']\n";

/// A notification that no backend gets has one record, as other refusals have.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_notification_leaves_one_record() {
    for (more, reason, status) in [(REFUSING_RULE, "refused", "denied"), (SWITCH, "killed", "killed")] {
        let gateway = GatewayProcess::serve(&format!("{}{more}", config("", ""))).await.unwrap();
        let client = session(&gateway).await;
        assert!(greet(&client, 1, "Ada").await["result"].is_object());
        let body = json!({"jsonrpc": "2.0", "method": "notifications/foo", "params": {"a": 1}}).to_string();
        assert_eq!(client.post(&body).await.unwrap().status, 202, "{reason}");
        search(&gateway, &["--type", "security_violation"], 1).await;
        let folder = gateway.terminate().await.unwrap();
        let all = records(&log_of(folder.path()));
        let found: Vec<&Value> = of_phase(&all, "notification").collect();
        let [record] = &found[..] else { panic!("{reason}: {found:#?}") };
        assert_eq!(record["event_type"], "security_violation");
        for (name, value) in [
            ("reason", reason),
            ("status", status),
            ("method", "notifications/foo"),
            ("tool", "notifications/foo"),
            ("backend", "one"),
            ("decision", "deny"),
        ] {
            assert_eq!(record["details"][name], value, "{reason}: {record}");
        }
        assert_eq!(record["user_context"]["principal"], "anonymous");
    }
}
