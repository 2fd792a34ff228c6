//! One stream of events toward a client: what was written, as far as it is kept, and which connection writes now.
//!
//! A client that comes back by another connection takes the stream over, whether or not the loss of the first one
//! has been noticed: only the connection that has the turn takes messages, and every message that is taken is kept
//! before it is written.

use super::sse_body::Ring;
use bytes::Bytes;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Caller, Fault};
use signalbox_runtime::outbox::Away;
use signalbox_runtime::session::EventCount;
use signalbox_runtime::{Out, Session, StreamReader};
use signalbox_seal::{hex, unhex};
use signalbox_wire::framing::single_line;
use signalbox_wire::{Envelope, RawId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Most bytes of a request's id that stand in event ids.
const MAX_CALL_ID: usize = 64;

/// What comes next on a stream.
#[derive(PartialEq, Eq, Debug)]
pub enum TrackStep {
    /// An event with its number.
    Event(u64, Bytes),
    /// The stream closes for now after the event of this number, and its client comes back for the rest, after this
    /// wait where the backend named one.
    Part(u64, Option<Duration>),
    /// The stream is over, or another connection has it.
    Over,
}

/// Why a stream cannot go on where its client left it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NoReplay {
    /// Events after that one are no longer kept, or never were.
    Gap,
    /// There is no such event yet.
    Future,
}

struct State {
    /// None once the stream has ended.
    reader: Option<StreamReader>,
    /// What was taken from the reader before there was a stream of events.
    first: VecDeque<Out>,
    ring: Ring,
    turn: u64,
    away: Option<Instant>,
    /// Counted as open while a connection writes it.
    count: Option<EventCount>,
}

/// The stream.
pub struct Track {
    /// Its number, unique in its session.
    pub stream: u64,
    /// True for the one that belongs to no call.
    pub general: bool,
    /// The id of the request that it answers, in hexadecimal digits.
    call: Option<Box<str>>,
    /// The caller for whom events are kept; `None` if none are.
    keeper: Option<Caller>,
    session: Weak<Session>,
    state: Mutex<State>,
}

impl Track {
    /// A stream that begins with these messages. With a `keeper` events are kept, for which that caller may come back.
    pub fn new(reader: StreamReader, first: VecDeque<Out>, general: bool, keeper: Option<Caller>) -> Self {
        let (stream, session) = (reader.id().0, Arc::downgrade(reader.session()));
        let state = State {
            count: Some(reader.count_events()),
            reader: Some(reader),
            first,
            ring: Ring::default(),
            turn: 0,
            away: None,
        };
        Self { stream, general, call: None, keeper, session, state: Mutex::new(state) }
    }

    /// The ids of its events name the request that it answers, so that even another process knows whose answer is lost.
    pub fn answering(mut self, call: Option<&RawId>) -> Self {
        let short = call.filter(|call| call.token().len() <= MAX_CALL_ID);
        self.call = short.map(|call| hex(call.token()).into());
        self
    }

    /// True if a caller may be given what was kept for another credential of its principal: one that is good for less
    /// must not learn what the other was told.
    pub fn is_for(&self, caller: &Caller) -> bool {
        self.keeper.as_ref().is_none_or(|keeper| Session::are_alike(keeper, caller))
    }

    /// Takes the stream over after the event that its client saw last: the turn, and the events that follow.
    ///
    /// # Errors
    /// When something that the client has not seen is not kept.
    pub fn resume(&self, seen: u64) -> Result<(u64, VecDeque<(u64, Bytes)>), NoReplay> {
        let mut state = self.lock();
        if seen > state.ring.last {
            return Err(NoReplay::Future);
        }
        let dropped = state.reader.as_ref().filter(|_| self.general).and_then(|reader| reader.outbox().gap());
        if seen < state.ring.forgotten || dropped.is_some_and(|after| after >= seen) {
            return Err(NoReplay::Gap);
        }
        let (events, again) = (state.ring.after(seen), state.ring.messages_after(seen));
        state.turn += 1;
        state.away = None;
        if let Some(reader) = &state.reader {
            let count = reader.count_events();
            reader.set_away(Away::Here);
            reader.outbox().nudge();
            state.count = Some(count);
        }
        let turn = state.turn;
        drop(state);
        if let Some(session) = self.session.upgrade() {
            session.sent_again(&again);
        }
        Ok((turn, events))
    }

    /// Answers the request of a session that serves no other with an error. False for other sessions.
    pub fn fail(&self, fault: &Fault) -> bool {
        self.session.upgrade().is_some_and(|session| session.fail_lone_request(fault))
    }

    /// The next step for the connection that has this turn.
    pub fn poll(&self, turn: u64, cx: &mut Context<'_>) -> Poll<TrackStep> {
        let mut state = self.lock();
        if state.turn != turn {
            return Poll::Ready(TrackStep::Over);
        }
        loop {
            let next = match (state.first.pop_front(), &state.reader) {
                (Some(out), _) => Poll::Ready(Some(out)),
                (None, Some(reader)) => reader.outbox().poll_next(cx),
                (None, None) => Poll::Ready(None),
            };
            let out = match next {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => {
                    end(state);
                    return Poll::Ready(TrackStep::Over);
                }
                Poll::Ready(Some(out)) => out,
            };
            if out.part {
                // Without event ids the client could not come back, so the stream stays open.
                if self.keeper.is_some() {
                    return Poll::Ready(TrackStep::Part(state.ring.last, out.retry));
                }
                continue;
            }
            let line = single_line(out.bytes()).ok();
            let number =
                state.ring.keep(line.as_ref().filter(|_| self.keeper.is_some()), out.numbers().next().unwrap_or(0));
            if line.is_none() {
                tracing::warn!("a message with a raw line break inside a string was not written");
            }
            if out.last {
                end(state);
                return Poll::Ready(line.map_or(TrackStep::Over, |line| TrackStep::Event(number, line)));
            }
            if let Some(line) = line {
                return Poll::Ready(TrackStep::Event(number, line));
            }
        }
    }

    /// The connection that has this turn is gone. Since when the client is away, unless another
    /// connection has the stream.
    pub fn leave(&self, turn: u64) -> Option<Instant> {
        let mut state = self.lock();
        if state.turn != turn {
            return None;
        }
        let now = Instant::now();
        state.away = Some(now);
        state.count = None;
        if let Some(reader) = &state.reader {
            reader.set_away(if self.general { Away::AllBounded } else { Away::Bounded });
        }
        Some(now)
    }

    /// Since when nobody reads it.
    pub fn away(&self) -> Option<Instant> {
        self.lock().away
    }

    /// True once nothing more can come on it.
    pub fn is_over(&self) -> bool {
        self.lock().reader.is_none()
    }

    /// How many bytes of events it keeps.
    pub fn kept_bytes(&self) -> usize {
        self.lock().ring.bytes()
    }

    /// The id of its event of this number, which names the stream, its kind and its request too.
    pub fn event_id(&self, number: u64) -> Option<String> {
        let kind = if self.general { "g" } else { "" };
        self.keeper.is_some().then(|| match &self.call {
            Some(call) => format!("{kind}{}-{number}-{call}", self.stream),
            None => format!("{kind}{}-{number}", self.stream),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

/// The reader tells its session that nobody reads it any more; the state must not be locked meanwhile.
fn end(mut state: MutexGuard<'_, State>) {
    let gone = (state.reader.take(), state.count.take());
    drop(state);
    drop(gone);
}

impl Drop for Track {
    /// What waits for a client that never came back is lost, and counted.
    fn drop(&mut self) {
        let state = self.state.get_mut().unpoisoned();
        if let Some(reader) = state.reader.as_ref().filter(|_| self.keeper.is_some()) {
            for _ in 0..reader.outbox().len() {
                reader.count_dropped("not_resumed");
            }
        }
    }
}

/// An event id of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventId {
    /// The stream's number.
    pub stream: u64,
    /// True for one that belongs to no call.
    pub general: bool,
    /// The event's number.
    pub number: u64,
    /// The id of the request that the stream answers.
    pub call: Option<RawId>,
}

impl EventId {
    /// Reads an id as [`Track::event_id`] writes it.
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, rest) = text.split_once('-')?;
        let (number, call) = rest.split_once('-').map_or((rest, None), |(number, call)| (number, Some(call)));
        let call = match call {
            Some(call) => Some(read_id(call)?),
            None => None,
        };
        let (general, stream) = match stream.strip_prefix('g') {
            Some(stream) => (true, stream),
            None => (false, stream),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        Some(Self { stream: digits(stream)?, general, number: digits(number)?, call })
    }
}

/// Reads the id of a request as it stands in an event id.
fn read_id(digits: &str) -> Option<RawId> {
    let token = unhex(digits).filter(|token| !token.is_empty() && token.len() <= MAX_CALL_ID)?;
    // The client may have made it up, so it is read as the id of a request.
    let request = [br#"{"jsonrpc":"2.0","method":"ping","id":"#, &*token, b"}"].concat();
    Envelope::parse(request.into()).ok()?.id()
}
