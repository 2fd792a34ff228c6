//! One stream of events towards a client: the events written so far, as far as they are kept, and the connection that
//! writes now.
//!
//! A client that reconnects takes the stream over, even if the loss of the first connection has not been noticed: only
//! the connection that holds the turn takes messages, and every message is kept before it is written.

use super::sse_body::Ring;
use bytes::Bytes;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Caller, Fault};
use signalbox_runtime::outbox::Away;
use signalbox_runtime::session::EventCount;
use signalbox_runtime::{OutgoingMessage, Session, StreamReader};
use signalbox_seal::{hex, unhex};
use signalbox_wire::framing::single_line;
use signalbox_wire::{Envelope, RawId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Maximum length of a request id that is included in event ids.
const MAX_CALL_ID: usize = 64;

/// Next step on a stream.
#[derive(PartialEq, Eq, Debug)]
pub enum TrackStep {
    /// An event with its number.
    Event(u64, Bytes),
    /// The stream closes for now after the event of this number. Its client reconnects for the rest, after this delay
    /// if the backend gave one.
    Part(u64, Option<Duration>),
    /// The stream has ended, or another connection took it over.
    Over,
}

/// Reasons why a stream cannot be resumed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NoReplay {
    /// Later events are no longer kept, or never were.
    Gap,
    /// The event does not exist yet.
    Future,
}

struct State {
    /// `None` once the stream has ended.
    reader: Option<StreamReader>,
    /// Messages taken from the reader before the event stream began.
    first: VecDeque<OutgoingMessage>,
    ring: Ring,
    turn: u64,
    away: Option<Instant>,
    /// Counts the stream as open while a connection writes it.
    count: Option<EventCount>,
}

/// A stream of events.
pub struct Track {
    /// Number of the stream, unique in its session.
    pub stream: u64,
    /// Set for the general stream, which belongs to no call.
    pub general: bool,
    /// Id of the request that the stream answers, in hexadecimal.
    call: Option<Box<str>>,
    /// Caller for whom events are kept; `None` if none are.
    keeper: Option<Caller>,
    session: Weak<Session>,
    state: Mutex<State>,
}

impl Track {
    /// Creates a stream that begins with these messages. With a `keeper`, events are kept for that caller.
    pub fn new(reader: StreamReader, first: VecDeque<OutgoingMessage>, general: bool, keeper: Option<Caller>) -> Self {
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

    /// Includes the id of the request in event ids, so that even the next process knows which answer is lost.
    pub fn answering(mut self, call: Option<&RawId>) -> Self {
        let short = call.filter(|call| call.token().len() <= MAX_CALL_ID);
        self.call = short.map(|call| hex(call.token()).into());
        self
    }

    /// Returns `true` if the caller may receive events kept for another credential of its principal. A credential with
    /// fewer rights must not learn what the other one received.
    pub fn is_for(&self, caller: &Caller) -> bool {
        self.keeper.as_ref().is_none_or(|keeper| Session::are_alike(keeper, caller))
    }

    /// Takes the stream over after the last event that the client received. Returns the turn and the events that
    /// follow.
    ///
    /// # Errors
    /// Returns an error if an event that the client has not received is not kept.
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

    /// Fails the only request of its session with an error. Returns `false` if the session serves more than one.
    pub fn fail(&self, fault: &Fault) -> bool {
        self.session.upgrade().is_some_and(|session| session.fail_lone_request(fault))
    }

    /// Polls the next step for the connection that holds this turn.
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
                // Without event ids the client could not resume, so the stream stays open.
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

    /// Releases the turn of a connection that is gone. Returns the time since which the client is away, or `None` if
    /// another connection took the stream over.
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

    /// Time since which the stream has no reader.
    pub fn away(&self) -> Option<Instant> {
        self.lock().away
    }

    /// Returns `true` once the stream has ended.
    pub fn is_over(&self) -> bool {
        self.lock().reader.is_none()
    }

    /// Number of bytes of kept events.
    pub fn kept_bytes(&self) -> usize {
        self.lock().ring.bytes()
    }

    /// Formats an event id, which names the stream, its kind and its request.
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

/// Ends the stream. The state is unlocked first, because a dropped reader reports to its session.
fn end(mut state: MutexGuard<'_, State>) {
    let gone = (state.reader.take(), state.count.take());
    drop(state);
    drop(gone);
}

impl Drop for Track {
    /// Counts messages as lost whose client never came back.
    fn drop(&mut self) {
        let state = self.state.get_mut().unpoisoned();
        if let Some(reader) = state.reader.as_ref().filter(|_| self.keeper.is_some()) {
            for _ in 0..reader.outbox().len() {
                reader.count_dropped("not_resumed");
            }
        }
    }
}

/// An event id that this gateway issued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventId {
    /// Number of the stream.
    pub stream: u64,
    /// Set for a stream that belongs to no call.
    pub general: bool,
    /// Number of the event.
    pub number: u64,
    /// Id of the request that the stream answers.
    pub call: Option<RawId>,
}

impl EventId {
    /// Parses an id in the format of [`Track::event_id`].
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

/// Parses the request id in an event id.
fn read_id(digits: &str) -> Option<RawId> {
    let token = unhex(digits).filter(|token| !token.is_empty() && token.len() <= MAX_CALL_ID)?;
    // A client may have forged it, so parse it as strictly as the id of a request.
    let request = [br#"{"jsonrpc":"2.0","method":"ping","id":"#, &*token, b"}"].concat();
    Envelope::parse(request.into()).ok()?.id()
}
