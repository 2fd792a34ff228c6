//! Streamable HTTP: a POST per message; its answer is one message or a stream of events.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::ears::Ears;
use super::events::Events;
use super::wire::{Sent, TaskGuard};
use crate::revision::Revision;
use crate::wire_log::Tap;

const BOTH: &str = "application/json, text/event-stream";

/// A path at an address.
#[derive(Debug, Clone)]
pub struct HttpEndpoint {
    /// Host and port.
    pub address: String,
    /// The path.
    pub path: String,
}

/// An answer whose headers came, and the connection it comes on.
#[derive(Debug)]
pub struct Opened {
    /// The answer.
    pub response: Response<Incoming>,
    /// Keeps the connection; dropping it closes it.
    pub connection: TaskGuard,
}

impl HttpEndpoint {
    /// The place of an `http://` URL.
    ///
    /// # Errors
    /// When it is another URL.
    pub fn of(url: &str) -> anyhow::Result<Self> {
        let rest = url.strip_prefix("http://").with_context(|| format!("{url} is no http:// URL"))?;
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(Self { address: address.to_owned(), path: format!("/{path}") })
    }

    /// Sends a request on a connection of its own.
    ///
    /// # Errors
    /// When that fails.
    pub async fn open(&self, method: Method, headers: &[(&str, &str)], body: String) -> anyhow::Result<Opened> {
        let stream = TcpStream::connect(&self.address).await.with_context(|| self.address.clone())?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = TaskGuard(tokio::spawn(connection).abort_handle());
        let mut request = Request::builder().method(method).uri(&self.path).header("host", &self.address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(Bytes::from(body)))?).await?;
        Ok(Opened { response, connection })
    }
}

/// The endpoint, and in the old era the session with it.
#[derive(Debug)]
pub struct Http(Arc<Endpoint>, Mutex<Vec<TaskGuard>>);

#[derive(Debug)]
struct Endpoint {
    place: HttpEndpoint,
    ears: Arc<Ears>,
    session: Mutex<Option<String>>,
}

impl Http {
    /// The endpoint at this URL.
    ///
    /// # Errors
    /// When it is no `http://` URL.
    pub fn new(url: &str, ears: Arc<Ears>) -> anyhow::Result<Self> {
        let endpoint = Endpoint { place: HttpEndpoint::of(url)?, ears, session: Mutex::default() };
        Ok(Self(Arc::new(endpoint), Mutex::default()))
    }

    /// Sends a message. A request is on its way afterwards; anything else was taken.
    ///
    /// # Errors
    /// When it is not taken.
    pub async fn send(&self, message: Value) -> anyhow::Result<Sent> {
        if !message.is_array() && (message["method"].is_null() || message.get("id").is_none()) {
            self.0.deliver(message).await?;
            return Ok(Sent::default());
        }
        let endpoint = self.0.clone();
        let task = tokio::spawn(async move {
            let id = message["id"].clone();
            if message.is_array() {
                return endpoint.exchange_batch(message).await;
            }
            if let Err(error) = endpoint.exchange(message).await {
                endpoint.ears.fail(&id, error);
            }
        });
        let guard = TaskGuard(task.abort_handle());
        if self.0.ears.revision.modern() {
            return Ok(Sent::carried_by(guard));
        }
        // In the old era leaving does not cancel, so the stream is read to its end.
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push(guard);
        Ok(Sent::default())
    }

    /// Whether nothing more can come on any stream.
    pub fn ended(&self) -> bool {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).iter().all(|stream| stream.0.is_finished())
    }

    /// Opens the general stream of the session.
    ///
    /// # Errors
    /// When the server refuses with anything but 405.
    pub async fn general(&self) -> anyhow::Result<()> {
        let mut headers = vec![("accept".to_owned(), "text/event-stream".to_owned())];
        headers.extend(self.0.session_headers());
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let opened = self.0.place.open(Method::GET, &headers, String::new()).await?;
        match opened.response.status().as_u16() {
            200 => {}
            405 => return Ok(()),
            status => bail!("the general stream is refused with {status}"),
        }
        let endpoint = self.0.clone();
        let tap = self.0.ears.log.connection();
        let task = tokio::spawn(async move { endpoint.events(opened, None, &tap).await });
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push(TaskGuard(task.abort_handle()));
        Ok(())
    }
}

impl Endpoint {
    fn session_headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if let Some(session) = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            headers.push(("mcp-session-id".to_owned(), session));
            if self.ears.revision >= Revision::R3 {
                headers.push(("mcp-protocol-version".to_owned(), self.ears.revision.name().to_owned()));
            }
        }
        headers
    }

    fn headers(&self, message: &Value) -> Vec<(String, String)> {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.push(("accept".to_owned(), BOTH.to_owned()));
        headers.extend(self.session_headers());
        if self.ears.revision.modern() {
            let method = message["method"].as_str().unwrap_or_default();
            headers.push(("mcp-protocol-version".to_owned(), self.ears.revision.name().to_owned()));
            headers.push(("mcp-method".to_owned(), method.to_owned()));
            let params = &message["params"];
            let name = match method {
                "tools/call" | "prompts/get" => params["name"].as_str(),
                "resources/read" => params["uri"].as_str(),
                "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
                _ => None,
            };
            headers.extend(name.map(|name| ("mcp-name".to_owned(), encoded(name))));
        }
        headers
    }

    async fn post(&self, message: &Value, tap: &Tap) -> anyhow::Result<Opened> {
        let headers = self.headers(message);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let text = message.to_string();
        tap.sent(&text);
        self.place.open(Method::POST, &headers, text).await
    }

    /// Sends what gets no answer: a notification, or an answer of our own.
    async fn deliver(&self, message: Value) -> anyhow::Result<()> {
        let tap = self.ears.log.connection();
        let opened = self.post(&message, &tap).await?;
        let status = opened.response.status();
        let body = opened.response.into_body().collect().await?.to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        keep(&body, &tap);
        ensure!(status.is_success(), "{message} is refused with {status}: {body}");
        if status != 202 {
            self.ears.violation(format!("{message} is taken with {status} instead of 202: {body}"));
        }
        Ok(())
    }

    /// Sends a request and hears everything that comes back.
    async fn exchange(self: &Arc<Self>, message: Value) -> anyhow::Result<()> {
        let tap = self.ears.log.connection();
        let opened = self.post(&message, &tap).await?;
        let session = opened.response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok());
        match session {
            Some(_) if self.ears.revision.modern() => self.ears.violation("a session id in the new era"),
            Some(session) if message["method"] == "initialize" => {
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.to_owned());
            }
            _ => {}
        }
        let kind = opened.response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let id = &message["id"];
        if kind.starts_with("text/event-stream") {
            ensure!(opened.response.status() == 200, "events with {}", opened.response.status());
            self.events(opened, Some(id), &tap).await;
            // After an answer there is nothing left to fail.
            self.ears.fail(id, anyhow::anyhow!("the stream ended without an answer"));
            return Ok(());
        }
        let Opened { response, connection } = opened;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        drop(connection);
        let shown = String::from_utf8_lossy(&body);
        keep(&shown, &tap);
        let parsed: Option<Value> = serde_json::from_slice(&body).ok().filter(|_| kind.starts_with("application/json"));
        let whole = parsed.filter(|answer| answer["id"] == *id);
        let answer = whole.with_context(|| format!("HTTP {status} {kind}: {shown}"))?;
        self.judge_status(status, &answer);
        self.hear(answer, Some(id));
        Ok(())
    }

    /// Sends a batch and hears everything that comes back.
    async fn exchange_batch(self: &Arc<Self>, batch: Value) {
        let tap = self.ears.log.connection();
        let opened = match self.post(&batch, &tap).await {
            Ok(opened) => opened,
            Err(error) => return self.ears.violation(format!("a batch was not taken: {error:#}")),
        };
        let kind = opened.response.headers().get("content-type").and_then(|value| value.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return self.events(opened, None, &tap).await;
        }
        let Opened { response, connection } = opened;
        let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        drop(connection);
        let body = String::from_utf8_lossy(&body);
        keep(&body, &tap);
        match serde_json::from_str(&body) {
            Ok(answers) => self.hear(answers, None),
            Err(error) => self.ears.violation(format!("the answer to a batch is no JSON: {error}: {body}")),
        }
    }

    /// Whether the status fits to the answer: errors have their own in the new era, and none in the old.
    fn judge_status(&self, status: u16, answer: &Value) {
        let expected: &[u16] = match answer["error"]["code"].as_i64() {
            None => &[200],
            Some(_) if !self.ears.revision.modern() => &[200],
            Some(-32601) => &[404],
            Some(-32022..=-32020) => &[400],
            Some(_) => &[],
        };
        if !expected.is_empty() && !expected.contains(&status) {
            self.ears.violation(format!("HTTP {status} with {answer}"));
        }
    }

    async fn events(self: &Arc<Self>, opened: Opened, stream: Option<&Value>, tap: &Tap) {
        let Opened { response, connection } = opened;
        let mut body = response.into_body();
        let mut events = Events::default();
        while let Some(Ok(frame)) = body.frame().await {
            for event in events.feed(&frame.into_data().unwrap_or_default()) {
                match serde_json::from_str(&event.data) {
                    Ok(message) if matches!(event.kind.as_str(), "" | "message") => {
                        tap.received(&event.data);
                        self.hear(message, stream);
                    }
                    Ok(_) => self.ears.violation(format!("an event {}", event.kind)),
                    Err(error) => self.ears.violation(format!("an event that is no JSON: {error}")),
                }
            }
        }
        drop(connection);
    }

    fn hear(self: &Arc<Self>, message: Value, stream: Option<&Value>) {
        for reply in self.ears.hear(message, stream) {
            let endpoint = self.clone();
            tokio::spawn(async move {
                if let Err(error) = endpoint.deliver(reply).await {
                    endpoint.ears.violation(format!("an answer was not taken: {error:#}"));
                }
            });
        }
    }
}

/// Keeps a body that is a message or a batch, whatever its status.
fn keep(body: &str, tap: &Tap) {
    if serde_json::from_str::<Value>(body).is_ok_and(|body| body.is_array() || body.get("jsonrpc").is_some()) {
        tap.received(body);
    }
}

/// A name as a header's value: what is not plain ASCII goes as base64 between markers.
fn encoded(name: &str) -> String {
    let plain = name.bytes().all(|byte| matches!(byte, b' ' | b'\t' | 0x21..=0x7e));
    let trimmed = name.trim_matches([' ', '\t']) == name;
    if plain && trimmed && !(name.starts_with("=?base64?") && name.ends_with("?=")) {
        return name.to_owned();
    }
    format!("=?base64?{}?=", BASE64_STANDARD.encode(name))
}
