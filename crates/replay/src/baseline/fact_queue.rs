//! Bounded queue of facts to compare.

use super::checker::is_compared;
use super::counters::Counters;
use signalbox_engine::fact::{MessageFact, Outcome, Point};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{ExchangeId, Fact};
use signalbox_wire::{Envelope, Kind};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Maximum number of queued facts. A recorder remembers the last 1024 finished exchanges for late decisions, so no more
/// calls than that may be queued here.
pub const MAX_FACTS: usize = 2_048;
/// Maximum size of the queued messages in bytes. Larger messages are not compared.
pub const MAX_BYTES: usize = 16 << 20;
/// Maximum number of exchanges to report as missed.
const MAX_MISSED: usize = 4_096;

/// Bounded queue whose producers never wait.
#[derive(Debug)]
pub(super) struct FactQueue {
    waiting: Mutex<QueueState>,
    changed: Condvar,
    counters: Arc<Counters>,
}

#[derive(Default, Debug)]
struct QueueState {
    facts: VecDeque<Fact>,
    bytes: usize,
    missed: Vec<ExchangeId>,
    closed: bool,
    given_up: bool,
    ended: bool,
}

/// Facts queued since the last call of [`FactQueue::take`].
#[derive(Default, Debug)]
pub(super) struct Batch {
    /// Facts in sending order.
    pub facts: VecDeque<Fact>,
    /// Exchanges with an answer that did not fit into the queue, during or after this batch.
    pub missed: Vec<ExchangeId>,
}

/// Guard that marks the thread as ended when dropped, even by a panic.
pub(super) struct EndGuard<'a>(&'a FactQueue);

impl FactQueue {
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self { waiting: Mutex::default(), changed: Condvar::new(), counters }
    }

    /// Queues the relevant facts as far as they fit.
    pub(super) fn push(&self, facts: &[Fact]) {
        let mut wanted = facts.iter().filter(|fact| is_of_use(fact)).peekable();
        if wanted.peek().is_none() {
            return;
        }
        let mut waiting = self.lock();
        if waiting.closed {
            return;
        }
        for fact in wanted {
            self.push_one(&mut waiting, fact);
        }
        drop(waiting);
        self.changed.notify_all();
    }

    fn push_one(&self, waiting: &mut QueueState, fact: &Fact) {
        let weight = weight(fact);
        if waiting.facts.len() < MAX_FACTS && waiting.bytes + weight <= MAX_BYTES {
            waiting.bytes += weight;
            waiting.facts.push_back(fact.clone());
            return;
        }
        let Fact::Message(message) = fact else { return };
        match (message.point, message.exchange) {
            (Point::ClientIn, _) if is_compared_request(message) => self.counters.dropped(),
            // The thread counts these: only it knows if the exchange is pending.
            (Point::ClientOut, Some(exchange)) if waiting.missed.len() < MAX_MISSED => waiting.missed.push(exchange),
            _ => {}
        }
    }

    /// Waits for facts. Returns `None` once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut waiting = self.lock();
        while waiting.facts.is_empty() && waiting.missed.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unpoisoned();
        }
        waiting.bytes = 0;
        Some(Batch { facts: std::mem::take(&mut waiting.facts), missed: std::mem::take(&mut waiting.missed) })
    }

    /// Closes the queue to further facts.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for the thread, and tells it to stop early after `within`.
    pub(super) fn wait_for_end(&self, within: Duration) {
        let waiting = self.lock();
        let (mut waiting, _) = self.changed.wait_timeout_while(waiting, within, |waiting| !waiting.ended).unpoisoned();
        waiting.given_up = true;
    }

    /// Returns `true` if the thread should stop early.
    pub(super) fn is_given_up(&self) -> bool {
        self.lock().given_up
    }

    /// Returns a guard that marks the end of the thread.
    pub(super) fn end_guard(&self) -> EndGuard<'_> {
        EndGuard(self)
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unpoisoned()
    }
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.ended = true;
        waiting.closed = true;
        drop(waiting);
        self.0.changed.notify_all();
    }
}

/// Returns `true` for facts that begin or end a client's call or session.
fn is_of_use(fact: &Fact) -> bool {
    match fact {
        Fact::Message(message) => {
            let at_client = matches!(message.point, Point::ClientIn | Point::ClientOut);
            at_client && message.exchange.is_some() && !message.own && message.again.is_none()
        }
        Fact::Session(_) | Fact::SessionEnded { .. } => true,
        Fact::Finished(finished) => finished.outcome == Outcome::Cancelled,
        Fact::Lost(_) | Fact::Decision(_) | Fact::Refused(_) => false,
    }
}

fn is_compared_request(message: &MessageFact) -> bool {
    let read = Envelope::parse(message.bytes.clone()).ok();
    read.is_some_and(|read| read.kind() == Kind::Request && read.method().is_some_and(is_compared))
}

fn weight(fact: &Fact) -> usize {
    match fact {
        Fact::Message(message) => message.bytes.len(),
        _ => 0,
    }
}
