//! A stream of messages as server-sent events, with event ids if the client may resume it.

use super::KEEP_ALIVE;
use super::resume::ResumeStore;
use super::track::{NoReplay, Track, TrackStep};
use bytes::{Bytes, BytesMut};
use memchr::memchr2;
use signalbox_engine::{Caller, Fault};
use signalbox_runtime::{OutgoingMessage, Session, StreamReader};
use signalbox_wire::{RawId, sse};
use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep};

/// Maximum number of events kept for a client that reconnects.
pub const KEPT_EVENTS: usize = 512;
/// Maximum size of kept events, unless the newest alone is larger.
pub const KEPT_BYTES: usize = 512 * 1024;
/// Reconnection delay sent to clients, in milliseconds.
pub const RETRY_MS: u64 = 1000;
/// Size of a chunk at which no more events are added. Events that still wait can go to another connection.
const CHUNK: usize = 64 * 1024;

/// An event that was written.
#[derive(Debug)]
struct SentEvent {
    number: u64,
    data: Bytes,
    /// Number of the message in facts.
    message: u64,
}

/// Ring buffer of the events already written.
#[derive(Debug, Default)]
pub struct Ring {
    events: VecDeque<SentEvent>,
    bytes: usize,
    /// Number of the newest event.
    pub last: u64,
    /// Number of the newest event that is no longer kept.
    pub forgotten: u64,
}

impl Ring {
    /// Assigns the next event number, and keeps the event unless `data` is `None`. `message` is the number of its
    /// message.
    pub fn keep(&mut self, data: Option<&Bytes>, message: u64) -> u64 {
        self.last += 1;
        if let Some(data) = data {
            self.bytes += data.len();
            self.events.push_back(SentEvent { number: self.last, data: data.clone(), message });
        }
        while self.events.len() > 1 && (self.events.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES) {
            let Some(old) = self.events.pop_front() else { break };
            self.bytes -= old.data.len();
            self.forgotten = old.number;
        }
        self.last
    }

    /// Returns the events after event `seen`.
    pub fn after(&self, seen: u64) -> VecDeque<(u64, Bytes)> {
        self.events.iter().filter(|event| event.number > seen).map(|event| (event.number, event.data.clone())).collect()
    }

    /// Returns the messages of the events after event `seen`, with their numbers.
    pub fn messages_after(&self, seen: u64) -> Vec<(u64, Bytes)> {
        self.events
            .iter()
            .filter(|event| event.number > seen)
            .map(|event| (event.message, event.data.clone()))
            .collect()
    }

    /// Number of bytes of kept events.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Replay of a stream's events: where they are kept, and for whom.
#[derive(Clone)]
pub struct Resumable {
    /// Id of the session.
    pub session: Box<str>,
    /// Store that holds a lost stream.
    pub store: Arc<ResumeStore>,
    /// Set if the first event is an empty one that only carries an id (2025-11-25).
    pub prime: bool,
    /// Id of the request that the stream answers, if any.
    pub call: Option<RawId>,
    /// Caller whose rights applied when the events were written. Only a caller with the same rights may replay them.
    pub caller: Caller,
}

/// Closes the session when its only stream is dropped.
struct SessionEnd(Arc<Session>);

impl Drop for SessionEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A stream of events as the body of one response.
pub struct SseBody {
    /// Chunks to write first.
    pieces: VecDeque<Bytes>,
    track: Arc<Track>,
    turn: u64,
    resumable: Option<Resumable>,
    replay: VecDeque<(u64, Bytes)>,
    keep_alive: Pin<Box<Sleep>>,
    over: bool,
    session_end: Option<SessionEnd>,
}

impl SseBody {
    /// Creates a stream that begins with the messages in `first`.
    pub fn new(
        reader: StreamReader,
        first: impl IntoIterator<Item = OutgoingMessage>,
        resumable: Option<Resumable>,
    ) -> Self {
        let call = resumable.as_ref().and_then(|resumable| resumable.call.as_ref());
        let keeper = resumable.as_ref().map(|resumable| resumable.caller.clone());
        let track = Track::new(reader, first.into_iter().collect(), false, keeper);
        Self::begin(Arc::new(track.answering(call)), resumable)
    }

    /// Creates the general stream, which belongs to no call.
    pub fn general(reader: StreamReader, resumable: Option<Resumable>) -> Self {
        let keeper = resumable.as_ref().map(|resumable| resumable.caller.clone());
        Self::begin(Arc::new(Track::new(reader, VecDeque::new(), true, keeper)), resumable)
    }

    /// Creates the only stream of a session. Its first event names the URL to post to, and the session ends with it.
    pub fn whole_session(session: Arc<Session>, reader: StreamReader, post_to: &str) -> Self {
        let mut preface = BytesMut::new();
        sse::encode_event(&mut preface, None, Some("endpoint"), None, post_to.as_bytes());
        let mut body = Self::general(reader, None);
        body.pieces.push_back(preface.freeze());
        body.session_end = Some(SessionEnd(session));
        body
    }

    /// Resumes a stream after the last event that the client received, and takes it from the connection that had it.
    ///
    /// # Errors
    /// Returns an error if an event that the client has not received is not kept.
    pub fn resumed(track: Arc<Track>, seen: u64, mut resumable: Resumable) -> Result<Self, NoReplay> {
        let (turn, replay) = track.resume(seen)?;
        resumable.prime = false;
        resumable.store.unpark(&resumable.session, &track);
        Ok(Self::of(track, turn, replay, Some(resumable)))
    }

    fn begin(track: Arc<Track>, resumable: Option<Resumable>) -> Self {
        if let Some(resumable) = &resumable {
            resumable.store.add(&resumable.session, &track);
        }
        Self::of(track, 0, VecDeque::new(), resumable)
    }

    fn of(track: Arc<Track>, turn: u64, replay: VecDeque<(u64, Bytes)>, resumable: Option<Resumable>) -> Self {
        let keep_alive = Box::pin(tokio::time::sleep(KEEP_ALIVE));
        Self { pieces: VecDeque::new(), track, turn, resumable, replay, keep_alive, over: false, session_end: None }
    }

    /// Fails the stream's request with an error if the client cannot resume. Returns `false` if it can.
    pub fn end_early(&mut self, fault: &Fault) -> bool {
        self.resumable.is_none() && self.track.fail(fault)
    }

    /// Polls the next chunk of the body; `None` at its end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(piece));
        }
        let mut out = BytesMut::new();
        if let Some(resumable) = &mut self.resumable
            && std::mem::take(&mut resumable.prime)
        {
            sse::encode_event(&mut out, self.track.event_id(0).as_deref(), None, Some(RETRY_MS), b"");
        }
        while self.pieces.is_empty()
            && let Some((number, data)) = self.replay.pop_front()
        {
            self.encode(&mut out, number, data);
        }
        while !self.over && out.len() < CHUNK && self.pieces.is_empty() {
            match self.track.poll(self.turn, cx) {
                Poll::Ready(TrackStep::Event(number, data)) => self.encode(&mut out, number, data),
                Poll::Ready(TrackStep::Part(number, retry)) => {
                    if let Some(retry) = retry.and_then(|retry| u64::try_from(retry.as_millis()).ok()) {
                        sse::encode_event(&mut out, self.track.event_id(number).as_deref(), None, Some(retry), b"");
                    }
                    self.over = true;
                }
                Poll::Ready(TrackStep::Over) => self.over = true,
                Poll::Pending => break,
            }
        }
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(piece));
        }
        if !out.is_empty() {
            return Poll::Ready(Some(out.freeze()));
        }
        if self.over {
            return Poll::Ready(None);
        }
        if self.keep_alive.as_mut().poll(cx).is_ready() {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            // Poll once more, so that the timer registers this task for the next interval.
            let _ = self.keep_alive.as_mut().poll(cx);
            return Poll::Ready(Some(Bytes::from_static(b": alive\n\n")));
        }
        Poll::Pending
    }

    /// Encodes an event. The data of a large one is not copied: it becomes a chunk of its own, after a chunk with
    /// everything before it.
    fn encode(&mut self, out: &mut BytesMut, number: u64, data: Bytes) {
        let id = self.track.event_id(number);
        if data.len() < CHUNK || memchr2(b'\r', b'\n', &data).is_some() {
            return sse::encode_event(out, id.as_deref(), Some("message"), None, &data);
        }
        sse::begin_data(out, id.as_deref(), Some("message"));
        self.pieces.extend([out.split().freeze(), data, Bytes::from_static(b"\n\n")]);
    }
}

impl Drop for SseBody {
    /// Parks the stream, so that the client may resume it. This applies to an ended stream too, because its last events
    /// may not have arrived.
    fn drop(&mut self) {
        if let Some(resumable) = &self.resumable
            && let Some(since) = self.track.leave(self.turn)
        {
            resumable.store.park(&resumable.session, &self.track, since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_knows_what_it_has_forgotten_and_keeps_the_newest_however_large() {
        let mut ring = Ring::default();
        for _ in 0..KEPT_EVENTS + 3 {
            ring.keep(Some(&Bytes::from_static(b"x")), 7);
        }
        assert_eq!((ring.forgotten, ring.last, ring.bytes()), (3, KEPT_EVENTS as u64 + 3, KEPT_EVENTS));
        assert_eq!(ring.after(ring.last - 2).len(), 2);
        let large = Bytes::from(vec![b'y'; KEPT_BYTES + 1]);
        let number = ring.keep(Some(&large), 8);
        assert_eq!(ring.after(0), [(number, large)]);
        assert_eq!(ring.forgotten, number - 1);
    }
}
