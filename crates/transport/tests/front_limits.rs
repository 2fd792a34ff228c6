//! The HTTP front against clients that take their time or send too much: each is told, or cut, and counted.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed step is a failed test")]

use signalbox_engine::{Chain, Principal};
use signalbox_runtime::{Gateway, GatewayParts, Settings};
use signalbox_transport::admission::Admission;
use signalbox_transport::http_front::{self, FrontSpec};
use signalbox_transport::workers::Workers;
use signalbox_wire::Limits;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// A front without backends that loses its patience soon.
struct Scene {
    gateway: Arc<Gateway>,
    address: SocketAddr,
    _stop: watch::Sender<bool>,
}

impl Scene {
    async fn new(spec: FrontSpec) -> Self {
        let limits = Limits { message: 4096, ..Limits::default() };
        let gateway = Gateway::new(GatewayParts {
            settings: Settings { limits, ..Settings::default() },
            backends: Vec::new(),
            chain: Chain::default(),
            facts: Vec::new(),
            post: None,
            principal: Principal::anonymous(),
            catalog_file: None,
        })
        .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        let front = Arc::clone(&gateway);
        tokio::spawn(async move {
            let workers = Workers::start(1, || {}).unwrap();
            http_front::serve(listener, front, Arc::new(spec), Arc::default(), &workers, stopping).await;
        });
        Self { gateway, address, _stop: stop }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Waits until so many were refused at this limit.
    async fn refused(&self, limit: &str, count: u64) {
        let counted = async {
            while self.gateway.counters.all_refused()[limit] != count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, counted).await.expect("it is not counted");
    }
}

/// Everything that comes until the connection is closed.
async fn rest(mut socket: TcpStream) -> String {
    let mut heard = Vec::new();
    // A reset ends the connection as well as a close does.
    let _ = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut heard)).await.expect("the connection stays open");
    String::from_utf8_lossy(&heard).into_owned()
}

const POST: &str = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_no_head_in_time_is_cut_and_counted() {
    let scene = Scene::new(FrontSpec { header_timeout: SHORT, ..FrontSpec::default() }).await;
    let silent = scene.connect().await;
    let mut slow = scene.connect().await;
    slow.write_all(b"POST /mcp HT").await.unwrap();
    assert_eq!((rest(silent).await, rest(slow).await), (String::new(), String::new()));
    scene.refused("head_time", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_no_body_in_time_gets_408_and_is_counted() {
    let scene = Scene::new(FrontSpec { body_timeout: SHORT, ..FrontSpec::default() }).await;
    let mut socket = scene.connect().await;
    socket.write_all(format!("{POST}content-length: 100\r\n\r\n{{").as_bytes()).await.unwrap();
    let answer = rest(socket).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("did not arrive in time"), "{answer}");
    scene.refused("message_time", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_gets_413_and_is_counted() {
    let scene = Scene::new(FrontSpec::default()).await;
    let mut socket = scene.connect().await;
    socket.write_all(format!("{POST}content-length: 5000\r\n\r\n").as_bytes()).await.unwrap();
    let answer = rest(socket).await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("4096 bytes"), "{answer}");
    scene.refused("message_size", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_too_large_gets_431_and_is_counted() {
    let scene = Scene::new(FrontSpec::default()).await;
    let mut counted = 0;
    for more in
        ["x-one: 1\r\n".repeat(http_front::MAX_HEADERS), format!("x: {}\r\n", "x".repeat(4 * http_front::MAX_HEAD))]
    {
        let mut socket = scene.connect().await;
        // The front may close before it has read all of it.
        let _ = socket.write_all(format!("{POST}{more}\r\n").as_bytes()).await;
        let answer = rest(socket).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
        counted += 1;
        scene.refused("head_size", counted).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_and_never_reads_is_cut_and_counted() {
    let scene = Scene::new(FrontSpec { reader_timeout: SHORT, ..FrontSpec::default() }).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut socket = socket.connect(scene.address).await.unwrap();
    let ask = format!("{POST}content-length: 2\r\n\r\n{{}}").repeat(100);
    let asking = async { while socket.write_all(ask.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, asking).await.expect("it is never cut");
    scene.refused("slow_reader", 1).await;
    scene.refused("head_time", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_too_many_hears_503_though_it_has_sent_its_request() {
    let scene = Scene::new(FrontSpec { admission: Admission::new(1, &[], &[]), ..FrontSpec::default() }).await;
    let mut held = scene.connect().await;
    held.write_all(POST.as_bytes()).await.unwrap();
    let mut second = scene.connect().await;
    second.write_all(format!("{POST}content-length: 4000\r\n\r\n{}", " ".repeat(4000)).as_bytes()).await.unwrap();
    let answer = rest(second).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"), "{answer}");
    assert!(answer.ends_with("\r\n\r\ntoo many connections are open\n"), "{answer}");
    assert_eq!(scene.gateway.counters.connections_refused.load(std::sync::atomic::Ordering::Relaxed), 1);
}
