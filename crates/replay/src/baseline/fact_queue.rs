//! The facts that wait to be compared.

use super::checker::is_compared;
use super::counters::Counters;
use signalbox_engine::fact::{MessageFact, Outcome, Point};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{ExchangeId, Fact};
use signalbox_wire::{Envelope, Kind};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Most facts that wait. A recorder remembers the last 1024 exchanges that ended, so that a decision about one of them
/// still finds it: no more calls than that wait here.
pub const MAX_FACTS: usize = 2_048;
/// Most bytes of messages that wait. A larger message is not compared.
pub const MAX_BYTES: usize = 16 << 20;
/// Most exchanges that are noted because a message of theirs found no room.
const MAX_MISSED: usize = 4_096;

/// A bounded queue that nobody waits for but the thread that empties it.
#[derive(Debug)]
pub(super) struct FactQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    counters: Arc<Counters>,
}

#[derive(Default, Debug)]
struct Waiting {
    facts: VecDeque<Fact>,
    bytes: usize,
    missed: Vec<ExchangeId>,
    closed: bool,
    given_up: bool,
    ended: bool,
}

/// What came since the last look.
#[derive(Default, Debug)]
pub(super) struct Batch {
    /// In the order in which they were told.
    pub facts: VecDeque<Fact>,
    /// Exchanges of which something that was sent to the client found no room among these facts or after them.
    pub missed: Vec<ExchangeId>,
}

/// Says that the thread has ended when it is dropped, also by a panic.
pub(super) struct Ends<'a>(&'a FactQueue);

impl FactQueue {
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self { waiting: Mutex::default(), changed: Condvar::new(), counters }
    }

    /// Takes those of the facts that are of use here, as far as there is room.
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

    fn push_one(&self, waiting: &mut Waiting, fact: &Fact) {
        let weight = weight(fact);
        if waiting.facts.len() < MAX_FACTS && waiting.bytes + weight <= MAX_BYTES {
            waiting.bytes += weight;
            waiting.facts.push_back(fact.clone());
            return;
        }
        let Fact::Message(message) = fact else { return };
        match (message.point, message.exchange) {
            (Point::ClientIn, _) if is_compared_request(message) => self.counters.dropped(),
            // Counted by the thread, which knows whether it waits for an answer of this exchange.
            (Point::ClientOut, Some(exchange)) if waiting.missed.len() < MAX_MISSED => waiting.missed.push(exchange),
            _ => {}
        }
    }

    /// Waits for facts. None once the queue is closed and empty.
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

    /// Takes no more facts.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Waits for the thread; after this long it is told to leave the rest.
    pub(super) fn wait_for_end(&self, within: Duration) {
        let waiting = self.lock();
        let (mut waiting, _) = self.changed.wait_timeout_while(waiting, within, |waiting| !waiting.ended).unpoisoned();
        waiting.given_up = true;
    }

    /// True if nobody wants the rest any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.lock().given_up
    }

    /// Marks the end of the thread.
    pub(super) fn ends_with_this(&self) -> Ends<'_> {
        Ends(self)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unpoisoned()
    }
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.ended = true;
        waiting.closed = true;
        drop(waiting);
        self.0.changed.notify_all();
    }
}

/// True for what begins and ends calls and conversations of clients.
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
