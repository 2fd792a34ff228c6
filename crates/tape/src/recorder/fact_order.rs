//! Puts facts in the order in which they happened.
//!
//! Threads that serve calls hand facts over in bundles, so that one that happened early may come late. Before a batch is made
//! into entries, all threads are asked for what they still have ([`Queue::settle`](super::queue::Queue::settle)). What happened
//! until then is sorted by its time; what is younger waits for the next batch. Of one exchange the order in which it was told
//! stays, because an end bears the time of the event that led to it, which is a little before the answer left.

use super::recorder_input::{QueuedInput, RecorderInput};
use signalbox_engine::Fact;
use signalbox_engine::keys::{ExchangeId, KeyMap, SessionKey};
use std::time::{Duration, Instant};

/// How long a thread may take between a fact and telling it.
const MARGIN: Duration = Duration::from_millis(20);
/// The longest that a fact waits for earlier ones.
const AT_MOST: Duration = Duration::from_millis(250);
/// Most facts that wait for earlier ones, and most bytes of them.
const MAX_WAITING: usize = 16_384;
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Facts that wait for their turn.
#[derive(Default, Debug)]
pub(crate) struct FactOrder {
    waiting: Vec<TimedInput>,
    bytes: usize,
    /// When the oldest of them came.
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
    /// Takes inputs in the order in which they were told.
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

    /// True if something waits for its turn.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The inputs that wait.
    pub(crate) fn waiting_mut(&mut self) -> impl Iterator<Item = &mut QueuedInput> {
        self.waiting.iter_mut().map(|timed| &mut timed.queued)
    }

    /// The inputs whose turn it is, in order: those that happened long enough before `settled`, when all threads told what they
    /// had. All of them if that is unknown, and when they have waited too long or are too many.
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

    /// When an input happened, and not before what its exchange and the description of its session told before it.
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
