//! The bounded queue between the threads that report facts and the one thread that writes them.
//!
//! Reporting a fact never blocks: a fact that does not fit is counted as lost. With [`OnFull::Wait`] the threads that
//! read messages from clients and backends ask for room first, and wait once half of the bounds is used, which leaves
//! the other half to the calls under way. Waiting messages are admitted in order as the writer makes progress
//! ([`Admission`]). A fact counts until the writer has made an entry of it.

use super::admission::{self, Admission};
use super::barrier::{Barrier, BarrierError, Waiting};
use super::counters::{Counters, GapReason};
use super::message_arena::{MessageArena, uncharged};
use super::recorder_input::{QueuedInput, RecorderInput};
use super::settings::{OnFull, RecorderSettings};
use signalbox_engine::Fact;
use signalbox_engine::chain::{Ruling, Rulings};
use signalbox_engine::fact::{MessageFact, Point};
use signalbox_engine::lock::LockResultExt;
use signalbox_wire::{Envelope, Kind};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// Maximum number of unresolved barriers.
pub const MAX_BARRIERS: usize = 100_000;
/// Number of images of a message in the queue: incoming and outgoing. Its answer waits for room of its own.
const IMAGES: usize = 2;
/// Approximate weight of a fact besides its message.
const FACT_WEIGHT: usize = 256;
/// Approximate weight of a ruling besides its inputs; its conditions are shared with its rule.
const RULING_WEIGHT: usize = 128;

/// Callback that flushes the facts which threads still buffer.
type Settle = Box<dyn Fn() + Send + Sync>;

pub(crate) struct Queue {
    state: Mutex<State>,
    settle: OnceLock<Settle>,
    filled: Condvar,
    /// True once half of the bounds is used, and while messages wait.
    crowded: AtomicBool,
    limits: Limits,
    counters: Arc<Counters>,
}

#[derive(Copy, Clone, Debug)]
struct Limits {
    facts: usize,
    bytes: usize,
    on_full: OnFull,
    batch: usize,
}

#[derive(Default, Debug)]
struct State {
    facts: Vec<QueuedInput>,
    arena: MessageArena,
    /// Number and bytes of facts without an entry so far, including those that the writer has taken.
    pending: usize,
    bytes: usize,
    lost: [u64; 2],
    barriers: Vec<Waiting>,
    admission: Admission,
    trigger: bool,
    asleep: bool,
    failing: bool,
    /// Time at which the writer gives up, set once the queue is closed to further facts.
    closed: Option<Instant>,
}

/// State that the writer takes besides the facts.
#[derive(Default, Debug)]
pub(crate) struct DrainedQueue {
    /// Number of facts lost after the taken ones, by reason.
    pub(crate) lost: Vec<(GapReason, u64)>,
    pub(crate) barriers: Vec<Waiting>,
    pub(crate) trigger: bool,
    pub(crate) closed: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("state", &self.state).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Queue {
    pub(crate) fn new(settings: &RecorderSettings, counters: Arc<Counters>) -> Self {
        let limits = Limits {
            facts: settings.queue_facts.max(1),
            bytes: settings.queue_bytes,
            on_full: settings.on_full,
            batch: settings.batch.max(1),
        };
        let (state, settle, filled) = (Mutex::default(), OnceLock::new(), Condvar::new());
        Self { state, settle, filled, crowded: AtomicBool::new(false), limits, counters }
    }

    /// Sets the callback that flushes facts. Later calls are ignored.
    pub(crate) fn settle_with(&self, settle: Settle) {
        let _ = self.settle.set(settle);
    }

    /// Has all threads flush their facts, and appends them. Returns false without a callback.
    pub(crate) fn settle(&self, facts: &mut Vec<QueuedInput>) -> bool {
        let Some(settle) = self.settle.get() else { return false };
        settle();
        let mut state = self.lock();
        facts.append(&mut state.facts);
        true
    }

    /// Adds each fact, or counts it as lost if it does not fit.
    pub(crate) fn push(&self, facts: &[Fact]) {
        let mut state = self.lock();
        if state.closed.is_some() {
            return;
        }
        let before = state.facts.len();
        for fact in facts {
            let weight = weight(fact);
            if self.full(&state, weight) || self.is_nearly_full(&state, weight) && is_notification(fact) {
                self.lose(&mut state);
                continue;
            }
            if let Some(shares) = self.shares_of_first(fact) {
                state.admission.arrive(shares);
            }
            let input = RecorderInput::Fact(state.shelved(fact));
            state.add(QueuedInput::new(input, weight));
        }
        self.look_for_room(&state);
        self.wake(&state, before);
    }

    /// Returns a barrier that resolves when a message of this size fits or the store fails, with the maximum time to
    /// wait. Returns `None` if the message fits, and without [`OnFull::Wait`].
    pub(crate) fn room(&self, bytes: usize) -> Option<(Barrier, Duration)> {
        let OnFull::Wait(within) = self.limits.on_full else { return None };
        let wanted = self.shares_of(bytes);
        if wanted == 1 && !self.crowded.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.lock();
        let now = Instant::now();
        state.admission.expire(now);
        if !self.is_crowded_for(&state, wanted) || state.failing || state.closed.is_some() {
            if wanted > 1 {
                state.admission.pass(wanted, now);
            }
            self.look_for_room(&state);
            return None;
        }
        let barrier = state.admission.enqueue(wanted);
        self.look_for_room(&state);
        self.wake(&state, 0);
        Some((barrier, within))
    }

    /// Releases the room of facts that have become entries, and admits messages for which there is room now. Returns
    /// true if some still wait.
    pub(crate) fn processed(&self, facts: usize, bytes: usize) -> bool {
        let mut state = self.lock();
        state.pending = state.pending.saturating_sub(facts);
        state.bytes = state.bytes.saturating_sub(bytes);
        let mut admitted = Vec::new();
        if state.admission.is_waited_for() {
            let (shares, is_empty) = (self.shares(&state), state.pending == 0);
            admitted = state.admission.admit(shares, is_empty, Instant::now());
        }
        self.look_for_room(&state);
        let is_waited_for = state.admission.is_waited_for();
        drop(state);
        admitted.iter().for_each(|waiting| waiting.resolve(Ok(())));
        is_waited_for
    }

    /// Returns the number of shares that fit into half of the bounds, at least one if nothing is pending.
    fn shares(&self, state: &State) -> usize {
        let free = |limit: usize, used: usize| (limit / 2).saturating_sub(used) / (limit / admission::PARTS).max(1);
        let shares = free(self.limits.facts, state.pending).min(free(self.limits.bytes, state.bytes));
        shares.max(usize::from(state.pending == 0))
    }

    /// Returns the number of shares that the images of a message of this size need.
    fn shares_of(&self, bytes: usize) -> usize {
        let share = (self.limits.bytes / admission::PARTS).max(1);
        (IMAGES * bytes).div_ceil(share).clamp(1, admission::MAX_SHARES)
    }

    /// Returns the number of shares that were reserved for the message of a fact, if it is the first fact of that
    /// message. The size of a backend's message is not known in advance.
    fn shares_of_first(&self, fact: &Fact) -> Option<usize> {
        match fact {
            Fact::Message(message) if message.point == Point::ClientIn => Some(self.shares_of(message.bytes.len())),
            Fact::Message(message) if message.point == Point::BackendIn => Some(1),
            _ => None,
        }
    }

    /// Returns true if a message of one share has to wait, for others before it or for the share.
    fn is_crowded(&self, state: &State) -> bool {
        self.is_crowded_for(state, 1)
    }

    fn is_crowded_for(&self, state: &State, wanted: usize) -> bool {
        let is_empty = state.pending == 0 && state.admission.set_aside() == 0;
        let fits = state.admission.set_aside() + wanted <= self.shares(state) || is_empty;
        state.admission.is_waited_for() || !fits
    }

    fn look_for_room(&self, state: &State) {
        let crowded = self.is_crowded(state);
        if self.crowded.load(Ordering::Relaxed) != crowded {
            self.crowded.store(crowded, Ordering::Relaxed);
        }
    }

    /// Adds an input other than a fact. Such inputs are few, so they are taken even if the queue is full.
    pub(crate) fn tell(&self, told: RecorderInput) {
        let mut state = self.lock();
        if state.closed.is_some() {
            return;
        }
        let before = state.facts.len();
        let weight = told.weight();
        state.add(QueuedInput::new(told, weight));
        self.look_for_room(&state);
        self.wake(&state, before);
    }

    fn lose(&self, state: &mut State) {
        let reason = if state.failing { GapReason::Disk } else { GapReason::QueueFull };
        if let Some(lost) = state.lost.get_mut(reason as usize) {
            *lost += 1;
        }
        self.counters.lost(reason, 1);
    }

    /// Returns a barrier after all current facts.
    pub(crate) fn barrier(&self) -> Barrier {
        let (waiting, barrier) = Waiting::new();
        let mut state = self.lock();
        let refused = match &*state {
            State { closed: Some(_), .. } => Some(BarrierError::Closed),
            State { failing: true, .. } => Some(BarrierError::Store),
            State { barriers, .. } if barriers.len() >= MAX_BARRIERS => Some(BarrierError::Busy),
            _ => None,
        };
        if let Some(refused) = refused {
            waiting.resolve(Err(refused));
        } else {
            state.barriers.push(waiting);
            self.wake(&state, 0);
        }
        barrier
    }

    /// Requests the content of the ring.
    pub(crate) fn trigger(&self) {
        let mut state = self.lock();
        state.trigger = true;
        self.wake(&state, 0);
    }

    /// Closes the queue to further facts, and has the writer give up after `within`.
    pub(crate) fn close(&self, within: Duration) {
        let mut state = self.lock();
        state.closed.get_or_insert(Instant::now() + within);
        let waiting = state.admission.take_all();
        drop(state);
        self.filled.notify_all();
        drop(waiting);
    }

    /// Returns the number of pending facts, and their bytes.
    pub(crate) fn depth(&self) -> (usize, usize) {
        let state = self.lock();
        (state.pending, state.bytes)
    }

    /// Waits for work, for at most `idle`, and gathers a batch. `facts` must be empty; its memory is reused.
    pub(crate) fn take(&self, facts: &mut Vec<QueuedInput>, idle: Duration, gather: Duration) -> DrainedQueue {
        let mut state = self.lock();
        state.asleep = true;
        let nothing = |state: &mut State| {
            state.facts.is_empty() && !state.is_urgent() && state.lost.iter().all(|lost| *lost == 0)
        };
        state = wait(&self.filled, state, idle, nothing);
        if !state.facts.is_empty() {
            let batch = self.limits.batch;
            state = wait(&self.filled, state, gather, |state| state.facts.len() < batch && !state.is_urgent());
        }
        state.asleep = false;
        std::mem::swap(&mut state.facts, facts);
        let lost = std::mem::take(&mut state.lost);
        DrainedQueue {
            lost: GapReason::ALL.into_iter().zip(lost).filter(|(_, lost)| *lost > 0).collect(),
            barriers: std::mem::take(&mut state.barriers),
            trigger: std::mem::take(&mut state.trigger),
            closed: state.closed.is_some(),
        }
    }

    /// Sets whether the store fails. A failing store fails all waiting barriers. The queued messages then outlive their
    /// calls, so they are copied.
    pub(crate) fn set_failing(&self, failing: bool) {
        let mut state = self.lock();
        let was_failing = std::mem::replace(&mut state.failing, failing);
        if failing && !was_failing {
            let mut facts = std::mem::take(&mut state.facts);
            drop(state);
            facts.iter_mut().for_each(|queued| queued.input.own_message());
            state = self.lock();
            facts.append(&mut state.facts);
            state.facts = facts;
        }
        let mut waiting = if failing { std::mem::take(&mut state.barriers) } else { vec![] };
        waiting.append(&mut state.admission.take_all());
        self.look_for_room(&state);
        drop(state);
        waiting.iter().for_each(|barrier| barrier.resolve(Err(BarrierError::Store)));
    }

    /// Pauses the writer. Returns false if it must give up.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let state = self.lock();
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        let pause = state.closed.map_or(pause, |end| pause.min(left(end)));
        let was_open = state.closed.is_none();
        let state = wait(&self.filled, state, pause, |state| state.closed.is_none() == was_open);
        state.closed.is_none_or(|end| !left(end).is_zero())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    /// Returns true if a fact does not fit. A single fact larger than the bounds fits into an empty queue.
    fn full(&self, state: &State, weight: usize) -> bool {
        state.pending > 0 && (state.pending >= self.limits.facts || state.bytes + weight > self.limits.bytes)
    }

    /// Returns true if the remaining room is reserved for requests, answers and ends, so that a flood of notifications
    /// cannot push calls off the tape.
    fn is_nearly_full(&self, state: &State, weight: usize) -> bool {
        let most = |limit: usize| limit - limit / 8;
        state.pending >= most(self.limits.facts) || state.bytes + weight > most(self.limits.bytes)
    }

    /// Wakes the writer for the first fact, for a full batch and for urgent work. Waking it for every fact would slow
    /// the threads that report them. `before` is the previous number of facts.
    fn wake(&self, state: &State, before: usize) {
        let (count, batch) = (state.facts.len(), self.limits.batch);
        let due = before == 0 && count > 0 || before < batch && count >= batch || state.is_urgent();
        if state.asleep && due {
            self.filled.notify_one();
        }
    }
}

impl State {
    fn add(&mut self, queued: QueuedInput) {
        self.pending += 1;
        self.bytes += queued.weight;
        self.facts.push(queued);
    }

    /// Returns a copy of a fact that may wait.
    fn shelved(&mut self, fact: &Fact) -> Fact {
        let Fact::Message(message) = fact else { return fact.clone() };
        let bytes = if self.failing { uncharged(&message.bytes) } else { message.bytes.clone() };
        Fact::Message(MessageFact { bytes: self.arena.keep(&bytes), ..message.clone() })
    }

    fn is_urgent(&self) -> bool {
        let is_waited_for = self.admission.is_waited_for() && !self.facts.is_empty();
        !self.barriers.is_empty() || is_waited_for || self.trigger || self.closed.is_some()
    }
}

fn wait<'a>(
    condvar: &Condvar,
    state: MutexGuard<'a, State>,
    within: Duration,
    until: impl FnMut(&mut State) -> bool,
) -> MutexGuard<'a, State> {
    condvar.wait_timeout_while(state, within, until).unpoisoned().0
}

/// Parses the message, which is affordable only because it happens when room is scarce.
fn is_notification(fact: &Fact) -> bool {
    let Fact::Message(message) = fact else { return false };
    Envelope::parse(message.bytes.clone()).is_ok_and(|message| message.kind() == Kind::Notification)
}

fn weight(fact: &Fact) -> usize {
    FACT_WEIGHT
        + match fact {
            Fact::Message(message) => message.bytes.len(),
            Fact::Decision(decision) => decision.rulings.iter().map(|(_, rulings)| told(rulings)).sum(),
            _ => 0,
        }
}

/// Returns the weight of rulings. Rulings that several messages share are divided among them.
fn told(rulings: &Rulings) -> usize {
    let inputs = |ruling: &Ruling| ruling.inputs.iter().map(|(_, text)| text.len()).sum::<usize>();
    let weight: usize = rulings.iter().map(|ruling| RULING_WEIGHT + ruling.detail.len() + inputs(ruling)).sum();
    match rulings {
        Rulings::Many(shared) => weight / Arc::strong_count(shared).max(1),
        Rulings::None | Rulings::One(_) => weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::fact::Point;
    use signalbox_engine::{Caller, SessionKey};

    #[test]
    fn one_answer_too_many_does_not_wait_for_the_disk() {
        let queue = Queue::new(&RecorderSettings::default(), Arc::default());
        let waiting: Vec<Barrier> = (0..MAX_BARRIERS).map(|_| queue.barrier()).collect();
        assert_eq!(queue.barrier().wait(Duration::from_secs(5)), Err(BarrierError::Busy));
        assert_eq!(
            waiting[MAX_BARRIERS - 1].wait(Duration::ZERO),
            Err(BarrierError::Late),
            "the last of them still waits"
        );
    }

    /// A flood of notifications leaves room for the end of the call in which it comes.
    #[test]
    fn notifications_do_not_push_off_what_the_call_came_to() {
        let settings = RecorderSettings { queue_facts: 80, ..RecorderSettings::default() };
        let counters = Arc::new(Counters::default());
        let queue = Queue::new(&settings, Arc::clone(&counters));
        let fact = |text: &'static str| {
            let bytes = bytes::Bytes::from_static(text.as_bytes());
            let caller = Caller::anonymous("http");
            Fact::Message(MessageFact::new(Instant::now(), SessionKey(1), caller, Point::BackendIn, bytes))
        };
        let flood: Vec<Fact> =
            (0..1000).map(|_| fact(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#)).collect();
        queue.push(&flood);
        assert_eq!((queue.depth().0, counters.snapshot().lost(GapReason::QueueFull)), (70, 930));
        queue.push(&[fact(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)]);
        assert_eq!((queue.depth().0, counters.snapshot().lost(GapReason::QueueFull)), (71, 930));
    }

    /// A fact that has no room is lost at once, and nobody's thread is held for it.
    #[test]
    fn whoever_brings_facts_never_waits() {
        let settings = RecorderSettings {
            queue_facts: 10,
            on_full: OnFull::Wait(Duration::from_secs(3600)),
            ..RecorderSettings::default()
        };
        let counters = Arc::new(Counters::default());
        let queue = Queue::new(&settings, Arc::clone(&counters));
        let ended = |number| Fact::SessionEnded {
            at: Instant::now(),
            session: SessionKey(number),
            caller: Caller::anonymous("http"),
        };
        queue.push(&(0..4).map(ended).collect::<Vec<_>>());
        assert!(queue.room(0).is_none(), "there is room");
        queue.push(&[ended(4)]);
        let (room, _) = queue.room(0).expect("half of the queue is full");
        queue.push(&(5..110).map(ended).collect::<Vec<_>>());
        assert_eq!(counters.snapshot().lost(GapReason::QueueFull), 100);
        assert_eq!(room.wait(Duration::ZERO), Err(BarrierError::Late));
        let mut facts = vec![];
        queue.take(&mut facts, Duration::ZERO, Duration::ZERO);
        assert_eq!((facts.len(), room.wait(Duration::ZERO)), (10, Err(BarrierError::Late)));
        let weight = |facts: &[QueuedInput]| facts.iter().map(|queued| queued.weight).sum();
        assert!(queue.processed(5, weight(&facts[..5])), "what it has taken is still in memory");
        assert!(!queue.processed(1, weight(&facts[5..6])));
        assert_eq!(room.wait(Duration::ZERO), Ok(()));
        assert!(queue.room(0).is_some(), "the only share is set aside for the first");
        queue.processed(4, weight(&facts[6..]));
        assert_eq!(queue.depth(), (0, 0));
    }
}
