//! How a client reaches its server.

use std::sync::Arc;

use anyhow::ensure;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::ears::Ears;
use super::{http, pipe, sse, ws};
use crate::revision::Revision;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A child process, started with this command line, one message per line.
    Stdio(Vec<String>),
    /// Streamable HTTP at this URL.
    Http(String),
    /// The same for 2024-11-05 too, as clients of the relay's document speak it.
    RelayHttp(String),
    /// HTTP+SSE, with its stream at this URL.
    Sse(String),
    /// WebSocket at this URL.
    Ws(String),
    /// A TCP address, one message per line.
    Tcp(String),
}

impl Reach {
    /// Whether the revision has this transport.
    ///
    /// # Errors
    /// When it has not.
    pub fn fits(&self, revision: Revision) -> anyhow::Result<()> {
        ensure!(!matches!(self, Self::Http(_)) || revision.streams(), "{revision} has no Streamable HTTP");
        ensure!(!matches!(self, Self::Sse(_)) || !revision.modern(), "{revision} has no HTTP+SSE");
        Ok(())
    }
}

/// Messages that wait to be written to a pipe.
pub const QUEUE: usize = 256;

/// Ends a task with whoever holds this.
#[derive(Debug)]
pub struct TaskGuard(pub AbortHandle);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a sent message keeps alive: in the new era over HTTP, the stream that carries its answer.
#[derive(Debug, Default)]
pub struct Sent {
    stream: Option<TaskGuard>,
}

impl Sent {
    /// A message whose answer needs this task.
    pub fn carried_by(guard: TaskGuard) -> Self {
        Self { stream: Some(guard) }
    }

    /// Whether nothing more can come on it.
    pub fn ended(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.0.is_finished())
    }
}

/// A connection.
#[derive(Debug)]
pub enum ClientWire {
    /// Everything on one connection.
    Pipe {
        /// What goes out.
        out: mpsc::Sender<Value>,
        /// The tasks that read and write: the one that reads is the first.
        tasks: Vec<TaskGuard>,
        /// The child process at the other end, if it is one.
        child: Option<pipe::Child>,
    },
    /// A request per message.
    Http(http::Http),
}

impl ClientWire {
    /// Connects.
    ///
    /// # Errors
    /// When that fails.
    pub async fn open(reach: Reach, ears: Arc<Ears>) -> anyhow::Result<Self> {
        match reach {
            Reach::Stdio(command) => pipe::child(&command, ears),
            Reach::Tcp(address) => pipe::tcp(&address, ears).await,
            Reach::Ws(url) => ws::open(&url, ears).await,
            Reach::Sse(url) => sse::open(&url, ears).await,
            Reach::Http(url) | Reach::RelayHttp(url) => Ok(Self::Http(http::Http::new(&url, ears)?)),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn send(&self, message: Value) -> anyhow::Result<Sent> {
        match self {
            Self::Pipe { out, .. } => {
                out.send(message).await?;
                Ok(Sent::default())
            }
            Self::Http(http) => http.send(message).await,
        }
    }

    /// Opens the general stream, where the transport has one.
    ///
    /// # Errors
    /// When the server refuses in a way that it must not.
    pub async fn general(&self) -> anyhow::Result<()> {
        match self {
            Self::Pipe { .. } => Ok(()),
            Self::Http(http) => http.general().await,
        }
    }

    /// Whether leaving the stream of a request cancels it, given the new era.
    pub fn stateless(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Tells a child process that there is no more, and waits until it has ended; other connections are ended by the
    /// server.
    ///
    /// # Errors
    /// When it fails.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        let Self::Pipe { tasks, child: Some(child), .. } = self else { return Ok(()) };
        // The writing task owns its input.
        for task in tasks.iter().skip(1).take(1) {
            task.0.abort();
        }
        child.wait().await
    }

    /// Whether nothing more can come.
    pub fn ended(&self) -> bool {
        match self {
            Self::Pipe { tasks, .. } => tasks.first().is_none_or(|reading| reading.0.is_finished()),
            Self::Http(http) => http.ended(),
        }
    }

    /// What a child process wrote to standard error.
    pub fn error_lines(&self) -> Vec<String> {
        match self {
            Self::Pipe { child: Some(child), .. } => child.error_lines(),
            _ => Vec::new(),
        }
    }
}
