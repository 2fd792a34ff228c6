//! Does the chain again, and names the first record that is not as it was written.

mod calls;

pub use calls::CallVerifier;

use crate::chain::{ChainPlace, SEALED, next};
use crate::event::EventType;
use crate::place::SinkPlace;
use crate::record::{BadRecord, Record};
use crate::signed::{Absence, HEAD, SignedPlace, StandIn};
use signalbox_seal::{ChainHash, KeySet, Role, VerifyingKey, hex};
use signalbox_store::audit::StoredRecord;
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
    /// A column of its row in a database says something else.
    #[error("the column `{1}` of the row of record {0} says something else than the record")]
    Misfiled(u64, &'static str),
    /// A column of the row of its call says something else.
    #[error("the column `{1}` says something else than record {0}")]
    CallChanged(u64, &'static str),
    /// The row of its call is not there.
    #[error("the row of the call of record {0} is missing, or has another `request_id`")]
    CallMissing(u64),
    /// No record is the outcome of the call of this row.
    #[error("no record tells of the call of row {0}")]
    CallInvented(i64),
    /// Its signature does not fit what it signs.
    #[error("the signature of record {0} does not fit")]
    BadSignature(u64),
    /// It is signed by a key that is not trusted.
    #[error("record {0} is signed by the key `{1}`, which is not trusted")]
    Untrusted(u64, String),
    /// No signature covers these.
    #[error("no signature covers records {0} to {1}")]
    Unsigned(u64, u64),
    /// Nothing outside of the log says how far the chain went.
    #[error("nothing tells whether records behind {0} are missing: the data folder has no journal of the chain")]
    EndUnknown(u64),
    /// A gap or checkpoint of another sink was put here.
    #[error("what stands for the records up to {0} was signed for another sink")]
    OfAnotherSink(u64),
    /// A gap or checkpoint names a place, and the place of these records is not known.
    #[error(
        "what stands for the records up to {0} was signed for the log at {1}: if this is a copy of that, say so with `--of`"
    )]
    PlaceUnknown(u64, String),
    /// The records deleted by age had no start, or faults that an earlier version overlooked.
    #[error("records 1 to {0} were deleted by age, and did not verify then")]
    PrunedUnproved(u64),
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

/// Result of a verification.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every record is as it was written, and none is missing.
    Whole,
    /// Every record is as it was written, and the log itself says that others are not there: they could not be written,
    /// its sink was too far behind, or they went to another place.
    WithGaps,
    /// Nothing is wrong, and not everything is covered by a signature.
    Unproved,
    /// Something was changed, removed, moved or added.
    Broken,
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
    /// Number of records that were written while the log went to another place, as signed gaps say.
    pub elsewhere: u64,
    /// How many records could not be written, as the log itself says.
    pub lost: u64,
    /// How many records were deleted by age, as signed checkpoints say.
    pub pruned: u64,
    /// Number of rows of calls without the arguments that their records have: the process ended between intent and outcome.
    pub without_arguments: u64,
    /// How many records stand behind the last head of their chain: these are chained, but not signed yet.
    pub unsigned: u64,
    /// Everything that is wrong, the first first, but no more than some.
    pub faults: Vec<AuditFault>,
    /// What is not wrong and not proved, but no more than some.
    pub doubts: Vec<AuditFault>,
}

impl AuditReport {
    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.faults.is_empty(), self.doubts.is_empty()) {
            (false, _) => Verdict::Broken,
            (true, false) => Verdict::Unproved,
            (true, true) if self.lost + self.skipped + self.elsewhere > 0 => Verdict::WithGaps,
            (true, true) => Verdict::Whole,
        }
    }
}

/// Most faults that are told.
pub(crate) const MAX_FAULTS: usize = 20;

/// How far a chain was followed.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    pub seq: u64,
    pub hash: ChainHash,
    /// The last record that a trusted signature covers.
    pub signed: u64,
    /// The last record that a checkpoint stands for.
    pruned: u64,
    /// Where the last record stands.
    place: String,
    /// The data folder has a journal of this chain.
    pub journaled: bool,
    /// The journal has the last record as it is here.
    pub confirmed: bool,
}

/// Looks at the records of a log, in the order in which they stand there.
#[derive(Clone, Debug)]
pub struct AuditVerifier<'a> {
    keys: &'a KeySet,
    reached: BTreeMap<String, Reached>,
    report: AuditReport,
    /// The journals of the data folder were asked.
    in_place: bool,
    /// The sink whose records these are, if that is known.
    sink: Option<&'static str>,
    /// The place that these records were written to, if that is known.
    place: Option<String>,
    /// The first place that a gap or checkpoint named. All of a log name the same.
    named: Option<String>,
}

impl<'a> AuditVerifier<'a> {
    /// A verifier that trusts these keys.
    #[must_use]
    pub fn new(keys: &'a KeySet) -> Self {
        let (reached, report) = (BTreeMap::new(), AuditReport::default());
        Self { keys, reached, report, in_place: false, sink: None, place: None, named: None }
    }

    /// Expects the records of this sink.
    #[must_use]
    pub fn of_sink(self, sink: &'static str) -> Self {
        Self { sink: Some(sink), ..self }
    }

    /// Expects the records that were written to this place.
    #[must_use]
    pub fn of_place(self, place: &SinkPlace) -> Self {
        Self { place: Some(place.name.clone()), ..self.of_sink(place.sink) }
    }

    /// Expects records of this place from now on; of a place that is not known if it is `None`.
    pub fn expect_place(&mut self, place: Option<&SinkPlace>) {
        self.place = place.map(|place| place.name.clone());
    }

    pub(crate) fn fault(&mut self, place: &str, chain: &str, kind: FaultKind) {
        if self.report.faults.len() < MAX_FAULTS {
            self.report.faults.push(AuditFault { place: place.to_owned(), chain: chain.to_owned(), kind });
        }
    }

    fn doubt(&mut self, place: &str, chain: &str, kind: FaultKind) {
        if self.report.doubts.len() < MAX_FAULTS {
            self.report.doubts.push(AuditFault { place: place.to_owned(), chain: chain.to_owned(), kind });
        }
    }

    /// Looks at a line.
    pub fn line(&mut self, place: &str, line: &str) {
        self.record(place, line, Record::read(line));
    }

    /// Looks at a row of a database, whose columns must say what its record says.
    pub fn row(&mut self, place: &str, row: &StoredRecord<'_>) {
        let record = Record::read(row.record);
        if let Ok(record) = &record
            && let Some(column) = record.misfiled_column(row)
        {
            self.fault(place, &record.chain, FaultKind::Misfiled(record.seq, column));
        }
        self.record(place, row.record, record);
    }

    /// Looks at a line that was read already.
    pub(crate) fn record(&mut self, place: &str, line: &str, record: Result<Record, BadRecord>) {
        self.report.records += 1;
        let Ok(record) = record else { return self.fault(place, "", FaultKind::Unreadable) };
        let chain = record.chain.clone();
        let reached = self.reached.get(&chain);
        let expected = reached.map_or(1, |reached| reached.seq + 1);
        let first = if record.event_type.is_none() { record.value["from"].as_u64().unwrap_or(0) } else { record.seq };
        if first > expected {
            self.fault(place, &chain, FaultKind::Missing(expected, first - 1));
        } else if first < expected {
            // A process that was killed between its checkpoint and the deletion leaves records that
            // the checkpoint stands for.
            if reached.is_some_and(|reached| record.seq <= reached.pruned) {
                return;
            }
            // It is compared with nothing: what stands before it is not what was written before it.
            return self.fault(place, &chain, FaultKind::Reordered(record.seq));
        }
        if record.event_type.is_none() {
            return self.stand_in(place, &record);
        }
        if record.event_type == Some(EventType::RecordsLost) {
            self.report.lost += record.value["details"]["count"].as_u64().unwrap_or(0);
        }
        self.chained(place, line, &record);
    }

    /// Follows the chain to a record that is where it should be.
    fn chained(&mut self, place: &str, line: &str, record: &Record) {
        let chain = &record.chain;
        let whole = record.hashes().and_then(|hashes| is_whole(line, &hashes).then_some(hashes));
        let Some((prev, hash)) = whole else {
            self.fault(place, chain, FaultKind::Tampered(record.seq));
            return self.reach(place, chain, record.seq, record.hashes().map_or([0; 32], |(_, hash)| hash));
        };
        let before = match self.reached.get(chain) {
            // Behind a missing record there is nothing to compare with.
            Some(reached) => (reached.seq + 1 == record.seq).then_some(reached.hash),
            None => (record.seq == 1).then(|| ChainPlace::start(chain).hash),
        };
        if before.is_some_and(|before| before != prev) {
            self.fault(place, chain, FaultKind::Tampered(record.seq));
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
            Some(_) => self.fault(place, chain, FaultKind::BadSignature(record.seq)),
        }
    }

    /// A signed place in the place of records that are not here.
    fn stand_in(&mut self, place: &str, record: &Record) {
        let chain = &record.chain;
        let Some((gap, key)) = record.signed_place().filter(|(gap, _)| gap.kind != HEAD && gap.from <= gap.to) else {
            return self.fault(place, chain, FaultKind::BadSignature(record.seq));
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
            self.fault(place, chain, FaultKind::OfAnotherSink(gap.to));
        } else if let Some(named) = gap.sink {
            self.stands_for(place, chain, gap.to, named);
        }
        match absence {
            Absence::Gap => self.report.skipped += count,
            Absence::Elsewhere => self.report.elsewhere += count,
            Absence::Pruned | Absence::PrunedUnproved => {
                self.report.pruned += count;
                if let Some(reached) = self.reached.get_mut(chain) {
                    reached.pruned = gap.to;
                }
            }
        }
        if absence == Absence::PrunedUnproved {
            self.doubt(place, chain, FaultKind::PrunedUnproved(gap.to));
        }
    }

    /// Holds the place that a gap or checkpoint names against that of the records: the same line may be genuine, and
    /// come from another log of the same gateway.
    fn stands_for(&mut self, place: &str, chain: &str, to: u64, named: String) {
        let expected = self.place.as_ref().or(self.named.as_ref());
        if expected.is_some_and(|expected| *expected != named) {
            return self.fault(place, chain, FaultKind::OfAnotherSink(to));
        }
        if self.place.is_none() && self.named.is_none() {
            self.doubt(place, chain, FaultKind::PlaceUnknown(to, named.clone()));
            self.named = Some(named);
        }
    }

    /// Counts a signature of a trusted key. False, and a fault, if the key is not trusted.
    pub(crate) fn signer(&mut self, place: &str, chain: &str, seq: u64, key: &VerifyingKey, at: u64) -> bool {
        let seconds = i64::try_from(at / 1000).unwrap_or(i64::MAX);
        let trusted =
            self.keys.trusted(key.id(), &[Role::Recorder, Role::Gateway], seconds).is_ok_and(|known| known.key == *key);
        match trusted {
            true => self.report.heads += 1,
            false => self.fault(place, chain, FaultKind::Untrusted(seq, key.id().to_owned())),
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
        self.reached.insert(chain.to_owned(), Reached { seq, hash, signed, pruned, place, journaled, confirmed });
    }

    /// A chain is known to have come as far as this record: what is missing at the end is named.
    pub fn came_to(&mut self, place: &str, chain: &str, seq: u64) {
        let reached = self.reached(chain);
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

    /// True if checkpoints stand for records that were deleted by age.
    pub(crate) fn has_pruned(&self) -> bool {
        self.report.pruned > 0
    }

    pub(crate) fn count_without_arguments(&mut self) {
        self.report.without_arguments += 1;
    }

    /// From now on, what the journals of the data folder do not have is wrong.
    pub(crate) fn in_place(&mut self) {
        self.in_place = true;
    }

    /// How far each chain was followed.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&String, &Reached)> {
        self.reached.iter()
    }

    /// What is known of one chain.
    pub(crate) fn place_of(&mut self, chain: &str) -> Option<&mut Reached> {
        self.reached.get_mut(chain)
    }

    /// What is wrong so far.
    pub(crate) fn faults(&self) -> &[AuditFault] {
        &self.report.faults
    }

    /// What is wrong or not proved so far.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = &AuditFault> {
        self.report.faults.iter().chain(&self.report.doubts)
    }

    /// What was found.
    #[must_use]
    pub fn finish(mut self) -> AuditReport {
        let any_signature = self.report.heads > 0;
        for (chain, reached) in std::mem::take(&mut self.reached) {
            let Reached { seq, signed, place, journaled, confirmed, .. } = reached;
            self.report.chains += 1;
            self.report.unsigned += seq.saturating_sub(signed);
            let unsigned = FaultKind::Unsigned(signed + 1, seq);
            // A live process signs its last records within a moment, and its journal has them. Where others are signed,
            // a chain that is not signed at all was invented.
            let invented = if self.in_place { journaled || signed == 0 } else { signed == 0 && any_signature };
            match seq > signed && !confirmed {
                true if invented => self.fault(&place, &chain, unsigned),
                true => self.doubt(&place, &chain, unsigned),
                false if self.in_place && !journaled => self.doubt(&place, &chain, FaultKind::EndUnknown(seq)),
                false => {}
            }
        }
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
