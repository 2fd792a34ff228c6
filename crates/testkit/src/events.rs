//! A stream of server-sent events, read message by message while it is open.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;

use crate::http_client::HttpClient;

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The messages of one answer, as they come; dropping it closes the connection.
#[derive(Debug)]
pub struct EventStream {
    body: Incoming,
    events: bool,
    unread: Vec<u8>,
    ended: bool,
}

impl EventStream {
    /// Opens the stream for what belongs to no call.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn general(client: &HttpClient) -> anyhow::Result<Self> {
        let client = client.clone().with("accept", "text/event-stream");
        Self::of(client.open(Method::GET, "/mcp", Bytes::new()).await?)
    }

    /// POSTs a message and reads what comes back; returns once the answer has begun.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn post(client: &HttpClient, message: &Value) -> anyhow::Result<Self> {
        Self::of(client.open(Method::POST, "/mcp", Bytes::from(message.to_string())).await?)
    }

    fn of(response: http::Response<Incoming>) -> anyhow::Result<Self> {
        anyhow::ensure!(response.status() == 200, "status {}", response.status());
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let events = kind.starts_with("text/event-stream");
        Ok(Self { body: response.into_body(), events, unread: Vec::new(), ended: false })
    }

    /// The next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// When it takes too long, or is no message.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        tokio::time::timeout(PATIENCE, self.read()).await.context("no message in time")?
    }

    /// The next message that fits; others are passed over.
    ///
    /// # Errors
    /// When none comes.
    pub async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let mut others = Vec::new();
        while let Some(message) = self.next().await.with_context(|| format!("only {others:?}"))? {
            if fits(&message) {
                return Ok(message);
            }
            others.push(message);
        }
        bail!("the stream ended with {others:?}")
    }

    /// The next notification of this method.
    ///
    /// # Errors
    /// When none comes.
    pub async fn notification(&mut self, method: &str) -> anyhow::Result<Value> {
        self.until(|message| message["method"] == method).await
    }

    async fn read(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some(data) = self.take() {
                return serde_json::from_slice(&data)
                    .map(Some)
                    .with_context(|| String::from_utf8_lossy(&data).into_owned());
            }
            if self.ended {
                return Ok(None);
            }
            match self.body.frame().await {
                Some(frame) => self.unread.extend(frame?.into_data().unwrap_or_default()),
                None => self.ended = true,
            }
        }
    }

    /// The data of the first whole event that has some, or a whole JSON body.
    fn take(&mut self) -> Option<Vec<u8>> {
        if !self.events {
            return (self.ended && !self.unread.is_empty()).then(|| std::mem::take(&mut self.unread));
        }
        while let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = self.unread.drain(..end + 2).collect();
            let lines = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
            let data = lines.map(<[u8]>::trim_ascii).collect::<Vec<_>>().join(&b'\n');
            if !data.is_empty() {
                return Some(data);
            }
        }
        None
    }
}
