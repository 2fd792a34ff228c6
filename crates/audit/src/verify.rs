//! Recomputes the chain of a log and reports every record that differs from what was written.

mod calls;

pub use calls::CallVerifier;

use crate::chain::{ChainPlace, SEALED, next};
use crate::event::EventType;
use crate::place::SinkPlace;
use crate::record::{AuditRecord, BadRecord};
use crate::signed::{HEAD, MissingReason, SignedPlace, StandIn};
use signalbox_seal::{ChainHash, KeyRole, KeySet, VerifyingKey, hex};
use signalbox_store::audit::StoredRecord;
use std::collections::BTreeMap;

/// Kind of a fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuditFaultKind {
    /// The line is no record.
    #[error("the line is no record of an audit log")]
    Unreadable,
    /// The record was changed.
    #[error("record {0} was changed after it was written")]
    Tampered(u64),
    /// Records are missing before or after this one.
    #[error("records {0} to {1} are missing")]
    Missing(u64, u64),
    /// The record is repeated, or stands behind a later one.
    #[error("record {0} is not where it was written")]
    Reordered(u64),
    /// A column of its database row disagrees with the record.
    #[error("the column `{1}` of the row of record {0} says something else than the record")]
    Misfiled(u64, &'static str),
    /// A column of the row of its call disagrees with the record.
    #[error("the column `{1}` says something else than record {0}")]
    CallChanged(u64, &'static str),
    /// The row of its call is missing.
    #[error("the row of the call of record {0} is missing, or has another `request_id`")]
    CallMissing(u64),
    /// No record is the outcome of the call in this row.
    #[error("no record tells of the call of row {0}")]
    CallInvented(i64),
    /// The signature is invalid.
    #[error("the signature of record {0} does not fit")]
    BadSignature(u64),
    /// The signing key is not trusted.
    #[error("record {0} is signed by the key `{1}`, which is not trusted")]
    Untrusted(u64, String),
    /// No signature covers these records.
    #[error("no signature covers records {0} to {1}")]
    Unsigned(u64, u64),
    /// Nothing outside the log states where the chain ends.
    #[error("nothing tells whether records behind {0} are missing: the data folder has no journal of the chain")]
    EndUnknown(u64),
    /// A gap or checkpoint of another sink was inserted here.
    #[error("what stands for the records up to {0} was signed for another sink")]
    OfAnotherSink(u64),
    /// A gap or checkpoint names a place, and the place of these records is unknown.
    #[error(
        "what stands for the records up to {0} was signed for the log at {1}: if this is a copy of that, say so with `--of`"
    )]
    PlaceUnknown(u64, String),
    /// The records deleted by age lacked a start, or had faults that an earlier version overlooked.
    #[error("records 1 to {0} were deleted by age, and did not verify then")]
    PrunedUnproved(u64),
}

/// Fault and its location.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {kind} (chain {chain})")]
pub struct AuditFault {
    /// File and line, or database row.
    pub place: String,
    /// Chain; empty if the line names none.
    pub chain: String,
    pub kind: AuditFaultKind,
}

/// Result of a verification.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AuditVerdict {
    /// Every record is unchanged, and none is missing.
    Whole,
    /// Every record is unchanged, and the log itself states that others are missing: they could not be written, the
    /// sink fell too far behind, or they were written to another place.
    WithGaps,
    /// No fault was found, but signatures do not cover everything.
    Unproved,
    /// Records were changed, removed, moved or added.
    Broken,
}

/// Findings of a verification.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AuditReport {
    /// Number of verified records.
    pub records: u64,
    /// Number of their chains.
    pub chains: u64,
    /// Number of heads signed by trusted keys.
    pub heads: u64,
    /// Number of records that a sink did not receive, according to signed gaps.
    pub skipped: u64,
    /// Number of records written while the log wrote to another place, according to signed gaps.
    pub elsewhere: u64,
    /// Number of records that could not be written, according to the log itself and to the counts beside its journals.
    pub lost: u64,
    /// True if more records than `lost` may be missing: a process ended, or still runs, before it could state its loss.
    pub lost_at_least: bool,
    /// Number of records that are in a journal of the data folder and not yet in the log.
    pub waiting: u64,
    /// Number of records deleted by age, according to signed checkpoints.
    pub pruned: u64,
    /// Number of rows of calls that lack the arguments of their records, because the process ended between intent and
    /// outcome.
    pub without_arguments: u64,
    /// Number of records after the last head of their chain. They are chained, but not signed yet.
    pub unsigned: u64,
    /// Faults in order of discovery, up to a limit.
    pub faults: Vec<AuditFault>,
    /// Findings that are neither faults nor proven correct, up to a limit.
    pub doubts: Vec<AuditFault>,
}

impl AuditReport {
    /// Returns the overall result.
    #[must_use]
    pub fn verdict(&self) -> AuditVerdict {
        match (self.faults.is_empty(), self.doubts.is_empty()) {
            (false, _) => AuditVerdict::Broken,
            (true, false) => AuditVerdict::Unproved,
            (true, true) if self.lost + self.skipped + self.elsewhere > 0 => AuditVerdict::WithGaps,
            (true, true) => AuditVerdict::Whole,
        }
    }
}

/// Maximum number of reported faults.
pub(crate) const MAX_FAULTS: usize = 20;

/// End of the verified part of a chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainEnd {
    pub seq: u64,
    pub hash: ChainHash,
    /// Last record that a trusted signature covers.
    pub signed: u64,
    /// Last record that a checkpoint stands for.
    pruned: u64,
    /// Location of the last record.
    place: String,
    /// True if the data folder has a journal of this chain.
    pub journaled: bool,
    /// True if the journal has the same last record.
    pub confirmed: bool,
}

/// Verifies the records of a log in their order.
#[derive(Clone, Debug)]
pub struct AuditVerifier<'a> {
    keys: &'a KeySet,
    reached: BTreeMap<String, ChainEnd>,
    report: AuditReport,
    /// True if the records are compared with the journals of the data folder.
    in_place: bool,
    /// Sink of the records, if known.
    sink: Option<&'static str>,
    /// Place that these records were written to, if known.
    place: Option<String>,
    /// First place that a gap or checkpoint named. All in one log must name the same.
    named: Option<String>,
}

impl<'a> AuditVerifier<'a> {
    /// Creates a verifier that trusts these keys.
    #[must_use]
    pub fn new(keys: &'a KeySet) -> Self {
        let (reached, report) = (BTreeMap::new(), AuditReport::default());
        Self { keys, reached, report, in_place: false, sink: None, place: None, named: None }
    }

    /// Sets the sink of the records.
    #[must_use]
    pub fn of_sink(self, sink: &'static str) -> Self {
        Self { sink: Some(sink), ..self }
    }

    /// Sets the place that the records were written to.
    #[must_use]
    pub fn of_place(self, place: &SinkPlace) -> Self {
        Self { place: Some(place.name.clone()), ..self.of_sink(place.sink) }
    }

    /// Sets the place of the records that follow; `None` if it is unknown.
    pub fn expect_place(&mut self, place: Option<&SinkPlace>) {
        self.place = place.map(|place| place.name.clone());
    }

    pub(crate) fn fault(&mut self, place: &str, chain: &str, kind: AuditFaultKind) {
        if self.report.faults.len() < MAX_FAULTS {
            self.report.faults.push(AuditFault { place: place.to_owned(), chain: chain.to_owned(), kind });
        }
    }

    fn doubt(&mut self, place: &str, chain: &str, kind: AuditFaultKind) {
        if self.report.doubts.len() < MAX_FAULTS {
            self.report.doubts.push(AuditFault { place: place.to_owned(), chain: chain.to_owned(), kind });
        }
    }

    /// Verifies the next line of a log file.
    pub fn line(&mut self, place: &str, line: &str) {
        self.record(place, line, AuditRecord::read(line));
    }

    /// Verifies a database row, whose columns must agree with its record.
    pub fn row(&mut self, place: &str, row: &StoredRecord<'_>) {
        let record = AuditRecord::read(row.record);
        if let Ok(record) = &record
            && let Some(column) = record.misfiled_column(row)
        {
            self.fault(place, &record.chain, AuditFaultKind::Misfiled(record.seq, column));
        }
        self.record(place, row.record, record);
    }

    /// Verifies a parsed line.
    pub(crate) fn record(&mut self, place: &str, line: &str, record: Result<AuditRecord, BadRecord>) {
        self.report.records += 1;
        let Ok(record) = record else { return self.fault(place, "", AuditFaultKind::Unreadable) };
        let chain = record.chain.clone();
        let reached = self.reached.get(&chain);
        let expected = reached.map_or(1, |reached| reached.seq + 1);
        let first = if record.event_type.is_none() { record.value["from"].as_u64().unwrap_or(0) } else { record.seq };
        if first > expected {
            self.fault(place, &chain, AuditFaultKind::Missing(expected, first - 1));
        } else if first < expected {
            // A process that was killed between its checkpoint and the deletion leaves records that the checkpoint
            // stands for.
            if reached.is_some_and(|reached| record.seq <= reached.pruned) {
                return;
            }
            // Compare it with nothing: the record before it here is not the one before it in the chain.
            return self.fault(place, &chain, AuditFaultKind::Reordered(record.seq));
        }
        if record.event_type.is_none() {
            return self.stand_in(place, &record);
        }
        if record.event_type == Some(EventType::RecordsLost) {
            self.count_lost(&record);
        }
        self.chained(place, line, &record);
    }

    /// Counts the loss that a record states.
    fn count_lost(&mut self, record: &AuditRecord) {
        let details = &record.value["details"];
        self.report.lost += details["count"].as_u64().unwrap_or(0);
        self.report.lost_at_least |= details["at_least"] == true;
    }

    /// Counts a record of the journal that is not among those that were read, and the loss that it states.
    pub(crate) fn journaled(&mut self, record: &AuditRecord, waits: bool) {
        self.report.waiting += u64::from(waits);
        if record.event_type == Some(EventType::RecordsLost) {
            self.count_lost(record);
        }
    }

    /// Counts records that could not be written and that no record states yet.
    pub(crate) fn lose(&mut self, count: u64) {
        self.report.lost += count;
        self.report.lost_at_least |= count > 0;
    }

    /// Verifies the hash of a record that is in sequence.
    fn chained(&mut self, place: &str, line: &str, record: &AuditRecord) {
        let chain = &record.chain;
        let whole = record.hashes().and_then(|hashes| is_whole(line, &hashes).then_some(hashes));
        let Some((prev, hash)) = whole else {
            self.fault(place, chain, AuditFaultKind::Tampered(record.seq));
            return self.reach(place, chain, record.seq, record.hashes().map_or([0; 32], |(_, hash)| hash));
        };
        let before = match self.reached.get(chain) {
            // After a missing record there is nothing to compare with.
            Some(reached) => (reached.seq + 1 == record.seq).then_some(reached.hash),
            None => (record.seq == 1).then(|| ChainPlace::start(chain).hash),
        };
        if before.is_some_and(|before| before != prev) {
            self.fault(place, chain, AuditFaultKind::Tampered(record.seq));
        }
        let head = record.place().map(SignedPlace::read);
        self.reach(place, chain, record.seq, hash);
        match head {
            None => {}
            Some(Some((head, key)))
                if head.kind == HEAD && head.to + 1 == record.seq && head.hash == prev && head.chain == *chain =>
            {
                let trusted = self.signer(place, chain, record.seq, &key, head.at);
                if trusted {
                    self.sign(chain, record.seq);
                }
            }
            Some(_) => self.fault(place, chain, AuditFaultKind::BadSignature(record.seq)),
        }
    }

    /// Verifies a signed place that stands for missing records.
    fn stand_in(&mut self, place: &str, record: &AuditRecord) {
        let chain = &record.chain;
        let Some((gap, key)) = record.signed_place().filter(|(gap, _)| gap.kind != HEAD && gap.from <= gap.to) else {
            return self.fault(place, chain, AuditFaultKind::BadSignature(record.seq));
        };
        let trusted = self.signer(place, chain, record.seq, &key, gap.at);
        self.reach(place, chain, gap.to, gap.hash);
        if !trusted {
            return;
        }
        self.sign(chain, gap.to);
        let count = gap.to - gap.from + 1;
        let Some(StandIn { absence, sink, .. }) = StandIn::of_kind(gap.kind) else { return };
        if self.sink.is_some_and(|own| sink.is_some_and(|sink| sink != own)) {
            self.fault(place, chain, AuditFaultKind::OfAnotherSink(gap.to));
        } else if let Some(named) = gap.sink {
            self.stands_for(place, chain, gap.to, named);
        }
        match absence {
            MissingReason::Gap => self.report.skipped += count,
            MissingReason::Elsewhere => self.report.elsewhere += count,
            MissingReason::Pruned | MissingReason::PrunedUnproved => {
                self.report.pruned += count;
                if let Some(reached) = self.reached.get_mut(chain) {
                    reached.pruned = gap.to;
                }
            }
        }
        if absence == MissingReason::PrunedUnproved {
            self.doubt(place, chain, AuditFaultKind::PrunedUnproved(gap.to));
        }
    }

    /// Compares the place that a gap or checkpoint names with that of the records. A genuine line may have been copied
    /// from another log of the same gateway.
    fn stands_for(&mut self, place: &str, chain: &str, to: u64, named: String) {
        let expected = self.place.as_ref().or(self.named.as_ref());
        if expected.is_some_and(|expected| *expected != named) {
            return self.fault(place, chain, AuditFaultKind::OfAnotherSink(to));
        }
        if self.place.is_none() && self.named.is_none() {
            self.doubt(place, chain, AuditFaultKind::PlaceUnknown(to, named.clone()));
            self.named = Some(named);
        }
    }

    /// Returns true and counts the signature if its key is trusted. Otherwise reports a fault.
    pub(crate) fn signer(&mut self, place: &str, chain: &str, seq: u64, key: &VerifyingKey, at: u64) -> bool {
        let seconds = i64::try_from(at / 1000).unwrap_or(i64::MAX);
        let trusted = self
            .keys
            .trusted(key.id(), &[KeyRole::Recorder, KeyRole::Gateway], seconds)
            .is_ok_and(|known| known.key == *key);
        match trusted {
            true => self.report.heads += 1,
            false => self.fault(place, chain, AuditFaultKind::Untrusted(seq, key.id().to_owned())),
        }
        trusted
    }

    fn sign(&mut self, chain: &str, seq: u64) {
        if let Some(reached) = self.reached.get_mut(chain) {
            reached.signed = seq;
        }
    }

    fn reach(&mut self, place: &str, chain: &str, seq: u64, hash: ChainHash) {
        if let Some(reached) = self.reached.get_mut(chain) {
            (reached.seq, reached.hash) = (seq, hash);
            place.clone_into(&mut reached.place);
            return;
        }
        let place = place.to_owned();
        let (signed, pruned, journaled, confirmed) = (0, 0, false, false);
        self.reached.insert(chain.to_owned(), ChainEnd { seq, hash, signed, pruned, place, journaled, confirmed });
    }

    /// Reports the records up to `seq` as missing, if the chain is known to have reached `seq`.
    pub fn came_to(&mut self, place: &str, chain: &str, seq: u64) {
        let reached = self.reached(chain);
        if reached < seq {
            self.fault(place, chain, AuditFaultKind::Missing(reached + 1, seq));
        }
    }

    /// Reports that the stored head of a chain is not what was signed.
    pub(crate) fn bad_head(&mut self, place: &str, chain: &str) {
        let seq = self.reached(chain);
        self.fault(place, chain, AuditFaultKind::BadSignature(seq));
    }

    /// Returns the last verified record of a chain; 0 if there is none.
    #[must_use]
    pub fn reached(&self, chain: &str) -> u64 {
        self.reached.get(chain).map_or(0, |reached| reached.seq)
    }

    /// Returns true if checkpoints stand for records deleted by age.
    pub(crate) fn has_pruned(&self) -> bool {
        self.report.pruned > 0
    }

    pub(crate) fn count_without_arguments(&mut self) {
        self.report.without_arguments += 1;
    }

    /// Requires the journals of the data folder to have the records from now on.
    pub(crate) fn in_place(&mut self) {
        self.in_place = true;
    }

    /// Returns the end of each chain.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&String, &ChainEnd)> {
        self.reached.iter()
    }

    /// Returns the end of one chain.
    pub(crate) fn place_of(&mut self, chain: &str) -> Option<&mut ChainEnd> {
        self.reached.get_mut(chain)
    }

    /// Returns the faults found so far.
    pub(crate) fn faults(&self) -> &[AuditFault] {
        &self.report.faults
    }

    /// Returns the faults and doubts found so far.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = &AuditFault> {
        self.report.faults.iter().chain(&self.report.doubts)
    }

    /// Checks the ends of all chains and returns the report.
    #[must_use]
    pub fn finish(mut self) -> AuditReport {
        let any_signature = self.report.heads > 0;
        for (chain, reached) in std::mem::take(&mut self.reached) {
            let ChainEnd { seq, signed, place, journaled, confirmed, .. } = reached;
            self.report.chains += 1;
            self.report.unsigned += seq.saturating_sub(signed);
            let unsigned = AuditFaultKind::Unsigned(signed + 1, seq);
            // A live process signs its last records within a moment, and its journal has them. Where others are signed,
            // a chain that is not signed at all was invented.
            let invented = if self.in_place { journaled || signed == 0 } else { signed == 0 && any_signature };
            match seq > signed && !confirmed {
                true if invented => self.fault(&place, &chain, unsigned),
                true => self.doubt(&place, &chain, unsigned),
                false if self.in_place && !journaled => self.doubt(&place, &chain, AuditFaultKind::EndUnknown(seq)),
                false => {}
            }
        }
        self.report
    }
}

/// Returns true if the line's hash matches its text.
fn is_whole(line: &str, (prev, hash): &(ChainHash, ChainHash)) -> bool {
    let Some(covered) = AuditRecord::covered(line) else { return false };
    let end = format!("{SEALED}{}\",\"hash\":\"{}\"}}", hex(prev), hex(hash));
    line.strip_prefix(covered) == Some(&end) && next(prev, covered.as_bytes()) == *hash
}

#[cfg(test)]
mod tests;
