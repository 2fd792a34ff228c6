//! Reading end of a stream to a client, as a front holds it.

use super::Session;
use crate::outbox::{Away, Outbox, OutgoingMessage};
use signalbox_engine::front::Mode;
use signalbox_engine::{Event, Fault, StreamId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Reading end of a stream. Dropping it closes the stream and tells the session.
pub struct StreamReader {
    session: Arc<Session>,
    id: StreamId,
    outbox: Arc<Outbox>,
    answers_only: bool,
    /// False while the client is away and may resume.
    here: AtomicBool,
}

impl StreamReader {
    pub(super) fn new(session: &Arc<Session>, id: StreamId, outbox: Arc<Outbox>) -> Self {
        Self { session: Arc::clone(session), id, outbox, answers_only: false, here: AtomicBool::new(true) }
    }

    /// Marks the stream as one whose client accepts only the answer.
    pub(super) fn for_answers_only(mut self) -> Self {
        self.answers_only = true;
        self
    }

    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Counts this stream as an event stream until the returned value is dropped.
    #[must_use]
    pub fn count_events(&self) -> EventCount {
        let counts = [&self.session.event_streams, &self.session.gateway.counters.event_streams].map(Arc::clone);
        for count in &counts {
            count.fetch_add(1, Ordering::Relaxed);
        }
        EventCount(counts)
    }

    /// Records that the client has left and may resume, or is back. A client that is away does not count as connected.
    pub fn set_away(&self, away: Away) {
        let here = away == Away::Here;
        if self.here.swap(here, Ordering::Relaxed) != here {
            match here {
                true => self.session.readers.fetch_add(1, Ordering::Relaxed),
                false => self.session.readers.fetch_sub(1, Ordering::Relaxed),
            };
        }
        self.outbox.set_away(away);
    }

    /// Counts a message that the client of this stream never received.
    pub fn count_dropped(&self, reason: &'static str) {
        self.session.gateway.counters.dropped(reason);
    }

    /// Returns the queue to read from.
    #[must_use]
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Returns the next message, or `None` once the stream has ended.
    pub async fn next(&self) -> Option<OutgoingMessage> {
        self.outbox.next().await
    }
}

impl Session {
    /// Fails the request of a stateless session. Returns false for other sessions, whose clients may come back.
    pub fn fail_lone_request(self: &Arc<Self>, fault: &Fault) -> bool {
        if self.mode != Mode::Stateless {
            return false;
        }
        for call in self.calls() {
            self.handle(Event::Failed { exchange: call.exchange, fault: fault.clone() });
        }
        true
    }
}

/// Guard that counts one open event stream, in its session and in the gateway.
pub struct EventCount([Arc<AtomicUsize>; 2]);

impl Drop for EventCount {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.outbox.close();
        self.session.record_lost(&self.outbox.drain());
        self.session.stream_closed(self.id, self.answers_only);
        self.set_away(Away::AllBounded);
    }
}
