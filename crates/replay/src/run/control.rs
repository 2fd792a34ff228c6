//! State machine of an interactively controlled run.
//!
//! [`ReplayControl`] does no I/O. Users issue commands. The runner polls it before each send ([`ReplayControl::next`])
//! and reports the outcome of each call ([`ReplayControl::done`]). Time is an argument.
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
//! The position is the next call to send, and a seek moves it. Seeking forward skips the calls in between: their
//! answers are taken from the tape. Seeking backward sends the calls from there on again, on a new connection. The
//! runner performs the handshake and sends nothing else in between. The server keeps its state and the run keeps the
//! values that the server made up, so later calls still find what earlier calls created.
//!
//! Invariants:
//! - at most one call is in flight, and nothing but injected requests is sent while paused, finished or stopped;
//! - a call is sent when it is due, stepped to, or resumed by `play`. A breakpoint never stops the call at which the
//!   run already stands;
//! - an edit belongs to the call at the position and is dropped when a seek leaves that call;
//! - each call has only its latest verdict, and a call that was never sent has none;
//! - breakpoints, injections and stored messages are bounded.

mod breakpoint;
mod error;
mod queries;
#[cfg(test)]
mod tests;
mod transcript;

pub use breakpoint::{ReplayBreakpoint, When};
pub use error::ControlError;
pub use transcript::{CallTranscript, Injection};

use super::is_handshake;
use super::report::{CallReport, ReplayVerdict};
use crate::recorded_call::RecordedCall;
use error::as_request;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use transcript::{Transcripts, for_display};

/// Minimum speed, relative to the recorded pauses.
pub const SLOWEST: f64 = 0.1;
/// Maximum speed, relative to the recorded pauses. Playing without pauses is a separate mode.
pub const FASTEST: f64 = 10.0;
/// Maximum number of breakpoints.
pub const MAX_BREAKPOINTS: usize = 1000;
/// Maximum number of queued injections.
pub const MAX_INJECTIONS: usize = 64;
/// Lower bound on the speed given to [`ReplayControl::new`], which limits how far pauses stretch.
const MIN_SPEED: f64 = 0.01;

/// State of a controlled run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Sends one call after the other.
    Playing,
    /// Sends nothing until the user resumes.
    Paused,
    /// Sends a single call.
    Stepping,
    /// The last call is done. A seek leads back.
    Finished,
    Stopped,
}

impl State {
    /// Returns the name of the state.
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

/// Next action of the runner.
#[derive(Clone, PartialEq, Debug)]
pub enum Next {
    Send {
        /// Index of the call.
        index: usize,
        /// Request to send instead of the recorded one.
        edited: Option<Value>,
        /// Set if a new connection must be opened first.
        reconnect: bool,
    },
    /// Sends a request that is not on the tape.
    Inject {
        id: u64,
        request: Value,
    },
    /// Waits for a command, at most for this long.
    Wait(Option<Duration>),
    End,
}

/// Call of a controlled run.
#[derive(Debug)]
pub struct ControlledCall {
    pub recorded: Arc<RecordedCall>,
    /// Index of its recorded session.
    pub session: usize,
    /// Outcome of the latest send.
    pub report: Option<CallReport>,
}

/// Preview of the request at the position.
#[derive(Clone, PartialEq, Debug)]
pub struct Preview {
    /// Request to send, or `None` if it is not whole on the tape.
    pub request: Option<Value>,
    /// Reason for which it will not be sent, unless it is edited.
    pub not_sent: Option<ReplayVerdict>,
}

/// Control of an interactive run.
#[derive(Debug)]
pub struct ReplayControl {
    calls: Vec<ControlledCall>,
    position: usize,
    state: State,
    why: Option<String>,
    speed: Option<f64>,
    breakpoints: Vec<ReplayBreakpoint>,
    last_breakpoint: u64,
    in_flight: Option<usize>,
    /// Call at which the run was resumed. Its breakpoint must not stop the run again.
    resumed_at: Option<usize>,
    reconnect: bool,
    preview: Option<Preview>,
    edit: Option<Value>,
    injections: VecDeque<(u64, Value)>,
    hearing: Transcripts,
    last: Option<usize>,
    /// Time of the last send, and the recorded time of that call.
    sent: Option<(Duration, u64)>,
}

impl ReplayControl {
    /// Creates a paused run over the calls of these sessions, one session after another. Without a speed there are no
    /// pauses.
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
            hearing: Transcripts::default(),
            last: None,
            sent: None,
        }
    }

    /// Sends calls until the run is paused or finished.
    ///
    /// # Errors
    /// If there is no call left to send.
    pub fn play(&mut self) -> Result<(), ControlError> {
        self.can_send()?;
        if self.state != State::Playing {
            self.resumed_at = Some(self.position);
        }
        self.enter(State::Playing, None);
        Ok(())
    }

    /// Stops sending. A call in flight still completes.
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

    pub fn stop(&mut self) {
        self.injections.clear();
        self.enter(State::Stopped, None);
    }

    /// Sends one call, ignoring breakpoints.
    ///
    /// # Errors
    /// If there is no call left to send.
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

    /// Scales the recorded pauses by `speed`, or drops them for `None`.
    ///
    /// # Errors
    /// If the speed is out of range.
    pub fn set_speed(&mut self, speed: Option<f64>) -> Result<(), ControlError> {
        self.is_open()?;
        if speed.is_some_and(|speed| !(SLOWEST..=FASTEST).contains(&speed)) {
            return Err(ControlError::Speed);
        }
        self.speed = speed;
        Ok(())
    }

    /// Sets a breakpoint and returns its number.
    ///
    /// # Errors
    /// If the call does not exist, or there are too many breakpoints.
    pub fn set_breakpoint(&mut self, when: When) -> Result<u64, ControlError> {
        self.is_open()?;
        if let When::Call(place) = when {
            self.index(place)?;
        }
        if self.breakpoints.len() >= MAX_BREAKPOINTS {
            return Err(ControlError::TooManyBreakpoints);
        }
        self.last_breakpoint += 1;
        self.breakpoints.push(ReplayBreakpoint { id: self.last_breakpoint, when, hits: 0 });
        Ok(self.last_breakpoint)
    }

    /// Removes a breakpoint.
    ///
    /// # Errors
    /// If there is no such breakpoint.
    pub fn clear_breakpoint(&mut self, id: u64) -> Result<(), ControlError> {
        let place = self.breakpoints.iter().position(|breakpoint| breakpoint.id == id);
        self.breakpoints.remove(place.ok_or(ControlError::NoBreakpoint(id))?);
        Ok(())
    }

    /// Removes all breakpoints and returns their number.
    pub fn clear_breakpoints(&mut self) -> usize {
        std::mem::take(&mut self.breakpoints).len()
    }

    /// Queues a user's request ahead of the next call and returns its number. It is sent even while paused. Its answer
    /// is not compared.
    ///
    /// # Errors
    /// If it is not a request, or the queue is full.
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

    /// Replaces the request at the position. It is sent unchanged, even if the recorded one would be withheld.
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

    /// Returns the next action at `now`, the time since the start of the run.
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

    /// Returns the index of the call at the position if its preview is missing.
    #[must_use]
    pub fn wants_preview(&self) -> Option<usize> {
        (self.preview.is_none() && self.in_flight.is_none() && self.position < self.calls.len())
            .then_some(self.position)
    }

    /// Stores the preview of the request at the position.
    pub fn previewed(&mut self, index: usize, preview: Preview) {
        if index == self.position {
            self.preview = Some(preview);
        }
    }

    /// Records the outcome of a call.
    pub fn done(&mut self, index: usize, report: CallReport, heard: Option<(&Value, Option<&Value>)>) {
        self.in_flight = self.in_flight.filter(|open| *open != index);
        self.preview = None;
        self.last = Some(index);
        if let Some((request, answer)) = heard {
            self.hearing.keep(CallTranscript { index, request: for_display(request), answer: answer.map(for_display) });
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
                if let Some(why) = set.map(ReplayBreakpoint::hit) {
                    self.enter(State::Paused, Some(why));
                }
            }
            _ => {}
        }
    }

    /// Records the answer to an injected request, or `None` for a timeout.
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

    /// Pauses the run if a breakpoint matches the call at the position.
    fn breaks_here(&mut self) -> bool {
        let Some(call) = self.calls.get(self.position).filter(|_| self.resumed_at != Some(self.position)) else {
            return false;
        };
        let place = self.position + 1;
        let set = self.breakpoints.iter_mut().find(|breakpoint| breakpoint.when.is_at(place, &call.recorded));
        let Some(why) = set.map(ReplayBreakpoint::hit) else { return false };
        self.enter(State::Paused, Some(why));
        true
    }

    /// Returns the remaining part of the recorded pause between the last call and this one.
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
