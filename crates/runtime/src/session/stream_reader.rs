//! The reading end of a stream toward a client, as a front holds it.

use super::Session;
use crate::outbox::{Away, Out, Outbox};
use signalbox_engine::front::Mode;
use signalbox_engine::{Event, Fault, StreamId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The reading end of a stream. Dropping it tells the session that nobody reads the stream any more.
pub struct StreamReader {
    session: Arc<Session>,
    id: StreamId,
    outbox: Arc<Outbox>,
    answers_only: bool,
    /// False while its client is away and may come back.
    here: AtomicBool,
}

impl StreamReader {
    pub(super) fn new(session: &Arc<Session>, id: StreamId, outbox: Arc<Outbox>) -> Self {
        Self { session: Arc::clone(session), id, outbox, answers_only: false, here: AtomicBool::new(true) }
    }

    /// The same stream for a client that takes nothing but the answer.
    pub(super) fn for_answers_only(mut self) -> Self {
        self.answers_only = true;
        self
    }

    /// The stream's number.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The session it belongs to.
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

    /// Notes that the client has gone and may come back, or is back. A client that is away does not count as connected.
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

    /// Counts a message that the client of this stream never got.
    pub fn count_dropped(&self, reason: &'static str) {
        self.session.gateway.counters.dropped(reason);
    }

    /// The queue to read from.
    #[must_use]
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The next message; `None` once the stream is over.
    pub async fn next(&self) -> Option<Out> {
        self.outbox.next().await
    }
}

impl Session {
    /// Answers the request with an error where the session serves no other. False for other sessions, whose
    /// clients may come back.
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

/// One open event stream in the counts of its session and of the gateway.
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
        self.session.tell_lost(&self.outbox.drain());
        self.session.gone(self.id, self.answers_only);
        self.set_away(Away::AllBounded);
    }
}
