//! Work on large messages, which is done outside the session's lock so that the session goes on meanwhile.

use bytes::Bytes;
use signalbox_engine::ExchangeId;
use signalbox_engine::chain::{Case, Hold, HoldQuestion, HoldResponse, Verdict, Work};
use signalbox_engine::lock::LockResultExt as _;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Size of a message from which it is looked at outside the lock, in bytes.
pub(crate) const MAX_UNDER_LOCK: usize = 256 * 1024;
/// Maximum number of results that wait for their judgement. Beyond it, the oldest work is done again under the lock.
const MAX_RESULTS: usize = 256;

/// Result for one message, which is recognised by its place in memory.
struct PreparedResult<T> {
    exchange: ExchangeId,
    /// Kept so that no other message takes its place in memory.
    message: Bytes,
    result: Arc<T>,
}

/// Results of work, kept until the held message is judged again.
pub(crate) struct PreparedWork<T> {
    results: Arc<Mutex<VecDeque<PreparedResult<T>>>>,
    /// True once there was a result. Most gateways never look at a large message, and take no lock when a call ends.
    is_used: AtomicBool,
}

impl<T> Default for PreparedWork<T> {
    fn default() -> Self {
        Self { results: Arc::default(), is_used: AtomicBool::new(false) }
    }
}

impl<T> std::fmt::Debug for PreparedWork<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PreparedWork")
    }
}

/// Result of work, which may be kept for the next judgement.
pub(crate) enum WorkResult<T> {
    Own(T),
    Shared(Arc<T>),
}

impl<T> std::ops::Deref for WorkResult<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Own(result) => result,
            Self::Shared(result) => result,
        }
    }
}

/// Next step of a judgement.
pub(crate) enum Preparation<T> {
    /// The judgement goes on with this result.
    Ready(WorkResult<T>),
    /// The message is held while the work is done.
    Held(Verdict),
}

impl<T: Send + Sync + 'static> PreparedWork<T> {
    /// Returns the result of `work` about the message of a case. A large message that can wait is held meanwhile.
    pub fn of(
        &self,
        case: &Case<'_>,
        resumed: Option<HoldResponse<'_>>,
        work: impl Fn() -> T + Send + Sync + 'static,
    ) -> Preparation<T> {
        let message = case.message.bytes();
        let exchange = case.exchange.map(|exchange| exchange.id).filter(|_| message.len() > MAX_UNDER_LOCK);
        let Some(exchange) = exchange else { return Preparation::Ready(WorkResult::Own(work())) };
        let is_same =
            |one: &&PreparedResult<T>| one.message.as_ptr() == message.as_ptr() && one.message.len() == message.len();
        let known = self.results.lock().unpoisoned().iter().find(is_same).map(|one| Arc::clone(&one.result));
        if let Some(result) = known {
            return Preparation::Ready(WorkResult::Shared(result));
        }
        if !case.can_wait || resumed.is_some() {
            return Preparation::Ready(WorkResult::Own(work()));
        }
        self.is_used.store(true, Ordering::Relaxed);
        let (results, message) = (Arc::clone(&self.results), message.clone());
        let question = HoldQuestion::Work(Work::new(move || {
            let prepared = PreparedResult { exchange, message: message.clone(), result: Arc::new(work()) };
            let mut results = results.lock().unpoisoned();
            if results.len() >= MAX_RESULTS {
                results.pop_front();
            }
            results.push_back(prepared);
        }));
        Preparation::Held(Verdict::Hold(Hold { question, cursor: 0, message: None }))
    }

    /// Drops the results of an exchange that is over. Another session's exchange of the same number loses its own, and
    /// does its work again.
    pub fn finished(&self, exchange: ExchangeId) {
        if self.is_used.load(Ordering::Relaxed) {
            self.results.lock().unpoisoned().retain(|one| one.exchange != exchange);
        }
    }
}
