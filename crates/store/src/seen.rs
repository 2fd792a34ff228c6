//! What a batch of entries says about its exchanges.

use foldhash::HashMap;
use signalbox_engine::record::{Content, Entry, FinishedEntry};

/// The exchanges of a batch.
#[derive(Default, Debug)]
pub struct Seen<'a>(HashMap<u64, Part<'a>>);

/// What a batch holds of one exchange.
#[derive(Debug)]
pub struct Part<'a> {
    /// Its first place in the batch.
    pub first: u64,
    /// Its last place in the batch.
    pub last: u64,
    /// Its end, where that is in the batch.
    pub finished: Option<&'a FinishedEntry>,
}

impl<'a> Seen<'a> {
    /// One more entry.
    pub fn add(&mut self, entry: &'a Entry) {
        let Some(exchange) = entry.exchange else { return };
        let part = self.0.entry(exchange).or_insert(Part { first: entry.seq, last: entry.seq, finished: None });
        part.last = entry.seq;
        if let Content::Finished(finished) = &entry.content {
            part.finished = Some(finished);
        }
    }

    /// All of them, by their number.
    pub fn parts(self) -> Vec<(u64, Part<'a>)> {
        let mut parts: Vec<_> = self.0.into_iter().collect();
        parts.sort_unstable_by_key(|(exchange, _)| *exchange);
        parts
    }
}
