//! The general stream, for messages that belong to no request: a GET that is opened again whenever it ends.

use super::answer::{AnswerPost, BodyContent};
use super::backend::Backend;
use super::headers;
use super::in_flight::GateHold;
use super::link::HttpLinkState;
use super::stream::StreamCursor;
use crate::http1::{Conn, ContentKind, HttpError};
use crate::read_charge::ReadCharge;
use http::header::HeaderValue;
use signalbox_runtime::LinkEvents;
use signalbox_wire::{Revision, SseDecoder, SseError, SseEvent};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Number of fruitless attempts after which the wait no longer grows.
const MAX_BACKOFF: u32 = 5;

/// Number of fruitless attempts after which the session is checked.
const DOUBTFUL: u32 = 1;

/// Maximum time for which requests are held back until the stream opens. Some servers answer the GET only with the
/// first event.
const HEAD_START: Duration = Duration::from_millis(500);

/// Keeps the stream open until the backend refuses one. `holds` is released as soon as the stream is open or has
/// failed.
pub(super) async fn run(
    shared: Arc<HttpLinkState>,
    session: Option<HeaderValue>,
    revision: Option<Revision>,
    holds: GateHold,
) {
    let backend = &*shared.backend;
    let mut holds = Some(holds);
    let mut cursor = StreamCursor::default();
    let mut fruitless = 0;
    loop {
        let last = cursor.last_event.as_deref();
        let Ok(credential) = backend.credential(&*shared.events, None).await else { return };
        let Some(request) = headers::get(backend, session.as_ref(), credential.as_ref(), revision, last) else {
            // The event id is not a valid header value, so open the stream without resuming.
            cursor.last_event = None;
            continue;
        };
        match until_open(backend.exchange_alone(&*shared.events, request), holds.take()).await {
            Err(fault) => {
                tracing::debug!(%fault, "the general stream could not be opened");
                // With several addresses, checking the session moves it to another one.
                if session.is_some() && fruitless == DOUBTFUL {
                    shared.events.doubted();
                }
            }
            Ok((mut conn, head)) => {
                let status = head.status.as_u16();
                match (status, head.content) {
                    (200, ContentKind::Events) => {
                        let mut reader = Reader { backend, events: &*shared.events, cursor: &mut cursor };
                        reader.read(&mut conn).await;
                    }
                    (500..=599, _) => {}
                    (401 | 403, _) if fruitless < MAX_BACKOFF => {
                        match backend.renew_credential(&*shared.events, None, &head, credential.as_ref()).await {
                            Ok(Some(_)) => {}
                            Ok(None) | Err(_) => return,
                        }
                    }
                    (400 | 404, _) if session.is_some() => {
                        tracing::debug!(backend = %backend.name, "no general stream, and perhaps no session");
                        return shared.events.doubted();
                    }
                    // 405 means that the server offers no stream; for any other answer a retry would bring the same.
                    _ => {
                        tracing::debug!(backend = %backend.name, status, "no general stream");
                        return;
                    }
                }
            }
        }
        fruitless = if cursor.moved() { 0 } else { (fruitless + 1).min(MAX_BACKOFF) };
        tokio::time::sleep(cursor.wait(fruitless)).await;
    }
}

async fn until_open<T>(opening: impl Future<Output = T>, holds: Option<GateHold>) -> T {
    let mut opening = pin!(opening);
    if holds.is_some()
        && let Ok(opened) = tokio::time::timeout(HEAD_START, opening.as_mut()).await
    {
        return opened;
    }
    drop(holds);
    opening.await
}

struct Reader<'a> {
    backend: &'a Backend,
    events: &'a dyn LinkEvents,
    cursor: &'a mut StreamCursor,
}

impl Reader<'_> {
    /// Posts messages until the stream ends.
    async fn read(&mut self, conn: &mut Conn) {
        let decoder = SseDecoder::new(self.backend.limits.sse_event);
        let mut reader = EventReader::new(self.backend, self.events, decoder);
        while let Some(Ok(())) = reader.read(conn).await {
            reader.admit().await;
            reader.wait_for_room().await;
            while let Some(event) = reader.next() {
                let Ok(mut event) = event else { continue };
                let has_id = event.id.is_some();
                if self.cursor.take(&mut event) {
                    self.post(event.data, has_id);
                }
            }
        }
    }

    fn post(&self, data: bytes::Bytes, has_id: bool) {
        let event_id = self.cursor.last_event.as_deref().filter(|_| has_id);
        let post =
            AnswerPost { events: self.events, limits: &self.backend.limits, about: None, status: None, event_id };
        if let BodyContent::Garbage(rejected) = post.messages(data) {
            self.events.garbage(&rejected);
        }
    }
}

/// Reads the events of one stream. An event that is too large, or for which there is no room, is dropped, and the
/// stream continues.
pub(crate) struct EventReader<'a> {
    pub decoder: SseDecoder,
    charge: ReadCharge,
    backend: &'a Backend,
    events: &'a dyn LinkEvents,
}

impl<'a> EventReader<'a> {
    /// Continues with a decoder that may already hold events.
    pub(crate) fn new(backend: &'a Backend, events: &'a dyn LinkEvents, decoder: SseDecoder) -> Self {
        Self { decoder, charge: ReadCharge::new(events.share()), backend, events }
    }

    /// Reads the next chunk; `None` at the end of the stream.
    pub(crate) async fn read(&mut self, conn: &mut Conn) -> Option<Result<(), HttpError>> {
        Some(conn.frame().await?.map(|chunk| self.decoder.push(&chunk)))
    }

    /// Charges the received bytes, and drops an event for which the budget has no room.
    pub(crate) async fn admit(&mut self) {
        if let Err(error) = self.charge.cover(self.decoder.buffered()).await {
            tracing::warn!(backend = %self.backend.name, %error, "an event that belongs to no request is dropped");
            self.events.dropped("no_room");
            self.decoder.skip_event();
        }
    }

    /// Waits until the receiver of the messages has room.
    pub(crate) async fn wait_for_room(&self) {
        if let Some(room) = self.events.room() {
            room.await;
        }
    }

    /// Returns the next complete event.
    pub(crate) fn next(&mut self) -> Option<Result<SseEvent, SseError>> {
        let event = self.decoder.next_event()?;
        Some(event.map(|event| SseEvent { data: self.charge.give(event.data), ..event }).inspect_err(|error| {
            tracing::warn!(backend = %self.backend.name, %error, "on a stream that belongs to no request");
        }))
    }
}
