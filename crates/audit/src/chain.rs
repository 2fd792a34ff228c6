//! The chain of hashes over the records of one log, which continues over restarts.

use crate::event::AuditEvent;
use signalbox_seal::{ChainHash, sha256, sha256_of};
use signalbox_tape::seal::join;
use signalbox_wire::hex::push_hex;
use signalbox_wire::json;

/// Stands first in what is hashed for a record, and for the start of a chain.
const RECORD: &[u8] = b"signalbox audit record\0";
const START: &[u8] = b"signalbox audit chain\0";
/// Where the part of a line begins that its own hash does not cover.
pub(crate) const SEALED: &str = ",\"prev\":\"";

/// The last record of a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainPlace {
    /// The name of the chain.
    pub chain: String,
    /// The number of the record; 0 before the first.
    pub seq: u64,
    /// The hash of the chain there.
    pub hash: ChainHash,
}

impl ChainPlace {
    /// Before the first record of a chain.
    #[must_use]
    pub fn start(chain: &str) -> Self {
        let hash = sha256(&[START, chain.as_bytes()].concat());
        Self { chain: chain.to_owned(), seq: 0, hash }
    }

    /// Gives an event the next place, and adds its line to a text.
    pub fn append(&mut self, event: &AuditEvent<'_>, out: &mut String) {
        let from = out.len();
        self.seq += 1;
        out.push_str("{\"chain\":\"");
        out.push_str(&self.chain);
        out.push_str("\",\"seq\":");
        json::push_number(out, self.seq);
        out.push(',');
        event.write(out);
        let hash = next(&self.hash, &out.as_bytes()[from..]);
        out.push_str(SEALED);
        push_hex(out, &self.hash);
        out.push_str("\",\"hash\":\"");
        push_hex(out, &hash);
        out.push_str("\"}\n");
        self.hash = hash;
    }
}

/// The hash of the chain after a record with this text, of which only what comes before `prev` is covered.
#[must_use]
pub fn next(before: &ChainHash, text: &[u8]) -> ChainHash {
    join(before, &sha256_of([RECORD, text]))
}
