//! A client of HTTP+SSE (2024-11-05) with nothing in between: one stream of events, and a POST for each message.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::http_client::{HttpAnswer, HttpClient};

/// How long an event may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// An open stream; dropping it closes the connection.
#[derive(Debug)]
pub struct SseClient {
    client: HttpClient,
    body: Incoming,
    unread: Vec<u8>,
    /// Messages that came while another was waited for.
    passed: VecDeque<Value>,
    /// Where messages are posted to, as the first event says.
    pub post_to: String,
}

impl SseClient {
    /// Opens the stream and reads its first event.
    ///
    /// # Errors
    /// When the server refuses, or begins with something else.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Self::open_with(HttpClient::new(address)).await
    }

    /// The same with the headers of a client.
    ///
    /// # Errors
    /// When the server refuses, or begins with something else.
    pub async fn open_with(client: HttpClient) -> anyhow::Result<Self> {
        let asking = client.clone().with("accept", "text/event-stream");
        let response = asking.open(Method::GET, "/sse", Bytes::new()).await?;
        anyhow::ensure!(response.status() == 200, "status {}", response.status());
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        anyhow::ensure!(kind == "text/event-stream", "{kind}");
        let body = response.into_body();
        let mut opened = Self { client, body, unread: Vec::new(), passed: VecDeque::new(), post_to: String::new() };
        match opened.event().await? {
            Some((kind, data)) if kind == "endpoint" => opened.post_to = data,
            other => bail!("the first event is {other:?}"),
        }
        Ok(opened)
    }

    /// POSTs a body as it is.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn post(&self, body: &str) -> anyhow::Result<HttpAnswer> {
        self.client.send(Method::POST, &self.post_to, Bytes::copy_from_slice(body.as_bytes())).await
    }

    /// Sends a message, which must be accepted.
    ///
    /// # Errors
    /// When it is not.
    pub async fn send(&self, message: &Value) -> anyhow::Result<()> {
        let answer = self.post(&message.to_string()).await?;
        anyhow::ensure!(answer.status == 202 && answer.body == "Accepted", "{answer:?}");
        Ok(())
    }

    /// Opens the session.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn initialize(&mut self, version: &str, capabilities: Value) -> anyhow::Result<Value> {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.request(0, "initialize", params).await?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(answer)
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When there is none.
    pub async fn request(&mut self, id: u64, method: &str, params: Value) -> anyhow::Result<Value> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        self.until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// The next message that fits; others are kept for later.
    ///
    /// # Errors
    /// When none comes.
    pub async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        if let Some(index) = self.passed.iter().position(&fits) {
            return self.passed.remove(index).context("it was there");
        }
        loop {
            match self.read().await? {
                Some(message) if fits(&message) => return Ok(message),
                Some(other) => self.passed.push_back(other),
                None => bail!("the stream ended with {:?}", self.passed),
            }
        }
    }

    /// The next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// When none comes in time.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        match self.passed.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> anyhow::Result<Option<Value>> {
        match self.event().await? {
            Some((kind, data)) if kind == "message" => Ok(Some(serde_json::from_str(&data).context(data)?)),
            Some(other) => bail!("an event of another kind: {other:?}"),
            None => Ok(None),
        }
    }

    /// Kind and data of the next event.
    async fn event(&mut self) -> anyhow::Result<Option<(String, String)>> {
        loop {
            while let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.unread.drain(..end + 2).collect();
                let text = String::from_utf8(event)?;
                let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let Some(data) = field("data: ") {
                    return Ok(Some((field("event: ").unwrap_or_default(), data)));
                }
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.context("no event in time")?;
            match frame {
                Some(frame) => self.unread.extend(frame?.into_data().unwrap_or_default()),
                None => return Ok(None),
            }
        }
    }
}
