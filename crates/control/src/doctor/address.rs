//! Address of a remote backend: name resolution, connection, path.

use super::finding::Finding;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, DATE, HOST};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// Timeout of each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Usual paths of MCP endpoints, most likely first.
const USUAL_PATHS: [&str; 4] = ["/mcp", "/sse", "/mcp/", "/api/mcp"];
const EVENTS: &str = "text/event-stream";
const ANY: &str = "application/json, text/event-stream";

/// Answer to a plain GET.
struct Answer {
    status: StatusCode,
    events: bool,
    date: Option<SystemTime>,
}

/// Address of a remote backend.
pub(super) struct Address<'a> {
    pub backend: &'a str,
    pub url: &'a Uri,
    pub headers: &'a HeaderMap,
}

/// Result of checking an address.
pub(super) struct AddressReport {
    /// Fault that certainly prevents the backend from serving.
    pub fault: Option<Finding>,
    /// Date in the answer of the server.
    pub date: Option<SystemTime>,
}

impl Address<'_> {
    fn check(&self) -> String {
        format!("backend {}", self.backend)
    }

    fn problem(&self, found: String, advice: impl Into<String>) -> Option<Finding> {
        Some(Finding::problem(&self.check(), found, advice).at(format!("backends.{}.url", self.backend)))
    }

    /// Checks the address without opening a session.
    pub(super) async fn probe(&self) -> AddressReport {
        let nothing = |fault| AddressReport { fault, date: None };
        let (Some(host), Some(port)) = (self.url.host(), self.port()) else { return nothing(None) };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Err(error) = timeout(STEP_TIMEOUT, lookup_host((bare, port)))
            .await
            .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
            .map(drop)
        {
            let advice = "check the spelling of the host in `url`, and that this machine's DNS knows it";
            return nothing(self.problem(format!("the host `{host}` cannot be resolved: {error}"), advice));
        }
        if !self.is_plain_http() {
            return nothing(None);
        }
        match self.get(self.url.path(), ANY).await {
            Ok(answer) => {
                let fault = self.judge(answer.status).await;
                AddressReport { fault, date: answer.date }
            }
            Err(error) => nothing(self.unreachable(&error, host, port)),
        }
    }

    /// Returns true for plain HTTP. TLS and WebSocket connections report their errors when the backend is started.
    fn is_plain_http(&self) -> bool {
        self.url.scheme_str() == Some("http")
    }

    fn port(&self) -> Option<u16> {
        let usual = match self.url.scheme_str() {
            Some("https" | "wss") => 443,
            _ => 80,
        };
        Some(self.url.port_u16().unwrap_or(usual))
    }

    fn unreachable(&self, error: &io::Error, host: &str, port: u16) -> Option<Finding> {
        match error.kind() {
            ErrorKind::ConnectionRefused => self.problem(
                format!("nothing listens at {host}:{port}"),
                "start the server, or correct host and port in `url`",
            ),
            ErrorKind::TimedOut => self.problem(
                format!("{host}:{port} does not answer within {} s", STEP_TIMEOUT.as_secs()),
                "check that the server runs and that no firewall lies between",
            ),
            _ => self.problem(
                format!("{host}:{port} cannot be asked: {error}"),
                "check that an HTTP server listens there, and the scheme of `url`",
            ),
        }
    }

    async fn judge(&self, status: StatusCode) -> Option<Finding> {
        match status {
            StatusCode::NOT_FOUND => {
                let found = format!("there is nothing under the path `{}` (404)", self.url.path());
                let advice = match self.likely().await {
                    Some(path) => format!("did you mean `{}`?", self.with_path(path)),
                    None => "look up the path of the MCP endpoint in the server's documentation; often it is `/mcp` or `/sse`".to_owned(),
                };
                self.problem(found, advice)
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.problem(
                format!("the server refuses us ({})", status.as_u16()),
                format!(
                    "set `auth = {{ type = \"oauth\" }}` in `[backends.{0}]` and run `signalbox login {0}`, or give it a \
                     credential: `[backends.{0}.headers]` with `Authorization = \"Bearer ${{TOKEN}}\"`",
                    self.backend
                ),
            ),
            status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
                self.problem(format!("the server fails ({})", status.as_u16()), "check the server's own log")
            }
            _ => None,
        }
    }

    /// Returns a usual path whose answer looks like an MCP endpoint.
    pub(super) async fn likely(&self) -> Option<&'static str> {
        for path in USUAL_PATHS.into_iter().filter(|path| *path != self.url.path()) {
            let wanted = if path == "/sse" { EVENTS } else { ANY };
            if let Ok(answer) = self.get(path, wanted).await {
                let there = match path {
                    "/sse" => answer.events,
                    // A web page under such a path would be unusual; an endpoint refuses a GET without a session.
                    _ => answer.events || answer.status.is_client_error() && answer.status != StatusCode::NOT_FOUND,
                };
                if there {
                    return Some(path);
                }
            }
        }
        None
    }

    /// Returns the address with another path.
    pub(super) fn with_path(&self, path: &str) -> String {
        let authority = self.url.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}{path}", self.url.scheme_str().unwrap_or("http"))
    }

    async fn get(&self, path: &str, accept: &str) -> io::Result<Answer> {
        timeout(STEP_TIMEOUT, self.exchange(path, accept)).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
    }

    async fn exchange(&self, path: &str, accept: &str) -> io::Result<Answer> {
        let host = self.url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, self.port().unwrap_or(80))).await?;
        let (mut sender, connection) =
            http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let connection = tokio::spawn(connection);
        let mut request = Request::get(path).header(ACCEPT, accept);
        request = request.header(HOST, self.url.authority().map_or("", |authority| authority.as_str()));
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Empty::new()).map_err(io::Error::other)?;
        let answer = sender.send_request(request).await;
        // An event stream would never end; its head is enough.
        connection.abort();
        let answer = answer.map_err(io::Error::other)?;
        let header = |name| answer.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        Ok(Answer {
            status: answer.status(),
            events: answer.status() == StatusCode::OK
                && header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with(EVENTS)),
            date: header(DATE).and_then(|date| httpdate::parse_http_date(date).ok()),
        })
    }
}
