//! Holds the rows of calls in a database against the records of their outcomes: only records are covered by the chain, and
//! people who ask with SQL read the rows.
//!
//! Rows are read before records. A row is written together with the record of its outcome, so each row that was read has one;
//! rows that come meanwhile are read again at the end.

use super::{AuditVerifier, FaultKind};
use crate::columns::{row_of, storable};
use crate::record::Record;
use serde_json::Value;
use signalbox_store::audit::{AuditRow, CallRow, StoredCall};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

/// The table.
const TABLE: &str = "audit_log";
/// Columns that the record of an outcome says.
const COLUMNS: [&str; 9] = [
    "request_id",
    "timestamp",
    "client_subject",
    "client_role",
    "tool_name",
    "backend_name",
    "response_status",
    "error_message",
    "latency_ms",
];
/// Most outcomes without a row that are looked for again at the end.
const MAX_MISSING: usize = 10_000;

/// What the columns hold, as hashes whose key nobody knows: rows of many calls are kept at once.
type Hashes = [u64; COLUMNS.len()];

/// A row that no record was seen of.
#[derive(Debug)]
struct FoundRow {
    id: i64,
    at: Option<u64>,
    hashes: Hashes,
    arguments: Option<u64>,
}

/// The outcome of a call, and what its row must say.
#[derive(Debug)]
struct Outcome {
    chain: String,
    seq: u64,
    at: u64,
    /// Hashes of `request_id` as it is written now, and as earlier versions wrote it.
    ids: [u64; 2],
    hashes: Hashes,
    /// Arguments of its intent; `None` if the intent is not there.
    arguments: Option<Option<u64>>,
    /// The call left for its backend, so that it had an intent.
    forwarded: bool,
}

/// Looks at the rows of calls, and then at the records of the same database.
#[derive(Debug, Default)]
pub struct CallVerifier {
    hasher: RandomState,
    /// By the hash of `request_id`.
    rows: HashMap<u64, Vec<FoundRow>>,
    /// The highest id.
    last: i64,
    /// The arguments of calls whose outcomes have yet to come, by the hash of their audit ids.
    intents: HashMap<u64, Option<u64>>,
    missing: Vec<Outcome>,
}

impl CallVerifier {
    /// Looks at a row of a call.
    pub fn row(&mut self, call: &StoredCall<'_>) {
        let &StoredCall { id, at, arguments, latency_ms, .. } = call;
        let text = |text: Option<&str>| self.hasher.hash_one(text.map(storable));
        let number = |number: Option<u64>| self.hasher.hash_one(number);
        let hashes = [
            text(call.request_id),
            number(at),
            text(call.subject),
            text(call.role),
            text(call.tool),
            text(call.backend),
            text(call.status),
            text(call.error),
            number(latency_ms),
        ];
        let arguments = arguments.map(|text| match serde_json::from_str::<Value>(text) {
            Ok(value) => self.hash_json(&value),
            Err(_) => self.hasher.hash_one(text),
        });
        self.last = self.last.max(id);
        self.rows.entry(hashes[0]).or_default().push(FoundRow { id, at, hashes, arguments });
    }

    /// The highest id of the rows so far: those with a higher one have come meanwhile.
    #[must_use]
    pub fn last(&self) -> i64 {
        self.last
    }

    /// Looks at a record, as it was written.
    pub fn record(&mut self, verifier: &mut AuditVerifier<'_>, line: &str) {
        if !line.contains("\"phase\":\"") {
            return;
        }
        let Ok(record) = Record::read(line) else { return };
        let row = row_of(&record, line);
        let Some(call) = &row.call else { return self.intent(&record) };
        let outcome = self.outcome(&record, &row, call);
        match self.take(&outcome) {
            Some(found) => compare(verifier, &outcome, &found),
            None if self.missing.len() < MAX_MISSING => self.missing.push(outcome),
            None => verifier.fault(TABLE, &outcome.chain, FaultKind::CallMissing(outcome.seq)),
        }
    }

    /// Keeps the arguments of an intent for its outcome, as the writer does.
    fn intent(&mut self, record: &Record) {
        let Some(id) = record.correlation_id().map(|id| self.hasher.hash_one(id)) else { return };
        match record.value["details"].get("arguments") {
            Some(arguments) => _ = self.intents.insert(id, Some(self.hash_json(arguments))),
            None => _ = self.intents.entry(id).or_insert(None),
        }
    }

    fn outcome(&mut self, record: &Record, row: &AuditRow, call: &CallRow) -> Outcome {
        let text = |text: Option<&str>| self.hasher.hash_one(text.map(storable));
        let number = |number: u64| self.hasher.hash_one(Some(number));
        let id = text(Some(&call.request_id));
        let hashes = [
            id,
            number(row.at),
            text(row.principal.as_deref()),
            text(call.role.as_deref()),
            text(Some(&call.tool)),
            text(row.backend.as_deref()),
            text(Some(&call.status)),
            text(call.error.as_deref()),
            number(call.latency_ms),
        ];
        let own = record.correlation_id();
        Outcome {
            chain: row.chain.clone(),
            seq: row.seq,
            at: row.at,
            ids: [id, text(own)],
            hashes,
            arguments: own.and_then(|own| self.intents.remove(&self.hasher.hash_one(own))),
            forwarded: record.value["details"]["forwarded"] == true,
        }
    }

    /// Takes the row of an outcome: of several with its id, the one that differs least.
    fn take(&mut self, outcome: &Outcome) -> Option<FoundRow> {
        outcome.ids.iter().find_map(|id| {
            let rows = self.rows.get_mut(id)?;
            let nearest =
                (0..rows.len()).min_by_key(|at| rows.get(*at).map(|row| differences(outcome, row).count()))?;
            let found = rows.swap_remove(nearest);
            if rows.is_empty() {
                self.rows.remove(id);
            }
            Some(found)
        })
    }

    /// Names outcomes without a row, and rows without an outcome. `seen` is the highest id before records were read;
    /// calls from before `since`, in milliseconds since 1970, may have been deleted by age.
    pub fn finish(mut self, verifier: &mut AuditVerifier<'_>, seen: i64, since: u64) {
        for outcome in std::mem::take(&mut self.missing) {
            match self.take(&outcome) {
                Some(found) => compare(verifier, &outcome, &found),
                None if outcome.at < since => {}
                None => verifier.fault(TABLE, &outcome.chain, FaultKind::CallMissing(outcome.seq)),
            }
        }
        let by_age = verifier.has_pruned();
        let may_be_gone = |row: &FoundRow| by_age && row.at.is_some_and(|at| at < since);
        let left = self.rows.into_values().flatten().filter(|row| row.id <= seen && !may_be_gone(row));
        let mut ids: Vec<i64> = left.map(|row| row.id).collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| verifier.fault(TABLE, "", FaultKind::CallInvented(id)));
    }

    /// Hashes a JSON value, whatever the order of its members and the spelling of its numbers: PostgreSQL keeps neither.
    fn hash_json(&self, value: &Value) -> u64 {
        match value {
            Value::Null | Value::Bool(_) => self.hasher.hash_one(value.to_string()),
            Value::Number(number) => self.hasher.hash_one(number.as_f64().map(f64::to_bits)),
            Value::String(text) => self.hasher.hash_one(('"', storable(text))),
            Value::Array(items) => {
                let items: Vec<u64> = items.iter().map(|item| self.hash_json(item)).collect();
                self.hasher.hash_one(('[', items))
            }
            Value::Object(members) => {
                let mut members: Vec<(String, u64)> =
                    members.iter().map(|(name, value)| (storable(name), self.hash_json(value))).collect();
                members.sort_unstable();
                self.hasher.hash_one(('{', members))
            }
        }
    }
}

/// The columns of a row that do not say what the outcome says. Either form of an id is right.
fn differences<'a>(outcome: &'a Outcome, row: &'a FoundRow) -> impl Iterator<Item = &'static str> {
    let pairs = COLUMNS.iter().zip(outcome.hashes.iter().zip(&row.hashes)).skip(1);
    pairs.filter(|(_, (own, found))| own != found).map(|(column, _)| *column)
}

fn compare(verifier: &mut AuditVerifier<'_>, outcome: &Outcome, row: &FoundRow) {
    let arguments = match (outcome.arguments, row.arguments) {
        (Some(Some(_)), None) => {
            verifier.count_without_arguments();
            None
        }
        (Some(own), found) => (own != found).then_some("request_args"),
        // A call that was refused has no intent; of one that was forwarded, the intent may have been deleted by age.
        (None, Some(_)) if !outcome.forwarded => Some("request_args"),
        (None, _) => None,
    };
    for column in differences(outcome, row).chain(arguments) {
        let place = format!("{TABLE} row {}", row.id);
        verifier.fault(&place, &outcome.chain, FaultKind::CallChanged(outcome.seq, column));
    }
}
