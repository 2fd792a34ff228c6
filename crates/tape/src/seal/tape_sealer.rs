//! Seals entries that do not come from a recorder.

use super::body::BodySealer;
use super::chain::{Chain, Draft};
use super::settings::SealSettings;
use crate::Bodies;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry};

/// Seals the entries of one tape in order, whatever their origin.
#[derive(Debug)]
pub struct TapeSealer {
    bodies: Option<BodySealer>,
    whole: Bodies,
    chain: Chain,
}

impl TapeSealer {
    /// Creates a sealer with these settings.
    #[must_use]
    pub fn new(settings: SealSettings) -> Self {
        let bodies = BodySealer::new(&settings.seed, &settings.commit);
        Self { bodies, whole: Bodies::default(), chain: Chain::new(settings) }
    }

    /// Seals the next entries, which must be stored unchanged.
    pub fn seal(&mut self, entries: &mut [Entry]) {
        for entry in entries.iter_mut() {
            let whole = self.whole.whole(entry.clone());
            entry.seal = None;
            if let Content::Message(MessageEntry { body: Body::Whole(body), .. }) = &whole.content {
                let body = self.bodies.as_mut().and_then(|bodies| bodies.commit(body, entry.seq));
                entry.seal = body.map(|body| Draft { body, salted_as: 0 }.to_bytes());
            }
        }
        self.chain.link(entries);
        self.chain.kept(entries);
    }

    /// Returns the closing of the seal, for [`TapeWriter::end`](signalbox_engine::record::TapeWriter::end), or `None`
    /// if it cannot be signed.
    #[must_use]
    pub fn closing(&self, ended: u64) -> Option<Vec<u8>> {
        self.chain.closing(ended)
    }

    /// Marks the tape as ended with this closing.
    pub fn closed(&mut self, closing: &[u8]) {
        self.chain.closed(closing);
    }
}
