//! Callers that prove who they are at real gateways: by API key, token and first message, and what each
//! of them may reach.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod exchanged_tokens;
mod expiry;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use signalbox_seal::SigningKey;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::protected_server::{Demands, ProtectedServer};
use signalbox_testkit::scene::{call, child, eventually, files_holding, signalbox, text};
use signalbox_testkit::used_secrets;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const VERSION: &str = "2025-06-18";
const ISSUER: &str = "https://idp.example";
const RESOURCE: &str = "https://box.example/mcp";

/// The gateway's settings: everybody has to prove who they are, and one issuer is trusted.
fn config(folder: &Path, more: &str) -> String {
    let key = issuer_key().verifying_key().to_hex();
    let public: Vec<u8> = (0..64).step_by(2).map(|at| u8::from_str_radix(&key[at..at + 2], 16).unwrap()).collect();
    let set = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": URL_SAFE_NO_PAD.encode(public)}]});
    std::fs::write(folder.join("jwks.json"), set.to_string()).unwrap();
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\nauthentication_timeout = 1\n\
         [auth]\nresource = '{RESOURCE}'\nmax_sessions = 3\n\
         [auth.scopes]\n'greet:use' = ['one/greet']\n\
         [auth.jwt.corp]\nissuer = '{ISSUER}'\njwks_file = '{}'\nclock_skew = 0.001\n{more}\n{}",
        folder.join("jwks.json").display(),
        child("one", ServedEra::Both, "").unwrap()
    )
}

async fn gateway() -> GatewayProcess {
    gateway_with("").await
}

async fn gateway_with(more: &str) -> GatewayProcess {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), more);
    GatewayProcess::serve_in(folder, &config).await.unwrap()
}

async fn key(gateway: &GatewayProcess, args: &[&str]) -> String {
    let args: Vec<&str> = ["keys", "new"].iter().chain(args).copied().collect();
    let key = signalbox(&gateway.data_dir(), &args).await.unwrap().trim().to_owned();
    // A running gateway notices a new key within a second.
    let client = bearer(gateway, &key);
    let look = async || client.get("/metrics").await.ok().filter(|answer| answer.status == 200);
    eventually("the key is known", look).await.unwrap();
    key
}

fn bearer(gateway: &GatewayProcess, credential: &str) -> HttpClient {
    HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {credential}"))
}

fn issuer_key() -> SigningKey {
    SigningKey::from_seed(&[9; 32]).unwrap()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn token(subject: &str, seconds: u64, scope: &str) -> String {
    token_for(&json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": subject, "iat": now(), "exp": now() + seconds, "scope": scope,
    }))
}

fn token_for(claims: &Value) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", part(r#"{"alg":"EdDSA","kid":"k1"}"#), part(&claims.to_string()));
    let key = aws_lc_rs::signature::Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())))
}

fn header<'a>(answer: &'a HttpAnswer, name: &str) -> &'a str {
    answer.headers.get(name).unwrap_or_else(|| panic!("no {name}: {answer:?}")).to_str().unwrap()
}

async fn greet(client: &HttpClient) -> HttpAnswer {
    client.modern(7, "tools/call", json!({"name": "greet", "arguments": {"name": "Eve"}})).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_good_token_is_told_where_to_get_one() {
    let gateway = gateway().await;
    gateway.ready().await.unwrap();
    let nobody = HttpClient::new(gateway.address());
    let refused = greet(&nobody).await;
    assert_eq!((refused.status, refused.message().unwrap()["error"]["code"].clone()), (401, json!(-32001)));
    let metadata = "https://box.example/.well-known/oauth-protected-resource/mcp";
    assert_eq!(header(&refused, "www-authenticate"), format!("Bearer resource_metadata=\"{metadata}\""));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let document: Value = serde_json::from_slice(&nobody.get(path).await.unwrap().body).unwrap();
        assert_eq!((&document["resource"], &document["authorization_servers"][0]), (&json!(RESOURCE), &json!(ISSUER)));
    }
    assert_eq!(nobody.get("/.well-known/oauth-protected-resource/other").await.unwrap().status, 404);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(nobody.get(path).await.unwrap().status, 200, "{path} needs no credential");
    }
    let expired = token_for(&json!({"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": now() - 5}));
    let elsewhere =
        token_for(&json!({"iss": ISSUER, "aud": "https://other.example/mcp", "sub": "ada", "exp": now() + 60}));
    for bad in [expired, elsewhere, "a.b.c".to_owned(), "sbx_000000000000_x".to_owned()] {
        let refused = greet(&bearer(&gateway, &bad)).await;
        assert_eq!(refused.status, 401, "{bad}");
        assert!(header(&refused, "www-authenticate").contains("error=\"invalid_token\""), "{bad}");
    }
    let good = greet(&bearer(&gateway, &token("ada", 60, "greet:use"))).await;
    assert!(text(&good.message().unwrap()).unwrap().contains("Eve"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_the_query_is_refused_even_if_it_is_good() {
    let gateway = gateway().await;
    let token = token("ada", 60, "greet:use");
    let client = bearer(&gateway, &token);
    let refused =
        client.send(Method::POST, &format!("/mcp?access_token={token}"), Bytes::from_static(b"{}")).await.unwrap();
    assert_eq!(refused.status, 401);
    assert!(header(&refused, "www-authenticate").contains("error=\"invalid_request\""));
    let head =
        format!("POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: 0\r\n", gateway.address());
    let twice = format!("{head}authorization: Bearer {token}\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut stream = TcpStream::connect(gateway.address()).await.unwrap();
    stream.write_all(twice.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "two credentials are one too many: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_the_scope_is_told_which_one_it_lacks() {
    let gateway = gateway().await;
    let refused = greet(&bearer(&gateway, &token("ada", 60, "other"))).await;
    assert_eq!((refused.status, refused.message().unwrap()["error"]["code"].clone()), (403, json!(4030)));
    let challenge = header(&refused, "www-authenticate");
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"greet:use\""),
        "{challenge}"
    );
    // An API key without scopes is not limited by them.
    let key = key(&gateway, &["free"]).await;
    assert_eq!(greet(&bearer(&gateway, &key)).await.status, 200);
    let old = bearer(&gateway, &token("ada", 60, "other")).initialize(VERSION, json!({})).await.unwrap();
    let refused = old
        .post(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Eve"}}}"#);
    assert_eq!(refused.await.unwrap().status, 403);
}

/// A scope that includes another, with and without a configured resource.
#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_includes_the_needed_one_is_enough_and_others_get_403_with_metadata() {
    let more = format!("audience = ['{RESOURCE}']\n[auth.scope_hierarchy]\n'greet:all' = ['greet:use', 'greet:see']\n");
    let resource = format!("resource = '{RESOURCE}'\n");
    for named in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path(), &more);
        if !named {
            config = config.replace(&resource, "");
        }
        assert_eq!(config.contains(&resource), named);
        let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
        let as_old = async |scope: &str| {
            // A caller of its own each: there may be three sessions.
            let credential = token(&format!("holder of {scope}"), 60, scope);
            let client = bearer(&gateway, &credential).initialize(VERSION, json!({})).await.unwrap();
            client.post(&call(3, "greet", &json!({"name": "Eve"})).to_string()).await.unwrap()
        };
        for scope in ["greet:all", "greet:use", "other greet:all"] {
            for answer in [greet(&bearer(&gateway, &token("ada", 60, scope))).await, as_old(scope).await] {
                let greeting = text(&answer.message().unwrap());
                assert!(greeting.is_some_and(|text| text.contains("Eve")), "{named} {scope}: {answer:?}");
            }
        }
        // A part of the wide scope is not the whole.
        for scope in ["greet:see", "other", ""] {
            for refused in [greet(&bearer(&gateway, &token("ada", 60, scope))).await, as_old(scope).await] {
                assert_eq!(refused.status, 403, "{named} {scope}: {refused:?}");
                let challenge = header(&refused, "www-authenticate");
                let metadata = "resource_metadata=\"https://box.example/.well-known/oauth-protected-resource/mcp\"";
                for part in ["error=\"insufficient_scope\"", "scope=\"greet:use\"", metadata] {
                    assert!(challenge.contains(part), "{named} {scope}: {challenge}");
                }
            }
        }
        let metadata =
            HttpClient::new(gateway.address()).get("/.well-known/oauth-protected-resource/mcp").await.unwrap();
        let document: Value = serde_json::from_slice(&metadata.body).unwrap();
        let scopes = document["scopes_supported"].as_array().unwrap_or_else(|| panic!("{document}"));
        assert!(scopes.contains(&json!("greet:all")) && scopes.contains(&json!("greet:use")), "{document}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reaches_the_session_of_another_and_a_refreshed_token_keeps_its_own() {
    let gateway = gateway().await;
    let ada = bearer(&gateway, &token("ada", 60, "")).initialize(VERSION, json!({})).await.unwrap();
    let id = ada.session_id().unwrap().to_owned();
    let with_session = |credential: &str| {
        bearer(&gateway, credential).with("mcp-session-id", &id).with("mcp-protocol-version", VERSION)
    };
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    // The next token of the same subject is as good as the first.
    assert_eq!(with_session(&token("ada", 61, "")).post(list).await.unwrap().status, 200);
    let eve = with_session(&token("eve", 60, ""));
    let unknown = bearer(&gateway, &token("eve", 60, ""))
        .with("mcp-session-id", "no-such-session")
        .with("mcp-protocol-version", VERSION);
    for (method, body) in [(Method::POST, list), (Method::GET, ""), (Method::DELETE, "")] {
        let accept = |client: &HttpClient| client.clone().with("accept", "text/event-stream");
        let stolen = accept(&eve).send(method.clone(), "/mcp", Bytes::from_static(body.as_bytes())).await.unwrap();
        let absent = accept(&unknown).send(method.clone(), "/mcp", Bytes::from_static(body.as_bytes())).await.unwrap();
        assert_eq!((stolen.status, &stolen.body), (absent.status, &absent.body), "{method}");
    }
    // A session id proves nothing.
    let nobody = HttpClient::new(gateway.address()).with("mcp-session-id", &id);
    assert_eq!(nobody.post(list).await.unwrap().status, 401);
    assert_eq!(with_session(&token("ada", 62, "")).post(list).await.unwrap().status, 200);
}

/// `script/prove revocation` holds the second to it and prints the times, on a machine that has time for it.
#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_key_ends_its_stream_within_a_second() {
    let proved: Option<usize> = std::env::var("MCP_TEST_REVOCATIONS").ok().and_then(|text| text.parse().ok());
    let gateway = gateway().await;
    let mut times = Vec::new();
    for number in 0..proved.unwrap_or(1) {
        let name = format!("editor-{number}");
        let key = key(&gateway, &[&name]).await;
        let client = bearer(&gateway, &key).initialize(VERSION, json!({})).await.unwrap();
        let opened = client.with("accept", "text/event-stream").open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
        assert_eq!(opened.status(), 200);
        let mut body = opened.into_body();
        // Taken before the command starts: what is told is never too little.
        let revoked = Instant::now();
        signalbox(&gateway.data_dir(), &["keys", "revoke", &name]).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(20), async {
            while body.frame().await.is_some_and(|frame| frame.is_ok()) {}
        });
        ended.await.expect("the stream ends");
        times.push(revoked.elapsed());
        let refused = greet(&bearer(&gateway, &key)).await;
        assert_eq!(refused.status, 401);
        assert!(refused.message().unwrap()["error"]["message"].as_str().unwrap().contains("revoked"));
    }
    times.sort_unstable();
    let (count, middle, most) = (times.len(), times[times.len() / 2], times[times.len() - 1]);
    println!(
        "revocation: {count} streams ended {middle:.0?} (median) and at most {most:.0?} after `keys revoke` began"
    );
    // A busy machine proves nothing about the second.
    let bound = if proved.is_some() { 1 } else { 10 };
    assert!(most < Duration::from_secs(bound), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_ends_its_call_in_flight_with_an_error_that_says_so() {
    let gateway = gateway().await;
    let client = bearer(&gateway, &token("ada", 2, ""));
    let slow = client.modern(5, "tools/call", json!({"name": "slow", "arguments": {"ms": 60_000}})).await.unwrap();
    let error = slow.message().unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("expired"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_opens_so_many_sessions_and_no_more() {
    let gateway = gateway().await;
    let client = bearer(&gateway, &token("ada", 60, ""));
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(client.initialize(VERSION, json!({})).await.unwrap());
    }
    assert!(client.initialize(VERSION, json!({})).await.is_err());
    assert!(bearer(&gateway, &token("eve", 60, "")).initialize(VERSION, json!({})).await.is_ok());
    sessions.pop().unwrap().send(Method::DELETE, "/mcp", Bytes::new()).await.unwrap();
    assert!(client.initialize(VERSION, json!({})).await.is_ok());
}

fn authenticate(credential: &str) -> Value {
    used_secrets::note(credential);
    json!({"jsonrpc": "2.0", "id": "a", "method": "signalbox/authenticate", "params": {"scheme": "bearer", "credential": credential}})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_message_proves_who_calls_on_websocket_and_tcp() {
    let web = gateway().await;
    let folder = tempfile::tempdir().unwrap();
    let tcp = config(folder.path(), "")
        .replace("[mcp.protocol.security]", "[mcp.protocol.transport]\ntype = 'tcp'\n[mcp.protocol.security]");
    let tcp = GatewayProcess::serve_tcp(&tcp).await.unwrap();
    for socket in [true, false] {
        let open = async || match socket {
            true => PipeClient::websocket(web.address(), &[]).await.unwrap(),
            false => PipeClient::tcp(tcp.address()).await.unwrap(),
        };
        let mut client = open().await;
        client.say(&authenticate(&token("ada", 60, "greet:use")).to_string()).await.unwrap();
        let hello = client.next().await.unwrap();
        assert_eq!((&hello["id"], &hello["result"]["subject"]), (&json!("a"), &json!("corp:ada")), "{hello}");
        assert!(hello["result"]["expiresAt"].as_str().unwrap().starts_with("20"), "{hello}");
        client.initialize(VERSION, json!({})).await.unwrap();
        let called =
            client.request(2, "tools/call", json!({"name": "greet", "arguments": {"name": "Eve"}})).await.unwrap();
        assert!(text(&called).unwrap().contains("Eve"));

        for first in
            [authenticate("sbx_no_key").to_string(), r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#.to_owned()]
        {
            let mut client = open().await;
            client.say(&first).await.unwrap();
            let refused = client.next().await.unwrap();
            assert_eq!(refused["error"]["code"], -32001, "{refused}");
            assert!(client.next().await.is_err(), "the connection is closed");
        }
        let mut silent = open().await;
        let late = tokio::time::timeout(Duration::from_secs(20), silent.next()).await.unwrap();
        assert!(late.is_err() || late.unwrap()["error"]["code"] == -32001);
    }
    let header = format!("Bearer {}", token("ada", 60, ""));
    let mut by_header = PipeClient::websocket(web.address(), &[("authorization", &header)]).await.unwrap();
    by_header.initialize(VERSION, json!({})).await.unwrap();
}

/// Proves GO-8.
#[tokio::test(flavor = "multi_thread")]
async fn the_api_is_for_admins() {
    let gateway = gateway_with("[auth.users.'corp:ada']\nroles = ['admin']").await;
    let status = async |client: HttpClient| client.get("/api/v1/status").await.unwrap().status;
    assert_eq!(status(HttpClient::new(gateway.address())).await, 401);
    assert_eq!(status(bearer(&gateway, &token("eve", 60, ""))).await, 403);
    assert_eq!(status(bearer(&gateway, &token("ada", 60, ""))).await, 200);
    let admin = key(&gateway, &["ops", "--role", "admin"]).await;
    assert_eq!(status(bearer(&gateway, &admin)).await, 200);
    let elsewhere = tempfile::tempdir().unwrap();
    let url = gateway.url();
    let asked = signalbox(elsewhere.path(), &["status", "--json", "--url", &url, "--key", &admin]).await.unwrap();
    assert!(asked.contains("\"sessions\""), "{asked}");
    let tools =
        signalbox(elsewhere.path(), &["tools", "list", "--json", "--url", &url, "--key", &admin]).await.unwrap();
    assert!(tools.contains("greet"), "{tools}");
    // The line of MCP behind the control socket stays there.
    assert_eq!(bearer(&gateway, &admin).send(Method::POST, "/api/v1/mcp", Bytes::new()).await.unwrap().status, 404);
}

/// A feed of all messages ends with the credential that opened it.
#[tokio::test(flavor = "multi_thread")]
async fn the_live_feed_of_a_revoked_key_tells_nothing_more() {
    let gateway = gateway().await;
    let admin = key(&gateway, &["ops", "--role", "admin"]).await;
    let feed = bearer(&gateway, &admin).open(Method::GET, "/api/v1/live", Bytes::new()).await.unwrap();
    assert_eq!(feed.status(), 200);
    signalbox(&gateway.data_dir(), &["keys", "revoke", "ops"]).await.unwrap();
    let client = bearer(&gateway, &token("ada", 60, "greet:use")).initialize(VERSION, json!({})).await.unwrap();
    let called = json!({"name": "greet", "arguments": {"name": "Canary"}});
    assert!(text(&client.request(2, "tools/call", called).await.unwrap()).unwrap().contains("Canary"));
    let told = tokio::time::timeout(Duration::from_secs(20), feed.into_body().collect()).await;
    let told = told.expect("the feed goes on").unwrap().to_bytes();
    assert!(!String::from_utf8_lossy(&told).contains("Canary"));
}

/// The feed of all messages ends when its caller is switched off, within moments and though nothing happens.
#[tokio::test(flavor = "multi_thread")]
async fn the_live_feed_of_a_caller_that_is_switched_off_ends() {
    let gateway = gateway().await;
    let admin = key(&gateway, &["ops", "--role", "admin"]).await;
    let feed = bearer(&gateway, &admin).open(Method::GET, "/api/v1/live", Bytes::new()).await.unwrap();
    assert_eq!(feed.status(), 200);
    signalbox(&gateway.data_dir(), &["switch", "kill", "--principal", "*ops"]).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), feed.into_body().collect()).await;
    assert!(told.expect("the feed goes on").is_ok());
}

/// The secret is the value of a variable that every process has.
/// Proves NO-16.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_want_a_bearer_of_their_own_which_opens_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "").replace("[auth]\n", "[auth]\nmetrics_secret_env = 'PATH'\n");
    let gateway = GatewayProcess::serve_in(folder, &config).await.unwrap();
    let metrics = async |credential: &str| bearer(&gateway, credential).get("/metrics").await.unwrap().status;
    let secret = std::env::var("PATH").unwrap();
    assert_eq!(metrics(&secret).await, 200);
    assert_eq!(metrics(&token("ada", 60, "")).await, 401, "a caller's own token does not open it");
    assert_eq!(HttpClient::new(gateway.address()).get("/metrics").await.unwrap().status, 401);
    assert_eq!(greet(&bearer(&gateway, &secret)).await.status, 401);
    assert_eq!(bearer(&gateway, &secret).get("/api/v1/status").await.unwrap().status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_key_of_the_issuer_ends_its_tokens() {
    let gateway = gateway().await;
    let token = token("ada", 60, "greet:use");
    assert_eq!(greet(&bearer(&gateway, &token)).await.status, 200);
    let file = gateway.config_file().parent().unwrap().join("jwks.json");
    let set = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, set.replace("k1", "k2")).unwrap();
    let gone = async || (greet(&bearer(&gateway, &token)).await.status == 401).then_some(());
    eventually("the token is refused", gone).await.unwrap();
}

/// Serves this text as JSON, to everybody who asks, and returns where.
async fn served(text: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                text.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/keys")
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_an_issuer_are_read_from_its_address_if_that_may_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let with_file = config(folder.path(), "");
    let set = std::fs::read_to_string(folder.path().join("jwks.json")).unwrap();
    let url = served(set).await;
    let by_url =
        with_file.replace("jwks_file", "jwks_url").replace(folder.path().join("jwks.json").to_str().unwrap(), &url);
    let allowed = format!("{by_url}\n[auth.outbound]\nallow = ['127.0.0.1']\n");
    let gateway = GatewayProcess::serve(&allowed).await.unwrap();
    let token = token("ada", 600, "greet:use");
    let good = async || (greet(&bearer(&gateway, &token)).await.status == 200).then_some(());
    eventually("the token is accepted", good).await.unwrap();
    // Loopback is not asked unless the configuration says so.
    let closed = GatewayProcess::serve(&by_url).await.unwrap();
    assert_eq!(greet(&bearer(&closed, &token)).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credential_is_in_anything_that_the_gateway_keeps_or_says() {
    let gateway = gateway_with("[gateway]\nlog_level = 'trace'").await;
    let key = key(&gateway, &["editor"]).await;
    let token = token("ada", 60, "greet:use");
    let wrong = format!("{}x", token_for(&json!({"iss": ISSUER, "aud": RESOURCE, "sub": "eve", "exp": now() + 60})));
    let mut said = String::new();
    for credential in [&key, &token, &wrong] {
        let answer = greet(&bearer(&gateway, credential)).await;
        said.push_str(&String::from_utf8_lossy(&answer.body));
        let mut socket = PipeClient::websocket(gateway.address(), &[]).await.unwrap();
        socket.say(&authenticate(credential).to_string()).await.unwrap();
        said.push_str(&socket.next().await.unwrap().to_string());
    }
    for command in [&["status", "--json"][..], &["keys", "list", "--json"], &["sessions", "list", "--json"]] {
        said.push_str(&signalbox(&gateway.data_dir(), command).await.unwrap());
    }
    said.push_str(&String::from_utf8_lossy(&bearer(&gateway, &key).get("/metrics").await.unwrap().body));
    said.push_str(&gateway.process.error_lines().join("\n"));
    let folder = gateway.stop().await.unwrap();
    for credential in [&key, &token, &wrong] {
        // The longest part: the last one may be a few letters that stand in many texts.
        let secret = credential.split(['.', '_']).max_by_key(|part| part.len()).unwrap();
        assert!(!said.contains(secret), "said: {credential}");
        assert_eq!(files_holding(folder.path(), secret).unwrap(), Vec::<PathBuf>::new(), "kept: {credential}");
    }
}

/// Two callers with secrets of their own at one server, at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn two_callers_never_use_the_secret_of_the_other() {
    let calls: u64 = std::env::var("MCP_TEST_INTERLEAVED").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let server = ProtectedServer::start(Demands::Nothing, None).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut config = format!(
        "{}\n[backends.safe]\nurl = \"{}\"\n[backends.safe.auth]\nsecret_file = \"all\"\n",
        config(folder.path(), ""),
        server.url()
    );
    std::fs::write(folder.path().join("all"), "made-up-gateway").unwrap();
    for user in ["ada", "eve"] {
        std::fs::write(folder.path().join(user), format!("made-up-{user}")).unwrap();
        config.push_str(&format!("[backends.safe.auth.users.\"corp:{user}\"]\nsecret_file = \"{user}\"\n"));
    }
    let gateway = Arc::new(GatewayProcess::serve_in(folder, &config).await.unwrap());
    gateway.ready().await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for user in ["ada", "eve"] {
        for old in [true, false] {
            let gateway = Arc::clone(&gateway);
            tasks.spawn(async move {
                let client = bearer(&gateway, &token(user, 3_600, ""));
                let session = if old { Some(client.initialize(VERSION, json!({})).await.unwrap()) } else { None };
                for id in 1..=calls {
                    let params = json!({"name": "safe__work", "arguments": {"of": user}});
                    let answer = match &session {
                        Some(session) => session.request(id, "tools/call", params).await.unwrap(),
                        None => client.modern(id, "tools/call", params).await.unwrap().message().unwrap(),
                    };
                    assert_eq!(text(&answer).as_deref(), Some("done"), "{answer}");
                }
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let seen: Vec<_> = server.seen().into_iter().filter(|seen| seen.what == "tools/call").collect();
    assert_eq!(seen.len() as u64, calls * 4);
    for call in seen {
        let user = call.message["params"]["arguments"]["of"].as_str().unwrap();
        assert_eq!(call.headers["authorization"], format!("Bearer made-up-{user}"));
    }
}

/// Roles and scopes are those of the credential that a request comes with, in the session of a stronger one too.
#[tokio::test(flavor = "multi_thread")]
async fn a_weaker_credential_in_an_open_session_may_do_no_more_than_its_own_scopes_allow() {
    let gateway = gateway().await;
    let strong = key(&gateway, &["strong", "--subject", "corp:ada", "--scope", "greet:use"]).await;
    let weak = key(&gateway, &["weak", "--subject", "corp:ada", "--scope", "other"]).await;
    let opened = bearer(&gateway, &strong).initialize("2025-03-26", json!({})).await.unwrap();
    let in_session = |credential: &str| {
        let client = bearer(&gateway, credential).with("mcp-session-id", opened.session_id().unwrap());
        client.with("mcp-protocol-version", "2025-03-26")
    };
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "greet", "arguments": {"name": "Ada"}}});
    for round in 0..2 {
        let served = in_session(&strong).post(&call(2 + round).to_string()).await.unwrap().message().unwrap();
        assert!(served["result"].is_object(), "{served}");
        let alone = in_session(&weak).post(&call(12 + round).to_string()).await.unwrap();
        assert!(!String::from_utf8_lossy(&alone.body).contains("\"result\""), "{alone:?}");
        let batch = in_session(&weak).post(&json!([call(22 + round)]).to_string()).await.unwrap();
        assert!(!String::from_utf8_lossy(&batch.body).contains("\"result\""), "{batch:?}");
    }
}
