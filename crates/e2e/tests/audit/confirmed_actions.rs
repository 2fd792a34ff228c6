//! An administrative action is answered once its record survives the end of the process.

use crate::config;
use bytes::Bytes;
use http::Method;
use serde_json::json;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::scene::{eventually, signalbox};
use std::path::Path;

const SECURITY: &str = "[mcp.protocol.security]\nrequire_authentication = true\n";
const GRANT: [&str; 10] =
    ["grant", "add", "--tools", "one/greet", "--to", "key:ada", "--for", "5m", "--because", "by a command"];

/// Text of the journals of all chains.
fn journals(folder: &Path) -> String {
    let chains = std::fs::read_dir(folder.join("data/audit/journal")).unwrap();
    let folders = chains.map(|chain| chain.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|chain| std::fs::read_dir(chain).unwrap());
    files.map(|file| String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_grant_is_in_the_journal_when_the_gateway_is_killed_at_once() {
    for by_command in [false, true] {
        let gateway = GatewayProcess::serve(&format!("{}{SECURITY}", config("", ""))).await.unwrap();
        gateway.ready().await.unwrap();
        let key = signalbox(&gateway.data_dir(), &["keys", "new", "boss", "--role", "admin"]).await.unwrap();
        let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {}", key.trim()));
        let begin = async || client.clone().initialize(crate::VERSION, json!({})).await.ok();
        eventually("the key is known", begin).await.unwrap();
        if by_command {
            signalbox(&gateway.data_dir(), &GRANT).await.unwrap();
        } else {
            let grant = json!({"to": "key:ada", "tools": ["one/*"], "for": "5m", "because": "by the API"}).to_string();
            let sender = client.with("content-type", "application/json");
            let answer = sender.send(Method::POST, "/api/v1/grants", Bytes::from(grant)).await.unwrap();
            assert_eq!(answer.status, 200);
        }
        let folder = gateway.stop().await.unwrap();
        let text = journals(folder.path());
        assert!(text.contains("grant.add"), "by a command: {by_command}\n{text}");
    }
}
