//! A web server that takes audit records, or hangs.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What was posted, body by body.
#[derive(Clone, Default)]
pub struct Receiver {
    pub bodies: Arc<Mutex<Vec<Value>>>,
    pub url: String,
}

impl Receiver {
    /// Starts a server that takes everything.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api/events", listener.local_addr().unwrap());
        let receiver = Self { bodies: Arc::default(), url };
        let bodies = Arc::clone(&receiver.bodies);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(take(stream, Arc::clone(&bodies)));
            }
        });
        receiver
    }

    /// The address of a server that takes connections and never answers.
    pub async fn hanging() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api/events", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
            }
        });
        url
    }

    /// Starts a server that takes connections and does not answer until it is told to, and then takes everything.
    pub async fn late() -> (Self, tokio::sync::oneshot::Sender<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api/events", listener.local_addr().unwrap());
        let receiver = Self { bodies: Arc::default(), url };
        let (bodies, (begin, mut begun)) = (Arc::clone(&receiver.bodies), tokio::sync::oneshot::channel());
        tokio::spawn(async move {
            let mut held = Vec::new();
            loop {
                tokio::select! {
                    taken = listener.accept() => held.push(taken.unwrap().0),
                    _ = &mut begun => break,
                }
            }
            // Whoever waited has to come again.
            drop(held);
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(take(stream, Arc::clone(&bodies)));
            }
        });
        (receiver, begin)
    }

    /// All records that came, in their order.
    pub fn records(&self) -> Vec<Value> {
        let bodies = self.bodies.lock().unwrap();
        bodies.iter().flat_map(|body| body.as_array().unwrap().clone()).collect()
    }
}

async fn take(mut stream: TcpStream, bodies: Arc<Mutex<Vec<Value>>>) {
    let mut buffer = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let length = text.split("content-length:").nth(1).unwrap().split("\r\n").next().unwrap();
        let length: usize = length.trim().parse().unwrap();
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        }
        bodies.lock().unwrap().push(serde_json::from_slice(&buffer[head..head + length]).unwrap());
        buffer.drain(..head + length);
        if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.is_err() {
            return;
        }
    }
}
