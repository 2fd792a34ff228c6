//! Requests that the relay refuses before they are calls, by every route and for every reason, and their records.

use crate::refusals::told;
use crate::{log_of, records};
use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;

/// Routes of the relay, with bodies that they read.
const ROUTES: [(Method, &str, &str); 15] = [
    (Method::POST, "/api/sessions", "{}"),
    (Method::GET, "/api/metadata?code=AAAAAAAA", ""),
    (Method::POST, "/api/request", r#"{"code":"AAAAAAAA","tool":"t"}"#),
    (Method::GET, "/api/request/AAAAAAAA", ""),
    (Method::POST, "/api/response", r#"{"code":"AAAAAAAA","id":"1","result":1}"#),
    (Method::GET, "/api/stream?code=AAAAAAAA", ""),
    (Method::GET, "/api/stream?code=AAAAAAAA&role=client", ""),
    (Method::GET, "/api/stream?code=AAAAAAAA&role=worker", ""),
    (Method::PUT, "/api/tools", r#"{"code":"AAAAAAAA","tools":[]}"#),
    (Method::POST, "/api/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
    (Method::GET, "/api/mcp", ""),
    (Method::DELETE, "/api/mcp", ""),
    (Method::GET, "/api/mcp/metrics", ""),
    (Method::GET, "/relay/worker.js", ""),
    (Method::GET, "/.well-known/codap-mcp.json", ""),
];

async fn gateway(relay: &str) -> GatewayProcess {
    let text = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[mcp.protocol.audit]\nenabled = true\n\
         [relay]\nenabled = true\n{relay}"
    );
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

async fn send(client: &HttpClient, method: &Method, path: &str, body: &'static str) -> u16 {
    let client = client.clone().with("content-type", "application/json");
    client.send(method.clone(), path, body.into()).await.unwrap().status
}

/// Where no credential is needed, a wrong one is still refused like at the main endpoint, and recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_credential_is_refused_by_every_route_of_the_relay() {
    let wrong =
        [("authorization", "Bearer sbx_made_up"), ("authorization", "Bearer made.up.token"), ("x-api-key", "made-up")];
    for anonymous in [true, false] {
        let gateway = gateway(&format!("anonymous = {anonymous}\n")).await;
        for (name, value) in wrong {
            let client = HttpClient::new(gateway.address()).with(name, value);
            for (method, path, body) in &ROUTES {
                let status = send(&client, method, path, body).await;
                assert_eq!(status, 401, "anonymous = {anonymous}: {method} {path} with {name}: {value}");
            }
        }
        let anybody = HttpClient::new(gateway.address());
        assert_eq!(send(&anybody, &Method::POST, "/api/sessions", "{}").await, 201, "pages need no credential");
        let folder = gateway.terminate().await.unwrap();
        let all = records(&log_of(folder.path()));
        let failed: Vec<&Value> =
            all.iter().filter(|one| one["details"]["violation"] == "authentication_failed").collect();
        assert_eq!(told(&failed), wrong.len() * ROUTES.len(), "anonymous = {anonymous}: {failed:#?}");
        assert!(failed.iter().all(|one| one["details"]["http_status"] == json!(401)), "{failed:#?}");
    }
}
