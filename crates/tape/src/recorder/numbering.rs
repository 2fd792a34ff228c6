//! Gives entries their place in the tape, at the moment they are sure to be on it.

use super::message_arena::uncharged;
use crate::seal::{BodySealer, Draft, SealSettings, SealedBody};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind};

/// Counts entries, and knows at which place the whole bodies stand that others are like.
#[derive(Default, Debug)]
pub(crate) struct Numbering {
    last: u64,
    /// For each exchange its latest whole bodies, one for each way.
    bases: KeyMap<u64, [Base; 2]>,
    sealer: Option<BodySealer>,
    /// Descriptions of callers that wait for the first entry that names them, by number.
    introduced: KeyMap<u64, Entry>,
}

/// A whole body that others may be like.
#[derive(Default, Debug)]
struct Base {
    /// Its place; 0 for none.
    seq: u64,
    /// What it is and what was committed to, where the tape is sealed, until the answer has passed.
    sealed: Option<SealedBody>,
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
    /// With commitments to bodies, where the tape is sealed.
    pub(crate) fn new(seal: Option<&SealSettings>) -> Self {
        let sealer = seal.and_then(|seal| BodySealer::new(&seal.seed, &seal.commit));
        Self { sealer, ..Self::default() }
    }

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
        match &mut entry.content {
            Content::Message(message) => entry.seal = self.place(entry.exchange, message).map(Draft::to_bytes),
            // Nothing is told as a difference from a body of an exchange that has ended.
            Content::Finished(_) => {
                let bases = entry.exchange.and_then(|exchange| self.bases.get_mut(&exchange));
                bases.into_iter().flatten().for_each(|base| base.sealed = None);
            }
            _ => {}
        }
        out.push(entry);
    }

    /// Says which earlier body this one is like, and commits to it where the tape is sealed.
    fn place(&mut self, exchange: Option<u64>, message: &mut MessageEntry) -> Option<Draft> {
        let (seq, way) = (self.last, way(message.point));
        let mut draft = None;
        match &mut message.body {
            Body::Whole(bytes) => {
                let body = self.sealer.as_mut().and_then(|sealer| sealer.commit(bytes, seq));
                draft = body.map(|body| Draft { body, salted_as: 0 });
                if let Some(exchange) = exchange {
                    let sealer = self.sealer.as_ref();
                    let sealed = body.zip(sealer).map(|(body, sealer)| sealer.last_sealed(own(bytes), body));
                    self.bases.entry(exchange).or_default()[way] = Base { seq, sealed };
                }
            }
            Body::Like { seq: base, prefix, suffix, middle } => {
                let known = exchange.and_then(|exchange| self.bases.get(&exchange)).map(|bases| &bases[way]);
                match known.filter(|known| known.seq > 0) {
                    // The beginning of the exchange has left the ring, so what this one is like is not on the tape.
                    None => message.body = Body::Left,
                    Some(known) => {
                        *base = known.seq;
                        if let (Some(sealer), Some(sealed)) = (&mut self.sealer, &known.sealed) {
                            let seqs = (known.seq, seq);
                            draft = sealer.commit_like(sealed, (*prefix, *suffix), middle, seqs);
                        }
                    }
                }
            }
            Body::Left => {}
        }
        self.release(exchange, message);
        draft
    }

    /// Lets bodies go that nothing will be like any more, by the same rule as those who make the entries.
    fn release(&mut self, exchange: Option<u64>, message: &MessageEntry) {
        let way = match (message.kind, message.point) {
            (MessageKind::Result | MessageKind::Error, Point::BackendIn) => 0,
            (MessageKind::Result | MessageKind::Error, Point::ClientOut) => 1,
            _ => return,
        };
        if let Some(bases) = exchange.and_then(|exchange| self.bases.get_mut(&exchange)) {
            bases[way].sealed = None;
        }
    }

    /// Copies the remembered bodies, so that they are no longer charged to their senders.
    pub(crate) fn own_bases(&mut self) {
        for sealed in self.bases.values_mut().flatten().filter_map(|base| base.sealed.as_mut()) {
            sealed.bytes = uncharged(&sealed.bytes);
        }
    }

    /// Nothing more will come of this exchange.
    pub(crate) fn forget(&mut self, exchange: u64) {
        self.bases.remove(&exchange);
    }
}

/// Largest body that is copied to be remembered.
const MAX_COPY: usize = 16 << 10;

/// A small body does not hold the messages in memory that came with it.
fn own(body: &Bytes) -> Bytes {
    if body.len() <= MAX_COPY { Bytes::copy_from_slice(body) } else { body.clone() }
}

/// The caller that an entry names.
fn caller_of(content: &Content) -> Option<u64> {
    match content {
        Content::Finished(finished) => finished.client,
        Content::Refused(refused) => refused.client,
        _ => None,
    }
}
