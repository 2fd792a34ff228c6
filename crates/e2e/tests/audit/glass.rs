//! Broken glass in the audit log, and in its alerts.

use crate::receiver::Receiver;
use crate::{audit, config, search};
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::scene::{eventually, signalbox};

/// That the glass is broken is a critical record, and somebody is told at once; that it is over is a record.
#[tokio::test(flavor = "multi_thread")]
async fn broken_glass_is_in_the_audit_log_and_in_its_alerts() {
    let alerts = Receiver::start().await;
    let text = format!(
        "{}\n[permissions.break_glass]\nallowed = true\n",
        config(&format!("alert_webhook = \"{}\"\n", alerts.url), "")
    );
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    let data = gateway.data_dir();
    let glass = ["grant", "break-glass", "--to", "key:emil", "--for", "15m", "--because", "the site is down"];
    signalbox(&data, &glass).await.unwrap();
    let listed: Value = serde_json::from_str(&signalbox(&data, &["grant", "list", "--json"]).await.unwrap()).unwrap();
    let begun = search(&gateway, &["--type", "break_glass", "--risk", "critical"], 1).await;
    let details = &begun[0]["details"];
    assert_eq!(
        (&details["phase"], &details["to"], &details["reason"]),
        (&json!("begin"), &json!("key:emil"), &json!("the site is down")),
        "{begun:?}"
    );
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(details["policy"], format!("break_glass:{id}"));
    let told = async || alerts.bodies.lock().unwrap().first().cloned();
    let alert = eventually("somebody is told", told).await.unwrap();
    assert_eq!((&alert["alert"], &alert["event"]["hash"]), (&json!("break_glass"), &begun[0]["hash"]));
    let said = alert["text"].as_str().unwrap();
    assert!(said.contains("`key:emil` breaks the glass until") && said.contains("the site is down"), "{said}");
    signalbox(&data, &["grant", "revoke", id]).await.unwrap();
    let both = search(&gateway, &["--type", "break_glass"], 2).await;
    assert_eq!((&both[1]["details"]["phase"], &both[1]["risk_level"]), (&json!("end"), &json!("medium")));
    let folder = gateway.terminate().await.unwrap();
    assert_eq!(alerts.bodies.lock().unwrap().len(), 1, "the end is no alarm");
    let (good, said) = audit(folder.path(), &["verify"]);
    assert!(good, "{said}");
}
