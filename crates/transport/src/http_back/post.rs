//! One message on its way: the POST, and what is made of the response to it.

use super::answer::{Came, Post};
use super::backend::Backend;
use super::body::{self, BodyError};
use super::conn::Conn;
use super::headers;
use super::link::Running;
use super::stream;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::{Response, StatusCode, Uri};
use hyper::body::Incoming;
use signalbox_engine::back::Outbound;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::method;
use std::time::Duration;

/// How long a message that gets no answer may take to be accepted. Requests are timed by the engine.
const NOTE_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends the message and posts all that comes of it.
///
/// The task of every call holds this future, and tokio moves it more than once. So what a call with a JSON answer on a
/// kept connection does not need is boxed, here and below.
pub(super) async fn run(running: Running, message: Outbound, session: Option<HeaderValue>) {
    running.wait_for_gate().await;
    let key = message.key;
    let ended = if key.is_some() {
        post(&running, message, session.as_ref()).await
    } else {
        let posting = Box::pin(post(&running, message, session.as_ref()));
        match tokio::time::timeout(NOTE_TIMEOUT, posting).await {
            Ok(ended) => ended,
            Err(_) => Err(running.backend().fault(FaultKind::TimedOut, "did not accept a notification in time")),
        }
    };
    match (ended, key) {
        (Ok(()), _) => {}
        (Err(fault), Some(key)) => running.events().failed(key, fault),
        (Err(fault), None) => tracing::warn!(%fault, "a notification or response was not delivered"),
    }
}

async fn post(running: &Running, message: Outbound, session: Option<&HeaderValue>) -> Result<(), Fault> {
    let backend = running.backend();
    let request = headers::post(backend, &message, session)?;
    let (conn, response) = backend.exchange(request).await?;
    let status = response.status();
    if status == StatusCode::NOT_FOUND && session.is_some() {
        running.events().expired(message);
        Box::pin(backend.finish(conn, response.into_body())).await;
        return Ok(());
    }
    if status.is_success() && message.method == method::INITIALIZE {
        running.begin_session(response.headers());
    }
    let reply = Reply { running, message, session, conn, response };
    match reply.message.key {
        Some(key) => reply.answered(key).await,
        None => reply.accepted().await,
    }
}

/// A response whose head has come.
struct Reply<'a> {
    running: &'a Running,
    message: Outbound,
    session: Option<&'a HeaderValue>,
    conn: Box<Conn>,
    response: Response<Incoming>,
}

impl<'a> Reply<'a> {
    /// The response to a request.
    async fn answered(self, key: u64) -> Result<(), Fault> {
        let status = self.response.status();
        match (status.as_u16(), Content::of(self.response.headers())) {
            (202 | 204, _) => {
                let text = format!("took a request but answered it only with HTTP {}", status.as_u16());
                let fault = self.backend().fault(FaultKind::BackendGarbage, text);
                Box::pin(self.finish()).await;
                Err(fault)
            }
            (200..=299, Content::Events) => {
                let stream = stream::Stream::new(self.running, &self.message, key);
                Box::pin(stream.follow(self.conn, self.response.into_body())).await
            }
            (200..=299, Content::Json) => self.json(key).await,
            (200..=299, Content::Other) => Err(self.wrong_content()),
            (300..=399, _) => {
                let fault = redirected(self.backend(), &self.response);
                Box::pin(self.finish()).await;
                Err(fault)
            }
            _ => Box::pin(self.refused(Some(key))).await,
        }
    }

    /// The response to a notification, or to our answer.
    async fn accepted(self) -> Result<(), Fault> {
        match self.response.status().as_u16() {
            200..=299 => {
                Box::pin(self.finish()).await;
                Ok(())
            }
            300..=399 => Err(redirected(self.backend(), &self.response)),
            _ => self.refused(None).await,
        }
    }

    async fn json(mut self, key: u64) -> Result<(), Fault> {
        let bytes = self.body().await?;
        let (backend, post) = (self.backend(), self.post(Some(key)));
        // First the connection, so that the call which this answer sets off finds it.
        backend.pool.put(self.conn).await;
        match post.body(bytes) {
            Came::Answer => Ok(()),
            Came::Others => {
                Err(backend.fault(FaultKind::BackendGarbage, "answered with a message that is not the answer"))
            }
            Came::Garbage(rejected) => {
                let text = format!("answered with what is no message: {rejected}");
                Err(backend.fault(FaultKind::BackendGarbage, text))
            }
        }
    }

    /// A status that says no. The body may still be an answer.
    async fn refused(mut self, key: Option<u64>) -> Result<(), Fault> {
        // A stream may never end, and holds nothing that would explain the status.
        if Content::of(self.response.headers()) == Content::Events {
            return Err(self.refusal(b""));
        }
        let bytes = self.body().await?;
        let rest = match key {
            Some(_) => self.post(key).answer(bytes),
            None => Err(bytes),
        };
        let ended = rest.map_err(|bytes| self.refusal(&bytes));
        self.backend().pool.put(self.conn).await;
        ended
    }

    fn refusal(&self, bytes: &[u8]) -> Fault {
        let status = self.response.status();
        let mut text = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                format!("wants authentication (HTTP {})", status.as_u16())
            }
            _ => format!("answered HTTP {}", status.as_u16()),
        };
        let excerpt = self.backend().excerpt(bytes, self.session);
        if !excerpt.is_empty() {
            text.push_str(": ");
            text.push_str(&excerpt);
        }
        self.backend().fault(FaultKind::BackendGarbage, text)
    }

    fn wrong_content(&self) -> Fault {
        let value = self.response.headers().get(CONTENT_TYPE);
        let value = value.map_or(&b""[..], HeaderValue::as_bytes);
        let text = format!(
            "answered with content type {:?}, expected JSON or an event stream",
            self.backend().excerpt(value, self.session)
        );
        self.backend().fault(FaultKind::BackendGarbage, text)
    }

    async fn body(&mut self) -> Result<Bytes, Fault> {
        let max = self.backend().limits.message;
        body::whole(&mut self.conn, self.response.body_mut(), max).await.map_err(|error| match error {
            BodyError::TooLarge(_) => self.backend().fault(FaultKind::BackendGarbage, format!("answered with {error}")),
            BodyError::Broken(_) => {
                let text = format!("closed the connection in the middle of the answer ({error})");
                self.backend().fault(FaultKind::BackendDied, text)
            }
        })
    }

    fn post(&self, about: Option<u64>) -> Post<'a> {
        Post {
            events: self.running.events(),
            limits: &self.backend().limits,
            about,
            status: Some(self.response.status().as_u16()),
        }
    }

    async fn finish(self) {
        let backend = self.running.backend();
        backend.finish(self.conn, self.response.into_body()).await;
    }

    fn backend(&self) -> &'a Backend {
        self.running.backend()
    }
}

/// What a body is said to be.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// JSON, or nothing is said.
    Json,
    /// An event stream.
    Events,
    /// Something else.
    Other,
}

impl Content {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(CONTENT_TYPE) else { return Self::Json };
        let value = value.as_bytes();
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        let kind = value.get(..end).unwrap_or(value).trim_ascii();
        if kind.eq_ignore_ascii_case(b"application/json") {
            Self::Json
        } else if kind.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

/// Only the host is named: the rest of the address may hold a secret.
fn redirected(backend: &Backend, response: &Response<Incoming>) -> Fault {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let uri = location.and_then(|location| location.parse::<Uri>().ok());
    let place = match uri.as_ref().and_then(Uri::host) {
        Some(host) => format!("host `{}`", backend.excerpt(host.as_bytes(), None)),
        None => "another address".to_owned(),
    };
    let status = response.status().as_u16();
    let text = format!("redirects to {place} (HTTP {status}), and redirects are not followed");
    backend.fault(FaultKind::BackendGarbage, text)
}
