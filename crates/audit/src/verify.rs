//! Does the chain again, and names the first record that is not as it was written.

use crate::chain::{SEALED, next};
use crate::record::Record;
use crate::signed::{GAP, HEAD, SignedPlace};
use signalbox_seal::{ChainHash, KeySet, Role, VerifyingKey, hex};
use std::collections::BTreeMap;

/// What is wrong with a record.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FaultKind {
    /// The line is no record.
    #[error("the line is no record of an audit log")]
    Unreadable,
    /// It was changed.
    #[error("record {0} was changed after it was written")]
    Tampered(u64),
    /// Others should be before it, or behind it.
    #[error("records {0} to {1} are missing")]
    Missing(u64, u64),
    /// It stands behind a later one, or twice.
    #[error("record {0} is not where it was written")]
    Reordered(u64),
    /// Its signature does not fit what it signs.
    #[error("the signature of record {0} does not fit")]
    BadSignature(u64),
    /// It is signed by a key that is not trusted.
    #[error("record {0} is signed by the key `{1}`, which is not trusted")]
    Untrusted(u64, String),
}

/// Something that is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {kind} (chain {chain})")]
pub struct AuditFault {
    /// The file and line, or the row.
    pub place: String,
    /// The chain; empty if the line names none.
    pub chain: String,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditReport {
    /// How many records were looked at.
    pub records: u64,
    /// How many chains they belong to.
    pub chains: u64,
    /// How many heads are signed by trusted keys.
    pub heads: u64,
    /// How many records a sink did not get, as signed gaps say.
    pub skipped: u64,
    /// How many records stand behind the last head of their chain: these are chained, but not signed yet.
    pub unsigned: u64,
    /// Everything that is wrong, the first first, but no more than some.
    pub faults: Vec<AuditFault>,
}

/// Most faults that are told.
const MAX_FAULTS: usize = 20;

#[derive(Debug)]
struct Reached {
    seq: u64,
    hash: ChainHash,
    signed: u64,
}

/// Looks at the records of a log, in the order in which they stand there.
#[derive(Debug)]
pub struct AuditVerifier<'a> {
    keys: &'a KeySet,
    reached: BTreeMap<String, Reached>,
    report: AuditReport,
}

impl<'a> AuditVerifier<'a> {
    /// A verifier that trusts these keys.
    #[must_use]
    pub fn new(keys: &'a KeySet) -> Self {
        Self { keys, reached: BTreeMap::new(), report: AuditReport::default() }
    }

    fn fault(&mut self, place: &str, chain: &str, kind: FaultKind) {
        if self.report.faults.len() < MAX_FAULTS {
            self.report.faults.push(AuditFault { place: place.to_owned(), chain: chain.to_owned(), kind });
        }
    }

    /// Looks at a line.
    pub fn line(&mut self, place: &str, line: &str) {
        self.report.records += 1;
        let Ok(record) = Record::read(line) else { return self.fault(place, "", FaultKind::Unreadable) };
        let chain = record.chain.clone();
        let expected = self.reached.get(&chain).map(|reached| reached.seq + 1);
        let first = if record.event_type.is_none() { record.value["from"].as_u64().unwrap_or(0) } else { record.seq };
        match expected {
            Some(expected) if first > expected => {
                self.fault(place, &chain, FaultKind::Missing(expected, first - 1));
            }
            // It is compared with nothing: what stands before it is not what was written before it.
            Some(expected) if first < expected => return self.fault(place, &chain, FaultKind::Reordered(record.seq)),
            _ => {}
        }
        if record.event_type.is_none() {
            return self.gap(place, &record);
        }
        let whole = record.hashes().and_then(|hashes| is_whole(line, &hashes).then_some(hashes));
        let Some((prev, hash)) = whole else {
            self.fault(place, &chain, FaultKind::Tampered(record.seq));
            return self.reach(&chain, record.seq, record.hashes().map_or([0; 32], |(_, hash)| hash));
        };
        // Behind a missing record there is nothing to compare with.
        let follows =
            self.reached.get(&chain).is_none_or(|reached| reached.seq + 1 != record.seq || reached.hash == prev);
        if !follows {
            self.fault(place, &chain, FaultKind::Tampered(record.seq));
        }
        if let Some(signed) = record.place() {
            match SignedPlace::read(signed) {
                Some((head, key))
                    if head.kind == HEAD && head.to + 1 == record.seq && head.hash == prev && head.chain == chain =>
                {
                    self.signer(place, &chain, record.seq, &key, head.at);
                    self.reach(&chain, record.seq, hash);
                    if let Some(reached) = self.reached.get_mut(&chain) {
                        reached.signed = record.seq;
                    }
                    return;
                }
                _ => self.fault(place, &chain, FaultKind::BadSignature(record.seq)),
            }
        }
        self.reach(&chain, record.seq, hash);
    }

    fn gap(&mut self, place: &str, record: &Record) {
        match record.signed_place() {
            Some((gap, key)) if gap.kind == GAP && gap.from <= gap.to => {
                self.signer(place, &record.chain, record.seq, &key, gap.at);
                self.report.skipped += gap.to - gap.from + 1;
                self.reach(&record.chain, gap.to, gap.hash);
            }
            _ => self.fault(place, &record.chain, FaultKind::BadSignature(record.seq)),
        }
    }

    pub(crate) fn signer(&mut self, place: &str, chain: &str, seq: u64, key: &VerifyingKey, at: u64) {
        let seconds = i64::try_from(at / 1000).unwrap_or(i64::MAX);
        let trusted =
            self.keys.trusted(key.id(), &[Role::Recorder, Role::Gateway], seconds).is_ok_and(|known| known.key == *key);
        match trusted {
            true => self.report.heads += 1,
            false => self.fault(place, chain, FaultKind::Untrusted(seq, key.id().to_owned())),
        }
    }

    fn reach(&mut self, chain: &str, seq: u64, hash: ChainHash) {
        match self.reached.get_mut(chain) {
            Some(reached) => (reached.seq, reached.hash) = (seq, hash),
            None => {
                self.reached.insert(chain.to_owned(), Reached { seq, hash, signed: 0 });
            }
        }
    }

    /// A chain is known to have come as far as this record: what is missing at the end is named.
    pub fn came_to(&mut self, place: &str, chain: &str, seq: u64) {
        let reached = self.reached.get(chain).map_or(0, |reached| reached.seq);
        if reached < seq {
            self.fault(place, chain, FaultKind::Missing(reached + 1, seq));
        }
    }

    /// The head of a chain that is kept beside the records is not what was signed.
    pub(crate) fn bad_head(&mut self, place: &str, chain: &str) {
        let seq = self.reached(chain);
        self.fault(place, chain, FaultKind::BadSignature(seq));
    }

    /// The last record of a chain that was looked at.
    #[must_use]
    pub fn reached(&self, chain: &str) -> u64 {
        self.reached.get(chain).map_or(0, |reached| reached.seq)
    }

    /// What was found.
    #[must_use]
    pub fn finish(mut self) -> AuditReport {
        self.report.chains = self.reached.len() as u64;
        self.report.unsigned = self.reached.values().map(|reached| reached.seq.saturating_sub(reached.signed)).sum();
        self.report
    }
}

/// True if the text of a line is what its hash says.
fn is_whole(line: &str, (prev, hash): &(ChainHash, ChainHash)) -> bool {
    let Some(covered) = Record::covered(line) else { return false };
    let end = format!("{SEALED}{}\",\"hash\":\"{}\"}}", hex(prev), hex(hash));
    line.strip_prefix(covered) == Some(&end) && next(prev, covered.as_bytes()) == *hash
}

#[cfg(test)]
mod tests;
