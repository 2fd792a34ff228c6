//! Assigns sequence numbers to entries at the moment they are certain to be on the tape.

use super::introductions::Introductions;
use super::message_arena::uncharged;
use crate::bodies::join;
use crate::seal::{BodyDifference, BodySealer, Draft, SealSettings, SealedBody};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind};

/// Counter of entries, with the complete bodies that later ones may refer to.
#[derive(Default, Debug)]
pub(crate) struct Numbering {
    last: u64,
    /// Latest complete bodies of each exchange, one per direction.
    bases: KeyMap<u64, [Base; 2]>,
    sealer: Option<BodySealer>,
    /// True if entries may wait while the next tape begins. Bodies are then kept, to restore those stored as
    /// differences.
    keeps_bodies: bool,
    pub(crate) introductions: Introductions,
}

/// A complete body that later ones may refer to.
#[derive(Default, Debug)]
struct Base {
    /// Sequence number; 0 for none.
    seq: u64,
    /// The body and the commitment to it on a sealed tape, until the answer has passed.
    sealed: Option<SealedBody>,
    /// Bytes of the body, if entries may wait while the next tape begins. Dropped after the answer.
    bytes: Option<Bytes>,
}

/// Complete bodies of a tape that has ended, which held-back entries may refer to.
#[derive(Debug)]
pub(crate) struct EndedTape(KeyMap<u64, [Base; 2]>);

impl EndedTape {
    /// Returns the complete body of a message that refers to one of that tape, if it is still known.
    pub(crate) fn whole(&self, exchange: u64, message: &MessageEntry) -> Option<Bytes> {
        let Body::Like { prefix, suffix, middle, .. } = &message.body else { return None };
        let base = &self.0.get(&exchange)?[way(message.point)];
        join(base.bytes.as_ref()?, *prefix, *suffix, middle)
    }
}

/// Returns the direction of a message at this point: 0 toward the backend, 1 toward the client.
pub(crate) fn way(point: Point) -> usize {
    match point {
        Point::ClientIn | Point::BackendOut => 0,
        Point::BackendIn | Point::ClientOut => 1,
    }
}

impl Numbering {
    /// Creates a numbering, which commits to bodies if the tape is sealed. `keeps_bodies` tells whether entries may
    /// wait while the next tape begins.
    pub(crate) fn new(seal: Option<&SealSettings>, introductions: Introductions, keeps_bodies: bool) -> Self {
        Self { sealer: sealer(seal), introductions, keeps_bodies, ..Self::default() }
    }

    /// Begins the next tape, whose entries count from 1 and refer to nothing on the previous one.
    pub(crate) fn begin_tape(&mut self, seal: Option<&SealSettings>) -> EndedTape {
        (self.last, self.sealer) = (0, sealer(seal));
        EndedTape(std::mem::take(&mut self.bases))
    }

    /// Assigns a sequence number to an entry and adds it.
    pub(crate) fn emit(&mut self, mut entry: Entry, out: &mut Vec<Entry>) {
        let last = &mut self.last;
        self.introductions.before(&entry, |introduction| {
            *last += 1;
            out.push(Entry { seq: *last, at: entry.at, ..introduction });
        });
        self.last += 1;
        entry.seq = self.last;
        match &mut entry.content {
            Content::Message(message) => entry.seal = self.place(entry.exchange, message).map(Draft::to_bytes),
            // No body is stored as a difference from one of an ended exchange.
            Content::Finished(_) => {
                let bases = entry.exchange.and_then(|exchange| self.bases.get_mut(&exchange));
                bases.into_iter().flatten().for_each(Base::release);
            }
            Content::Rules(_) => self.introductions.rules(&entry),
            _ => {}
        }
        out.push(entry);
    }

    /// Resolves the body that this one refers to, and commits to it if the tape is sealed.
    fn place(&mut self, exchange: Option<u64>, message: &mut MessageEntry) -> Option<Draft> {
        let (seq, way) = (self.last, way(message.point));
        let mut draft = None;
        match &mut message.body {
            Body::Whole(bytes) => {
                let body = self.sealer.as_mut().and_then(|sealer| sealer.commit(bytes, seq));
                draft = body.map(|body| Draft { body, salted_as: 0 });
                if let Some(exchange) = exchange {
                    let sealer = self.sealer.as_ref();
                    let kept = (body.is_some() || self.keeps_bodies).then(|| own(bytes));
                    let sealed = body.zip(sealer).zip(kept.clone());
                    let sealed = sealed.map(|((body, sealer), kept)| sealer.last_sealed(kept, body));
                    let bytes = kept.filter(|_| self.keeps_bodies);
                    self.bases.entry(exchange).or_default()[way] = Base { seq, sealed, bytes };
                }
            }
            Body::Like { seq: base, prefix, suffix, middle } => {
                let known = exchange.and_then(|exchange| self.bases.get(&exchange)).map(|bases| &bases[way]);
                match known.filter(|known| known.seq > 0) {
                    // The first entries of the exchange have left the ring, so the body referred to is not on the tape.
                    None => message.body = Body::Left,
                    Some(known) => {
                        *base = known.seq;
                        if let (Some(sealer), Some(sealed)) = (&mut self.sealer, &known.sealed) {
                            let (prefix, suffix, base_entry) = (*prefix, *suffix, known.seq);
                            let difference = BodyDifference { prefix, suffix, middle, base_entry, entry: seq };
                            draft = sealer.commit_like(sealed, &difference);
                        }
                    }
                }
            }
            Body::Left => {}
        }
        self.release(exchange, message);
        draft
    }

    /// Releases bodies that no later one will refer to, by the same rule as the maker of entries.
    fn release(&mut self, exchange: Option<u64>, message: &MessageEntry) {
        let way = match (message.kind, message.point) {
            (MessageKind::Result | MessageKind::Error, Point::BackendIn) => 0,
            (MessageKind::Result | MessageKind::Error, Point::ClientOut) => 1,
            _ => return,
        };
        if let Some(bases) = exchange.and_then(|exchange| self.bases.get_mut(&exchange)) {
            bases[way].release();
        }
    }

    /// Copies the remembered bodies, so that they are no longer charged to their senders.
    pub(crate) fn own_bases(&mut self) {
        for base in self.bases.values_mut().flatten() {
            let own = base.sealed.as_ref().map(|sealed| &sealed.bytes).or(base.bytes.as_ref()).map(uncharged);
            if let (Some(sealed), Some(own)) = (&mut base.sealed, &own) {
                sealed.bytes = own.clone();
            }
            base.bytes = base.bytes.is_some().then_some(own).flatten();
        }
    }

    /// Forgets an exchange that will have no further entries.
    pub(crate) fn forget(&mut self, exchange: u64) {
        self.bases.remove(&exchange);
        self.introductions.forget(exchange);
    }
}

impl Base {
    /// Releases the body, to which no later one will refer.
    fn release(&mut self) {
        (self.sealed, self.bytes) = (None, None);
    }
}

fn sealer(seal: Option<&SealSettings>) -> Option<BodySealer> {
    seal.and_then(|seal| BodySealer::new(&seal.seed, &seal.commit))
}

/// Maximum size of a body that is copied to be remembered, in bytes.
const MAX_COPY: usize = 16 << 10;

/// Copies a small body, so that it does not keep the read buffer around it in memory.
fn own(body: &Bytes) -> Bytes {
    if body.len() <= MAX_COPY { Bytes::copy_from_slice(body) } else { body.clone() }
}
