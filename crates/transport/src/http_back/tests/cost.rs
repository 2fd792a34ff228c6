//! What a call costs this side, measured on demand:
//! `cargo test --release -p signalbox-transport http_back::tests::cost -- --ignored --nocapture`

use super::server::*;
use crate::http_back::{HttpConnector, HttpSpec};
use bytes::Bytes;
use signalbox_engine::Fault;
use signalbox_engine::back::Outbound;
use signalbox_runtime::{Connector as _, LinkEvents};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use tokio::sync::mpsc;

const CALLS: u64 = 50_000;

struct Ping(mpsc::Sender<()>);

impl LinkEvents for Ping {
    fn received(&self, _: Bytes, _: Option<u64>, _: Option<u16>) {
        self.0.try_send(()).unwrap();
    }
    fn failed(&self, _: u64, fault: Fault) {
        panic!("{fault}");
    }
    fn expired(&self, _: Outbound) {}
    fn lost(&self, _: String) {}
}

/// A server that answers every read with the same bytes.
fn blunt_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":"{}"}}}}"#, "x".repeat(210));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), json(&body));
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                let mut buffer = [0; 8192];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                    stream.write_all(&answer).unwrap();
                }
            });
        }
    });
    format!("http://{address}/mcp")
}

/// Nanoseconds this thread has run.
fn thread_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// CPU time of one call, with this many at once, in nanoseconds.
async fn measure(connector: &HttpConnector, message: &Outbound, at_once: u64) -> u64 {
    let (sender, mut events) = mpsc::channel(1000);
    let link = connector.open(Arc::new(Ping(sender))).await.unwrap();
    let before = thread_time();
    for _ in 0..CALLS / at_once {
        for _ in 0..at_once {
            link.send(message.clone()).unwrap();
        }
        for _ in 0..at_once {
            events.recv().await.unwrap();
        }
    }
    (thread_time() - before) / CALLS
}

#[test]
#[ignore = "a measurement"]
fn a_call() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connector = HttpConnector::new(HttpSpec::new("demo", blunt_server())).unwrap();
        let mut message = call(7);
        let padding = "y".repeat(180);
        message.bytes =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"p":"{padding}"}}}}"#).into();
        for at_once in [1, 1, 16] {
            println!("{at_once} at once: {} ns of CPU a call", measure(&connector, &message, at_once).await);
        }
    });
}

/// What the two system calls alone cost, on tokio and without HTTP: the floor.
#[test]
#[ignore = "a measurement"]
fn the_floor() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = blunt_server();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut buffer = [0; 8192];
        let before = thread_time();
        for _ in 0..CALLS {
            stream.write_all(&[b'x'; 500]).await.unwrap();
            assert!(stream.read(&mut buffer).await.unwrap() > 0);
        }
        println!("floor: {} ns of CPU a call", (thread_time() - before) / CALLS);
    });
}
