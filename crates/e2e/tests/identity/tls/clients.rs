//! Clients of the public SDKs, with the certificates of a private authority.

use super::{ca_file, demo, front};
use serde_json::Value;
use signalbox_testkit::clients::run_with;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::openssl::Authority;
use signalbox_testkit::scene::child;

const CALL: &str = "greet={\"name\":\"from an SDK\"}";
const DEMO_CALL: &str = "echo={\"text\":\"from an SDK\"}";

fn check(client: &str, document: &Value) {
    assert_eq!(document["ok"], true, "{client}: {document}");
    assert!(document["steps"]["call"][0]["result"].to_string().contains("from an SDK"), "{client}: {document}");
}

/// Proves G-33.
#[tokio::test(flavor = "multi_thread")]
async fn real_clients_call_over_https_sse_and_wss_through_to_a_backend_with_tls() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let issued = authority.local("server").await.unwrap();
    let inner = format!("{}{}", front(&issued, ""), child("fixture", ServedEra::Both, "").unwrap());
    let inner = GatewayProcess::serve(&inner).await.unwrap();
    let backend = format!(
        "[backends.far]\nurl = \"https://localhost:{}/mcp\"\n[backends.far.tls]\n{}",
        inner.address().port(),
        ca_file(&authority)
    );
    let gateway = GatewayProcess::serve(&format!("{}{backend}", front(&issued, ""))).await.unwrap();
    let at = |scheme: &str, path: &str| format!("{scheme}://localhost:{}{path}", gateway.address().port());
    let (https, sse, wss) = (at("https", "/mcp"), at("https", "/sse"), at("wss", "/mcp"));
    let trust = authority.ca_text();
    let variables = [("NODE_EXTRA_CA_CERTS", trust.as_str()), ("SSL_CERT_FILE", trust.as_str())];
    for client in [
        &["ts-sdk1", "--url", &https][..],
        &["ts-sdk1", "--sse", &sse],
        &["ts-sdk1", "--url", &wss],
        &["ts-client2", "--era", "new", "--url", &https],
        &["py-mcp1", "--url", &https],
        &["py-mcp2", "--era", "new", "--url", &https],
    ] {
        let arguments = [client, &["--steps", "tools,call", "--call", CALL]].concat();
        if let Some(document) = run_with(&arguments, &variables).await.unwrap() {
            check(&client.join(" "), &document);
        }
    }
}

/// Proves NO-17.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_client_shows_its_certificate_and_without_it_is_refused() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let gateway = demo(&authority, &ca_file(&authority)).await;
    let issued = authority.named("python", "DNS:python").await.unwrap();
    let url = format!("https://localhost:{}/mcp", gateway.address().port());
    let arguments = ["py-mcp1", "--steps", "tools,call", "--call", DEMO_CALL, "--url", &url];
    let (trust, cert, key) = (authority.ca_text(), issued.cert.to_string_lossy(), issued.key.to_string_lossy());
    let without = [("SSL_CERT_FILE", trust.as_str())];
    let Some(document) = run_with(&arguments, &without).await.unwrap() else { return };
    assert_eq!(document["ok"], false, "{document}");
    let with = [without[0], ("MCP_TEST_CERT", &cert), ("MCP_TEST_KEY", &key)];
    check("py-mcp1", &run_with(&arguments, &with).await.unwrap().unwrap());
}
