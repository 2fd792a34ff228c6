//! Schedules the calls of a session.

use super::settings::{Order, RunSettings};
use crate::recorded_call::RecordedCall;
use signalbox_wire::method;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Next action of the runner.
pub(super) enum Next {
    /// Send the call at this index.
    Send(usize),
    /// Wait for an answer, at most until the next call is due.
    Wait(Option<Duration>),
}

/// Schedule for the calls of one session.
pub(super) struct Schedule<'a> {
    calls: &'a [Arc<RecordedCall>],
    waiting: VecDeque<usize>,
    /// Calls sent but not yet answered.
    open: Vec<usize>,
    overlaps: bool,
    speed: Option<f64>,
}

impl<'a> Schedule<'a> {
    pub(super) fn new(calls: &'a [Arc<RecordedCall>], settings: &RunSettings) -> Self {
        let mut waiting: Vec<usize> = (0..calls.len()).collect();
        match settings.order {
            Order::Sequential | Order::Correlated => {}
            Order::Priority => waiting.sort_by_key(|index| calls.get(*index).map(|call| rank(&call.method))),
            Order::Random(seed) => shuffle(&mut waiting, seed),
        }
        Self {
            calls,
            waiting: waiting.into(),
            open: Vec::new(),
            overlaps: settings.order == Order::Correlated,
            speed: settings.speed,
        }
    }

    /// Returns the next action. `since` is the time since the start of the run. Returns `None` when all calls are done.
    pub(super) fn next(&mut self, pending: usize, since: Duration) -> Option<Next> {
        let Some(index) = self.waiting.front().copied() else {
            return (pending > 0).then_some(Next::Wait(None));
        };
        if pending > 0 && !(self.overlaps && self.may_overlap(index)) {
            return Some(Next::Wait(None));
        }
        if let Some(pause) = self.pause(index, since) {
            return Some(Next::Wait(Some(pause)));
        }
        self.waiting.pop_front();
        self.open.push(index);
        Some(Next::Send(index))
    }

    /// Marks a call as done.
    pub(super) fn done(&mut self, index: usize) {
        self.open.retain(|open| *open != index);
    }

    /// Drops all unsent calls.
    pub(super) fn stop(&mut self) {
        self.waiting.clear();
    }

    /// Returns `true` if no open call was answered before this one in the recording.
    fn may_overlap(&self, index: usize) -> bool {
        let Some(call) = self.calls.get(index) else { return true };
        let answered = |open: &RecordedCall| open.answer.as_ref().is_some_and(|answer| answer.at <= call.began);
        !self.open.iter().filter_map(|open| self.calls.get(*open)).any(|open| answered(open))
    }

    /// Returns the remaining part of the recorded pause before this call.
    fn pause(&self, index: usize, since: Duration) -> Option<Duration> {
        let speed = self.speed.filter(|speed| *speed > 0.0)?;
        let first = self.calls.first()?.began;
        let due = Duration::from_nanos(self.calls.get(index)?.began.saturating_sub(first)).div_f64(speed);
        due.checked_sub(since).filter(|pause| !pause.is_zero())
    }
}

/// Ranks lists first, then reads, then tool calls.
fn rank(name: &str) -> u8 {
    match name {
        method::INITIALIZE | method::SERVER_DISCOVER => 0,
        name if name.ends_with("/list") => 1,
        method::TOOLS_CALL => 3,
        _ => 2,
    }
}

/// Shuffles deterministically: one seed gives the same order on every machine.
fn shuffle(items: &mut [usize], seed: u64) {
    let mut state = seed;
    let mut draw = move |below: usize| {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % below as u64).unwrap_or_default()
    };
    for place in (1..items.len()).rev() {
        items.swap(place, draw(place + 1));
    }
}
