//! A small HTTP client with nothing in between: tests see statuses, headers and events as they come.

use std::net::SocketAddr;
use std::time::Duration;

use crate::openssl::Trust;
use crate::used_secrets;
use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// How long any answer may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// A client of one address; every request has a connection of its own.
#[derive(Clone, Debug)]
pub struct HttpClient {
    address: SocketAddr,
    headers: Vec<(String, String)>,
    trust: Option<Trust>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl HttpAnswer {
    /// The JSON messages in the body: the body itself, or the data of each event.
    ///
    /// # Errors
    /// When the body holds something else.
    pub fn messages(&self) -> anyhow::Result<Vec<Value>> {
        let text = std::str::from_utf8(&self.body)?;
        let kind = self.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Ok(vec![serde_json::from_str(text).with_context(|| format!("status {}: {text}", self.status))?]);
        }
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.trim().is_empty());
        data.map(|data| serde_json::from_str(data).with_context(|| data.to_owned())).collect()
    }

    /// The last message: the answer itself.
    ///
    /// # Errors
    /// When there is none.
    pub fn message(&self) -> anyhow::Result<Value> {
        self.messages()?.pop().context("the answer is empty")
    }
}

impl HttpClient {
    /// A client of this address.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, headers: Vec::new(), trust: None }
    }

    /// The same inside TLS, for a server on this machine that somebody trusted has signed.
    #[must_use]
    pub fn secured(mut self, trust: &Trust) -> Self {
        self.trust = Some(trust.clone());
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        used_secrets::note_header(name, value);
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Opens a session of the old era; the client returned belongs to it.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn initialize(&self, version: &str, capabilities: Value) -> anyhow::Result<Self> {
        let hello = json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}});
        let answer = self.post(&hello.to_string()).await?;
        let session = answer.headers.get("mcp-session-id");
        let session = session
            .with_context(|| format!("no session id: {} {}", answer.status, String::from_utf8_lossy(&answer.body)))?
            .to_str()?
            .to_owned();
        let client = self.clone().with("mcp-session-id", &session).with("mcp-protocol-version", version);
        client.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await?;
        Ok(client)
    }

    /// The id of the session that it belongs to.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == "mcp-session-id").map(|(_, id)| &**id)
    }

    /// Sends a request and returns the answer's message.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn request(&self, id: u64, method: &str, params: Value) -> anyhow::Result<Value> {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.post(&message.to_string()).await?.message()
    }

    /// A request of the new era with all it must carry.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn modern(&self, id: u64, method: &str, mut params: Value) -> anyhow::Result<HttpAnswer> {
        let name = ["name", "uri"].iter().find_map(|key| params[*key].as_str()).map(str::to_owned);
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let mut client = self.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
        if let Some(name) = name {
            client = client.with("mcp-name", &name);
        }
        client.post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await
    }

    /// POSTs a body to the MCP endpoint.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn post(&self, body: &str) -> anyhow::Result<HttpAnswer> {
        self.send(Method::POST, "/mcp", Bytes::copy_from_slice(body.as_bytes())).await
    }

    /// GETs a path.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn get(&self, path: &str) -> anyhow::Result<HttpAnswer> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When the connection fails or the answer takes too long.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<HttpAnswer> {
        let whole = async {
            let response = self.open(method, path, body).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(HttpAnswer { status: head.status.as_u16(), headers: head.headers, body })
        };
        tokio::time::timeout(PATIENCE, whole).await.context("no whole answer in time")?
    }

    /// Sends a request and returns the answer as soon as its headers are there.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn open(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<http::Response<Incoming>> {
        let stream = TcpStream::connect(self.address).await?;
        let mut sender = match &self.trust {
            None => begin(stream).await?,
            Some(trust) => begin(trust.connect(stream).await?).await?,
        };
        let mut request = Request::builder().method(method).uri(path);
        let host = self.address.to_string();
        let both = "application/json, text/event-stream";
        for (name, usual) in [("host", host.as_str()), ("content-type", "application/json"), ("accept", both)] {
            if !self.headers.iter().any(|(known, _)| known == name) {
                request = request.header(name, usual);
            }
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        Ok(sender.send_request(request.body(Full::new(body))?).await?)
    }
}

async fn begin<S>(stream: S) -> anyhow::Result<SendRequest<Full<Bytes>>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Acts as a browser and the person in front of it: goes where it is sent, says yes to what it is asked, and keeps
/// cookies. Returns the last status.
///
/// # Errors
/// When a page cannot be asked for.
pub async fn browse(url: &str) -> anyhow::Result<u16> {
    let (mut url, mut method, mut cookie) = (url.to_owned(), Method::GET, String::new());
    loop {
        let answer = visit(&url, method, &cookie).await?;
        if let Some(set) = answer.headers.get("set-cookie") {
            cookie = set.to_str()?.split(';').next().unwrap_or_default().to_owned();
        }
        method = Method::GET;
        match answer.headers.get("location") {
            Some(next) => url = next.to_str()?.to_owned(),
            None if answer.body.windows(4).any(|part| part == b"<for") => method = Method::POST,
            None => return Ok(answer.status),
        }
    }
}

/// Takes one step of a browser.
///
/// # Errors
/// When the page cannot be asked for.
pub async fn visit(url: &str, method: Method, cookie: &str) -> anyhow::Result<HttpAnswer> {
    let uri: http::Uri = url.parse()?;
    let address = uri.authority().context("no address")?.as_str().parse()?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    HttpClient::new(address).with("cookie", cookie).send(method, path, Bytes::new()).await
}
