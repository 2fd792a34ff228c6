//! The stream of events that carries all messages of a backend.

use super::link::SseLinkState;
use crate::http_back::answer::{AnswerPost, BodyContent};
use crate::http_back::backend::{Backend, Hidden};
use crate::http_back::general::EventReader;
use crate::http_back::headers;
use crate::http1::{Conn, ContentKind, Head, body};
use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::LinkEvents;
use signalbox_runtime::backend_credentials::MAX_CREDENTIAL_TRIES;
use signalbox_wire::SseDecoder;
use signalbox_wire::endpoint::{self, EndpointError};
use std::sync::Arc;
use std::time::Duration;

/// Type of the event that names the address to post to.
const ENDPOINT: &str = "endpoint";
/// Maximum number of events before that one; there should be none.
const EARLY_EVENTS: usize = 16;
/// Maximum number of bytes of a refusal that are read for its reason.
pub(super) const REASON_BYTES: usize = 64 * 1024;
/// Maximum time to read the reason.
pub(super) const REASON_TIME: Duration = Duration::from_secs(1);

/// An open stream whose endpoint is known.
pub(super) struct OpenedStream {
    conn: Box<Conn>,
    decoder: SseDecoder,
    /// Address to which messages are posted.
    pub post_to: Uri,
}

/// Opens the stream and waits for the address to post to.
pub(super) async fn open(backend: &Backend, events: &dyn LinkEvents) -> Result<OpenedStream, Fault> {
    let mut credential = backend.credential(events, None).await?;
    let mut tries = 1;
    let (conn, head) = loop {
        let Some(request) = headers::get(backend, None, credential.as_ref(), None, None) else {
            return Err(backend.fault(FaultKind::Internal, "cannot be asked for its stream"));
        };
        let (conn, head) = backend.exchange_alone(events, request).await?;
        match backend.renew_credential(events, None, &head, credential.as_ref()).await? {
            Some(other) if tries < MAX_CREDENTIAL_TRIES => (credential, tries) = (Some(other), tries + 1),
            _ => break (conn, head),
        }
    };
    let (status, content) = (head.status.as_u16(), head.content);
    if status != 200 || content != ContentKind::Events {
        let hidden = [None, credential.as_ref().map(|credential| &credential.value)];
        return Err(refusal(backend, conn, &head, "the GET that opens its event stream", hidden).await);
    }
    let decoder = SseDecoder::new(backend.limits.sse_event);
    let opened = OpenedStream { conn, decoder, post_to: Uri::default() };
    opened.wait_for_endpoint(backend).await
}

impl OpenedStream {
    async fn wait_for_endpoint(mut self, backend: &Backend) -> Result<Self, Fault> {
        let garbage = |text: String| Err(backend.fault(FaultKind::BackendGarbage, text));
        let mut early = 0;
        loop {
            while let Some(event) = self.decoder.next_event() {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => return garbage(format!("sent too much: {error}")),
                };
                if event.event.as_deref() == Some(ENDPOINT) {
                    self.post_to = match post_to(backend, &event.data) {
                        Ok(uri) => uri,
                        Err(error) => return garbage(format!("names an address to post to that {error}")),
                    };
                    return Ok(self);
                }
                early += 1;
                if early > EARLY_EVENTS {
                    return garbage("sends events, but not the one that names the address to post to".to_owned());
                }
            }
            match self.conn.frame().await {
                Some(Ok(chunk)) => self.decoder.push(&chunk),
                Some(Err(error)) => {
                    let text = format!("broke off its event stream before it named the address to post to ({error})");
                    return Err(backend.fault(FaultKind::BackendDied, text));
                }
                None => return garbage("ended its event stream before it named the address to post to".to_owned()),
            }
        }
    }

    /// Forwards messages until the stream ends, and reports the end once.
    pub(super) async fn follow(mut self, shared: Arc<SseLinkState>) {
        let mut reader = EventReader::new(&shared.backend, &*shared.events, self.decoder);
        let why = loop {
            reader.admit().await;
            while let Some(event) = reader.next() {
                match event {
                    Ok(event) if event.event.as_deref().is_none_or(|kind| kind == "message") => {
                        take(&shared, event.data, event.id.as_deref().filter(|id| !id.is_empty()));
                    }
                    Ok(_) => {}
                    // The lost event may have been the answer to any call: that call times out, and no other is
                    // affected. Posting an empty message counts the loss.
                    Err(_) => shared.events.received(Bytes::new(), None, None),
                }
            }
            reader.wait_for_room().await;
            match reader.read(&mut self.conn).await {
                Some(Ok(())) => {}
                Some(Err(error)) => break format!("its event stream broke ({error})"),
                None => break "it closed its event stream".to_owned(),
            }
        };
        shared.lost(why);
    }
}

/// Resolves the address in an event to the URI of a request line.
fn post_to(backend: &Backend, event: &[u8]) -> Result<Uri, EndpointError> {
    let target = &backend.target;
    let base = endpoint::Base { host: &target.host, port: target.port, path: target.uri.path(), secure: target.secure };
    let line: PathAndQuery = endpoint::resolve(base, event)?.parse().map_err(|_| EndpointError::Malformed)?;
    Ok(Uri::from(line))
}

fn take(shared: &SseLinkState, data: Bytes, event_id: Option<&str>) {
    if data.is_empty() {
        return;
    }
    let backend = &shared.backend;
    let post = AnswerPost { events: &*shared.events, limits: &backend.limits, about: None, status: None, event_id };
    if let BodyContent::Garbage(_) = post.messages(data.clone()) {
        // The receiver reports and counts the error.
        shared.events.received(data, None, None);
    }
}

/// Describes an unexpected response. Repeats neither addresses nor secrets we sent.
pub(super) async fn refusal(
    backend: &Backend,
    mut conn: Box<Conn>,
    head: &Head,
    what: &str,
    hidden: Hidden<'_>,
) -> Fault {
    let status = head.status.as_u16();
    let mut text = match status {
        200..=299 => format!("answered {what} with something else than an event stream"),
        300..=399 => format!("redirects {what} (HTTP {status}), and redirects are not followed"),
        401 | 403 => {
            let way = backend.sign_in_hint();
            format!("wants authentication for {what} (HTTP {status}){way}")
        }
        _ => format!("answered {what} with HTTP {status}"),
    };
    if status >= 400 && head.content != ContentKind::Events {
        let reading = tokio::time::timeout(REASON_TIME, body::whole(&mut conn, REASON_BYTES, || None));
        if let Ok(Ok(bytes)) = reading.await {
            backend.quote(&mut text, &bytes, hidden);
            backend.pool.put(conn);
        }
    }
    backend.fault(FaultKind::BackendGarbage, text)
}
