//! What a batch of entries adds to the head of its tape, and what it says about exchanges.

use crate::limits::SEQ_BITS;
use foldhash::HashMap;
use signalbox_engine::record::{Content, Entry, FinishedEntry, MessageKind, StoreError};

/// Sums over a batch.
#[derive(Default, Debug)]
pub struct Sums {
    /// How many entries.
    pub entries: i64,
    /// The least time.
    pub first_at: u64,
    /// The greatest time.
    pub last_at: u64,
    /// The last place.
    pub last_seq: u64,
    /// True if the clock went backwards.
    pub disordered: bool,
    /// Messages of each kind.
    pub kinds: [i64; 5],
    /// Facts that are missing.
    pub gaps: i64,
    /// Bytes of messages as they passed.
    pub passed: i64,
    /// Bytes of the bodies of messages as they are kept.
    pub kept: i64,
    /// Bytes of other bodies, and of what is kept besides.
    pub aside: i64,
}

impl Sums {
    /// One more entry, whose body takes `kept` bytes, and what is known besides `aside` bytes.
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

/// Entries follow each other, and the last place before them.
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

/// The exchanges of a batch.
#[derive(Default, Debug)]
pub struct BatchExchanges<'a>(HashMap<u64, ExchangePart<'a>>);

/// What a batch holds of one exchange.
#[derive(Debug)]
pub struct ExchangePart<'a> {
    /// Its first place in the batch.
    pub first: u64,
    /// Its last place in the batch.
    pub last: u64,
    /// Its end, where that is in the batch.
    pub finished: Option<&'a FinishedEntry>,
}

impl<'a> BatchExchanges<'a> {
    /// One more entry.
    pub fn add(&mut self, entry: &'a Entry) {
        let Some(exchange) = entry.exchange else { return };
        let part = self.0.entry(exchange).or_insert(ExchangePart { first: entry.seq, last: entry.seq, finished: None });
        part.last = entry.seq;
        if let Content::Finished(finished) = &entry.content {
            part.finished = Some(finished);
        }
    }

    /// All of them, by their number.
    pub fn parts(self) -> Vec<(u64, ExchangePart<'a>)> {
        let mut parts: Vec<_> = self.0.into_iter().collect();
        parts.sort_unstable_by_key(|(exchange, _)| *exchange);
        parts
    }
}
