//! A stream of messages as server-sent events, with event ids where a client may come back for them.

use super::KEEP_ALIVE;
use super::resume::{Parked, ResumeStore};
use bytes::{Bytes, BytesMut};
use signalbox_runtime::session::EventCount;
use signalbox_runtime::{Out, Session, StreamReader};
use signalbox_wire::framing::single_line;
use signalbox_wire::sse;
use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep};

/// Most events kept for a client that comes back.
pub const KEPT_EVENTS: usize = 64;
/// Most bytes of them.
pub const KEPT_BYTES: usize = 256 * 1024;
/// What a client is told to wait before it comes back, in milliseconds.
pub const RETRY_MS: u64 = 1000;

/// The events already written, as far as they are kept.
#[derive(Debug, Default)]
pub struct Ring {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// Number of the newest event.
    pub last: u64,
}

impl Ring {
    fn keep(&mut self, data: Bytes) {
        self.last += 1;
        self.bytes += data.len();
        self.events.push_back((self.last, data));
        while self.events.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES {
            let Some((_, old)) = self.events.pop_front() else { break };
            self.bytes -= old.len();
        }
    }

    /// What came after event `seen`.
    pub fn after(&self, seen: u64) -> Vec<(u64, Bytes)> {
        self.events.iter().filter(|(number, _)| *number > seen).cloned().collect()
    }
}

/// Where events of this stream can be fetched again.
pub struct Resumable {
    /// The session's id.
    pub session: Box<str>,
    /// Where a lost stream waits.
    pub store: Arc<ResumeStore>,
    /// True where the first event is an empty one that only carries an id (2025-11-25).
    pub prime: bool,
}

/// Held by the one stream of a session that lives as long as that stream does.
struct SessionEnd(Arc<Session>);

impl Drop for SessionEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The stream.
pub struct SseBody {
    _count: EventCount,
    /// What is written before anything else.
    preface: Option<Bytes>,
    reader: Option<StreamReader>,
    first: Option<Out>,
    resumable: Option<Resumable>,
    ring: Ring,
    replay: VecDeque<(u64, Bytes)>,
    keep_alive: Pin<Box<Sleep>>,
    done: bool,
    parted: bool,
    session_end: Option<SessionEnd>,
}

impl SseBody {
    /// A stream that begins with `first`, if that is there already.
    pub fn new(reader: StreamReader, first: Option<Out>, resumable: Option<Resumable>) -> Self {
        Self {
            _count: reader.count_events(),
            preface: None,
            reader: Some(reader),
            first,
            resumable,
            ring: Ring::default(),
            replay: VecDeque::new(),
            keep_alive: Box::pin(tokio::time::sleep(KEEP_ALIVE)),
            done: false,
            parted: false,
            session_end: None,
        }
    }

    /// The one stream of a session, which begins with an event that says where its client posts to, and ends with it.
    pub fn whole_session(session: Arc<Session>, reader: StreamReader, post_to: &str) -> Self {
        let mut preface = BytesMut::new();
        sse::encode_event(&mut preface, None, Some("endpoint"), None, post_to.as_bytes());
        let mut body = Self::new(reader, None, None);
        body.preface = Some(preface.freeze());
        body.session_end = Some(SessionEnd(session));
        body
    }

    /// A stream that goes on after the event that its client saw last.
    pub fn resumed(parked: Parked, seen: u64, mut resumable: Resumable) -> Self {
        resumable.prime = false;
        let replay = parked.ring.after(seen).into();
        let mut body = Self::new(parked.reader, None, Some(resumable));
        body.ring = parked.ring;
        body.replay = replay;
        body.done = parked.done;
        body
    }

    /// The next piece of the body; `None` at its end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(preface) = self.preface.take() {
            return Poll::Ready(Some(preface));
        }
        let mut out = BytesMut::new();
        if let Some(resumable) = &mut self.resumable
            && std::mem::take(&mut resumable.prime)
        {
            let id = self.event_id(0);
            sse::encode_event(&mut out, id.as_deref(), None, Some(RETRY_MS), b"");
        }
        while let Some((number, data)) = self.replay.pop_front() {
            let id = self.event_id(number);
            sse::encode_event(&mut out, id.as_deref(), Some("message"), None, &data);
        }
        if let Some(first) = self.first.take() {
            self.write(&mut out, first);
        }
        while !self.done && !self.parted {
            let next = match &self.reader {
                Some(reader) => reader.outbox().poll_next(cx),
                None => Poll::Ready(None),
            };
            match next {
                Poll::Ready(Some(message)) => self.write(&mut out, message),
                Poll::Ready(None) => self.done = true,
                Poll::Pending => break,
            }
        }
        if !out.is_empty() {
            return Poll::Ready(Some(out.freeze()));
        }
        if self.parted {
            return Poll::Ready(None);
        }
        if self.done {
            self.resumable = None;
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

    fn write(&mut self, out: &mut BytesMut, message: Out) {
        if message.part {
            // Without event ids the client could not come back, so the stream stays open.
            self.parted = self.resumable.is_some();
            return;
        }
        self.done |= message.last;
        let Ok(line) = single_line(&message.bytes) else {
            tracing::warn!("a message with a raw line break inside a string was not written");
            return;
        };
        let id = if self.resumable.is_some() {
            self.ring.keep(line.clone());
            self.event_id(self.ring.last)
        } else {
            None
        };
        sse::encode_event(out, id.as_deref(), Some("message"), None, &line);
    }

    fn event_id(&self, number: u64) -> Option<String> {
        self.resumable.as_ref()?;
        self.reader.as_ref().map(|reader| format!("{}-{number}", reader.id()))
    }
}

impl Drop for SseBody {
    /// A client that lost its stream may come back for the rest.
    fn drop(&mut self) {
        if let (Some(resumable), Some(reader)) = (self.resumable.take(), self.reader.take()) {
            let ring = std::mem::take(&mut self.ring);
            resumable.store.park(&resumable.session, Parked { reader, ring, done: self.done });
        }
    }
}
