//! Client certificates: what they open over HTTP, WebSocket and TCP ends when they do.

use super::openers::{Opener, ended, valid_until};
use super::{Ending, LIFE, PATIENCE, Scene};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::json;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::openssl::{Authority, Issued, Trust};
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::scene::eventually;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// A front that asks for certificates, all of which are `user:cert`.
fn front(server: &Issued, authority: &Authority) -> String {
    format!(
        "[mcp.protocol.transport.tls]\nenabled = true\n{}ca_file = {:?}\n\
         [auth.certificates.all]\nsubject = 'CN=*'\nprincipal = 'user:cert'\nroles = ['admin']\n",
        server.lines(),
        authority.ca()
    )
}

/// A certificate that is good for so many seconds.
async fn certificate(authority: &Authority, file: &str, seconds: u64) -> Trust {
    let at = |seconds: u64| valid_until(seconds).replace(['-', ':', 'T'], "");
    let issued = authority.issue(file, "DNS:localhost", ("20200101000000Z", &at(seconds))).await.unwrap();
    Trust::showing(authority, &issued).unwrap()
}

/// A connection on which several requests are made.
struct KeptAlive {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
}

impl KeptAlive {
    async fn new(address: SocketAddr, trust: &Trust) -> Self {
        let socket = trust.connect(TcpStream::connect(address).await.unwrap()).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        Self { sender, address }
    }

    /// The status of a request, or `None` if the connection has ended.
    async fn status(&mut self, path: &str) -> Option<u16> {
        let request = Request::builder().method(Method::GET).uri(path).header("host", self.address.to_string());
        let request = request.body(Full::new(Bytes::new())).unwrap();
        self.sender.ready().await.ok()?;
        let answer = self.sender.send_request(request).await.ok()?;
        let status = answer.status().as_u16();
        answer.into_body().collect().await.ok()?;
        Some(status)
    }
}

/// What a client certificate holds open.
#[tokio::test(flavor = "multi_thread")]
async fn everything_that_a_certificate_holds_open_ends_with_it() {
    let Some(authority) = Authority::new().await.unwrap() else { return eprintln!("SKIP certificates: no openssl") };
    let server = authority.local("server").await.unwrap();
    let scene = Scene::new(|_| front(&server, &authority)).await;
    let address = scene.gateway.address();
    for ending in [Ending::Expires, Ending::LosesRights] {
        let life = if ending == Ending::Expires { LIFE } else { 600 };
        let trust = certificate(&authority, &format!("{ending:?}"), life).await;
        let opener = Opener::certified(address, &trust);
        let mut kept = KeptAlive::new(address, &trust).await;
        assert_eq!(kept.status("/api/v1/sessions").await, Some(200));
        let live = opener_live(address, &trust);
        let end = async || {
            if ending == Ending::LosesRights {
                scene.withdraw().await;
            }
        };
        scene.plays(opener, ("certificate", ending), end).await;
        if ending == Ending::Expires {
            tokio::time::timeout(PATIENCE, live).await.expect("the live feed outlives its certificate").unwrap();
            let refused = kept.status("/api/v1/sessions").await;
            assert!(matches!(refused, None | Some(401)), "a kept connection outlives its certificate: {refused:?}");
        }
    }
}

/// Reads the live feed until it ends.
fn opener_live(address: SocketAddr, trust: &Trust) -> tokio::task::JoinHandle<()> {
    let client = signalbox_testkit::http_client::HttpClient::new(address).secured(trust);
    tokio::spawn(async move {
        let answer = client.open(Method::GET, "/api/v1/live", Bytes::new()).await.unwrap();
        assert_eq!(answer.status(), 200);
        let _ = answer.into_body().collect().await;
    })
}

/// Rights that are withdrawn reach a connection that is kept open for further requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_of_a_certificate_has_the_rights_of_now() {
    let Some(authority) = Authority::new().await.unwrap() else { return eprintln!("SKIP certificates: no openssl") };
    let server = authority.local("server").await.unwrap();
    let scene = Scene::new(|_| {
        let front = front(&server, &authority).replace("['admin']", "[]").replace("user:cert", "user:ops");
        format!("{front}[auth.users.'user:ops']\nroles = ['admin']\n")
    });
    let scene = scene.await;
    let trust = certificate(&authority, "ops", 600).await;
    let mut kept = KeptAlive::new(scene.gateway.address(), &trust).await;
    assert_eq!(kept.status("/api/v1/sessions").await, Some(200));
    scene.rewrite("all", &scene.more.replace("roles = ['admin']", "roles = []"));
    let look = async || (kept.status("/api/v1/sessions").await == Some(403)).then_some(());
    eventually("the role is withdrawn", look).await.unwrap();
}

/// A connection over TCP ends with the certificate that opened it.
#[tokio::test(flavor = "multi_thread")]
async fn a_tcp_connection_ends_with_its_certificate() {
    let Some(authority) = Authority::new().await.unwrap() else { return eprintln!("SKIP certificates: no openssl") };
    let server = authority.local("server").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = super::config(
        folder.path(),
        "all",
        &format!("[mcp.protocol.transport]\ntype = 'tcp'\n{}", front(&server, &authority)),
    );
    let gateway = GatewayProcess::serve_tcp(&config).await.unwrap();
    let trust = certificate(&authority, "short", LIFE).await;
    let connect = async || {
        let socket = TcpStream::connect(gateway.address()).await.ok()?;
        trust.connect(socket).await.ok()
    };
    let socket = eventually("the gateway listens", connect).await.unwrap();
    let mut client = PipeClient::lines_over(socket);
    client.initialize("2025-06-18", json!({})).await.unwrap();
    let called = client.request(2, "tools/call", json!({"name": "count", "arguments": {}})).await.unwrap();
    assert!(called["result"].is_object(), "{called}");
    let end = tokio::time::timeout(PATIENCE, ended(&mut client)).await;
    end.expect("the connection outlives its certificate").unwrap();
}
