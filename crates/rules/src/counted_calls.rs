//! Remembers which rate limits have counted a call that has further rounds, so that none counts it again.
//!
//! A call is remembered until a round of it ends without a question to its client. One whose client does not come back
//! is forgotten when there are too many; a round of a forgotten call counts as a new call.

use crate::limits;
use crate::outside::Slot;
use signalbox_engine::keys::ExchangeId;
use signalbox_engine::lock::LockResultExt;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct CountedCalls {
    /// Number of calls, so that most calls end without the lock.
    count: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    calls: HashMap<ExchangeId, Vec<Slot>>,
    /// The calls from the oldest on, some of which may be over.
    order: VecDeque<ExchangeId>,
}

impl CountedCalls {
    /// Remembers that a limit has counted the call that began with this exchange.
    pub fn note(&self, call: ExchangeId, slot: &Slot) {
        let mut inner = self.lock();
        if let Some(slots) = inner.calls.get_mut(&call) {
            slots.push(slot.clone());
            return;
        }
        inner.calls.insert(call, vec![slot.clone()]);
        inner.order.push_back(call);
        inner.make_room();
        self.count.store(inner.calls.len(), Ordering::Relaxed);
    }

    /// Returns true if the limit has counted the call.
    pub fn has(&self, call: ExchangeId, slot: &Slot) -> bool {
        self.lock().calls.get(&call).is_some_and(|slots| slots.contains(slot))
    }

    /// Forgets a call that is over.
    pub fn forget(&self, call: ExchangeId) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut inner = self.lock();
        inner.calls.remove(&call);
        self.count.store(inner.calls.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unpoisoned()
    }
}

impl Inner {
    /// Drops the oldest calls beyond the bound, and calls that are over once they are as many as the others may be.
    fn make_room(&mut self) {
        while self.calls.len() > limits::COUNTED_CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
        if self.order.len() > 2 * limits::COUNTED_CALLS {
            self.order.retain(|call| self.calls.contains_key(call));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_do_not_end_are_bounded_and_calls_that_end_make_room() {
        let (calls, slot) = (CountedCalls::default(), Slot { rule: "r".into(), action: 0 });
        for number in 0..3 * limits::COUNTED_CALLS as u64 {
            calls.note(ExchangeId(number), &slot);
            calls.forget(ExchangeId(number));
        }
        assert!(calls.lock().order.len() <= 2 * limits::COUNTED_CALLS && calls.lock().calls.is_empty());
        for number in 0..=limits::COUNTED_CALLS as u64 {
            calls.note(ExchangeId(number), &slot);
        }
        assert!(!calls.has(ExchangeId(0), &slot) && calls.has(ExchangeId(1), &slot));
        assert!(!calls.has(ExchangeId(1), &Slot { rule: "other".into(), action: 0 }));
        assert_eq!(calls.lock().calls.len(), limits::COUNTED_CALLS);
    }
}
