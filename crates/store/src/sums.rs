//! Totals of a batch of entries for the head of its tape, and the exchanges in it.

use crate::limits::SEQ_BITS;
use foldhash::HashMap;
use signalbox_engine::record::{Content, Entry, FinishedEntry, MessageKind, StoreError};

/// Totals over a batch.
#[derive(Default, Debug)]
pub struct Sums {
    pub entries: i64,
    /// Earliest time in the batch.
    pub first_at: u64,
    /// Latest time in the batch.
    pub last_at: u64,
    /// Position of the last entry.
    pub last_seq: u64,
    /// True if the clock went backwards.
    pub disordered: bool,
    /// Number of messages of each kind.
    pub kinds: [i64; 5],
    /// Number of missing facts.
    pub gaps: i64,
    /// Original size of the messages.
    pub passed: i64,
    /// Stored size of the bodies of messages.
    pub kept: i64,
    /// Stored size of other bodies and of extra attributes.
    pub aside: i64,
}

impl Sums {
    /// Adds an entry whose body takes `kept` bytes and whose extra attributes take `aside` bytes.
    pub fn add(&mut self, entry: &Entry, kept: usize, aside: usize) {
        self.first_at = if self.entries == 0 { entry.at } else { self.first_at.min(entry.at) };
        self.disordered |= entry.at < self.last_at;
        self.last_at = self.last_at.max(entry.at);
        self.entries += 1;
        self.last_seq = entry.seq;
        self.aside = self.aside.saturating_add_unsigned(aside as u64);
        if !matches!(entry.content, Content::Message(_)) {
            self.aside = self.aside.saturating_add_unsigned(kept as u64);
        }
        match &entry.content {
            Content::Message(message) => {
                let place = MessageKind::ALL.iter().position(|kind| *kind == message.kind).unwrap_or(0);
                self.kinds[place] += 1;
                self.passed = self.passed.saturating_add_unsigned(message.length);
                self.kept = self.kept.saturating_add_unsigned(kept as u64);
            }
            Content::Gap(gap) => self.gaps = self.gaps.saturating_add_unsigned(gap.facts),
            _ => {}
        }
    }
}

/// Checks that the positions of the entries ascend from `before`.
pub fn check_order(tape: &str, mut before: u64, entries: &[Entry]) -> Result<(), StoreError> {
    for entry in entries {
        if entry.seq <= before || entry.seq >= 1 << SEQ_BITS {
            let why = format!("entry {} of tape {tape} does not follow entry {before}", entry.seq);
            return Err(StoreError::Query(why));
        }
        before = entry.seq;
    }
    Ok(())
}

/// Exchanges of a batch, by number.
#[derive(Default, Debug)]
pub struct BatchExchanges<'a>(HashMap<u64, ExchangePart<'a>>);

/// Part of an exchange within a batch.
#[derive(Debug)]
pub struct ExchangePart<'a> {
    /// First position in the batch.
    pub first: u64,
    /// Last position in the batch.
    pub last: u64,
    /// End of the exchange, if it is in the batch.
    pub finished: Option<&'a FinishedEntry>,
}

impl<'a> BatchExchanges<'a> {
    /// Adds an entry to its exchange.
    pub fn add(&mut self, entry: &'a Entry) {
        let Some(exchange) = entry.exchange else { return };
        let part = self.0.entry(exchange).or_insert(ExchangePart { first: entry.seq, last: entry.seq, finished: None });
        part.last = entry.seq;
        if let Content::Finished(finished) = &entry.content {
            part.finished = Some(finished);
        }
    }

    /// Returns all of them, ordered by number.
    pub fn parts(self) -> Vec<(u64, ExchangePart<'a>)> {
        let mut parts: Vec<_> = self.0.into_iter().collect();
        parts.sort_unstable_by_key(|(exchange, _)| *exchange);
        parts
    }
}
