//! External inputs replayed from a recording.

use crate::outside::{CacheAsk, InTurn, LimitAsk, LimitDecision, Outside, Slot, Turn};
use bytes::Bytes;
use signalbox_engine::keys::ExchangeId;
use signalbox_engine::lock::LockResultExt;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Recorded inputs, replayed in order for each kind.
///
/// A missing input gets a harmless default (within the limit, not cached, the number 0) and is counted.
#[derive(Debug, Default)]
pub struct RecordedInputs {
    left: Mutex<VecDeque<(String, String)>>,
    missing: AtomicU64,
}

impl RecordedInputs {
    /// Creates a replay of the inputs recorded for one message.
    #[must_use]
    pub fn new(inputs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { left: Mutex::new(inputs.into_iter().collect()), missing: AtomicU64::new(0) }
    }

    /// Returns the number of inputs that were missing or invalid.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing.load(Ordering::Relaxed)
    }

    fn take<T>(&self, kind: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let mut left = self.left.lock().unpoisoned();
        let at = left.iter().position(|(name, _)| name == kind);
        let answer = at.and_then(|at| left.remove(at)).and_then(|(_, text)| read(&text));
        if answer.is_none() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// Adds the recorded turn to an answer. Older tapes have no turns.
    fn in_turn<T>(&self, answer: T) -> InTurn<T> {
        let mut left = self.left.lock().unpoisoned();
        let at = left.iter().position(|(name, _)| name == "turn");
        InTurn { answer, turn: at.and_then(|at| left.remove(at)).and_then(|(_, text)| Turn::parse(&text)) }
    }
}

impl Outside for RecordedInputs {
    fn limit(&self, _ask: &LimitAsk<'_>) -> InTurn<LimitDecision> {
        self.in_turn(self.take("limiter", LimitDecision::parse).unwrap_or(LimitDecision::Passed { left: 0 }))
    }

    fn is_counted(&self, _slot: &Slot, _call: ExchangeId) -> bool {
        // A limit that had counted the call was not asked again.
        !self.left.lock().unpoisoned().iter().any(|(name, _)| name == "limiter")
    }

    fn draw(&self, _slot: &Slot, _seed: Option<u64>) -> u64 {
        self.take("random", |text| text.parse().ok()).unwrap_or(0)
    }

    fn position(&self, _slot: &Slot, _now: Instant) -> InTurn<u64> {
        self.in_turn(self.take("position", |text| text.parse().ok()).unwrap_or(0))
    }

    fn cached(&self, _ask: &CacheAsk<'_>) -> InTurn<Option<Bytes>> {
        let read = |text: &str| match text.strip_prefix("hit ") {
            Some(hit) if hit.starts_with('{') => Some(Some(Bytes::copy_from_slice(hit.as_bytes()))),
            // A result too large for the ruling is on the tape as the client's answer.
            Some(_) => Some(Some(Bytes::from_static(b"{}"))),
            None => Some(None),
        };
        self.in_turn(self.take("cache", read).flatten())
    }

    fn unix_ms(&self, now: u64) -> u64 {
        self.take("clock", |text| text.parse().ok()).unwrap_or(now)
    }
}

/// External inputs without history: every limit is free, every cache empty, and draws depend on the seed only.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct NoHistory;

impl Outside for NoHistory {
    fn limit(&self, ask: &LimitAsk<'_>) -> InTurn<LimitDecision> {
        InTurn::alone(LimitDecision::Passed { left: ask.limit.saturating_sub(1) })
    }

    fn is_counted(&self, _slot: &Slot, _call: ExchangeId) -> bool {
        false
    }

    fn draw(&self, _slot: &Slot, seed: Option<u64>) -> u64 {
        crate::live::mixed(seed.unwrap_or(0), 0)
    }

    fn position(&self, _slot: &Slot, _now: Instant) -> InTurn<u64> {
        InTurn::alone(0)
    }

    fn cached(&self, _ask: &CacheAsk<'_>) -> InTurn<Option<Bytes>> {
        InTurn::alone(None)
    }

    fn unix_ms(&self, now: u64) -> u64 {
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_written_down_reads_back() {
        for limited in [LimitDecision::Passed { left: 7 }, LimitDecision::Over { wait: Duration::from_millis(1500) }] {
            assert_eq!(LimitDecision::parse(&limited.text()), Some(limited));
        }
        assert_eq!(LimitDecision::parse("passed left=x"), None);
        assert_eq!(LimitDecision::parse(""), None);
        for turn in [Turn { number: 7, since: 1_500 }, Turn { number: 0, since: -3 }] {
            assert_eq!(Turn::parse(&turn.text()), Some(turn));
        }
        assert_eq!((Turn::parse("7"), Turn::parse("x at 1"), Turn::parse("1 at ")), (None, None, None));
    }
}
