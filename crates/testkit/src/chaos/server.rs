//! A server that misbehaves on command, over every transport.
//!
//! It reads its orders from a file at every request, so that one order reaches every process of a backend and outlives
//! each of them. Every run of its tool is a line in a journal, written before the answer: the journal shows a call that
//! ran twice, even if no answer arrived.

mod pipe;
mod speech;
mod sse;
mod web;
mod ws;

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use serde_json::Value;
use tokio::net::TcpListener;

use super::mode::ChaosMode;
use speech::SpeechStep;

pub use speech::tool;

/// What a server is told at its start.
#[derive(Debug, Clone)]
pub struct ChaosOptions {
    /// What it calls itself, and its tool and its answers after it.
    pub name: String,
    /// Whether it speaks 2026-07-28, else 2025-06-18.
    pub modern: bool,
    /// The file with the word of its [`ChaosMode`].
    pub orders: PathBuf,
    /// The file that gets a line for every run of its tool.
    pub journal: PathBuf,
}

/// Where a server serves.
#[derive(Debug, Clone, Copy)]
pub enum ServeOn {
    /// Standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http(SocketAddr),
    /// HTTP+SSE.
    Sse(SocketAddr),
    /// WebSocket.
    Ws(SocketAddr),
}

/// One server process.
#[derive(Debug)]
struct Server {
    options: ChaosOptions,
    journal: File,
    next: AtomicU64,
}

/// Serves until the input ends, or for ever.
///
/// # Errors
/// When the journal or the address cannot be used.
pub async fn serve(options: ChaosOptions, place: ServeOn) -> anyhow::Result<()> {
    let journal = File::options().create(true).append(true).open(&options.journal).context("the journal")?;
    let server = Arc::new(Server { options, journal, next: AtomicU64::new(1) });
    let address = match place {
        ServeOn::Stdio => return pipe::serve(server).await,
        ServeOn::Http(address) | ServeOn::Sse(address) | ServeOn::Ws(address) => address,
    };
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let mut output = std::io::stdout();
    writeln!(output, "listening {}", listener.local_addr()?)?;
    output.flush()?;
    let streams = sse::Streams::default();
    loop {
        let (socket, _) = listener.accept().await?;
        let _ = socket.set_nodelay(true);
        let server = Arc::clone(&server);
        match place {
            ServeOn::Ws(_) => drop(tokio::spawn(ws::serve(socket, server))),
            ServeOn::Sse(_) => drop(tokio::spawn(sse::serve(socket, server, streams.clone()))),
            _ => drop(tokio::spawn(web::serve(socket, server))),
        }
    }
}

impl Server {
    /// How to answer just now.
    fn mode(&self) -> ChaosMode {
        // The file is replaced as a whole, so that it is never seen half written; while it is away nothing is ordered.
        let word = std::fs::read_to_string(&self.options.orders).unwrap_or_default();
        word.trim().parse().unwrap_or(ChaosMode::Fine)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that the tool ran with this argument.
    fn ran(&self, tag: &str) {
        // One write, so that lines of several processes do not mix.
        if let Err(error) = (&self.journal).write_all(format!("{tag}\n").as_bytes()) {
            eprintln!("the journal cannot be written: {error}");
        }
    }

    /// What is done about a message; nothing about one that wants no answer.
    fn steps(&self, message: &Value) -> Vec<SpeechStep> {
        let mode = self.mode();
        if message["method"] == "tools/call" {
            self.ran(message["params"]["arguments"]["tag"].as_str().unwrap_or_default());
        }
        speech::steps(&self.options.name, self.options.modern, mode, message)
    }
}
