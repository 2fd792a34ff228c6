//! The one thread that writes tapes.

mod tape_change;

pub(crate) use tape_change::Following;

use super::barrier::{BarrierError, Waiting};
use super::counters::{Counters, GapReason};
use super::entry_builder::EntryBuilder;
use super::fact_order::FactOrder;
use super::queue::Queue;
use super::recorder_input::QueuedInput;
use super::sampling_buffer::own_body;
use super::settings::RecorderSettings;
use crate::seal::{Chain, Draft};
use signalbox_engine::record::{Body, Content, Entry, Gap, StoreError, TapeWriter};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// First pause after a failure of the store. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Number of attempts after which an error that concerns neither place nor space may be about a single entry, so each
/// is tried alone.
const TRIES_TOGETHER: u32 = 5;

/// Interval at which threads are asked to flush their facts, so that the received ones can be sorted.
const SETTLE_EVERY: Duration = Duration::from_millis(10);

/// Number and bytes of facts after which their room in the queue is released. If no call waits for it, the thread
/// yields: others serve calls, and the queue bridges the pause.
const AT_ONCE: usize = 32;
const BYTES_AT_ONCE: usize = 256 << 10;
/// Maximum number of bytes of bodies per append.
const BATCH_BYTES: usize = 4 << 20;

/// Guard that fails all waiters and makes the queue count later facts as lost, however the thread ends.
struct Leaving {
    queue: Arc<Queue>,
    counters: Arc<Counters>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.counters.error("the thread that writes the tape has panicked".to_owned(), "start the program again");
        }
        self.queue.set_failing(true);
    }
}

pub(crate) struct Writing {
    pub(crate) queue: Arc<Queue>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) settings: RecorderSettings,
    pub(crate) maker: EntryBuilder,
    pub(crate) tape: Box<dyn TapeWriter>,
    /// Chain that seals the tape.
    pub(crate) chain: Option<Chain>,
    pub(crate) order: FactOrder,
    /// Facts that are next, in order.
    pub(crate) ready: VecDeque<QueuedInput>,
    /// Time of the last flush by all threads.
    pub(crate) settled: Option<Instant>,
    /// Number of lost facts for which the store accepted no gap either.
    pub(crate) untold: u64,
    /// Following tapes, if the tape has bounds.
    pub(crate) following: Option<Following>,
    /// True once the tape has reached a bound, until the next one begins.
    pub(crate) next_is_due: bool,
}

impl Writing {
    /// Writes until the queue is closed and empty, or its deadline has passed.
    pub(crate) fn run(mut self) {
        let _leaving = Leaving { queue: Arc::clone(&self.queue), counters: Arc::clone(&self.counters) };
        let mut facts = Vec::new();
        let mut out: Vec<Entry> = Vec::with_capacity(self.settings.batch);
        let mut idled = Instant::now();
        let mut wait = self.settings.idle_every;
        // Reports an unusable store before any fact is lost.
        self.idle();
        loop {
            let taken = self.queue.take(&mut facts, wait, self.settings.gather);
            let urgent = taken.closed || taken.trigger || !taken.barriers.is_empty();
            let upto = self.in_order(&mut facts, urgent);
            let quiet = !self.order.is_waiting();
            let lost = !taken.lost.is_empty();
            let mut written = true;
            self.ready.extend(self.order.ready(upto));
            written &= self.make(&mut out, &taken.barriers);
            for (reason, facts) in taken.lost {
                self.maker.gap(reason, facts, &mut out);
            }
            if taken.trigger {
                self.maker.trigger(&mut out);
            }
            self.maker.tick(Instant::now(), &mut out);
            written &= self.append(&mut out, &taken.barriers, !taken.barriers.is_empty());
            let outcome = match (written, lost) {
                (false, _) => Err(BarrierError::Store),
                (true, true) => Err(BarrierError::Lost),
                (true, false) => Ok(()),
            };
            taken.barriers.iter().for_each(|barrier| barrier.resolve(outcome));
            if taken.closed && quiet {
                break;
            }
            self.look_at_bounds(&mut out);
            let is_waited_for = self.queue.processed(0, 0);
            wait = if self.order.is_waiting() || is_waited_for || self.next_is_due {
                SETTLE_EVERY
            } else {
                self.settings.idle_every
            };
            if quiet || idled.elapsed() >= self.settings.idle_every {
                idled = Instant::now();
                if self.idle() {
                    // The store has more work to do, but facts come first.
                    wait = wait.min(Duration::from_millis(1));
                }
            }
        }
        self.end(out);
    }

    /// Makes entries, appends them in batches, and meanwhile releases the room of their facts in the queue. Returns
    /// false if the store did not accept a batch at once.
    fn make(&mut self, out: &mut Vec<Entry>, waiting: &[Waiting]) -> bool {
        let mut written = true;
        let (mut facts, mut bytes, mut batch, mut step) = (0, 0, 0, self.step());
        let mut ahead = 0usize;
        loop {
            if ahead == 0 {
                ahead = self.maker.redact_ahead(&mut self.ready);
            }
            let Some(QueuedInput { input, weight, redacted }) = self.ready.pop_front() else { break };
            ahead = ahead.saturating_sub(1);
            self.maker.told(input, redacted, out);
            (facts, bytes, batch) = (facts + 1, bytes + weight, batch + weight);
            if facts >= AT_ONCE || bytes >= BYTES_AT_ONCE {
                if !self.queue.processed(facts, bytes) {
                    std::thread::yield_now();
                }
                (facts, bytes) = (0, 0);
            }
            if out.len() >= self.settings.batch || batch >= step {
                written &= self.append(out, waiting, false) && self.look_at_bounds(out);
                (batch, step) = (0, self.step());
            } else if self.next_is_due {
                written &= self.change_tape(out);
            }
        }
        self.queue.processed(facts, bytes);
        written
    }

    /// Returns the maximum number of bytes of facts per append.
    fn step(&self) -> usize {
        self.following.as_ref().map_or(BATCH_BYTES, |following| following.meter.step(BATCH_BYTES))
    }

    /// Adds facts to the waiting ones, including those that other threads still buffered, and returns the time before
    /// which no further facts will arrive. Returns `None` if sorting need not wait.
    fn in_order(&mut self, facts: &mut Vec<QueuedInput>, urgent: bool) -> Option<Instant> {
        let waiting = !facts.is_empty() || self.order.is_waiting();
        if waiting && !urgent && self.settled.is_none_or(|settled| settled.elapsed() >= SETTLE_EVERY) {
            let now = Instant::now();
            self.settled = self.queue.settle(facts).then_some(now);
        }
        self.order.add(facts);
        self.settled.filter(|_| !urgent)
    }

    fn idle(&mut self) -> bool {
        let worked = self.tape.idle();
        self.counters.unindexed.store(self.tape.unindexed(), Relaxed);
        match worked {
            Ok(more) => {
                self.works();
                more
            }
            Err(error) => {
                self.fails(&error);
                false
            }
        }
    }

    /// Reports a failing store, once.
    fn fails(&self, error: &StoreError) {
        if self.counters.error(error.to_string(), error.advice()) {
            tracing::error!("calls are NOT recorded: {error}; {}", error.advice());
        }
    }

    /// Reports a recovered store, once.
    fn works(&self) {
        if self.counters.fine() {
            let missing: u64 = self.counters.snapshot().gaps.iter().map(|(_, facts)| facts).sum();
            tracing::info!(missing, "calls are recorded again");
        }
    }

    fn end(&mut self, mut out: Vec<Entry>) {
        if self.untold > 0 {
            self.maker.gap(GapReason::Disk, std::mem::take(&mut self.untold), &mut out);
        }
        let ended = self.maker.close(Instant::now(), &mut out);
        self.append(&mut out, &[], true);
        // A store that has failed until now does not accept the end either.
        if self.untold > 0 {
            return;
        }
        // The head is signed after the last entry is stored, because it states how many facts are missing before it.
        let closing = self.chain.as_ref().and_then(|chain| chain.closing(ended));
        match self.tape.end(ended, closing.as_deref()) {
            Err(error) => self.fails(&error),
            Ok(()) => {
                if let (Some(chain), Some(closing)) = (&mut self.chain, closing) {
                    chain.closed(&closing);
                }
            }
        }
    }

    /// Offers the entries to the store until it accepts them, and empties the list. Returns false if it did not accept
    /// them at once (waiting barriers then fail immediately) or not at all.
    fn append(&mut self, entries: &mut Vec<Entry>, waiting: &[Waiting], durable: bool) -> bool {
        let durable = durable || self.settings.strict;
        if entries.is_empty() && !durable {
            return true;
        }
        if let Some(chain) = &mut self.chain {
            chain.link(entries);
        }
        let mut pause = FIRST_PAUSE;
        let mut tries = 0u32;
        loop {
            let error = match self.tape.append(entries, durable) {
                Ok(()) => break,
                Err(error) => error,
            };
            tries += 1;
            self.fails(&error);
            self.queue.set_failing(true);
            if tries == 1 {
                entries.iter_mut().for_each(own_body);
                self.own_bodies();
            }
            waiting.iter().for_each(|barrier| barrier.resolve(Err(BarrierError::Store)));
            let about_one = !matches!(error, StoreError::Full(_) | StoreError::Locked(_) | StoreError::Open { .. });
            if tries >= TRIES_TOGETHER && about_one && self.one_by_one(entries, durable) {
                break;
            }
            if !self.queue.pause(pause) {
                // The facts of a gap were counted when they were lost.
                let lost = entries.iter().filter(|entry| !matches!(entry.content, Content::Gap(_))).count();
                self.counters.lost(GapReason::Disk, lost as u64);
                self.untold += entries.iter().map(facts_of).sum::<u64>();
                entries.clear();
                return false;
            }
            pause = (pause * 2).min(self.settings.retry_at_most);
        }
        if tries > 0 {
            self.queue.set_failing(false);
        }
        if !entries.is_empty() {
            self.works();
        }
        self.kept(entries);
        entries.clear();
        tries == 0
    }

    /// Copies the waiting messages, which outlive their calls while the store fails.
    fn own_bodies(&mut self) {
        self.maker.own_bodies();
        self.ready.iter_mut().chain(self.order.waiting_mut()).for_each(|queued| queued.input.own_message());
    }

    /// Links the entries again from one on whose body has changed, and returns its former commitment.
    fn relink(&mut self, entries: &mut [Entry], from: usize, draft: Option<Draft>) -> Option<Draft> {
        self.chain.as_mut().and_then(|chain| chain.relink(entries, from, draft))
    }

    /// Updates chain and counters for accepted entries.
    fn kept(&mut self, entries: &[Entry]) {
        if let Some(chain) = &mut self.chain {
            chain.kept(entries);
        }
        self.counters.unindexed.store(self.tape.unindexed(), Relaxed);
        self.count(entries);
    }

    /// Offers each entry alone; an entry that the store refuses is replaced by a gap. Returns false if the store
    /// refuses the gap too: then the store itself fails, and only the entries accepted so far are removed from the
    /// list.
    fn one_by_one(&mut self, entries: &mut Vec<Entry>, durable: bool) -> bool {
        let mut refused = Vec::new();
        let mut taken = 0;
        while let Some(entry) = entries.get_mut(taken) {
            // The entry that this body refers to was refused, so this body cannot be restored either.
            if let Content::Message(message) = &mut entry.content
                && let Body::Like { seq, .. } = &message.body
                && refused.contains(seq)
            {
                message.body = Body::Left;
                self.relink(entries, taken, None);
            }
            let Some(entry) = entries.get(taken) else { break };
            if self.tape.append(std::slice::from_ref(entry), durable).is_err() {
                let content = Content::Gap(Gap { facts: 1, reason: GapReason::Refused.word().to_owned() });
                let gap = Entry { content, principal: Arc::default(), seal: None, ..entry.clone() };
                let Some(entry) = entries.get_mut(taken) else { break };
                let kept = std::mem::replace(entry, gap);
                let draft = self.relink(entries, taken, None);
                if self.tape.append(entries.get(taken..=taken).unwrap_or_default(), durable).is_err() {
                    if let Some(entry) = entries.get_mut(taken) {
                        *entry = kept;
                    }
                    self.relink(entries, taken, draft);
                    break;
                }
                self.counters.lost(GapReason::Refused, 1);
                refused.push(kept.seq);
            }
            taken += 1;
        }
        let rest = entries.split_off(taken);
        self.kept(entries);
        *entries = rest;
        entries.is_empty()
    }

    fn count(&mut self, entries: &[Entry]) {
        if let Some(following) = &mut self.following {
            following.meter.add(entries, Instant::now());
        }
        let bytes = entries.iter().map(|entry| match &entry.content {
            Content::Message(message) => message.length,
            _ => 0,
        });
        self.counters.bytes.fetch_add(bytes.sum(), Relaxed);
        self.counters.entries.fetch_add(entries.len() as u64, Relaxed);
    }
}

/// Returns the number of facts that are lost with an entry.
fn facts_of(entry: &Entry) -> u64 {
    match &entry.content {
        Content::Gap(gap) => gap.facts,
        _ => 1,
    }
}
