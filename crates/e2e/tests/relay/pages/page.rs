//! A web page, as far as the relay sees one: it opens a session, reads a stream, and answers.

use anyhow::Context as _;
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use std::net::SocketAddr;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// What a page knows of its session.
#[derive(Clone)]
pub struct Page {
    pub client: HttpClient,
    pub code: String,
    pub token: String,
}

impl Page {
    /// A page that has opened a session.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let client = HttpClient::new(address).with("user-agent", "Mozilla/5.0 page");
        let answer = send(&client, Method::POST, "/api/sessions", "{}").await?;
        anyhow::ensure!(answer.status == 201, "{answer:?}");
        let told = answer.message()?;
        let text = |name: &str| told[name].as_str().map(str::to_owned).context("no text");
        Ok(Self { client, code: text("sessionCode")?, token: text("workerToken")? })
    }

    /// The headers of our library.
    pub fn library(&self, worker: &str, journal: &str) -> HttpClient {
        let client = self.client.clone().with("x-session-code", &self.code).with("x-worker-token", &self.token);
        client.with("x-worker-id", worker).with("x-worker-journal", journal)
    }

    /// Opens the stream as our library does.
    pub async fn stream(&self, worker: &str, journal: &str) -> anyhow::Result<Events> {
        Events::open(&self.library(worker, journal), "/api/stream").await
    }

    /// Answers a request.
    pub async fn answer(&self, id: &str, more: Value) -> anyhow::Result<HttpAnswer> {
        let mut body = json!({"sessionCode": self.code, "requestId": id, "workerToken": self.token});
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        send(&self.client, Method::POST, "/api/response", &body.to_string()).await
    }

    /// Answers every request of a stream with `{"echo": arguments, "tool": name}`, in the background.
    pub fn echo(&self, mut events: Events) -> tokio::task::JoinHandle<()> {
        let page = self.clone();
        tokio::spawn(async move {
            while let Ok(Some((name, data))) = events.next().await {
                if name == "tool-request" {
                    let result = json!({"echo": data["arguments"], "tool": data["tool"]});
                    let _ = page.answer(data["id"].as_str().unwrap_or_default(), json!({"result": result})).await;
                }
            }
        })
    }
}

/// Sends a request with a JSON body.
pub async fn send(client: &HttpClient, method: Method, path: &str, body: &str) -> anyhow::Result<HttpAnswer> {
    client.send(method, path, Bytes::copy_from_slice(body.as_bytes())).await
}

/// Events of `/api/stream`, by name; without one it is empty.
pub struct Events {
    body: Incoming,
    unread: String,
}

impl Events {
    /// Opens a stream.
    pub async fn open(client: &HttpClient, path: &str) -> anyhow::Result<Self> {
        let client = client.clone().with("accept", "text/event-stream");
        let response = client.open(Method::GET, path, Bytes::new()).await?;
        anyhow::ensure!(response.status() == 200, "status {}", response.status());
        Ok(Self { body: response.into_body(), unread: String::new() })
    }

    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> anyhow::Result<Option<(String, Value)>> {
        Ok(self.raw().await?.map(|(name, data)| (name, serde_json::from_str(&data).unwrap_or_default())))
    }

    /// The same, with its data as it came.
    pub async fn raw(&mut self) -> anyhow::Result<Option<(String, String)>> {
        loop {
            if let Some((event, rest)) = self.unread.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.unread = rest;
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let Some(data) = field("data: ") {
                    return Ok(Some((field("event: ").unwrap_or_default(), data)));
                }
                continue;
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.context("no event in time")?;
            let Some(frame) = frame else { return Ok(None) };
            if let Ok(data) = frame?.into_data() {
                self.unread.push_str(std::str::from_utf8(&data)?);
            }
        }
    }

    /// The next event of this name; others are passed over.
    pub async fn until(&mut self, name: &str) -> anyhow::Result<Value> {
        loop {
            match self.next().await?.context("the stream ended")? {
                (told, data) if told == name => return Ok(data),
                _ => {}
            }
        }
    }

    /// The next unnamed event, as it came.
    pub async fn result(&mut self) -> anyhow::Result<String> {
        loop {
            match self.raw().await?.context("the stream ended")? {
                (name, data) if name.is_empty() => return Ok(data),
                _ => {}
            }
        }
    }
}
