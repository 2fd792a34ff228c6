//! Sorts facts by the time at which they happened.
//!
//! Threads that serve calls report facts in batches, so an early fact may arrive late. Before a batch is made into
//! entries, all threads are asked to flush their facts ([`Queue::settle`](super::queue::Queue::settle)). Older facts
//! are sorted by time; younger ones wait for the next batch. Facts of one exchange keep the order in which they were
//! reported, because an end has the time of the event that caused it, shortly before the answer left.

use super::recorder_input::{QueuedInput, RecorderInput};
use signalbox_engine::Fact;
use signalbox_engine::keys::{ExchangeId, KeyMap, SessionKey};
use std::time::{Duration, Instant};

/// Maximum time between a fact and its report by the thread.
const MARGIN: Duration = Duration::from_millis(20);
/// Maximum time that a fact waits for earlier ones.
const AT_MOST: Duration = Duration::from_millis(250);
/// Maximum number of waiting facts, and of their bytes.
const MAX_WAITING: usize = 16_384;
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Facts that wait for earlier ones.
#[derive(Default, Debug)]
pub(crate) struct FactOrder {
    waiting: Vec<TimedInput>,
    bytes: usize,
    /// Arrival of the oldest waiting fact.
    since: Option<Instant>,
    sessions: KeyMap<SessionKey, Instant>,
    exchanges: KeyMap<ExchangeId, Instant>,
}

#[derive(Debug)]
struct TimedInput {
    at: Instant,
    queued: QueuedInput,
}

impl FactOrder {
    /// Adds inputs in the order in which they were reported.
    pub(crate) fn add(&mut self, inputs: &mut Vec<QueuedInput>) {
        if !inputs.is_empty() {
            self.since.get_or_insert_with(Instant::now);
        }
        for queued in inputs.drain(..) {
            self.bytes += queued.weight;
            let at = self.time(&queued.input);
            self.waiting.push(TimedInput { at, queued });
        }
    }

    /// Returns true if inputs are waiting.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the waiting inputs.
    pub(crate) fn waiting_mut(&mut self) -> impl Iterator<Item = &mut QueuedInput> {
        self.waiting.iter_mut().map(|timed| &mut timed.queued)
    }

    /// Returns the inputs that happened long enough before `settled`, when all threads had flushed their facts, in
    /// order. Returns all inputs if that time is unknown, or if they have waited too long or are too many.
    pub(crate) fn ready(&mut self, settled: Option<Instant>) -> impl Iterator<Item = QueuedInput> {
        self.waiting.sort_by_key(|timed| timed.at);
        let crowded = self.waiting.len() > MAX_WAITING || self.bytes > MAX_WAITING_BYTES;
        let late = self.since.is_some_and(|since| since.elapsed() >= AT_MOST);
        let upto = settled.filter(|_| !crowded && !late).and_then(|settled| settled.checked_sub(MARGIN));
        let count = upto.map_or(self.waiting.len(), |upto| self.waiting.partition_point(|timed| timed.at <= upto));
        let rest = self.waiting.split_off(count);
        let ready = std::mem::replace(&mut self.waiting, rest);
        self.bytes = self.waiting.iter().map(|timed| timed.queued.weight).sum();
        if count > 0 || self.waiting.is_empty() {
            self.since = (!self.waiting.is_empty()).then(Instant::now);
        }
        self.sessions.clear();
        self.exchanges.clear();
        ready.into_iter().map(|timed| timed.queued)
    }

    /// Returns the time of an input, but not before that of earlier facts of its exchange and of the description of its
    /// session.
    fn time(&mut self, input: &RecorderInput) -> Instant {
        let at = input.at();
        let RecorderInput::Fact(fact) = input else { return at };
        let (session, exchange) = (fact.session(), fact.exchange());
        let after = [self.sessions.get(&session), exchange.and_then(|id| self.exchanges.get(&id))];
        let at = after.into_iter().flatten().fold(at, |at, before| at.max(*before));
        if matches!(fact, Fact::Session(_)) {
            self.sessions.insert(session, at);
        }
        if let Some(id) = exchange {
            self.exchanges.insert(id, at);
        }
        at
    }
}
