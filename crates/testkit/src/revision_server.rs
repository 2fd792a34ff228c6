//! An MCP server that speaks exactly one revision, over every transport of that revision, and is strict about it.
//!
//! It is an independent witness: it shares no code with the gateway nor with an MCP library. What a client may not send
//! by its revision is answered with an error that names the fault, told on standard error as `VIOLATION ...` and
//! counted.

mod asking;
mod call;
mod catalog;
mod fault;
mod http;
mod methods;
mod oddities;
mod pipe;
mod question;
mod rules;
mod rules_modern;
mod shared;
mod sse;
mod talk;
mod tasks;
mod tools;
mod web;
mod ws;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::revision::Revision;
use shared::ServerShared;

pub use pipe::stdio;

/// What a server is told at its start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The one revision it speaks.
    pub revision: Revision,
    /// A file that gets a line for everything counted, from every process that is given the same one.
    pub journal: Option<PathBuf>,
    /// A file that gets every message that is sent or received, from every process that is given the same one.
    pub wire_log: Option<PathBuf>,
    /// Whether there are tools that do what no server should: see [`oddities`].
    pub odd: bool,
}

impl Options {
    /// A server of this revision that writes nothing down.
    pub fn of(revision: Revision) -> Self {
        Self { revision, journal: None, wire_log: None, odd: false }
    }
}

/// How a server is reached over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Streamable HTTP, from 2025-03-26 on.
    Http,
    /// HTTP+SSE, up to 2025-11-25.
    Sse,
    /// WebSocket, one message per text frame.
    Ws,
    /// TCP, one message per line.
    Tcp,
}

/// A server that runs in this process until it is dropped.
#[derive(Debug)]
pub struct RunningServer {
    url: String,
    shared: Arc<ServerShared>,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// The address a client is given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What was counted so far, as the tool `counts` tells it.
    pub fn counts(&self) -> Value {
        self.shared.counts()
    }

    /// Waits until the server ends, which it does not do by itself.
    pub async fn wait(mut self) {
        // Both ways to end, being aborted and failing, end the wait.
        let _ = (&mut self.task).await;
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a server on this address; port 0 takes any.
///
/// # Errors
/// When the address cannot be bound, or the revision has no such transport.
pub async fn start(options: &Options, network: Network, address: SocketAddr) -> anyhow::Result<RunningServer> {
    let revision = options.revision;
    ensure!(network != Network::Http || revision.streams(), "{revision} has no Streamable HTTP; use HTTP+SSE");
    ensure!(network != Network::Sse || !revision.modern(), "{revision} has no HTTP+SSE");
    let shared = ServerShared::new(options)?;
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    let (url, task) = match network {
        Network::Http => (format!("http://{address}/mcp"), tokio::spawn(http::accept(listener, shared.clone()))),
        Network::Sse => (format!("http://{address}/sse"), tokio::spawn(sse::accept(listener, shared.clone()))),
        Network::Ws => (format!("ws://{address}/mcp"), tokio::spawn(ws::accept(listener, shared.clone()))),
        Network::Tcp => (format!("tcp://{address}"), tokio::spawn(pipe::accept(listener, shared.clone()))),
    };
    Ok(RunningServer { url, shared, task })
}
