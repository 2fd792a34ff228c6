//! A client that loses its connection whenever it is told to, in the middle of an event too, and comes back with the id
//! of the last whole one.

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;
use signalbox_testkit::http_client::HttpClient;
use signalbox_wire::SseDecoder;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// One stream of a session, over any number of connections.
pub struct Reader {
    client: HttpClient,
    body: Option<Incoming>,
    decoder: SseDecoder,
    /// What has arrived and is not looked at yet.
    arrived: Bytes,
    /// The id of the last whole event.
    pub last_id: Option<String>,
}

impl Reader {
    /// Reads the answer to a POST.
    pub async fn post(client: &HttpClient, message: &Value) -> anyhow::Result<Self> {
        let response = client.open(Method::POST, "/mcp", Bytes::from(message.to_string())).await?;
        Self::of(client, response)
    }

    /// Reads the general stream.
    pub async fn general(client: &HttpClient) -> anyhow::Result<Self> {
        Self::of(client, get(client, None).await?)
    }

    fn of(client: &HttpClient, response: Response<Incoming>) -> anyhow::Result<Self> {
        anyhow::ensure!(response.status() == 200, "status {}", response.status());
        let kind = response.headers()["content-type"].to_str()?;
        anyhow::ensure!(kind == "text/event-stream", "{kind}");
        let body = Some(response.into_body());
        Ok(Self { client: client.clone(), body, decoder: decoder(), arrived: Bytes::new(), last_id: None })
    }

    /// The next message; `None` at the end of the stream.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        let next = tokio::time::timeout(PATIENCE, self.read()).await;
        match next {
            Ok(next) => next,
            Err(_) => anyhow::bail!("nothing after {:?}", self.last_id),
        }
    }

    async fn read(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            while let Some(event) = self.decoder.next_event() {
                let event = event?;
                self.last_id = event.id.or(self.last_id.take());
                if !event.data.is_empty() {
                    return Ok(Some(serde_json::from_slice(&event.data)?));
                }
            }
            if !self.arrive().await? {
                return Ok(None);
            }
            // Byte by byte, so that no event is read before it is asked for.
            let byte = self.arrived.split_to(1);
            self.decoder.push(&byte);
        }
    }

    /// Takes a few bytes more, which may be part of an event or reach into it, and loses them with the connection.
    pub fn lose(&mut self, bytes: u64) -> Option<Incoming> {
        for _ in 0..bytes {
            // Only what is there already: the next event may be far.
            if self.arrived.is_empty() {
                break;
            }
            self.decoder.push(&self.arrived.split_to(1));
        }
        self.decoder = decoder();
        self.arrived = Bytes::new();
        self.body.take()
    }

    /// Comes back after the last whole event.
    pub async fn resume(&mut self) -> anyhow::Result<()> {
        let response = get(&self.client, self.last_id.as_deref()).await?;
        anyhow::ensure!(response.status() == 200, "status {} after {:?}", response.status(), self.last_id);
        self.body = Some(response.into_body());
        Ok(())
    }

    async fn arrive(&mut self) -> anyhow::Result<bool> {
        while self.arrived.is_empty() {
            let Some(body) = &mut self.body else { return Ok(false) };
            match body.frame().await {
                Some(frame) => self.arrived = frame?.into_data().unwrap_or_default(),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn decoder() -> SseDecoder {
    SseDecoder::new(1 << 20)
}

/// A GET with or without an id.
pub async fn get(client: &HttpClient, last_id: Option<&str>) -> anyhow::Result<Response<Incoming>> {
    let mut client = client.clone().with("accept", "text/event-stream");
    if let Some(id) = last_id {
        client = client.with("last-event-id", id);
    }
    client.open(Method::GET, "/mcp", Bytes::new()).await
}
