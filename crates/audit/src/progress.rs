//! How far the journal and each sink came, and who waits for that.

use signalbox_engine::lock::LockResultExt;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long records gather for a sink that no call waits for.
const GATHER: Duration = Duration::from_millis(100);

/// Somebody who waits for a record.
pub type Waiter = (u64, oneshot::Sender<bool>);

/// How a sink goes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SinkStats {
    /// Its name.
    pub name: String,
    /// No call leaves without it.
    pub required: bool,
    /// The last record that it has.
    pub acked: u64,
    /// Why it takes nothing at the moment.
    pub failing: Option<String>,
    /// How often it failed.
    pub failed: u64,
    /// How many records it did not get because too many waited for it.
    pub skipped: u64,
}

/// How the log goes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditStats {
    /// The last record of the journal.
    pub written: u64,
    /// How much could not be written down at all.
    pub lost: u64,
    /// Why the journal cannot be written at the moment.
    pub failing: Option<String>,
    /// The sinks.
    pub sinks: Vec<SinkStats>,
}

#[derive(Default, Debug)]
struct State {
    stats: AuditStats,
    /// Sinks get nothing before this record any more.
    keep_from: u64,
    waiters: VecDeque<Waiter>,
    /// The log has ended: sinks may take until then.
    give_up: Option<Instant>,
    done: usize,
    /// How many sinks sleep until there are records.
    resting: usize,
}

/// What all threads of a log share.
#[derive(Default, Debug)]
pub struct Progress {
    state: Mutex<State>,
    /// There are records for sinks that rest.
    records: Condvar,
    /// The log has ended, or a sink is done with it.
    ended: Condvar,
}

impl Progress {
    /// At this record, with these sinks, and a journal that begins with `keep_from`.
    pub fn new(written: u64, keep_from: u64, sinks: Vec<SinkStats>) -> Self {
        let stats = AuditStats { written, sinks, ..AuditStats::default() };
        Self { state: Mutex::new(State { stats, keep_from, ..State::default() }), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    /// The numbers so far.
    pub fn stats(&self) -> AuditStats {
        self.lock().stats.clone()
    }

    /// Notes that the journal has everything up to this record. Waiters are told when the required sinks have theirs.
    /// Returns the last record that every sink has.
    pub fn written(&self, seq: u64, keep_from: u64, waiters: impl IntoIterator<Item = Waiter>) -> u64 {
        let mut state = self.lock();
        (state.stats.written, state.keep_from, state.stats.failing) = (seq, keep_from, None);
        state.waiters.extend(waiters);
        state.resolve();
        let acked = state.stats.sinks.iter().map(|sink| sink.acked).min().unwrap_or(seq);
        let resting = state.resting;
        drop(state);
        if resting > 0 {
            self.records.notify_all();
        }
        acked
    }

    /// The journal cannot be written: so many records are lost. Calls leave without, unless something is required.
    pub fn not_written(&self, lost: u64, why: &str, waiters: impl IntoIterator<Item = Waiter>) {
        let mut state = self.lock();
        state.stats.lost += lost;
        if state.stats.failing.is_none() {
            tracing::error!("the audit journal cannot be written: {why}");
        }
        state.stats.failing = Some(why.to_owned());
        let may_leave = !state.stats.sinks.iter().any(|sink| sink.required);
        for (_, waiter) in waiters {
            let _ = waiter.send(may_leave);
        }
    }

    /// What had no room.
    pub fn lose(&self, lost: u64) {
        self.lock().stats.lost += lost;
    }

    /// True if a call without an intent in the log may leave.
    pub fn requires_nothing(&self) -> bool {
        !self.lock().stats.sinks.iter().any(|sink| sink.required)
    }

    /// Waits until there are records from `next` on: up to which, and from which on they are still kept. A sink that no
    /// call waits for lets `enough` of them gather for a moment. `None` if the log has ended.
    pub fn more(&self, next: u64, enough: u64, hurried: bool) -> Option<(u64, u64)> {
        let mut state = self.lock();
        state.resting += 1;
        let none = |state: &mut State| state.stats.written < next && state.give_up.is_none();
        let mut state = self.records.wait_while(state, none).unpoisoned();
        state.resting -= 1;
        if !hurried {
            let few = |state: &mut State| state.stats.written < next.saturating_add(enough) && state.give_up.is_none();
            state = self.ended.wait_timeout_while(state, GATHER, few).unpoisoned().0;
        }
        (state.stats.written >= next).then_some((state.stats.written, state.keep_from))
    }

    /// A sink has everything up to this record.
    pub fn acked(&self, sink: usize, seq: u64, skipped: u64) {
        let mut state = self.lock();
        if let Some(sink) = state.stats.sinks.get_mut(sink) {
            if sink.failing.take().is_some() {
                tracing::info!(sink = sink.name, "the audit sink works again");
            }
            sink.acked = seq;
            sink.skipped += skipped;
        }
        state.resolve();
    }

    /// A sink takes nothing. Calls for which it is required do not leave.
    pub fn failed(&self, sink: usize, why: &str) {
        let mut state = self.lock();
        if let Some(sink) = state.stats.sinks.get_mut(sink) {
            if sink.failing.is_none() {
                tracing::error!(sink = sink.name, "the audit sink takes no records: {why}");
            }
            sink.failing = Some(why.to_owned());
            sink.failed += 1;
        }
        state.resolve();
    }

    /// Waits before another try. False if the log has ended and there is no time for one.
    pub fn pause(&self, length: Duration) -> bool {
        let state = self.lock();
        let ended = state.give_up.is_some();
        let (state, _) =
            self.ended.wait_timeout_while(state, length, |state| state.give_up.is_some() == ended).unpoisoned();
        state.give_up.is_none_or(|give_up| Instant::now() < give_up)
    }

    /// Leaves all that comes to other sinks: those of this one may take what there is until then. Returns who waits.
    pub fn retire(&self, give_up: Instant) -> VecDeque<Waiter> {
        let mut state = self.lock();
        state.give_up = Some(give_up);
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        self.records.notify_all();
        self.ended.notify_all();
        waiters
    }

    /// The first record that is still kept for sinks.
    pub fn keep_from(&self) -> u64 {
        self.lock().keep_from
    }

    /// Goes on with the counts of another log, and with those who wait for it.
    pub fn go_on(&self, before: &AuditStats, waiters: VecDeque<Waiter>) {
        let mut state = self.lock();
        (state.stats.lost, state.waiters) = (before.lost, waiters);
        state.stats.failing.clone_from(&before.failing);
        for sink in &mut state.stats.sinks {
            if let Some(known) = before.sinks.iter().find(|known| known.name == sink.name) {
                (sink.failed, sink.skipped) = (known.failed, known.skipped);
            }
        }
        state.resolve();
    }

    /// Nothing more will be written; sinks may take what there is until then.
    pub fn end(&self, give_up: Instant) {
        let mut state = self.lock();
        state.give_up = Some(give_up);
        // Nobody is left to tell them.
        state.waiters.clear();
        drop(state);
        self.records.notify_all();
        self.ended.notify_all();
    }

    /// A sink has nothing more to do.
    pub fn done(&self) {
        self.lock().done += 1;
        self.ended.notify_all();
    }

    /// Waits until every sink is done, or there is no more time.
    pub fn wait_until_done(&self) {
        let mut state = self.lock();
        while state.done < state.stats.sinks.len() {
            let Some(left) = state.give_up.and_then(|give_up| give_up.checked_duration_since(Instant::now())) else {
                return;
            };
            state = self.ended.wait_timeout(state, left).unpoisoned().0;
        }
    }
}

impl State {
    /// Tells those who wait what they wait for.
    fn resolve(&mut self) {
        let required = || self.stats.sinks.iter().filter(|sink| sink.required);
        let failing = required().any(|sink| sink.failing.is_some());
        let reached = required().map(|sink| sink.acked).min().unwrap_or(u64::MAX).min(self.stats.written);
        while let Some((seq, _)) = self.waiters.front()
            && (failing || *seq <= reached)
            && let Some((seq, waiter)) = self.waiters.pop_front()
        {
            let _ = waiter.send(seq <= reached);
        }
    }
}
