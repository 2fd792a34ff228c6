//! A bare keep-alive HTTP client: it sends any bytes, reads whole answers, and sees when the connection is closed.

use anyhow::{Context as _, bail};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long any answer may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub struct Raw {
    address: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
    closed: bool,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The messages of the body: the body itself, or the data of each event. An empty body has none.
    pub fn messages(&self) -> anyhow::Result<Vec<Value>> {
        if self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let text = std::str::from_utf8(&self.body)?;
            let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
            return data.map(|data| serde_json::from_str(data).with_context(|| data.to_owned())).collect();
        }
        if self.body.is_empty() {
            return Ok(Vec::new());
        }
        let message = serde_json::from_slice(&self.body);
        Ok(vec![message.with_context(|| String::from_utf8_lossy(&self.body).into_owned())?])
    }

    /// The code of the error that the body holds; 0 for anything else.
    pub fn code(&self) -> i64 {
        let last = self.messages().ok().and_then(|mut messages| messages.pop()).unwrap_or_default();
        last["error"]["code"].as_i64().unwrap_or(0)
    }
}

impl Raw {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, buffer: Vec::new(), closed: false })
    }

    /// POSTs a body to the MCP endpoint with these further header lines, on a new connection if the last was closed.
    pub async fn post(&mut self, headers: &str, body: &[u8]) -> anyhow::Result<Reply> {
        if self.closed {
            *self = Self::connect(self.address).await?;
        }
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{headers}\r\n",
            self.address,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.write(&request).await?;
        timeout(PATIENCE, self.reply()).await.context("no whole answer in time")?
    }

    /// Writes any bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(timeout(PATIENCE, self.stream.write_all(bytes)).await??)
    }

    /// Whether the last answer closed the connection.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Reads one whole answer.
    pub async fn reply(&mut self) -> anyhow::Result<Reply> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            if !self.fill().await? {
                bail!("closed before an answer: {:?}", String::from_utf8_lossy(&self.buffer));
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status")?.parse()?;
        let split = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().into()));
        let mut reply = Reply { status, headers: lines.filter_map(split).collect(), body: Vec::new() };
        let length = reply.header("content-length").map(str::parse).transpose()?;
        reply.body = match length {
            Some(length) => self.take(length).await?,
            None if reply.header("transfer-encoding") == Some("chunked") => self.chunks().await?,
            None => Vec::new(),
        };
        self.closed = reply.header("connection") == Some("close");
        Ok(reply)
    }

    /// What comes until the connection is closed, or until the time is up. True where it was closed.
    pub async fn rest(&mut self, patience: Duration) -> (Vec<u8>, bool) {
        let closed = timeout(patience, async { while self.fill().await.unwrap_or(false) {} }).await.is_ok();
        (std::mem::take(&mut self.buffer), closed)
    }

    async fn chunks(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                match find(&self.buffer, b"\r\n") {
                    Some(end) => break end,
                    None if self.fill().await? => {}
                    None => bail!("closed within a chunk"),
                }
            };
            let size = usize::from_str_radix(std::str::from_utf8(&self.buffer[..end])?, 16)?;
            self.buffer.drain(..end + 2);
            body.extend(self.take(size).await?);
            self.take(2).await?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    async fn take(&mut self, length: usize) -> anyhow::Result<Vec<u8>> {
        while self.buffer.len() < length {
            if !self.fill().await? {
                bail!("closed within a body");
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// Reads some more; false at the end.
    async fn fill(&mut self) -> anyhow::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        let read = self.stream.read(&mut chunk).await?;
        self.buffer.extend_from_slice(&chunk[..read]);
        self.closed |= read == 0;
        Ok(read > 0)
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
