//! Reading a stream of events that belongs to no request.

use super::backend::Backend;
use crate::http1::{Conn, HttpError};
use crate::read_charge::ReadCharge;
use signalbox_runtime::LinkEvents;
use signalbox_wire::{SseDecoder, SseError, SseEvent};

/// The events of one stream. An event that is too large, or for which there is no room, is dropped, and the stream goes on.
pub(crate) struct EventReader<'a> {
    pub decoder: SseDecoder,
    charge: ReadCharge,
    backend: &'a Backend,
    events: &'a dyn LinkEvents,
}

impl<'a> EventReader<'a> {
    /// Goes on with a decoder that may hold events already.
    pub(crate) fn new(backend: &'a Backend, events: &'a dyn LinkEvents, decoder: SseDecoder) -> Self {
        Self { decoder, charge: ReadCharge::new(events.share()), backend, events }
    }

    /// Reads what comes next; none at the end of the stream.
    pub(crate) async fn read(&mut self, conn: &mut Conn) -> Option<Result<(), HttpError>> {
        Some(conn.frame().await?.map(|chunk| self.decoder.push(&chunk)))
    }

    /// Charges what has come, and drops an event that the budget has no room for.
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

    /// The next event that has come as a whole.
    pub(crate) fn next(&mut self) -> Option<Result<SseEvent, SseError>> {
        let event = self.decoder.next_event()?;
        Some(event.map(|event| SseEvent { data: self.charge.give(event.data), ..event }).inspect_err(|error| {
            tracing::warn!(backend = %self.backend.name, %error, "on a stream that belongs to no request");
        }))
    }
}
