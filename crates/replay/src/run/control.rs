//! Decides what a run does next while a person controls it.
//!
//! [`ReplayControl`] is a machine without I/O: people tell it what they want, and the runner asks it before each send
//! ([`ReplayControl::next`]) and tells it what became of each call ([`ReplayControl::done`]). Time is an argument.
//!
//! ```text
//!              play                        last call is over
//!   paused ──────────────────► playing ─────────────────────► finished
//!    ▲ │ ▲                        │                               │
//!    │ │ └── pause, breakpoint ───┘                               │
//!    │ │ step                                                     │
//!    │ └─────► stepping ── call is over (the last: finished)      │
//!    │              │                                             │
//!    ├──────────────┘                                             │
//!    └───────────────────────── seek ─────────────────────────────┘
//!
//!   stop: from every state to stopped, for good
//! ```
//!
//! The position is the call that is sent next. A seek moves it. Forward, the calls in between are not sent: the tape stands
//! for their answers. Backward, calls from there on are sent again, on a new connection: the runner does the handshake and
//! sends nothing else in between. The server keeps its state and the run keeps the values that the server made up, so that
//! later calls still find what earlier calls created.
//!
//! Invariants:
//! - at most one call is with the server, and nothing is sent while paused, finished or stopped, except what was injected;
//! - a call is sent when it is due, when it is stepped to, or when `play` resumes at it: a breakpoint never stops the call
//!   at which the run stands already;
//! - an edit belongs to the call at the position and is dropped when a seek leaves that call;
//! - each call has its latest verdict only; a call that was never sent has none;
//! - breakpoints, injections and kept messages are bounded.

mod breakpoint;
mod error;
mod heard;
mod looking;
#[cfg(test)]
mod tests;

pub use breakpoint::{Breakpoint, When};
pub use error::ControlError;
pub use heard::{Heard, Injected};

use super::is_handshake;
use super::report::{CallReport, Verdict};
use crate::recorded_call::RecordedCall;
use error::as_request;
use heard::{Hearing, kept};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The slowest speed that can be chosen.
pub const SLOWEST: f64 = 0.1;
/// The fastest speed that can be chosen, besides no pauses at all.
pub const FASTEST: f64 = 10.0;
/// Most breakpoints.
pub const MAX_BREAKPOINTS: usize = 1000;
/// Most injected requests that wait to be sent.
pub const MAX_INJECTIONS: usize = 64;
/// Pauses are stretched no further than this, whatever a library user asks for.
const MIN_SPEED: f64 = 0.01;

/// What a controlled run is doing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Calls are sent, one after the other.
    Playing,
    /// Nothing is sent until somebody wants it.
    Paused,
    /// One call is sent.
    Stepping,
    /// The last call is over; a seek leads back.
    Finished,
    /// The run has ended.
    Stopped,
}

impl State {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Playing => "playing",
            Self::Paused => "paused",
            Self::Stepping => "stepping",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
        }
    }
}

/// What the runner does next.
#[derive(Clone, PartialEq, Debug)]
pub enum Next {
    /// Sends a call.
    Send {
        /// Which.
        index: usize,
        /// What is sent in its place.
        edited: Option<Value>,
        /// On a new connection.
        reconnect: bool,
    },
    /// Sends a request that is not on the tape.
    Inject {
        /// Its number.
        id: u64,
        /// The request.
        request: Value,
    },
    /// Waits until somebody wants something, for at most so long.
    Wait(Option<Duration>),
    /// Ends.
    End,
}

/// One call of a controlled run.
#[derive(Debug)]
pub struct ControlledCall {
    /// What is on the tape.
    pub recorded: Arc<RecordedCall>,
    /// To which of the recorded sessions it belongs.
    pub session: usize,
    /// What became of it when it was last sent.
    pub report: Option<CallReport>,
}

/// The request at the position, as it would be sent now.
#[derive(Clone, PartialEq, Debug)]
pub struct Preview {
    /// The request; none if it is not whole on the tape.
    pub request: Option<Value>,
    /// Why it is not sent, unless somebody edits it.
    pub not_sent: Option<Verdict>,
}

/// The control of a run.
#[derive(Debug)]
pub struct ReplayControl {
    calls: Vec<ControlledCall>,
    position: usize,
    state: State,
    why: Option<String>,
    speed: Option<f64>,
    breakpoints: Vec<Breakpoint>,
    last_breakpoint: u64,
    in_flight: Option<usize>,
    /// The call at which the run stands, so that its breakpoint does not stop it again.
    resumed_at: Option<usize>,
    reconnect: bool,
    preview: Option<Preview>,
    edit: Option<Value>,
    injections: VecDeque<(u64, Value)>,
    hearing: Hearing,
    last: Option<usize>,
    /// When a call was last sent, and when it began in the recording.
    sent: Option<(Duration, u64)>,
}

impl ReplayControl {
    /// A paused run over the calls of these sessions, session after session, at this speed; none has no pauses.
    #[must_use]
    pub fn new(sessions: Vec<Vec<Arc<RecordedCall>>>, speed: Option<f64>) -> Self {
        let calls = sessions.into_iter().enumerate().flat_map(|(session, calls)| {
            calls.into_iter().map(move |recorded| ControlledCall { recorded, session, report: None })
        });
        Self {
            calls: calls.collect(),
            position: 0,
            state: State::Paused,
            why: None,
            speed: speed.filter(|speed| speed.is_finite()).map(|speed| speed.max(MIN_SPEED)),
            breakpoints: Vec::new(),
            last_breakpoint: 0,
            in_flight: None,
            resumed_at: None,
            reconnect: false,
            preview: None,
            edit: None,
            injections: VecDeque::new(),
            hearing: Hearing::default(),
            last: None,
            sent: None,
        }
    }

    /// Sends calls until something stops it.
    ///
    /// # Errors
    /// If there is nothing to send.
    pub fn play(&mut self) -> Result<(), ControlError> {
        self.can_send()?;
        if self.state != State::Playing {
            self.resumed_at = Some(self.position);
        }
        self.enter(State::Playing, None);
        Ok(())
    }

    /// Sends nothing more for now. A call that is with the server is waited for.
    ///
    /// # Errors
    /// If the run has ended.
    pub fn pause(&mut self) -> Result<(), ControlError> {
        self.is_open()?;
        if self.state != State::Finished {
            self.enter(State::Paused, None);
        }
        Ok(())
    }

    /// Ends the run.
    pub fn stop(&mut self) {
        self.injections.clear();
        self.enter(State::Stopped, None);
    }

    /// Sends one call, whatever breakpoints say.
    ///
    /// # Errors
    /// If there is nothing to send.
    pub fn step(&mut self) -> Result<(), ControlError> {
        self.can_send()?;
        self.enter(State::Stepping, None);
        Ok(())
    }

    /// Moves the position to a call, counted from 1.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn seek(&mut self, place: usize) -> Result<(), ControlError> {
        self.is_open()?;
        let target = self.index(place)?;
        if target == self.position {
            return Ok(());
        }
        self.reconnect |= target < self.position;
        self.position = target;
        (self.preview, self.edit, self.resumed_at, self.sent) = (None, None, None, None);
        if self.state == State::Finished {
            self.enter(State::Paused, None);
        }
        Ok(())
    }

    /// Keeps the recorded pauses, so many times as fast; none has no pauses.
    ///
    /// # Errors
    /// If that is too slow or too fast.
    pub fn set_speed(&mut self, speed: Option<f64>) -> Result<(), ControlError> {
        self.is_open()?;
        if speed.is_some_and(|speed| !(SLOWEST..=FASTEST).contains(&speed)) {
            return Err(ControlError::Speed);
        }
        self.speed = speed;
        Ok(())
    }

    /// Sets a breakpoint and gives its number.
    ///
    /// # Errors
    /// If it is about a call that does not exist, or there are too many.
    pub fn set_breakpoint(&mut self, when: When) -> Result<u64, ControlError> {
        self.is_open()?;
        if let When::Call(place) = when {
            self.index(place)?;
        }
        if self.breakpoints.len() >= MAX_BREAKPOINTS {
            return Err(ControlError::TooManyBreakpoints);
        }
        self.last_breakpoint += 1;
        self.breakpoints.push(Breakpoint { id: self.last_breakpoint, when, hits: 0 });
        Ok(self.last_breakpoint)
    }

    /// Takes a breakpoint away.
    ///
    /// # Errors
    /// If there is no such breakpoint.
    pub fn clear_breakpoint(&mut self, id: u64) -> Result<(), ControlError> {
        let place = self.breakpoints.iter().position(|breakpoint| breakpoint.id == id);
        self.breakpoints.remove(place.ok_or(ControlError::NoBreakpoint(id))?);
        Ok(())
    }

    /// Takes all breakpoints away and says how many there were.
    pub fn clear_breakpoints(&mut self) -> usize {
        std::mem::take(&mut self.breakpoints).len()
    }

    /// Sends a request of somebody's own before the next call, paused or not, and gives its number. Its answer is not compared.
    ///
    /// # Errors
    /// If it is not a request, or too many wait.
    pub fn inject(&mut self, request: Value) -> Result<u64, ControlError> {
        self.is_open()?;
        let request = as_request(request)?;
        if self.injections.len() >= MAX_INJECTIONS {
            return Err(ControlError::TooManyInjections);
        }
        let id = self.hearing.inject(&request);
        self.injections.push_back((id, request));
        Ok(id)
    }

    /// Replaces the request at the position. It is sent as it is given, even where the recorded one would not be sent.
    ///
    /// # Errors
    /// If it is not a request, or the next call is part of the handshake.
    pub fn modify_next(&mut self, request: Value) -> Result<(), ControlError> {
        self.can_send()?;
        if self.calls.get(self.position).is_some_and(|call| is_handshake(&call.recorded.method)) {
            return Err(ControlError::Handshake(self.position + 1));
        }
        self.edit = Some(as_request(request)?);
        Ok(())
    }

    /// What the runner does, so long after the beginning.
    pub fn next(&mut self, now: Duration) -> Next {
        if self.state == State::Stopped {
            return Next::End;
        }
        if self.in_flight.is_some() {
            return Next::Wait(None);
        }
        if let Some((id, request)) = self.injections.pop_front() {
            return Next::Inject { id, request };
        }
        match self.state {
            State::Stepping => self.send(now),
            State::Playing if self.position >= self.calls.len() => {
                self.enter(State::Finished, None);
                Next::Wait(None)
            }
            State::Playing => self.play_on(now),
            _ => Next::Wait(None),
        }
    }

    /// Sends the call at the position, unless a breakpoint stops it or it is not due yet.
    fn play_on(&mut self, now: Duration) -> Next {
        if self.breaks_here() {
            return Next::Wait(None);
        }
        match self.pause_left(now) {
            Some(pause) => Next::Wait(Some(pause)),
            None => self.send(now),
        }
    }

    /// The call at the position whose request the runner has not told yet.
    #[must_use]
    pub fn wants_preview(&self) -> Option<usize> {
        (self.preview.is_none() && self.in_flight.is_none() && self.position < self.calls.len())
            .then_some(self.position)
    }

    /// Takes the request at the position, as it would be sent now.
    pub fn previewed(&mut self, index: usize, preview: Preview) {
        if index == self.position {
            self.preview = Some(preview);
        }
    }

    /// Takes what became of a call.
    pub fn done(&mut self, index: usize, report: CallReport, heard: Option<(&Value, Option<&Value>)>) {
        self.in_flight = self.in_flight.filter(|open| *open != index);
        self.preview = None;
        self.last = Some(index);
        if let Some((request, answer)) = heard {
            self.hearing.keep(Heard { index, request: kept(request), answer: answer.map(kept) });
        }
        let failed = report.verdict.is_failure();
        if let Some(call) = self.calls.get_mut(index) {
            call.report = Some(report);
        }
        match self.state {
            State::Stepping if self.position >= self.calls.len() => self.enter(State::Finished, None),
            State::Stepping => self.enter(State::Paused, None),
            State::Playing if failed => {
                let set = self.breakpoints.iter_mut().find(|breakpoint| breakpoint.when == When::Difference);
                if let Some(why) = set.map(Breakpoint::hit) {
                    self.enter(State::Paused, Some(why));
                }
            }
            _ => {}
        }
    }

    /// Takes the answer to an injected request; none if there was none in time.
    pub fn answered(&mut self, id: u64, answer: Option<&Value>) {
        self.hearing.answered(id, answer);
    }

    fn send(&mut self, now: Duration) -> Next {
        let Some(call) = self.calls.get(self.position) else { return Next::Wait(None) };
        let index = self.position;
        self.sent = Some((now, call.recorded.began));
        self.position += 1;
        self.in_flight = Some(index);
        self.preview = None;
        self.resumed_at = None;
        Next::Send { index, edited: self.edit.take(), reconnect: std::mem::take(&mut self.reconnect) }
    }

    /// Pauses if a breakpoint is at the position.
    fn breaks_here(&mut self) -> bool {
        let Some(call) = self.calls.get(self.position).filter(|_| self.resumed_at != Some(self.position)) else {
            return false;
        };
        let place = self.position + 1;
        let set = self.breakpoints.iter_mut().find(|breakpoint| breakpoint.when.is_at(place, &call.recorded));
        let Some(why) = set.map(Breakpoint::hit) else { return false };
        self.enter(State::Paused, Some(why));
        true
    }

    /// How long the recorded client waited between the last call and this one, as far as that is not over.
    fn pause_left(&self, now: Duration) -> Option<Duration> {
        let (speed, (sent, began)) = (self.speed?, self.sent?);
        let recorded = self.calls.get(self.position)?.recorded.began.saturating_sub(began);
        let due = sent + Duration::from_nanos(recorded).div_f64(speed);
        due.checked_sub(now).filter(|pause| !pause.is_zero())
    }

    fn enter(&mut self, state: State, why: Option<String>) {
        (self.state, self.why) = (state, why);
    }

    fn is_open(&self) -> Result<(), ControlError> {
        if self.state == State::Stopped { Err(ControlError::Over) } else { Ok(()) }
    }

    fn can_send(&self) -> Result<(), ControlError> {
        self.is_open()?;
        if self.position < self.calls.len() { Ok(()) } else { Err(ControlError::AtEnd) }
    }

    fn index(&self, place: usize) -> Result<usize, ControlError> {
        let count = self.calls.len();
        let index = place.checked_sub(1).filter(|index| *index < count);
        index.ok_or(ControlError::NoCall { wanted: place, count })
    }
}
