//! Hostile clients and backends that make the gateway hold as much as they can, beside clients that behave: the process
//! stays within its budget, and those lose nothing.
//!
//! The storm is short and its messages are small here. `script/prove memory` asks for more by `MCP_TEST_MEMORY_SECONDS`
//! and for messages of up to 16 MiB, which is the default bound, by `MCP_TEST_MEMORY_MIB`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this is a test, its helpers too"
)]

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::frail_server::{FrailServer, Mood, Speaks};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::{call, remote, web_fixture};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

const MIB: usize = 1024 * 1024;
/// What the process may hold at its peak besides twice its budget: 300 MiB in all with a budget of 128 MiB. A build for
/// debugging is larger itself.
const REST: usize = if cfg!(debug_assertions) { 80 * MIB } else { 44 * MIB };
/// How long the first refusal may take.
const PATIENCE: Duration = Duration::from_secs(120);
const VERSION: &str = "2025-06-18";

fn asked_for(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The bounds of one storm, in bytes.
#[derive(Copy, Clone)]
struct Sizes {
    message: usize,
    budget: usize,
}

impl Sizes {
    fn asked_for() -> Self {
        let message = asked_for("MCP_TEST_MEMORY_MIB", 2) * MIB;
        Self { message, budget: 8 * message }
    }

    /// Nearly the largest message.
    fn large(self) -> usize {
        self.message / 16 * 15
    }

    fn peak(self) -> usize {
        REST + 2 * self.budget
    }
}

/// The most that a process ever held, in bytes.
fn peak(process: &Spawned) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
}

struct World {
    sizes: Sizes,
    gateway: GatewayProcess,
    silent: FrailServer,
    _web: Spawned,
    over: AtomicBool,
    refused: AtomicU64,
}

impl World {
    async fn start(more: &str) -> Arc<Self> {
        let sizes = Sizes::asked_for();
        let (web, good) = web_fixture("127.0.0.1:0", ServedEra::New).await.unwrap();
        let silent = FrailServer::start("silent", Speaks::Old).await.unwrap();
        let config = format!(
            "{more}\ngateway.max_message = {}\ngateway.memory = {}\n{}{}",
            sizes.message,
            sizes.budget,
            remote("good", &good, "era = \"new\""),
            remote("silent", &silent.address().to_string(), "timeout = 20")
        );
        let gateway = GatewayProcess::serve(&format!("guard.level = 'off'\n{config}")).await.unwrap();
        gateway.ready().await.unwrap();
        silent.calls(Mood::Silent);
        Arc::new(Self { sizes, gateway, silent, _web: web, over: AtomicBool::new(false), refused: AtomicU64::new(0) })
    }

    async fn session(&self) -> Option<HttpClient> {
        HttpClient::new(self.gateway.address()).initialize(VERSION, json!({})).await.ok()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

fn body(id: u64, tool: &str, argument: &str, size: usize) -> Bytes {
    Bytes::from(call(id, tool, &json!({ argument: "x".repeat(size) })).to_string())
}

/// Sends large calls to a backend that never answers.
async fn sends_to_the_silent(world: Arc<World>) {
    let message = body(7, "run", "key", world.sizes.large());
    while !world.is_over() {
        let Some(client) = world.session().await else { continue };
        match client.send(Method::POST, "/mcp", message.clone()).await {
            Ok(answer) if answer.status == 503 => {
                let said = String::from_utf8_lossy(&answer.body);
                assert!(said.contains("as many bytes of messages as it may"), "{said}");
                world.refused.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body)),
            // The gateway closes a connection whose body it does not take.
            Err(_) => {
                world.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Asks for large answers and does not read them.
async fn never_reads(world: Arc<World>) {
    // Below the 4 MiB that the server takes.
    let message = body(8, "greet", "name", world.sizes.message / 5);
    while !world.is_over() {
        let Some(client) = world.session().await else { continue };
        let Ok(mut answer) = client.open(Method::POST, "/mcp", message.clone()).await else { continue };
        let _ = answer.body_mut().frame().await;
        for _ in 0..30 {
            if world.is_over() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Announces a large body and stops in the middle of it.
async fn stops_in_the_middle(world: Arc<World>, address: SocketAddr) {
    let large = world.sizes.large();
    while !world.is_over() {
        let Ok(mut stream) = TcpStream::connect(address).await else { continue };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json\r\n\
             content-length: {large}\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(&vec![b' '; large - 1000]).await;
        for _ in 0..20 {
            if world.is_over() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The same in frames of a WebSocket.
async fn stops_in_a_frame(world: Arc<World>, address: SocketAddr) {
    while !world.is_over() {
        let Ok(stream) = TcpStream::connect(address).await else { continue };
        let mut request = format!("ws://{address}/mcp").into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", http::HeaderValue::from_static("mcp"));
        let Ok((mut socket, _)) = client_async(request, stream).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        for part in 0..15_u32 {
            let code = if part == 0 { OpCode::Data(Data::Text) } else { OpCode::Data(Data::Continue) };
            let frame = Frame::message(vec![b' '; world.sizes.message / 16], code, false);
            let sending = tokio::time::timeout(Duration::from_secs(2), socket.send(Message::Frame(frame)));
            if !matches!(sending.await, Ok(Ok(()))) {
                break;
            }
        }
        let _ = tokio::time::timeout(Duration::from_secs(2), socket.next()).await;
    }
}

/// Calls, and must be answered rightly each time.
async fn behaves(world: Arc<World>, client: HttpClient, size: usize) -> u64 {
    let text = "y".repeat(size);
    let mut calls = 0;
    while !world.is_over() {
        calls += 1;
        let answer: Value = client
            .request(calls, "tools/call", json!({ "name": "greet", "arguments": { "name": text } }))
            .await
            .unwrap();
        let said = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:.300}"));
        assert!(said.contains(&text), "{said:.100}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    calls
}

/// They run beside the others, on a thread of their own: whoever makes large messages here must not keep them waiting.
async fn all_who_behave(world: &Arc<World>) -> std::thread::JoinHandle<u64> {
    let mut clients = Vec::new();
    for size in [100, 1_000, 3_000, 20_000, 40_000, 60_000] {
        clients.push((world.session().await.unwrap(), size));
    }
    let world = Arc::clone(world);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let all = clients.into_iter().map(|(client, size)| behaves(Arc::clone(&world), client, size));
            futures_util::future::join_all(all).await.into_iter().sum()
        })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_makes_the_gateway_hold_much_hurts_nobody_else() {
    let world = World::start("record.enabled = false").await;
    let address = world.gateway.address();
    let good = all_who_behave(&world).await;
    let mut hostile = JoinSet::new();
    for _ in 0..24 {
        hostile.spawn(sends_to_the_silent(Arc::clone(&world)));
        hostile.spawn(never_reads(Arc::clone(&world)));
    }
    for _ in 0..12 {
        hostile.spawn(stops_in_the_middle(Arc::clone(&world), address));
        hostile.spawn(stops_in_a_frame(Arc::clone(&world), address));
    }
    let most = world.sizes.peak();
    let end = Instant::now() + Duration::from_secs(asked_for("MCP_TEST_MEMORY_SECONDS", 10) as u64);
    // A refusal comes after 5 s at the earliest, and later on a busy machine.
    while Instant::now() < end || (world.refused.load(Ordering::Relaxed) == 0 && Instant::now() < end + PATIENCE) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let held = peak(&world.gateway.process);
        assert!(held < most, "the process held {} MiB", held / MIB);
    }
    world.over.store(true, Ordering::Relaxed);
    let calls = good.join().unwrap();
    let refused = world.refused.load(Ordering::Relaxed);
    let held = peak(&world.gateway.process) / MIB;
    println!("memory: {calls} calls of those who behave, {refused} refusals, {held} MiB at the peak");
    assert!(refused > 0, "the hostile were refused");
    drop(hostile);
    drop(world.silent.heard("tools/call"));
}
