//! What clients meet.

use super::{ca_file, demo, echo, front, open, showing, trusting};
use serde_json::json;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::openssl::{Authority, ClientReport, https, s_client};
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::{PATIENCE, eventually};
use std::net::SocketAddr;
use tokio::process::Command;

async fn get(address: SocketAddr, options: &[String], path: &str) -> ClientReport {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    https(address, &options, &format!("GET {path} HTTP/1.1"), "").await.unwrap()
}

/// The version that a connection with these options is spoken in, or why there is none.
async fn version(address: SocketAddr, options: &[&str]) -> Result<String, String> {
    let seen = s_client(address, &[&["-brief"], options].concat(), "").await.unwrap();
    let all = format!("{}{}", seen.text, seen.errors);
    match all.lines().find_map(|line| line.strip_prefix("Protocol version: ")) {
        Some(version) => Ok(version.to_owned()),
        None => Err(all),
    }
}

/// Proves G-33.
#[tokio::test]
async fn a_client_that_trusts_the_authority_calls_a_tool_and_one_that_does_not_leaves() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let gateway = demo(&authority, "").await;
    let trusting = trusting(&authority);
    let session = open(gateway.address(), &trusting).await;
    let (head, body) = echo(gateway.address(), &trusting, &session).await;
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("through TLS"), "{head}\n{body}");

    let other = Authority::new().await.unwrap().unwrap();
    let seen = get(gateway.address(), &super::trusting(&other), "/healthz").await;
    assert!(!seen.ok && seen.errors.contains("verify error"), "{seen:?}");
    let metrics = get(gateway.address(), &trusting, "/metrics").await.text;
    assert!(metrics.contains("signalbox_tls_handshakes_failed_total{reason=\"refused_by_client\"} 1"), "{metrics}");
    let banner = gateway.process.error_lines().join("\n");
    assert!(banner.contains(" serves MCP at https://127.0.0.1:"), "{banner}");
}

#[tokio::test]
async fn old_versions_are_refused_and_the_oldest_can_be_chosen() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let weak = ["-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"];
    let any = demo(&authority, "").await;
    let refused = version(any.address(), &weak).await.unwrap_err();
    assert!(refused.contains("alert handshake failure") || refused.contains("alert protocol version"), "{refused}");
    assert_eq!(version(any.address(), &["-tls1_2"]).await.as_deref(), Ok("TLSv1.2"));
    assert_eq!(version(any.address(), &[]).await.as_deref(), Ok("TLSv1.3"));
    let strict = demo(&authority, "min_version = \"1.3\"").await;
    let refused = version(strict.address(), &["-tls1_2"]).await.unwrap_err();
    assert!(refused.contains("alert protocol version"), "{refused}");
    assert_eq!(version(strict.address(), &["-tls1_3"]).await.as_deref(), Ok("TLSv1.3"));
}

#[tokio::test]
async fn only_http_1_is_offered() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let gateway = demo(&authority, "").await;
    let seen = s_client(gateway.address(), &["-alpn", "h2,http/1.1"], "").await.unwrap();
    assert!(seen.text.contains("ALPN protocol: http/1.1"), "{seen:?}");
    let seen = s_client(gateway.address(), &["-alpn", "h2"], "").await.unwrap();
    assert!(seen.errors.contains("no application protocol"), "{seen:?}");
}

#[tokio::test]
async fn the_certificate_is_chosen_by_the_name_asked_for() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let (first, second, third) = tokio::join!(
        authority.local("first"),
        authority.named("second", "DNS:two.example,DNS:deux.example"),
        authority.named("third", "DNS:*.three.example")
    );
    let more = format!(
        "[mcp.protocol.transport.tls.certificates.b]\n{}[mcp.protocol.transport.tls.certificates.c]\n{}",
        second.unwrap().lines(),
        third.unwrap().lines()
    );
    let gateway = GatewayProcess::serve(&front(&first.unwrap(), &more)).await.unwrap();
    for (name, expected) in [
        ("two.example", "second"),
        ("deux.example", "second"),
        ("a.three.example", "third"),
        ("localhost", "first"),
        ("a.b.three.example", "first"),
        ("unknown.example", "first"),
    ] {
        let seen = s_client(gateway.address(), &["-servername", name], "").await.unwrap();
        assert!(seen.text.contains(&format!("subject=CN = {expected}\n")), "{name}: {}", seen.text);
    }
    let seen = s_client(gateway.address(), &["-noservername"], "").await.unwrap();
    assert!(seen.text.contains("subject=CN = first\n"), "{}", seen.text);
}

#[tokio::test]
async fn plain_http_is_told_to_use_tls_and_counted() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let gateway = demo(&authority, "").await;
    let answer = HttpClient::new(gateway.address()).get("/healthz").await.unwrap();
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!((answer.status, body.trim_end()), (400, "TLS is spoken here: use https:// (or wss://) in the address."));
    let metrics = get(gateway.address(), &trusting(&authority), "/metrics").await.text;
    assert!(metrics.contains("signalbox_tls_handshakes_failed_total{reason=\"not_tls\"} "), "{metrics}");
    assert!(metrics.contains("\nsignalbox_tls_handshakes 0\n"), "{metrics}");
}

#[tokio::test]
async fn a_session_belongs_to_the_certificate_that_opened_it() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let gateway = demo(&authority, &format!("{}client_auth = \"optional\"\n", ca_file(&authority))).await;
    let (ann, bob) = tokio::join!(authority.named("ann", "DNS:ann"), authority.named("bob", "DNS:bob"));
    let (ann, bob) = (showing(&authority, &ann.unwrap()), showing(&authority, &bob.unwrap()));
    let nobody = trusting(&authority);
    let address = gateway.address();
    for (owner, others) in [(&ann, [&bob, &nobody]), (&nobody, [&ann, &bob])] {
        let session = open(address, owner).await;
        for other in others {
            let (head, _) = echo(address, other, &session).await;
            assert!(head.starts_with("HTTP/1.1 404"), "{head}");
            for method in ["GET", "DELETE"] {
                let options: Vec<&str> = other.iter().map(String::as_str).collect();
                let head = format!("{method} /mcp HTTP/1.1\r\naccept: text/event-stream\r\nmcp-session-id: {session}");
                let seen = https(address, &options, &head, "").await.unwrap();
                assert!(seen.text.starts_with("HTTP/1.1 404"), "{seen:?}");
            }
        }
        let (head, body) = echo(address, owner, &session).await;
        assert!(head.starts_with("HTTP/1.1 200") && body.contains("through TLS"), "{head}\n{body}");
    }
}

#[tokio::test]
async fn an_event_stream_takes_no_message_of_another_certificate() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let gateway = demo(&authority, &ca_file(&authority)).await;
    let (ann, bob) = tokio::join!(authority.named("ann", "DNS:ann"), authority.named("bob", "DNS:bob"));
    let (ann, bob) = (showing(&authority, &ann.unwrap()), showing(&authority, &bob.unwrap()));
    let address = gateway.address();
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address.to_string(), "-quiet"]).args(&ann);
    let mut stream = Spawned::start(command).unwrap();
    stream.write_line("GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r").await.unwrap();
    let line = stream.wait_line("data: /messages", PATIENCE).await.unwrap();
    let head = format!("POST {} HTTP/1.1\r\ncontent-type: application/json", line.trim_start_matches("data: ").trim());
    let body = super::initialize().to_string();
    for (who, expected) in [(&bob, "HTTP/1.1 404"), (&ann, "HTTP/1.1 202")] {
        let options: Vec<&str> = who.iter().map(String::as_str).collect();
        let seen = https(address, &options, &head, &body).await.unwrap();
        assert!(seen.text.starts_with(expected), "{seen:?}");
    }
}

#[tokio::test]
async fn a_required_certificate_is_required_and_must_be_of_the_right_authority() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let other = Authority::new().await.unwrap().unwrap();
    let gateway = demo(&authority, &ca_file(&authority)).await;
    let address = gateway.address();
    let good = showing(&authority, &authority.named("ann", "DNS:ann").await.unwrap());
    let session = open(address, &good).await;
    assert!(echo(address, &good, &session).await.1.contains("through TLS"));

    let seen = get(address, &trusting(&authority), "/healthz").await;
    assert!(seen.text.is_empty() && seen.errors.contains("certificate required"), "{seen:?}");
    let foreign = other.named("eve", "DNS:ann").await.unwrap();
    let seen = get(address, &showing(&authority, &foreign), "/healthz").await;
    assert!(seen.text.is_empty() && seen.errors.contains("unknown ca"), "{seen:?}");
    let expired = authority.issue("old", "DNS:ann", signalbox_testkit::openssl::EXPIRED).await.unwrap();
    let seen = get(address, &showing(&authority, &expired), "/healthz").await;
    assert!(seen.text.is_empty() && seen.errors.contains("certificate expired"), "{seen:?}");
    let metrics = get(address, &good, "/metrics").await.text;
    assert!(metrics.contains("signalbox_tls_handshakes_failed_total{reason=\"client_certificate\"} 3"), "{metrics}");
}

#[tokio::test]
async fn lines_inside_tls_are_served_to_a_known_client() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let issued = authority.local("server").await.unwrap();
    let config = format!("[mcp.protocol.transport]\ntype = \"tcp\"\n{}", front(&issued, &ca_file(&authority)));
    let gateway = GatewayProcess::serve_tcp(&config).await.unwrap();
    let address = gateway.address();
    let options = showing(&authority, &authority.named("ann", "DNS:ann").await.unwrap());
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address.to_string(), "-quiet", "-verify_return_error"]).args(&options);
    let mut client = Spawned::start(command).unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi there"}}});
    for message in [super::initialize(), json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), call] {
        client.write_line(&message.to_string()).await.unwrap();
    }
    let answered = async || client.lines().iter().any(|line| line.contains("hi there")).then_some(());
    eventually("the call is answered", answered).await.unwrap();

    let options: Vec<&str> = options.iter().map(String::as_str).chain(["-quiet", "-ign_eof"]).collect();
    let seen = s_client(address, &options, "GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(seen.text.contains("one JSON-RPC message per line"), "{seen:?}");
    let nobody: Vec<String> =
        trusting(&authority).into_iter().chain(["-quiet".to_owned(), "-ign_eof".to_owned()]).collect();
    let nobody: Vec<&str> = nobody.iter().map(String::as_str).collect();
    let seen = s_client(address, &nobody, "{}\n").await.unwrap();
    assert!(seen.text.is_empty() && seen.errors.contains("certificate required"), "{seen:?}");
    let mut plain = PipeClient::tcp(address).await.unwrap();
    plain.say("{}").await.unwrap();
    let said = plain.next().await.unwrap();
    assert_eq!(said["error"]["message"], "TLS is spoken here: connect with TLS", "{said}");
}
