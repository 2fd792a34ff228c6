//! A response that is a stream of events, and its resumption after a break.

use super::answer::{AnswerPost, BodyContent};
use super::backend::{Backend, DRAIN_TIME};
use super::headers;
use super::link::Running;
use crate::http1::{Conn, ContentKind};
use crate::read_charge::ReadCharge;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Revision, SseDecoder, SseEvent};
use std::time::Duration;
use tokio::time::Instant;

/// Default delay before a stream is resumed.
pub(super) const DEFAULT_WAIT: Duration = Duration::from_secs(1);
/// Minimum and maximum delay, whatever the backend asks for.
const WAITS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(30));
/// Maximum number of consecutive attempts to resume that bring no event.
const FRUITLESS_TRIES: u32 = 6;
/// Maximum time during which one request's stream is resumed, in all.
const RESUME_TIME: Duration = Duration::from_secs(600);

/// Position in a stream of events.
#[derive(Default, Debug)]
pub(super) struct StreamCursor {
    /// Id of the last event that had one.
    pub last_event: Option<String>,
    retry: Option<Duration>,
    /// Set if an event arrived since the last check.
    moved: bool,
}

impl StreamCursor {
    /// Records what the event says about the stream. Returns `true` if it contains a message.
    pub(super) fn take(&mut self, event: &mut SseEvent) -> bool {
        self.moved = true;
        if let Some(id) = event.id.take() {
            self.last_event = Some(id).filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry));
        }
        let plain = event.event.as_deref().is_none_or(|kind| kind == "message");
        plain && !event.data.is_empty()
    }

    pub(super) fn moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Returns the delay that the backend asked for, within limits.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry.map(|retry| retry.clamp(WAITS.0, WAITS.1))
    }

    /// Returns the delay before the next attempt, after this many fruitless ones.
    pub(super) fn wait(&self, fruitless: u32) -> Duration {
        let base = self.retry.unwrap_or(DEFAULT_WAIT);
        let factor = 1_u32.checked_shl(fruitless).unwrap_or(u32::MAX);
        base.saturating_mul(factor).clamp(WAITS.0, WAITS.1)
    }
}

/// Outcome of reading a stream.
enum End {
    /// The answer has arrived.
    Answered,
    /// The stream ended without the answer.
    Early,
}

/// The stream of one request.
pub(super) struct AnswerStream<'a> {
    running: &'a Running,
    key: u64,
    revision: Option<Revision>,
    cursor: StreamCursor,
}

impl<'a> AnswerStream<'a> {
    pub(super) fn new(running: &'a Running, revision: Option<Revision>, key: u64) -> Self {
        Self { running, key, revision, cursor: StreamCursor::default() }
    }

    /// Reads until the answer has arrived. Resumes the stream if the revision allows it.
    pub(super) async fn follow(mut self, conn: Box<Conn>) -> Result<(), Fault> {
        let mut end = self.read(conn).await?;
        let started = Instant::now();
        let mut fruitless = 0;
        while matches!(end, End::Early) {
            fruitless = if self.cursor.moved() { 0 } else { fruitless + 1 };
            let may = self.revision.is_none_or(Revision::resumable)
                && fruitless < FRUITLESS_TRIES
                && started.elapsed() < RESUME_TIME;
            let (true, Some(_)) = (may, &self.cursor.last_event) else {
                return Err(self.died("closed the stream before the answer"));
            };
            self.running.events().parted(self.key, self.cursor.retry());
            tokio::time::sleep(self.cursor.wait(fruitless)).await;
            end = self.resume().await?;
        }
        Ok(())
    }

    async fn resume(&mut self) -> Result<End, Fault> {
        let session = self.running.session();
        let last = self.cursor.last_event.as_deref();
        let credential = self.backend().credential(self.running.events(), Some(self.key)).await?;
        let request = headers::get(self.backend(), session.as_ref(), credential.as_ref(), self.revision, last);
        let Some(request) = request else {
            return Err(self.died("closed the stream before the answer, after an id that no header can hold"));
        };
        let kept = self.backend().pool.take();
        let (conn, head) = match self.backend().exchange(self.running.events(), kept, request).await {
            Ok(exchange) => exchange,
            Err(fault) => {
                tracing::debug!(%fault, "a stream could not be resumed yet");
                return Ok(End::Early);
            }
        };
        let status = head.status.as_u16();
        if status == 200 && head.content == ContentKind::Events {
            return self.read(conn).await;
        }
        self.backend().finish(conn).await;
        if status >= 500 {
            return Ok(End::Early);
        }
        let text = format!("closed the stream before the answer and does not resume it (HTTP {status})");
        Err(self.died(&text))
    }

    /// Posts messages until the stream ends. After the answer, the end of the stream is awaited only for a moment, to
    /// keep the connection.
    async fn read(&mut self, mut conn: Box<Conn>) -> Result<End, Fault> {
        let mut decoder = SseDecoder::new(self.backend().limits.sse_event);
        let mut charge = ReadCharge::new(self.running.events().share());
        let mut deadline: Option<Instant> = None;
        loop {
            let next = conn.frame();
            let frame = match deadline {
                None => next.await,
                Some(deadline) => match tokio::time::timeout_at(deadline, next).await {
                    Ok(frame) => frame,
                    Err(_) => return Ok(End::Answered),
                },
            };
            let chunk = match frame {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => {
                    tracing::debug!(%error, "a stream broke");
                    return Ok(if deadline.is_some() { End::Answered } else { End::Early });
                }
                None if deadline.is_some() => {
                    self.backend().pool.put(conn);
                    return Ok(End::Answered);
                }
                None => {
                    self.backend().pool.put(conn);
                    return Ok(End::Early);
                }
            };
            decoder.push(&chunk);
            charge.cover(decoder.buffered()).await.map_err(|error| {
                let text = format!("sent an event for which there is no room: {error}");
                self.backend().fault(FaultKind::Overloaded, text)
            })?;
            if let Some(room) = self.running.events().room() {
                room.await;
            }
            if self.post(&mut decoder, &mut charge)? && deadline.is_none() {
                deadline = Some(Instant::now() + DRAIN_TIME);
            }
        }
    }

    /// Posts the complete events. Returns `true` if the answer was among them.
    fn post(&mut self, decoder: &mut SseDecoder, charge: &mut ReadCharge) -> Result<bool, Fault> {
        let mut answered = false;
        while let Some(event) = decoder.next_event() {
            let mut event = event
                .map_err(|error| self.backend().fault(FaultKind::BackendRefused, format!("sent too much: {error}")))?;
            let has_id = event.id.is_some();
            if !self.cursor.take(&mut event) {
                continue;
            }
            let post = AnswerPost {
                events: self.running.events(),
                limits: &self.backend().limits,
                about: Some(self.key),
                status: Some(200),
                event_id: self.cursor.last_event.as_deref().filter(|_| has_id),
            };
            match post.messages(charge.give(event.data)) {
                BodyContent::Answer => answered = true,
                BodyContent::Others => {}
                BodyContent::Garbage(rejected) => self.running.events().garbage(&rejected),
            }
        }
        Ok(answered)
    }

    fn died(&self, text: &str) -> Fault {
        self.backend().fault(FaultKind::BackendDied, text)
    }

    fn backend(&self) -> &'a Backend {
        self.running.backend()
    }
}
