//! Gives entries their place in the tape, at the moment they are sure to be on it.

use signalbox_engine::fact::Point;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::record::{Body, Content, Entry};

/// Counts entries, and knows at which place the whole bodies stand that others are like.
#[derive(Default, Debug)]
pub(crate) struct Numbering {
    last: u64,
    /// For each exchange the places of its latest whole bodies, one for each way.
    bases: KeyMap<u64, [u64; 2]>,
    /// Descriptions of callers that wait for the first entry that names them, by number.
    introduced: KeyMap<u64, Entry>,
}

/// Most callers that wait to be named.
const MAX_INTRODUCED: usize = 10_000;

/// Which way a message at this point goes: 0 toward the backend, 1 toward the client.
pub(crate) fn way(point: Point) -> usize {
    match point {
        Point::ClientIn | Point::BackendOut => 0,
        Point::BackendIn | Point::ClientOut => 1,
    }
}

impl Numbering {
    /// Puts the description of a caller before the first entry that names it. Callers of entries that are never written get none.
    pub(crate) fn introduce(&mut self, number: u64, caller: Entry) {
        if self.introduced.len() >= MAX_INTRODUCED {
            self.introduced.clear();
        }
        self.introduced.insert(number, caller);
    }

    /// Gives an entry its place and adds it.
    pub(crate) fn emit(&mut self, mut entry: Entry, out: &mut Vec<Entry>) {
        if !self.introduced.is_empty()
            && let Some(caller) = caller_of(&entry.content).and_then(|number| self.introduced.remove(&number))
        {
            self.last += 1;
            out.push(Entry { seq: self.last, at: entry.at, ..caller });
        }
        self.last += 1;
        entry.seq = self.last;
        if let (Some(exchange), Content::Message(message)) = (entry.exchange, &mut entry.content) {
            let way = way(message.point);
            match &mut message.body {
                Body::Whole(_) => self.bases.entry(exchange).or_default()[way] = self.last,
                Body::Like { seq, .. } => match self.bases.get(&exchange).map_or(0, |bases| bases[way]) {
                    // The beginning of the exchange has left the ring, so what this one is like is not on the tape.
                    0 => message.body = Body::Left,
                    base => *seq = base,
                },
                Body::Left => {}
            }
        }
        out.push(entry);
    }

    /// Nothing more will come of this exchange.
    pub(crate) fn forget(&mut self, exchange: u64) {
        self.bases.remove(&exchange);
    }
}

/// The caller that an entry names.
fn caller_of(content: &Content) -> Option<u64> {
    match content {
        Content::Finished(finished) => finished.client,
        Content::Refused(refused) => refused.client,
        _ => None,
    }
}
