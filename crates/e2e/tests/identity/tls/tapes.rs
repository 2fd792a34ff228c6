//! The built-in tools over tapes show each certificate its own calls.

use super::{ca_file, front, open, post, showing};
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::openssl::Authority;
use signalbox_testkit::scene::{call, child, eventually};
use std::net::SocketAddr;

/// One party with its session.
struct Party {
    address: SocketAddr,
    options: Vec<String>,
    session: String,
}

impl Party {
    async fn call(&self, tool: &str, arguments: Value) -> String {
        let (head, body) = post(self.address, &self.options, Some(&self.session), &call(1, tool, &arguments)).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
        body
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_sees_its_own_recorded_calls_only() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let issued = authority.local("server").await.unwrap();
    let config = format!(
        "{}{}[backends.tapes]\nbuiltin = \"tapes\"\n",
        front(&issued, &ca_file(&authority)),
        child("one", ServedEra::Both, "").unwrap()
    );
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let address = gateway.address();
    let mut parties = Vec::new();
    for name in ["ann", "bob"] {
        let options = showing(&authority, &authority.named(name, &format!("DNS:{name}")).await.unwrap());
        let session = open(address, &options).await;
        parties.push(Party { address, options, session });
    }
    for (party, secret) in parties.iter().zip(["annsecret", "bobsecret"]) {
        assert!(party.call("greet", json!({"name": secret})).await.contains(secret));
    }
    for (party, (own, other)) in parties.iter().zip([("annsecret", "bobsecret"), ("bobsecret", "annsecret")]) {
        let search = async || {
            let found = party.call("tapes_search", json!({"text": own})).await;
            found.contains("greet").then_some(found)
        };
        eventually("the caller's own call is found", search).await.unwrap();
        // Both calls are on the tape by now, or soon; whichever it is, the other one is not shown.
        let others = party.call("tapes_search", json!({"text": other})).await;
        assert!(!others.contains("greet"), "{others}");
        // The text of a call is found before its end is on the tape.
        let by_tool = async || {
            let all = party.call("tapes_search", json!({"tool": "greet"})).await;
            all.contains("\"exchange\":").then_some(all)
        };
        let all = eventually("the call is found by its tool", by_tool).await.unwrap();
        assert_eq!(all.matches("\"exchange\":").count(), 1, "{all}");
        for exchange in 0..30 {
            let shown = party.call("tapes_show", json!({"tape": "last", "exchange": exchange})).await;
            // What the caller itself asked for is its own call.
            assert!(!shown.contains(other) || shown.contains("tools/call tapes_search"), "{shown}");
        }
    }
}
