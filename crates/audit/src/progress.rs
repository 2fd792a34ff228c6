//! Positions of the journal and of each sink, and the calls that wait for them.

use signalbox_engine::lock::LockResultExt;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Time for which records accumulate for a sink that no call waits for.
const GATHER: Duration = Duration::from_millis(100);

/// Number of a record, and the sender that reports whether it was recorded.
pub type RecordWaiter = (u64, oneshot::Sender<bool>);

/// State of one sink.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SinkStats {
    /// Name of the sink.
    pub name: String,
    /// True if calls are forwarded only once the sink has their intents.
    pub required: bool,
    /// Last record that the sink has.
    pub acked: u64,
    /// Reason why it currently accepts nothing.
    pub failing: Option<String>,
    /// Number of failed writes.
    pub failed: u64,
    /// Number of records that it did not receive because it fell too far behind.
    pub skipped: u64,
}

/// State of the log.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditStats {
    /// Last record of the journal.
    pub written: u64,
    /// Number of records that could not be written at all.
    pub lost: u64,
    /// Reason why the journal currently cannot be written.
    pub failing: Option<String>,
    /// State of each sink.
    pub sinks: Vec<SinkStats>,
}

#[derive(Default, Debug)]
struct State {
    stats: AuditStats,
    /// First record that sinks still receive.
    keep_from: u64,
    waiters: VecDeque<RecordWaiter>,
    /// Time at which sinks give up, set once the log has ended.
    give_up: Option<Instant>,
    done: usize,
    /// Number of sinks that sleep until records arrive.
    resting: usize,
}

/// Progress that all threads of a log share.
#[derive(Default, Debug)]
pub struct LogProgress {
    state: Mutex<State>,
    /// Notified when sinks that sleep have records to read.
    records: Condvar,
    /// Notified when the log has ended, or a sink is done with it.
    ended: Condvar,
}

impl LogProgress {
    /// Creates the progress of a log at this record, with these sinks, and a journal that begins with `keep_from`.
    pub fn new(written: u64, keep_from: u64, sinks: Vec<SinkStats>) -> Self {
        let stats = AuditStats { written, sinks, ..AuditStats::default() };
        Self { state: Mutex::new(State { stats, keep_from, ..State::default() }), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    /// Returns the current counters.
    pub fn stats(&self) -> AuditStats {
        self.lock().stats.clone()
    }

    /// Records that the journal has everything up to `seq`. Waiters are resolved once the required sinks have their
    /// records. Returns the last record that every sink has.
    pub fn written(&self, seq: u64, keep_from: u64, waiters: impl IntoIterator<Item = RecordWaiter>) -> u64 {
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

    /// Records that `lost` records could not be written. Their calls are forwarded unless a sink is required.
    pub fn not_written(&self, lost: u64, why: &str, waiters: impl IntoIterator<Item = RecordWaiter>) {
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

    /// Counts inputs that the queue dropped.
    pub fn lose(&self, lost: u64) {
        self.lock().stats.lost += lost;
    }

    /// Returns true if a call without a recorded intent may be forwarded.
    pub fn requires_nothing(&self) -> bool {
        !self.lock().stats.sinks.iter().any(|sink| sink.required)
    }

    /// Waits for records from `next` on. Returns the last one, and the first that is still kept. Unless `hurried`, lets
    /// `enough` of them accumulate for a moment. `None` if the log has ended.
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

    /// Records that a sink has everything up to `seq`.
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

    /// Records that a sink failed. Calls that require it are not forwarded.
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

    /// Waits before a retry. Returns false if the log has ended and time is up.
    pub fn pause(&self, length: Duration) -> bool {
        let state = self.lock();
        let ended = state.give_up.is_some();
        let (state, _) =
            self.ended.wait_timeout_while(state, length, |state| state.give_up.is_some() == ended).unpoisoned();
        state.give_up.is_none_or(|give_up| Instant::now() < give_up)
    }

    /// Ends this progress in favour of another log's: its sinks have until `give_up` to take the remaining records.
    /// Returns the waiters.
    pub fn retire(&self, give_up: Instant) -> VecDeque<RecordWaiter> {
        let mut state = self.lock();
        state.give_up = Some(give_up);
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        self.records.notify_all();
        self.ended.notify_all();
        waiters
    }

    /// Returns the first record that is kept for sinks.
    pub fn keep_from(&self) -> u64 {
        self.lock().keep_from
    }

    /// Takes over the counters and waiters of the former progress.
    pub fn go_on(&self, before: &AuditStats, waiters: VecDeque<RecordWaiter>) {
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

    /// Ends the log. Sinks have until `give_up` to take the remaining records.
    pub fn end(&self, give_up: Instant) {
        let mut state = self.lock();
        state.give_up = Some(give_up);
        // Nothing resolves the waiters from now on.
        state.waiters.clear();
        drop(state);
        self.records.notify_all();
        self.ended.notify_all();
    }

    /// Records that a sink has finished.
    pub fn done(&self) {
        self.lock().done += 1;
        self.ended.notify_all();
    }

    /// Waits until every sink is done or time is up.
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
    /// Resolves the waiters whose records the required sinks have, or cannot take.
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
