//! The database sink. It stores each record as written in `audit_record`, and one row for each call in `audit_log`
//! (NO-7).

use super::{JournalRecord, Sink, SinkError};
use crate::columns::row;
use crate::log::unix_ms;
use crate::place::SinkPlace;
use crate::pruning::{Expiry, Pruner};
use crate::record::AuditRecord;
use signalbox_engine::record::StoreError;
use signalbox_store::audit::{AuditDatabase, AuditRow};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const DAY_MS: u64 = 24 * 3600 * 1000;
/// Minimum interval between deletions of expired records.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// Interval between log messages about expired records that stay.
const TELL_EVERY: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of bytes of arguments of calls in flight, which `audit_log` gets with their outcomes.
pub const MAX_ARGUMENT_BYTES: usize = 16 << 20;

/// Stores records in SQLite or PostgreSQL.
#[derive(Debug)]
pub struct DatabaseSink {
    database: AuditDatabase,
    place: SinkPlace,
    retention_days: u64,
    pruner: Pruner,
    pruned: Option<Instant>,
    /// Time of the last log message about expired chains that stay.
    told: Option<Instant>,
    /// Arguments of calls in flight by audit id, and their total size in bytes.
    open: HashMap<String, String>,
    open_bytes: usize,
}

impl DatabaseSink {
    /// Creates a sink for the database at this address. It opens the database with the first record.
    ///
    /// # Errors
    /// If the address is invalid.
    pub fn new(url: &str, retention_days: u64, pruner: Pruner) -> Result<Self, StoreError> {
        Ok(Self {
            database: AuditDatabase::at(url)?,
            place: pruner.database_place(url)?,
            retention_days,
            pruner,
            pruned: None,
            told: None,
            open: HashMap::new(),
            open_bytes: 0,
        })
    }
}

impl Sink for DatabaseSink {
    fn name(&self) -> &'static str {
        "database"
    }

    fn place(&self) -> Option<&SinkPlace> {
        Some(&self.place)
    }

    fn last_of(&mut self, chain: &str) -> Result<u64, SinkError> {
        Ok(self.database.last_of(chain)?)
    }

    fn write(&mut self, lines: &[JournalRecord]) -> Result<(), SinkError> {
        let mut rows: Vec<AuditRow> = lines.iter().map(row).collect();
        self.note_arguments(lines, &mut rows);
        self.database.append(&rows)?;
        for id in rows.iter().filter(|row| row.call.is_some()).filter_map(|row| row.correlation_id.as_ref()) {
            self.open_bytes -= self.open.remove(id).map_or(0, |arguments| arguments.len());
        }
        if self.pruned.is_none_or(|pruned| pruned.elapsed() >= PRUNE_EVERY) {
            self.prune(unix_ms().saturating_sub(self.retention_days.saturating_mul(DAY_MS)))?;
            self.pruned = Some(Instant::now());
        }
        Ok(())
    }
}

impl DatabaseSink {
    /// Deletes records from before `before`. Deletes only the start of each chain, so that a clock that was set back
    /// leaves no hole.
    fn prune(&mut self, before: u64) -> Result<(), StoreError> {
        let tells = self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY);
        for chain in self.database.chains_before(before)? {
            let (pruner, database) = (&self.pruner, &mut self.database);
            let expiry = pruner.expire_chain(&self.place, &chain, before, |each| database.chain(&chain, each))?;
            match expiry {
                // The row's number is that of the checkpoint itself.
                Expiry::Checkpoint(text) => self.database.prune(&row(&JournalRecord { seq: 0, text }))?,
                _ if !tells => {}
                Expiry::Stays => {
                    tracing::info!(chain, "old audit records stay: no signature of this gateway covers them");
                }
                Expiry::Misfiled(seq) => tracing::warn!(
                    chain,
                    seq,
                    "old audit records stay: the row of this record has another chain, number or time than the record"
                ),
                Expiry::Faulty(fault) => tracing::warn!(chain, %fault, "old audit records stay: they do not verify"),
            }
        }
        if tells {
            self.told = Some(Instant::now());
        }
        self.database.prune_calls(before)
    }

    /// Holds the arguments of intents until their outcomes arrive, and adds them to those rows.
    fn note_arguments(&mut self, lines: &[JournalRecord], rows: &mut [AuditRow]) {
        for (line, row) in lines.iter().zip(rows) {
            let Some(id) = &row.correlation_id else { continue };
            match &mut row.call {
                Some(call) => call.arguments = self.open.get(id).cloned(),
                // Most records have no arguments. A substring search is enough to know.
                None if line.text.contains("\"arguments\":") && self.open_bytes < MAX_ARGUMENT_BYTES => {
                    let Ok(record) = AuditRecord::read(&line.text) else { continue };
                    let Some(arguments) = record.arguments().map(str::to_owned) else { continue };
                    self.open_bytes += arguments.len();
                    let before = self.open.insert(id.clone(), arguments);
                    self.open_bytes -= before.map_or(0, |before| before.len());
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainPlace;
    use crate::columns::request_id;
    use crate::event::{AuditEvent, EventType, RiskLevel};
    use crate::signed::{HEAD, SignedPlace};
    use crate::verify::{AuditFault, AuditFaultKind};
    use signalbox_seal::{KeySet, SigningKey};
    use signalbox_store::audit::StoredRecord;

    fn pruner() -> Pruner {
        Pruner::new(SigningKey::from_seed(&[7; 32]).unwrap(), KeySet::new(), std::path::Path::new("no journals"))
    }

    fn line(place: &mut ChainPlace, details: &str) -> JournalRecord {
        let mut text = String::new();
        let mut event = AuditEvent::own(unix_ms(), EventType::ToolInvocation, details, RiskLevel::Low);
        event.correlation_id = Some("audit-1-1");
        place.append(&event, &mut text);
        JournalRecord { seq: place.seq, text: text.trim_end().to_owned() }
    }

    /// The id of a request is a UUID, and another one for another run or exchange.
    /// Proves NO-7.
    #[test]
    fn request_ids_are_uuids() {
        assert_eq!(request_id("audit-18bcfe568000007-1"), "018bcfe5-6800-8000-9c00-000000000001");
        let ids = ["audit-1-1", "audit-1-2", "audit-2-1", "audit-18bcfe56800ffff-3ffffffffffffff"].map(request_id);
        for (at, id) in ids.iter().enumerate() {
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert!(&id[14..15] == "8" && "89ab".contains(&id[19..20]), "{id}");
            assert!(!ids[at + 1..].contains(id), "{id}");
        }
        assert_eq!(request_id("something else"), "something else");
    }

    /// A record given twice is kept once, and a call is one row with its arguments.
    /// Proves G-40 and NO-7.
    #[test]
    fn records_are_kept_once_and_calls_have_their_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("audit.db").display());
        let mut sink = DatabaseSink::new(&url, 90, pruner()).unwrap();
        let mut place = ChainPlace::start("c");
        let intent = line(&mut place, r#"{"phase":"intent","tool":"greet","arguments":{"name":"Ada"}}"#);
        let outcome = line(&mut place, r#"{"phase":"outcome","tool":"greet","status":"success","latency_ms":3}"#);
        sink.write(std::slice::from_ref(&intent)).unwrap();
        assert!(sink.open_bytes > 0);
        sink.write(&[intent.clone(), outcome.clone()]).unwrap();
        sink.write(std::slice::from_ref(&outcome)).unwrap();
        assert_eq!((sink.open.len(), sink.open_bytes), (0, 0));
        let mut kept = Vec::new();
        AuditDatabase::at(&url)
            .unwrap()
            .records(&mut |row| {
                kept.push(row.record.to_owned());
                true
            })
            .unwrap();
        assert_eq!(kept, [intent.text, outcome.text]);
    }

    /// Old records are deleted, and a signed checkpoint stands for them. What no signature covers yet stays.
    /// Proves G-38.
    #[test]
    fn records_older_than_retention_days_give_way_to_a_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("audit.db").display());
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let mut place = ChainPlace::start("c");
        let mut append = |at, kind, details: &str| {
            let mut text = String::new();
            place.append(&AuditEvent::own(at, kind, details, RiskLevel::Low), &mut text);
            (JournalRecord { seq: place.seq, text: text.trim_end().to_owned() }, place.clone())
        };
        let (old, at_old) = append(1_000, EventType::RecordsLost, "{}");
        let signed =
            SignedPlace { kind: HEAD, chain: "c".into(), from: 1, to: 1, hash: at_old.hash, at: 1_000, sink: None };
        let (head, _) = append(1_000, EventType::ChainHead, &signed.sign(&key).unwrap());
        let (late, at_late) = append(1_000, EventType::RecordsLost, "{}");
        let (new, _) = append(unix_ms(), EventType::RecordsLost, "{}");
        let mut sink = DatabaseSink::new(&url, 90, pruner()).unwrap();
        let kept = || {
            let (mut count, keys) = (0, KeySet::new());
            let own = Pruner::new(key.clone(), keys, std::path::Path::new("no journals"));
            let mut verifier = own.verifier();
            let mut each = |row: &StoredRecord<'_>| {
                count += 1;
                verifier.row("row", row);
                true
            };
            AuditDatabase::at(&url).unwrap().records(&mut each).unwrap();
            (count, verifier.finish().faults)
        };
        sink.write(&[old, head, late, new]).unwrap();
        assert_eq!(kept(), (4, vec![]), "the third record is old and not signed yet");
        let signed =
            SignedPlace { kind: HEAD, chain: "c".into(), from: 4, to: 4, hash: place.hash, at: unix_ms(), sink: None };
        let mut text = String::new();
        let details = signed.sign(&key).unwrap();
        place.append(&AuditEvent::own(unix_ms(), EventType::ChainHead, &details, RiskLevel::Low), &mut text);
        sink.pruned = None;
        sink.write(&[JournalRecord { seq: place.seq, text: text.trim_end().to_owned() }]).unwrap();
        assert_eq!(at_late.seq, 3);
        assert_eq!(kept(), (3, vec![]), "a checkpoint, the new record and its head");
    }

    /// A row whose time or number disagrees with its record is no reason to delete young records.
    #[test]
    fn rows_that_disagree_with_their_records_are_not_deleted() {
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let day_ago = unix_ms() - DAY_MS;
        for (what, forge) in [
            ("at", (|row: &mut AuditRow| row.at = row.at.min(1_000)) as fn(&mut AuditRow)),
            ("seq", |row| row.seq = if row.seq == 4 { 0 } else { row.seq }),
            ("event_type", |row| "pruned".clone_into(&mut row.event_type)),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let url = format!("sqlite:{}", folder.path().join("audit.db").display());
            let (mut place, mut rows) = (ChainPlace::start("c"), Vec::new());
            let mut append = |at, kind, details: &str| {
                let mut text = String::new();
                place.append(&AuditEvent::own(at, kind, details, RiskLevel::Low), &mut text);
                rows.push(row(&JournalRecord { seq: place.seq, text: text.trim_end().to_owned() }));
                place.clone()
            };
            append(1_000, EventType::RecordsLost, "{}");
            append(day_ago, EventType::RecordsLost, "{}");
            let ChainPlace { chain, seq, hash } = append(day_ago, EventType::RecordsLost, "{}");
            let head = SignedPlace { kind: HEAD, chain, from: seq, to: seq, hash, at: day_ago, sink: None };
            append(day_ago, EventType::ChainHead, &head.sign(&key).unwrap());
            rows[1..].iter_mut().for_each(forge);
            let mut sink = DatabaseSink::new(&url, 90, pruner()).unwrap();
            sink.database.append(&rows).unwrap();
            sink.prune(unix_ms() - 90 * DAY_MS).unwrap();
            let own = pruner();
            let (mut young, mut verifier) = (0, own.verifier());
            let mut each = |row: &StoredRecord<'_>| {
                young += u64::from(AuditRecord::read(row.record).unwrap().at == day_ago);
                verifier.row("row", row);
                true
            };
            AuditDatabase::at(&url).unwrap().records(&mut each).unwrap();
            assert_eq!(young, 3, "{what}");
            let misfiled =
                |fault: &AuditFault| matches!(fault.kind, AuditFaultKind::Misfiled(_, column) if column == what);
            assert!(verifier.finish().faults.iter().any(misfiled), "{what}");
        }
    }
}
