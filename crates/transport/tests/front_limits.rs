//! The HTTP front against clients that take their time or send too much: each is told, or cut, and counted.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed step is a failed test")]

use signalbox_engine::authenticator::{Arrival, Authenticator, Authenticators};
use signalbox_engine::caller::Identity;
use signalbox_engine::{Fault, Principal, Proof};
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
        let gateway =
            Gateway::new(GatewayParts::unguarded(Settings { limits, ..Settings::default() }, Vec::new()).unwrap())
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
    held.write_all(format!("{POST}content-length: 100\r\n\r\n{{").as_bytes()).await.unwrap();
    let mut second = scene.connect().await;
    second.write_all(format!("{POST}content-length: 4000\r\n\r\n{}", " ".repeat(4000)).as_bytes()).await.unwrap();
    let answer = rest(second).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"), "{answer}");
    assert!(answer.ends_with("\r\n\r\ntoo many connections are open\n"), "{answer}");
    assert_eq!(scene.gateway.counters.connections_refused.load(std::sync::atomic::Ordering::Relaxed), 1);
}

/// Sends a request that is answered with an error, and reads the answer. The connection stays open.
async fn ask(socket: &mut TcpStream, more: &str) -> std::io::Result<String> {
    socket.write_all(format!("{POST}{more}content-length: 2\r\n\r\n{{}}").as_bytes()).await?;
    let mut heard = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, socket.read(&mut heard)).await.expect("there is no answer")?;
    Ok(String::from_utf8_lossy(&heard[..read]).into_owned())
}

/// Connects until the front has a place, and asks.
async fn ask_until_served(scene: &Scene, more: &str) -> (TcpStream, String) {
    let asking = async {
        loop {
            let mut socket = scene.connect().await;
            match ask(&mut socket, more).await {
                Ok(answer) if !answer.is_empty() && !answer.starts_with("HTTP/1.1 503 ") => return (socket, answer),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.expect("idle connections keep everybody out")
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_give_way_to_new_ones() {
    let admission = Admission::new(8, &[], &[]);
    let scene = Scene::new(FrontSpec { admission, header_timeout: PATIENCE, ..FrontSpec::default() }).await;
    let mut idle = Vec::new();
    for number in 0..8 {
        let mut socket = scene.connect().await;
        // Half of them have asked once, the others have said nothing at all.
        if number % 2 == 0 {
            assert!(ask(&mut socket, "").await.unwrap().starts_with("HTTP/1.1 4"));
        }
        idle.push(socket);
    }
    let (_served, answer) = ask_until_served(&scene, "").await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    // The idlest one is closed without a word.
    assert_eq!(rest(idle.remove(0)).await, "");
    assert!(scene.gateway.counters.all_refused()["idle"] >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_in_use_do_not_give_way() {
    let scene = Scene::new(FrontSpec { admission: Admission::new(1, &[], &[]), ..FrontSpec::default() }).await;
    let mut busy = scene.connect().await;
    busy.write_all(format!("{POST}content-length: 2\r\n\r\n{{").as_bytes()).await.unwrap();
    // Longer than it takes to count as idle.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut second = scene.connect().await;
    assert!(ask(&mut second, "").await.unwrap().starts_with("HTTP/1.1 503 "));
    busy.write_all(b"}").await.unwrap();
    let mut heard = vec![0; 4096];
    let read = busy.read(&mut heard).await.unwrap();
    assert!(heard[..read].starts_with(b"HTTP/1.1 4"));
}

/// Takes everybody with an API key for Ada.
struct AdasKey;

impl Authenticator for AdasKey {
    fn name(&self) -> &'static str {
        "adas_key"
    }

    fn identify(&self, arrival: &Arrival<'_>) -> Result<Option<Identity>, Fault> {
        let shown = (arrival.header)("x-api-key").is_some();
        Ok(Some(Identity {
            principal: Principal::named(if shown { "ada" } else { "stranger" }),
            proof: if shown { Proof::ApiKey } else { Proof::Unproved },
            claims: Vec::new(),
            address: arrival.address,
            transport: arrival.transport,
            standing: None,
        }))
    }

    fn is_per_request(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_strangers_give_way_before_callers_who_proved_themselves() {
    let (admission, authenticators) = (Admission::new(4, &[], &[]), Authenticators::new(vec![Arc::new(AdasKey)]));
    let scene = Scene::new(FrontSpec { admission, authenticators, ..FrontSpec::default() }).await;
    let mut proved = scene.connect().await;
    assert!(ask(&mut proved, "x-api-key: k\r\n").await.unwrap().starts_with("HTTP/1.1 4"));
    let mut strangers = Vec::new();
    for _ in 0..3 {
        let mut stranger = scene.connect().await;
        let _ = ask(&mut stranger, "").await.unwrap();
        strangers.push(stranger);
    }
    // Ada's connection is the idlest, and keeps its place.
    let (_served, _) = ask_until_served(&scene, "").await;
    assert!(ask(&mut proved, "x-api-key: k\r\n").await.unwrap().starts_with("HTTP/1.1 4"));
}
