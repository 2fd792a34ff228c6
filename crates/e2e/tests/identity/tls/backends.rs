//! Backends behind TLS: a gateway behind a gateway, and Node's TLS in front of servers of others.

use super::{ca_file, front};
use serde_json::{Value, json};
use signalbox_testkit::clients::{everything, run_script};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::openssl::{Authority, EXPIRED, Issued};
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::{ask, backend_status, child, eventually, tool_names, web_fixture};
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

const VERSION: &str = "2025-06-18";

/// A gateway with a fixture, behind TLS.
async fn inner(issued: &Issued, more: &str) -> GatewayProcess {
    let config = format!("{}{}", front(issued, more), child("fixture", ServedEra::Old, "").unwrap());
    GatewayProcess::serve(&config).await.unwrap()
}

/// A gateway whose backend `far` is at this address.
async fn outer(url: &str, more: &str) -> GatewayProcess {
    GatewayProcess::serve(&format!("[backends.far]\nurl = \"{url}\"\n{more}\n")).await.unwrap()
}

/// What is wrong with `far`.
async fn trouble(gateway: &GatewayProcess) -> String {
    let data_dir = gateway.data_dir();
    let look = async || backend_status(&data_dir, "far").await.ok()?["last_error"].as_str().map(str::to_owned);
    eventually("an error of the backend", look).await.unwrap()
}

async fn client(gateway: &GatewayProcess) -> HttpClient {
    gateway.ready().await.unwrap();
    HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transport_reaches_a_backend_with_a_private_authority() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let inner = inner(&authority.local("server").await.unwrap(), "").await;
    let tls = format!("[backends.far.tls]\n{}", ca_file(&authority));
    for (url, transport, kind) in [
        (format!("https://localhost:{}/mcp", inner.address().port()), "", "http"),
        (format!("https://{}/sse", inner.address()), "transport = \"sse\"\n", "sse"),
        (format!("wss://{}/mcp", inner.address()), "", "websocket"),
    ] {
        let outer = outer(&url, &format!("{transport}{tls}")).await;
        let client = client(&outer).await;
        for _ in 0..3 {
            assert!(ask(&client, "greet", json!({"name": url})).await.unwrap().contains(&url));
        }
        let status = backend_status(&outer.data_dir(), "far").await.unwrap();
        assert_eq!(status["transport"], kind, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_backend_cannot_be_reached_is_said_in_plain_words() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let other = Authority::new().await.unwrap().unwrap();
    let (good, expired, elsewhere) = tokio::join!(
        authority.local("good"),
        authority.issue("expired", "IP:127.0.0.1", EXPIRED),
        authority.named("elsewhere", "DNS:elsewhere.example")
    );
    let good = inner(&good.unwrap(), "min_version = \"1.3\"\n").await;
    let expired = inner(&expired.unwrap(), "").await;
    let elsewhere = inner(&elsewhere.unwrap(), "").await;
    let plain = GatewayProcess::serve("").await.unwrap();
    let (known, unknown) = (ca_file(&authority), ca_file(&other));
    for (gateway, tls, expected) in [
        (&expired, &known, "the certificate has expired at 2021-01-01 00:00:00 UTC"),
        (&good, &unknown, "the certificate is signed by an unknown authority"),
        (&elsewhere, &known, "the certificate is for another host: not for 127.0.0.1, but for "),
        (&plain, &known, "the other side does not speak TLS there"),
    ] {
        for scheme in ["https", "wss"] {
            let url = format!("{scheme}://{}/mcp", gateway.address());
            let outer = outer(&url, &format!("[backends.far.tls]\n{tls}")).await;
            let said = trouble(&outer).await;
            assert!(said.contains(expected), "{scheme}: {said}");
            assert!(said.contains(&format!("cannot be reached at {}", gateway.address())), "{said}");
        }
    }
    let named = format!("[backends.far.tls]\n{known}server_name = \"elsewhere.example\"\n");
    client(&outer(&format!("https://{}/mcp", elsewhere.address()), &named).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_gets_the_certificate_it_asks_for() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let (server, own) = tokio::join!(authority.local("server"), authority.named("gateway", "DNS:gateway"));
    let (server, own) = (server.unwrap(), own.unwrap());
    let inner = inner(&server, &ca_file(&authority)).await;
    for url in [format!("https://{}/mcp", inner.address()), format!("wss://{}/mcp", inner.address())] {
        let tls = format!("[backends.far.tls]\n{}", ca_file(&authority));
        let without = outer(&url, &tls).await;
        let said = trouble(&without).await;
        assert!(said.contains("the other side wants a certificate; set `tls.cert_file`"), "{said}");
        let with = outer(&url, &format!("{tls}{}", own.lines())).await;
        assert!(ask(&client(&with).await, "greet", json!({"name": "Ann"})).await.unwrap().contains("Ann"));
    }
}

/// Node's TLS in front of a port of this machine; none where Node is missing.
async fn proxy(issued: &Issued, port: u16, client_ca: Option<&Path>) -> Option<(Spawned, u16)> {
    let mut command = Command::new(run_script());
    command.arg("tls-proxy").arg(&issued.cert).arg(&issued.key).arg(port.to_string()).args(client_ca);
    let mut proxy = Spawned::start(command).unwrap();
    let Ok(line) = proxy.wait_line("listening ", Duration::from_secs(30)).await else {
        let status = proxy.wait(Duration::from_secs(30)).await.unwrap();
        assert_eq!(status.code(), Some(77), "{:?}", proxy.error_lines());
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "tls-proxy is not installed");
        eprintln!("SKIP tls-proxy: run script/install-test-deps");
        return None;
    };
    Some((proxy, line.trim_start_matches("listening ").parse().unwrap()))
}

fn connections(proxy: &Spawned, word: &str) -> usize {
    proxy.lines().iter().filter(|line| line.starts_with("connection ") && line.contains(word)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept_and_sessions_are_resumed() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let (server, own) = tokio::join!(authority.local("server"), authority.named("gateway", "DNS:gateway"));
    let (_fixture, address) = web_fixture("127.0.0.1:0", ServedEra::Both).await.unwrap();
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    let Some((proxy, port)) = proxy(&server.unwrap(), port, Some(&authority.ca())).await else { return };
    let tls = format!("[backends.far.tls]\n{}{}", ca_file(&authority), own.unwrap().lines());
    let outer = outer(&format!("https://localhost:{port}/mcp"), &tls).await;
    let client = client(&outer).await;
    for index in 0..50 {
        let message = format!("number {index}");
        assert!(ask(&client, "greet", json!({"name": message})).await.unwrap().contains(&message));
    }
    let all = connections(&proxy, "TLSv1.3");
    assert!((1..25).contains(&all), "{all} connections for 50 calls");
    assert!(connections(&proxy, " resumed localhost") > 0, "{:?}", proxy.lines());
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_others_behind_the_tls_of_others_are_reached() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let server = authority.local("server").await.unwrap();
    let Some((_everything, address)) = everything("streamableHttp").await.unwrap() else { return };
    let Some((_proxy, port)) = proxy(&server, address.port(), None).await else { return };
    let tls = format!("[backends.far.tls]\n{}", ca_file(&authority));
    let outer = outer(&format!("https://localhost:{port}/mcp"), &tls).await;
    let client = client(&outer).await;
    assert!(tool_names(&client).await.unwrap().iter().any(|name| name == "get-sum"));
    let answer: Value =
        client.request(7, "tools/call", json!({"name": "get-sum", "arguments": {"a": 1, "b": 2}})).await.unwrap();
    assert!(answer.to_string().contains("is 3"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_authority_is_taken_for_new_connections() {
    let Some(authority) = Authority::new().await.unwrap() else { return };
    let other = Authority::new().await.unwrap().unwrap();
    let inner = inner(&authority.local("server").await.unwrap(), "").await;
    let folder = tempfile::tempdir().unwrap();
    let trusted = folder.path().join("trusted.pem");
    std::fs::copy(other.ca(), &trusted).unwrap();
    let tls = format!("[backends.far.tls]\nca_file = {trusted:?}\n");
    let outer = outer(&format!("https://{}/mcp", inner.address()), &tls).await;
    assert!(trouble(&outer).await.contains("unknown authority"));
    std::fs::copy(authority.ca(), &trusted).unwrap();
    let data_dir = outer.data_dir();
    let up = async || backend_status(&data_dir, "far").await.ok().filter(|status| status["state"] == "up");
    eventually("the backend is believed", up).await.unwrap();
}
