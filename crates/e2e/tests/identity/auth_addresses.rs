//! The addresses by which clients know a gateway that wants tokens: names of loopback, the stream of HTTP+SSE, and what
//! real clients accept of its metadata.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use http::Method;
use serde_json::{Value, json};
use signalbox_testkit::clients;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::process::built;
use signalbox_testkit::scene::child;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

const PASSWORD: &str = "made-up correct horse";

/// A gateway with an authorization server and the user `ada`.
async fn gateway(more: &str) -> GatewayProcess {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["users", "add", "ada", "--data-dir"]).arg(&data).current_dir(&data);
    let mut added = command.stdin(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    added.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).await.unwrap();
    assert!(added.wait().await.unwrap().success());
    let config = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[auth.server]\nenabled = true\n{more}\n{}",
        child("one", ServedEra::Both, "").unwrap()
    );
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// The address of the metadata in a refusal.
fn named(refused: &HttpAnswer) -> String {
    assert_eq!(refused.status, 401, "{refused:?}");
    let challenge = refused.headers["www-authenticate"].to_str().unwrap();
    challenge.split("resource_metadata=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_the_resource_at_the_address_that_it_used() {
    let gateway = gateway("").await;
    let port = gateway.address().port();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let client = HttpClient::new(gateway.address()).with("host", &host);
        for path in ["/mcp", "/sse"] {
            let refused = client.send(Method::GET, path, bytes::Bytes::new()).await.unwrap();
            let metadata = named(&refused);
            assert_eq!(metadata, format!("http://{host}/.well-known/oauth-protected-resource{path}"));
            let at = metadata.strip_prefix(&format!("http://{host}")).unwrap();
            let document: Value = serde_json::from_slice(&client.get(at).await.unwrap().body).unwrap();
            assert_eq!(document["resource"], format!("http://{host}{path}"), "{document}");
        }
        let posted = client.send(Method::POST, "/messages", bytes::Bytes::new()).await.unwrap();
        assert!(named(&posted).ends_with("/sse"), "{posted:?}");
        let root = client.get("/.well-known/oauth-protected-resource").await.unwrap();
        let document: Value = serde_json::from_slice(&root.body).unwrap();
        assert_eq!(document["resource"], format!("http://{host}/mcp"), "{document}");
        assert_eq!(client.get("/.well-known/oauth-protected-resource/other").await.unwrap().status, 404);
    }
}

/// A client of this library signs in at `localhost`, at the endpoint or at the stream of HTTP+SSE, and calls.
async fn signs_in(client: &str, path: &str) {
    let gateway = gateway("").await;
    let url = format!("http://localhost:{}{path}", gateway.address().port());
    let args = [client, &url, "greet", r#"{"name":"Eve"}"#, "ada", PASSWORD, "0"];
    let Some(said) = clients::run(&args).await.unwrap() else { return };
    assert!(said["results"][0].as_str().unwrap().contains("Eve"), "{client} {path}: {said}");
    assert_eq!(said["registered"], true, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_clients_sign_in_by_localhost_and_over_sse() {
    for client in ["oauth-ts-sdk1", "oauth-ts-client2"] {
        signs_in(client, "/mcp").await;
        signs_in(client, "/sse").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn python_clients_sign_in_by_localhost_and_over_sse() {
    for client in ["oauth-py-mcp1", "oauth-py-mcp2"] {
        signs_in(client, "/mcp").await;
        signs_in(client, "/sse").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_cannot_be_fetched_is_named_with_the_cause_and_documents_can_be_turned_off() {
    let ask = "/auth/authorize?response_type=code&client_id=https%3A%2F%2Feditor.invalid%2Fclient.json&\
               redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&code_challenge_method=S256&\
               code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    let metadata = "/.well-known/oauth-authorization-server";
    for (more, supported, told) in [
        ("", true, &["https://editor.invalid/client.json", "editor.invalid"][..]),
        ("client_documents = false", false, &["are not read here"][..]),
    ] {
        let gateway = gateway(more).await;
        let client = HttpClient::new(gateway.address());
        let document: Value = serde_json::from_slice(&client.get(metadata).await.unwrap().body).unwrap();
        assert_eq!(document["client_id_metadata_document_supported"], json!(supported), "{document}");
        let page = client.get(ask).await.unwrap();
        let text = String::from_utf8_lossy(&page.body).into_owned();
        assert!(page.status == 400 && told.iter().all(|part| text.contains(part)), "{text}");
        assert!(!supported || text.contains("cannot be used: "), "{text}");
    }
}

/// The audience of tokens says how clients know the gateway.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_configured_resource_the_audience_of_an_issuer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // The public key of RFC 8037.
    let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    std::fs::write(folder.path().join("keys.json"), json!({"keys": [key]}).to_string()).unwrap();
    let config = format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n[auth.jwt.corp]\nissuer = 'https://idp.example'\n\
         jwks_file = 'keys.json'\naudience = ['https://box.example/mcp']\n{}",
        child("one", ServedEra::Both, "").unwrap()
    );
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let client = HttpClient::new(gateway.address());
    let refused = client.post("{}").await.unwrap();
    assert_eq!(named(&refused), "https://box.example/.well-known/oauth-protected-resource/mcp");
    let metadata = client.get("/.well-known/oauth-protected-resource/mcp").await.unwrap();
    let document: Value = serde_json::from_slice(&metadata.body).unwrap();
    assert_eq!(document["resource"], "https://box.example/mcp", "{document}");
    assert_eq!(document["authorization_servers"], json!(["https://idp.example"]), "{document}");
}
