//! Sends one message as a POST and handles the response.

use super::answer::{self, AnswerPost, BodyContent, OnSession};
use super::backend::{Backend, Hidden};
use super::link::Running;
use super::{headers, stream};
use crate::http1::body::{self, ResponseBodyError};
use crate::http1::{Conn, ContentKind, Head};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use http::{StatusCode, Uri};
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind, pacing};
use signalbox_runtime::AuthHeader;
use signalbox_runtime::backend_credentials::MAX_CREDENTIAL_TRIES;
use signalbox_wire::{Revision, method};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum time for the backend to accept a message that gets no answer. The engine sets the timeouts of requests.
const NOTE_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a message and posts the response.
///
/// The task of every call holds this future, and tokio moves it more than once. Everything that a call with a JSON
/// answer on a kept connection does not need is therefore boxed, here and below.
pub(super) async fn run(mut running: Running, message: ToBackend, session: Option<HeaderValue>) {
    running.begin().await;
    let key = message.key();
    let ended = if key.is_some() {
        post(&running, &message, session.as_ref()).await
    } else {
        Box::pin(in_time(running.backend(), post(&running, &message, session.as_ref()))).await
    };
    let ended = match (ended, key) {
        (Err(fault), Some(key)) if fault.kind == FaultKind::BackendDown && running.backend().retries > 0 => {
            Box::pin(retry(&running, &message, session.as_ref(), key, fault)).await
        }
        (ended, _) => ended,
    };
    match (ended, key) {
        (Ok(()), _) => {}
        (Err(fault), Some(key)) => running.events().failed(key, fault),
        (Err(fault), None) => log_undelivered(&fault),
    }
}

/// Limits the time of a message that gets no answer.
pub(crate) async fn in_time(backend: &Backend, posting: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    match tokio::time::timeout(NOTE_TIMEOUT, posting).await {
        Ok(posted) => posted,
        Err(_) => Err(backend.fault(FaultKind::TimedOut, "did not accept a notification in time")),
    }
}

/// Logs a message that was not delivered. A server that is gone is reported elsewhere.
pub(crate) fn log_undelivered(fault: &Fault) {
    if matches!(fault.kind, FaultKind::BackendDown | FaultKind::BackendDied) {
        tracing::debug!(%fault, "a notification or response was not sent: the server is gone");
    } else {
        tracing::warn!(%fault, "a notification or response was not delivered");
    }
}

/// Retries a request that the backend never saw, because it did not accept the connection. A caller that gives up
/// meanwhile aborts this task, or no longer wants the answer.
async fn retry(
    running: &Running,
    message: &ToBackend,
    session: Option<&HeaderValue>,
    key: u64,
    mut fault: Fault,
) -> Result<(), Fault> {
    let backend = running.backend();
    for tried in 0..backend.retries {
        tokio::time::sleep(pacing::retry_delay(tried, getrandom::u64().unwrap_or_default())).await;
        if !running.events().is_wanted(key) {
            return Err(fault);
        }
        backend.retried.fetch_add(1, Ordering::Relaxed);
        running.events().retried(key);
        match post(running, message, session).await {
            Err(retry) if retry.kind == FaultKind::BackendDown => fault = retry,
            ended => return ended,
        }
    }
    Err(fault)
}

async fn post(running: &Running, message: &ToBackend, session: Option<&HeaderValue>) -> Result<(), Fault> {
    let backend = running.backend();
    if backend.credentials.is_some() {
        return Box::pin(post_authorized(running, message, session)).await;
    }
    let mut kept = backend.pool.take();
    let room = kept.as_mut().map(|conn| conn.room()).unwrap_or_default();
    let exchange = backend.exchange(running.events(), kept, headers::post(backend, message, session, None, room)?);
    let (conn, head) = exchange.await?;
    handle(running, message, [session, None], conn, head).await
}

/// Sends a message to a protected backend. A request refused for its credential was not processed, and is sent again
/// with another one.
async fn post_authorized(running: &Running, message: &ToBackend, session: Option<&HeaderValue>) -> Result<(), Fault> {
    let (backend, events) = (running.backend(), running.events());
    let mut credential = backend.credential(events, message.key()).await?;
    let mut tries = 1;
    loop {
        let mut kept = backend.pool.take();
        let room = kept.as_mut().map(|conn| conn.room()).unwrap_or_default();
        let request = headers::post(backend, message, session, credential.as_ref(), room)?;
        let (conn, head) = backend.exchange(events, kept, request).await?;
        if tries < MAX_CREDENTIAL_TRIES
            && let Some(other) = backend.renew_credential(events, message.key(), &head, credential.as_ref()).await?
        {
            backend.finish(conn).await;
            (credential, tries) = (Some(other), tries + 1);
            continue;
        }
        let hidden = [session, credential.as_ref().map(|AuthHeader { value, .. }| value)];
        return handle(running, message, hidden, conn, head).await;
    }
}

/// Handles a response after its head.
async fn handle(
    running: &Running,
    message: &ToBackend,
    hidden: Hidden<'_>,
    conn: Box<Conn>,
    head: Head,
) -> Result<(), Fault> {
    let backend = running.backend();
    let [session, _] = hidden;
    if head.status == StatusCode::NOT_FOUND && session.is_some() {
        running.events().expired(message.clone());
        Box::pin(backend.finish(conn)).await;
        return Ok(());
    }
    if head.status.is_success() && message.method() == method::INITIALIZE {
        running.begin_session(&head);
    }
    let (status, content) = (head.status.as_u16(), head.content);
    let reply = Reply { running, revision: message.revision(), hidden, conn, status, content };
    match (message.key(), status, content) {
        (_, 400, _) if session.is_some() => Box::pin(reply.bad_request(message)).await,
        (Some(key), 200, ContentKind::Json) => reply.json(key).await,
        (Some(key), ..) => Box::pin(reply.handle_answer(key, head)).await,
        (None, ..) => Box::pin(reply.handle_accepted(head)).await,
    }
}

/// A response of which the head was read.
struct Reply<'a> {
    running: &'a Running,
    revision: Option<Revision>,
    hidden: Hidden<'a>,
    conn: Box<Conn>,
    status: u16,
    content: ContentKind,
}

impl<'a> Reply<'a> {
    /// Handles the response to a request.
    async fn handle_answer(self, key: u64, head: Head) -> Result<(), Fault> {
        match (self.status, self.content) {
            (202 | 204, _) => {
                let text = format!("took a request but answered it only with HTTP {}", self.status);
                let fault = self.garbage(text);
                Box::pin(self.finish()).await;
                Err(fault)
            }
            (200..=299, ContentKind::Events) => {
                let stream = stream::AnswerStream::new(self.running, self.revision, key);
                Box::pin(stream.follow(self.conn)).await
            }
            (200..=299, ContentKind::Json) => self.json(key).await,
            (200..=299, ContentKind::Other) => Err(self.wrong_content(&head)),
            (300..=399, _) => {
                let fault = self.redirect_fault(&head);
                Box::pin(self.finish()).await;
                Err(fault)
            }
            _ => Box::pin(self.handle_refusal(Some(key))).await,
        }
    }

    /// Handles the response to a notification, or to our answer.
    async fn handle_accepted(self, head: Head) -> Result<(), Fault> {
        match self.status {
            200..=299 => {
                self.finish().await;
                Ok(())
            }
            300..=399 => Err(self.redirect_fault(&head)),
            _ => self.handle_refusal(None).await,
        }
    }

    async fn json(mut self, key: u64) -> Result<(), Fault> {
        let bytes = self.read().await?;
        let (backend, post) = (self.backend(), self.post(key));
        // Return the connection first, so that a call which follows this answer finds it.
        backend.pool.put(self.conn);
        let text = match post.body(bytes) {
            BodyContent::Answer => return Ok(()),
            BodyContent::Others => "answered with a message that is not the answer".to_owned(),
            BodyContent::Garbage(rejected) => format!("answered with what is no message: {rejected}"),
        };
        Err(backend.fault(FaultKind::BackendGarbage, text))
    }

    /// Handles a 400 in a session. Some servers report an unknown session this way. If the body says so, the message
    /// was certainly not processed; otherwise a ping checks the session, and only the ping is sent again.
    async fn bad_request(mut self, message: &ToBackend) -> Result<(), Fault> {
        let events = self.running.events();
        let bytes = match self.content {
            ContentKind::Events => Bytes::new(),
            ContentKind::Json | ContentKind::Other => self.read().await?,
        };
        let ping = message.method() == method::PING;
        match answer::on_session(&bytes, message.key()) {
            OnSession::Known => self.post_refusal(message.key(), bytes),
            OnSession::Unclear if !ping => {
                events.doubted();
                self.post_refusal(message.key(), bytes)
            }
            OnSession::Unclear | OnSession::Unknown => {
                self.release();
                events.expired(message.clone());
                Ok(())
            }
        }
    }

    /// Handles an error status. The body may still be an answer.
    async fn handle_refusal(mut self, key: Option<u64>) -> Result<(), Fault> {
        // A stream may never end, and has nothing that would explain the status.
        if self.content == ContentKind::Events {
            return Err(self.refusal(b""));
        }
        let bytes = self.read().await?;
        self.post_refusal(key, bytes)
    }

    /// Posts the body of an error response if it is an answer.
    fn post_refusal(self, key: Option<u64>, bytes: Bytes) -> Result<(), Fault> {
        let rest = match key {
            Some(key) => self.post(key).answer(bytes),
            None => Err(bytes),
        };
        let ended = rest.map_err(|bytes| self.refusal(&bytes));
        self.release();
        ended
    }

    /// Returns the connection to the pool, unless it carries a stream that may never end.
    fn release(self) {
        if self.content != ContentKind::Events {
            self.running.backend().pool.put(self.conn);
        }
    }

    fn refusal(&self, bytes: &[u8]) -> Fault {
        let mut text = match self.status {
            401 | 403 => {
                let way = self.backend().sign_in_hint();
                format!("wants authentication (HTTP {}){way}", self.status)
            }
            status => format!("answered HTTP {status}"),
        };
        self.backend().quote(&mut text, bytes, self.hidden);
        self.backend().fault(refusal_kind(self.status), text)
    }

    fn wrong_content(&self, head: &Head) -> Fault {
        let value = head.get(&CONTENT_TYPE);
        let shown = self.backend().excerpt(value.as_ref().map_or(&b""[..], HeaderValue::as_bytes), self.hidden);
        self.garbage(format!("answered with content type `{shown}`, expected JSON or an event stream"))
    }

    /// Reports a redirect. Only the host is named: the rest of the address may contain a secret.
    fn redirect_fault(&self, head: &Head) -> Fault {
        let location = head.get(&LOCATION);
        let location = location.as_ref().and_then(|value| value.to_str().ok());
        let uri = location.and_then(|location| location.parse::<Uri>().ok());
        let place = match uri.as_ref().and_then(Uri::host) {
            Some(host) => format!("host `{}`", self.backend().excerpt(host.as_bytes(), self.hidden)),
            None => "another address".to_owned(),
        };
        self.garbage(format!("redirects to {place} (HTTP {}), and redirects are not followed", self.status))
    }

    async fn read(&mut self) -> Result<Bytes, Fault> {
        let max = self.backend().limits.message;
        let running = self.running;
        body::whole(&mut self.conn, max, || running.events().share()).await.map_err(|error| match error {
            // The backend did answer; the size of the answer depends on the call.
            ResponseBodyError::TooLarge(_) => {
                self.backend().fault(FaultKind::BackendRefused, format!("answered with {error}"))
            }
            ResponseBodyError::NoRoom(_) => {
                self.backend().fault(FaultKind::Overloaded, format!("answered with {error}"))
            }
            ResponseBodyError::Broken(_) => {
                let text = format!("closed the connection in the middle of the answer ({error})");
                self.backend().fault(FaultKind::BackendDied, text)
            }
        })
    }

    fn post(&self, key: u64) -> AnswerPost<'a> {
        AnswerPost {
            events: self.running.events(),
            limits: &self.backend().limits,
            about: Some(key),
            status: Some(self.status),
            event_id: None,
        }
    }

    async fn finish(self) {
        self.running.backend().finish(self.conn).await;
    }

    fn garbage(&self, text: String) -> Fault {
        self.backend().fault(FaultKind::BackendGarbage, text)
    }

    fn backend(&self) -> &'a Backend {
        self.running.backend()
    }
}

/// Returns whether an error status concerns the backend or the request. A status that concerns the request must not
/// count against the backend: otherwise one caller's bad requests would make it unavailable to all callers.
pub(crate) fn refusal_kind(status: u16) -> FaultKind {
    match status {
        // The resource is missing or unavailable for any request.
        404 | 405 | 408 | 410 | 421 | 425 | 429 => FaultKind::BackendGarbage,
        400..=499 => FaultKind::BackendRefused,
        _ => FaultKind::BackendGarbage,
    }
}
