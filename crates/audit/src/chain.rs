//! The hash chain over the records of one log. It continues across restarts.

use crate::event::AuditEvent;
use signalbox_seal::{ChainHash, sha256, sha256_of};
use signalbox_tape::seal::join;
use signalbox_wire::hex::push_hex;
use signalbox_wire::json;

/// Domain prefix of the hash of a record and of the start of a chain.
const RECORD: &[u8] = b"signalbox audit record\0";
const START: &[u8] = b"signalbox audit chain\0";
/// Start of the part of a line that the line's own hash does not cover.
pub(crate) const SEALED: &str = ",\"prev\":\"";

/// Position in a chain: its last record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainPlace {
    /// Name of the chain.
    pub chain: String,
    /// Number of the record; 0 before the first.
    pub seq: u64,
    /// Hash of the chain at that record.
    pub hash: ChainHash,
}

impl ChainPlace {
    /// Returns the position before the first record of a chain.
    #[must_use]
    pub fn start(chain: &str) -> Self {
        let hash = sha256(&[START, chain.as_bytes()].concat());
        Self { chain: chain.to_owned(), seq: 0, hash }
    }

    /// Advances the chain by one event and appends the event's line to `out`.
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

/// Returns the hash of the chain after a record with this text. The hash covers only the text before `prev`.
#[must_use]
pub fn next(before: &ChainHash, text: &[u8]) -> ChainHash {
    join(before, &sha256_of([RECORD, text]))
}
