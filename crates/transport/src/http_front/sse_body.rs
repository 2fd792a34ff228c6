//! A stream of messages as server-sent events, with event ids where a client may come back for them.

use super::KEEP_ALIVE;
use super::resume::ResumeStore;
use super::track::{NoReplay, Track, TrackStep};
use bytes::{Bytes, BytesMut};
use memchr::memchr2;
use signalbox_engine::{Caller, Fault};
use signalbox_runtime::{Out, Session, StreamReader};
use signalbox_wire::{RawId, sse};
use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep};

/// Most events kept for a client that comes back.
pub const KEPT_EVENTS: usize = 512;
/// Most bytes of them, unless the newest alone is larger.
pub const KEPT_BYTES: usize = 512 * 1024;
/// What a client is told to wait before it comes back, in milliseconds.
pub const RETRY_MS: u64 = 1000;
/// No more events are taken at once when a chunk has this size: those that wait can still be
/// told to another connection.
const CHUNK: usize = 64 * 1024;

/// An event that was written.
#[derive(Debug)]
struct Kept {
    number: u64,
    data: Bytes,
    /// The number that its message has in facts.
    message: u64,
}

/// The events already written, as far as they are kept.
#[derive(Debug, Default)]
pub struct Ring {
    events: VecDeque<Kept>,
    bytes: usize,
    /// Number of the newest event.
    pub last: u64,
    /// Number of the newest event that is no longer kept.
    pub forgotten: u64,
}

impl Ring {
    /// Gives the next event its number, and keeps it unless there is nothing to keep. `message` is the
    /// number of its message.
    pub fn keep(&mut self, data: Option<&Bytes>, message: u64) -> u64 {
        self.last += 1;
        if let Some(data) = data {
            self.bytes += data.len();
            self.events.push_back(Kept { number: self.last, data: data.clone(), message });
        }
        while self.events.len() > 1 && (self.events.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES) {
            let Some(old) = self.events.pop_front() else { break };
            self.bytes -= old.data.len();
            self.forgotten = old.number;
        }
        self.last
    }

    /// What came after event `seen`.
    pub fn after(&self, seen: u64) -> VecDeque<(u64, Bytes)> {
        self.events.iter().filter(|event| event.number > seen).map(|event| (event.number, event.data.clone())).collect()
    }

    /// The messages of these events, with their numbers.
    pub fn messages_after(&self, seen: u64) -> Vec<(u64, Bytes)> {
        self.events
            .iter()
            .filter(|event| event.number > seen)
            .map(|event| (event.message, event.data.clone()))
            .collect()
    }

    /// How many bytes it keeps.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Where events of this stream can be fetched again.
#[derive(Clone)]
pub struct Resumable {
    /// The session's id.
    pub session: Box<str>,
    /// Where a lost stream waits.
    pub store: Arc<ResumeStore>,
    /// True where the first event is an empty one that only carries an id (2025-11-25).
    pub prime: bool,
    /// The id of the request that the stream answers, if that is one.
    pub call: Option<RawId>,
    /// The caller whose rights count for what is written: only one like it may fetch that again.
    pub caller: Caller,
}

/// Held by the one stream of a session that lives as long as that stream does.
struct SessionEnd(Arc<Session>);

impl Drop for SessionEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The stream as the body of one answer.
pub struct SseBody {
    /// What is written before anything else.
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
    /// A stream that begins with `first`, as far as that is there already.
    pub fn new(reader: StreamReader, first: impl IntoIterator<Item = Out>, resumable: Option<Resumable>) -> Self {
        let call = resumable.as_ref().and_then(|resumable| resumable.call.as_ref());
        let keeper = resumable.as_ref().map(|resumable| resumable.caller.clone());
        let track = Track::new(reader, first.into_iter().collect(), false, keeper);
        Self::begin(Arc::new(track.answering(call)), resumable)
    }

    /// The stream for what belongs to no call.
    pub fn general(reader: StreamReader, resumable: Option<Resumable>) -> Self {
        let keeper = resumable.as_ref().map(|resumable| resumable.caller.clone());
        Self::begin(Arc::new(Track::new(reader, VecDeque::new(), true, keeper)), resumable)
    }

    /// The one stream of a session, which begins with an event that says where its client posts to, and ends with it.
    pub fn whole_session(session: Arc<Session>, reader: StreamReader, post_to: &str) -> Self {
        let mut preface = BytesMut::new();
        sse::encode_event(&mut preface, None, Some("endpoint"), None, post_to.as_bytes());
        let mut body = Self::general(reader, None);
        body.pieces.push_back(preface.freeze());
        body.session_end = Some(SessionEnd(session));
        body
    }

    /// A stream that goes on after the event that its client saw last, and leaves the connection that had it.
    ///
    /// # Errors
    /// When something that the client has not seen is not kept.
    pub fn resumed(track: Arc<Track>, seen: u64, mut resumable: Resumable) -> Result<Self, NoReplay> {
        let (turn, replay) = track.resume(seen)?;
        resumable.prime = false;
        resumable.store.stir(&resumable.session, &track);
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

    /// Ends the stream with an error as the answer to its request, where the client cannot come back for that.
    /// False where it can.
    pub fn end_early(&mut self, fault: &Fault) -> bool {
        self.resumable.is_none() && self.track.fail(fault)
    }

    /// The next piece of the body; `None` at its end.
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
            // Polled once more, so that the timer wakes this task the next time.
            let _ = self.keep_alive.as_mut().poll(cx);
            return Poll::Ready(Some(Bytes::from_static(b": alive\n\n")));
        }
        Poll::Pending
    }

    /// Adds an event. The data of a large one is not copied: it goes out as a piece of its own, and what
    /// came before it too.
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
    /// A client that lost its stream may come back for the rest. That holds for one that has ended too: what was
    /// written last need not have arrived.
    fn drop(&mut self) {
        if let Some(resumable) = &self.resumable
            && let Some(since) = self.track.leave(self.turn)
        {
            resumable.store.rest(&resumable.session, &self.track, since);
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
